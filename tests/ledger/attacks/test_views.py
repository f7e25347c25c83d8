"""Views of one ledger: streams, runs and openings that mix data sets up or leave wrong facts behind."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.cli.app import main
from defocus.errors import DefocusError, LedgerMismatchError
from defocus.ledger.declarations import Declaration
from defocus.ledger.ledger import _declared


def book(home: Path, *, replace: bool = False) -> dp.Ledger:
    return dp.Ledger.open(
        home / "a.ledger", budget=dp.Budget(50, 1e-2), unit=dp.user("patient", replace=replace), dataset="hospital"
    )


def test_a_stream_is_not_resumed_for_data_in_which_a_person_weighs_more(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    alarms, mail = ledger.data("alarms", unit=dp.item(per_person=1)), ledger.data("mail", unit=dp.item(per_person=20))
    plan = dp.workloads.RunningSum(10, epsilon=0.5, delta=1e-6, unit=alarms.unit)
    run = plan.start(ledger=alarms, purpose="alarms")
    run.add(3)
    state = run.save()
    with pytest.raises(DefocusError):
        plan.resume(state, ledger=mail)


def test_a_stream_stops_where_the_ledger_now_declares_more_changes(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    alarms = ledger.data("alarms", unit=dp.item(per_person=1))
    run = dp.workloads.RunningSum(10, epsilon=0.5, delta=1e-6, unit=alarms.unit).start(ledger=alarms, purpose="alarms")
    run.add(3)
    ledger.declare("alarms", unit=dp.item(per_person=20), why="they have twenty")
    with pytest.raises(DefocusError):
        dp.workloads.RunningSum.resume(run.save(), ledger=ledger.data("alarms")).add(7)


def test_shuffled_batches_are_refused_where_a_person_may_be_absent_from_the_data(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    view = book(tmp_path, replace=True).data("survey", unit=dp.rows(per_person=1))
    assert not view.unit.number_is_public
    x, model = torch.zeros(200, 4), torch.nn.Linear(4, 2)
    with pytest.raises(DefocusError):
        dp.learning.Trainer(
            model,
            torch.nn.CrossEntropyLoss(),
            torch.optim.SGD(model.parameters(), lr=0.1),
            (x, torch.zeros(200).long()),
            unit=view.unit,
            epsilon=4,
            delta=1e-5,
            batch_size=20,
            steps=10,
            ledger=view,
            sampling="shuffled",
        )


def test_an_opening_that_fails_declares_nothing(tmp_path: Path) -> None:
    ledger, drugs = book(tmp_path), pa.table({"pid": np.arange(100)})
    with pytest.raises(DefocusError):
        dp.open(drugs, ledger=ledger, name="drugs")  # no column patient
    assert dp.open(drugs, ledger=ledger, name="drugs", unit=dp.user("pid")).ledger.unit == dp.user("pid")


def test_a_graph_whose_opening_fails_declares_nothing(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    with pytest.raises(DefocusError):
        dp.open_graph([(1, 2)], ledger=ledger.data("people", unit=dp.rows(per_person=1)), name="contacts")
    graph = dp.open_graph([(1, 2)], ledger=ledger, name="contacts", unit=dp.edge(per_person=4), nodes=5)
    assert graph.ledger.unit == dp.edge(per_person=4)


def test_opening_its_own_file_does_not_end_a_ledger(tmp_path: Path) -> None:
    ledger, path = book(tmp_path), tmp_path / "v.csv"
    path.write_text("patient,x\n1,2\n")
    dp.open(path, ledger=ledger, name="hospital")
    ledger.charge(dp.privacy.Laplace(5), purpose="a count")


def test_a_declaration_that_does_not_translate_is_noticed(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    with ledger._chain.end(write=True) as (session, last):
        entry = _declared(last, Declaration("letters", dp.rows()), by=("somebody", "forged"))
        session.append(entry)
    ledger._chain.note(entry)
    assert not ledger.verify().ok


def test_edges_of_another_graph_need_a_bound_of_their_own(tmp_path: Path) -> None:
    ledger = dp.Ledger.open(tmp_path / "n.ledger", budget=dp.Budget(5), unit=dp.node(max_degree=2), dataset="friends")
    with pytest.raises(LedgerMismatchError):
        # A star of 40 edges: its centre is charged for two of them. In the ledger's own graph the cap is enforced.
        dp.open_graph([(0, one) for one in range(1, 41)], ledger=ledger, name="calls", unit=dp.edge(), nodes=41)


@pytest.mark.parametrize("owned", ["0", "-5"])
def test_a_slip_in_the_terminal_does_not_end_a_ledger(tmp_path: Path, owned: str) -> None:
    with book(tmp_path) as ledger:
        ledger.data("alarms", unit=dp.item(per_person=2))
    place = str(tmp_path / "a.ledger")
    assert main(["ledger", "declare", place, "alarms", f"--per-person={owned}", "--why", "a slip"]) != 0
    with dp.Ledger.open(place) as again:
        again.charge(dp.privacy.Laplace(5), purpose="a count")


def test_a_ledger_in_the_folder_of_the_data_is_not_part_of_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "visits"
    folder.mkdir()
    pq.write_table(pa.table({"patient": np.arange(50)}), folder / "a.parquet")
    ledger = book(folder)
    for _ in range(2):
        dp.open(folder, ledger=ledger, name="visits").agg(n=dp.count()).release(epsilon=1)
