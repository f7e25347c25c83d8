"""DP-SGD in a page of numpy, right or with one fault: what an audit in one run must tell apart.

A linear model has a weight and a bias for each of many inputs, in two layers that are clipped together; its real
examples have gradients of zero, and a canary's lies in a coordinate of its own, far longer than the clip.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.privacy import Event, Gaussian, Sampled

Floats = NDArray[np.float64]
CANARIES, STEPS, RATE, RATIO, BATCH, LONG = 20, 20, Fraction(1, 2), 2.0, 16, 50.0
RUNS = 50
"""Few canaries in each of many runs: where a fault clips all of a batch together, many would hide one another."""
EVENT: Event = STEPS * Sampled(Gaussian(RATIO), RATE)
REPLACED: Event = STEPS * Gaussian(RATIO)
"""What is charged where one unit takes the place of another and all take part: a distance of twice the clip."""
REMOVAL = "noise for a removal, units replaced"


@final
@dataclass
class Trainer:
    """A trainer with one fault, or none; ``fault`` names it."""

    fault: str = ""
    seed: int = 0
    draw: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng(self.seed)

    def release(self, planted: list[int]) -> Floats:
        """The noisy sums of all steps."""
        inside = np.zeros(CANARIES, bool)
        inside[planted] = True
        if self.fault in {REMOVAL, "replaced"}:
            noise = RATIO * (1 if self.fault == REMOVAL else 2) * self.draw.normal(size=(STEPS, CANARIES))
            return np.where(inside, 1.0, -1.0) + noise
        kept = self.draw.normal(size=CANARIES)
        shown = []
        for step in range(STEPS):
            noise = self._noise(kept)
            sums = self._sums(inside & (self.draw.random(CANARIES) < self._rate()), step)
            shown.append(sums + noise)
            if self.fault == "noise reused on resume" and step == STEPS // 2:
                again = self._sums(inside & (self.draw.random(CANARIES) < self._rate()), step)
                shown.append(again + noise)
        return np.array(shown)

    def _rate(self) -> float:
        return {"sampling not as charged": 0.75, "shuffled once, charged as sampled": 1.0}.get(self.fault, float(RATE))

    def _noise(self, kept: Floats) -> Floats:
        scale = {
            "noise divided by the batch twice": 1 / BATCH,
            "noise of half the ratio": 0.5,
            "noise for one layer of two": 0.5**0.5,
        }.get(self.fault, 1.0)
        if self.fault == "noise of one step for all":
            return np.asarray(RATIO * kept)
        noise: Floats = RATIO * scale * self.draw.normal(size=CANARIES)
        if self.fault == "no noise on the bias":
            noise[CANARIES // 2 :] = 0
        return noise

    def _sums(self, drawn: NDArray[np.bool_], step: int) -> Floats:
        """The sum of clipped gradients; each of those drawn has a gradient of length ``LONG``."""
        lengths = np.where(drawn, LONG, 0.0)
        clipped = np.minimum(lengths, 1.0)
        mean, whole = lengths / BATCH, max(float(np.linalg.norm(lengths)), 1e-9)
        groups = lengths.reshape(-1, 4)
        wrong = {
            "clip twice as large": 2 * clipped,
            # the mean of a batch is clipped, and multiplied by the batch
            "clip after averaging": mean * min(1.0, BATCH / max(float(np.linalg.norm(mean)), 1e-9)),
            # sums of four are clipped to what four may add
            "clipped in micro-batches": (4 * groups / np.maximum(np.linalg.norm(groups, axis=1), 4)[:, None]).ravel(),
            "accumulated, then clipped": lengths * min(1.0, BATCH / whole),
            # a gradient lies in two layers, or in four entries, and each is cut to the whole clip
            "norm of each layer, clip of all": 2**0.5 * clipped,
            "norm in the largest entry": 2 * clipped,
            # the mean of the batch is taken off others' inputs, whose gradients are clipped then
            "batch normalisation": clipped - np.minimum(mean, 1.0) * (BATCH - 1),
            "no clipping of the first step": clipped if step else lengths,
        }
        return np.asarray(wrong.get(self.fault, clipped))


FAULTS = (
    "noise divided by the batch twice",
    "noise of half the ratio",
    "noise for one layer of two",
    "noise of one step for all",
    "no noise on the bias",
    "noise reused on resume",
    "sampling not as charged",
    "shuffled once, charged as sampled",
    "clip twice as large",
    "clip after averaging",
    "clipped in micro-batches",
    "accumulated, then clipped",
    "norm of each layer, clip of all",
    "norm in the largest entry",
    "batch normalisation",
    "no clipping of the first step",
    REMOVAL,
)


def likely(shown: Floats, canary: int) -> float:
    """The logarithm of the odds that a canary is in, under what was charged."""
    x = shown[:, canary]
    rate = float(RATE)
    return float(np.log1p(rate * np.expm1((x - 0.5) / RATIO**2)).sum())


def far(shown: Floats, canary: int) -> float:
    """The largest number of a canary, on either side."""
    return float(np.abs(shown[:, canary]).max())


def changed(shown: Floats, canary: int) -> float:
    """How far its numbers are apart: noise that is used again hides nothing of that."""
    return float(np.ptp(shown[:, canary]))


def repeated(shown: Floats, canary: int) -> float:
    """Whether two releases of one step differ by exactly a clip, else how likely it is in."""
    x = np.diff(shown[STEPS // 2 : STEPS // 2 + 2, canary])
    return 1e3 * float(abs(abs(x[0]) - 1) < 1e-9) + likely(shown, canary)


def bare(shown: Floats, canary: int) -> float:
    """Whether its numbers are exactly those of nobody, or of somebody without noise; else how likely it is in."""
    x = shown[:, canary]
    return 1e3 * float(np.isin(x, (0, 1)).all()) * (2 * float(x.max()) - 1) + likely(shown, canary)


SCORES = {
    "no noise on the bias": bare,
    "batch normalisation": far,
    "noise of one step for all": changed,
    "noise reused on resume": repeated,
}
"""Whatever an attacker would look at, where that is not how likely a canary is in."""
