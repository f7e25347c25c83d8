"""The main query in OpenDP with Polars: five random rows of each user, then a count and a sum for each public key.

The mean is the sum over the count, which costs nothing more; OpenDP's own mean beside a count would pay for the length
twice. Two choices only an expert makes are made here: a group is declared to have at most 200 000 rows (twice as many
as it has; with 20 million, the noise of a float sum is eleven times as large), and values are centred, which halves
the noise of the sum. `--plain` leaves the centring out.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import opendp.prelude as dp
import polars as pl
from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure

warnings.simplefilter("ignore")
dp.enable_features("contrib")
PLAIN = "--plain" in sys.argv
if PLAIN:
    sys.argv.remove("--plain")
MIDDLE = 0.0 if PLAIN else (LOW + HIGH) / 2


def query(path: str) -> Any:
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier="user"),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["grp"], max_length=200_000, max_groups=GROUPS)],
    )
    value = pl.col("v").fill_null(MIDDLE).fill_nan(MIDDLE)
    value = value if PLAIN else value - MIDDLE
    return (
        context.query()
        .truncate_per_group(ROWS)
        .group_by("grp")
        .agg(n=dp.len(signed=True), s=value.dp.sum((LOW - MIDDLE, HIGH - MIDDLE)))
        .with_keys(pl.LazyFrame({"grp": list(range(GROUPS))}))
    )


def means(frame: pl.DataFrame) -> list[float]:
    frame = frame.sort("grp")
    return (frame["s"] / frame["n"] + MIDDLE).to_list()


def release(path: str) -> list[float]:
    return means(query(path).release().collect())


def again(path: str) -> Callable[[], list[float]]:
    measurement, data = query(path).resolve(), pl.scan_parquet(path)
    return lambda: means(measurement(data).collect())


if __name__ == "__main__":
    measure("opendp", lambda path: path, release, again)
