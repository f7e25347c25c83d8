"""One hospital, one patient, one budget: visits, contacts, a model and telemetry, all charged to one ledger.

Run it with ``.venv/bin/python examples/one_patient.py``; it takes some seconds, makes its own data, and draws how the
budget of a patient burns down, by the data set that took it, into ``one_patient.svg``.

The ledger protects everything about one patient. Each data set says how a patient appears in it: as the rows with one
value of a column, as a node of a graph with all its edges, as one row of a survey, or as a device that reports.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import defocus as dp
from defocus.cli.app import main as defocus
from defocus.errors import BudgetExceededError

PATIENTS = 2_000
TOTAL = dp.Budget(4, 1e-5)


def visits(rng: np.random.Generator) -> pa.Table:
    """Some patients come once, some often."""
    patient = rng.integers(0, PATIENTS, 3 * PATIENTS)
    ward, days = rng.choice(["heart", "lung", "knee"], len(patient)), rng.gamma(2, 2, len(patient))
    return pa.table({"patient": patient, "ward": ward, "days": days})


def contacts(rng: np.random.Generator) -> list[tuple[int, int]]:
    """Who shared a room with whom."""
    return [(int(one), int(other)) for one, other in rng.integers(0, PATIENTS, (2 * PATIENTS, 2)) if one != other]


def release(ledger: dp.Ledger, rng: np.random.Generator) -> list[str]:
    """Everything that this hospital releases, in words."""
    stays = dp.open(visits(rng), ledger=ledger, name="visits", bound=dp.tables.Bound(rows=6)).declare(
        ward=["heart", "lung", "knee"], days=(0, 30)
    )
    answer = stays.sql("SELECT ward, COUNT(*) AS stays, AVG(days) AS days FROM visits GROUP BY ward", epsilon=1)
    told = [f"stays in {row['ward']}: {row['stays']}" for row in answer.to_arrow().to_pylist()]

    graph = dp.open_graph(contacts(rng), ledger=ledger, name="contacts")  # a patient is a node, with all its edges
    told.append(f"shared rooms: {graph.edges().release(epsilon=0.5).value:.0f}")

    people = ledger.data("survey", unit=dp.rows(per_person=1))  # one row a patient
    X = rng.uniform(-1, 1, (PATIENTS, 3))
    well = (X @ [2, -1, 0] + rng.normal(0, 0.3, PATIENTS) > 0).astype(int)
    model = dp.learning.LogisticRegression(
        ledger=people, epsilon=1, delta=1e-6, bounds=([-1] * 3, [1] * 3), classes=[0, 1]
    ).fit(X, well)
    told.append(f"who recovers: coefficients {np.round(model.coef_[0], 1).tolist()}")

    app = ledger.data("app", unit=dp.user("device"))  # devices answer from what they drew once
    asked = dp.local.mean("duchi", 0, 24, epsilon=1)
    dp.local.collect(asked, ledger=app, purpose="hours of use", reports=365, values=1, participation="public")
    told.append("hours of use: every device may report a year long")
    return told


def main(picture: Path) -> None:
    """Release, and show what it cost one patient."""
    with tempfile.TemporaryDirectory() as home:
        place = f"{home}/hospital.ledger"
        with dp.Ledger.open(place, budget=TOTAL, unit=dp.user("patient"), dataset="hospital") as ledger:
            print(*release(ledger, np.random.default_rng(1)), sep="\n")
            try:
                dp.open_graph([(0, 1)], ledger=ledger, name="contacts").triangles().release(epsilon=2)
            except BudgetExceededError as refused:
                print(f"triangles: {refused.what}")
        defocus(["units", place])
        defocus(["budget", "--dataset", place, "--plot", str(picture)])


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", default="one_patient.svg", help="the file to draw the plot to")
    main(Path(given.parse_args().plot))
