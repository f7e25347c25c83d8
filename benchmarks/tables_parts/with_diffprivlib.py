"""The main query with diffprivlib, as far as it goes: it knows rows only, and neither users nor groups.

Five random rows of each user are kept here with numpy, and each noisy number gets ε/5: a user's rows then cost ε
together, half for counts and half for sums. Its mean is not used, since it takes the number of rows for public.
"""

import diffprivlib
import numpy as np
import pyarrow.parquet as pq
from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure


def release(path: str) -> list[float]:
    table = pq.read_table(path)
    user, groups, values = (table[name].to_numpy() for name in ("user", "grp", "v"))
    order = np.random.default_rng().permutation(len(user))
    order = order[np.argsort(user[order], kind="stable")]
    ordered = user[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    kept = order[ranks < ROWS]
    groups, values = groups[kept], values[kept]
    epsilon, means = EPSILON / 2 / ROWS, []
    for key in range(GROUPS):
        mine = values[groups == key]
        count = diffprivlib.tools.count_nonzero(np.ones(len(mine)), epsilon=epsilon)
        total = diffprivlib.tools.sum(mine, epsilon=epsilon, bounds=(LOW, HIGH))
        means.append(total / max(1, count))
    return means


if __name__ == "__main__":
    measure("diffprivlib", lambda path: path, release)
