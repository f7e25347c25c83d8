"""Parts of a table: which column divides it, whether its parts are charged apart, and the rows of some of them.

A part is the rows whose value of one column equals a public constant. Whether a release from one part costs the people
of the others nothing is decided by declared facts alone, and never by looking whether anybody is in two parts:

* one row or event that is added or removed has one value of the column, so it is in one part: *apart*;
* a person's rows may be in many parts, so a release from any part counts for everybody, as any other does, unless the
  owner declares that each person is in one part only: then *apart*, and the promise is written in the ledger;
* what a person has in one period is in the part of that period, and in no other: *apart*;
* a unit that is replaced by another may leave one part for another and be in both releases, so parts are not apart.

Guarantee:
    What is computed from the rows of some parts depends on those units only that have a row of the opened table in
    them. Filters, derived columns and public joins turn one row into at most one of the same unit, and no step can
    replace the column that divides. A private join adds columns of the same person's other rows to rows that are
    there: nobody without a row in the part comes in, whatever other tables hold about them. So do windows over one
    person's rows; rows of each person that groups make are divided no more, since a column of theirs can have any
    name. The rows of another private table are divided by nothing, also when they are joined with those of a part, and
    count for everybody.

    A label is the one text of a value of the column's kind, which the ledger holds fixed, so different labels select
    different rows: 1 and "1" are one label of an integer column, and 1.0 is none. Numbers with a fraction and moments
    divide nothing, since the same value can be written in several ways.
Assumes:
    What :class:`defocus.ledger.Parts` assumes: a row stays in its part, and the owner's promise is true of all data
    that the ledger will ever answer for.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, final

from sqlglot import exp

from defocus.answers import Effect, Rule
from defocus.engines.files import Files
from defocus.engines.schema import Column, Kind, Schema, Value
from defocus.engines.sources import fits
from defocus.engines.syntax import TEXT, column, named, typed
from defocus.errors import InvalidParameterError, WrongKindError
from defocus.ledger import Ledger, Parts
from defocus.ledger.filter import Guard
from defocus.ledger.parts import labels_of
from defocus.privacy.units import Adjacency, Unit
from defocus.tables.rows import Division, Rows

__all__ = [
    "IN_ONE_PART",
    "Declared",
    "described",
    "divided",
    "in_ledger",
    "in_periods",
    "part_rules",
    "parts",
    "restricted",
    "undivided",
    "whats_left",
]


IN_ONE_PART: Final = "in one part"
_KINDS = (Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.BOOLEAN)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TRUTHS = {"true": True, "false": False}
_NAMED = 3
_FORMS = {
    Kind.DATE: 'write it as "2026-11-14".',
    Kind.INTEGER: "write it as 7, in digits alone.",
    Kind.BOOLEAN: "write it as true or false.",
    Kind.TEXT: 'write it as a text, "A".',
}


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """What the owner says about parts. Made by :func:`parts`."""

    column: str
    people: str | None = None


def parts(column: object, *, people: object = None) -> Declared:
    """The column that divides a table into parts, for ``dp.open(…, parts=…)``.

    Args:
        column: a column of texts, whole numbers, dates or truth values, such as the day or the hospital of each row;
            the folders ``day=2026-11-14`` of a partitioned table are one.
        people: ``"in one part"`` if no person ever has rows in two parts: a promise about all data, past and to come,
            that nobody checks. Where it is false, a person can lose several times the budget.

    >>> parts("hospital", people="in one part")
    Declared(column='hospital', people='in one part')
    """
    if not isinstance(column, str) or not column:
        raise InvalidParameterError(
            f"Parts need the name of a column, but got {column!r:.60}.", fix='write parts="day".'
        )
    if people is not None and people != IN_ONE_PART:
        raise InvalidParameterError(
            f"That people are {people!r:.60} says nothing about parts.",
            fix=f'write people="{IN_ONE_PART}" if no person ever has rows in two parts, and leave it out otherwise.',
        )
    return Declared(column, None if people is None else IN_ONE_PART)


def divided(
    said: str | Declared | None, schema: Schema, unit: Unit, files: Files | None = None, own: Schema | None = None
) -> Division | None:
    """How a table is divided, if what was said about it fits its columns and its unit.

    ``files`` are those of the table: where folders divide it, a part reads only its own. ``own`` has the kinds that
    columns are stored as.
    """
    if said is None and unit.period is None:
        return None
    declared = said if isinstance(said, Declared) else parts(unit.period if said is None else said)
    if unit.period is not None and declared != Declared(unit.period):
        raise InvalidParameterError(
            f"The unit is {unit}, so that its parts are those of {unit.period!r:.60}.",
            fix="leave parts= out: each period is a part.",
        )
    column = schema.usable(declared.column)
    stored = column.kind if own is None or column.name not in own else own[column.name].kind
    if stored is not column.kind and stored in {Kind.NUMBER, Kind.TIMESTAMP}:
        raise WrongKindError(
            f"The column {column.name!r:.60} is read as {column.kind} from values of kind {stored}, which engines round"
            " in different ways, so a row could be in two parts.",
            fix="divide by a column that is stored as a date, a whole number or a text.",
        )
    if column.kind not in _KINDS:
        raise WrongKindError(
            f"The column {column.name!r:.60} is of kind {column.kind}, whose values can be written in several ways,"
            " so it cannot divide a table into parts.",
            fix="divide by a column of texts, whole numbers, dates or truth values, such as the day of a moment.",
        )
    folders = files if files is not None and column.name in files.partitions else None
    division = Division(column.name, str(column.kind), files=folders)
    replaced = unit.adjacency is Adjacency.REPLACE
    if unit.period is not None:
        return replace(division, apart="periods")
    if declared.people is None:
        return replace(division, apart="rows") if unit.column is None and not replaced else division
    if unit.column is None or replaced:
        raise InvalidParameterError(
            f"That each person is in one part changes nothing where the unit is {unit}.",
            fix=f'leave people= out: parts="{declared.column}".',
        )
    return replace(division, apart="people")


def in_periods(rows: Rows, unit: Unit) -> Rows:
    """The rows of people, with the period of each and with a column that names the unit: the person and the period.

    Guarantee:
        Two rows have the same name if and only if person and period are the same: the text of the person is written
        with its length before that of the period, and both texts are those of one value. Whatever is bounded for each
        name is then bounded for each unit, also in releases from several periods; a bound for each person would not
        do, since one period more would take weight from the rows of others. A row without a person or a period is
        nobody's.
    """
    assert unit.period is not None  # noqa: S101  # only then are there periods
    if unit.of is not None:
        if rows.schema.usable(unit.of).kind is not Kind.DATE:
            raise WrongKindError(
                f"The column {unit.of!r:.60} holds no dates, so it has no {unit.period}s.",
                fix="name a column of dates, or a column that holds the period itself: leave of= out.",
            )
        day = exp.column(unit.of, quoted=True).sql("duckdb")
        rows = rows.derive({unit.period: f"DATE_TRUNC('{unit.period}', {day})"})
    period, called = rows.schema.usable(unit.period), f"{unit.column} in one {unit.period}"
    if called in rows.schema or period.kind not in _KINDS:
        raise WrongKindError(
            f"{unit.period!r:.60} cannot be the period of {unit.column!r:.60}: it is of kind {period.kind}, or there is"
            f" a column {called!r:.80}.",
            fix="use a column of texts, whole numbers or dates, and no other of that name.",
        )
    person, time = (typed(column(name), TEXT) for name in (rows.unit or "", unit.period))
    text: exp.Expression = typed(exp.Length(this=person.copy()), TEXT)
    for piece in (exp.Literal.string(":"), person, time):
        text = exp.DPipe(this=text, expression=piece, safe=True)
    kept = [column(name) for name in rows.schema.names]
    select = rows.select([*kept, named(text, called)])
    schema = Schema((*rows.schema, Column(called, Kind.TEXT)))
    return replace(rows.made(select, schema, [], [], layers=1), unit=called)


def in_ledger(division: Division | None) -> Parts | None:
    """What the ledger must know; nothing where parts are not charged apart."""
    if division is None or division.apart is None:
        return None
    return Parts(division.column, division.kind, division.apart)


def described(division: Division) -> str:
    """How the rows are divided, for people."""
    charged = in_ledger(division)
    by = f"parts by {division.column} ({division.kind}), of which each is charged to everybody"
    return by if charged is None else str(charged)


def restricted(rows: Rows, values: Sequence[Any]) -> Rows:
    """The rows of the parts that the values name."""
    division = rows.division
    if division is None:
        raise InvalidParameterError(
            "Nothing divides these rows into parts.",
            fix='open the table with parts="day"; another private table has no parts of its own.',
        )
    if division.chosen:
        raise InvalidParameterError(
            f"These are the rows of {division.column} {_named(division.chosen)} already.",
            fix='name all parts at once: part("a", "b").',
        )
    column = Column(division.column, Kind(division.kind))
    constants = [_value(one, column) for one in values]
    if not constants:
        raise InvalidParameterError(
            "No part was named.", fix='write for example part("2026-11-14"); the whole table is asked without part.'
        )
    labels = labels_of(_label(value) for value in constants)
    kept = exp.In(
        this=exp.column(column.name, quoted=True),
        expressions=[_constant(value) for value in {_label(value): value for value in constants}.values()],
    )
    narrowed = replace(rows, relation=_relation(rows, column, labels)).where(kept.sql("duckdb", comments=False))
    words = f"only rows of {division.column} {_named(labels)}"
    return replace(narrowed, words=(*rows.words, words), division=replace(division, chosen=labels))


def _relation(rows: Rows, column: Column, labels: Sequence[str]) -> exp.Expression:
    """The relation without the files of other parts. The condition stays, so it matters to time alone what is left.

    A question about a part does then not change, or fail, with the files of others, and can be recalled when more of
    them have come. Spark's relation stays as it is: its list of files is made once, behind a name.
    """
    files = None if rows.division is None else rows.division.files
    if files is None:
        return rows.relation
    place = files.partitions.index(column.name)
    return files.among(rows.relation, [_may_hold(values[place], column, labels) for values in files.values])


def _may_hold(folder: str | None, column: Column, labels: Sequence[str]) -> bool:
    """Whether a folder of this value may hold rows of the parts; one that is not written as labels are may."""
    if folder is None:
        return False
    try:
        return _label(_value(folder, column)) in labels
    except InvalidParameterError:
        return True


def part_rules(rows: Rows) -> list[Rule]:
    """Who is charged, in words, and which parts had no folder, which is public as the names of folders are."""
    return [] if rows.division is None else [*map(Rule, _charged(rows, rows.division)), *_absent(rows.division)]


def _absent(division: Division) -> list[Rule]:
    """What is said about parts that no folder is called by; nothing where a folder may be another spelling of them."""
    if division.files is None or not division.chosen:
        return []
    place = division.files.partitions.index(division.column)
    column = Column(division.column, Kind(division.kind))
    try:
        there = {
            _label(_value(value, column)) for values in division.files.values if (value := values[place]) is not None
        }
    except InvalidParameterError:
        return []
    named = [f"{division.column}={label}" for label in division.chosen if label not in there]
    said = "was there when the table was opened, so no row is there; if it has come since, open the table again"
    return [Rule(f"no folder {_named(named)} {said}", Effect.TOLD)] if named else []


def _charged(rows: Rows, division: Division) -> list[str]:
    if division.apart is None:
        person = "row may move from one part to another" if rows.unit is None else f"{rows.unit} may be in several"
        return [f"parts by {division.column} are charged to everybody, since one {person}"] if division.chosen else []
    why = {
        "rows": "each row is in one part",
        "people": "the owner declares that each is in one part only",
        "periods": f"what a person has in another {division.column} has a budget of its own",
    }[division.apart]
    if not division.chosen:
        return [f"all parts by {division.column} are charged; table.part(…) charges one of them"]
    person = "row" if rows.unit is None else rows.unit
    return [f"only each {person} of {division.column} {_named(division.chosen)} is charged, and no other: {why}"]


def _named(labels: Sequence[str]) -> str:
    more = len(labels) - _NAMED
    return f"{', '.join(labels[:_NAMED])}{f' and {more} more' if more > 0 else ''}"


def _value(given: object, column: Column) -> Value:
    """A public constant of the column's kind, from the value itself or from its one text."""
    value = given
    if isinstance(given, str):
        if column.kind is Kind.INTEGER and _INTEGER.fullmatch(given):
            value = int(given)
        elif column.kind is Kind.BOOLEAN:
            value = _TRUTHS.get(given, given)
        elif column.kind is Kind.DATE and _DAY.fullmatch(given):
            value = _day(given)
    if not fits(value, column.kind):
        raise InvalidParameterError(
            f"{given!r:.60} is no value of the {column.kind} column {column.name!r:.60}, so it names no part.",
            fix=_FORMS[column.kind],
        )
    return value  # type: ignore[return-value]  # it fits


def _constant(value: Value) -> exp.Expression:
    """A value as a condition on a row writes it."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value)
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.Literal.string(str(value))


def _day(text: str) -> object:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


def _label(value: Value) -> str:
    """The one text of a value."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def whats_left(division: Division | None, ledger: Ledger) -> list[str]:
    """Whom the ledger protects and what is left; where there are parts, for whom.

    Of a table that is restricted to some parts, what is left for the heaviest of them.
    """
    protects, tally = f"protects {ledger.unit}", ledger.tally()
    if division is None or division.apart is None or tally is None:
        divided = [] if division is None else [f"in {described(division)}"]
        return [f"{protects}; {ledger.remaining()}", *divided, *undivided(division, ledger)]
    if division.chosen:
        return [f"{protects}; left for these parts: {ledger.remaining(*division.chosen)}", f"in {described(division)}"]
    fresh = Guard.of(ledger.terms).remaining(tally.common)
    return [
        f"{protects}; left for everybody: {ledger.remaining()}",
        f"in {described(division)}; left for a part that was not charged yet: {fresh}",
    ]


def undivided(division: Division | None, ledger: Ledger) -> list[str]:
    """That a ledger counts parts apart, and the table is opened without them. This is sound, and wastes budget."""
    parts = ledger.terms.parts
    if parts is None or in_ledger(division) is not None:
        return []
    column = json.dumps(parts.column, ensure_ascii=False)
    said = f'parts=dp.parts({column}, people="{IN_ONE_PART}")' if parts.apart == "people" else f"parts={column}"
    return [f"the ledger has {parts}; rows opened without these parts are charged to everybody: declare {said}"]
