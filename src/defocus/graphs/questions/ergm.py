"""An exponential random graph model: its statistics, and a fit to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.answers.columns import AnswerColumn, brief, noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.data import Data
from defocus.graphs.inference.ergm import MOST_NODES, TERMS, ErgmFit, fit_ergm
from defocus.graphs.public import Public
from defocus.graphs.question import Checking, Method, Question, Result, foretold
from defocus.graphs.questions.counts import AskClosedEdges
from defocus.graphs.questions.joint import Several, several, side_by_side, subgraph
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event

__all__ = ["AskErgm", "Fitted"]

_CLOSED = "gwesp"
_DEGENERATE = {"stars_2", "triangles"}
_MANY = 1000
"""From so many nodes on, a fit takes more than some seconds."""
_LONG = "it takes long: about a minute for 20 000 edges"
_EDGES = Fraction(1, 10)
"""Which part of the budget the number of edges takes: its noise is the smallest by far."""


@final
@dataclass(frozen=True, slots=True)
class AskErgm:
    """The statistics of a model with these ``terms``, and its coefficients, fitted to the noisy statistics."""

    terms: tuple[str, ...] = ("edges", "gwesp")

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        if not self.terms or self.terms[0] != "edges" or len(set(self.terms)) < len(self.terms):
            raise InvalidParameterError(
                "A model begins with edges and has each term once.", fix='pass terms=("edges", "gwesp").'
            )
        for term in self.terms:
            if term not in TERMS:
                raise InvalidParameterError(
                    f"A model has no term {term!r:.60} here.", fix=f"choose terms among {', '.join(TERMS)}."
                )

    @property
    def words(self) -> str:
        """What is asked."""
        return f"exponential random graph model: {', '.join(self.terms)}"

    @property
    def in_sql(self) -> bool:
        """Whether an engine can count the statistics."""
        return _CLOSED not in self.terms

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.n > MOST_NODES:
            raise InvalidParameterError(
                f"A model of {public.n} nodes takes too long to simulate.",
                fix=f"fit graphs of at most {MOST_NODES} nodes, or release the statistics alone: joint(), "
                "subgraph_counts().",
            )
        for question in map(_question, self.terms):
            if isinstance(question, Checking):
                question.check(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Each statistic by its best method, then a fit."""
        self.check(public)
        others = len(self.terms) - 1
        shares = [_EDGES, *[(1 - _EDGES) / others] * others] if others else [Fraction(1)]
        counts = several([_question(term) for term in self.terms], public, budget, side_by_side, shares=shares)
        return [Fitted(counts, self.terms, public.n)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Statistics with noise, and the model fitted to them. The fit is post-processing and costs nothing."""

    parts: Several
    terms: tuple[str, ...]
    nodes: int
    name: str = "simulated likelihood"
    error: float = math.nan
    interval: float = math.nan
    rules: tuple[str, ...] = ()

    @property
    def event(self) -> Event:
        """What the statistics owe."""
        return self.parts.event

    @property
    def foretold(self) -> tuple[str, ...]:
        """The errors of the statistics, on which those of the coefficients depend."""
        errors = ", ".join(f"{t} {brief(part.error)}" for t, part in zip(self.terms, self.parts.methods, strict=True))
        said = [f"expected errors of the statistics: {errors}; what they make of the coefficients depends on the graph"]
        if _DEGENERATE & set(self.terms):
            said.append(
                "of clustered graphs there is no such model with 2-stars or triangles, so that no coefficients are"
                " released; with edges and gwesp there is"
            )
        return (*said, *foretold(self.parts), *([_LONG] if self.nodes > _MANY else []))

    @property
    def how(self) -> str:
        """The noise of each statistic."""
        return "; ".join(f"{t}: {part.how}" for t, part in zip(self.terms, self.parts.methods, strict=True))

    def run(self, data: Data, bits: Bits) -> Result:
        """Release the statistics, then fit."""
        released = self.parts.run(data, bits)
        values = np.array([column.values[0] for column in released.columns])
        # Of Laplace noise, and nearly of a ramp, the variance is twice the squared mean absolute value.
        errors = np.array([column.errors[0] for column in released.columns])
        fit = fit_ergm(self.terms, values, 2 * errors**2, self.nodes, bits)
        statistics = AnswerColumn(
            "statistic",
            values,
            errors,
            np.array([column.low[0] for column in released.columns]),
            np.array([column.high[0] for column in released.columns]),
            integral=True,
            how=self.how,
            absolute=True,
        )
        return Result(
            (_coefficients(fit), statistics),
            keys={"term": list(self.terms)},
            processing=(
                "coefficients were searched for which simulated graphs have the noisy statistics on average",
                "their intervals count the noise as well as the randomness of the model, as if noise were normal",
            ),
            notes=(*released.notes, _arrived(fit)),
        )


def _coefficients(fit: ErgmFit) -> AnswerColumn:
    shown = fit.coefficients if fit.converged else np.full(len(fit.terms), np.nan)
    errors = fit.standard_errors if fit.converged else np.full(len(fit.terms), np.nan)
    half = 1.96 * errors
    absolute = errors * math.sqrt(2 / math.pi)
    how = "none of its own: fitted to the noisy statistics"
    return noisy("coefficient", shown, error=absolute, half=half, how=how, integral=False)


def _arrived(fit: ErgmFit) -> str:
    if fit.converged:
        return "the fit converged: simulated graphs have the noisy statistics on average"
    if _DEGENERATE & set(fit.terms):
        return (
            "the fit did not converge: models with 2-stars or triangles are degenerate for such statistics, since they"
            ' have next to no edges or nearly all; ask for ergm("edges", "gwesp") instead'
        )
    return (
        "the fit did not converge: no model of this kind has the noisy statistics on average, or none was found; where"
        " the noise is large beside them, spend more"
    )


def _question(term: str) -> Question:
    return AskClosedEdges() if term == _CLOSED else subgraph(term)
