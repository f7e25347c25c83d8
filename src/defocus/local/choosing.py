"""Which oracle to use: the least predicted error among those whose reports are short enough."""

from dataclasses import dataclass
from typing import Any, Literal, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs import Categorical, design
from defocus.local.domains import Categories
from defocus.local.means import Mean, mean
from defocus.local.oracles import Oracle

__all__ = ["Choice", "best", "best_mean", "choices"]

_CANDIDATES = ("k-rr", "pgr", "olh", "hadamard", "subset", "oue", "sue", "hcms", "cms")
_CLOSE = 1.02
"""A variance within 2 % is as good: errors differ by 1 %, and short reports are worth more."""
_LARGE = 1 << 16
"""Beyond so many categories, a report as long as the domain has more than 8 kB."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """An oracle with what speaks for and against it: variance of a rare category's count for each report, and bytes."""

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
    found = []
    for name in _CANDIDATES:
        if name in {"subset", "oue", "sue"} and categories.size > _LARGE:
            continue  # a report as long as the domain
        made = _made(name, categories, epsilon)
        if made is not None:
            found.append(Choice(Oracle(made), made.variance(1), made.layout.length))
    return sorted(found, key=lambda choice: (choice.variance, choice.report_bytes))


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
    found = choices(domain, epsilon, outside=outside)
    if most_bytes is not None:
        limit = whole("most_bytes", most_bytes, at_least=1)
        found = [choice for choice in found if choice.report_bytes <= limit]
    if not found:
        raise InvalidParameterError(
            "No oracle has reports that short for this domain.", fix="allow more bytes, or use fewer categories."
        )
    close = [choice for choice in found if choice.variance <= _CLOSE * found[0].variance]
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
