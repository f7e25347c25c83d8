"""How fast the auditor catches faults, and how close it comes to mechanisms that have none.

    sh benchmarks/setup.sh
    .venv/bin/python benchmarks/audit.py

All mechanisms claim epsilon = 1 (the Gaussian at delta = 1e-6) on the neighbours 0 and 1, at 99.9 % confidence.
Every case is measured twice in each of three interleaved rounds: until a violation is called, and with all its
runs. The time to a verdict and its runs are the most of the rounds, since luck decides them; the time of all runs is
the least, and the bound on epsilon the lowest. Sampling is included.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from defocus.audit import batched, lower_bound
from defocus.noise import discrete_laplace

HERE = Path(__file__).parent
PEER = HERE.parent / ".bench" / "diffprivlib" / "bin" / "python"
ROUNDS = 3
LIMIT = 60.0

Case = tuple[Callable[..., Any], tuple[Any, Any], int, float]


def own_cases() -> dict[str, Case]:
    rng = np.random.default_rng()
    cases: dict[str, Case] = {
        "numpy Laplace": (batched(lambda x, n: x + rng.laplace(0, 1, n)), (0.0, 1.0), 100_000, 0.0),
        "numpy Laplace, one call for each run": (lambda x: x + rng.laplace(0, 1), (0.0, 1.0), 100_000, 0.0),
        "20 % too little noise": (batched(lambda x, n: x + discrete_laplace(0.8, n)), (0, 1), 100_000, 0.0),
        "5 % too little noise": (batched(lambda x, n: x + discrete_laplace(0.95, n)), (0, 1), 4_000_000, 0.0),
        "discrete Laplace (honest)": (batched(lambda x, n: x + discrete_laplace(1, n)), (0, 1), 100_000, 0.0),
        "discrete Laplace (honest), more runs": (
            batched(lambda x, n: x + discrete_laplace(1, n)),
            (0, 1),
            4_000_000,
            0.0,
        ),
    }
    try:
        import opendp.prelude as dp
    except ImportError:
        return cases
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    noisy = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    cases["OpenDP 0.16 Laplace (honest)"] = (noisy, (0.0, 1.0), 10_000, 0.0)
    cases["OpenDP noise at 0.0, then added as a float"] = (lambda x: x + noisy(0.0), (0.0, 1.0), 10_000, 0.0)
    return cases


def peer_cases() -> dict[str, Case]:
    from diffprivlib.mechanisms import Gaussian, Laplace

    laplace, gaussian = Laplace(epsilon=1.0, sensitivity=1.0), Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    return {
        "diffprivlib 0.6.6 Laplace": (laplace.randomise, (0.0, 1.0), 100_000, 0.0),
        "diffprivlib 0.6.6 Gaussian": (gaussian.randomise, (0.0, 1.0), 100_000, 1e-6),
    }


def measure(cases: dict[str, Case]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for name, (mechanism, pair, trials, delta) in cases.items():
            quick = lower_bound(mechanism, pair, trials, claimed=1, delta=delta, seconds=LIMIT)
            full = lower_bound(mechanism, pair, trials, claimed=1, delta=delta)
            before = found.get(
                name, {"seconds_to_verdict": 0.0, "seconds": np.inf, "epsilon_lower": np.inf, "runs_to_verdict": 0}
            )
            found[name] = {
                "verdict": full.verdict,
                "runs_to_verdict": max(before["runs_to_verdict"], quick.trials),
                "seconds_to_verdict": max(before["seconds_to_verdict"], quick.seconds),
                "runs": full.trials,
                "seconds": min(before["seconds"], full.seconds),
                "epsilon_lower": min(before["epsilon_lower"], full.epsilon_lower),
                "event": full.event,
            }
    return found


def peers() -> dict[str, Any]:
    if not PEER.exists():
        print("diffprivlib is left out: run benchmarks/setup.sh first.")
        return {}
    made = subprocess.run(  # noqa: S603  # this file, in the peer's environment
        [PEER, __file__, "--peer"], env={"PYTHONPATH": str(HERE.parent / "src")}, capture_output=True, check=True
    )
    answer: dict[str, Any] = json.loads(made.stdout)
    return answer


def main() -> None:
    if "--peer" in sys.argv:
        print(json.dumps(measure(peer_cases())))
        return
    found = measure(own_cases()) | peers()
    print(f"{'claims epsilon = 1':44s} {'verdict':36s} {'called in':>18s} {'all runs':>17s} {'epsilon >=':>10s}")
    for name, row in found.items():
        called = f"{1000 * row['seconds_to_verdict']:.0f} ms {row['runs_to_verdict']:>8d}"
        every = f"{row['seconds']:.2f} s {row['runs']:>9d}"
        shown = called if row["verdict"] == "violation" else "-"
        print(f"{name:44s} {row['verdict']:36s} {shown:>18s} {every:>17s} {row['epsilon_lower']:10.3f}")
    (HERE / "results" / "audit.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
