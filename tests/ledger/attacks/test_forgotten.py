"""Declared facts that are forgotten or contradicted without a declaration."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, LedgerMismatchError

EDGES = [(one, (7 * one + 1) % 50) for one in range(50)]


@pytest.fixture
def ledger(tmp_path: Path) -> dp.Ledger:
    return dp.Ledger.open(
        tmp_path / "a.ledger", budget=dp.Budget(50, 1e-2), unit=dp.user("patient"), dataset="hospital"
    )


def stays(home: Path) -> Path:
    path = home / "stays.csv"
    path.write_text("patient,x\n" + "".join(f"{one},{one}\n" for one in range(100)))
    return path


def test_a_file_opened_with_a_view_has_the_facts_of_that_view(tmp_path: Path, ledger: dp.Ledger) -> None:
    view = ledger.data("visits", purposes=["care"])
    table = dp.open(stays(tmp_path), ledger=view, types={"patient": "integer"})
    assert table.ledger.purposes == ("care",)


def test_a_graph_with_direction_has_the_facts_of_its_name(ledger: dp.Ledger) -> None:
    view = ledger.data("contacts", unit=dp.edge(per_person=4), purposes=["care"])
    said: dict[str, Any] = {"ledger": view, "name": "contacts", "nodes": 50, "directed": True}
    with pytest.raises(LedgerMismatchError):
        dp.open_graph(EDGES, unit=dp.edge(per_person=1), **said)
    graph = dp.open_graph(EDGES, **said)
    assert (graph.ledger.unit, graph.ledger.purposes) == (dp.edge(per_person=4), ("care",))


def test_the_same_file_under_another_name_has_the_same_facts(tmp_path: Path, ledger: dp.Ledger) -> None:
    path = stays(tmp_path)
    dp.open(path, ledger=ledger, name="stays", purposes=["care"], types={"patient": "integer"})
    other = dp.open(path, ledger=ledger, name="stays ", types={"patient": "integer"})
    with pytest.raises(DefocusError, match="named purposes only"):
        other.agg(n=dp.count()).release(epsilon=1, purpose="marketing")
    with pytest.raises(LedgerMismatchError, match="a person appears there as"):
        dp.open(path, ledger=ledger, name="few", unit=dp.rows(per_person=1), types={"patient": "integer"})


def test_a_joined_private_table_keeps_its_purposes(tmp_path: Path, ledger: dp.Ledger) -> None:
    path = stays(tmp_path)
    dp.open(path, ledger=ledger, name="stays", purposes=["care"], types={"patient": "integer"})
    with pytest.raises(LedgerMismatchError, match="may be used for care only"):
        dp.open(pa.table({"patient": [1, 2]}), ledger=ledger, name="people", private={"stays": path})


def test_a_stream_on_data_with_purposes_can_be_resumed(ledger: dp.Ledger) -> None:
    alarms = ledger.data("alarms", unit=dp.item(per_person=2), purposes=["care"])
    plan = dp.workloads.RunningSum(10, epsilon=0.5, delta=1e-6, unit=alarms.unit, contribution=2)
    run = plan.start(ledger=alarms, purpose="care")
    run.add(3)
    assert plan.resume(run.save(), ledger=alarms).step == 1


def test_a_graph_opened_from_a_file_with_a_view_has_the_facts_of_that_view(tmp_path: Path, ledger: dp.Ledger) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n" + "".join(f"{one},{other}\n" for one, other in EDGES))
    view = ledger.data("contacts", unit=dp.edge(per_person=20), purposes=["care"])
    graph = dp.open_graph(path, ledger=view, nodes=50, ends=("a", "b"))
    assert graph.ledger.purposes == ("care",)
