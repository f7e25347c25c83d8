import pytest

from defocus.errors import UnsupportedSqlError
from defocus.tables import Kind
from defocus.tables.expressions.terms import Term, made, null, of


def test_a_term_made_of_parts_reads_their_columns_and_costs_their_work() -> None:
    a = Term(Kind.TEXT, of("x", Kind.TEXT).sql, columns=frozenset({"a"}), work=3, texts=1, extra=2)
    b = Term(Kind.TEXT, of("y", Kind.TEXT).sql, columns=frozenset({"b"}), work=5, texts=2)
    term = made(Kind.TEXT, a.sql, a, b, twice=a)
    assert (term.columns, term.work, term.texts, term.extra) == (frozenset({"a", "b"}), 12, 2, 2)
    assert made(Kind.BOOLEAN, a.sql, a, b).texts == 0


def test_too_much_work_is_refused() -> None:
    a = Term(Kind.INTEGER, of(1, Kind.INTEGER).sql, work=1_500)
    with pytest.raises(UnsupportedSqlError, match="so many steps"):
        made(Kind.INTEGER, a.sql, a, twice=a)


def test_constants_know_their_value() -> None:
    assert (of(3, Kind.NUMBER).value, of("é", Kind.TEXT).extra, null().kind) == (3.0, 2, None)
