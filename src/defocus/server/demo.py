"""The demo hospital: made-up visits of made-up patients, one person of each role, and links to sign in."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from defocus.server.requests import Desk
from defocus.server.roles import ADMINISTRATOR, Role

__all__ = ["PEOPLE", "demo"]

_WARDS = ("Cardiology", "Emergency", "Maternity", "Neurology", "Oncology", "Paediatrics", "Surgery")
_DIAGNOSES = ("asthma", "birth", "diabetes", "fracture", "heart failure", "hypertension", "pneumonia", "stroke")
_FILE = f"""\
# Everything here is public: written down without looking at a row.
name = "visits"
data = "visits.parquet"
purposes = ["bed planning", "quality report", "research"]

[unit]
column = "patient_id"  # everything about one patient is protected, however many visits there are

[budget]  # what all releases together may ever lose about one patient
epsilon = 3
delta = 1e-6

[bound]  # what one patient may contribute to one question
rows = 5

[columns.age]
low = 0
high = 100

[columns.days]
low = 0
high = 30

[columns.sex]
values = ["f", "m"]

[columns.ward]
values = {list(_WARDS)!r}
"""
PEOPLE = {Role.STEWARD: "Sofia", Role.OFFICER: "Omar", Role.ANALYST: "Ana", Role.AUDITOR: "Aki"}


def demo(desk: Desk, *, budget: float = 3) -> list[tuple[str, Role, str]]:
    """Make the hospital where there is none, and a link for each role; who has signed in before needs none."""
    folder = desk.settings.folder("visits")
    if not desk.datasets.all():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _visits(folder / "visits.parquet")
        desk.declare(ADMINISTRATOR, _FILE.replace("epsilon = 3", f"epsilon = {budget:g}"), "the demo hospital")
        desk.datasets.set_policy(
            ADMINISTRATOR,
            "visits",
            automatic=0.1,
            automatic_delta=1e-8,
            most=1.5,
            most_delta=5e-7,
            why="the demo hospital",
        )
    known = set(desk.people.names().values())
    return [(name, role, desk.invite(ADMINISTRATOR, role, name)) for role, name in PEOPLE.items() if name not in known]


def _visits(file: Path, patients: int = 20_000) -> None:
    """A few patients come very often. Nothing in it is private."""
    rng = np.random.default_rng(20261118)
    age = np.clip(rng.normal(47, 23, patients), 0, 99).astype(int)
    patient = np.repeat(np.arange(patients), 1 + rng.poisson(1.3, patients))
    number = len(patient)
    columns = {
        "patient_id": patient,
        "age": age[patient],
        "sex": rng.choice(["f", "m"], patients)[patient],
        "ward": rng.choice(_WARDS, number),
        "diagnosis": rng.choice(_DIAGNOSES, number),
        "days": np.round(rng.lognormal(1.2 + 0.006 * age[patient], 0.7), 1),
    }
    pq.write_table(pa.table(columns), file)
