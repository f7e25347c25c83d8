"""Outputs sorted into few classes, learned from some of the runs and applied to all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.audit.columns import Array, Column

__all__ = ["Coding", "Split", "atoms", "coarse", "joint", "ranges", "ratios"]

_BINS = 256
_ATOMS = 1024
_RARE = 4  # an exact value seen less often while learning is no class of its own


@final
@dataclass(frozen=True, slots=True)
class Split:
    """Which runs do what: of ``n`` runs on each data set, the first learn, the next choose, the rest judge."""

    n: int
    learn: int
    train: int

    def of(self, codes: Array, what: str) -> tuple[Array, Array]:
        """The part of ``codes`` (all runs on the first data set, then on the second) with the job ``what``."""
        start, stop = {"learn": (0, self.learn), "choose": (self.learn, self.train), "judge": (self.train, self.n)}[
            what
        ]
        return codes[start:stop], codes[self.n + start : self.n + stop]


@final
@dataclass(frozen=True, slots=True)
class Coding:
    """A class for every run. ``ordered`` classes have thresholds; ``tell`` puts a set of classes into words."""

    name: str
    codes: NDArray[np.int64]
    size: int
    ordered: bool
    plain: bool
    """Whether any set of classes reads well."""
    tell: Callable[[NDArray[np.bool_]], str]


def ranges(column: Column, split: Split, bins: int = _BINS) -> Coding:
    """Classes of neighbouring numbers: each value where they are few, else quantiles with fine tails."""
    first, second = split.of(column.values, "learn")
    seen = np.concatenate([first, second])
    seen = np.sort(seen[np.isfinite(seen)]) if seen.dtype.kind == "f" else np.sort(seen)
    edges = np.unique(seen)
    if len(edges) > bins:
        edges = np.unique(seen[_ranks(len(seen), bins)])
    codes = np.searchsorted(edges, column.values, side="right")
    size = len(edges) + 1
    if column.values.dtype.kind == "f":
        codes = np.where(np.isnan(column.values), size, codes)

    def tell(chosen: NDArray[np.bool_]) -> str:
        return _intervals(column, edges, chosen)

    return Coding(column.name, codes.astype(np.int64), size + 1, ordered=True, plain=False, tell=tell)


def atoms(column: Column, split: Split) -> Coding:
    """A class for each exact value or label seen often enough while learning, one more for all others."""
    first, second = split.of(column.values, "learn")
    values, counts = np.unique(np.concatenate([first, second]), return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_ATOMS]
    known = np.sort(values[often[counts[often] >= _RARE]])
    place = np.searchsorted(known, column.values)
    inside = np.minimum(place, max(len(known) - 1, 0))
    hit = known[inside] == column.values if len(known) else np.zeros(len(column.values), dtype=bool)

    labels = column.labels

    def tell(chosen: NDArray[np.bool_]) -> str:
        names = [column.show(v.item()) if labels is None else labels[int(v)] for v in known]
        return _listed(column.name, names, chosen)

    codes = np.where(hit, inside, len(known)).astype(np.int64)
    return Coding(column.name, codes, len(known) + 1, ordered=False, plain=column.labels is not None, tell=tell)


def coarse(coding: Coding, split: Split, most: int) -> Coding:
    """The same classes merged into at most ``most``: neighbours where there is an order, like ratios where not."""
    if coding.size <= most:
        return coding
    rank = np.arange(coding.size) if coding.ordered else np.argsort(np.argsort(-ratios(coding, split), kind="stable"))
    first, second = split.of(coding.codes, "learn")
    weight = np.bincount(np.concatenate([first, second]), minlength=coding.size)[np.argsort(rank)]
    below = np.cumsum(weight) - weight / 2
    group = np.minimum((below / max(below[-1], 1) * most).astype(np.int64), most - 1)[rank]
    return Coding(
        coding.name, group[coding.codes], most, ordered=coding.ordered, plain=False, tell=lambda _: coding.name
    )


def joint(one: Coding, other: Coding) -> Coding:
    """Both at once."""
    name = f"{one.name} together with {other.name}"

    def tell(chosen: NDArray[np.bool_]) -> str:
        return f"{name}: in {int(chosen.sum())} of {len(chosen)} learned cells"

    return Coding(
        name, one.codes * other.size + other.codes, one.size * other.size, ordered=False, plain=False, tell=tell
    )


def ratios(coding: Coding, split: Split) -> NDArray[np.float64]:
    """The learned log-likelihood ratio of each class, first data set over second, drawn towards zero where rare."""
    first, second = (np.bincount(part, minlength=coding.size) for part in split.of(coding.codes, "learn"))
    return np.asarray(np.log((first + 0.5) / (second + 0.5)))


def _ranks(n: int, bins: int) -> NDArray[np.int64]:
    """Positions of the quantiles: evenly spread, and halving towards both ends."""
    even = np.linspace(0, n - 1, bins - 32)
    tail = n / 2.0 ** np.arange(1, 17)
    return np.unique(np.clip(np.concatenate([even, tail, n - 1 - tail]), 0, n - 1).astype(np.int64))


def _intervals(column: Column, edges: Array, chosen: NDArray[np.bool_]) -> str:
    """A set of neighbouring classes as intervals; class i holds edges[i-1] <= x < edges[i], the last is NaN."""
    inner = chosen[:-1].astype(np.int64)
    starts = np.flatnonzero(np.diff(inner, prepend=0) == 1)
    stops = np.flatnonzero(np.diff(inner, append=0) == -1)
    parts = []
    for start, stop in zip(starts, stops, strict=True):
        low = column.show(edges[start - 1].item()) if start > 0 else None
        high = column.show(edges[stop].item()) if stop < len(edges) else None
        if low is None or high is None:
            parts.append("any number" if low is high else f">= {low}" if high is None else f"< {high}")
        else:
            parts.append(f"in [{low}, {high})")
    parts += ["not a number"] if chosen[-1] else []
    more = f" or in {len(parts) - 4} more ranges" if len(parts) > 4 else ""
    return f"{column.name} is {' or '.join(parts[:4])}{more}"


def _listed(name: str, labels: list[str], chosen: NDArray[np.bool_]) -> str:
    """A set of exact values; told by what it leaves out where it holds all the rare ones."""
    others = bool(chosen[-1])
    picked = [label for label, inside in zip(labels, chosen[:-1] ^ others, strict=True) if inside]
    shown = ", ".join(label if len(label) <= 60 else f"{label[:57]}..." for label in picked[:5])
    more = f" and {len(picked) - 5} more" if len(picked) > 5 else ""
    if others:
        return f"{name} is {'none of' if len(picked) > 1 else 'not'} {shown}{more}" if picked else f"{name} is anything"
    return f"{name} is {'one of' if len(picked) > 1 else 'exactly'} {shown}{more}"
