"""Epsilon grows like the square root of the number of releases, if the accountant can see it.

Run it with ``.venv/bin/python examples/compose.py``; it takes a second and needs no data.
"""

import math

from rich import box
from rich.console import Console
from rich.table import Table

from defocus import privacy

EVENT = privacy.Laplace(200)
"""One release of a count with Laplace noise of scale 200: epsilon 0.005."""

DELTA = 1e-6
COUNTS = (1, 16, 64, 256, 1024, 4096, 16384)
ACCOUNTANTS = ("basic", "advanced", "zcdp", "rdp", "pld")


def growth() -> dict[str, list[float]]:
    """Epsilon at DELTA after each number of releases, for each accountant."""
    return {name: [privacy.account(times * EVENT, name).epsilon(DELTA) for times in COUNTS] for name in ACCOUNTANTS}


def main() -> None:
    """Print the table."""
    found = growth()
    table = Table(title=f"epsilon at delta {DELTA:g} after T releases of {EVENT}", box=box.SIMPLE_HEAD)
    table.add_column("T", justify="right")
    for name in ACCOUNTANTS:
        table.add_column(name, justify="right")
    table.add_column("pld / sqrt(T)", justify="right")
    for row, times in enumerate(COUNTS):
        best = found["pld"][row] / math.sqrt(times)
        table.add_row(str(times), *(f"{found[name][row]:.3f}" for name in ACCOUNTANTS), f"{best:.3f}")
    console = Console()
    console.print(table)
    console.print(
        "Four times as many releases cost four times as much by basic composition. The others come close to"
        " twice as much once there are many: the last column levels off, which is what growing like the square"
        " root of T means. (It rises again where epsilon is large.)"
    )


if __name__ == "__main__":
    main()
