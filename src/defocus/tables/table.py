"""A private table: what questions are built from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, final

from defocus.answers import Released
from defocus.engines.schema import Schema
from defocus.errors import InvalidParameterError, NotDeclaredError, Number
from defocus.ledger import Ledger, Remaining
from defocus.noise import Bits
from defocus.tables.aggregates import Aggregate
from defocus.tables.consent import Consent, consented_purpose
from defocus.tables.contribution import DEFAULT_ROWS, Bound, fitting
from defocus.tables.cubes import Cube
from defocus.tables.display import columns_page, groups_words, question_page
from defocus.tables.examples import Examples, examples_of
from defocus.tables.grouping_sets import GroupingSets
from defocus.tables.hierarchy import Invariants, declared_leaves, leaves, unprotected
from defocus.tables.inference import Asked, chi_squared, independent, mean_test, rank_test, survival
from defocus.tables.keys import (
    DECLARED,
    EVERYTHING,
    Keys,
    StoredKeys,
    declared_keys,
    in_memory,
    is_stored,
    key_columns,
    named_keys,
    public_keys,
    stored_keys,
)
from defocus.tables.parts import restricted, whats_left
from defocus.tables.person_features import derived, per_person
from defocus.tables.planner import plan_measurements
from defocus.tables.query import Query
from defocus.tables.reading import Reading
from defocus.tables.rows import Rows, join_private, join_public
from defocus.tables.splits import Argument
from defocus.tables.sql import Catalogue, SqlQuery, read
from defocus.tables.statistics import count
from defocus.tables.top import most_frequent

__all__ = ["Grouped", "Table"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Private rows with the ledger that answers for them. Made by ``dp.open``; every method returns a new table.

    Nothing here looks at a row: filters, derived columns, joins and groups are only written down.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> visits = examples.visits()
    >>> print(visits.where("age >= 40").agg(people=dp.count_units()).preview(epsilon=0.5).columns[0].error)
    2.8284271247461903
    >>> visits.close()
    """

    rows: Rows
    ledger: Ledger
    name: str
    contribution: Bound | None = None
    others: Mapping[str, Rows] = field(default_factory=dict)
    """Other private tables about the same people."""
    public: Mapping[str, Any] = field(default_factory=dict)
    """Public tables that may be joined by name."""
    invariants: Invariants | None = None
    """Which totals may be held exactly."""
    consent: Consent | None = None
    """Who consents to which purpose, where questions are still to be restricted to those who do."""

    def __post_init__(self) -> None:
        fitting(self.contribution, people=self.rows.unit is not None)
        if (self.rows.unit is None) != (self.ledger.unit.column is None):
            raise InvalidParameterError(
                f"The ledger protects {self.ledger.unit}, but these rows are counted as"
                f" {'rows of their own' if self.rows.unit is None else f'those of a {self.rows.unit}'}.",
                fix="open the table with dp.open, which brings both together.",
            )

    @property
    def schema(self) -> Schema:
        """The columns, what they hold, and what was declared about them."""
        return self.rows.schema

    def declare(self, **facts: Any) -> "Table":
        """Public facts about columns: ``declare(days=(0, 30), ward=["A", "B"])``, never looked up in the data."""
        return replace(self, rows=replace(self.rows, schema=self.schema.declare(facts)))

    def where(self, condition: str) -> "Table":
        """Only the rows for which a condition holds: ``where("age >= 18 AND ward <> 'X'")``."""
        return replace(self, rows=self.rows.where(condition))

    def for_purpose(self, purpose: str) -> "Table":
        """Only the rows of those who consent to a purpose, for which alone it can be released then.

        Needed where the table was opened with ``consent=``: nothing can be asked of it before. See
        :mod:`defocus.tables.consent` for the proof that no sensitivity changes.

        >>> import tempfile
        >>> import pyarrow as pa
        >>> import defocus as dp
        >>> home = tempfile.TemporaryDirectory()
        >>> people = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
        >>> willing = pa.table({"person": range(500), "purpose": ["research"] * 500})
        >>> how = {"unit": dp.user("person"), "budget": dp.Budget(9), "ledger": f"{home.name}/a", "name": "visits"}
        >>> visits = dp.open(people, consent=willing, **how)
        >>> answer = visits.for_purpose("research").agg(people=dp.count_units()).release(epsilon=9)
        >>> abs(answer.value - 500) < 10, answer.receipt.purpose
        (True, 'research')
        >>> visits.close(); home.cleanup()
        """
        if self.consent is None:
            return replace(self, ledger=self.ledger.only_for(consented_purpose(purpose)))
        why, consent = consented_purpose(purpose), self.consent
        return replace(
            self,
            rows=consent.restricted(self.rows, why),
            others={name: consent.restricted(rows, why) for name, rows in self.others.items()},
            ledger=self.ledger.only_for(why),
            consent=None,
        )

    def part(self, *values: Any) -> "Table":
        """Only the rows of some parts: ``part("2026-11-14")``, or several values of the column that divides the table.

        Where the unit allows it, a release from them is charged to these parts and costs the others nothing; it is
        said in ``preview`` and ``explain``. See ``dp.open(…, parts=…)``.
        """
        return replace(self, rows=restricted(self.rows, values))

    def derive(self, **columns: str) -> "Table":
        """More columns, each computed from the same row: ``derive(decade="age // 10")``.

        Window functions look at the other rows of the same person, by whom they are always partitioned:
        ``derive(gap="DATE_DIFF('day', LAG(day) OVER (ORDER BY day), day)")``.
        """
        return replace(self, rows=derived(self.rows, columns))

    def rename(self, names: Mapping[str, str]) -> "Table":
        """The same table with other names for some columns: ``rename({"dep_delay": "delay"})``."""
        return replace(self, rows=self.rows.renamed(names))

    def per_person(self, *by: str, **features: str) -> "Table":
        """One row for each person, with features of all rows of that person; for ``by``, for each of these values.

        Features are exact aggregates, written as text: ``per_person(visits="COUNT(*)", cost="SUM(cost)")``. They are
        private columns like all others, and nothing is released. A person is one row afterwards, so no bound on
        contributions is needed; with ``by``, as in ``per_person("ward", visits="COUNT(*)")``, a person may have
        several rows, and the bound is that of the table.
        """
        names = _names(by, "per_person", fix="name a column.") if by else ()
        return replace(self, rows=per_person(self.rows, names, features))

    def other(self, name: str) -> "Table":
        """Another private table about the same people, which charges the same ledger."""
        if name not in self.others:
            names = ", ".join(self.others) or "none"
            raise InvalidParameterError(
                f"There is no other private table {name!r:.60}.",
                fix=f"open it with private={{…}} or name it in the dataset file; known: {names}.",
            )
        return replace(self, rows=self.others[name], name=name, contribution=None, invariants=None)

    def join(self, other: Any, *, on: str | list[str] | Mapping[str, str], how: str = "left") -> "Table":
        """Columns of another table: a public one that has each key once, or a private one of the same people.

        Args:
            other: the name of a table that was opened beside this one, what :meth:`other` returned, or a public
                table: a path or a frame.
            on: the columns that both have, or where they are called otherwise there, ``{"dest": "faa"}``. For a private
                table the one that names the person must be among them.
            how: ``left`` keeps rows without a match, ``inner`` drops them.
        """
        if isinstance(other, str) and other in self.others:
            return _of(self, join_private(self.rows, self.others[other], on, how))
        if isinstance(other, Table):
            return _of(self, join_private(self.rows, other.rows, on, how))
        source = self.public[other] if isinstance(other, str) and other in self.public else other
        return replace(self, rows=join_public(self.rows, source, on, how))

    def bound(
        self,
        *,
        rows: int | str | None = None,
        groups: int | None = None,
        per_group: int | None = None,
        by: str = "weights",
        most: int | None = None,
    ) -> "Table":
        """What one person may contribute: rows in all, groups, and rows in each group.

        By default, and with ``rows="find"``, a part of what a question costs finds the number of rows with the least
        error: a fifth for a hundred groups, up to two fifths for one, and half of that where means alone are asked for.

        With any bound that is found, a few people with very many rows may hide in the noise, so intervals have open
        ends: "or more". ``most`` closes them: the number of rows that nobody has more than, as the owner knows without
        looking at the data. It is not checked; intervals rest on it, and no promise of privacy does.
        """
        bound = Bound.of(rows=rows, groups=groups, per_group=per_group, by=by, most=most)
        return replace(self, contribution=bound)

    def group_by(self, *columns: str | Sequence[str], keys: Any = DECLARED, sets: Any = None) -> "Grouped":
        """Groups of rows with equal values.

        Args:
            columns: what to group by, as names or as one list of names.
            keys: which groups to show: a list of values (or of tuples, for several columns), a dict with one
                list for each column, a public table, or None to find them privately, which needs a delta. In a dict,
                None finds the values of that column, each of which is shown with all values of the others. A public
                table may be a path, an Arrow dataset, a Spark frame or the name of one that was opened beside this:
                the engine reads it, however long it is. Unless given, the domains declared for the columns.
            sets: several sets of groups, released together so that totals are the sums of their parts: ``"rollup"``,
                ``"cube"``, or a list of lists of columns such as ``[["ward"], []]``. The key of a total is ``"all"``.
        """
        names = _names(columns, "group_by", fix="name one, or ask agg() of the whole table.")
        chosen = key_columns(self.schema.usable(name) for name in names)
        several = None if sets is None else GroupingSets.of(names, sets)
        if isinstance(keys, str) and keys == DECLARED:
            return Grouped(self, names, declared_keys(chosen), sets=several)
        named = self.public.get(keys, keys) if isinstance(keys, str) else keys
        if is_stored(named):
            stored = stored_keys(self.rows.engine, chosen, named)
            return Grouped(self, names, stored if several is None else in_memory(stored), sets=several)
        return Grouped(self, names, *named_keys(chosen, named), sets=several)

    def hierarchy(
        self,
        *columns: str | Sequence[str],
        keys: Any = DECLARED,
        invariants: Sequence[str] = (),
        share: Mapping[str, Number] | None = None,
    ) -> Query:
        """The numbers of rows at each level of a tree, as whole numbers that are not negative and add up.

        Guarantee:
            As for every question, but for ``invariants``: these totals are exact, and nothing protects them. Of two
            tables that agree in them and differ in one row, the odds of any answer differ as the charge says.

        Args:
            columns: the levels from the top: ``hierarchy("state", "county", "tract")``. Above them is the total.
            keys: the leaves, with all that is above them: a public table, or as for :meth:`group_by`. Levels that
                these rows do not have are taken from it, by those that they have.
            invariants: levels whose totals are held exactly, of those that the owner declared in the ledger
                (:class:`Invariants`) and that were repeated when the table was opened; ``"all"`` is the grand total.
                Only where a row is a person.
            share: parts of the budget by level; by default those with the least sum of mean squared errors.
        """
        names = _names(columns, "hierarchy", fix="name the levels, from the top.")
        sets = replace(GroupingSets.of(names, "rollup"), whole=True).holding(invariants)
        if invariants:
            keys = declared_leaves(self.invariants, self.ledger.invariants, names, keys, invariants)
        own, groups, paths = leaves(self.rows, names, keys)
        sets = replace(sets, paths=paths)
        if share is not None:
            sets = sets.divided(share)
        return _query(self, own, groups, {"count": count()}, sets=sets)

    def cube(self, *columns: str | Sequence[str], ways: int | None = None) -> Cube:
        """The numbers of rows by all combinations of at most ``ways`` columns, measured together.

        The columns need declared domains. All combinations by default.
        """
        names = _names(columns, "cube", fix="name at least one with a declared domain.")
        _without_consent(self)
        chosen = key_columns(self.schema.usable(name) for name in names)
        bound = _bounded(self)
        if bound is not None and bound.find and self.contribution is None:
            bound = Bound(rows=DEFAULT_ROWS)
        if bound is not None and bound.find:
            raise InvalidParameterError("A cube needs a bound that is known.", fix="give it with bound(rows=…).")
        book = self.ledger.about(*self.rows.charged)
        return Cube(self.rows, book, bound, chosen, len(names) if ways is None else ways)

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Query:
        """What is asked of all rows together, each aggregate under the name of its column."""
        return _query(self, (), EVERYTHING, _named(unnamed, aggregates))

    def top(self, column: str, number: int, *, keys: Any = DECLARED, counts: bool = False) -> Query:
        """The ``number`` most frequent values of a column, each with its rank: ``top("diagnosis", 5)``.

        They are read from noisy counts of all values, or chosen one after the other without any count, whichever errs
        less as far as is known beforehand: mostly a choice for one value, and counts for several.

        Args:
            column: the column.
            number: how many values.
            keys: which values there are, as for :meth:`group_by`.
            counts: whether counts are wanted, even where a choice without them would err less.
        """
        return _top(self.group_by(column, keys=keys), number, counts=counts)

    def mode(self, column: str, *, keys: Any = DECLARED, counts: bool = False) -> Query:
        """The most frequent value of a column: :meth:`top` with one value."""
        return self.top(column, 1, keys=keys, counts=counts)

    def ttest(
        self,
        column: str,
        low: Number | None = None,
        high: Number | None = None,
        *,
        by: str | None = None,
        keys: Any = DECLARED,
        mean: Number | None = None,
        bounds: Any = None,
        level: Number = 0.05,
    ) -> Query:
        """A t test: whether the means of two groups differ (Welch), or one mean from a value.

        Args:
            column: the column, whose values are clipped to [``low``, ``high``].
            low: the least value; as declared by default.
            high: the largest value.
            by: the column that names the groups, of which two are declared or named.
            keys: the two groups, first and second.
            mean: without ``by``, the value that the mean is compared with.
            bounds: both bounds in one.
            level: the p-value up to which a difference is claimed.
        """
        groups = None if by is None else self.group_by(by, keys=keys)
        argument = Argument.of(column, low, high, bounds)
        asked = mean_test(self.rows, argument, by, None if groups is None else groups.known, mean=mean, level=level)
        return _inferred(self, groups, asked)

    def chi2(
        self,
        column: str,
        other: str | None = None,
        *,
        expected: Mapping[Any, Number] | None = None,
        level: Number = 0.05,
    ) -> Query:
        """A chi-squared test: whether two columns are independent, or the values of one have the shares ``expected``.

        The columns need declared domains. Shares are for each value, any numbers that are divided by their sum; equal
        ones by default.
        """
        names = [column] if other is None else [column, other]
        asked = chi_squared(names, [self.group_by(name).known for name in names], expected, level)
        return _inferred(self, self.group_by(names), asked)

    def rank_test(
        self,
        column: str,
        low: Number | None = None,
        high: Number | None = None,
        *,
        by: str,
        keys: Any = DECLARED,
        bounds: Any = None,
        steps: int = 16,
        level: Number = 0.05,
    ) -> Query:
        """Mann and Whitney's test: whether values of one of two groups tend to be larger.

        Values are read on a public grid of ``steps`` between the bounds; those in one step are tied. Groups and bounds
        are given as for :meth:`ttest`.
        """
        groups, argument = self.group_by(by, keys=keys), Argument.of(column, low, high, bounds)
        return _inferred(self, groups, rank_test(self.rows, argument, by, groups.known, steps=steps, level=level))

    def survival(
        self, time: str, event: str, horizon: Number, *, steps: int = 20, by: str | None = None, keys: Any = DECLARED
    ) -> Query:
        """A Kaplan–Meier curve: the share of people to whom an event has not happened, by time, with its median.

        Args:
            time: until when a person was watched: to the event, or to where nothing more is known (censored).
            event: a truth value, whether the event happened then.
            horizon: up to when; what is later counts as not happened before it.
            steps: how many equal steps of time.
            by: a column of groups, each with a curve of its own.
            keys: which groups, as for :meth:`group_by`.
        """
        names = [event] if by is None else [by, event]
        asked = survival(self.rows, time, event, horizon, steps=steps, by=by)
        groups = self.group_by(event, keys=[False, True])
        if by is not None:
            outer = self.group_by(by, keys=keys).known
            if outer is None:
                raise NotDeclaredError(f"Nobody declared the groups of {by!r:.60}.", fix='name them: keys=["A", "B"].')
            groups = self.group_by(names, keys={by: outer.table.column(0).to_pylist(), event: [False, True]})
        return _inferred(self, groups, asked)

    def examples(self, inputs: str | Sequence[str], target: str | None = None, *, group: str | None = None) -> Examples:
        """Private rows for a model: ``examples(["age", "days"], "readmitted")``, to ``fit`` or to train with.

        The model takes the ledger, the unit, whose each row is, and declared bounds and values from the table. All
        rows of a person count, each as one over their number; what ``bound`` says is about questions.

        Args:
            inputs: columns of numbers or truth values; NULL is missing.
            target: the column to predict.
            group: the column by which :func:`defocus.learning.evaluate` compares groups.
        """
        names = _names([inputs], "examples", fix="name the inputs of the model.")
        _without_consent(self)
        return examples_of(self.rows, self.ledger.about(*self.rows.charged), names, target, group)

    def synthesise(self, *, epsilon: Number, delta: Number | None = None, **asked: Any) -> Any:
        """Synthetic rows of this table: :func:`defocus.synthesis.synthesise`, which says what else may be asked.

        With ``order=``, people with all their rows: :func:`defocus.synthesis.synthesise_people`.

        >>> import tempfile
        >>> import pyarrow as pa
        >>> import defocus as dp
        >>> home = tempfile.TemporaryDirectory()
        >>> people = pa.table({"ward": ["A", "B"] * 500})
        >>> how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-6), "ledger": f"{home.name}/a", "name": "visits"}
        >>> with dp.open(people, columns={"ward": ["A", "B"]}, **how) as table:
        ...     made = table.synthesise(epsilon=2, delta=1e-6)
        >>> made.sample(3).schema.names
        ['ward']
        >>> home.cleanup()
        """
        room = import_module("defocus.synthesis")  # a floor above this one, which is loaded when it is asked for
        make = room.synthesise_people if "order" in asked else room.synthesise
        return make(self, epsilon=epsilon, delta=delta, **asked)

    def sql_query(
        self,
        text: str,
        *,
        keys: Any = DECLARED,
        bounds: str | None = None,
        at_most: int | None = None,
        intervals: bool = False,
        dialect: str = "duckdb",
    ) -> SqlQuery:
        """A SELECT as a question, to preview, plan or release; it may name this table and those opened beside it.

        Args:
            text: ``SELECT … FROM name [JOIN …] [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT n]``.
            keys: which groups to show, as for :meth:`group_by`. Unless given: those that WHERE lists, the declared
                domains, or those that are found, which needs a delta.
            bounds: "find" to pay for finding bounds that nobody declared.
            at_most: how many different values one person brings to a COUNT(DISTINCT …); found privately by default.
            intervals: whether MEDIAN and the like are to have intervals, as :func:`.quantile` says; they err more then.
            dialect: which SQL it is, such as "postgres" or "spark".
        """

        def ask(  # noqa: PLR0917  # as the reader of SQL calls it
            rows: Rows,
            own: bool,
            by: tuple[str, ...],
            groups: Keys | None,
            aggregates: Mapping[str, Aggregate],
            sets: GroupingSets | None,
        ) -> Query:
            table = _of(self, rows) if own else replace(self, rows=rows, contribution=None)
            return _query(table, by, groups, aggregates, sets=sets)

        catalogue = Catalogue(self.name, self.rows, self.others, self.public)
        how: dict[str, Any] = {"bounds": bounds, "at_most": at_most, "intervals": intervals, "dialect": dialect}
        return read(text, catalogue, ask, keys=keys, **how)

    def sql(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
        **how: Any,
    ) -> Released:
        """Release a SELECT: :meth:`sql_query`, which takes the remaining arguments, and its ``release``.

        Where people consent to purposes, it is about those who consent to ``purpose``.
        """
        table = self if self.consent is None else self.for_purpose(consented_purpose(purpose))
        return table.sql_query(text, **how).release(
            epsilon=epsilon, delta=delta, purpose=purpose, who=who, request=request, bits=bits, progress=progress
        )

    def remaining(self) -> Remaining:
        """What is left of the budget, for those whom these rows are about."""
        return self.ledger.remaining(*self.rows.charged)

    def close(self) -> None:
        """Close the engine and the ledger."""
        self.rows.engine.close()
        self.ledger.close()

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Table({self.name!r}: {', '.join(self.schema.names)}; protects {self.ledger.unit})"

    def __str__(self) -> str:
        columns = ", ".join(f"{column.name} ({column.kind})" for column in self.schema)
        return "\n".join([f"{self.name}: {columns}", *whats_left(self.rows.division, self.ledger)])

    def _repr_html_(self) -> str:
        return columns_page(self.name, self.rows, self.ledger, _bounded(self))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A table in groups. Made by :meth:`Table.group_by`.

    >>> from defocus import examples
    >>> visits = examples.visits()
    >>> visits.group_by("age", keys=range(30, 70))
    Grouped('visits' by age: 40 groups)
    >>> visits.close()
    """

    table: Table
    by: tuple[str, ...]
    keys: Keys | StoredKeys | None
    among: Keys | None = None
    """Where keys are found, those columns of them that were named."""
    sets: GroupingSets | None = None

    @property
    def known(self) -> Keys | None:
        """The keys in memory, for what looks at them one by one; None where they are to be found."""
        return in_memory(self.keys)

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Query:
        """What is asked of each group, each aggregate under the name of its column."""
        return _query(self.table, self.by, self.keys, _named(unnamed, aggregates), among=self.among, sets=self.sets)

    def top(self, column: str, number: int, *, keys: Any = DECLARED, counts: bool = False) -> Query:
        """The ``number`` most frequent values of a column in each group: see :meth:`Table.top`."""
        values = self.table.group_by(column, keys=keys)
        names = (*self.by, column)
        columns = key_columns(self.table.schema.usable(name) for name in names)
        both, own, theirs = None, self.known, values.known
        if own is not None and theirs is not None:
            outer, inner = ([tuple(row.values()) for row in part.table.to_pylist()] for part in (own, theirs))
            both = public_keys(columns, [(*group, *value) for group in outer for value in inner])
        candidates = None if theirs is None else theirs.number
        return _top(Grouped(self.table, names, both), number, counts=counts, candidates=candidates)

    def mode(self, column: str, *, keys: Any = DECLARED, counts: bool = False) -> Query:
        """The most frequent value of a column in each group: :meth:`top` with one value."""
        return self.top(column, 1, keys=keys, counts=counts)

    def __repr__(self) -> str:
        groups = "groups to be found" if self.keys is None else self.keys.words
        return f"Grouped({self.table.name!r} by {', '.join(self.by)}: {groups})"

    def _repr_html_(self) -> str:
        table, groups = self.table, groups_words(self.by, self.keys)
        return question_page(f"{table.name}, in groups", table.rows, table.ledger, _bounded(table), groups)


def _named(unnamed: Sequence[object], aggregates: Mapping[str, Aggregate]) -> Mapping[str, Aggregate]:
    if unnamed:
        raise InvalidParameterError("Each column of an answer needs a name.", fix="write agg(visits=dp.count()).")
    return aggregates


def _names(columns: Sequence[str | Sequence[str]], what: str, *, fix: str) -> tuple[str, ...]:
    """The names of columns, given one by one or as one list."""
    listed = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    names = tuple(name for name in listed if isinstance(name, str))
    if len(names) != len(listed):
        raise InvalidParameterError(
            f"{what} takes the names of columns, as text.", fix=f'write {what}("ward", "year") or {what}(["ward"]).'
        )
    if not names:
        raise InvalidParameterError(f"{what} needs a column.", fix=fix)
    return names


def _top(grouped: Grouped, number: int, *, counts: bool, candidates: int | None = None) -> Query:
    table, by, keys = grouped.table, grouped.by, grouped.known
    found = None if keys is None else keys.number if candidates is None else candidates
    measured, reading = most_frequent(by, found, number, _bounded(table), counts=bool(counts))
    return _query(table, by, keys, measured, reading)


def _inferred(table: Table, groups: Grouped | None, asked: Asked) -> Query:
    """A question that is read from independent rows."""
    bound = independent(table.contribution, table.rows.unit, table.ledger.unit)
    by, keys = ((), EVERYTHING) if groups is None else (groups.by, groups.known)
    return _query(replace(table, contribution=bound), by, keys, *asked)


def _query(
    table: Table,
    by: tuple[str, ...],
    keys: Keys | StoredKeys | None,
    aggregates: Mapping[str, Aggregate],
    reading: Reading | None = None,
    *,
    among: Keys | None = None,
    sets: GroupingSets | None = None,
) -> Query:
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise InvalidParameterError(
                f"{name} is {type(aggregate).__name__}, not something to ask.",
                fix=f"write for example agg({name}=dp.count()).",
            )
    _without_consent(table)
    if sets is not None and sets.exact:
        unprotected(table.rows, table.ledger.unit)
    bound = _bounded(table)
    weights: dict[str, Number] = {}
    return Query(
        rows=table.rows,
        ledger=table.ledger.about(*table.rows.charged),
        bound=bound,
        by=by,
        keys=keys,
        arrangement=plan_measurements(table.rows, aggregates),
        weights=weights,
        reading=reading,
        among=among,
        sets=sets,
        layout=None if sets is None else sets.over(in_memory(keys)),
    )


def _without_consent(table: Table) -> None:
    """Refuse to ask about people whose consent was not looked at."""
    if table.consent is not None:
        consented_purpose(None)


def _of(table: Table, rows: Rows) -> Table:
    """The table with other rows; of one row that may have become many, nobody knows how many one person has."""
    bound = table.contribution
    if bound is not None and rows.multiplied and not table.rows.multiplied:
        bound = replace(bound, most=None)
    return replace(table, rows=rows, contribution=bound)


def _bounded(table: Table) -> Bound | None:
    """What one person may contribute; the default where nobody said, nothing where each row is a unit.

    Where a person is one row, that is all there is to bound, whatever was said about more of them.
    """
    if table.rows.single:
        return Bound(rows=1)
    if table.contribution is None and table.rows.unit is not None:
        return Bound(find=True)
    return table.contribution
