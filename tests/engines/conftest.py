"""What the tests of Spark share: an engine on the session of all tests, and a table of visits there."""

from collections.abc import Iterator
from typing import Any

import pytest

from defocus.engines.spark import SparkEngine


@pytest.fixture(scope="module")
def spark_engine(spark: Any) -> Iterator[SparkEngine]:
    made = SparkEngine(spark)
    yield made
    made.close()


@pytest.fixture(scope="session")
def visits(spark: Any) -> Any:
    return spark.range(1, 1001).selectExpr(
        "id % 50 AS patient", "CHAR(65 + id % 3) AS ward", "CASE WHEN id % 7 > 0 THEN DOUBLE(id % 30) END AS days"
    )
