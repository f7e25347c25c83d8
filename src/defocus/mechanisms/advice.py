"""Advice: which mechanism errs least at a price, with the numbers and the reason."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.errors import CannotCalibrateError, InvalidParameterError, Number, UnsupportedEventError, count, positive
from defocus.mechanisms.gaussian import Gaussian
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.mechanism import Mechanism, checked_budget
from defocus.mechanisms.selection import Exponential, PermuteAndFlip, ReportNoisyMax, checked_flag
from defocus.privacy.budgets import Budget
from defocus.privacy.html import html_lines, html_table
from defocus.privacy.numbers import root_up

__all__ = ["Advice", "Candidate", "advise", "advise_choice"]


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """One mechanism calibrated to the price, or the reason why there is none.

    ``error`` is the expected absolute error of an entry (of a choice: the largest expected loss of
    utility); ``squared`` is the expected squared error of the whole vector, where it applies.

    >>> best = advise(epsilon=1, l1=2).best
    >>> best.name, round(best.error, 3)
    ('Laplace', 1.919)
    """

    name: str
    mechanism: Mechanism | None
    noise: str
    error: float
    squared: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Advice:
    """The candidates, best first, with the reason in words. ``advice.mechanism`` is ready to use.

    >>> advise(epsilon=1, l1=2).mechanism
    Laplace(scale=Fraction(2, 1), sensitivity=2)
    """

    task: str
    candidates: tuple[Candidate, ...]
    why: str

    @property
    def best(self) -> Candidate:
        """The candidate with the least expected error."""
        return self.candidates[0]

    @property
    def mechanism(self) -> Any:
        """The mechanism of the best candidate, calibrated."""
        return self.best.mechanism

    def __str__(self) -> str:
        rows = [
            ("", "mechanism", "noise", *self._heads),
            *(("→" if i == 0 else "", *r) for i, r in enumerate(self._rows())),
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "\n".join([self.task, *table, self.why])

    def _repr_html_(self) -> str:
        table = html_table(("mechanism", "noise", *self._heads), self._rows())
        return html_lines([self.task]) + table + html_lines([self.why])

    @property
    def _heads(self) -> tuple[str, ...]:
        if self.best.squared is None:
            return ("largest expected loss",)
        return ("expected |error| of an entry", "expected squared error of all")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (c.name, c.noise, *(f"{x:.6g}" if math.isfinite(x) else "–" for x in self._numbers(c)))
            for c in self.candidates
        ]

    def _numbers(self, candidate: Candidate) -> tuple[float, ...]:
        if self.best.squared is None:
            return (candidate.error,)
        return (candidate.error, math.inf if candidate.squared is None else candidate.squared)


def advise(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    dimension: int = 1,
    l1: int | None = None,
    l2: Number | None = None,
    linf: int | None = None,
) -> Advice:
    r"""Compare Laplace and Gaussian noise on ``dimension`` integers at a price, such as ``epsilon`` and ``delta``.

    One number is judged by its expected absolute error (b against :math:`\sigma\sqrt{2/\pi}`), a vector by
    its expected squared error (:math:`2db^2` against :math:`d\sigma^2`), both from the exact discrete laws.

    Assumes:
        The sensitivities given hold on the integer grid. Those that are left out follow from the others:
        for an integer vector x of length d, :math:`\|x\|_2^2 \le \|x\|_1 \|x\|_\infty`,
        :math:`\|x\|_2^2 \le d\|x\|_\infty^2`, :math:`\|x\|_1 \le \|x\|_2^2`,
        :math:`\|x\|_1 \le \sqrt d\,\|x\|_2`, :math:`\|x\|_1 \le d\|x\|_\infty`, and both
        :math:`\|x\|_1` and :math:`\|x\|_2^2` are integers.

    >>> advice = advise(epsilon=0.8, dimension=1, l1=1)
    >>> print(advice)
    1 number, L1 sensitivity 1, L2 sensitivity 1, Budget(epsilon=0.8)
       mechanism  noise         expected |error| of an entry  expected squared error of all
    →  Laplace    b = 1.25      1.12599                       2.96353
       Gaussian   not possible  –                             –
    Laplace it is: Gaussian noise cannot meet a budget without a delta.
    >>> advice.mechanism
    Laplace(scale=1.25, sensitivity=1)
    """
    price = checked_budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    size = count("dimension", dimension)
    one, square = _norms(size, l1, l2, linf)
    two = _root_up(square)
    task = (
        f"{size} number{'s' * (size > 1)}, L1 sensitivity {one}, L2 sensitivity "
        f"{two if isinstance(two, int) else f'{two:.6g}'}, {price!r}"
    )
    attempts = (
        _attempt("Laplace", size, lambda: Laplace.calibrated(price, sensitivity=one)),
        _attempt("Gaussian", size, lambda: Gaussian.calibrated(price, sensitivity=two, dimension=size)),
    )
    ranked = sorted(attempts, key=lambda pair: pair[0].error if size == 1 else pair[0].squared or 0.0)
    if ranked[0][0].mechanism is None:
        raise CannotCalibrateError(
            f"No mechanism meets {price!r}: {' '.join(reason for _, reason in ranked)}",
            fix="spend more, or use a coarser grid or a smaller sensitivity.",
        )
    (best, _), (other, reason) = ranked
    return Advice(task, (best, other), _because(best, other, reason, size))


def advise_choice(*, epsilon: Number, candidates: int, sensitivity: int = 1, monotone: bool = False) -> Advice:
    """Compare the mechanisms that choose one of several candidates, each by its largest expected loss of utility.

    >>> advise_choice(epsilon=1, candidates=100).best.name
    'PermuteAndFlip'
    """
    price = positive("epsilon", epsilon)
    n, bound = count("candidates", candidates), count("sensitivity", sensitivity)
    checked_flag("monotone", monotone)
    made = [
        kind(epsilon=price, candidates=n, sensitivity=bound, monotone=monotone)
        for kind in (PermuteAndFlip, Exponential, ReportNoisyMax)
    ]
    ranked = sorted(
        (Candidate(type(m).__name__, m, f"ε = {float(price):.6g}", m.error) for m in made), key=lambda c: c.error
    )
    why = (
        f"{ranked[0].name} loses least in its worst case. If many choices are composed, Exponential may be better: "
        "its bounded range composes with an eighth of ε² in zCDP instead of a half."
    )
    task = f"one of {n} candidates, sensitivity {bound}{', monotone' * monotone}, {Budget(price)!r}"
    return Advice(task, tuple(ranked), why)


def _attempt(name: str, size: int, make: Any) -> tuple[Candidate, str]:
    try:
        mechanism: Laplace | Gaussian = make()
    except (InvalidParameterError, CannotCalibrateError, UnsupportedEventError) as error:
        return Candidate(name, None, "not possible", math.inf, math.inf), error.what
    scale, letter = (mechanism.scale, "b") if isinstance(mechanism, Laplace) else (mechanism.sigma, "σ")
    described = f"{letter} = {float(scale):.6g}"
    return Candidate(name, mechanism, described, mechanism.error, size * mechanism.variance), ""


def _because(best: Candidate, other: Candidate, reason: str, size: int) -> str:
    if other.mechanism is None:
        return f"{best.name} it is: {reason}"
    if size == 1:
        return (
            f"{best.name} errs by {best.error:.4g} on average and {other.name} by {other.error:.4g}, "
            f"{_times(other.error, best.error)}."
        )
    return (
        f"{best.name} has a total squared error of {best.squared:.4g} and {other.name} of {other.squared:.4g}, "
        f"{_times(other.squared or 0.0, best.squared or 0.0)}: "
        + (
            "spreading the change over many entries is cheap in L2 norm."
            if best.name == "Gaussian"
            else "the change is concentrated enough for L1 norm."
        )
    )


def _times(larger: float, smaller: float) -> str:
    return f"{larger / smaller:.3g} times as much" if smaller > 0 else "while neither errs noticeably"


def _norms(size: int, l1: int | None, l2: Number | None, linf: int | None) -> tuple[int, int]:
    """The least integers that bound the L1 norm and the squared L2 norm of the change."""
    ones = [] if l1 is None else [count("l1", l1)]
    squares = [] if l2 is None else [math.floor(Fraction(positive("l2", l2)) ** 2)]
    tops = [] if linf is None else [count("linf", linf)]
    if not ones + squares + tops:
        raise InvalidParameterError(
            "Advice needs a sensitivity.", fix="pass at least one of l1=, l2= and linf=, on the integer grid."
        )
    if squares and squares[0] < 1:
        raise InvalidParameterError(
            f"l2 is {l2}, but integer vectors that differ are at least 1 apart.",
            fix="use a finer grid, or pass l2 >= 1.",
        )
    top = min(tops + ones + [math.isqrt(s) for s in squares])
    square = min(squares + [x * min(x, top) for x in ones] + [size * top * top])
    one = min([*ones, size * top, math.isqrt(size * square), square])
    return one, min(square, one * top)


def _root_up(square: int) -> Number:
    root = math.isqrt(square)
    return root if root * root == square else root_up(Fraction(square))
