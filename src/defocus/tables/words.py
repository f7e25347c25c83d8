"""A question and its rules in plain words, for previews, answers and ledgers."""

from collections.abc import Sequence
from dataclasses import replace

from defocus.answers import Effect, Rule
from defocus.answers.rules import rules_of
from defocus.tables.aggregates import Aggregate, Argument, Distinct, Histogram, Quantile, Statistic
from defocus.tables.contribution import Bound
from defocus.tables.keys import Keys
from defocus.tables.parts import part_rules
from defocus.tables.planner import Plan
from defocus.tables.rows import Rows

__all__ = ["printable", "question", "rules"]

_NAMES = {
    "count": "number of rows with",
    "std": "standard deviation of",
    "ratio": "ratio of",
}


def question(rows: Rows, by: Sequence[str], aggregates: Sequence[tuple[str, Aggregate]]) -> str:
    """What is asked, in one line."""
    asked = ", ".join(f"{_asked(aggregate)} as {name}" for name, aggregate in aggregates)
    groups = f", by {', '.join(by)}" if by else ""
    made = f"; {'; '.join(rows.words)}" if rows.words else ""
    return printable(f"{asked}{groups}{made}")


def printable(text: str) -> str:
    r"""Text in one line without control characters, which constants and names may hold and ledgers refuse.

    >>> printable("ward = 'a\nb\x1b'")
    "ward = 'a b?'"
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def rules(rows: Rows, bound: Bound | None, keys: Keys | None, plan: Plan, *, proposed: bool) -> tuple[Rule, ...]:
    """What is bounded, clipped, dropped and found by rule."""
    said: list[str] = [*part_rules(rows)]
    if bound is not None:
        said += [
            Rule(_bounding(rows, bound, proposed=proposed), Effect.BOUND),
            f"rows without a {rows.unit} belong to nobody and are left out",
        ]
    said += dict.fromkeys(
        _clipping(each) for _, one in plan.arrangement.aggregates for each in _arguments(one) if not each.find
    )
    for _, aggregate in plan.arrangement.aggregates:
        if isinstance(aggregate, Distinct) and bound is not None:
            most = f"at most {aggregate.at_most} different values of {aggregate.text}"
            said.append(f"one {rows.unit} brings {most}, chosen at random")
        if isinstance(aggregate, Histogram):
            said.append(f"values of {aggregate.text} outside the edges count in the outermost, missing ones not at all")
    said += [
        f"the bounds of {text} are found privately, between powers of two, for a share of the cost"
        for text in plan.findings
    ]
    if keys is None and plan.selection is not None:
        said.append(
            "groups are found privately: one with"
            f" {plan.selection.threshold()} people is shown half of the time, one that nobody is in never"
        )
    elif keys is not None and keys.table.num_columns:
        said.append(f"the {keys.number} groups were named beforehand; rows of others are left out")
    return rules_of(said)


def _bounding(rows: Rows, bound: Bound, *, proposed: bool) -> str:
    if bound.by == "sampling":
        return f"one {rows.unit} counts with at most {bound}; which ones is chosen at random"
    most = str(replace(bound, groups=None)) if bound.find or bound.rows is not None else str(bound)
    said = f"one {rows.unit} counts with at most {most}"
    if bound.find:
        said += "; errors are foretold for 5 rows, and grow with their number"
    elif proposed:
        said += ", which is the default; change it with bound(rows=…)"
    if bound.total > 1:
        said += f"; all rows of a {rows.unit} with more count, but with less weight"
    if bound.groups is not None:
        said += f"; where people are counted, in at most {bound.groups} group{'' if bound.groups == 1 else 's'}"
    return said


def _clipping(argument: Argument) -> str:
    missing = "left out" if argument.missing is None else f"counted as {argument.missing}"
    if argument.low is None:
        return f"rows in which {argument.text} is missing are {missing}"
    return f"values of {argument.text} are clipped to [{argument.low}, {argument.high}]; missing ones are {missing}"


def _arguments(aggregate: Aggregate) -> Sequence[Argument]:
    if isinstance(aggregate, Statistic):
        return aggregate.arguments
    return (aggregate.argument,) if isinstance(aggregate, Quantile) else ()


def _asked(aggregate: Aggregate) -> str:
    if isinstance(aggregate, Statistic):
        texts = " and ".join(each.text for each in aggregate.arguments)
        plain = f"{aggregate.operation.replace('_', ' ')} of"
        return f"{_NAMES.get(aggregate.operation, plain)} {texts}" if texts else "number of rows"
    if isinstance(aggregate, Distinct):
        return f"number of different {aggregate.text}"
    if isinstance(aggregate, Quantile):
        levels = ", ".join(f"{float(level):g}" for level in aggregate.levels)
        return f"quantile {levels} of {aggregate.argument.text}"
    return f"histogram of {aggregate.text}" if isinstance(aggregate, Histogram) else "number of people"
