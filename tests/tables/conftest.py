"""Tests that take ``any_engine`` run on every engine: what they compute is the same, bit for bit."""

from collections.abc import Iterator

import pytest
from tests.tables.worlds import computed_by

from defocus.tables.engines.postgresql import PostgreSqlEngine


@pytest.fixture(scope="module", params=["duckdb", pytest.param("postgresql", marks=pytest.mark.slow)])
def any_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the engine that computes all small tables of a test."""
    if request.param == "duckdb":
        yield "duckdb"
        return
    engine = PostgreSqlEngine(request.getfixturevalue("server"))
    with computed_by(engine):
        yield "postgresql"
    engine.close()
