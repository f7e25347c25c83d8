"""Reconstruction: secrets of many people from many answers about them, by linear programs and least squares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers import Answer
from defocus.answers.plots import COLOURS, DARK, TEAL, blank
from defocus.audit.bounds import below, upto
from defocus.audit.membership_attacks import columns_of
from defocus.audit.roc import Attack, Claim, Promise
from defocus.errors import InvalidParameterError, Number, UnknownColumnError, choice
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.html import html_facts
from defocus.privacy.one_run import OneRun, one_run

__all__ = ["METHODS", "Reconstruction", "published", "reconstruct", "reconstruction"]

METHODS = ("least squares", "linear program")
_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction(Attack):
    """How many secrets an attacker finds in a release. Made by :func:`reconstruction`.

    >>> from defocus.noise.testing import seeded
    >>> draw = np.random.default_rng(0)
    >>> asked = draw.integers(0, 2, (50, 100))
    >>> found = reconstruction(lambda secrets: asked @ secrets + draw.laplace(0, 50, 50), asked, bits=seeded(0))
    >>> found.verdict, found.share < 0.7
    ('none found', True)
    """

    bound: OneRun
    """The lower bound on epsilon, one person's secret changed."""
    method: str
    answers: int
    secrets: NDArray[np.bool_] = field(repr=False)
    estimates: _Floats = field(repr=False)
    promise: Promise | None

    @property
    def share(self) -> float:
        """The share of secrets that were guessed right; a half is guessing."""
        return float((_rounded(self.estimates) == self.secrets).mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The share as Clopper–Pearson has it, as if persons were independent; the bound needs no such thing."""
        right, number = int((_rounded(self.estimates) == self.secrets).sum()), len(self.secrets)
        error = (1 - self.bound.confidence) / 2
        return float(below(right, number, error)), float(upto(right, number, error))

    @property
    def most(self) -> float | None:
        """The largest share that the claim allows in expectation: that of telling one secret from its opposite."""
        if self.promise is None:
            return None
        rates = np.linspace(0, 1, 101).tolist()
        return float(max((self.promise.most(b) + 1 - a) / 2 for a, b in pairwise(rates)))

    def __str__(self) -> str:
        low, high = self.interval
        claim = "" if self.promise is None else f", claimed {self.promise.epsilon:.6g}, at most {self.most:.2%} by that"
        return (
            f"{self.verdict}: {self.share:.2%} ({low:.2%} to {high:.2%}) of {len(self.secrets)} secrets found in"
            f" {self.answers} answers by {self.method}; epsilon >= {self.bound.epsilon_lower:.4g}{claim}"
        )

    def to_json(self) -> dict[str, Any]:
        """What was found, with JSON types only."""
        return {
            "verdict": self.verdict,
            "violation": self.violation,
            "epsilon_lower": self.bound.epsilon_lower,
            "delta": self.bound.delta,
            "claimed": None if self.promise is None else self.promise.epsilon,
            "confidence": self.bound.confidence,
            "method": self.method,
            "answers": self.answers,
            "persons": len(self.secrets),
            "share": self.share,
            "interval": list(self.interval),
            "most": self.most,
        }

    def plot(self) -> Any:
        """Estimates of secrets that are 0 and that are 1."""
        figure = blank(6.5, 3.5)
        axes = figure.add_subplot()
        edges = np.linspace(0, 1, 41)
        for value, colour, hatch in ((False, TEAL, ""), (True, COLOURS[0], "//")):
            own = np.histogram(np.clip(self.estimates[self.secrets == value], 0, 1), edges)[0]
            axes.stairs(own, edges, fill=True, alpha=0.6, color=colour, hatch=hatch, label=f"secret is {int(value)}")
        axes.axvline(0.5, color=DARK, linestyle=":")
        axes.set(xlabel="estimate", ylabel="persons", title=f"{self.share:.1%} of secrets found")
        axes.legend(fontsize=8)
        figure.alt = str(self)
        return figure

    def _repr_html_(self) -> str:
        low, high = self.interval
        facts = {
            "verdict": self.verdict,
            "secrets found": f"{self.share:.2%} ({low:.2%} to {high:.2%}) of {len(self.secrets)}; guessing finds 50 %",
            "at most, by the claim": "nothing was claimed" if self.most is None else f"{self.most:.2%} in expectation",
            "epsilon is at least": f"{self.bound.epsilon_lower:.4g}",
            "claimed": "nothing" if self.promise is None else f"{self.promise.epsilon:.6g}",
            "answers": f"{self.answers}, by {self.method}",
        }
        return html_facts(facts)


def reconstruction(
    release: Callable[[NDArray[np.int64]], Any],
    queries: Any,
    *,
    method: str = "linear program",
    claimed: Claim | None = None,
    delta: Number = 0,
    confidence: float = 0.95,
    bits: Bits | None = None,
) -> Reconstruction:
    r"""Give each person a secret bit by a fair coin, release answers, and find as many secrets as possible in them.

    Args:
        release: ``release(secrets)`` returns a number for each line of ``queries``: what is published.
        queries: a matrix of answers by persons. An exact answer would be ``queries @ secrets``.
        method: ``linear program`` or ``least squares``.
        claimed: the epsilon at ``delta`` at which ``release`` hides one person's *secret*, or its event. Where a person
            added or removed is protected at epsilon, a secret that changes is two such changes: claim twice as much.
        delta: the delta of claim and bound.
        confidence: of the bound.
        bits: where the secrets come from.

    Guarantee:
        With probability at least ``confidence``, ``release`` does not hide secrets at (ε, delta) for any ε below the
        bound: secrets are fair coins, and estimates depend on them through the answers only, as
        :func:`~defocus.audit.one_run` requires.

    Error:
        One-sided: a low bound says nothing about privacy.
    Reference:
        Dinur, Nissim (2003), Revealing information while preserving privacy; Cohen, Nissim (2020), Linear program
        reconstruction in practice.

    >>> from defocus.noise.testing import seeded
    >>> asked = np.random.default_rng(0).integers(0, 2, (400, 100))  # random subsets
    >>> found = reconstruction(lambda secrets: asked @ secrets + 1, asked, claimed=2, bits=seeded(0))
    >>> found.violation, found.share
    (True, 1.0)
    """
    matrix = np.asarray(queries, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 8:
        raise InvalidParameterError(
            "Queries must be a matrix of answers by persons, of whom there are eight or more.",
            fix="give each answer a line with a number for each person.",
        )
    chosen = choice("method", method, METHODS)
    promise = None if claimed is None else Promise.of(claimed, delta=delta)
    draw = np.random.default_rng(source(bits).integer(128))
    secrets = draw.integers(0, 2, (matrix.shape[1],))
    estimates = reconstruct(matrix, release(secrets.copy()), method=chosen)
    known = None if promise is None else promise.epsilon
    return Reconstruction(
        bound=one_run(estimates, secrets, delta=delta, claimed=known, confidence=confidence),
        method=chosen,
        answers=len(matrix),
        secrets=secrets.astype(bool),
        estimates=estimates,
        promise=promise,
    )


def reconstruct(queries: Any, answers: Any, *, errors: Any = None, method: str = "linear program") -> _Floats:
    """The secrets in [0, 1] that explain the answers best: least absolute or least squared residuals, by their errors.

    Args:
        queries: a matrix of answers by persons.
        answers: the published numbers.
        errors: their standard errors; equal by default.
        method: ``linear program`` or ``least squares``.

    >>> reconstruct([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 1, 2]).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    from scipy.optimize import linprog, lsq_linear  # noqa: PLC0415  # slow to load

    chosen = choice("method", method, METHODS)
    matrix, values = np.asarray(queries, np.float64), np.asarray(answers, np.float64)
    scale = np.ones(len(values)) if errors is None else np.asarray(errors, np.float64)
    if matrix.ndim != 2 or values.shape != (len(matrix),) or scale.shape != values.shape or not (scale > 0).all():
        raise InvalidParameterError(
            "Queries need a line for each answer, and each answer an error above zero.", fix="look at their shapes."
        )
    kept = np.isfinite(values) & np.isfinite(scale)
    matrix, values = matrix[kept] / scale[kept, None], values[kept] / scale[kept]
    m, n = matrix.shape
    if chosen == "least squares":
        return np.asarray(lsq_linear(matrix, values, (0, 1), tol=1e-8).x, np.float64)
    from scipy.sparse import csr_array, eye_array, hstack  # noqa: PLC0415  # slow to load

    balanced = hstack([csr_array(matrix), eye_array(m), -eye_array(m)], format="csr")
    cost = np.r_[np.zeros(n), np.ones(2 * m)]
    limits = [(0, 1)] * n + [(0, None)] * (2 * m)
    found = linprog(cost, A_eq=balanced, b_eq=values, bounds=limits, method="highs")
    return np.full(n, 0.5) if found.x is None else np.asarray(found.x[:n], np.float64)


def published(answers: Sequence[Answer | tuple[Answer, Any]], known: Any) -> tuple[_Floats, _Floats, _Floats]:
    """Released counts of a secret as queries, answers and errors, for whoever knows everything else about people.

    Each entry of an answer counts those with the secret among the people whose columns in ``known`` are its keys.

    Args:
        answers: answers, each by itself or with flags of the people whom it is about, where that is not all.
        known: a table or frame of what the attacker knows, with a row for each person.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"age": [30, 40, 40], "sick": [True, False, True]})
    >>> table = dp.open(people, unit=dp.rows(), budget=dp.Budget(20), ledger=f"{home.name}/a", name="people")
    >>> sick = table.where("sick").group_by("age", keys=[30, 40]).agg(n=dp.count()).release(epsilon=20)
    >>> queries, answers, errors = published([sick], people.select(["age"]))
    >>> queries.tolist(), answers.round().tolist()
    ([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [1.0, 1.0])
    >>> table.close(); home.cleanup()
    """
    columns = columns_of(known)
    people = len(next(iter(columns.values())))
    parts: list[tuple[_Floats, _Floats, _Floats]] = []
    for given in answers:
        answer, flags = given if isinstance(given, tuple) else (given, np.ones(people, bool))
        there = np.repeat(np.asarray(flags, bool)[None], len(answer), axis=0)
        for name, keys in answer.keys.items():
            there &= _column(columns, name)[None] == np.array(keys.to_pylist())[:, None]
        counts = [column for column in answer.columns if column.integral]
        parts += [(there.astype(float), own.values, np.maximum(own.errors, 1e-6)) for own in counts]
    if not parts:
        raise InvalidParameterError("None of the answers is a count.", fix="give answers that count people or rows.")
    queries, values, errors = (np.concatenate(own) for own in zip(*parts, strict=True))
    return queries, values, errors


def _column(columns: Mapping[str, Any], name: str) -> Any:
    if name not in columns:
        raise UnknownColumnError(name, list(columns))
    return columns[name]


def _rounded(estimates: _Floats) -> NDArray[np.bool_]:
    return np.asarray(estimates > 0.5)
