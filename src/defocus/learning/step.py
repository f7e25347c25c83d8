"""One step: clip, add up, add noise, divide. What comes out is in ``grad``, for the user's optimizer."""

import contextlib
import copy
import hashlib
import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module

from defocus.errors import DefocusError, StepFailedError, UnfitDataError, UnfitModelError
from defocus.learning.accountant import Plan
from defocus.learning.canaries import Canaries
from defocus.learning.clipping import AdaptiveClipping, Clipping, PerLayerClipping
from defocus.learning.data import Examples, Units, Weights
from defocus.learning.distributed import Ranks
from defocus.learning.gradients import Gradients, Rule
from defocus.learning.gradients.pieces.norm_bounds import TOLD
from defocus.learning.metrics import GRID, NoisyMetrics, Paid, PrivateMetrics
from defocus.learning.model_guard import ModelGuard
from defocus.learning.noise import Correlated, Noise, secret_of, seeded
from defocus.learning.run_log import DIGEST_BYTES
from defocus.noise.ranges import Integers
from defocus.release.paid_computation import silence

__all__ = ["Stepper", "withheld"]


_NOBODY: Integers = np.zeros(0, np.int64)
_Seen = tuple[torch.Tensor, torch.Tensor]
"""Losses and norms of examples, for their owner."""

_NARROW = 1 + 2.0**-7
"""In mixed precision a gradient and its factor are rounded to 8 bits, three times at most, so that a clipped gradient
may be longer than the clip by a factor of (1 + 2**-9)**3, which is less than this. Noise is made for that."""
_TF32 = 1 + 2.0**-9
"""The same on a GPU, which may round what it multiplies to 11 bits."""


@final
@dataclass(slots=True)
class Stepper:
    r"""Makes the noisy mean gradient of one step after another.

    Guarantee:
        A unit adds to the sum at most the L2 norm of the clips (a user's examples are clipped one by one and averaged,
        so the mean is no longer than the clip either). Noise of ratio z times that norm is added to the sum, which is
        then divided by the *expected* number of units, a public number; the number really drawn is used for nothing.
        With clips :math:`C_k` of groups of :math:`d_k` parameters, group k gets noise of variance
        :math:`z^2 (C_k/\sqrt{d_k}) \sum_j C_j\sqrt{d_j}`, the least in total among all with
        :math:`\sum_k C_k^2/\sigma_k^2 = z^{-2}`.
        Before noise is drawn, a digest of the sums and of the noise that they get is noted: see
        :mod:`defocus.learning.run_log`. What torch draws for the model and the data (dropout, augmentation) follows
        from the secret of the run, so that a step can be repeated: see :mod:`defocus.learning.noise`.
    """

    model: Module
    standing: ModelGuard
    gradients: Gradients
    plan: Plan
    clipping: Clipping
    data: Examples
    units: Units
    ranks: Ranks
    noise: Noise | Correlated
    chunk: int | None
    precision: torch.dtype | None
    clips: tuple[float, ...]
    glance: NoisyMetrics | None
    private: PrivateMetrics | None
    canaries: Canaries | None = None

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """The trainable parameters by name."""
        return {name: each for name, each in self.model.named_parameters() if each.requires_grad}

    def make(
        self,
        step: int,
        drawn: Integers,
        key: bytes,
        note: Callable[[int, bytes], None],
        planted: Integers = _NOBODY,
    ) -> None:
        """Put the noisy mean gradient of a sample of units into ``grad``, and move the clip if it is adaptive.

        ``note`` is told the digest of the step, and stops it by an error. ``planted`` are the canaries that were drawn.

        Where anything fails, ``grad`` is emptied: sums without noise are left to nobody. Warnings, which may depend on
        the examples, are not shown: what can be warned of a model is warned of synthetic ones, before the charge.
        """
        try:
            with silence():
                self._make(step, drawn, key, note, planted)
        except BaseException:
            for parameter in self.parameters.values():
                parameter.grad = None
            raise

    def _make(
        self, step: int, drawn: Integers, key: bytes, note: Callable[[int, bytes], None], planted: Integers
    ) -> None:
        parameters = self.parameters
        alike = partial(seeded, key, step, self.ranks.rank, next(iter(parameters.values())).device)
        part = self.ranks.part(drawn)
        extras = self.ranks.together(
            lambda: self._added(list(parameters.values()), part, alike),
            "compute its part of a step",
            at=step,
        )
        audited = self.canaries if self.ranks.first else None
        if self.canaries is not None:  # on all ranks, whose sums are added up as they lie in memory
            for parameter in parameters.values():
                parameter.grad = parameter.grad.contiguous()
        sums, clips = [parameter.grad for parameter in parameters.values()], self.clips
        if audited is not None:
            audited.add(sums, planted, step, key, clips)
        released = [*sums, extras] if len(extras) else sums
        scales = self._scales(step, list(parameters))
        self.ranks.added(released)
        secret = secret_of(self.noise, key, step, released) if self.ranks.first else b""
        note(step, _digest(secret, scales))
        if self.ranks.first:
            if isinstance(self.noise, Correlated):
                self.noise.add(released, scales[: len(released)], secret, step=step)
            else:
                self.noise.add(released, scales[: len(released)], secret)
        self.ranks.told(released)
        torch._foreach_div_(sums, self.plan.batch_size)
        self._learn(extras, scales[-1])
        if audited is not None:
            audited.see(sums, scales, step, key, clips)

    def _added(
        self,
        parameters: list[torch.nn.Parameter],
        part: Integers,
        alike: Callable[[], AbstractContextManager[None]],
    ) -> torch.Tensor:
        """The same from the model that was checked, in which nothing of the examples is left."""
        self.standing.check()
        with self.standing.kept():
            return self._sum(parameters, *self.units.examples_of(part), alike)

    def _sum(
        self,
        parameters: list[torch.nn.Parameter],
        numbers: Integers,
        weights: Weights,
        alike: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> torch.Tensor:
        """Add clipped gradients up in ``grad``, chunk by chunk; return the sums beside them.

        An example on which model or loss fail by themselves counts as nothing, as one that is not finite does: what it
        adds depends on it alone. The others are passed as if it were not there, under the seed of the step, so that
        what torch draws for them has the law that it has without it. What a failure says may quote examples, so it is
        told to nobody.
        """
        fits = np.arange(len(numbers))
        with self.gradients.kept():
            added = self._attempted(parameters, numbers, weights, alike)
            if added is None:
                fits = self._fitting(parameters, numbers, weights, alike, fits)
                some = parameters, numbers[fits], weights[fits], alike
                added = self._attempted(*some) or self._attempted(*some, size=1)
        if added is None:
            raise StepFailedError(
                "The model or the loss failed on private examples, though on none of them alone. What it said is"
                " withheld, since it may quote them. Nothing of the step was released, and the charge stays.",
                fix="try both on synthetic examples of every kind, and resume from a checkpoint.",
            )
        extras, seen = added
        lost = np.delete(weights, fits)
        worst = torch.full((len(lost),), torch.inf, device=parameters[0].device)
        if self.private is not None:
            losses, norms = (torch.cat([*parts, worst.cpu()]) for parts in zip(*seen, strict=True))
            self.private.note(losses, norms, int(torch.isinf(norms).sum()))
        whole: torch.Tensor = sum((self._beside(worst[:1], worst[:1], float(weight)) for weight in lost), extras)
        return self._scaled(whole)

    def _fitting(
        self,
        parameters: list[torch.nn.Parameter],
        numbers: Integers,
        weights: Weights,
        alike: Callable[[], AbstractContextManager[None]],
        places: Integers,
    ) -> Integers:
        """Those of the places on whose examples model and loss do not fail, found by halves."""
        if self._attempted(parameters, numbers[places], weights[places], alike) is not None:
            return places
        half = len(places) // 2
        halves = (places[:half], places[half:]) if half else ()
        return np.concatenate(
            [places[:0], *(self._fitting(parameters, numbers, weights, alike, halve) for halve in halves)]
        )

    def _attempted(
        self,
        parameters: list[torch.nn.Parameter],
        numbers: Integers,
        weights: Weights,
        alike: Callable[[], AbstractContextManager[None]],
        *,
        size: int | None = None,
    ) -> tuple[torch.Tensor, list[_Seen]] | None:
        """The sums of examples, in chunks of ``size`` or such as fit in memory; None where anything fails."""
        size = size or self.chunk or max(1, len(numbers))
        while True:
            try:
                with alike():
                    return self._summed(parameters, numbers, weights, size)
            except KeyboardInterrupt:
                raise
            except torch.OutOfMemoryError:
                if size <= 1:
                    return None
                self.chunk = size = -(-min(size, len(numbers)) // 2)
            except BaseException:  # noqa: BLE001 -- whatever model and loss do
                return None

    def _summed(
        self, parameters: list[torch.nn.Parameter], numbers: Integers, weights: Weights, size: int
    ) -> tuple[torch.Tensor, list[_Seen]]:
        for parameter in parameters:
            parameter.grad = None
        device = parameters[0].device
        extras = torch.zeros(self._width, dtype=torch.int64, device=device)
        seen: list[_Seen] = []
        rule = self.clipping.rule(self.clips)
        for part, weight in _parts(weights, size):
            batch = self.data.take(numbers[part], device)
            with self._context(device):
                clipped = self.gradients.clipped_sum(batch, _weighted(rule, weight))
            whole = clipped.norms if clipped.norms.dim() == 1 else clipped.norms.square().sum(0).sqrt()
            losses, norms = (_filled(values, len(part)) for values in (clipped.losses, whole))
            extras += self._beside(losses, norms, weight, batch[1])
            if self.private is not None:
                seen.append((losses.float().cpu(), norms.float().cpu()))
        return extras, seen

    def _context(self, device: torch.device) -> Any:
        if self.precision is None:
            return contextlib.nullcontext()
        return torch.autocast(device.type, dtype=self.precision)

    @property
    def _clip(self) -> float:
        return math.hypot(*self.clips)

    @property
    def _counts(self) -> bool:
        return isinstance(self.clipping, AdaptiveClipping)

    @property
    def _metrics(self) -> Paid | None:
        return None if self.glance is None else self.glance.metrics

    @property
    def _width(self) -> int:
        return int(self._counts) + (0 if self._metrics is None else self._metrics.width)

    def _beside(self, losses: torch.Tensor, norms: torch.Tensor, weight: float, targets: Any = None) -> torch.Tensor:
        """What one chunk adds to the sums beside the gradient: whole numbers, of which one unit adds at most ``GRID``.

        The count of short gradients is ±1 for each unit. Parts of a unit are rounded towards zero, so that they never
        come to more than it may add; sums of whole numbers are exact, in any order and on any number of processes.
        """
        parts = []
        if self._counts:
            signs = torch.where(norms <= self.clips[0], 1, -1)
            parts.append(signs.sum().reshape(1) * int(weight * GRID))
        if self._metrics is not None:
            parts.append(self._metrics.vector(losses, norms, self._clip, weight, targets))
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64, device=norms.device)

    def _scaled(self, sums: torch.Tensor) -> torch.Tensor:
        """The sums beside the gradient in 64 bits, all scaled to the ratio of noise of the first: see :meth:`_scales`.

        A unit moves them by at most one, up to a rounding of 2**-53 of the sums, for which ``TOLD`` has room.
        """
        widths = (int(self._counts), 0 if self._metrics is None else self._metrics.width)
        factors = [math.sqrt(share) / self._reference for share in self.plan.shares[1:]] if len(sums) else []
        parts = [part.double() * (factor / GRID) for part, factor in zip(sums.split(widths), factors, strict=False)]
        return torch.cat(parts) if parts else sums.double()

    @property
    def _reference(self) -> float:
        """The square root of the share of everything beside the gradient."""
        return math.sqrt(self.plan.shares[1] + self.plan.shares[2])

    def _scales(self, step: int, names: list[str]) -> list[float]:
        """The standard deviation of the noise of every sum: the parameters', then that of the sums beside them."""
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        rounded = _NARROW if self.precision is not None else 1.0 if on_cpu else _TF32
        ratio = self.plan.ratio_of(0, step) * TOLD * rounded
        if isinstance(self.clipping, PerLayerClipping):
            sizes = {name: each.numel() for name, each in self.parameters.items()}
            roots = [math.sqrt(sum(sizes[name] for name in group)) for group in self.clipping.names]
            total = sum(clip * root for clip, root in zip(self.clips, roots, strict=True))
            of = {
                name: ratio * math.sqrt(clip / root * total)
                for clip, root, group in zip(self.clips, roots, self.clipping.names, strict=True)
                for name in group
            }
            scales = [of[name] for name in names]
        else:
            scales = [ratio * self._clip] * len(names)
        if self._width:
            scales.append(self.plan.ratio * self.plan.factors[step] / self._reference * TOLD)
        return scales

    def _learn(self, extras: torch.Tensor, scale: float) -> None:
        """Move the clip by the noisy count, and keep what was paid to be seen."""
        noisy = (extras * self._reference).tolist()
        if self._counts and isinstance(self.clipping, AdaptiveClipping):
            below = noisy.pop(0) / math.sqrt(self.plan.shares[1]) / self.plan.batch_size
            self.clips = (self.clipping.moved(self.clips[0], (below + 1) / 2),)
        if self.glance is not None:
            root = math.sqrt(self.plan.shares[2])
            self.glance.note([value / root for value in noisy], self._clip, scale * self._reference / root)


def _digest(secret: bytes, scales: list[float]) -> bytes:
    """What is noted of a step: under the secret that follows from its sums, how much noise they get, made by what.

    Another version may make other noise of the same secret, and two noises of one sum would tell about it.
    """
    text = _made_by() + array("d", scales).tobytes()
    return hashlib.blake2b(text, key=secret, digest_size=DIGEST_BYTES).digest()


@cache
def _made_by() -> bytes:
    return f"{version('defocus')} {torch.__version__} {np.__version__}\n".encode()


def _parts(weights: Weights, size: int) -> Iterator[tuple[Integers, float]]:
    """Chunks of at most ``size`` examples of one weight each; one empty chunk where there is no example."""
    if not len(weights):
        yield np.zeros(0, np.int64), 1.0
    for weight in np.unique(weights):
        alike = np.flatnonzero(weights == weight)
        for start in range(0, len(alike), size):
            yield alike[start : start + size], float(weight)


def _filled(numbers: torch.Tensor, length: int) -> torch.Tensor:
    """The losses or norms of examples, and after them infinity for those that were left out."""
    return torch.nn.functional.pad(numbers, (0, length - len(numbers)), value=torch.inf)


def _weighted(rule: Rule, weight: float) -> Rule:
    return rule if weight == 1 else lambda norms: rule(norms) * weight


def withheld(work: Callable[[], None]) -> DefocusError | KeyboardInterrupt | None:
    """Why work on private examples failed, as far as it may be told, to be raised by whoever holds none of them.

    Guarantee:
        What is returned is new: no cause, context or frame of the failure hangs on it. Refusals that are about public
        things (the model between steps, the log, other processes) keep their words, and everything else says nothing.
    """
    try:
        work()
    except KeyboardInterrupt:
        return KeyboardInterrupt()
    except BaseException as problem:  # noqa: BLE001 -- its words and frames may hold examples
        if isinstance(problem, DefocusError) and not isinstance(problem, UnfitModelError | UnfitDataError):
            return copy.copy(problem)
    else:
        return None
    return StepFailedError(
        "A step failed on private examples. The reason is withheld, since it may quote them. Nothing of the step was"
        " released, and the charge stays.",
        fix="try the model and the loss on synthetic examples of every kind, and resume from a checkpoint.",
    )
