"""One person, one budget: every kind of release is charged to one ledger of ``user("patient")``, and refused by it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import BudgetExceededError, DefocusError
from defocus.ledger.entries import CHARGE

WHOLE = dp.Budget(50, 1e-4)
PATIENTS, VISITS = 60, 240


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[dp.Ledger]:
    with dp.Ledger.open(tmp_path / "h.ledger", budget=WHOLE, unit=dp.user("patient"), dataset="hospital") as opened:
        yield opened


def visits(ledger: dp.Ledger) -> dp.tables.Table:
    patients = np.arange(VISITS) % PATIENTS
    frame = pa.table({"patient": patients, "days": (patients * 7 % 13).astype(float), "ward": ["A", "B"] * 120})
    table = dp.open(frame, ledger=ledger, name="visits", bound=dp.tables.Bound(rows=5))
    return table.declare(days=(0, 30), ward=["A", "B"])


def drugs(ledger: dp.Ledger) -> dp.tables.Table:
    frame = pa.table({"person": np.arange(90) % PATIENTS, "dose": np.ones(90)})
    table = dp.open(frame, ledger=ledger, name="drugs", unit=dp.user("person"), bound=dp.tables.Bound(rows=2))
    return table.declare(dose=(0, 5))


def contacts(ledger: dp.Ledger, unit: Any = None, **more: Any) -> dp.graphs.Network:
    edges = [(one, (one * 7 + step) % PATIENTS) for one in range(PATIENTS) for step in (1, 2)]
    name = "contacts" if unit is None else f"contacts by {unit.kind}"
    return dp.open_graph(edges, ledger=ledger, name=name, unit=unit, **more)


def features() -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (PATIENTS, 2))


def people(ledger: dp.Ledger) -> dp.Ledger:
    return ledger.data("people", unit=dp.rows(per_person=1))


def sql(ledger: dp.Ledger) -> Any:
    return visits(ledger).sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)


def other_sql(ledger: dp.Ledger) -> Any:
    return drugs(ledger).sql("SELECT SUM(dose) AS total FROM drugs", epsilon=0.5)


def cube(ledger: dp.Ledger) -> Any:
    return visits(ledger).cube("ward").release(epsilon=0.5)


def triangles(ledger: dp.Ledger) -> Any:
    return contacts(ledger).triangles().release(epsilon=1)


def node_edges(ledger: dp.Ledger) -> Any:
    return contacts(ledger).edges().release(epsilon=1)


def degrees(ledger: dp.Ledger) -> Any:
    return contacts(ledger, dp.edge(per_person=8), nodes=PATIENTS).degrees().release(epsilon=1)


def edge_triangles(ledger: dp.Ledger) -> Any:
    return contacts(ledger, dp.edge(per_person=8), nodes=PATIENTS).triangles().release(epsilon=1)


def training(ledger: dp.Ledger) -> Any:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    owners = np.arange(VISITS) % PATIENTS
    inputs = torch.tensor(features()[owners], dtype=torch.float32)
    trainer = dp.learning.Trainer(
        model,
        torch.nn.functional.mse_loss,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (inputs, inputs[:, :1].clone()),
        unit=dp.user("patient"),
        users=owners,
        epsilon=2,
        delta=1e-5,
        batch_size=20,
        steps=2,
        ledger=ledger,
    )
    return trainer.fit()


def estimator(name: str, **settings: Any) -> Callable[[dp.Ledger], Any]:
    def fit(ledger: dp.Ledger) -> Any:
        X = features()
        y = {"LinearRegression": X[:, 0], "PCA": None, "KMeans": None, "StandardScaler": None}.get(
            name, (X[:, 0] > 0).astype(int)
        )
        kind = getattr(dp.learning, name)
        model = kind(ledger=people(ledger), epsilon=1, bounds=([-1, -1], [1, 1]), **{"delta": 1e-6, **settings})
        return model.fit(X) if y is None else model.fit(X, y)

    return fit


def estimator_of_persons(ledger: dp.Ledger) -> Any:
    owners = np.arange(VISITS) % PATIENTS
    X = features()[owners]
    model = dp.learning.LogisticRegression(
        ledger=ledger.data("stays by patient"), epsilon=1, delta=1e-6, bounds=(-1, 1), classes=[0, 1], max_iter=20
    )
    return model.fit(X, (X[:, 0] > 0).astype(int), users=owners)


def estimator_of_a_table(ledger: dp.Ledger) -> Any:
    examples = visits(ledger).examples("days", "ward")
    return dp.learning.NaiveBayes(epsilon=1, delta=1e-6).fit(examples)


def evaluation(ledger: dp.Ledger) -> Any:
    examples = visits(ledger).derive(long="days > 4").examples("days", "long", group="ward")
    return dp.learning.evaluate(lambda rows: rows[:, 0] / 30, examples).release(epsilon=1)


def evaluation_of_persons(ledger: dp.Ledger) -> Any:
    owners = np.arange(VISITS) % PATIENTS
    X = features()[owners]
    view = ledger.data("scored by patient")
    asked = dp.learning.evaluate(
        lambda rows: rows[:, 0] / 2 + 0.5, X, X[:, 1] > 0, ledger=view, classes=[0, 1], users=owners
    )
    return asked.release(epsilon=1)


def workload(ledger: dp.Ledger) -> Any:
    view = ledger.data("stays", unit=dp.rows(per_person=3))
    plan = dp.workloads.plan(dp.workloads.prefix(8), epsilon=1, unit=view.unit)
    assert plan.contribution == 3
    return plan.release(np.full(8, 20), ledger=view, purpose="lengths of stay")


def running_sum(ledger: dp.Ledger) -> Any:
    view = ledger.data("alarms", unit=dp.item(per_person=2))
    stream = dp.workloads.RunningSum(8, epsilon=1, delta=1e-6, unit=view.unit, contribution=2)
    return stream.start(ledger=view, purpose="alarms a day")


def mechanism(ledger: dp.Ledger) -> Any:
    return dp.release.release(dp.mechanisms.Laplace(scale=4), 100, ledger=ledger, purpose="patients")


def telemetry(ledger: dp.Ledger) -> Any:
    asked = dp.local.mean("duchi", 0, 24, epsilon=1)
    return dp.local.collect(asked, ledger=ledger, purpose="hours", reports=365, values=1, participation="public")


def shuffled(ledger: dp.Ledger) -> Any:
    asked = dp.local.oracle("k-rr", ["a", "b"], epsilon=1)
    return dp.local.collect(asked, ledger=ledger, purpose="app settings", participation="public")


KINDS: dict[str, Callable[[dp.Ledger], Any]] = {
    "SQL": sql,
    "SQL on another table": other_sql,
    "cube": cube,
    "triangles, nodes protected": triangles,
    "edges, nodes protected": node_edges,
    "degrees, edges of a person": degrees,
    "triangles, edges of a person": edge_triangles,
    "training": training,
    "logistic regression": estimator("LogisticRegression", classes=[0, 1]),
    "linear regression": estimator("LinearRegression", target=(-1, 1)),
    "additive model": estimator("AdditiveModel", classes=[0, 1]),
    "naive Bayes": estimator("NaiveBayes", classes=[0, 1]),
    "k-means": estimator("KMeans", n_clusters=2),
    "PCA": estimator("PCA", n_components=1),
    "scaler": estimator("StandardScaler"),
    "logistic regression for an epsilon alone": estimator("LogisticRegression", classes=[0, 1], delta=0),
    "k-means for an epsilon alone": estimator("KMeans", n_clusters=2, delta=0),
    "logistic regression on several rows a person": estimator_of_persons,
    "naive Bayes of a table": estimator_of_a_table,
    "evaluation of a table": evaluation,
    "evaluation on several rows a person": evaluation_of_persons,
    "workload": workload,
    "running sum": running_sum,
    "mechanism": mechanism,
    "memoised local reports": telemetry,
    "local reports": shuffled,
}


def charges(ledger: dp.Ledger) -> int:
    return sum(entry.kind == CHARGE for entry in ledger.entries())


def test_every_kind_of_release_is_charged_to_the_ledger_of_one_person(ledger: dp.Ledger) -> None:
    for number, (kind, ask) in enumerate(KINDS.items(), start=1):
        before = ledger.spent()
        ask(ledger)
        assert charges(ledger) == number, kind
        assert ledger.spent() != before, kind
    assert ledger.verify().ok
    assert ledger.person == dp.user("patient")
    together = ledger.fixed_sequence().epsilon
    alone = sum(float(price) for price in (0.5, 0.5, 0.5, 1, 1, 1, 1, 2, *([1] * 11), 1, 1, 0.25, 1, 1))
    assert together < alone


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_is_refused_where_the_rest_does_not_cover_it(kind: str, tmp_path: Path) -> None:
    little: dict[str, Any] = {"budget": dp.Budget(0.01, 1e-9), "unit": dp.user("patient"), "dataset": "hospital"}
    with dp.Ledger.open(tmp_path / "h.ledger", **little) as ledger:
        before = ledger.spent()
        with pytest.raises(DefocusError):
            KINDS[kind](ledger)
        assert ledger.spent() == before
        assert charges(ledger) == 0


def test_a_release_about_one_data_set_leaves_less_for_another(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": dp.Budget(1.2), "unit": dp.user("patient"), "dataset": "hospital"}
    with dp.Ledger.open(tmp_path / "h.ledger", **terms) as ledger:
        triangles(ledger)
        with pytest.raises(BudgetExceededError):
            sql(ledger)


def test_noise_is_scaled_to_what_one_person_can_change(ledger: dp.Ledger) -> None:
    one = contacts(ledger, dp.edge(per_person=1), nodes=PATIENTS).edges()
    hospital = ledger.data("other", unit=dp.edge(per_person=8))
    eight = dp.open_graph([(0, 1)], ledger=hospital, name="other", nodes=PATIENTS).edges()
    assert eight.preview(epsilon=0.1).error == pytest.approx(8 * one.preview(epsilon=0.1).error, rel=0.01)


def test_answers_say_whom_they_protect(ledger: dp.Ledger) -> None:
    said = degrees(ledger).explain()
    assert "all edges of one person, at most 8" in said
    assert "about one person" in said
