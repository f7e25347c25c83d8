"""Membership inference: train on a random half of people, attack, and say who was in."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers.plots import COLOURS, DARK, PALE, TEAL, blank, literal
from defocus.answers.progress import Tell, shown
from defocus.audit.membership_attacks import CALIBRATIONS, Score, of_tables
from defocus.audit.roc import Attack, Claim, Curve, Promise
from defocus.errors import InvalidParameterError, Number, choice, probability, whole
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.guesses import least_epsilon
from defocus.privacy.html import html_facts, html_table
from defocus.privacy.one_run import OneRun, one_run

__all__ = ["ATTACKS", "Membership", "membership"]

ATTACKS = ("score", *CALIBRATIONS)
"""The score itself (a loss or a distance, say), and its calibrations by shadow models."""
_RATES = (0.001, 0.01)
_FEWEST = 8
_TOPS = (0.5, 0.2, 0.1, 0.05, 0.02)
"""Shares of the persons who are taken to be in, fixed beforehand."""
_Fit: TypeAlias = Callable[[Any], Any]
_Floats: TypeAlias = NDArray[np.float64]
_Flags: TypeAlias = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Attack):
    """What attacks on membership found. Made by :func:`membership`.

    >>> from defocus.noise.testing import seeded
    >>> people = np.random.default_rng(0).normal(size=(200, 3))
    >>> copied = membership(lambda rows: rows, people, claimed=1, bits=seeded(0))
    >>> copied.violation, copied.best.name, copied.best.auc[0]
    (True, 'closest record', 1.0)
    """

    bound: OneRun
    """The lower bound on epsilon, by the attack that shows most."""
    attack: str
    """That attack."""
    curves: tuple[Curve, ...] = field(repr=False)
    """One for each attack."""
    promise: Promise | None
    persons: int
    runs: int
    shadows: int
    seconds: float

    @property
    def best(self) -> Curve:
        """The attack with the largest area; the confidence of its intervals allows for that choice."""
        return max(self.curves, key=lambda curve: curve.auc[0])

    def __str__(self) -> str:
        area, low, high = self.best.auc
        at = f" at delta {self.bound.delta:.3g}" if self.bound.delta else ""
        claim = "" if self.promise is None else f", claimed {self.promise.epsilon:.6g}"
        return (
            f"{self.verdict}: epsilon >= {self.bound.epsilon_lower:.4g}{at}{claim} by {self.attack}"
            f" ({100 * self.bound.confidence:.10g} % confidence, {self.persons} persons, {self.runs} run(s),"
            f" {self.shadows} shadow models, {self.seconds:.1f} s)\n"
            f"  {self.best.name}: area {area:.4f} ({low:.4f} to {high:.4f}){self._ceiling()}\n"
            f"  true positives {'; '.join(str(self.best.at(rate)) for rate in _RATES)}"
        )

    def _ceiling(self) -> str:
        if self.promise is None:
            return ""
        return f", at most {self.promise.most_area(self._out):.4f} in expectation by the claim"

    @property
    def _out(self) -> int:
        return int((~self.best.members).sum()) // self.runs

    def to_json(self) -> dict[str, Any]:
        """What was found, with JSON types only."""
        promise = self.promise
        most = {} if promise is None else {f"{100 * x:g} %": promise.most(x) for x in _RATES}
        return {
            "verdict": self.verdict,
            "violation": self.violation,
            "epsilon_lower": self.bound.epsilon_lower,
            "delta": self.bound.delta,
            "claimed": None if promise is None else promise.epsilon,
            "confidence": self.bound.confidence,
            "attack": self.attack,
            "persons": self.persons,
            "runs": self.runs,
            "shadows": self.shadows,
            "seconds": self.seconds,
            "attacks": [curve.to_json() for curve in self.curves],
            "most": most | ({} if promise is None else {"auc": promise.most_area(self._out)}),
        }

    def plot(self) -> Any:
        """The curves on logarithmic axes, the best one with its intervals, and the most that the claim allows."""
        figure = blank(6.5, 5)
        axes = figure.add_subplot()
        least = 0.5 / min(int(self.best.members.sum()), int((~self.best.members).sum()))
        along = np.geomspace(least, 1, 40)
        if self.promise is not None:
            most = [self.promise.most(x) for x in along]
            axes.plot(along, most, color=DARK, linestyle=":", label=f"most, by epsilon {self.promise.epsilon:.4g}")
        axes.plot(along, along, color="#999999", linewidth=0.8, label="guessing")
        rates = [self.best.at(x) for x in along]
        low, high = ([getattr(rate, side) for rate in rates] for side in ("low", "high"))
        at = [max(rate.fpr, least) for rate in rates]
        axes.fill_between(at, np.maximum(low, least), np.maximum(high, least), color=PALE)
        ranked = sorted(self.curves, key=lambda curve: -curve.auc[0])
        for curve, colour in zip(ranked, (TEAL, *COLOURS), strict=False):
            out, into = curve.points
            area = f"{curve.name}, area {curve.auc[0]:.3f}"
            axes.plot(np.maximum(out, least), np.maximum(into, least), color=colour, label=literal(area), linewidth=1.3)
        axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05))
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
        axes.set_title(f"{self.verdict}: epsilon >= {self.bound.epsilon_lower:.4g}")
        axes.legend(fontsize=8, loc="lower right")
        axes.grid(visible=True, which="major", alpha=0.3)
        figure.alt = str(self)
        return figure

    def _repr_html_(self) -> str:
        promise = self.promise
        facts = {
            "verdict": self.verdict,
            "epsilon is at least": f"{self.bound.epsilon_lower:.4g}, by {self.attack}",
            "claimed": "nothing" if promise is None else f"{promise.epsilon:.6g}",
            "at delta": f"{self.bound.delta:.3g}",
            "confidence": f"{100 * self.bound.confidence:.10g} %",
            "runs": f"{self.persons} persons, {self.runs} run(s), {self.shadows} shadow models, {self.seconds:.1f} s",
        }
        rows = [
            [c.name, "{:.4f} ({:.4f} to {:.4f})".format(*c.auc), *(str(c.at(x)) for x in _RATES)] for c in self.curves
        ]
        if promise is not None:
            rates = [f"{promise.most(x):.2%}" for x in _RATES]
            rows.append(["at most, by the claim", f"{promise.most_area(self._out):.4f}", *rates])
        heads = ["attack", "area under the curve", *(f"true positives at {100 * x:g} %" for x in _RATES)]
        return html_facts(facts) + html_table(heads, rows, caption="How well attacks tell who was in", heads=1)


def membership(
    fit: _Fit,
    rows: Any,
    *,
    score: Score | Mapping[str, Score] | None = None,
    person: Any = None,
    shadows: int = 0,
    runs: int = 1,
    attacks: Sequence[str] | None = None,
    claimed: Claim | None = None,
    delta: Number = 0,
    confidence: Number = 0.95,
    workers: int = 1,
    progress: Tell | None = None,
    bits: Bits | None = None,
) -> Membership:
    r"""Attack what ``fit`` makes of a random half of people: a model, or a table of synthetic rows; ours or not.

    Every person is put in by a fair coin, ``fit`` sees the rows of those who are in, and attacks that see the result
    and all rows guess the coins. Shadow models are fitted in the same way to halves of their own, and calibrate scores.
    A person of several rows is in or out with all of them, and evidence adds up over the rows.

    Args:
        fit: ``fit(rows)`` returns a model, or synthetic rows. It draws noise of its own each time.
        rows: a table, a frame, an array, a list; or a tuple of these, such as inputs and targets.
        score: ``score(model, rows)`` returns a number for each row, higher where the model knows it better: minus its
            loss, say. Several by name are tried together. By default ``fit`` returns synthetic rows, which are attacked
            by distance to the closest one and by marginals: see :class:`~defocus.audit.MarginalDensity`.
        person: to whom each row belongs; by default each row is a person.
        shadows: how many shadow models; eight or more are worth their time.
        runs: how many independent targets.
        attacks: which of ``score``, ``lira``, ``lira offline`` and ``rmia``; by default all, with shadow models.
        claimed: the epsilon at ``delta`` that ``fit`` promises each person, or the event that it was charged.
        delta: the delta of claim and bound.
        confidence: of the bound, and of intervals; choosing among attacks is paid for.
        workers: so many processes fit in parallel; ``fit`` and ``score`` are then functions of a module.
        progress: is told percentages.
        bits: where coins come from; the operating system by default.

    Guarantee:
        With probability at least ``confidence``, ``fit`` is not (ε, delta)-DP, one person added or removed, for any ε
        below the bound. Each run is about coins of its own, so all runs together are one release in which each coin
        moves one run: it is (ε, delta)-DP for each of the persons × runs coins, as :func:`~defocus.audit.one_run`
        requires, and scores depend on coins through the results only, since shadow models have other coins. Each of the
        attacks has an equal share of the error, half of it for guesses at both ends and half for guesses that those of
        highest score are in, of which five numbers are tried; the theorem allows for any guesses that are fixed by the
        scores. How persons' scores depend on each other does not matter.
    Assumes:
        ``fit`` keeps nothing between calls, and ``score`` sees the model and rows only.

    Error:
        One-sided: a low bound says nothing about privacy. One run on m persons shows at most about ln(m / ln(10k/α))
        with k attacks.
    Reference:
        Steinke, Nasr, Jagielski (2023), theorem 5.2; Carlini et al. (2022); Zarifzadeh, Liu, Shokri (2024).

    >>> from defocus.noise.testing import seeded
    >>> draw = np.random.default_rng(0)
    >>> x, y = draw.normal(size=(300, 40)), draw.integers(0, 2, 300).astype(float)
    >>> def fit(rows):  # least squares without noise
    ...     return np.linalg.lstsq(*rows, rcond=None)[0]
    >>> def score(model, rows):
    ...     return -((rows[0] @ model - rows[1]) ** 2)
    >>> found = membership(fit, (x, y), score=score, shadows=16, claimed=1, bits=seeded(0))
    >>> found.best.name, found.best.auc[0] > 0.6
    ('lira offline', True)
    """
    began = time.monotonic()
    people, places = _people(rows, person)
    shadows, runs = whole("shadows", shadows), whole("runs", runs, at_least=1)
    scores = _scores(score, rows)
    chosen = _chosen(attacks, shadows)
    error = (1 - float(probability("confidence", confidence, zero=False, one=False))) / (len(chosen) * len(scores))
    promise = None if claimed is None else Promise.of(claimed, delta=delta)
    draw = np.random.default_rng(source(bits).integer(128))
    coins = draw.integers(0, 2, (runs + shadows, people)).astype(bool)
    job = partial(_fitted, fit=fit, scores=tuple(scores.values()), rows=rows, places=places)
    found = _all(job, coins, whole("workers", workers, at_least=1), progress)
    curves = []
    for i, name in enumerate(scores):
        for way in chosen:
            made = [_judged(way, found[run, i], found[runs:, i], coins[runs:][:, places]) for run in range(runs)]
            summed = [np.bincount(places, own, people) for own in made]
            weight = np.bincount(places, minlength=people) if way == "score" else 1  # a score is a mean over rows
            told = name if way == "score" else way if len(scores) == 1 and name == "score" else f"{name}, {way}"
            values = np.concatenate([own / weight for own in summed])
            curves.append(Curve(name=told, scores=values, members=coins[:runs].ravel(), confidence=1 - error))
    if not all(0 < int(curve.members.sum()) < len(curve.members) for curve in curves):
        raise InvalidParameterError("All coins fell alike.", fix="attack more persons.")
    bounds = [_bound(curve, float(delta), None if promise is None else promise.epsilon) for curve in curves]
    most = max(range(len(curves)), key=lambda i: bounds[i].epsilon_lower)
    return Membership(
        bound=replace(bounds[most], confidence=float(confidence)),
        attack=curves[most].name,
        curves=tuple(curves),
        promise=promise,
        persons=people,
        runs=runs,
        shadows=shadows,
        seconds=time.monotonic() - began,
    )


def _bound(curve: Curve, delta: float, claimed: float | None) -> OneRun:
    """The larger of two bounds on epsilon: of guesses at both ends of the scores, and of guesses at the top alone."""
    half = (1 - curve.confidence) / 2
    both = one_run(curve.scores, curve.members, delta=delta, claimed=claimed, confidence=1 - half)
    ranked, m = curve.members[np.argsort(-curve.scores, kind="stable")], len(curve.members)
    best = both
    for guesses in sorted({max(1, round(m * part)) for part in _TOPS}):
        right = int(ranked[:guesses].sum())
        low = least_epsilon(m, guesses, right, delta, half / len(_TOPS))
        if low > best.epsilon_lower:
            best = replace(both, epsilon_lower=low, guesses=guesses, correct=right)
    return replace(best, tests=both.tests + len(_TOPS), rejected=claimed is not None and best.epsilon_lower > claimed)


def _people(rows: Any, person: Any) -> tuple[int, NDArray[np.int64]]:
    """How many persons there are, and which one each row is of."""
    number = len(rows[0]) if isinstance(rows, tuple) else len(rows)
    if isinstance(rows, Mapping):
        number = len(next(iter(rows.values())))
    labels = np.arange(number) if person is None else np.asarray(person)
    if labels.shape != (number,):
        raise InvalidParameterError("person= must name the person of each row.", fix="pass one label for each row.")
    known, places = np.unique(labels, return_inverse=True)
    if len(known) < _FEWEST:
        raise InvalidParameterError(f"{len(known)} persons are too few to attack.", fix=f"pass {_FEWEST} or more.")
    return len(known), places.astype(np.int64)


def _scores(score: Any, rows: Any) -> dict[str, Score]:
    if score is None:
        return of_tables(rows)
    named = dict(score) if isinstance(score, Mapping) else {"score": score}
    if not named or not all(map(callable, named.values())):
        raise InvalidParameterError(
            "score= must be a function of a model and rows, or several by name.", fix="pass score=lambda model, rows: …"
        )
    return named


def _chosen(attacks: Sequence[str] | None, shadows: int) -> list[str]:
    if attacks is None:
        return list(ATTACKS) if shadows else ["score"]
    named = list(dict.fromkeys(choice("attack", name, ATTACKS) for name in attacks))
    if not named or (shadows < 2 and named != ["score"]):
        raise InvalidParameterError("These attacks need shadow models.", fix='pass shadows=16, or attacks=["score"].')
    return named


def _taken(rows: Any, flags: _Flags) -> Any:
    if isinstance(rows, tuple):
        return tuple(_taken(own, flags) for own in rows)
    if isinstance(rows, pa.Table):
        return rows.filter(pa.array(flags))
    if isinstance(rows, Mapping):
        return {name: np.asarray(own)[flags] for name, own in rows.items()}
    if isinstance(rows, list):
        return [own for own, there in zip(rows, flags, strict=True) if there]
    return rows.loc[flags] if hasattr(rows, "loc") else rows[flags]


def _fitted(coins: _Flags, *, fit: _Fit, scores: Sequence[Score], rows: Any, places: NDArray[np.int64]) -> _Floats:
    """Each score of all rows by what is fitted to those who are in."""
    model = fit(_taken(rows, coins[places]))
    found = [np.asarray(score(model, rows), np.float64) for score in scores]
    if any(own.shape != places.shape or np.isnan(own).any() for own in found):
        raise InvalidParameterError(
            "A score must be one number for each row, and none may be NaN.", fix="look at what score= returns."
        )
    return np.clip(np.stack(found), -1e300, 1e300)


def _all(job: Callable[[_Flags], _Floats], coins: NDArray[np.bool_], workers: int, progress: Tell | None) -> _Floats:
    """The scores by each target and shadow model, in parallel where there are several workers."""
    found = []
    with shown(progress, "fitting models") as tell:
        pool = None if workers == 1 else ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            for own in map(job, coins) if pool is None else pool.map(job, coins):
                found.append(own)
                if tell is not None:
                    tell(100 * len(found) / len(coins))
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)
    return np.stack(found)


def _judged(way: str, target: _Floats, shadow: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    return target if way == "score" else CALIBRATIONS[way](target, shadow, inside)
