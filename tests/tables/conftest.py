"""Tests that take ``any_engine`` run on every engine: what they compute is the same, bit for bit."""

from collections.abc import Iterator

import pytest
from tests.tables.worlds import computed_by

from defocus.engines.engine import Engine
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.spark import SparkEngine

ELSEWHERE = [pytest.param(name, marks=pytest.mark.slow) for name in ("postgresql", "spark")]


@pytest.fixture(scope="module", params=["duckdb", *ELSEWHERE])
def any_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the engine that computes all small tables of a test."""
    if request.param == "duckdb":
        yield "duckdb"
        return
    engine: Engine = (
        PostgreSqlEngine(request.getfixturevalue("server"))
        if request.param == "postgresql"
        else SparkEngine(request.getfixturevalue("spark"))
    )
    with computed_by(engine):
        yield request.param
    engine.close()
