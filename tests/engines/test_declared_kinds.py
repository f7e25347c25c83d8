"""One character for one character, as DuckDB changes it."""

from tests.tables.expressions.asking import answer

from defocus.engines.declared_kinds import cased


def test_characters_change_case_as_in_duckdb() -> None:

    for function in ("LOWER", "UPPER"):
        before, after = cased(function)
        assert answer(f"{function}(ward)", ward=before) == after
