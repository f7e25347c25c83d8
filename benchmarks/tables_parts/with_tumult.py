"""The main query in Tumult Analytics on local Spark: a count and an average with half the budget each.

A query has one aggregate, so there are two; the sum is their product and costs nothing more. (Three queries with a
third of the budget each would be slower and less accurate.) The start of Spark is timed apart, as loading.
"""

import os
import sys
import tempfile
import warnings
from typing import Any

from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

warnings.simplefilter("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable


def begin(path: str) -> Any:
    folder = tempfile.TemporaryDirectory(prefix="tumult-")
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", folder.name)
        .config("spark.sql.warehouse.dir", f"{folder.name}/warehouse")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return folder, spark, path


def release(ready: Any) -> list[float]:
    _, spark, path = ready
    session = Session.from_dataframe(
        PureDPBudget(EPSILON), "visits", spark.read.parquet(path), protected_change=AddRowsWithID("user")
    )
    keys = KeySet.from_dict({"grp": list(range(GROUPS))})
    groups = QueryBuilder("visits").enforce(MaxRowsPerID(ROWS)).groupby(keys)
    session.evaluate(groups.count(), PureDPBudget(EPSILON / 2)).toPandas()
    average = session.evaluate(groups.average("v", LOW, HIGH), PureDPBudget(EPSILON / 2)).toPandas()
    return average.sort_values("grp")["v_average"].tolist()


if __name__ == "__main__":
    measure("tmlt.analytics", begin, release)
