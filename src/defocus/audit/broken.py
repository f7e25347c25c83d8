"""Mechanisms with one known fault each. An auditor that misses one of them cannot be trusted with yours."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.runs import batched
from defocus.audit.target import Target
from defocus.noise import Bits, discrete_gaussian, discrete_laplace, system, uniform

__all__ = ["broken"]

_MICRO_SIGMA = 200
_CLIP = 100


def broken(bits: Bits | None = None) -> tuple[Target, ...]:
    """Every deliberately broken target, most with the claim epsilon = 1; see each one's ``about``."""
    source = system() if bits is None else bits
    floats = np.random.default_rng(source.integer(128))
    return (*_scales(source), *_floats(source, floats), *_side_doors(source), *_sums(source), *_seeds(source))


def _scales(bits: Bits) -> tuple[Target, ...]:
    """Noise of the wrong size."""

    def scaled(scale: Fraction) -> Any:
        return batched(lambda count, n: count + discrete_laplace(scale, n, bits))

    def truncated(count: int, n: int) -> Any:
        return count + np.clip(discrete_laplace(1, n, bits), -4, 4)

    return (
        _on_counts("half-noise", "Half the Laplace noise that epsilon 1 needs.", scaled(Fraction(1, 2))),
        _on_counts("less-noise", "Laplace noise with a scale that is 20 % too small.", scaled(Fraction(4, 5))),
        _on_counts("truncated-noise", "Laplace noise cut at four times its scale.", batched(truncated)),
    )


def _floats(bits: Bits, floats: np.random.Generator) -> tuple[Target, ...]:
    """The right law on paper, sampled or added in floating point: Mironov (2012)."""

    def inverse(value: float, n: int) -> Any:
        u = floats.random(n) - 0.5
        return value - np.sign(u) * np.log1p(-2 * np.abs(u))

    def at_zero(value: float, n: int) -> Any:
        coarse, fine = discrete_laplace(2**40, n, bits), uniform(2**40, n, bits)
        return value + (coarse * 2.0**-40 + fine * 2.0**-80)

    return (
        _on_values(
            "float-laplace", "numpy's Laplace noise added to a float.", lambda v, n: v + floats.laplace(0, 1, n)
        ),
        _on_values("inverse-cdf", "Laplace noise from the logarithm of a uniform float.", inverse),
        _on_values("noise-at-zero", "Exact noise rounded to a float at zero, then added to a float.", at_zero),
    )


def _side_doors(bits: Bits) -> tuple[Target, ...]:
    """Noise on the answer, and the secret in what surrounds it."""

    def clipped_sum(data: NDArray[np.float64], n: int) -> Any:
        return np.rint(np.clip(data, 0, 1)).sum() + discrete_laplace(1, n, bits)

    def whole_sum(data: NDArray[np.float64]) -> int:
        return int(np.rint(np.clip(data, 0, 1)).sum()) + _one(1, bits)

    def rate(data: NDArray[np.float64]) -> Fraction:
        return Fraction(int((np.nan_to_num(data) > 0.5).sum()) + _one(2, bits), len(data))

    def histogram(keys: Sequence[str]) -> dict[str, int]:
        return {key: keys.count(key) + _one(1, bits) for key in sorted(set(keys))}

    def numbers() -> tuple[Pair, ...]:
        return neighbours("numbers")

    return (
        _target("nan", "A clipped sum in which one NaN survives clipping and noise.", batched(clipped_sum), numbers),
        _target("exception", "A clipped sum that raises when a NaN reaches int().", whole_sum, numbers, trials=4000),
        _target(
            "empty",
            "A rate that divides by the exact number of rows, and raises where there are none.",
            rate,
            numbers,
            trials=4000,
        ),
        _target(
            "new-key",
            "A noisy count for each key that occurs: the keys themselves have no noise.",
            histogram,
            lambda: neighbours("keys"),
            trials=4000,
        ),
    )


def _sums(bits: Bits) -> tuple[Target, ...]:
    """The right noise for a sensitivity that does not hold."""

    def micro_batch(gradients: NDArray[np.int64], n: int) -> Any:
        total = gradients.sum(axis=0)
        norm = math.sqrt(float((total.astype(np.float64) ** 2).sum()))
        clipped = total if norm <= _CLIP else (total * (_CLIP / norm)).astype(np.int64)
        return clipped + discrete_gaussian(_MICRO_SIGMA, n * len(clipped), bits).reshape(n, -1)

    def wrapped(data: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return int(np.clip(data, 0, 1).astype(np.int8).sum(dtype=np.int8)) + discrete_laplace(1, n, bits)

    def own_bound(data: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return int(data.sum()) + discrete_laplace(max(int(np.abs(data).max(initial=1)), 1), n, bits)

    def one_replaced() -> tuple[Pair, ...]:
        still = np.zeros((7, 4), dtype=np.int64)
        return tuple(
            Pair(f"one of eight gradients turned round, norm {size}", _with(still, size), _with(still, -size))
            for size in (_CLIP, 3 * _CLIP)
        )

    def bare_threshold(answers: Sequence[int]) -> int | None:
        bar = _one(2, bits)
        return next((i for i, answer in enumerate(answers) if answer >= bar), None)

    return (
        _target(
            "sparse-vector",
            "Answers without noise compared with one noisy threshold.",
            bare_threshold,
            lambda: (Pair("two answers swap", [0, 1], [1, 0]),),
            trials=4000,
        ),
        # Gaussian noise of twice the sensitivity has delta = Phi(1/4 - 2) - e Phi(-1/4 - 2) = 0.0069 at epsilon 1.
        _target(
            "micro-batch",
            "A clipped sum of eight gradients, with noise as if replacing one moved it by C; it moves by 2C.",
            batched(micro_batch),
            one_replaced,
            delta=0.007,
        ),
        _target(
            "overflow",
            "A count in 8 bits: the 128th row turns it negative.",
            batched(wrapped),
            lambda: (*neighbours("integers"), Pair("127 rows and 128", np.ones(127, np.int64), np.ones(128, np.int64))),
        ),
        _target(
            "own-bound",
            "A sum with noise for the largest value that occurs in the data.",
            batched(own_bound),
            lambda: (Pair("a large row added", np.array([1]), np.array([1, 1000])),),
        ),
    )


def _seeds(bits: Bits) -> tuple[Target, ...]:
    """Noise that is not fresh."""

    def reused(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return counts + discrete_laplace(1, n, bits)[:, np.newaxis]

    def seeded(count: int) -> float:
        return count + float(np.random.default_rng(42).laplace(0, 1))

    return (
        _target(
            "reused-noise",
            "Two counts with the same noise: their difference is exact.",
            batched(reused),
            lambda: (Pair("one of two counts moves", np.array([5, 7]), np.array([6, 7])),),
        ),
        _on_counts("fixed-seed", "A generator seeded anew for each answer: the same noise every time.", seeded, 4000),
    )


def _target(name: str, about: str, mechanism: Any, pairs: Any, *, delta: float = 0.0, trials: int = 100_000) -> Target:
    return Target(
        name=f"broken/{name}",
        about=about,
        mechanism=mechanism,
        pairs=pairs,
        epsilon=1.0,
        delta=delta,
        trials=trials,
        broken=True,
    )


def _on_counts(name: str, about: str, mechanism: Any, trials: int = 100_000) -> Target:
    return _target(name, about, mechanism, lambda: neighbours("count")[:3], trials=trials)


def _on_values(name: str, about: str, mechanism: Any) -> Target:
    return _target(name, about, batched(mechanism), lambda: neighbours("value"))


def _one(scale: int, bits: Bits) -> int:
    return int(discrete_laplace(scale, 1, bits)[0])


def _with(others: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.vstack([others, [[size, 0, 0, 0]]])
