"""The tables that the benchmark of the tables room asks about, made once from a fixed seed.

    python data.py FILE [ROWS]          (user, grp, v): the main query
    python data.py FILE ROWS wide       (user, g1, g10, g100, g1000, v0 … v19): how cost grows

One user for every ten rows; how many rows a user has is log-normal (median 4, mean 10, the heaviest of a million above
a thousand), in random order. Groups are equally likely for every row. A value is 100·U^a with a uniform U and an
exponent between 1/2 and 2 that belongs to the group, so group means lie between 33 and 67.

*Values and groups do not depend on the user*, nor on how many rows it has. Bounding a user's contributions is then
free of bias for every tool, and an error of a mean is noise plus the chance of what was kept. Were values to depend
on how active a user is, all tools measured here would be biased alike: keeping k of n rows at random gives each row
the expected weight k/n, which is the weight itself in bounding by weights.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20261115
GROUPS = 100
COLUMNS = 20
ROW_GROUP = 122_880  # what DuckDB writes


def users(rng: np.random.Generator, number: int) -> np.ndarray:
    """The user of each of `number` rows, in random order."""
    people = max(1, number // 10)
    counts = np.maximum(1, np.rint(rng.lognormal(np.log(4), np.sqrt(2 * np.log(2.5)), people))).astype(np.int64)
    owners = np.repeat(np.arange(people), counts)
    rng.shuffle(owners)
    if len(owners) < number:
        owners = np.concatenate([owners, rng.integers(0, people, number - len(owners))])
        rng.shuffle(owners)
    return owners[:number]


def values(rng: np.random.Generator, groups: np.ndarray) -> np.ndarray:
    """A float in [0, 100] for each row, distributed by its group alone."""
    exponents = 2.0 ** np.linspace(-1, 1, GROUPS)
    return 100 * rng.random(len(groups)) ** exponents[groups]


def narrow(number: int) -> pa.Table:
    rng = np.random.default_rng(SEED)
    owners = users(rng, number)
    groups = rng.integers(0, GROUPS, number)
    return pa.table({"user": owners, "grp": groups, "v": values(rng, groups)})


def wide(number: int) -> pa.Table:
    rng = np.random.default_rng(SEED + 1)
    columns = {"user": users(rng, number)}
    for groups in (1, 10, 100, 1000):
        columns[f"g{groups}"] = rng.integers(0, groups, number)
    for i in range(COLUMNS):
        columns[f"v{i}"] = np.rint(100 * 100 * rng.random(number)) / 100
    return pa.table(columns)


def ensure(path: Path, number: int, *, many: bool = False) -> Path:
    """The file, made if it is not there yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        pq.write_table(wide(number) if many else narrow(number), partial, row_group_size=ROW_GROUP)
        partial.rename(path)
    return path


if __name__ == "__main__":
    ensure(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000, many="wide" in sys.argv[3:])
