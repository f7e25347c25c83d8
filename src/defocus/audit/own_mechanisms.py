"""Every mechanism of this project as a target: claims are read from its event by the accountant, not typed here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus import mechanisms, privacy
from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.runs import Mechanism, batched
from defocus.audit.target import Target
from defocus.noise import Bits

__all__ = ["honest"]

_FEW = 8_000
_TOP = 2**63 - 1


def honest(bits: Bits | None = None) -> tuple[Target, ...]:
    """One target or more for every mechanism, drawing from ``bits``."""
    return (
        *_additive(bits),
        *_choices(bits),
        *_thresholds(bits),
        *_followings(bits),
        *_responses(bits),
        *_histograms(bits),
        *_pipelines(bits),
    )


def _additive(bits: Bits | None) -> tuple[Target, ...]:
    one = mechanisms.Laplace(scale=1)
    several = mechanisms.Laplace(scale=3, sensitivity=3)
    geometric = mechanisms.Geometric(epsilon=1)
    gaussian = mechanisms.Gaussian(sigma=1)
    wide = mechanisms.Gaussian(sigma=4, sensitivity=4, dimension=4)

    def wide_runs(data: NDArray[np.int64], n: int) -> Any:
        # The noise of each entry is independent, so n runs are one run on n times as many entries.
        return replace(wide, dimension=4 * n).sample(np.tile(data, n), bits).reshape(n, 4)

    return (
        _target("laplace", "one count", one, _repeated(one, bits), _counts),
        _target("laplace/single", "one count, one draw at a time", one, _single(one, bits), _counts, trials=_FEW),
        _target(
            "laplace/vector",
            "four counts that move by 3 together",
            several,
            _rows(several, bits),
            _moves([1, -1, 1, 0], 3),
        ),
        _target("geometric", "one count", geometric, _repeated(geometric, bits), _counts),
        _target("gaussian", "one count", gaussian, _many_gaussians(gaussian, bits), _counts, delta=0.01),
        _target(
            "gaussian/single", "one draw at a time", gaussian, _single(gaussian, bits), _counts, delta=0.01, trials=_FEW
        ),
        _target(
            "gaussian/vector",
            "four counts, L2 sensitivity 4",
            wide,
            batched(wide_runs),
            _moves([2, -2, 2, 2], 4),
            delta=0.01,
        ),
    )


def _choices(bits: Bits | None) -> tuple[Target, ...]:
    def both_ways() -> tuple[Pair, ...]:
        return (
            Pair("one rises and the others fall", [0, 0, 0, 0], [1, -1, -1, -1]),
            Pair("the leader falls behind", [1, 0, 0, 0], [0, 1, 1, 1]),
            Pair("at the largest integers", [_TOP - 1] * 4, [_TOP, _TOP - 2, _TOP - 2, _TOP - 2]),
            Pair("ends of the range", [-_TOP, _TOP - 1, 0, 0], [-_TOP + 1, _TOP - 2, 1, 1]),
        )

    def upwards() -> tuple[Pair, ...]:
        return (
            Pair("one rises", [0, 0, 0, 0], [1, 0, 0, 0]),
            Pair("all others rise", [3, 3, 3, 3], [3, 4, 4, 4]),
            Pair("a tie is broken", [1, 0, 0, 0], [1, 1, 1, 1]),
        )

    targets: list[Target] = []
    kinds: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("exponential", mechanisms.Exponential),
        ("permute-and-flip", mechanisms.PermuteAndFlip),
        ("report-noisy-max", mechanisms.ReportNoisyMax),
    )
    for name, make in kinds:
        general, monotone = make(epsilon=1, candidates=4), make(epsilon=1, candidates=4, monotone=True)
        targets += [
            _target(name, "the best of four", general, _single(general, bits), both_ways, trials=_FEW),
            _target(f"{name}/monotone", "counts", monotone, _single(monotone, bits), upwards, trials=_FEW),
        ]
    return tuple(targets)


def _thresholds(bits: Bits | None) -> tuple[Target, ...]:
    plain = mechanisms.AboveThreshold(epsilon=1, threshold=0)
    gap = mechanisms.AboveThreshold(epsilon=1, threshold=0, positives=2, gap=True)
    monotone = mechanisms.AboveThreshold(epsilon=1, threshold=0, monotone=True, gap=True)

    def both_ways() -> tuple[Pair, ...]:
        return (
            Pair("all fall but the last", [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]),
            Pair("alternating", [0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]),
            Pair("at the largest integers", [_TOP - 1, 0], [_TOP, 1]),
        )

    def upwards() -> tuple[Pair, ...]:
        return (
            Pair("all rise", [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
            Pair("the last rises", [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]),
        )

    return (
        _target("above-threshold", "the first", plain, _single(plain, bits), both_ways, trials=_FEW),
        _target("above-threshold/gap", "the first two, with gaps", gap, _single(gap, bits), both_ways, trials=_FEW),
        _target("above-threshold/monotone", "counts", monotone, _single(monotone, bits), upwards, trials=_FEW),
    )


def _followings(bits: Bits | None) -> tuple[Target, ...]:
    """Noise that follows a level of the data, which moves too; and a choice of several by their utilities."""
    ramp = mechanisms.Ramp(epsilon=1, typical=2)
    ladder = mechanisms.Ladder(epsilon=1, cap=9, typical=2)
    noisy = mechanisms.NoisyLocalSensitivity(epsilon=1, delta=0.005, cap=9, typical=2)
    subset = mechanisms.SubsetChoice(epsilon=1, candidates=4, size=2, touched=2, monotone=True)

    def levels() -> tuple[Pair, ...]:
        return (
            Pair("the value and its level rise", [0, 2], [2, 3]),
            Pair("the level alone rises", [0, 0], [0, 1]),
            Pair("the value falls at one level", [5, 3], [2, 3]),
        )

    def degrees() -> tuple[Pair, ...]:
        return (
            Pair("two rise", [0, 0, 0, 0], [1, 1, 0, 0]),
            Pair("a tie is broken", [3, 2, 2, 1], [3, 3, 2, 2]),
        )

    return (
        _target("ramp", "a count and its level", ramp, _single(ramp, bits), levels, trials=_FEW),
        _target("ladder", "a count and its level", ladder, _single(ladder, bits), levels, trials=_FEW),
        _target(
            "noisy-local-sensitivity",
            "a count and its level",
            noisy,
            _single(noisy, bits),
            levels,
            delta=0.01,
            trials=_FEW,
        ),
        _target("subset-choice", "two of four", subset, _single(subset, bits), degrees, trials=_FEW),
    )


def _responses(bits: Bits | None) -> tuple[Target, ...]:
    coin = mechanisms.RandomizedResponse(epsilon=1)
    dice = mechanisms.RandomizedResponse(epsilon=1, categories=6)
    return (
        _target("randomized-response", "yes or no", coin, _repeated(coin, bits), lambda: (Pair("no and yes", 0, 1),)),
        _target(
            "randomized-response/categories",
            "one of six",
            dice,
            _repeated(dice, bits),
            lambda: (Pair("first and last", 0, 5), Pair("neighbours", 2, 3)),
        ),
    )


def _histograms(bits: Bits | None) -> tuple[Target, ...]:
    median = mechanisms.Quantiles(levels=(0.5,), epsilon=1, buckets=4)
    quartiles = mechanisms.Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=3, sensitivity=2)
    one = mechanisms.PartitionSelection(epsilon=1, delta=0.01)
    several = mechanisms.PartitionSelection(epsilon=1, delta=0.01, groups=2)
    finder = mechanisms.RangeFinding(epsilon=1, smallest=0, largest=2)

    def kept_one(n: int, times: int) -> Any:
        return one.keep(np.full(times, n), bits).astype(np.int64)

    def kept(data: NDArray[np.int64], n: int) -> Any:
        return several.keep(np.tile(data, n), bits).reshape(n, len(data)).astype(np.int64)

    def units() -> tuple[Pair, ...]:
        return (
            Pair("a user at the end", np.array([1, 0, 0, 0]), np.array([1, 0, 0, 1])),
            Pair("a user in the middle", np.array([3, 0, 0, 3]), np.array([3, 1, 0, 3])),
            Pair("the only user", np.array([0, 0, 0, 0]), np.array([1, 0, 0, 0])),
        )

    def weights() -> tuple[Pair, ...]:
        return (
            Pair("a user on both sides", np.array([4, 0, 4]), np.array([5, 0, 5])),
            Pair("a user at one end", np.array([4, 4, 0]), np.array([4, 4, 2])),
            Pair("the only user", np.array([0, 0, 0]), np.array([0, 2, 0])),
        )

    def keys() -> tuple[Pair, ...]:
        return tuple(Pair(f"{n} units and one more", n, n + 1) for n in (0, 1, 4, 6))

    def two_keys() -> tuple[Pair, ...]:
        return tuple(Pair(f"{n} units in two keys", np.array([n, n]), np.array([n + 1, n + 1])) for n in (0, 3, 10))

    def magnitudes() -> tuple[Pair, ...]:
        return (
            Pair("a user at the end", np.array([0, 0, 9, 0, 5]), np.array([0, 0, 9, 0, 6])),
            Pair("the only user", np.array([0, 0, 0, 0, 0]), np.array([0, 1, 0, 0, 0])),
        )

    return (
        _target("quantiles", "the median", median, _single(median, bits), units, trials=_FEW),
        _target("quantiles/several", "the quartiles", quartiles, _single(quartiles, bits), weights, trials=_FEW),
        _target("partition-selection", "one key", one, batched(kept_one), keys, delta=0.01),
        _target("partition-selection/several", "two keys", several, batched(kept), two_keys, delta=0.01),
        _target("range-finding", "two powers", finder, _single(finder, bits), magnitudes, trials=_FEW),
    )


def _pipelines(bits: Bits | None) -> tuple[Target, ...]:
    grid = mechanisms.Grid("0.25")
    added = mechanisms.Laplace(scale=4, sensitivity=grid.bound(low=0, high=1))
    replaced = mechanisms.Laplace(scale=8, sensitivity=grid.bound(low=-1, high=1, replace=True))

    def total(data: NDArray[np.float64], n: int) -> Any:
        return grid.decimal(added.sample(np.full(n, grid.total(data, low=0, high=1)), bits))

    def swapped(data: NDArray[np.float64], n: int) -> Any:
        return grid.decimal(replaced.sample(np.full(n, grid.total(data, low=-1, high=1)), bits))

    return (
        _target("grid", "a sum of any floats, rows added", added, batched(total), lambda: neighbours("numbers")),
        _target(
            "grid/replace",
            "a sum of any floats, rows replaced",
            replaced,
            batched(swapped),
            lambda: neighbours("numbers", replace=True),
        ),
    )


def _target(
    name: str,
    about: str,
    mechanism: mechanisms.Mechanism,
    runs: Mechanism,
    pairs: Callable[[], tuple[Pair, ...]],
    *,
    delta: float = 0.0,
    trials: int = 100_000,
) -> Target:
    return Target(
        name=name,
        about=f"{mechanism}: {about}",
        mechanism=runs,
        pairs=pairs,
        epsilon=privacy.account(mechanism.event).epsilon(delta),
        delta=delta,
        trials=trials,
    )


def _counts() -> tuple[Pair, ...]:
    return neighbours("count")


def _moves(spread: Sequence[int], alone: int) -> Callable[[], tuple[Pair, ...]]:
    """Four counts that move by ``spread``, or one of them by ``alone``."""

    def pairs() -> tuple[Pair, ...]:
        start, top = np.array([5, 0, -5, 1000]), np.full(4, _TOP - alone)
        one = np.array([0, alone, 0, 0])
        return (
            Pair("moves spread out", start, start + spread),
            Pair("one entry moves", start, start + one),
            Pair("at the largest integers", top, top + one),
        )

    return pairs


def _repeated(mechanism: Any, bits: Bits | None) -> Mechanism:
    """Many runs on one number are one run on many copies of it: the noise of each entry is independent."""
    return batched(lambda value, n: mechanism.sample(np.full(n, value), bits))


def _rows(mechanism: Any, bits: Bits | None) -> Mechanism:
    return batched(lambda data, n: mechanism.sample(np.tile(data, n), bits).reshape(n, len(data)))


def _many_gaussians(mechanism: mechanisms.Gaussian, bits: Bits | None) -> Mechanism:
    return batched(lambda value, n: replace(mechanism, dimension=n).sample(np.full(n, value), bits))


def _single(mechanism: Any, bits: Bits | None) -> Mechanism:
    return lambda data: mechanism.sample(data, bits)
