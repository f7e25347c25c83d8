"""Hours of use by 1-bit means: every device reports one bit a day, and the mean is known without knowing anyone.

Run it with ``.venv/bin/python examples/telemetry.py``; it takes some seconds and needs no data.

Each device draws two noisy bits and a rounding point once, and reports one of the two bits every day. Of devices whose
use stays the same, all reports together cost epsilon = 1. A device whose use passes its point reports its other bit
from then on: that something changed, and when, is not protected.
"""

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from defocus import local

DEVICES = 10_000
DAYS = 5
EPSILON = 1


def hours(devices: int, day: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Hours of use on a day: each device has its habit, and there is a little more of it each day."""
    habit = np.random.default_rng(1).gamma(2.0, 2.0, devices)
    return np.minimum(habit + 0.1 * day, 24.0)


def collect(devices: int = DEVICES, days: int = DAYS) -> list[tuple[float, local.Collected]]:
    """The true mean and the estimate of each day, from the same devices."""
    asked = local.mean("duchi", 0, 24, EPSILON)
    memories = [local.Memory(asked.design) for _ in range(devices)]
    out = []
    for day in range(days):
        used, server = hours(devices, day), asked.server()
        server.add_many(memory.report(float(x)) for memory, x in zip(memories, used, strict=True))
        out.append((float(used.mean()), asked.estimate(server)))
    return out


def main() -> None:
    """Print the days, and what other oracles would have done with one report each."""
    table = Table(title=f"mean hours of {DEVICES:,} devices, one bit each a day", box=box.SIMPLE_HEAD)
    for name in ("day", "true", "estimated", "standard error"):
        table.add_column(name, justify="right")
    for day, (true, estimate) in enumerate(collect()):
        table.add_row(str(day + 1), f"{true:.2f}", f"{estimate.value:.2f}", f"{estimate.error:.2f}")
    console = Console()
    console.print(table)
    for name in ("laplace", "duchi", "piecewise", "hybrid"):
        worst = local.mean(name, 0, 24, EPSILON).worst_variance
        console.print(f"{name:10} worst standard error of one day: {(worst / DEVICES) ** 0.5:.3f} hours")


if __name__ == "__main__":
    main()
