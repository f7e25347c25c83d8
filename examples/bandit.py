r"""A private bandit: learn which treatment works best, from patients who each try one, without showing any of them.

Patients come one by one; each gets one of K treatments, and is cured or not. Successive elimination goes in epochs:
every treatment that is still in is given to the same number of new patients, the numbers of cured are released with
noise, and treatments that are clearly worse are dropped. Epochs get twice as long each time.

*Sensitivity.* A patient is in one epoch and gets one treatment, so another outcome of theirs moves one of all
released numbers, by one. Which treatments are in is decided by numbers released before. So discrete Laplace noise of
scale :math:`1/\varepsilon` on every number makes the whole run :math:`\varepsilon`-DP, however many epochs it has: one
charge, before the first patient (parallel composition over disjoint patients, in the order in which they come). The
order of patients, and so who is in which epoch, is public; neighbours differ in one outcome.

*Cost of privacy.* Telling treatments apart by a gap needs about 1/gap² patients for chance and 1/(gap · epsilon) for
noise: below gap = epsilon privacy is free. (Sajed, Sheffet 2019, An optimal private stochastic-MAB algorithm.)

Run it with ``.venv/bin/python examples/bandit.py [plot.svg]``; it takes seconds, and everything in it is made up.
"""

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import defocus as dp
from defocus.mechanisms import Laplace
from defocus.noise import Bits

CURED = (0.80, 0.65, 0.60, 0.50, 0.40)
PATIENTS = 20_000
EPSILONS = (0.05, 0.1, 0.5, 2.0)
Outcomes = Callable[[int, int], int]
"""How many of so many new patients a treatment cures."""


@dataclass
class Run:
    """What a run showed: the noisy numbers of every epoch, the treatments still in, and what was lost by trying."""

    released: list[dict[int, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    given: dict[int, int] = field(default_factory=dict)

    def regret(self, cured: Sequence[float]) -> float:
        """How many more would have been cured, on average, by the best treatment alone."""
        return sum((max(cured) - cured[arm]) * times for arm, times in self.given.items())


def ask(cured: Sequence[float], seed: int) -> Outcomes:
    """Made-up patients."""
    rng = np.random.default_rng(seed)
    return lambda arm, times: int(rng.binomial(times, cured[arm]))


def margin(times: int, epoch: int, arms: int, epsilon: float | None, beyond: float = 1e-3) -> float:
    """How far a noisy mean may be off, but for probability ``beyond`` over all epochs and treatments."""
    each = beyond / (2 * arms * (epoch + 1) * (epoch + 2))
    chance = math.sqrt(math.log(2 / each) / (2 * times))
    return chance + (math.log(1 / each) / (epsilon * times) if epsilon else 0.0)


def eliminate(
    outcomes: Outcomes, arms: int, patients: int, *, epsilon: float | None, book: Any = None, bits: Bits | None = None
) -> Run:
    """Successive elimination; without epsilon, without privacy."""
    noise = None if epsilon is None else Laplace.calibrated(epsilon=epsilon, sensitivity=1)
    if noise is not None and book is not None:
        book.charge(noise.event, purpose="which treatment works best")
    run = Run(left=list(range(arms)), given=dict.fromkeys(range(arms), 0))
    times, used, epoch = 32, 0, 0
    while used < patients:
        share = max(1, min(times, (patients - used) // len(run.left)))
        numbers = {arm: outcomes(arm, share) for arm in run.left}
        if noise is not None:
            numbers = {arm: noise.sample(number, bits) for arm, number in numbers.items()}
        run.released.append(numbers)
        for arm in run.left:
            run.given[arm] += share
        used += share * len(run.left)
        reach = margin(share, epoch, arms, epsilon)
        best = max(numbers.values()) / share
        run.left = [arm for arm in run.left if numbers[arm] / share > best - 2 * reach]
        times, epoch = 2 * times, epoch + 1
    return run


def regrets(epsilons: Sequence[float | None], runs: int = 10, patients: int = PATIENTS) -> list[float]:
    """The mean regret at each epsilon; None is without privacy."""
    return [
        float(
            np.mean(
                [
                    eliminate(ask(CURED, seed), len(CURED), patients, epsilon=epsilon).regret(CURED)
                    for seed in range(runs)
                ]
            )
        )
        for epsilon in epsilons
    ]


def figure(plain: float, found: Sequence[float]) -> Any:
    """Regret against epsilon."""
    from matplotlib.figure import Figure  # noqa: PLC0415 # an optional extra

    canvas = Figure(figsize=(7, 4), layout="constrained")
    axes = canvas.add_subplot()
    axes.plot(EPSILONS, found, "o-", label="private")
    axes.axhline(plain, color="0.5", linestyle=":", label="not private")
    axes.set(xscale="log", xlabel="epsilon for each patient", ylabel=f"cures missed among {PATIENTS}", ylim=(0, None))
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_title("What privacy costs a trial of five treatments")
    axes.legend(frameon=False)
    return canvas


def main(where: str | None = None) -> None:
    """Run the trial, print what was learned and what privacy cost, and draw the plot if told where."""
    unit = dp.item(replace=True)
    with (
        tempfile.TemporaryDirectory() as home,
        dp.Ledger.open(f"{home}/trial.ledger", budget=dp.Budget(1), unit=unit, dataset="trial") as book,
    ):
        run = eliminate(ask(CURED, 7), len(CURED), PATIENTS, epsilon=1.0, book=book)
        console = Console()
        console.print(f"After {len(run.released)} epochs still in: {run.left} (best is 0). {book.words()}")
    plain, *found = regrets([None, *EPSILONS])
    table = Table(title=f"cures missed among {PATIENTS} patients", box=box.SIMPLE_HEAD)
    for heading in ("not private", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)):
        table.add_column(heading, justify="right")
    table.add_row(*(f"{value:.0f}" for value in (plain, *found)))
    console.print(table)
    if where is not None:
        figure(plain, found).savefig(Path(where))


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", help="the file to draw the plot to")
    main(given.parse_args().plot)
