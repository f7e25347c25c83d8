"""Synthetic records of a table by MST or AIM on ``mbi``, in their own environment.

``.bench/mbi/bin/python -m benchmarks.synthesis_parts.with_mbi MECHANISMS mst|aim TABLE.npz OUT.npz EPSILON DELTA SEED
[MEGABYTES]``. MECHANISMS is the folder ``mechanisms`` of the repository of mbi, which its package does not carry; MST
is theirs, and AIM that of :mod:`benchmarks.synthesis_parts.aim`. AIM's workload are all pairs of at most 10 000 cells,
as in its script; MEGABYTES bounds its model, 80 by default.
"""

import importlib
import resource
import sys
import time

import numpy as np


def main() -> None:
    folder, which, source, out, *numbers = sys.argv[1:]
    epsilon, delta, seed = float(numbers[0]), float(numbers[1]), int(numbers[2])
    mbi = importlib.import_module("mbi")
    table = np.load(source)
    names = [f"c{i}" for i in range(len(table["sizes"]))]
    domain = mbi.Domain(names, [int(size) for size in table["sizes"]])
    data = mbi.Dataset({name: table["codes"][:, i] for i, name in enumerate(names)}, domain)
    np.random.seed(seed)  # noqa: NPY002  # the mechanisms draw from there
    begun = time.process_time()
    if which == "mst":
        sys.path.insert(0, folder)
        made = importlib.import_module("mst").MST(data, epsilon, delta)
    else:
        aim = importlib.import_module("benchmarks.synthesis_parts.aim").aim
        size = float(numbers[3]) if len(numbers) > 3 else 80.0
        model, _ = aim(data, epsilon, delta, size, np.random.default_rng(seed))
        made = model.synthetic_data(rows=len(table["codes"]))
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    records = np.stack([np.asarray(made.to_dict()[name], np.int64) for name in names], 1)
    np.savez_compressed(out, records=records, seconds=seconds, megabytes=peak)
    print(which, source, "seconds", round(seconds, 1), "megabytes", round(peak), flush=True)


if __name__ == "__main__":
    main()
