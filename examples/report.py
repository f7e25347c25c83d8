"""A private report of a hospital: what ``make demo`` runs.

It generates a table of stays, opens a ledger for it in ``demo/``, says beforehand how exact each answer will be,
releases counts, a mean and a most common diagnosis, and goes on asking until the ledger refuses.
"""

import csv
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from defocus import Budget, privacy, user
from defocus.errors import BudgetExceededError
from defocus.ledger import Ledger
from defocus.mechanisms import Exponential, Grid, Laplace, Mechanism, advise
from defocus.release import Release, preview, release

DEPARTMENTS = ("Cardiology", "Emergency", "Maternity", "Neurology", "Oncology", "Paediatrics", "Surgery")
DIAGNOSES = ("E11 diabetes", "I10 hypertension", "I50 heart failure", "J18 pneumonia", "J45 asthma", "O80 birth")
STAYS_EACH = 2
"""A patient counts with two stays at most; declared, not looked up."""
LONGEST = 30
"""Stays are counted as at most 30 days; declared, not looked up."""
BUDGET = Budget(1, 1e-6)


@dataclass(frozen=True, slots=True)
class Stays:
    """One row for each stay, as columns."""

    patient: Any
    department: Any
    diagnosis: Any
    days: Any

    def bounded(self) -> "Stays":
        """The first stays of each patient, so that nobody counts more often than was declared.

        Which rows of a patient are kept depends on that patient's rows alone: adding or removing someone
        changes nothing about the others.
        """
        order = np.argsort(self.patient, kind="stable")
        people = self.patient[order]
        starts = np.flatnonzero(np.r_[True, people[1:] != people[:-1]]) if len(people) else order
        rank = np.arange(len(people)) - np.repeat(starts, np.diff(np.r_[starts, len(people)]))
        kept = np.sort(order[rank < STAYS_EACH])
        return Stays(self.patient[kept], self.department[kept], self.diagnosis[kept], self.days[kept])


def generate(patients: int = 4000, seed: int | None = None) -> Stays:
    """A made-up hospital. Nothing here is private, so numpy's generator will do."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), rng.geometric(0.7, patients))
    n = len(patient)
    weights = np.array([15, 25, 10, 9, 12, 11, 18]) / 100
    department = rng.choice(len(DEPARTMENTS), n, p=weights)
    diagnosis = rng.choice(len(DIAGNOSES), n, p=[0.17, 0.27, 0.14, 0.16, 0.13, 0.13])
    days = np.round(rng.lognormal(1.4, 0.8, n) * 2) / 2
    return Stays(patient, department, diagnosis, days)


def save(stays: Stays, path: Path) -> None:
    """Write the table where a curious reader finds it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("patient_id", "department", "diagnosis", "days"))
        for person, where, what, days in zip(stays.patient, stays.department, stays.diagnosis, stays.days, strict=True):
            writer.writerow((person, DEPARTMENTS[where], DIAGNOSES[what], days))


def counts(column: Any, kinds: Sequence[str]) -> Any:
    """How many stays there are of each kind. One patient moves this vector by STAYS_EACH in L1 norm."""
    return np.bincount(column, minlength=len(kinds)).astype(np.int64)


def by_department(stays: Stays, ledger: Ledger, console: Console) -> Release:
    """Counts by department, with the noise that errs least."""
    advice = advise(budget=Budget(0.5, 1e-6), dimension=len(DEPARTMENTS), l1=STAYS_EACH, l2=STAYS_EACH)
    console.print(Text(f"\n1. Stays by department. {advice.why}"))
    announce(advice.mechanism, ledger, console)
    true = counts(stays.department, DEPARTMENTS)
    found = release(advice.mechanism, true, ledger=ledger, purpose="stays by department", who="report")
    table = Table("department", box=box.SIMPLE_HEAD)
    table.add_column("released", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("(true, for once)", justify="right", style="dim")
    for name, value, secret in zip(DEPARTMENTS, found.value, true, strict=True):
        table.add_row(name, str(value), f"± {found.interval:g}", str(secret))
    console.print(table)
    return found


def mean_stay(stays: Stays, total_stays: int, ledger: Ledger, console: Console) -> Release:
    """Mean length of stay: a noisy total on a grid of half days, divided by the count that is public already."""
    grid = Grid("0.5")
    bound = STAYS_EACH * grid.bound(low=0, high=LONGEST)
    mechanism = Laplace.calibrated(epsilon=0.2, sensitivity=bound)
    console.print(Text("\n2. Mean length of stay. The total is released; dividing it by a released count is free."))
    announce(mechanism, ledger, console, grid=grid)
    total = grid.total(stays.days, low=0, high=LONGEST)
    found = release(mechanism, total, ledger=ledger, purpose="total days", who="report", grid=grid)
    mean, width = found.value / total_stays, found.interval / total_stays
    true = float(np.clip(stays.days, 0, LONGEST).mean())
    console.print(Text(f"   {mean:.2f} days on average, ± {width:.2f} from this noise (true, for once: {true:.2f})"))
    return found


def common_diagnosis(stays: Stays, ledger: Ledger, console: Console) -> Release:
    """The most common diagnosis by the exponential mechanism; counts are monotone when a patient is added."""
    mechanism = Exponential(epsilon=0.1, candidates=len(DIAGNOSES), sensitivity=STAYS_EACH, monotone=True)
    console.print(Text("\n3. Most common diagnosis. Only the choice is released, no count."))
    announce(mechanism, ledger, console)
    utilities = counts(stays.diagnosis, DIAGNOSES)
    found = release(mechanism, utilities, ledger=ledger, purpose="most common diagnosis", who="report")
    console.print(Text(f"   {DIAGNOSES[found.value]}"))
    return found


def until_refused(stays: Stays, ledger: Ledger, console: Console) -> BudgetExceededError:
    """Ask the same question again and again: averaging would remove the noise, so the ledger stops it."""
    console.print(Text("\n4. The same question again and again, to average the noise away."))
    mechanism = Laplace.calibrated(epsilon=0.1, sensitivity=STAYS_EACH)
    long_stays = int((stays.days > 14).sum())
    while True:
        try:
            found = release(mechanism, long_stays, ledger=ledger, purpose="stays above 14 days", who="curious")
        except BudgetExceededError as refusal:
            console.print(Text("   refused:", style="bold"))
            console.print(Padding(Text(str(refusal), style="red"), (0, 0, 0, 3)))
            return refusal
        console.print(Text(f"   {found}"))


def announce(mechanism: Mechanism, ledger: Ledger, console: Console, *, grid: Grid | None = None) -> None:
    """What is known before anything is spent."""
    console.print(facts(str(preview(mechanism, ledger=ledger, grid=grid)), style="dim"))


def facts(text: str, style: str = "") -> Padding:
    """Lines of the form "name: what it stands for", with the second part wrapped below itself."""
    grid = Table.grid(padding=(0, 2))
    for line in text.split("\n"):
        name, _, rest = line.partition(": ")
        grid.add_row(Text(name, style=style), Text(rest.strip(), style=style))
    return Padding(grid, (0, 0, 0, 3))


def burn_down(ledger: Ledger, console: Console) -> None:
    """How the budget went down, charge by charge."""
    console.print(Text("\n5. Where the budget went."))
    rule = privacy.filter(ledger.budget, ledger.unit.adjacency)
    table = Table("who", "purpose", box=box.SIMPLE_HEAD)
    table.add_column("epsilon left", justify="right")
    table.add_column("")
    for entry in ledger.entries():
        if entry.kind != "release":
            left = rule.remaining(privacy.Cost(entry.spent)).epsilon
            table.add_row(Text(entry.who), Text(entry.purpose), f"{left:.2f}", "█" * round(20 * left))
    console.print(table)


def command() -> str:
    """How to call ``defocus`` from here: by its name where the shell finds it, else by its path."""
    beside = Path(sys.executable).with_name("defocus")
    if shutil.which("defocus") or not beside.exists():
        return "defocus"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def main(folder: Path = Path("demo")) -> None:
    """Make the report."""
    console = Console()
    # A new made-up hospital each time, and with it a new ledger. A real data set keeps its ledger for good.
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("stays.csv", "stays.sqlite", "stays.sqlite-journal"):
        (folder / name).unlink(missing_ok=True)
    everything = generate()
    save(everything, folder / "stays.csv")
    stays = everything.bounded()
    path = folder / "stays.sqlite"
    with Ledger.open(path, dataset="hospital stays", unit=user("patient_id"), budget=BUDGET) as ledger:
        console.print(Text(f"{len(everything.patient)} stays in {folder / 'stays.csv'}; {ledger.unit}; {BUDGET}"))
        departments = by_department(stays, ledger, console)
        mean_stay(stays, int(departments.value.sum()), ledger, console)
        diagnosis = common_diagnosis(stays, ledger, console)
        until_refused(stays, ledger, console)
        burn_down(ledger, console)
        console.print(Text("\n6. What the most common diagnosis promises, in words."))
        console.print(facts(diagnosis.explain()))
        console.print(
            Text(f"\nThe ledger is in {path}. Look at it with:\n  {command()} ledger show {path}"), soft_wrap=True
        )


if __name__ == "__main__":
    main()
