"""Answers that the ledger has paid for already, as measurements that synthetic data get free of charge.

Guarantee:
    What was released may be computed with: using it again is post-processing and costs nothing. Only answers whose
    receipt is of the same ledger are taken, so nothing comes in that was not paid for there.
Assumes:
    An answer counts the same rows as the synthesis. Where people have several rows, counts are bounded in different
    ways, so only tables in which each row is a unit are served.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from defocus.answers import Released
from defocus.answers.columns import AnswerColumn
from defocus.errors import InvalidParameterError
from defocus.synthesis.domains import Domain
from defocus.synthesis.targets import Noisy
from defocus.tables import Table

__all__ = ["measurements"]

_MOST = 3
"""Counts of more columns at once are not used."""
_ALL = "all"
"""What stands for all values together in an answer about several sets of columns."""


def measurements(answers: Sequence[Any], table: Table, domains: Sequence[Domain]) -> dict[tuple[int, ...], list[Noisy]]:
    """The counts in these answers by codes, for each set of columns; NaN where an answer does not tell."""
    found: dict[tuple[int, ...], list[Noisy]] = {}
    for answer in answers:
        for columns, noisy in _told(answer, table, domains).items():
            found.setdefault(columns, []).append(noisy)
    return found


def _told(answer: Any, table: Table, domains: Sequence[Domain]) -> dict[tuple[int, ...], Noisy]:
    """The counts of each set of columns that an answer tells; of a cube, those of the largest sets."""
    _check(answer, table)
    names = list(answer.keys)
    places = {domain.name: i for i, domain in enumerate(domains) if not domain.found}
    rows = list(zip(*(answer.keys[name].to_pylist() for name in names), strict=True))
    whole = frozenset(range(len(names)))
    cube = answer.question.startswith(_CUBE)
    about = [frozenset(i for i, key in enumerate(row) if key != _ALL) if cube else whole for row in rows]
    found: dict[tuple[int, ...], Noisy] = {}
    for chosen in _largest(about):
        if len(chosen) > _MOST or any(names[i] not in places for i in chosen):
            continue
        own = sorted(chosen, key=lambda i: places[names[i]])
        columns = tuple(places[names[i]] for i in own)
        entries = [entry for entry, there in enumerate(about) if there == chosen]
        keys = [tuple(rows[entry][i] for i in own) for entry in entries]
        noisy = _counted(keys, answer.columns[0], entries, [domains[place] for place in columns])
        found |= {} if noisy is None else {columns: noisy}
    if not found:
        raise _unused("has no column with declared values in common", "declare the values of its columns")
    return found


def _counted(
    keys: Sequence[tuple[Any, ...]], column: AnswerColumn, entries: Sequence[int], domains: Sequence[Domain]
) -> Noisy | None:
    """These entries of an answer as counts by codes, with their mean variance; None where it is not known."""
    known = [_codes(domain) for domain in domains]
    counts, variances = np.full([domain.size for domain in domains], np.nan), []
    for key, entry in zip(keys, entries, strict=True):
        codes = tuple(code.get(value) for code, value in zip(known, key, strict=True))
        if None not in codes:
            counts[codes] = column.values[entry]
            variances.append(float(column.spread[entry]) ** 2)
    if not variances or not np.isfinite(variances).all():
        return None
    return Noisy(counts, max(float(np.mean(variances)) ** 0.5, 1e-3))


def _check(answer: Any, table: Table) -> None:
    """Refuse what is no plain count of all rows, paid for by the same ledger."""
    if not isinstance(answer, Released) or answer.receipt.terms.id != table.ledger.terms.id:
        raise _unused("is not of this ledger", "give what release() or sql() returned for the same table")
    if answer.receipt.terms.dataset != table.ledger.about(*table.rows.charged).terms.dataset:
        raise _unused("is about another data set", "give answers about the same table")
    if table.rows.unit is not None and not table.rows.single:
        raise _unused("bounds people in its own way", "use released answers where each row is a unit")
    if not _counts_all(answer, list(answer.keys), table):
        raise _unused(
            "is no plain count of all rows by columns",
            "give counts by group, cubes, or SELECT …, COUNT(*) … GROUP BY …, of the same table, without a filter",
        )


_CUBE = "number of rows, by all combinations of at most "


def _counts_all(answer: Released, names: Sequence[str], table: Table) -> bool:
    """Whether an answer counts all rows by these columns, told by its question."""
    if not names or len(answer.columns) != 1 or answer.processing:
        return False
    steps = f"; {'; '.join(table.rows.words)}" if table.rows.words else ""
    listed = ", ".join(names)
    cubes = {f"{_CUBE}{ways} of {listed}{steps}" for ways in range(1, len(names) + 1)}
    if answer.question in {f"number of rows as {answer.columns[0].name}, by {listed}{steps}", *cubes}:
        return True
    return not steps and _plain(answer.question, names, table.ledger.about(*table.rows.charged).terms.dataset)


def _plain(statement: str, names: Sequence[str], dataset: str) -> bool:
    """Whether SQL counts all rows of one table by its columns."""
    try:
        read = sqlglot.parse_one(statement)
    except sqlglot.errors.SqlglotError:
        return False
    if not isinstance(read, exp.Select):
        return False
    parts = {name for name, part in read.args.items() if part}
    shown = [one.unalias() for one in read.expressions]
    counts = [one for one in shown if isinstance(one, exp.Count) and isinstance(one.this, exp.Star)]
    keys = [one.name for one in shown if isinstance(one, exp.Column)]
    source = read.args.get("from_") or read.args.get("from")
    plain = source is not None and isinstance(source.this, exp.Table) and not any(source.this.args.get("joins") or ())
    tables = [one.name for one in read.find_all(exp.Table)]
    allowed = {"expressions", "from", "from_", "group", "kind"}
    return parts <= allowed and len(counts) == 1 and keys == list(names) and plain and tables == [dataset]


def _codes(domain: Domain) -> Mapping[Any, int]:
    """The code of each value that an answer may name."""
    values: Sequence[Any] = domain.values
    if domain.edges and domain.step is not None:
        ends = np.array(domain.edges)
        if np.allclose(np.diff(ends), domain.step):
            values = [round(end + domain.step / 2, 9) for end in domain.edges[:-1]]
    found: dict[Any, int] = {value: code for code, value in enumerate(values)}
    written = {str(value).lower() if isinstance(value, bool) else str(value): code for value, code in found.items()}
    return {None: domain.missing} | written | found


def _largest(sets: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The sets that are part of no other: counts of the others follow from theirs."""
    every = {one for one in sets if one}
    return sorted((one for one in every if not any(one < other for other in every)), key=sorted)


def _unused(what: str, fix: str) -> InvalidParameterError:
    return InvalidParameterError(f"A released answer {what}.", fix=f"{fix}.")
