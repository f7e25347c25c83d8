"""A model that is tried out and left as it was found."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils import _pytree as trees

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients
from defocus.learning.gradients.layouts import Batch, call, rows, size
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.reference import allowed
from defocus.learning.gradients.trace import drawn
from defocus.learning.model_guard import Snapshot

__all__ = [
    "Again",
    "Gradient",
    "Trial",
    "alike",
    "close",
    "finite",
    "generators",
    "left_alone",
    "of_length_one",
]


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
        _seeded(seed)
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


def _seeded(seed: int) -> None:
    """Start the generators of Python and numpy."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


Gradient = list[torch.Tensor]

_EXACT = 1e-3
"""Where two ways may differ by more than this, products are rounded to few bits, and not always in the same way."""


@final
class Trial:
    """A model that is tried on batches, each as if it were the first.

    ``same`` is how far rounding carries things apart, relatively, where shapes and draws are the same, and ``most``
    where they are not. Examples are passed through the model each one alone, or together unless they are ``apart``.
    """

    def __init__(self, model: Module, losses: Losses, gradients: Gradients, again: Again) -> None:
        self._model, self._losses, self._gradients, self._again = model, losses, gradients, again
        self._values = [each.detach().clone() for each in model.parameters()]
        self.trained = [each for each in model.parameters() if each.requires_grad]
        self.most = allowed(self.trained[0])
        self.exact = self.most <= _EXACT
        self.same = 1e-5 if self.exact else 1e-3
        self.apart, self.drew = True, False

    def losses(self, batch: Batch, *, state: int = 0) -> torch.Tensor:
        """The loss of each example by the user's own model."""
        return self._passed(batch, state).detach().float()

    def alone(self, one: Batch, *, state: int = 0) -> tuple[torch.Tensor, Gradient]:
        """The loss and the gradient of a batch, of one example or as it is, by the user's own model."""
        losses = self._passed(one, state)
        found = torch.autograd.grad(losses.sum(), self.trained, allow_unused=True)
        pairs = zip(found, self.trained, strict=True)
        gradient = [torch.zeros_like(p) if g is None else g.to_dense() if g.is_sparse else g for g, p in pairs]
        return losses.detach().float(), gradient

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
        """As a step would do it: the norm told of each example, and the sum of gradients of length one.

        Examples that go one by one draw from the generators of Python and numpy as they do alone.
        """
        self._again(0)
        anew = register_module_forward_pre_hook(lambda module, _: _seeded(0) if module is self._model else None)
        try:
            made = self._gradients.clipped_sum(_copied(batch), of_length_one)
        finally:
            anew.remove()
        return _whole(made.norms).double(), [each.grad.detach().clone() for each in self.trained]

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
        given, before = _copied(batch), drawn()
        with torch.enable_grad():
            found = self._computed(given, state or 0)
        self.drew = self.drew or before != drawn()
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
