"""Synthetic records of a table by Defocus, through the front door: a table of integers with declared values.

``python -m benchmarks.synthesis_parts.with_defocus TABLE.npz OUT.npz EPSILON DELTA [ROWS]``
"""

import resource
import sys
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa

import defocus as dp


def main() -> None:
    source, out, *numbers = sys.argv[1:]
    epsilon, delta = float(numbers[0]), float(numbers[1])
    rows = int(numbers[2]) if len(numbers) > 2 else None
    table = np.load(source)
    codes, facts = table["codes"], {}
    names = [f"c{i}" for i in range(codes.shape[1])]
    data: dict[str, Any] = {}
    for i, name in enumerate(names):
        last, gone = int(table["sizes"][i]) - 1, bool(table["missing"][i])
        data[name] = pa.array(codes[:, i], pa.int64(), mask=(codes[:, i] == last) & gone)
        values = list(range(last + (not gone)))
        facts[name] = values if table["ordered"][i] else [*values[1:], 0]  # an order that does not rise is none
    with tempfile.TemporaryDirectory() as home:
        budget = dp.Budget(epsilon + 1, 2 * delta)
        opened = dp.open(pa.table(data), unit=dp.rows(), budget=budget, ledger=f"{home}/l", name="v", columns=facts)
        begun = time.process_time()
        made = dp.synthesise(opened, epsilon=epsilon, delta=delta, rows=rows).sample()
        seconds = time.process_time() - begun
        opened.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lasts = [int(size) - 1 for size in table["sizes"]]
    records = np.stack([made[name].fill_null(last).to_numpy() for name, last in zip(names, lasts, strict=True)], 1)
    np.savez_compressed(out, records=records, seconds=seconds, megabytes=peak)


if __name__ == "__main__":
    main()
