"""An oracle: both sides of one design in one object, for simulations, tests and small collections."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.aggregation import Countable, counted
from defocus.local.designs import Categorical, design, from_json
from defocus.local.domains import Categories
from defocus.local.estimates import Estimate, Process, estimate, process
from defocus.local.means import BothSides, Mean, mean

__all__ = ["Choice", "Oracle", "best", "best_mean", "choices", "oracle"]


@final
@dataclass(frozen=True, slots=True)
class Oracle(BothSides):
    """A frequency oracle. What it holds is public; it makes the client, the server and the estimate.

    >>> colours = oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = colours.encode(["red", "blue", "red"])
    >>> colours.estimate(reports).categories
    ['red', 'green', 'blue', 'other']
    """

    design: Categorical

    @property
    def domain(self) -> Categories:
        """The categories."""
        return self.design.domain

    @property
    def ratio(self) -> Fraction:
        """E to the epsilon of the exact law: the largest ratio of probabilities, at most e**epsilon."""
        return self.design.ratio

    @property
    def report_bytes(self) -> int:
        """The length of one payload; a message has 10 bytes more, a batch 18 for all of its reports."""
        return self.design.layout.length

    def variance(self, n: int, count: int = 0, *, pairs: int = 0) -> float:
        """The variance of the estimated count of a category that ``count`` of ``n`` people are in."""
        return self.design.variance(n, count, pairs=pairs)

    def estimate(
        self,
        reports: Countable,
        *,
        processing: Process | None = None,
    ) -> Estimate:
        """Unbiased counts from reports, messages, or what a server counted; biased ones by a named ``processing``.

        From no reports at all, counts are 0 and their errors are not known.
        """
        estimated = estimate(counted(self.design, reports))
        return estimated if processing is None else process(estimated, processing)

    @staticmethod
    def from_json(text: str | bytes) -> "Oracle":
        """Read a description."""
        design = from_json(text)
        if not isinstance(design, Categorical):
            raise InvalidParameterError(f"{design.name} is about numbers.", fix="read it with Mean.from_json.")
        return Oracle(design)


def oracle(
    name: str, domain: Any, epsilon: Number, *, outside: Literal["refuse", "other"] = "other", **options: Any
) -> Oracle:
    """A frequency oracle by name, over ``domain`` (a number of categories, or their labels).

    >>> oracle("hadamard", 1000, 1)
    Oracle(design=Hadamard(domain=Categories(size=1001, labels=None, outside='other'), epsilon=1))
    """
    return Oracle(design(name, domain, epsilon, outside=outside, **options))


_CANDIDATES = ("k-rr", "pgr", "olh", "hadamard", "subset", "oue", "sue", "hcms", "cms")
_CLOSE = 1.02
"""A variance within 2 % is as good: errors differ by 1 %, and short reports are worth more."""
_LARGE = 1 << 16
"""Beyond so many categories, a report as long as the domain has more than 8 kB."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """An oracle with what speaks for and against it: variance of a rare category's count for each report, and bytes.

    >>> best = choices(1000, 1)[0]
    >>> best.oracle.name, best.report_bytes
    ('subset', 126)
    """

    oracle: Oracle
    variance: float
    report_bytes: int

    def __repr__(self) -> str:
        return f"<{self.oracle.name}: variance {self.variance:.4g} per report, {self.report_bytes} bytes>"


def choices(domain: Any, epsilon: Number, *, outside: Literal["refuse", "other"] = "other") -> list[Choice]:
    """All oracles that can serve this domain, the least variance first.

    >>> choices(1000, 1)[0]
    <subset: variance 3.673 per report, 126 bytes>
    """
    categories = Categories.of(domain, outside=outside)
    listed = []
    for name in _CANDIDATES:
        if name in {"subset", "oue", "sue"} and categories.size > _LARGE:
            continue  # a report as long as the domain
        design = _made(name, categories, epsilon)
        if design is not None:
            listed.append(Choice(Oracle(design), design.variance(1), design.layout.length))
    return sorted(listed, key=lambda choice: (choice.variance, choice.report_bytes))


def best(
    domain: Any,
    epsilon: Number,
    *,
    outside: Literal["refuse", "other"] = "other",
    most_bytes: int | None = None,
) -> Oracle:
    """The oracle with the shortest reports among those within 2 % of the least variance.

    With ``most_bytes``, only oracles whose reports are no longer than that are considered.

    >>> best(1000, 1).name, best(5, 3).name
    ('pgr', 'k-rr')
    """
    candidates = choices(domain, epsilon, outside=outside)
    if most_bytes is not None:
        limit = whole("most_bytes", most_bytes, at_least=1)
        candidates = [choice for choice in candidates if choice.report_bytes <= limit]
    if not candidates:
        raise InvalidParameterError(
            "No oracle has reports that short for this domain.", fix="allow more bytes, or use fewer categories."
        )
    close = [choice for choice in candidates if choice.variance <= _CLOSE * candidates[0].variance]
    return min(close, key=lambda choice: (choice.report_bytes, choice.variance)).oracle


def best_mean(low: Number, high: Number, epsilon: Number, *, outside: Literal["clip", "refuse"] = "clip") -> Mean:
    """The numeric oracle with the least worst variance.

    >>> best_mean(0, 1, 2).name
    'hybrid'
    """
    names = ("duchi", "hybrid", "piecewise", "laplace")
    return min(
        (mean(name, low, high, epsilon, outside=outside) for name in names), key=lambda each: each.worst_variance
    )


def _made(name: str, domain: Categories, epsilon: Number) -> Categorical | None:
    """The design, or None where its own limits rule it out; what is wrong with epsilon is refused by all of them."""
    try:
        return design(name, domain, epsilon)
    except InvalidParameterError:
        if name == "k-rr":
            raise
        return None
