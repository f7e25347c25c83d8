"""A planned release, step by step: what the engine computes, the noise, and the columns of the answer.

Writing a question's SQL once before it is charged, so that no charge is lost to SQL that cannot be written.

SQL is written and read by recursion, and Python bounds how deep calls may nest, those of the caller included. So a
question of many layers that is asked from deep within other calls could fail after the charge. It is refused before.

What an engine is asked to do, read off its statements.

What the engine then makes of a statement is not shown. Optimisers look at statistics of the data: DuckDB's plan for a
filter that no row passes is empty, so an exact maximum could be read off plans, free of charge. A statement is made of
public facts only. Whoever owns the data can send its text to the engine with EXPLAIN.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from defocus.answers.columns import AnswerColumn, brief
from defocus.answers.rules import Effect, Rule
from defocus.engines.syntax import column, named
from defocus.errors import InvalidParameterError
from defocus.mechanisms import Gaussian, PartitionSelection
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.mechanisms.ranges import FoundRange
from defocus.noise import Bits
from defocus.tables.bias import Bias
from defocus.tables.contribution import DEFAULT_ROWS, Bound, people_weight
from defocus.tables.found_bound import EDGES, FoundBound, best_bound, hidden_rows
from defocus.tables.grouping_sets import GroupingSets, Layout, whole_counts
from defocus.tables.keys import EVERYTHING, Keys, StoredKeys
from defocus.tables.lower_bound import Ladder, combined, lower_bound
from defocus.tables.measurement import Exact, Measuring, Statement, Tallies
from defocus.tables.noise import CellNoise, Noisy
from defocus.tables.planner import Plan
from defocus.tables.rows import Rows
from defocus.tables.splits import Split
from defocus.tables.weights import AMONG_KEYS, Groups, RowSampler, first_of_range, published

__all__ = ["Run", "rehearse", "statements"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One release of a plan. Made after the charge, used once."""

    plan: Plan
    rows: Rows
    by: tuple[str, ...]
    bound: Bound | None
    bits: Bits
    chance: RowSampler
    progress: Callable[[float], None] | None = None
    bias: Bias | None = None
    among: Keys | None = None
    """Where keys are found, those columns of them that were named."""
    found: FoundBound | None = None
    """The number of rows of one person that count, where it was found."""
    ladder: Ladder | None = None
    """That bound and a lower one, where means and other quotients are measured with it as well."""
    sets: GroupingSets | None = None
    layout: Layout | None = None
    """The groups of all sets; None where the keys are yet to be found."""
    tallies: Tallies | None = None
    """What looking for a bound counted of the sums already, where they follow from it."""

    def answer(self, keys: Keys | None) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """The keys, found if they are not given, every column with its noise, and what else was found, in words.

        All statements see the same rows, even where others write meanwhile.
        """
        with self.rows.engine.snapshot():
            return self._answer(keys)

    def _answer(self, keys: Keys | None) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        chosen = keys if keys is not None else self._found_keys()
        if not chosen.number:
            x, how = np.zeros(0), "no group was found"
            titles = self.plan.arrangement.titles
            nothing = tuple(AnswerColumn(title, x, x, x, x, integral=False, how=how) for title in titles)
            return chosen, nothing, self._none()
        if self.plan.memberships is not None:
            return self._placed(chosen, self.plan.memberships)
        if self.plan.contributions is not None:
            return self._bounded(chosen, self.plan.contributions)
        with published(self.rows, self.by, chosen, self.bound) as groups:
            return self._measured(chosen, groups)

    def _measured(self, keys: Keys, groups: Groups) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """Every column of known groups."""
        plan, measurements = self.plan, self.plan.arrangement
        measuring = Measuring(groups, plan.grid, self.chance.of("sums"), self.progress, self.tallies)
        found = self._ranges(groups)
        bias = (self.bias or Bias()).of_ranges(found, dict(measurements.aggregates))
        ranges = {text: (each.low, each.high) for text, each in found.items()}
        splits = [split.found(ranges) for split in measurements.splits]
        whole: list[Exact | None] = [None] * len(splits)
        said: list[str] = []
        lower: dict[int, Noisy] = {}
        if self.ladder is not None:
            noisy, lower = self._laddered(measuring, splits, self.ladder)
        elif self.sets is None:
            exact = measuring.cells(splits) if splits else []
            noisy = [
                replace(noise.noisy(cells, self.bits, plan.grid), source=f"sums {place}")
                for place, (cells, noise) in enumerate(zip(exact, plan.splits, strict=True))
            ]
        else:
            layout = self.layout or Layout(self.sets, keys)
            exact = measuring.cells(splits) if splits else []
            made = [
                layout.noisy(cells, levels, self.bits, plan.grid)
                for cells, levels in zip(exact, plan.levels, strict=True)
            ]
            noisy, whole = [each for each, _ in made], [counts for _, counts in made]
            shown, labels = layout.keys()
            keys, said = Keys(shown), [*labels]
        columns: dict[str, list[AnswerColumn]] = {}
        for name, statistic in measurements.statistics:
            place = measurements.source[name]
            column = statistic.read(name, splits[place], noisy[place])
            counts = whole[place]
            if counts is not None:
                column = whole_counts(column, counts)
            if bias != Bias():
                column = bias.widened(column, statistic, splits[place], noisy[place])
            if place in lower and statistic.quotient:
                limits = statistic.moments.range(splits[place].values)
                column = combined(column, statistic.read(name, splits[place], lower[place]), limits)
            columns[name] = [column]
        for name, aggregate in measurements.apart:
            apart = replace(measuring, grid=plan.grid_of(aggregate), chance=self.chance.of(f"column {name}"))
            asked, apart, how, rules = aggregate.found(ranges).settled(apart, plan.others[name], self.bits)
            said += rules
            shown = asked.release(name, apart, how, self.bits)
            columns[name] = [bias.opened(column, aggregate.found(ranges)) for column in shown]
        unseen = {text for text, bounds in found.items() if not bounds.seen}
        for name, each in measurements.aggregates:
            if any(argument.find and argument.text in unseen for argument in each.arguments):
                columns[name] = [_nothing(column) for column in columns[name]]
        said += [self._cut(text, bounds, bias) for text, bounds in found.items()]
        return keys, tuple(measurements.in_order(columns)), tuple(said)

    def _laddered(
        self, measuring: Measuring, splits: Sequence[Split], ladder: Ladder
    ) -> tuple[list[Noisy], dict[int, Noisy]]:
        """The noisy cells of every split with the first bound, and with the lower one where a mean or so is asked.

        The noise of a split was planned for what one person weighs with both bounds together.
        """
        first, second = ladder.grids
        quotients = [place for place in range(len(splits)) if self.plan.arrangement.quotients(place)]
        exact = replace(measuring, grid=first).laddered(splits, [splits[place] for place in quotients], ladder)
        noises = self.plan.splits
        noisy = [
            replace(noise.noisy(cells[0], self.bits, first), source=f"sums {place}")
            for place, (cells, noise) in enumerate(zip(exact, noises, strict=True))
        ]
        lower = {place: noises[place].noisy(exact[place][1], self.bits, second) for place in quotients}
        return noisy, {place: replace(each, source=f"sums {place}, lower") for place, each in lower.items()}

    def _cut(self, text: str, found: FoundRange, bias: Bias) -> Rule:
        """The bounds that were found, in words, and what they do to the numbers."""
        if not found.seen:
            few = f"no bounds were found for {text}: too few people, or values too far apart; declare bounds"
            return Rule(few, Effect.TOLD)
        whose = "of all values" if self.rows.unit is None else f"of the values of a {self.rows.unit}, on average,"
        most = f"at most {brief(100 * found.outside)} % {whose} lie beyond"
        if found.outside > _MANY_BEYOND:
            most = "how many lie beyond is not known"
        said = f"values of {text} beyond {found.low:g} and {found.high:g}, bounds that were found privately, are cut"
        held = "; intervals hold that, if what lies beyond is twice its bound on average" if text in bias.ranges else ""
        return Rule(f"{said}: {most}{held}", bias.of(text))

    def _placed(self, keys: Keys, noise: CellNoise) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """The answer where people are counted in as many groups as a noisy histogram suggests.

        What a person weighs in all groups together was planned, in the norm that the noise is for, and stays that.
        """
        with published(self.rows, self.by, keys, self.bound) as groups:
            measuring = Measuring(groups, self.plan.grid, self.chance, self.progress)
            exact = measuring.contributions(EDGES, groups=True)
        grid, norm = self.plan.people_grid, 1
        noises = [
            how
            for name, aggregate in self.plan.arrangement.apart
            if aggregate.counts == "people" and isinstance(how := self.plan.others[name], CellNoise)
        ]
        if all(isinstance(how.law_of, Gaussian) for how in noises):
            norm = 2
        best = best_bound(
            noise.add(exact, self.bits),
            scale=max(1.0, math.sqrt(noise.variance / 2)),
            groups=keys.number,
            noise=max(math.sqrt(how.variance) for how in noises) / (grid * DEFAULT_ROWS ** (1 / norm)),
            counts=True,
            quotients=False,
            norm=norm,
            most=keys.number,
        )
        most = min(best.rows, max(1, grid >> 8))
        plan = replace(self.plan, people_grid=people_weight(grid, most, norm), memberships=None)
        run = replace(self, plan=plan, bound=replace(_some(self.bound), groups=most))
        keys, columns, said = run.answer(keys)
        cut = self._in_groups(most, best, keys.number)
        people = {name for name, aggregate in self.plan.arrangement.apart if aggregate.counts == "people"}
        if cut:
            columns = tuple(replace(x, limits=(math.inf, math.inf)) if x.name in people else x for x in columns)
        return keys, columns, (*cut, *said)

    def _in_groups(self, most: int, best: FoundBound, number: int) -> tuple[Rule, ...]:
        """In how many groups people were counted, in words, where that is not in all of them."""
        if most >= number:
            return ()
        groups = f"{most} group{'' if most == 1 else 's'}, a bound that was found privately"
        said = f"where people are counted, one {self.rows.unit} counts in at most {groups}"
        less = f"up to {brief(100 * best.missing)} % of all pairs lie beyond it"
        return (Rule(f"{said}; {less}", Effect.OPEN),)

    def _bounded(self, keys: Keys, noise: CellNoise) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """The answer with the bound that a noisy histogram of contributions suggests."""
        splits = self.plan.arrangement.splits
        with published(self.rows, self.by, keys, self.bound) as groups:
            measuring = Measuring(groups, self.plan.grid, self.chance, self.progress)
            tallies = measuring.tallied(splits) if splits and measuring.is_tallied(splits) else None
            run, rule = replace(self, tallies=tallies).settled(keys.number, groups, noise)
        keys, columns, bounds = run.answer(keys)
        return keys, columns, (rule, *bounds)

    def settled(self, number: int, groups: Groups, noise: CellNoise, *, held: bool = True) -> "tuple[Run, Rule]":
        """The run with the bound that is found for this ``number`` of groups, and what to say about it.

        What lies beyond it is ``held`` by intervals, unless they are the same for all groups.
        """
        exact = Measuring(groups, self.plan.grid, self.chance, self.progress, self.tallies).contributions(EDGES)
        quotients = [aggregate.quotient for _, aggregate in self.plan.arrangement.aggregates]
        person = self.plan.grid * DEFAULT_ROWS
        noisy, scale = noise.add(exact, self.bits), max(1.0, math.sqrt(noise.variance / 2))  # people are whole
        known = None if self.bound is None else self.bound.most
        error = max((math.sqrt(cell.variance) / person for cell in self.plan.splits), default=1.0)
        best = best_bound(
            noisy,
            scale=scale,
            groups=number,
            noise=error,
            counts=not all(quotients),
            quotients=any(quotients),
            rows_most=known,
        )
        rows = min(best.rows, max(1, person >> 8), best.rows if known is None else known)  # a row must weigh enough
        # In how many groups people are counted was planned, so the number of rows found must not change it.
        most = None if self.bound is None else self.bound.people_in
        plan = replace(self.plan, grid=person // rows, contributions=None)
        best = replace(best, rows=rows, weight=best.weight * best.rows / rows)
        if known is not None:
            best = replace(best, beyond_most=float(hidden_rows(noisy, scale, [rows], known)[0]))
        bias = (self.bias or Bias()).of_found(best) if held else self.bias
        lower = lower_bound(best, number, error) if held and self._several else None
        ladder = None if lower is None else Ladder.of(person, (rows, lower))
        run = replace(self, plan=plan, bound=Bound(rows=rows, groups=most), found=best, bias=bias, ladder=ladder)
        said = _found(best, self.rows.unit, known, held=held) + _lower(lower)
        return run, Rule(said, (bias or Bias()).of_rows)

    @property
    def _several(self) -> bool:
        """Whether a lower bound may be of use: for quotients of groups of one set, of which one owner has all rows."""
        alone = self.sets is None and not any(isinstance(each.mechanism, NoiseShare) for each in self.plan.splits)
        return alone and any(self.plan.arrangement.quotients(place) for place in range(len(self.plan.splits)))

    def _ranges(self, groups: Groups) -> dict[str, FoundRange]:
        """Bounds for the columns that have none, from everybody's rows."""
        ranges = {}
        for text, finding in self.plan.findings.items():
            chance = self.chance.of(f"bounds of {text}")
            everybody = Measuring(groups, self.plan.grid, chance, self.progress).everybody()
            noisy = finding.add(everybody.spread(text, finding), self.bits)
            people = self.found.weight if self.found is not None else sum(noisy) / everybody.grid
            noise = max((math.sqrt(cell.variance) / everybody.grid for cell in self.plan.splits), default=0.0)
            # About what a mean of values in a range of one errs by, in a group of middling size.
            error = math.sqrt(0.5) * noise * groups.keys.number / max(1.0, people)
            ranges[text] = finding.best(noisy, error)
        return ranges

    def _found_keys(self) -> Keys:
        """The keys that enough people have, each beside all that were named."""
        sought = _sought(self.by, self.among)
        anything = Groups(self.rows, sought, EVERYTHING, None, self.bound)
        selection = self.plan.selection
        assert isinstance(selection, PartitionSelection)  # noqa: S101  # planned whenever no keys are given
        measuring = Measuring(anything, self.plan.grid, self.chance, self.progress)
        found = measuring.found_keys(selection, self.bits).rename_columns(list(sought))
        if self.among is None:
            return Keys(found)
        named = self.among.table
        each, all_of = found.num_rows, named.num_rows
        parts = {name: found[name].take(pa.array(np.repeat(np.arange(each), all_of))) for name in sought}
        parts |= {name: named[name].take(pa.array(np.tile(np.arange(all_of), each))) for name in named.column_names}
        return Keys(pa.table({name: parts[name] for name in self.by}))

    def _none(self) -> tuple[str, ...]:
        """What is known where no group was found: about how many people there are."""
        noise = self.plan.contributions or self.plan.memberships
        if noise is None or self.plan.selection is None:
            return ()
        everybody = Groups(self.rows, (), EVERYTHING, None, self.bound)
        exact = Measuring(everybody, self.plan.grid, self.chance, self.progress).contributions(EDGES)
        # One person more is one more of all of them as well, so their number has the noise of one bucket.
        people = max(0, int(noise.add(exact.sum(keepdims=True), self.bits)[0]))
        said = f"no group was found: about {people} people are asked about, give or take {brief(noise.variance**0.5)},"
        need = self.plan.selection.threshold()
        return (Rule(f"{said} and one group needs {need} to be shown half of the time", Effect.TOLD),)


def _nothing(column: AnswerColumn) -> AnswerColumn:
    """A column of which nothing is known."""
    unknown, endless = np.full(len(column.values), np.nan), np.full(len(column.values), np.inf)
    return replace(column, values=unknown, errors=unknown, low=-endless, high=endless)


def _found(best: FoundBound, unit: str | None, known: int | None, *, held: bool) -> str:
    """The bound that was found, in words, and what it may do to the numbers: few people with very many rows hide."""
    rows = f"{best.rows} row{'' if best.rows == 1 else 's'}"
    said = f"one {unit} counts with at most {rows}, a bound that was found privately"
    if best.beyond >= _HARDLY:
        said += f"; about {100 * best.beyond:.0f} % of the rows that show lie beyond it and count with less weight"
    if known is not None and best.rows >= known:
        return f"{said}; nobody has more than {known}"
    if known is not None and held:
        return f"{said}; intervals hold up to {brief(best.beyond_most)} rows beyond it, if nobody has more than {known}"
    few = f"{best.hidden} people" if best.hidden > 1 else "one person"
    most = f"up to {brief(100 * best.missing)} % of all rows, if people thin out beyond the bound as they do up to it"
    said += f"; intervals hold what lies beyond it, {most}" if held else f"; beyond it lie {most}"
    return f"{said}; {few} with any number of rows may hide in the noise: declare what nobody exceeds, bound(most=…)"


def _lower(rows: int | None) -> str:
    """What quotients are measured with besides, in words."""
    if rows is None:
        return ""
    few = f"{rows} row{'' if rows == 1 else 's'}"
    said = f"; means and other quotients also count at most {few}, and rely on that as far as both agree"
    return f"{said}; their intervals are those of the first"


def _some(bound: Bound | None) -> Bound:
    assert bound is not None  # noqa: S101  # only where people have several rows is one found
    return bound


_T = TypeVar("_T")
_HARDLY = 0.005
_MANY_BEYOND = 0.5
"""Of more values than this it is no use to say that at most so many were cut."""
_LEADING = 60
"""More calls than lead from here to where expressions are read and SQL is written."""
_AROUND = 250
"""How many calls deeper SQL is written here: more than those, and what writing takes for the layers that measuring
nests around rows and values, a dozen calls for each."""


def rehearse(rows: Rows, by: Sequence[str], wanted: Sequence[str]) -> None:
    """Write the part of every statement that may be deep: the rows, their keys and the expressions that are measured.

    Guarantee:
        If it can be written here, so many calls deeper, every statement of the release can: what those nest around it
        is of a fixed depth. Looks at no row, and sends nothing.
    """
    try:
        values = _deeper(_LEADING, lambda: [rows.values(text).sql for text in wanted])
        select = rows.select([*map(column, by), *(named(value, f"v{i}") for i, value in enumerate(values))])
        _deeper(_AROUND, lambda: rows.engine.written(select))
        written = True
    except (RecursionError, InvalidParameterError):  # the expressions were read before, so only depth can be amiss
        written = False
    if not written:
        raise InvalidParameterError(
            "This question is asked from so deep within other calls that its SQL might not be written; nothing was"
            " charged.",
            fix="ask it from a place with fewer nested calls, ask a smaller question, or raise sys.setrecursionlimit.",
        )


def _deeper(calls: int, work: Callable[[], _T]) -> _T:
    """What the work gives so many calls deeper."""
    return _deeper(calls - 1, work) if calls else work()


_KEYS = "keys"
_MANY = 1000
_SECRET = RowSampler("a key that is drawn for the release")


def statements(
    plan: Plan,
    rows: Rows,
    by: tuple[str, ...],
    bound: Bound | None,
    keys: Keys | StoredKeys | None,
    *,
    among: Keys | None = None,
) -> tuple[Statement, ...]:
    """The statements of a release in their order.

    Bounds that are yet to be found are shown as 0 and 1, and of keys that are yet to be found there are taken to be
    more than one person may have. Where quotients are measured with a lower bound as well, it is not shown.
    """
    several = range(1 if bound is None else min(bound.people_in, _MANY) + 1)
    shown = keys if keys is not None else Keys(pa.table(dict.fromkeys(by, several)))
    first = first_of_range(keys) if isinstance(keys, Keys) else None
    table = exp.to_table(_KEYS) if by and first is None else None
    sought = _sought(by, among) if keys is None else ()
    called = {"unit": rows.unit or "row", "g": "group", "b": "bucket", "n": "number of rows", "v0": "value"}
    reader = _Reader({**called, **{f"k{i}": name for i, name in enumerate(sought)}})
    return tuple(
        Statement(purpose, rows.engine.written(select), tuple(reader.work(select)))
        for purpose, select in _selects(plan, Groups(rows, by, shown, table, bound, first), find_keys=sought)
    )


def _sought(by: tuple[str, ...], among: Keys | None) -> tuple[str, ...]:
    """The columns whose values are found."""
    return tuple(name for name in by if among is None or name not in among.table.column_names)


def _selects(plan: Plan, groups: Groups, *, find_keys: tuple[str, ...]) -> Iterator[tuple[str, exp.Select]]:
    measuring = Measuring(groups, plan.grid, _SECRET)
    if find_keys:
        sought = replace(measuring, groups=replace(groups, by=find_keys))
        yield "find the keys that enough people have", sought.keys_sql()
    if plan.memberships is not None:
        yield "find in how many groups people are", measuring.contributions_sql(EDGES, groups=True)
    tallied = bool(plan.arrangement.splits) and measuring.is_tallied(plan.arrangement.splits)
    if tallied:
        found = "" if plan.contributions is None else "find how many rows people have, and "
        yield f"{found}sum", measuring.tallies_sql(plan.arrangement.splits)
    elif plan.contributions is not None:
        yield "find how many rows people have", measuring.contributions_sql(EDGES)
    everybody = measuring.everybody()
    for text, finding in plan.findings.items():
        yield f"find the bounds of {text}", everybody.between_sql(text, [float(edge) for edge in finding.edges])
    ranges = dict.fromkeys(plan.findings, (0.0, 1.0))
    if plan.arrangement.splits and not tallied:
        yield "sum", measuring.cells_sql([split.found(ranges) for split in plan.arrangement.splits])
    for name, aggregate in plan.arrangement.apart:
        apart = replace(measuring, grid=plan.grid_of(aggregate))
        search = aggregate.searching(apart)
        if search is not None:
            yield f"find how many values people bring to {name}", search
        yield f"compute {name}", aggregate.found(ranges).statement(apart)


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Puts the work of a statement in words; ``called`` says what people call the columns in it."""

    called: Mapping[str, str]

    def work(self, node: Any, depth: int = 0) -> Iterator[str]:
        """What a query does, then what it does it with; a query that only renames or computes is passed over."""
        if isinstance(node, exp.Subquery):
            yield from self.work(node.this, depth)
        elif not isinstance(node, exp.Select):
            yield f"{'  ' * depth}read the rows"
        else:
            here = list(self._steps(node))
            yield from (f"{'  ' * depth}{step}" for step in here)
            sources = [(node.args.get("from_") or node.args["from"]).this]
            sources += [join.this for join in node.args.get("joins") or () if not _is_keys(join)]
            for inner in sources:
                yield from self.work(inner, depth + bool(here))

    def _steps(self, select: exp.Select) -> Iterator[str]:
        group = select.args.get("group")
        if group is not None:
            yield f"aggregate by {self._names(group.expressions)}"
        if select.args.get("distinct"):
            yield f"keep each {self._names(select.expressions)} once"
        windows = [window for part in select.expressions for window in part.find_all(exp.Window)]
        for names in dict.fromkeys(self._names(window.args.get("partition_by") or []) for window in windows):
            yield f"bring the rows of each {names} together"
        where = select.args.get("where")
        if where is not None and any(AMONG_KEYS in part.meta for part in where.find_all(exp.Between)):
            yield "keep the rows of the public keys"
        for join in select.args.get("joins") or ():
            if _is_keys(join):
                yield "keep the rows of the public keys, which are sent along"
            else:
                same = [part.this for part in join.args["on"].find_all(exp.EQ, exp.NullSafeEQ)]
                yield f"join on {self._names(same)}"

    def _names(self, parts: Sequence[exp.Expression]) -> str:
        names = [part.alias_or_name for part in parts]
        return ", ".join(dict.fromkeys(self.called.get(name, name) for name in names))


def _is_keys(join: exp.Expression) -> bool:
    return isinstance(join.this, exp.Table) and join.this.name == _KEYS
