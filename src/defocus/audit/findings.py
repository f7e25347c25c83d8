"""What an audit found, in numbers, words and a picture."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np

from defocus.answers.plots import COLOURS, TEAL, blank, literal
from defocus.audit.events import Split, atoms
from defocus.audit.outcomes import Array, Column
from defocus.privacy.html import html_facts, html_lines

__all__ = ["Finding", "Picture", "draw", "sketch"]


_BARS = 60
_LABELS = 20


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """Bars for the first and the second data set: shares of the judging runs."""

    of: str
    marks: tuple[str, ...] | tuple[float, ...]
    """Labels of the bars, or the edges between them where the outputs are numbers (one more than bars)."""
    first: tuple[float, ...]
    second: tuple[float, ...]


def sketch(columns: Sequence[Column], split: Split) -> Picture:
    """The column that says most at a glance: the output's kind if it varies, else its first number, else its text."""
    if not columns:
        return Picture("output", ("always the same",), (1.0,), (1.0,))
    column = max(columns, key=lambda c: 2 * (c.name == "kind of output") + c.numeric)
    first, second = split.of(column.values, "judge")
    finite = np.concatenate([first, second])
    finite = finite[np.isfinite(finite)]
    if column.labels is None and len(np.unique(finite[:10_000])) > _LABELS:
        low, high = np.quantile(finite, [0.005, 0.995])
        if low < high:
            edges = np.linspace(low, high, _BARS + 1)
            return Picture(column.name, tuple(map(float, edges)), _share(first, edges), _share(second, edges))
    coding = atoms(column, split)
    counts = [np.bincount(part, minlength=coding.size) / len(part) for part in split.of(coding.codes, "judge")]
    top = np.sort(np.argsort(-(counts[0] + counts[1]), kind="stable")[:_LABELS])
    names = [coding.tell(np.arange(coding.size) == i).removeprefix(f"{column.name} is exactly ") for i in top]
    names = ["another value" if i == coding.size - 1 else name for i, name in zip(top, names, strict=True)]
    return Picture(column.name, tuple(names), *(tuple(map(float, count[top])) for count in counts))


def draw(picture: Picture, *, title: str) -> Any:
    """A matplotlib figure with both distributions."""
    figure = blank(7, 4)
    axes = figure.add_subplot()
    edges = [mark for mark in picture.marks if isinstance(mark, float)]
    both = {
        "first data set": (picture.first, {"color": TEAL}),
        "second data set": (picture.second, {"color": COLOURS[0], "linestyle": "--"}),
    }
    place = np.arange(len(picture.marks))
    for number, (label, (shares, style)) in enumerate(both.items()):
        if edges:
            axes.stairs(shares, edges, label=label, **style)
        else:
            axes.bar(place + 0.4 * number - 0.2, shares, 0.4, label=label, color=style["color"], hatch="//" * number)
    if not edges:
        axes.set_xticks(place, [literal(str(mark)[:30]) for mark in picture.marks], rotation=30, ha="right")
    axes.set(xlabel=literal(picture.of), ylabel="share of runs", title=literal(title))
    axes.legend()
    every = zip(picture.marks, picture.first, picture.second, strict=False)  # edges are one more
    said = "; ".join(f"{mark}: {first:.3g} and {second:.3g}" for mark, first, second in every)
    figure.alt = f"{title}. Share of runs by {picture.of}, on the first and the second data set. {said}"
    return figure


def _share(values: Array, edges: Array) -> tuple[float, ...]:
    kept = values[np.isfinite(values)]
    return tuple(map(float, np.histogram(kept, edges)[0] / max(len(values), 1)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A lower bound on epsilon and the event that shows it.

    Guarantee:
        With probability at least ``confidence`` over the runs, the mechanism is not
        (ε, ``delta``)-DP for any ε below ``epsilon_lower``.
    Assumes:
        The runs on one data set are independent and alike. The two data sets are neighbours in
        the sense of the claim; the audit cannot check that.

    >>> from defocus.audit import lower_bound
    >>> found = lower_bound(sum, ([1, 1], [1, 1, 1]), trials=500, claimed=1)
    >>> found.violation, found.epsilon_lower > 1
    (True, True)
    """

    epsilon_lower: float
    """The mechanism loses at least this much."""
    claimed: float | None
    """The epsilon it was said to lose at most."""
    delta: float
    """The delta both hold at."""
    delta_lower: float
    """At the claimed epsilon, delta is at least this."""
    confidence: float
    event: str
    """The set of outputs that tells the data sets apart, in words."""
    p: float
    """How often the event happened where it is likelier."""
    q: float
    """How often it happened on the other data set."""
    likelier: int
    """The data set it is likelier on: 0 for the first of the pair, 1 for the second."""
    trials: int
    """Runs on each data set."""
    judged: int
    """How many of them judged the event; the others chose it."""
    seconds: float
    pair: str
    """The two data sets, in words."""
    detectable: float
    """A loss of this size, shown by an event as likely as this one but at most 1/2, would have been called with
    probability 90 %: see :func:`defocus.audit.bounds.detectable`."""
    searched: tuple[str, ...] = ()
    """The pairs that were tried, where a search chose this one."""
    notes: tuple[str, ...] = ()
    """What the reader should know about the runs."""
    picture: Picture = field(repr=False)
    """The two distributions that :meth:`plot` shows."""

    @property
    def violation(self) -> bool:
        """Whether the bound is above the claim."""
        return self.claimed is not None and self.epsilon_lower > self.claimed

    @property
    def verdict(self) -> str:
        """``violation``, or what would have been detected; an audit never proves a mechanism private."""
        if self.violation:
            return "violation"
        return f"none found (would detect >= {self.detectable:.3g})"

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f", claimed {self.claimed:.6g}"
        at = f" at delta {self.delta:.3g}" if self.delta else ""
        return (
            f"{self.verdict}: epsilon >= {self.epsilon_lower:.4g}{at}{claim} "
            f"({_percent(self.confidence)} confidence, {self.trials} runs each, {self.seconds:.1f} s)\n"
            f"  event: {self.event}\n"
            f"  happens in {self.p:.4%} and {self.q:.4%} of runs; {self.pair}"
        )

    def explain(self) -> str:
        """The finding as a paragraph for someone who has to act on it."""
        where, other = ("first", "second") if self.likelier == 0 else ("second", "first")
        at = f" at delta {self.delta:.3g}" if self.delta else ""
        seen = f"{self.p:.4%} of the time on the {where}, {self.q:.4%} on the {other}"
        text = [
            f"The mechanism ran {self.trials} times on each of two neighbouring data sets ({self.pair}).",
            f"{self.trials - self.judged} runs on each chose one event: {self.event}.",
            f"In {self.judged} others it happened {seen}.",
            f"With {_percent(self.confidence)} confidence its epsilon{at} is not below {self.epsilon_lower:.4g}.",
        ]
        if self.searched:
            text.append(f"The pair was chosen among {len(self.searched)}; the confidence allows for that search.")
        if self.claimed is None:
            text.append("Nothing was claimed, so there is nothing to contradict.")
        elif self.violation:
            text.append(
                f"It was claimed to be {self.claimed:.6g}: the claim is false. At that epsilon, delta is at "
                f"least {self.delta_lower:.3g}."
            )
        else:
            text.append(
                f"This does not contradict the claim of {self.claimed:.6g}, and it does not confirm it either: "
                f"a loss of {self.detectable:.3g} or more that shows in such an event would be called 9 times "
                f"in 10, one that shows in rarer events or on other data sets only with more runs or pairs."
            )
        return " ".join([*text, *self.notes])

    def to_json(self) -> dict[str, Any]:
        """All fields and the verdict, with JSON types only; an infinite ``detectable`` is null."""
        reach = self.detectable if math.isfinite(self.detectable) else None
        return asdict(self) | {"detectable": reach, "verdict": self.verdict, "violation": self.violation}

    def plot(self) -> Any:
        """A matplotlib figure of the two output distributions; needs the extra ``plot``."""
        return draw(self.picture, title=f"{self.verdict}: epsilon >= {self.epsilon_lower:.4g}")

    def _repr_html_(self) -> str:
        rows = {
            "epsilon is at least": f"{self.epsilon_lower:.4g}",
            "claimed": "nothing" if self.claimed is None else f"{self.claimed:.6g}",
            "at delta": f"{self.delta:.3g}",
            "confidence": _percent(self.confidence),
            "event": self.event,
            "happens in": f"{self.p:.4%} and {self.q:.4%} of runs",
            "data sets": self.pair,
            "runs": f"{self.trials} on each, {self.seconds:.1f} s",
        }
        return html_lines([self.verdict]) + html_facts(rows)


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.10g} %"
