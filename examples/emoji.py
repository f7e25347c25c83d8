"""Popular emoji from keyboards by count-mean sketches: 2600 categories, one noisy row or one noisy bit for each person.

Run it with ``.venv/bin/python examples/emoji.py``; it takes some seconds and needs no data.

A sketch hashes 2600 emoji into 1024 columns. *cms* sends a row of 1024 noisy bits, *hcms* a single noisy bit of its
Hadamard transform; *pgr*, which needs no sketch, is there for comparison and should be used where nothing speaks
against it.
"""

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from defocus import local

EMOJI = [chr(0x1F300 + i) for i in range(2600)]
PEOPLE = 200_000
EPSILON = 4
ORACLES = ("cms", "hcms", "pgr")


def usage(people: int = PEOPLE) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The favourite emoji of each person, by a Zipf law."""
    weights = 1 / np.arange(1, len(EMOJI) + 1)
    return np.random.default_rng(0).choice(len(EMOJI), size=people, p=weights / weights.sum()).astype(np.int64)


def collect(name: str, people: int = PEOPLE) -> tuple[local.Estimate, int]:
    """Reports of everyone, counted; the estimate and the bytes of one report."""
    asked = local.oracle(name, len(EMOJI), EPSILON)
    server = asked.server()
    for part in np.array_split(usage(people), 4):  # devices, then a server that sees messages only
        server.add(asked.encode(part).to_bytes())
    return asked.estimate(server), asked.report_bytes


def main() -> None:
    """Print the ten most frequent, with what each oracle makes of them."""
    true = np.bincount(usage(), minlength=len(EMOJI))
    found = {name: collect(name) for name in ORACLES}
    table = Table(title=f"emoji of {PEOPLE:,} people at epsilon = {EPSILON}", box=box.SIMPLE_HEAD)
    table.add_column("code")
    table.add_column("true", justify="right")
    for name, (_, length) in found.items():
        table.add_column(f"{name}, {length} bytes", justify="right")
    for i in range(10):
        cells = [f"{estimate.counts[i]:.0f} ± {estimate.errors[i]:.0f}" for estimate, _ in found.values()]
        table.add_row(f"U+{ord(EMOJI[i]):X}", str(true[i]), *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
