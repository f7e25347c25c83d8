"""Local collection beside pure-ldp 1.2.0 and multi-freq-ldpy 0.2.5: time, error against theory, and reports per second.

    sh benchmarks/setup.sh
    .venv/bin/python benchmarks/local.py

One million people, 1000 categories with a Zipf law, epsilon = 1, one core. *Time* is encoding every value and
estimating every count, in three rounds in which we and the peer take turns: the least of the peer's three runs, and of
our nine, three in each round, since ours take milliseconds. The peers' work grows linearly with the number of people,
so slow ones get fewer people and their time is scaled up (the number is in the results). *Error* is the mean squared
error over 50 runs divided by the stated variance; sketches draw new hash functions in each run. Slow oracles are run
with 20 000 people, d-bit with 256 categories and RAPPOR with 100 at epsilon 2; the results say which.

    .venv/bin/python benchmarks/local.py errors

runs one part and keeps the others' results.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PEER = HERE.parent / ".bench" / "local" / "bin" / "python"
PEOPLE, SIZE, EPSILON = 1_000_000, 1000, 1.0
ROUNDS, RUNS, FEW = 3, 50, 20_000
FAST = {"hadamard", "hcms", "k-rr", "olh", "oue", "pgr", "sue"}
"""Oracles whose error is measured with a million people."""


def population(people: int, size: int = SIZE) -> np.ndarray[Any, Any]:
    weights = 1 / np.arange(1, size + 1) ** 1.1
    return np.random.default_rng(1).choice(size, size=people, p=weights / weights.sum())


def pure_ldp(name: str, people: int) -> float:
    """Seconds of pure-ldp for so many people."""
    from pure_ldp.frequency_oracles import (
        DEClient,
        DEServer,
        HadamardResponseClient,
        HadamardResponseServer,
        LHClient,
        LHServer,
        UEClient,
        UEServer,
    )

    def same(x: int) -> int:
        return x

    if name == "hadamard":
        server: Any = HadamardResponseServer(EPSILON, SIZE, index_mapper=same)
        client: Any = HadamardResponseClient(EPSILON, SIZE, server.get_hash_funcs(), index_mapper=same)
    else:
        options: dict[str, Any] = {"oue": {"use_oue": True}, "olh": {"use_olh": True}}.get(name, {})
        kinds = {"k-rr": (DEClient, DEServer), "oue": (UEClient, UEServer), "olh": (LHClient, LHServer)}
        client, server = (kind(EPSILON, SIZE, index_mapper=same, **options) for kind in kinds[name])
    values = population(people).tolist()
    start = time.perf_counter()
    for report in [client.privatise(x) for x in values]:
        server.aggregate(report)
    server.estimate_all(range(SIZE), suppress_warnings=True)
    return time.perf_counter() - start


def multi_freq(name: str, people: int) -> float:
    """Seconds of multi-freq-ldpy for so many people."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    values = population(people).tolist()
    start = time.perf_counter()
    if name == "k-rr":
        GRR_Aggregator_MI([GRR_Client(x, SIZE, EPSILON) for x in values], SIZE, EPSILON)
    elif name == "oue":
        UE_Aggregator_MI([UE_Client(x, SIZE, EPSILON, True) for x in values], EPSILON, True)
    elif name == "subset":
        SS_Aggregator_MI([SS_Client(x, SIZE, EPSILON) for x in values], SIZE, EPSILON)
    return time.perf_counter() - start


PEERS: dict[str, Callable[[str, int], float]] = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq}
CASES = [
    ("k-rr", "pure-ldp", 1_000_000, 100),
    ("oue", "pure-ldp", 20_000, 20),
    ("olh", "pure-ldp", 1000, 1000),
    ("hadamard", "pure-ldp", 100_000, 700),
    ("k-rr", "multi-freq-ldpy", 50_000, None),
    ("oue", "multi-freq-ldpy", 5000, None),
    ("subset", "multi-freq-ldpy", 5000, None),
]


def peer_time(peer: str, name: str, people: int) -> float | None:
    """In the peer's own environment; None where it fails."""
    command = [str(PEER), __file__, "--peer", peer, "--name", name, "--people", str(people)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        print(f"  {peer} {name} failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return float(json.loads(done.stdout.splitlines()[-1])) * PEOPLE / people


def our_time(name: str, values: np.ndarray[Any, Any]) -> tuple[float, float]:
    from defocus import local

    asked = local.oracle(name, SIZE, EPSILON, outside="refuse")
    start = time.perf_counter()
    reports = asked.encode(values)
    middle = time.perf_counter()
    asked.estimate(reports)
    return middle - start, time.perf_counter() - middle


def times() -> list[dict[str, Any]]:
    values, out = population(PEOPLE), []
    for name, peer, people, target in CASES:
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(peer_time(peer, name, people))
            ours += [our_time(name, values) for _ in range(3)]
        encode, decode = min(x for x, _ in ours), min(y for _, y in ours)
        least = min((t for t in theirs if t is not None), default=None)
        row = {
            "oracle": name,
            "peer": peer,
            "peer people": people,
            "peer s": least,
            "encode s": encode,
            "estimate s": decode,
            "ratio": None if least is None else least / min(x + y for x, y in ours),
            "target": target,
        }
        out.append(row)
        shown = "failed" if least is None else f"{least:9.2f} s / {row['ratio']:8.0f}x"
        print(f"  {name:9} {encode:7.4f} + {decode:7.4f} s   {peer:16} {shown}   target {target or '-'}", flush=True)
    for name in ("pgr", "subset", "cms", "hcms", "sue"):
        ours = [our_time(name, values) for _ in range(2)]
        row = {"oracle": name, "encode s": min(x for x, _ in ours), "estimate s": min(y for _, y in ours)}
        out.append(row)
        print(f"  {name:9} {row['encode s']:7.4f} + {row['estimate s']:7.4f} s", flush=True)
    return out


def errors() -> list[dict[str, Any]]:
    """Mean squared error over stated variance, and per person."""
    from defocus import local
    from defocus.local.designs import NAMES, Rappor
    from defocus.local.designs.rappor import rappor_regression

    out = []
    for name in NAMES:
        size = 100 if name == "rappor" else 256 if name == "d-bit" else SIZE
        epsilon = 2 if name == "rappor" else EPSILON
        people = population(PEOPLE if name in FAST else FEW, size)
        true = np.bincount(people, minlength=size)
        shared = int((true * (true - 1)).sum())
        squares, stated = [], []
        for run in range(RUNS):
            options = {"seed": run} if name in {"cms", "hcms"} else {"asked": 16} if name == "d-bit" else {}
            asked = local.oracle(name, size, epsilon, outside="refuse", **options)
            squares.append(((asked.estimate(asked.encode(people)).counts - true) ** 2).mean())
            if isinstance(asked.design, Rappor):
                found = rappor_regression(asked.design).variances(true.astype(float), *asked.design.bit_variances())
                stated.append(found.mean())
            else:
                held, counts = np.unique(true, return_counts=True)
                each = [asked.variance(len(people), int(c), pairs=shared - int(c * (c - 1))) for c in held]
                stated.append(float(np.average(each, weights=counts)))
        row = {
            "oracle": name,
            "categories": size,
            "people": len(people),
            "epsilon": epsilon,
            "runs": RUNS,
            "mse/n": float(np.mean(squares)) / len(people),
            "mse/theory": float(np.mean(squares) / np.mean(stated)),
            "bytes": asked.report_bytes,
        }
        out.append(row)
        print(
            f"  {name:9} MSE/n {row['mse/n']:8.3f}   over theory {row['mse/theory']:.3f}   {row['bytes']} bytes",
            flush=True,
        )
    return out


def means() -> list[dict[str, Any]]:
    """The variance of one report's guess, measured at both ends and in the middle, against the stated worst."""
    from defocus import local
    from defocus.local.designs import NUMERIC_NAMES
    from defocus.local.means import moments

    out = []
    for epsilon, target in ((1, 4.29), (4, 0.219)):
        for name in NUMERIC_NAMES:
            asked = local.mean(name, -1, 1, epsilon)
            found = []
            for x in (-1.0, 0.0, 1.0):
                start = time.perf_counter()
                server = asked.server()
                server.add_reports(asked.encode(np.full(PEOPLE, x)))
                asked.estimate(server)
                seconds = time.perf_counter() - start
                first, second = moments(asked.design, server.state())
                found.append(4 * (second / PEOPLE - (first / PEOPLE) ** 2))
            row = {
                "oracle": name,
                "epsilon": epsilon,
                "worst variance": asked.worst_variance,
                "measured worst": max(found),
                "target": target if name == "hybrid" else None,
                "s": seconds,
            }
            out.append(row)
            print(
                f"  {name:12} epsilon {epsilon}: stated {asked.worst_variance:.4f}, measured {max(found):.4f}",
                flush=True,
            )
    return out


def streams() -> list[dict[str, Any]]:
    """Reports counted per second from messages of 65536, and from single ones; the counts' size does not change."""
    from defocus import local

    values, out = population(PEOPLE), []
    for name in ("k-rr", "hadamard", "pgr", "olh", "oue"):
        asked = local.oracle(name, SIZE, EPSILON, outside="refuse")
        messages = [asked.encode(values[i : i + 65_536]).to_bytes() for i in range(0, PEOPLE, 65_536)]
        rates = []
        for _ in range(5):
            server = asked.server()
            start = time.perf_counter()
            taken = sum(server.add(message) for message in messages)
            rates.append(PEOPLE / (time.perf_counter() - start))
            assert taken == len(messages)
        records = b"".join(asked.encode(values))
        single_rates = []
        for _ in range(5):
            server = asked.server()
            start = time.perf_counter()
            taken = server.add_records(records)
            single_rates.append(PEOPLE / (time.perf_counter() - start))
            assert taken == PEOPLE
        singles = list(asked.encode(values[:100_000]))
        start = time.perf_counter()
        asked.server().add_many(singles)
        single = 100_000 / (time.perf_counter() - start)
        row = {
            "oracle": name,
            "reports/s in batches": max(rates),
            "reports/s as records with a header each": max(single_rates),
            "reports/s one by one": single,
            "state bytes": len(server.state().to_bytes()),
        }
        out.append(row)
        print(f"  {name:9} {max(rates):12,.0f} in batches, {max(single_rates):12,.0f} as records", flush=True)
        print(f"            {single:12,.0f} one by one; counts take {row['state bytes']} bytes", flush=True)
    return out


def versions() -> dict[str, str]:
    ours = {name: version(name) for name in ("defocus", "numpy")}
    return {"python": sys.version.split()[0], **ours, "pure-ldp": "1.2.0", "multi-freq-ldpy": "0.2.5"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["times", "errors", "means", "streams"])
    parser.add_argument("--peer")
    parser.add_argument("--name")
    parser.add_argument("--people", type=int)
    given = parser.parse_args()
    if given.peer:
        print(json.dumps(PEERS[given.peer](given.name, given.people)))
        return
    where = HERE / "results" / "local.json"
    results = json.loads(where.read_text("utf-8")) if where.exists() else {}
    results |= {"people": PEOPLE, "categories": SIZE, "epsilon": EPSILON, "versions": versions()}
    known = {"times": times, "errors": errors, "means": means, "streams": streams}
    for name in given.parts:
        print(name)
        results[name] = known[name]()
    where.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
