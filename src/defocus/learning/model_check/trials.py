"""A model that is tried out and left as it was found, and which numbers of a batch it looks at in Python."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees
from torch.utils._python_dispatch import TorchDispatchMode

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients
from defocus.learning.gradients.layouts import Batch, call, rows, size
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.reference import allowed
from defocus.learning.model_guard import Snapshot

__all__ = [
    "Again",
    "Gradient",
    "Peeks",
    "Seen",
    "Trial",
    "alike",
    "close",
    "dependent",
    "finite",
    "generators",
    "left_alone",
    "of_length_one",
    "peeking",
]


_NONE: frozenset[int] = frozenset()


@final
class Peeks:
    """What was seen while a batch went through a model.

    ``python`` is whether a number that was computed from the batch, or a shape that depends on one, came to Python: by
    ``if x.max() > 1``, ``.item()``, ``.tolist()``, ``.numpy()``, ``x[mask]``, ``nonzero`` and the like. What is
    computed may then depend on all examples, in ways that no trial shows. ``bounds`` tells, by the number of a leaf of
    the batch, below what its whole numbers must be, for those that choose rows of a table or classes.
    """

    def __init__(self, batch: Batch) -> None:
        self.python = False
        self.bounds: dict[int, int] = {}
        self._from: dict[int, frozenset[int]] = {}
        self._held: list[Any] = []
        for number, leaf in enumerate(trees.tree_leaves(tuple(batch))):
            if isinstance(leaf, torch.Tensor):
                self.mark([leaf], frozenset({number}))

    def origins(self, tensors: Iterable[Any]) -> frozenset[int]:
        """From which leaves of the batch the numbers of tensors come."""
        found = [self._from.get(_memory(each)[0], _NONE) for each in tensors if isinstance(each, torch.Tensor)]
        return _NONE.union(*found)

    def mark(self, tensors: Iterable[Any], origins: frozenset[int]) -> None:
        """Remember where the numbers of tensors come from."""
        for each in tensors:
            if isinstance(each, torch.Tensor):
                name, memory = _memory(each)
                self._from[name] = self._from.get(name, _NONE) | origins
                self._held.append(memory)  # so that no other memory gets its name

    def bound(self, index: Any, below: int) -> None:
        """Remember below what the numbers of an index must be."""
        for number in self.origins([index]):
            self.bounds[number] = min(below, self.bounds.get(number, below))


@contextmanager
def peeking(batch: Batch) -> Iterator[Peeks]:
    """Watch what is done with a batch."""
    peeks = Peeks(batch)
    below = _Below(peeks)
    with below, _Above(peeks, below):
        yield peeks


@final
class _Above(TorchFunctionMode):
    """Sees what reads memory at once, and what is only checked."""

    def __init__(self, peeks: Peeks, below: "_Below") -> None:
        super().__init__()
        self._peeks, self._below = peeks, below

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _READING and self._peeks.origins(args[:1]):
            self._peeks.python = True
        if name == "one_hot":
            classes = args[1] if len(args) > 1 else given.get("num_classes", -1)
            if classes > 0:  # its numbers are looked at for being classes only
                self._peeks.bound(args[0] if args else given["tensor"], classes)
                with self._below.trusting():
                    return func(*args, **given)
        return func(*args, **given)


@final
class _Below(TorchDispatchMode):
    """Sees every function that is computed, also those inside of others."""

    def __init__(self, peeks: Peeks) -> None:
        super().__init__()
        self._peeks, self._trusted = peeks, False

    @contextmanager
    def trusting(self) -> Iterator[None]:
        """While a function runs that shows nothing of what it looks at."""
        self._trusted = True
        try:
            yield
        finally:
            self._trusted = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = kwargs or {}
        tensors = trees.tree_leaves((args, given))
        origins = self._peeks.origins(tensors)
        if origins:
            self._look(func, args)
        made = func(*args, **given)
        if origins:
            written = [value for value, each in zip(args, func._schema.arguments, strict=False) if _writes(each)]  # noqa: SLF001
            self._peeks.mark(trees.tree_leaves((made, written)), origins)
        return made

    def _look(self, func: Any, args: Any) -> None:
        name = func.overloadpacket.__name__
        if name in _TABLES:
            table, index, axis = _TABLES[name]
            self._peeks.bound(args[index], args[table].shape[args[1] if axis is None else axis])
        if not self._trusted and _tells(name, func.tags, args, self._peeks):
            self._peeks.python = True


def _tells(name: str, tags: Any, args: Any, peeks: Peeks) -> bool:
    """Whether a number comes to Python, or a shape depends on numbers."""
    if name in {"index", "index_put", "_index_put_impl", "_unsafe_index"}:
        masks = [each for each in args[1] if each is not None and each.dtype in {torch.bool, torch.uint8}]
        filled = name.startswith(("index_put", "_index_put")) and args[2].numel() == 1
        return bool(peeks.origins(masks)) and not filled
    if name == "_pack_padded_sequence":
        return bool(peeks.origins(args[1:2]))
    return "ctc_loss" not in name and bool({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & {*tags})


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _memory(tensor: torch.Tensor) -> tuple[int, Any]:
    """What tells the memory of a tensor from others as long as what comes second is held."""
    try:
        storage = tensor.untyped_storage()
    except RuntimeError:  # one without any
        return id(tensor), tensor
    return storage._cdata, storage  # noqa: SLF001 -- its only name


_READING = frozenset({"tolist", "numpy", "__array__", "__dlpack__"})
_TABLES: dict[str, tuple[int, int, int | None]] = {
    "embedding": (0, 1, 0),
    "_embedding_bag": (0, 1, 0),
    "_embedding_bag_forward_only": (0, 1, 0),
    "nll_loss_forward": (0, 1, 1),
    "nll_loss2d_forward": (0, 1, 1),
    "gather": (0, 2, None),
    "index_select": (0, 2, None),
}
"""Where the table and the numbers are among the arguments, and by which axis they choose; None: it is an argument."""


_OPEN = 0.1
_SMALL = 2**20
"""A model of fewer parameters is tried on one thread: several would spend their time waiting for each other."""


@final
@dataclass(frozen=True, slots=True)
class Again:
    """Starts a pass: no gradients, buffers and attributes as they were found, and all generators from the seed given.

    ``seeded`` starts the generators only.
    """

    restored: Callable[[], None]
    seeded: Callable[[int], None]

    def __call__(self, seed: int) -> None:
        """Start it."""
        self.seeded(seed)
        self.restored()


@contextmanager
def left_alone(model: Module, loss: Any = None) -> Iterator[Again]:
    """Leave parameters, buffers, gradients, attributes and generators as they were, and what the loss holds.

    Inside, trainable numbers that are zero are not: a gate that starts closed would hide what is behind it.
    """
    parameters = list(model.parameters())
    grads = [parameter.grad for parameter in parameters]
    values = [parameter.detach().clone() for parameter in parameters]
    snapshot = Snapshot(model, loss=loss)
    few = sum(parameter.numel() for parameter in parameters) < _SMALL
    with generators(parameters[0].device) as seeded, _threads(1 if few else torch.get_num_threads()):

        def restored() -> None:
            snapshot.restore()
            for parameter in parameters:
                parameter.grad = None

        again = Again(restored, seeded)
        try:
            seeded(0)
            with torch.no_grad():
                for parameter in parameters:
                    if parameter.requires_grad:
                        parameter.copy_(torch.where(parameter == 0, _OPEN * torch.randn_like(parameter), parameter))
            yield again
        finally:
            again(0)
            with torch.no_grad():
                for parameter, grad, value in zip(parameters, grads, values, strict=True):
                    parameter.grad = grad
                    parameter.copy_(value)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Compute on so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def generators(device: torch.device) -> Iterator[Callable[[int], None]]:
    """Leave those of torch, numpy and Python as they were, which all share; what is yielded starts them anew."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 -- what a model may draw from
    on_gpu = device.type == "cuda"

    def seeded(seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)

    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        try:
            yield seeded
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002


Gradient = list[torch.Tensor]

_EXACT = 1e-3
"""Where two ways may differ by more than this, products are rounded to few bits, and not always in the same way."""


@final
@dataclass(frozen=True, slots=True)
class Seen:
    """What a batch came to: the loss of each example, the gradient that was asked for, and the buffers afterwards."""

    losses: torch.Tensor
    gradient: Gradient
    buffers: dict[str, torch.Tensor]


@final
class Trial:
    """A model that is tried on batches, each as if it were the first.

    ``same`` is how far rounding carries things apart, relatively, where shapes and draws are the same, and ``most``
    where they are not. Examples are passed through the model together, or each one alone if they are ``apart``.
    """

    def __init__(self, model: Module, losses: Losses, gradients: Gradients, again: Again) -> None:
        self._model, self._losses, self._gradients, self._again = model, losses, gradients, again
        self._values = [each.detach().clone() for each in model.parameters()]
        self.trained = [each for each in model.parameters() if each.requires_grad]
        self.most = allowed(self.trained[0])
        self.exact = self.most <= _EXACT
        self.same = 1e-5 if self.exact else 1e-3
        self.apart = False

    def losses(self, batch: Batch, *, state: int = 0) -> torch.Tensor:
        """The loss of each example by the user's own model."""
        return self._passed(batch, state).detach().float()

    def seen(self, batch: Batch, places: tuple[int, ...], *, state: int = 0) -> Seen:
        """Losses, and the gradient of those at some places, by the user's own model."""
        losses = self._passed(batch, state)
        buffers = self._buffers()
        found = torch.autograd.grad(losses[list(places)].sum(), self.trained, allow_unused=True)
        pairs = zip(found, self.trained, strict=True)
        gradient = [torch.zeros_like(p) if g is None else g.to_dense() if g.is_sparse else g for g, p in pairs]
        return Seen(losses.detach().float(), gradient, buffers)

    def noted(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Losses, and the buffers afterwards."""
        return self._passed(batch, 0).detach().float(), self._buffers()

    def peeks(self, batch: Batch) -> Peeks:
        """What the model and the loss look at in Python."""
        self._again(0)
        given = _copied(batch)
        with torch.enable_grad(), peeking(given) as seen:
            self._computed(given, 0)
        return seen

    def keep_apart(self, why: str) -> None:
        """From now on, pass every example through the model alone, as steps will do, which is said."""
        self.apart = True
        self._gradients.one_by_one(why)

    def after(self, before: Batch, batch: Batch) -> torch.Tensor | None:
        """The loss of each example, when the model has seen another batch before; None if that one made it fail."""
        if not self.fed(before):
            return None
        self._again.seeded(0)  # what was drawn before is no memory
        return self._passed(batch, None).detach().float()

    def fed(self, batch: Batch) -> bool:
        """Whether a batch goes through the model, of whatever numbers it is."""
        try:
            self._passed(batch, 0)
        except (DependentExamplesError, torch.OutOfMemoryError):
            raise
        except Exception:  # noqa: BLE001 -- a model that takes no such numbers
            return False
        return True

    def added(self, batch: Batch) -> tuple[torch.Tensor, Gradient]:
        """As a step would do it: the norm told of each example, and the sum of gradients of length one."""
        self._again(0)
        made = self._gradients.clipped_sum(_copied(batch), of_length_one)
        return _whole(made.norms).double(), [each.grad.detach().clone() for each in self.trained]

    def _buffers(self) -> dict[str, torch.Tensor]:
        return {name: buffer.detach().clone() for name, buffer in self._model.named_buffers()}

    def _computed(self, given: Batch, state: int) -> torch.Tensor:
        """The losses of examples; each one alone draws the same numbers, however many others drew before."""
        if not self.apart:
            return self._losses.each(call(self._model, given[0]), given[1], size(given))
        found = []
        for i in range(size(given)):
            inputs, target = rows(given, i, i + 1)
            self._again.seeded(state)
            found.append(self._losses.one(call(self._model, inputs), target))
        return torch.stack(found)

    def _passed(self, batch: Batch, state: int | None) -> torch.Tensor:
        if state is not None:
            self._again(state)
        given = _copied(batch)
        with torch.enable_grad():
            found = self._computed(given, state or 0)
        if any(leaf._version for leaf in trees.tree_leaves(given) if isinstance(leaf, torch.Tensor)):  # noqa: SLF001
            raise UnfitModelError(
                "The model or the loss changes what it is given, so that a batch cannot be looked at twice.",
                fix="work on a copy: x = x / 255 and not x /= 255, and inplace=False in the first layer.",
            )
        if not all(torch.equal(*pair) for pair in zip(self._values, self._model.parameters(), strict=True)):
            raise DependentExamplesError(
                "The model changes its own parameters in forward, by what it sees and without noise.",
                fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
            )
        if not found.requires_grad:
            raise UnfitModelError(
                "The loss has no gradient: nothing that is trained moves it.",
                fix="return a differentiable loss of the model's output, such as cross_entropy, not a count of errors.",
            )
        return found


def dependent(what: str) -> DependentExamplesError:
    """What is said of a model that ties examples."""
    return DependentExamplesError(
        f"In this model, {what}: clipping would bound nobody's influence.",
        fix="use GroupNorm, LayerNorm or InstanceNorm instead of BatchNorm, batch_first=True in recurrent and attention"
        " layers, take no means over the batch in forward, and return one loss for each example.",
    )


def close(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor, relative: float) -> bool:
    """Whether losses are the same, beside the largest of ``scale``. What is not a number is like nothing."""
    gap = (a.double() - b.double()).abs().max()
    return bool(gap <= relative * scale.double().abs().max() + 1e-7)


def alike(ones: Gradient, others: Gradient, relative: float, share: float, terms: int = 0) -> bool:
    """Whether two gradients are the same, parameter by parameter, but for what rounding leaves of the whole.

    A bias that the norm after it takes away has a gradient of rounding errors only, which differ from batch to batch.
    So has a sum of ``terms`` of length one that cancel: of each, single precision may leave a few units in its last
    place.
    """
    left = terms * 2.0**-20
    lengths = [each.double().norm() for each in (*ones, *others)]
    whole = torch.stack(lengths).norm()
    return all(
        bool((a.double() - b.double()).norm() <= max(relative * b.double().norm(), share * whole, left))
        for a, b in zip(ones, others, strict=True)
    )


def finite(*tensors: torch.Tensor) -> bool:
    """Whether all of them are."""
    return all(bool(torch.isfinite(each).all()) for each in tensors)


def _whole(norms: torch.Tensor) -> torch.Tensor:
    return norms if norms.dim() == 1 else norms.square().sum(0).sqrt()


def of_length_one(norms: torch.Tensor) -> torch.Tensor:
    """A rule that looks at one example at a time, and gives all groups of parameters the same factor."""
    return (1 / _whole(norms).clamp(min=1e-6)).expand_as(norms)


def _copied(batch: Batch) -> Batch:
    found: Batch = trees.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, tuple(batch))
    return found
