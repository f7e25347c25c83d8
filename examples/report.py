"""A private report of a hospital: what ``make demo`` runs.

It generates patients and their visits, opens them through a dataset file with a budget, says beforehand how exact the
answers will be, releases a report, asks on until the ledger refuses, and leaves a page with plots in ``demo/``.
"""

import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

import defocus as dp
from defocus.errors import BudgetExceededError
from defocus.tables import Answer, Table

DEPARTMENTS = ("Cardiology", "Emergency", "Maternity", "Neurology", "Oncology", "Paediatrics", "Surgery")
DIAGNOSES = ("asthma", "birth", "diabetes", "fracture", "heart failure", "hypertension", "pneumonia", "stroke")
RARE = tuple(f"rare disease {number}" for number in range(1, 61))
LEDGER = (
    *("visits.ledger", "visits.ledger.lock", "visits.ledger-journal", "visits.ledger-wal", "visits.ledger-shm"),
    *("visits.ledger.anchor", "visits.ledger.anchor.lock"),
)
FILES = (*LEDGER, "defocus.toml", "visits.parquet", "patients.parquet", "report.html")
DATASET = """\
# Everything here is public: written down without looking at a row.
name = "visits"
data = "visits.parquet"
ledger = "visits.ledger"

[unit]
column = "patient_id"  # everything about one patient is protected, however many visits there are

[budget]  # what all releases together may ever lose about one patient
epsilon = 3
delta = 1e-6

[bound]  # what one patient may contribute to one question
rows = 5

[columns.length_of_stay]
low = 0
high = 30

[columns.department]
values = ["Cardiology", "Emergency", "Maternity", "Neurology", "Oncology", "Paediatrics", "Surgery"]

[private.patients]
data = "patients.parquet"
unit = "patient_id"

[private.patients.columns.sex]
values = ["f", "m"]
"""


def generate(folder: Path, patients: int = 20_000, seed: int | None = None) -> int:
    """A made-up hospital, with a few patients who come very often. Nothing in it is private."""
    rng = np.random.default_rng(seed)
    person = np.arange(patients)
    age = np.clip(rng.normal(47, 23, patients), 0, 99).astype(int)
    sex = rng.choice(["f", "m"], patients)
    often = np.maximum(1, np.round(np.exp(rng.normal(0.6, 0.8, patients)))).astype(int)
    who = np.repeat(person, often)
    n = len(who)
    names = np.array(DIAGNOSES + RARE)
    likely = np.r_[np.full(len(DIAGNOSES), 0.97 / len(DIAGNOSES)), np.full(len(RARE), 0.03 / len(RARE))]
    visits = {
        "patient_id": who,
        "department": rng.choice(DEPARTMENTS, n, p=[0.15, 0.25, 0.10, 0.09, 0.12, 0.11, 0.18]),
        "diagnosis": names[rng.choice(len(names), n, p=likely)],
        "length_of_stay": np.round(rng.lognormal(1.2 + 0.006 * age[who], 0.7, n), 1),
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    pq.write_table(pa.table({"patient_id": person, "age": age, "sex": sex}), folder / "patients.parquet")
    (folder / "defocus.toml").write_text(DATASET, encoding="utf-8")
    return n


def clear(folder: Path) -> None:
    """Make room: remove the ledger of an earlier demo, and touch nothing that the demo did not make.

    A ledger of real data is never removed, for the budget would start anew.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mine = folder / "defocus.toml"
    earlier = mine.is_file() and mine.read_text(encoding="utf-8", errors="replace") == DATASET
    there = [one.name for one in sorted(folder.iterdir()) if one.name in FILES]
    if there and not earlier:
        raise SystemExit(f"{folder} holds {', '.join(there)} that this demo did not make: choose another folder.")
    for name in LEDGER:
        (folder / name).unlink(missing_ok=True)


def questions(visits: Table, console: Console) -> list[Answer]:
    """The report: four questions, each previewed or explained in another way."""
    by_department = visits.group_by("department").agg(
        visits=dp.count(),
        patients=dp.count_units(),
        stay=dp.mean("length_of_stay"),
        median=dp.median("length_of_stay", intervals=True),
    )
    say(console, "1. Before anything is spent: how exact would a report by department be for epsilon 0.8?")
    console.print(Text(str(by_department.preview(epsilon=0.8))))
    say(console, "2. The report by department. Charged first, then computed, then shown.")
    first = shown(by_department.release(epsilon=0.8, purpose="visits by department", who="report"), console)
    say(console, "3. Diagnoses that nobody listed beforehand: groups with few patients are not shown at all.")
    diagnoses = visits.group_by("diagnosis", keys=None).agg(visits=dp.count())
    second = shown(diagnoses.release(epsilon=0.8, delta=1e-7, purpose="diagnoses", who="report"), console)
    say(console, "4. Two private tables, joined on the patient, counted in all combinations at once: they add up.")
    joined = visits.join("patients", on="patient_id").derive(older="age >= 65")
    third = shown(joined.cube("sex", "older").release(epsilon=0.3, purpose="by sex and age", who="report"), console)
    say(console, "5. The same in SQL.")
    text = "SELECT department, AVG(length_of_stay) AS stay FROM visits WHERE length_of_stay >= 2 GROUP BY department"
    console.print(Text(f"   {text}", style="dim"))
    fourth = shown(visits.sql(text, epsilon=0.3, purpose="stays of two days or more", who="report"), console)
    say(console, "6. What the report by department promises, in words.")
    console.print(Text(first.explain()))
    return [first, second, third, fourth]


def until_refused(visits: Table, console: Console) -> BudgetExceededError:
    """The same question again and again: averaging would remove the noise, so the ledger stops it."""
    say(console, "7. The same question again and again, to average the noise away.")
    asked = visits.where("length_of_stay > 14").agg(long_stays=dp.count())
    while True:
        try:
            answer = asked.release(epsilon=0.2, purpose="stays above 14 days", who="curious")
        except BudgetExceededError as refusal:
            console.print(Text("   refused:", style="bold"))
            console.print(Text(str(refusal), style="red"))
            return refusal
        console.print(Text(f"   {answer['long_stays'].values[0]:.0f}"))


def say(console: Console, text: str) -> None:
    """A heading."""
    console.print(Text(f"\n{text}", style="bold"))


def shown(answer: Answer, console: Console) -> Answer:
    """Print an answer and pass it on."""
    console.print(Text(str(answer)))
    return answer


def command() -> str:
    """How to call ``defocus`` from here: by its name where the shell finds it, else by its path."""
    beside = Path(sys.executable).with_name("defocus")
    if shutil.which("defocus") or not beside.exists():
        return "defocus"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def main(folder: Path = Path("demo")) -> None:
    """Make the report."""
    console = Console(soft_wrap=True)
    started = time.perf_counter()
    # A new made-up hospital each time, and with it a new ledger. A real data set keeps its ledger for good.
    clear(folder)
    n = generate(folder)
    with dp.open(folder / "defocus.toml") as visits:
        console.print(Text(f"{n} visits in {folder / 'visits.parquet'}; protected: {visits.ledger.unit}"))
        answers = questions(visits, console)
        until_refused(visits, console)
        page = dp.report(answers, folder / "report.html", title="Hospital report", ledger=visits.ledger)
    say(console, f"Done in {time.perf_counter() - started:.1f} s. The page with plots is {page}.")
    console.print(Text(f"Where the budget went: {command()} budget --dataset {folder / 'defocus.toml'}"))


if __name__ == "__main__":
    main()
