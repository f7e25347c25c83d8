"""Certified accounting and calibration beside dp-accounting: time at equal tightness, extremes, import.

Run: python benchmarks/accounting.py [rounds]   (needs: pip install dp-accounting==0.6.0)

Both sides run in one process and take turns; the least processor time of all rounds counts. Tightness is
the distance above a certified lower bound on the true epsilon. dp-accounting runs at a
discretisation of 1e-4, its default, and Defocus at the loosest tolerance that is at least as tight.
"""

import json
import math
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dp_accounting as peer
from dp_accounting import pld as peer_pld

from defocus.privacy import calibration as calibrating
from defocus.privacy.accounting.pld import account
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Event, Gaussian, Laplace, Sampled

RESULTS = Path(__file__).parent / "results" / "accounting.json"
INTERVAL = 1e-4
TOLERANCES = [1e-3 * 0.8**k for k in range(54)]


def peer_sampled(sigma: float, rate: float, times: int) -> Any:
    event = peer.PoissonSampledDpEvent(rate, peer.GaussianDpEvent(sigma))
    return peer.SelfComposedDpEvent(event, times)


CASES: dict[str, tuple[Event, Any, float]] = {
    "a1": (1000 * Sampled(Gaussian(1.0), 0.01), peer_sampled(1.0, 0.01, 1000), 1e-5),
    "a2": (10_000 * Sampled(Gaussian(1.0), 0.01), peer_sampled(1.0, 0.01, 10_000), 1e-5),
    "b": (14_063 * Sampled(Gaussian(1.1), 256 / 60000), peer_sampled(1.1, 256 / 60000, 14_063), 1e-5),
    "c": (100_000 * Sampled(Gaussian(0.6), 1e-3), peer_sampled(0.6, 1e-3, 100_000), 1e-5),
    "d": (1000 * Laplace(10), peer.SelfComposedDpEvent(peer.LaplaceDpEvent(10), 1000), 1e-6),
    "e": (
        200 * Gaussian(20) + 100 * Laplace(20) + 5000 * Sampled(Gaussian(1.0), 0.01),
        peer.ComposedDpEvent(
            [
                peer.SelfComposedDpEvent(peer.GaussianDpEvent(20), 200),
                peer.SelfComposedDpEvent(peer.LaplaceDpEvent(20), 100),
                peer_sampled(1.0, 0.01, 5000),
            ]
        ),
        1e-5,
    ),
}
FAMILIES = {"a1": (0.01, 1000), "a2": (0.01, 10_000), "b": (256 / 60000, 14_063), "c": (1e-3, 100_000)}
SIX = (
    "10 * RandomizedResponse(0.5) + 5 * Laplace(2) + 100 * Sampled(Gaussian(0.8), 0.02) + 3 * Gaussian(4)"
    " + Exponential(0.3) + 2 * DiscreteGaussian(6, 2)"
)
EXTREMES = {
    "σ = .05, q = .01, T = 1e3, δ = 1e-5": ("1000 * Sampled(Gaussian(0.05), 0.01)", 1e-5),
    "σ = .05, q = .001, T = 1e4, δ = 1e-5": ("10_000 * Sampled(Gaussian(0.05), 0.001)", 1e-5),
    "ε = .01: σ = 243.8, q = .01, T = 1e4, δ = 1e-5": ("10_000 * Sampled(Gaussian(243.8), 0.01)", 1e-5),
    "δ = 1e-100: a1": ("1000 * Sampled(Gaussian(1.0), 0.01)", 1e-100),
    "T = 1e6: σ = 1, q = .001, δ = 1e-6": ("10**6 * Sampled(Gaussian(1.0), 1e-3)", 1e-6),
    "T = 1e9: σ = 50, q = .001, δ = 1e-6": ("10**9 * Sampled(Gaussian(50.0), 1e-3)", 1e-6),
    "1e6 Laplace(1000), δ = 1e-6": ("10**6 * Laplace(1000)", 1e-6),
    "1e5 randomised responses of .01, δ = 1e-6": ("10**5 * RandomizedResponse(0.01)", 1e-6),
    "six kinds of event, δ = 1e-8": (SIX, 1e-8),
    "calibrate a2 to ε = .01": ("calibrate", 1e-5),
}


def timed(
    act: Callable[..., Any], *arguments: Any, clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Milliseconds of the processor, which others at work on the machine change least, and the answer."""
    start = clock()
    answer = act(*arguments)
    return (clock() - start) * 1e3, answer


def peer_epsilon(event: Any, delta: float) -> float:
    accountant = peer_pld.PLDAccountant(value_discretization_interval=INTERVAL)
    return float(accountant.compose(event).get_epsilon(delta))


def our_epsilon(event: Event, delta: float, tolerance: float) -> float:
    return account(event, tolerance=tolerance).epsilon(delta)


def our_interval(event: Event, delta: float, tolerance: float) -> object:
    return account(event, tolerance=tolerance).interval(delta)


def peer_sigma(rate: float, times: int) -> float:
    return float(
        peer.calibrate_dp_mechanism(
            lambda: peer_pld.PLDAccountant(value_discretization_interval=INTERVAL),
            lambda sigma: peer_sampled(sigma, rate, times),
            1.0,
            1e-5,
        )
    )


def forget() -> None:
    """Let calibration forget what it has accounted for, which it would be quick to repeat."""
    for remembered in vars(calibrating).values():
        if hasattr(remembered, "cache_clear"):
            remembered.cache_clear()


def our_sigma(rate: float, times: int) -> float:
    return calibrate(lambda x: times * Sampled(Gaussian(x), rate), Budget(1, 1e-5))


def accounting(rounds: int) -> list[dict[str, Any]]:
    """Each case: epsilon of both, distance above the certified lower bound, least time."""
    table = []
    for name, (event, theirs, delta) in CASES.items():
        lower = account(event, tolerance=1e-7).interval(delta).lower
        peer_answer = peer_epsilon(theirs, delta)
        enough = [t for t in TOLERANCES if account(event, tolerance=t).epsilon(delta) <= peer_answer]
        tolerance = enough[0] if enough else TOLERANCES[-1]
        ours_ms = peer_ms = interval_ms = math.inf
        ours = 0.0
        for _ in range(rounds):
            peer_ms = min(peer_ms, timed(peer_epsilon, theirs, delta)[0])
            for _ in range(8):
                took, ours = timed(our_epsilon, event, delta, tolerance)
                ours_ms = min(ours_ms, took)
            interval_ms = min(interval_ms, timed(our_interval, event, delta, tolerance)[0])
        row = {
            "case": name,
            "certified lower bound": lower,
            "dp-accounting": peer_answer,
            "defocus": ours,
            "tolerance": tolerance,
            "dp-accounting above": peer_answer - lower,
            "defocus above": ours - lower,
            "as tight": bool(enough),
            "dp-accounting ms": peer_ms,
            "defocus ms": ours_ms,
            "defocus interval ms": interval_ms,
            "ratio": peer_ms / ours_ms,
        }
        table.append(row)
        print(
            f"{name:3} dp-accounting {peer_answer:.6f} (+{row['dp-accounting above']:.1e}) {peer_ms:8.1f} ms   "
            f"defocus {ours:.6f} (+{row['defocus above']:.1e}) {ours_ms:6.2f} ms, interval {interval_ms:6.2f} ms   "
            f"{row['ratio']:6.1f}x{'' if enough else '   NOT as tight'}"
        )
    return table


def calibration(rounds: int) -> list[dict[str, Any]]:
    """The least noise for (1, 1e-5): value found and least time."""
    table = []
    for name, (rate, times) in FAMILIES.items():
        ours_ms = peer_ms = math.inf
        ours = theirs = 0.0
        for _ in range(rounds):
            took, theirs = timed(peer_sigma, rate, times)
            peer_ms = min(peer_ms, took)
            for _ in range(5):
                forget()
                took, ours = timed(our_sigma, rate, times)
                ours_ms = min(ours_ms, took)
        row = {
            "case": name,
            "dp-accounting sigma": theirs,
            "defocus sigma": ours,
            "dp-accounting ms": peer_ms,
            "defocus ms": ours_ms,
            "ratio": peer_ms / ours_ms,
        }
        table.append(row)
        print(
            f"{name:3} dp-accounting sigma {theirs:.6f} {peer_ms:9.1f} ms   defocus {ours:.6f} {ours_ms:6.2f} ms   "
            f"{row['ratio']:6.1f}x"
        )
    return table


CHILD = """
import json, re, time
from pathlib import Path
from defocus.privacy.accounting.pld import account
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import *
event, delta = {event!r}, {delta!r}
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
start = time.process_time()
if event == "calibrate":
    answer = calibrate(lambda x: 10_000 * Sampled(Gaussian(x), 0.01), Budget(0.01, delta))
    took, lower = time.process_time() - start, None
else:
    loss = account(eval(event))
    answer = loss.epsilon(delta)
    took = time.process_time() - start
    lower = loss.interval(delta).lower
print(json.dumps([answer, lower, took * 1e3, (peak() - before) / 1024, before / 1024]))
"""


def run_python(script: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603  # fixed scripts


def extremes(rounds: int) -> list[dict[str, Any]]:
    """Each in a process of its own: processor time of the first call, peak memory beyond imports by VmHWM (Linux)."""
    table = []
    for name, (event, delta) in EXTREMES.items():
        runs = [json.loads(run_python(CHILD.format(event=event, delta=delta))) for _ in range(rounds)]
        answer, lower = runs[0][:2]
        row = {
            "case": name,
            "answer": answer,
            "lower": lower,
            "ms": min(run[2] for run in runs),
            "MiB beyond imports": max(run[3] for run in runs),
            "MiB of imports": max(run[4] for run in runs),
        }
        table.append(row)
        print(f"{name:50} {answer:12.6g} (lower {lower}) {row['ms']:7.1f} ms {row['MiB beyond imports']:6.1f} MiB")
    return table


def imports(rounds: int) -> dict[str, float]:
    """Seconds to import, beyond a bare interpreter."""
    statements = {
        "bare": "pass",
        "defocus accountant": "import defocus.privacy.accounting.pld",
        "defocus": "import defocus",
        "dp-accounting": "import dp_accounting.pld",
    }
    least = dict.fromkeys(statements, math.inf)
    for _ in range(rounds):
        for name, statement in statements.items():
            took, _ = timed(run_python, statement, clock=time.perf_counter)
            least[name] = min(least[name], took)
    found = {name: (ms - least["bare"]) / 1e3 for name, ms in least.items() if name != "bare"}
    print(", ".join(f"import {name} {seconds:.2f} s" for name, seconds in found.items()))
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    warnings.simplefilter("ignore")
    results = {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "dp-accounting")},
        },
        "rounds": rounds,
        "accounting": accounting(rounds),
        "calibration": calibration(max(2, rounds // 2)),
        "extremes": extremes(max(2, rounds // 2)),
        "import seconds": imports(rounds),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
