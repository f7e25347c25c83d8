"""From what is asked to what is measured: statistics that can share a measurement do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from defocus.engines.schema import Kind, retyped
from defocus.errors import NotDeclaredError, WrongKindError
from defocus.tables.aggregates import Aggregate, Argument, Distinct, Histogram, Quantile, Statistic, stands_for
from defocus.tables.estimates import MOMENTS
from defocus.tables.rows import Rows
from defocus.tables.splits import PRESENCE, Scaled, Split

__all__ = ["MeasurementPlan", "plan_measurements"]


@final
@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """The named aggregates with their bounds filled in, and the splits of weights that answer their sums."""

    aggregates: tuple[tuple[str, Aggregate], ...]
    splits: tuple[Split, ...]
    source: Mapping[str, int]
    """For each statistic, the number of the split that answers it."""
    searched: tuple[str, ...]
    """The columns whose bounds are to be found privately."""

    def importance(self, split: int, weights: Mapping[str, float]) -> float:
        """How much depends on a split."""
        return sum(weights.get(name, 1.0) for name, number in self.source.items() if number == split)


def plan_measurements(rows: Rows, aggregates: Mapping[str, Aggregate]) -> MeasurementPlan:
    """Check every aggregate against the columns, fill in declared bounds, and let sums share splits."""
    known = tuple((name, _known(rows, aggregate)) for name, aggregate in aggregates.items())
    statistics = [(name, aggregate) for name, aggregate in known if isinstance(aggregate, Statistic)]
    splits = _merged([_split(aggregate) for _, aggregate in statistics])
    source = {name: _place(_split(aggregate), splits) for name, aggregate in statistics}
    searched = dict.fromkeys(
        argument.text for _, aggregate in known for argument in _arguments(aggregate) if argument.find
    )
    return MeasurementPlan(known, tuple(splits), source, tuple(searched))


def _known(rows: Rows, aggregate: Aggregate) -> Aggregate:
    if isinstance(aggregate, Statistic):
        needed = aggregate.operation != "count"
        return Statistic(aggregate.operation, tuple(_filled(rows, each, needed) for each in aggregate.arguments))
    if isinstance(aggregate, Quantile):
        return replace(aggregate, argument=_filled(rows, aggregate.argument))
    if isinstance(aggregate, Histogram):
        _number(rows, aggregate.text)
    if isinstance(aggregate, Distinct):
        if rows.values(aggregate.text).kind is Kind.NUMBER:
            raise WrongKindError(
                f"Different values of {aggregate.text!r} cannot be counted: floats are never quite equal.",
                fix="derive a whole number or text from it first.",
            )
        return Distinct(aggregate.text, 1 if rows.unit is None else aggregate.at_most)
    return aggregate


def _filled(rows: Rows, argument: Argument, bounds: bool = True) -> Argument:
    """An argument with the bounds that were declared for its column, unless it has its own."""
    if not bounds:
        rows.values(argument.text)
        return argument
    _number(rows, argument.text)
    if argument.find or argument.low is not None:
        return argument
    declared = rows.schema.get(argument.text)
    if declared is None or declared.low is None:
        raise NotDeclaredError(
            f"Nobody declared between which bounds {argument.text!r:.60} lies.",
            fix="give them without looking at the data, as in mean(column, low, high); declare them for the column; or"
            ' pass bounds="find" to pay for finding them.',
        )
    stands_for(argument.missing, declared.low, declared.high)
    return Argument(argument.text, declared.low, declared.high, missing=argument.missing)


def _number(rows: Rows, text: str) -> None:
    kind = rows.values(text).kind
    if not kind.numeric:
        raise WrongKindError(
            f"{text!r:.60} is of kind {kind}, but this needs numbers.",
            fix=f'convert it, "CAST({text:.60} AS DOUBLE)"{retyped(text, kind)}.',
        )


def _arguments(aggregate: Aggregate) -> Sequence[Argument]:
    if isinstance(aggregate, Statistic):
        return aggregate.arguments
    return (aggregate.argument,) if isinstance(aggregate, Quantile) else ()


def _split(statistic: Statistic) -> Split:
    if not statistic.arguments:
        return PRESENCE
    values = tuple(Scaled(each.text, each.low, each.high, each.missing, each.find) for each in statistic.arguments)
    return Split(values, MOMENTS[statistic.operation].degrees)


def _merged(wanted: Sequence[Split]) -> list[Split]:
    """The fewest splits that answer everything: of equal values the highest degree, and no other split for a count."""
    highest: dict[tuple[Scaled, ...], Split] = {}
    for split in wanted:
        before = highest.get(split.values, split)
        degrees = tuple(map(max, split.degrees, before.degrees))
        highest[split.values] = Split(split.values, degrees)
    kept = list(highest.values())
    return [split for split in kept if not any(other is not split and _covers(other, split) for other in kept)] or kept


def _covers(large: Split, small: Split) -> bool:
    """Whether ``large`` answers everything that ``small`` does."""
    if not small.values:
        return bool(large.values)
    if len(small.values) != 1 or len(large.values) != 1:
        return False
    few, many = small.values[0], large.values[0]
    counts_only = few.low is None and not few.find and few.missing is None
    return counts_only and many.text == few.text and many.missing is None and many != few


def _place(wanted: Split, splits: Sequence[Split]) -> int:
    """The number of the split with the fewest cells that answers what is wanted."""
    able = [
        i
        for i, split in enumerate(splits)
        if split.values == wanted.values or (_covers(split, wanted) and split != wanted)
    ]
    return min(able, key=lambda i: splits[i].cells)
