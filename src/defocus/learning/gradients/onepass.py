"""The fast way: one forward and one backward pass for the whole batch, and one product for each weight afterwards.

Images are stored channels last where that is faster. Where launching kernels takes longer than running them, a pass is
recorded once as a CUDA graph and replayed. A recorded pass has a fixed number of examples. Batches are filled up to it
with copies of their first example, whose factors are zero. A change of precision, shape or parameter memory is another
recording.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

import torch
from torch.nn import Module, Parameter
from torch.utils import _pytree as trees

from defocus.learning.gradients.graph import CheckedGraph
from defocus.learning.gradients.layouts import Batch, Regions, Rule, size, usable_factors, usable_norms
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.pieces.piece import Choices, Tools
from defocus.learning.gradients.reference import Looped, agrees, undisturbed
from defocus.learning.gradients.tape import Tape
from defocus.learning.gradients.trace import UnknownUseError

__all__ = ["Formats", "OnePass", "Pass", "Recorder", "Recording", "channels_last"]


Pass: TypeAlias = Callable[[Batch], tuple[Tape, torch.Tensor, torch.Tensor]]
"""From a batch to its tape, losses (B,) and norms (groups, B)."""

_MOST = 4
"""How many recordings are kept."""


@final
class Recording:
    """One pass, as two graphs: up to the norms, and from the factors on."""

    def __init__(self, batch: Batch, examples: int, run: Pass, regions: Regions, pool: Any) -> None:
        self.pool = pool
        self._regions, self._examples = regions, examples
        self._batch: Batch = trees.tree_map(lambda leaf: _room(leaf, examples), tuple(batch))
        self._fill(batch)
        tape, _, norms = run(self._batch)  # what is measured or set up on first use must not be recorded
        self._collect(tape, torch.ones_like(norms))
        del tape, norms
        self._to_norms, self._to_sums = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._to_norms, pool=pool):
            tape, self._losses, norms = run(self._batch)
            self._norms, self._usable = usable_norms(norms, self._losses)
            self._all = self._usable.all()
        self._factors = torch.zeros_like(self._norms, dtype=torch.float32)
        with torch.cuda.graph(self._to_sums, pool=pool):
            self._sums = self._collect(tape, self._factors)

    def measure(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses (B,) and norms (groups, B) of a batch of at most the recorded number of examples."""
        self._fill(batch)
        self._to_norms.replay()
        examples = size(batch)
        return self._losses[:examples].clone(), self._norms[:, :examples].clone()

    @property
    def usable(self) -> bool:
        """Whether all examples of the batch that was measured last are."""
        return bool(self._all)

    def add(self, factors: torch.Tensor) -> None:
        """Add the sums for the factors of the batch that was measured last."""
        parameters = self._regions.parameters
        examples = factors.shape[1]
        self._factors[:, :examples].copy_(factors)
        self._factors[:, examples:].zero_()
        self._to_sums.replay()
        for name, found in self._sums.items():
            parameter = parameters[name]
            parameter.grad = found if parameter.grad is None else parameter.grad.add_(found)

    def owns(self, gradient: torch.Tensor | None, name: str) -> bool:
        """Whether a gradient lies in the memory of this recording, where a replay would overwrite it."""
        return gradient is not None and gradient is self._sums.get(name)

    def _fill(self, batch: Batch) -> None:
        for room, leaf in zip(trees.tree_leaves(self._batch), trees.tree_leaves(tuple(batch)), strict=True):
            if isinstance(leaf, torch.Tensor):
                room[: len(leaf)].copy_(leaf, non_blocking=True)
                if len(leaf) < self._examples:
                    room[len(leaf) :].copy_(leaf[:1].expand(self._examples - len(leaf), *leaf.shape[1:]))

    def _collect(self, tape: Tape, factors: torch.Tensor) -> dict[str, torch.Tensor]:
        """The sums of a tape, and no trace of them in the parameters."""
        parameters = self._regions.parameters
        aside = {name: p.grad for name, p in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = None
            tape.add(factors)
            return {name: p.grad for name, p in parameters.items() if p.grad is not None}
        finally:
            for name, parameter in parameters.items():
                parameter.grad = aside[name]


@final
class Recorder:
    """Decides which passes are worth recording, and keeps their recordings."""

    def __init__(self, model: Module, regions: Regions, run: Pass, remembered: dict[str, str]) -> None:
        self._model, self._regions, self._run, self._remembered = model, regions, run, remembered
        self._kept: dict[Any, Recording] = {}
        self._seen: dict[Any, int] = {}

    def find(self, batch: Batch) -> Recording | None:
        """A recording for a batch like this one, made now if the time has come; None where plain passes do better."""
        examples = _rounded(size(batch))
        key = self._key(batch, examples)
        known = self._kept.get(key)
        if known is not None:
            self._save_gradients()
            return known
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        if seen != 2:
            return None
        work = f"recorded {key[:2]}"
        if work not in self._remembered:
            self._remembered[work] = "yes" if self._waits_for_launches(batch) else "no"
        if self._remembered[work] != "yes":
            return None
        return self._record(batch, examples, key)

    def forget(self) -> None:
        """Drop all recordings."""
        self._kept.clear()

    def _record(self, batch: Batch, examples: int, key: Any) -> Recording | None:
        while len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        pool = next((each.pool for each in self._kept.values()), None) or torch.cuda.graph_pool_handle()
        self._save_gradients()
        try:
            with undisturbed(self._model):
                self._kept[key] = Recording(batch, examples, self._run, self._regions, pool)
        except RuntimeError:  # something in the model cannot be recorded
            torch.cuda.synchronize()
            self._remembered[f"recorded {key[:2]}"] = "no"
            return None
        return self._kept[key]

    def _save_gradients(self) -> None:
        """Copy gradients that a replay would overwrite: they wait for more batches to be added."""
        for name, parameter in self._regions.parameters.items():
            if any(each.owns(parameter.grad, name) for each in self._kept.values()):
                parameter.grad = parameter.grad.clone()

    def _waits_for_launches(self, batch: Batch) -> bool:
        """Whether a pass takes about as long to launch as to run."""
        with undisturbed(self._model):
            self._run(batch)
            torch.cuda.synchronize()
            start = time.perf_counter()
            self._run(batch)
            launched = time.perf_counter() - start
            torch.cuda.synchronize()
            return launched > 0.5 * (time.perf_counter() - start)

    def _key(self, batch: Batch, examples: int) -> tuple[Any, ...]:
        every = trees.tree_leaves(tuple(batch))
        leaves = [leaf for leaf in every if isinstance(leaf, torch.Tensor)]
        constants = tuple(repr(leaf) for leaf in every if not isinstance(leaf, torch.Tensor))
        shapes = tuple((tuple(leaf.shape[1:]), str(leaf.dtype)) for leaf in leaves)
        memory = tuple(p.data_ptr() for p in self._regions.parameters.values())
        precision = (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        strides = tuple(leaf[:1].stride()[1:] for leaf in leaves)
        return examples, shapes, strides, constants, memory, precision


def _rounded(examples: int) -> int:
    """Up to the next of sixteen steps between powers of two: few recordings serve batches of random size."""
    step = max(1, 2 ** (examples.bit_length() - 5))
    rounded: int = -(-examples // step) * step
    return rounded


def _room(leaf: Any, examples: int) -> Any:
    """Memory for so many examples, in the order of the dimensions of what will be copied there."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    strides = leaf[:1].stride()
    size = max([step * length for step, length in zip(strides[1:], leaf.shape[1:], strict=True)], default=1)
    return leaf.new_empty(examples * size).as_strided((examples, *leaf.shape[1:]), (size, *strides[1:]))


@final
class Formats:
    """Measures once whether a model is faster with its images stored pixel by pixel, and then stores them so.

    The numbers, and what the model computes from them, are the same. A model that insists on one order, for example
    with ``view``, is given what it was given.
    """

    def __init__(self, model: Module, choices: Choices) -> None:
        self._model, self._choices = model, choices

    def best(self, batch: Batch, run: Callable[[Batch], Any]) -> Batch:
        """The batch in the faster order, for a model of convolutions."""
        shapes = [tuple(leaf.shape[1:]) for leaf in trees.tree_leaves(batch[0]) if _is_images(leaf)]
        if not shapes:
            return batch
        other = (trees.tree_map(lambda leaf: channels_last(leaf) if _is_images(leaf) else leaf, batch[0]), batch[1])
        work = f"format {size(batch).bit_length()} {shapes}"
        if work not in self._choices.remembered:
            with undisturbed(self._model):
                ways = {"as given": lambda: run(batch)}
                if _works(run, other):
                    ways["channels last"] = lambda: run(other)
                self._choices.remembered[work] = self._choices.pick(work, ways)
        return other if self._choices.remembered[work] == "channels last" else batch


def channels_last(images: torch.Tensor) -> torch.Tensor:
    """The same images with the channels of a pixel side by side; said in the strides even if there is one channel."""
    turned = images.contiguous(memory_format=torch.channels_last)
    if images.shape[1] == 1:
        _, _, height, width = images.shape
        turned = turned.as_strided(turned.shape, (height * width, 1, width, 1))
    return turned


def _is_images(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() == 4 and leaf.is_floating_point()


def _works(run: Callable[[Batch], Any], batch: Batch) -> bool:
    try:
        run(batch)
    except RuntimeError:
        return False
    return True


def _key(batch: Batch) -> tuple[Any, ...]:
    """What batches have in common that go through the same graph."""
    return tuple(
        (leaf.shape[1:], leaf.dtype, leaf.device) if isinstance(leaf, torch.Tensor) else repr(leaf)
        for leaf in trees.tree_leaves(tuple(batch))
    )


def _check(meanwhile: Callable[[], bool]) -> None:
    if not meanwhile():
        raise UnknownUseError("something in the model was exchanged")


@final
class OnePass:
    """Clipped sums by book-keeping: the backward pass computes no gradient of a parameter, only norms.

    The model and the loss are traced once as a graph of operators, through which the examples are followed
    (:mod:`~.independence`); the graph is what runs. Trainable parameters are detached in every use, and what their
    gradients are made of is kept until the factors are known (:mod:`~.uses`). If a backward pass reached a parameter
    all the same, this way would refuse with UnknownUseError before anything was added. Before the first batch, two of
    its examples are compared with the plain way besides.

    ``restored`` puts back what a pass leaves in the constants of the graph.
    """

    def __init__(
        self,
        model: Module,
        losses: Losses,
        groups: tuple[Mapping[str, Parameter], ...],
        choices: Choices,
        *,
        record: bool = True,
        restored: Callable[[], None] = lambda: None,
    ) -> None:
        self._model, self._losses, self._groups = model, losses, groups
        self._regions = Regions({name: p for group in groups for name, p in group.items()})
        self._tools = Tools(choices)
        self._group_of = {name: number for number, group in enumerate(groups) for name in group}
        self._single = Looped(model, losses, groups)
        self._graphs: dict[Any, CheckedGraph] = {}
        self._trusted: set[Any] = set()
        device = next(iter(self._regions.parameters.values())).device
        self._anchor = torch.zeros((), device=device, requires_grad=True)
        self._records = record and device.type == "cuda"
        self._formats = Formats(model, choices)
        self._recorder = Recorder(model, self._regions, self._tried, choices.remembered)
        self._restored = restored

    def forget(self) -> None:
        """Look at the model anew: something in it was exchanged."""
        self._graphs.clear()
        self._trusted.clear()
        self._recorder.forget()

    @property
    def notes(self) -> list[str]:
        """What to say of the graphs."""
        return sorted({note for graph in self._graphs.values() for note in graph.notes})

    def graph(self, batch: Batch) -> CheckedGraph:
        """The graph for batches of such tensors, traced and checked when they are first seen."""
        key = _key(batch)
        if any(graph.stale for graph in self._graphs.values()):
            self.forget()
        if key not in self._graphs:
            self._graphs[key] = CheckedGraph(self._model, self._losses, self._regions.parameters, batch, self._anchor)
        return self._graphs[key]

    def follows(self, batch: Batch) -> bool:
        """Whether a batch goes through a graph that was checked and compared, and that leaves nothing anywhere."""
        graph = self._graphs.get(_key(batch)) if _key(batch) in self._trusted and size(batch) > 1 else None
        return graph is not None and not graph.writes and not graph.stale

    def add(
        self, batch: Batch, rule: Rule, meanwhile: Callable[[], bool] = lambda: True
    ) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Add the clipped gradients to ``grad``; return losses (B,), norms (groups, B) and how many are unusable.

        ``meanwhile`` is asked while a GPU computes the norms; unless it says yes, nothing is added.
        """
        if size(batch) == 1:
            return self._single.add(batch, rule)
        graph = self.graph(batch)
        if _key(batch) not in self._trusted:
            self._trust(batch)
        if graph.convolves:
            batch = self._formats.best(batch, self._tried)
        recording = self._recorder.find(batch) if self._records else None
        if recording is not None:
            losses, norms = recording.measure(batch)
            _check(meanwhile)
            if recording.usable:
                recording.add(rule(norms[0] if len(norms) == 1 else norms).reshape(norms.shape))
                return losses, norms, 0
        tape, losses, norms = self._pass(batch)
        _check(meanwhile)
        norms, factors, usable = usable_factors(norms, losses, rule)
        unusable = int((~usable).sum())
        if unusable:
            tape.silence(usable)
        tape.add(factors)
        return losses, norms, unusable

    def _pass(self, batch: Batch) -> tuple[Tape, torch.Tensor, torch.Tensor]:
        """A backward pass: tape, losses and norms."""
        tape, losses = self._backward(batch, self._tools)
        return tape, losses, tape.norms(len(self._groups), len(losses), losses.device)

    def _tried(self, batch: Batch) -> tuple[Tape, torch.Tensor, torch.Tensor]:
        """A pass before the one that counts, for which it leaves nothing in the model and in the loss."""
        found = self._pass(batch)
        if not (self._anchor.is_cuda and torch.cuda.is_current_stream_capturing()):
            self._restored()
        return found

    def _trust(self, batch: Batch) -> None:
        verdict = agrees(self._model, self._losses, self._regions.parameters, batch, self._sums)
        if verdict is False:
            raise UnknownUseError("two examples got other gradients than each of them alone")
        if verdict is True:
            self._trusted.add(_key(batch))

    def _sums(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Squared norms and plain sums, with nothing added to any parameter and nothing measured."""
        tape, losses = self._backward(batch, Tools(Choices(forced=("ghost",)), margins=False))
        squares = tape.norms(len(self._groups), len(losses), losses.device).square().sum(0)
        parameters = self._regions.parameters
        aside = {name: p.grad for name, p in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = torch.zeros_like(parameter)
            tape.add(torch.ones(len(self._groups), len(losses), device=losses.device))
            return squares, {name: p.grad for name, p in parameters.items()}
        finally:
            for name, parameter in parameters.items():
                parameter.grad = aside[name]

    def _backward(self, batch: Batch, tools: Tools) -> tuple[Tape, torch.Tensor]:
        graph = self.graph(batch)
        tape = Tape(self._regions, self._group_of, graph.several, tools)
        parameters = self._regions.parameters
        aside = {name: p.grad for name, p in parameters.items()}
        try:
            for parameter in parameters.values():
                parameter.grad = None
            with torch.enable_grad():
                losses = graph.losses(batch, tape)
            if losses.requires_grad:
                torch.autograd.backward(losses.sum())
            if any(parameter.grad is not None for parameter in parameters.values()):
                raise UnknownUseError("a parameter is used in a way that was not seen")
        finally:
            graph.finish()
            for name, parameter in parameters.items():
                parameter.grad = aside[name]
        return tape, losses.detach().float()
