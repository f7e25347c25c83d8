"""What an attacker with all published answers of a ledger can do at most, and which of them tell about few people."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import combinations, islice
from typing import Any, TypeAlias, final

import numpy as np

from defocus.answers.answer import columns_in
from defocus.answers.plots import DARK, TEAL, blank
from defocus.errors import DefocusError, InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE, RELEASE, Entry
from defocus.privacy import Adjacency, Budget
from defocus.privacy.accounting import tightest_at
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.events import Approximate, Concentrated, Event, Gaussian, compose
from defocus.privacy.html import html_facts, html_table
from defocus.privacy.losses import Loss
from defocus.privacy.wire import from_wire

__all__ = ["History", "Repeated", "Twins", "history"]

_RATES = (0.001, 0.01, 0.1)
_PRIORS = (0.01, 0.1, 0.5)
_MOST, _SHOWN = 500, 50
"""So many of the newest charges are compared, and so many findings of each kind told."""
_ONLY = "only rows where "


@final
@dataclass(frozen=True, slots=True)
class Twins:
    """Two releases that ask the same and differ in one condition: a differencing attack on the people between.

    >>> Twins(1, 3, ("age > 30",), ("age > 31",), 1.0, 0.05, 2.8).words
    'entries 1 and 3 differ in age > 30 and age > 31'
    """

    first: int
    second: int
    """Their numbers in the ledger."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    epsilon: float | None
    """What both lose together about one person, at the delta of the report."""
    attack: float | None
    """The largest true-positive rate of any test for one person at 1 % false positives, by both together."""
    error: float | None
    """The standard error of the difference of their first numbers, where both were recorded."""

    @property
    def words(self) -> str:
        """Which entries they are, and in which conditions they differ."""
        sides = [" and ".join(own) or "no condition" for own in (self.only_first, self.only_second)]
        return f"entries {self.first} and {self.second} differ in {sides[0]} and {sides[1]}"


@final
@dataclass(frozen=True, slots=True)
class Repeated:
    """One question that was asked several times: an averaging attack takes noise away.

    >>> Repeated((1, 3), "number of rows", 1.0, 2.0).entries
    (1, 3)
    """

    entries: tuple[int, ...]
    question: str
    epsilon: float | None
    """What all of them lose together about one person."""
    error: float | None
    """The standard error of the best average of their first numbers, where all were recorded."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What all releases of a ledger give away at most. Made by :func:`history`.

    Guarantee:
        Of each pair, what the whole budget allows bounds every attack on one person by all that was and will be
        released, however each release was chosen: the filter admits nothing beyond it. What the spent part allows holds
        if the sequence of releases was fixed beforehand, and is smaller.

    >>> from defocus import examples
    >>> with examples.ledger() as book:
    ...     history(book).facts["released"]
    '0 charges, 0 recorded numbers'
    """

    dataset: str
    unit: str
    budget: str
    delta: float
    exception: float
    """How rarely an answer may tell more than is said of beliefs."""
    charges: int
    numbers: int
    """How many numbers were recorded."""
    epsilon: float | None
    """What was spent, as one event; None where no accountant can say."""
    attack: Mapping[float, tuple[float | None, float]]
    """At each false-positive rate the largest true-positive rate, by what was spent and by the whole budget."""
    posterior: Mapping[float, tuple[float | None, float]]
    """For each prior that somebody is in the data, the largest posterior, but with probability ``exception``."""
    secret: tuple[float | None, float]
    """How often at most a secret of one person, one of two equally likely values, is guessed right."""
    twins: tuple[Twins, ...] = field(repr=False)
    repeated: tuple[Repeated, ...] = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self.facts.items())

    @property
    def facts(self) -> dict[str, str]:
        """The report in words, by topic."""
        some = {
            f"present or not, at {100 * rate:g} % false positives": f"recognised with at most {_both(pair)}"
            for rate, pair in self.attack.items()
        }
        beliefs = {
            f"who believed {100 * prior:g} %": f"believes at most {_both(pair)}"
            for prior, pair in self.posterior.items()
        }
        return {
            "data set": self.dataset,
            "protects": self.unit,
            "released": f"{self.charges} charges, {self.numbers} recorded numbers",
            "budget": self.budget,
            "spent": "no accountant can say"
            if self.epsilon is None
            else f"epsilon {self.epsilon:.4g}" + (f" at delta {self.delta:.3g}" if self.delta else ""),
            **some,
            **beliefs,
            "one secret of two values": f"guessed right with at most {_both(self.secret)}",
            "nearly the same people": f"{len(self.twins)} pairs of releases",
            "asked again": f"{len(self.repeated)} questions",
        }

    def to_json(self) -> dict[str, Any]:
        """The report with JSON types only."""
        made = asdict(self)
        for name in ("attack", "posterior"):
            made[name] = {f"{100 * key:g} %": list(pair) for key, pair in made[name].items()}
        return made | {
            "secret": list(self.secret),
            "twins": [asdict(each) | {"words": each.words} for each in self.twins],
        }

    def plot(self) -> Any:
        """The most that any test for one person can reach, by what was spent and by the whole budget."""
        figure = blank(5.5, 4)
        axes = figure.add_subplot()
        rates = list(self.attack)
        for place, (colour, style, label) in enumerate(((TEAL, "-", "spent"), (DARK, ":", "whole budget"))):
            found = [(x, pair[place]) for x, pair in self.attack.items() if pair[place] is not None]
            axes.plot([x for x, _ in found], [y for _, y in found], style, color=colour, marker="o", label=label)
        axes.plot(rates, rates, color="#999999", linewidth=0.8, label="guessing")
        axes.set(xscale="log", yscale="log", xlabel="false-positive rate", ylabel="true-positive rate, at most")
        axes.legend(fontsize=8)
        axes.grid(visible=True, alpha=0.3)
        figure.alt = str(self)
        return figure

    def _repr_html_(self) -> str:
        pairs = [[t.words, _number(t.epsilon), _share(t.attack), _number(t.error)] for t in self.twins]
        heads = ["releases", "epsilon of both", "recognised at 1 % false positives", "error of the difference"]
        again = [[r.question, str(len(r.entries)), _number(r.epsilon), _number(r.error)] for r in self.repeated]
        body = html_facts(self.facts)
        if pairs:
            body += html_table(heads, pairs, caption="Releases about nearly the same people", heads=1)
        if again:
            names = ["question", "times", "epsilon of all", "error of the average"]
            body += html_table(names, again, caption="Questions that were asked again", heads=1)
        return body


def history(ledger: Ledger) -> History:
    """What an attacker with everything that a ledger's keeper published can do at most: a report for an officer.

    Reads the ledger alone: entries, questions and recorded answers, and no row.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"age": [30, 40, 50]})
    >>> table = dp.open(people, unit=dp.rows(), budget=dp.Budget(2), ledger=f"{home.name}/a", name="people")
    >>> for limit in (40, 41):
    ...     _ = table.where(f"age > {limit}").agg(n=dp.count()).release(epsilon=0.5)
    >>> found = history(table.ledger)
    >>> found.epsilon, found.twins[0].words
    (1.0, 'entries 1 and 3 differ in age > 40 and age > 41')
    >>> round(found.attack[0.01][0], 4), round(found.attack[0.01][1], 4)
    (0.0272, 0.0739)
    >>> table.close(); home.cleanup()
    """
    if not isinstance(ledger, Ledger):
        raise InvalidParameterError("This is no ledger.", fix="pass table.ledger, or Ledger.open(…).")
    entries = list(ledger.entries())
    charges = [entry for entry in entries if entry.kind == CHARGE]
    recorded = {entry.content["charge"]: entry for entry in entries if entry.kind == RELEASE}
    delta = spoken_delta(ledger.budget)
    spent = _loss(ledger.events(), delta, ledger.unit.adjacency)
    whole = _loss(_allowed(ledger.budget), delta, ledger.unit.adjacency)
    exception = 10 * delta
    changes = 1 if ledger.unit.adjacency is Adjacency.REPLACE else 2
    known = None if spent is None else spent.epsilon(delta)
    errors = {number: _first_error(entry) for number, entry in recorded.items()}
    asked = _asked(charges[-_MOST:])
    price = lru_cache(None)(partial(_loss, delta=delta, adjacency=ledger.unit.adjacency))
    return History(
        dataset=ledger.dataset,
        unit=str(ledger.unit),
        budget=str(ledger.budget),
        delta=delta,
        exception=exception,
        charges=len(charges),
        numbers=sum(_numbers(entry) for entry in recorded.values()),
        epsilon=known,
        attack={rate: (_most(spent, rate), _most(whole, rate) or 1.0) for rate in _RATES},
        posterior={
            prior: (_belief(spent, prior, exception), _belief(whole, prior, exception) or 1.0) for prior in _PRIORS
        },
        secret=(_secret(spent, delta, changes), _secret(whole, delta, changes) or 1.0),
        twins=tuple(islice(_twins(asked, errors, delta, price), _SHOWN)),
        repeated=tuple(islice(_repeated(asked, errors, delta, price), _SHOWN)),
    )


def _loss(event: Event, delta: float, adjacency: Adjacency) -> Loss | None:
    try:
        return tightest_at(event, delta, adjacency)
    except DefocusError:
        return None


def _allowed(budget: Budget) -> Event:
    """The worst release that a budget admits."""
    if budget.rho is not None:
        return Concentrated(budget.rho)
    return Approximate(budget.epsilon or 0, budget.delta) if budget.mu is None else Gaussian(1 / float(budget.mu))


def _most(loss: Loss | None, rate: float) -> float | None:
    try:
        return None if loss is None else min(1.0, 1 - loss.tradeoff(rate))
    except DefocusError:
        return None


def _belief(loss: Loss | None, prior: float, exception: float) -> float | None:
    try:
        return None if loss is None else loss.posterior(prior, delta=exception)
    except DefocusError:
        return None


def _secret(loss: Loss | None, delta: float, changes: int) -> float | None:
    r"""How often a fair coin in a person's row is guessed right at most.

    A coin that falls the other way is one change under replacement, and two where a person is added or removed: then
    the release is (2ε, (1 + e^ε)δ)-DP for the coin. Under (ε, δ) the two distributions are at most
    :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)` apart, and half of that more than a half is right.
    """
    if loss is None:
        return None
    epsilon = loss.epsilon(delta)
    if not epsilon < 350:  # beyond the range of floats
        return 1.0
    grown, lost = math.exp(epsilon * changes), delta * (1 if changes == 1 else 1 + math.exp(epsilon))
    return min(1.0, (grown + lost) / (grown + 1))


_Asked: TypeAlias = tuple[Entry, Event, frozenset[str], str]
_Price: TypeAlias = Callable[[Event], Loss | None]


def _asked(charges: Iterable[Entry]) -> list[_Asked]:
    """The charges whose questions are known: each with its conditions on rows, and with the rest."""
    found = []
    for entry in charges:
        question = entry.content.get("question")
        if isinstance(question, str):
            held, rest = _read(question)
            found.append((entry, from_wire(entry.content["event"]), held, f"{entry.content.get('data', '')}\n{rest}"))
    return found


def _read(question: str) -> tuple[frozenset[str], str]:
    """Conditions and the rest of a question as a ledger keeps it: a SELECT, or words whose steps are set apart."""
    from defocus.tables.table_questions import conditions  # noqa: PLC0415  # slow to load

    if question.lstrip()[:6].upper() == "SELECT":
        return conditions(json.dumps({"sql": question}))
    asked, *steps = question.split("; ")
    filters = [step.removeprefix(_ONLY) for step in steps if step.startswith(_ONLY)]
    held, _ = conditions(json.dumps({"filter": filters}))
    return held, "; ".join([asked, *(step for step in steps if not step.startswith(_ONLY))])


def _twins(asked: list[_Asked], errors: Mapping[int, float | None], delta: float, price: _Price) -> Iterator[Twins]:
    from defocus.tables.table_questions import few_apart  # noqa: PLC0415  # slow to load

    for (one, first, held, rest), (other, second, there, same) in combinations(asked, 2):
        apart = few_apart((held, rest), (there, same))
        if apart is None or not any(apart):
            continue
        both = price(compose([first, second]))
        known = [errors.get(each.sequence) for each in (one, other)]
        sure = [error for error in known if error is not None]
        yield Twins(
            first=one.sequence,
            second=other.sequence,
            only_first=tuple(sorted(apart[0])),
            only_second=tuple(sorted(apart[1])),
            epsilon=None if both is None else both.epsilon(delta),
            attack=_most(both, 0.01),
            error=math.hypot(*sure) if len(sure) == len(known) else None,
        )


def _repeated(
    asked: list[_Asked], errors: Mapping[int, float | None], delta: float, price: _Price
) -> Iterator[Repeated]:
    families: dict[tuple[frozenset[str], str], list[_Asked]] = {}
    for each in asked:
        families.setdefault(each[2:], []).append(each)
    for family in families.values():
        if len(family) > 1:
            loss = price(compose([event for _, event, *_ in family]))
            known = [errors.get(entry.sequence) for entry, *_ in family]
            sure = [1 / each**2 for each in known if each]
            error = sum(sure) ** -0.5 if len(sure) == len(family) else None
            entries = tuple(entry.sequence for entry, *_ in family)
            epsilon = None if loss is None else loss.epsilon(delta)
            yield Repeated(entries, str(family[0][0].content["question"]), epsilon, error)


def _kept(entry: Entry) -> list[Any]:
    """The columns of a recorded answer; none where it is another thing."""
    value = entry.content["value"]
    record = value[0] if isinstance(value, list) and value else None
    return record["columns"] if isinstance(record, dict) and isinstance(record.get("columns"), list) else []


def _numbers(entry: Entry) -> int:
    return sum(len(column.get("values", ())) for column in _kept(entry))


def _first_error(entry: Entry) -> float | None:
    columns = _kept(entry)
    if not columns:
        return None
    errors = columns_in(columns[:1], absolute=False)[0].errors
    return float(errors[0]) if len(errors) and np.isfinite(errors[0]) else None


def _both(pair: tuple[float | None, float]) -> str:
    spent = (
        "what was spent, of which no accountant can say" if pair[0] is None else f"{_share(pair[0])} by what was spent"
    )
    return f"{spent}, {_share(pair[1])} by the whole budget"


def _share(rate: float | None) -> str:
    return "unknown" if rate is None else f"{100 * rate:.4g} %"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
