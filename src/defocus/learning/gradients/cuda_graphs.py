"""CUDA graphs: where launching kernels takes longer than running them, a pass is recorded once and replayed.

A recorded pass has a fixed number of examples. Batches are filled up to it with copies of their first example, whose
factors are zero. What Python does inside of the model happens while recording and not when replaying, so a model with
hooks is not recorded, and a change of mode, precision, shape or parameter memory is another recording.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

import torch
from torch.nn import Module
from torch.utils import _pytree as trees

from defocus.learning.gradients.layouts import Batch, Regions, size
from defocus.learning.gradients.probes import undisturbed
from defocus.learning.gradients.tape import Tape

__all__ = ["Pass", "Recorder", "Recording"]

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
            tape, self._losses, self._norms = run(self._batch)
        self._factors = torch.zeros_like(self._norms, dtype=torch.float32)
        with torch.cuda.graph(self._to_sums, pool=pool):
            self._sums = self._collect(tape, self._factors)

    def measure(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses (B,) and norms (groups, B) of a batch of at most the recorded number of examples."""
        self._fill(batch)
        self._to_norms.replay()
        examples = size(batch)
        return self._losses[:examples].clone(), self._norms[:, :examples]

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
        if seen != 2 or any(_hooked(module) for module in self._model.modules()):
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
        modes = tuple(module.training for module in self._model.modules())
        memory = tuple(p.data_ptr() for p in self._regions.parameters.values())
        precision = (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        strides = tuple(leaf[:1].stride()[1:] for leaf in leaves)
        return examples, shapes, strides, constants, modes, memory, precision


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


def _hooked(module: Module) -> bool:
    hooks: list[Mapping[int, Any]] = [
        module._forward_hooks,  # noqa: SLF001 -- there is no public way to ask
        module._forward_pre_hooks,  # noqa: SLF001
        module._backward_hooks,  # noqa: SLF001
        module._backward_pre_hooks,  # noqa: SLF001
    ]
    return any(hooks)
