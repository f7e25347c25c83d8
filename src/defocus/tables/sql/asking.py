"""The aggregates of one query, each asked once: equal ones are shared, and quantiles of one column share one cost."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from defocus.answers.columns import SUFFIXES
from defocus.tables.aggregates import Aggregate, Quantile
from defocus.tables.titling import titles

__all__ = ["Asked", "free"]


class Asked:
    """Collects aggregates under references a0, a1, … while a query is read."""

    def __init__(self) -> None:
        self._wanted: dict[Aggregate, tuple[str, str]] = {}
        self.notes: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def reference(self, aggregate: Aggregate, name: str, notes: Sequence[str]) -> str:
        """By what the released column will be known."""
        self.notes.update(dict.fromkeys(notes))
        return self._wanted.setdefault(aggregate, (f"a{len(self._wanted)}", name))[0]

    def arranged(self, keys: Sequence[str]) -> tuple[dict[str, Aggregate], dict[str, str]]:
        """The aggregates to ask by name, and for each reference the column of the answer that holds it."""
        taken = [key.casefold() for key in keys]
        asked: dict[str, Aggregate] = {}
        held: dict[str, str] = {}
        for aggregates in self._together():
            first = aggregates[0]
            merged = first if len(aggregates) == 1 else _merged(aggregates)
            wanted = self._wanted[first][1]
            name = free(wanted if merged is first else f"quantiles_{wanted.partition('_')[2] or wanted}", taken, merged)
            asked[name] = merged
            columns = titles(name, merged)
            taken += [(column + suffix).casefold() for column in columns for suffix in SUFFIXES]
            ordered = sorted(aggregates, key=_levels) if merged is not first else aggregates
            held.update(zip((self._wanted[each][0] for each in ordered), columns, strict=True))
        return asked, held

    def _together(self) -> list[list[Aggregate]]:
        groups: dict[object, list[Aggregate]] = {}
        for aggregate in self._wanted:
            same = (aggregate.argument, aggregate.buckets) if isinstance(aggregate, Quantile) else aggregate
            groups.setdefault(same, []).append(aggregate)
        return list(groups.values())


def free(name: str, taken: Sequence[str], aggregate: Aggregate | None = None) -> str:
    """The name, with a number behind it if its columns would meet others; ``taken`` is in lower case."""
    number, candidate = 1, name
    while any(
        (column + suffix).casefold() in taken
        for column in ([candidate] if aggregate is None else titles(candidate, aggregate))
        for suffix in SUFFIXES
    ):
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _merged(aggregates: Sequence[Aggregate]) -> Aggregate:
    first = aggregates[0]
    assert isinstance(first, Quantile)  # noqa: S101  # only quantiles are put together
    return replace(first, levels=tuple(sorted(level for each in aggregates for level in _levels(each))), single=False)


def _levels(aggregate: Aggregate) -> tuple[Fraction, ...]:
    return aggregate.levels if isinstance(aggregate, Quantile) else ()
