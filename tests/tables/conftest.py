"""Tests that take ``any_engine`` run on every engine: what they compute is the same, bit for bit."""

from collections.abc import Callable, Iterator

import pytest
from tests.tables.worlds import computed_by

from defocus.engines.engine import Engine
from defocus.engines.mariadb import MariaDbEngine
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.spark import SparkEngine

ELSEWHERE = [pytest.param(name, marks=pytest.mark.slow) for name in ("postgresql", "mariadb", "spark")]


@pytest.fixture(scope="module", params=["duckdb", *ELSEWHERE])
def any_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the engine that computes all small tables of a test."""
    if request.param == "duckdb":
        yield "duckdb"
        return
    makers: dict[str, Callable[[], Engine]] = {
        "postgresql": lambda: PostgreSqlEngine(request.getfixturevalue("server")),
        "mariadb": lambda: MariaDbEngine(request.getfixturevalue("mariadb")),
        "spark": lambda: SparkEngine(request.getfixturevalue("spark")),
    }
    engine = makers[request.param]()
    with computed_by(engine):
        yield request.param
    engine.close()
