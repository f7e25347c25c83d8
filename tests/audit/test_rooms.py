"""The auditor attacks what users call, room by room: no release loses more than it was charged, and faults are caught.

Confidence is shared between all audits, so that all of them together raise a false alarm with probability 1e-6 at
most; seeds are fixed, so that a run that passed passes again.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.audit.attacks import (
    estimators,
    evaluation,
    federation,
    graphs,
    local,
    persons,
    synthesis,
    tables,
    training,
    workloads,
)
from tests.audit.attacks.attack import CONFIDENCE, Fault, Room, table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

import defocus
from defocus.noise.testing import seeded

PLACES: tuple[ModuleType, ...] = (
    tables, graphs, estimators, evaluation, training, workloads, synthesis, federation, local, persons
)  # fmt: skip
ROOMS: dict[str, Room] = {
    f"{place.__name__.rsplit('.', 1)[1]}: {room.name}": room for place in PLACES for room in place.ROOMS
}
PAYING = {
    "tables.query": "tables: count, sum, mean",
    "tables.cubes": "tables: cube",
    "graphs.network": "graphs: triangles",
    "graphs.neighbour_sums": "graphs: sums over neighbours",
    "workloads.streams": "workloads: running sum",
    "release.release": "workloads: every cell",
    "synthesis.synthesiser": "synthesis: rows",
    "synthesis.people": "synthesis: people",
    "local.surveys": "local: olh",
    "learning.charge": "training: one step",
    "learning.estimators.fit_budget": "estimators: logistic regression",
    "learning.evaluation.question": "evaluation: a row",
    "learning.evaluation.choice": "evaluation: a choice of models",
}
"""Each module that charges a ledger, and an attack on what it releases."""
ELSEWHERE = {
    "audit.report": "charges nothing, for findings",
    "federated.flower": "its sums: federation: a round of training; its charges: tests/federated",
    "learning.hyperparameters": "the best of many trainings: tests/learning/test_hyperparameters.py has the law",
    "learning.ledgers": "charges for learning.charge",
    "workloads.streams.state": "charges nothing, to go on with a stream",
}
QUICK = [name for name, room in ROOMS.items() if room.few]
FAULTS = [(name, i) for name in QUICK for i in range(len(ROOMS[name].faults))]
SLIGHT = [(name, i) for name, room in ROOMS.items() for i in range(len(room.slight))]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Products of a few numbers are not worth a second thread, and wait for it long on a busy machine."""
    with threadpool_limits(1):
        yield


def caught(room: Room, fault: Fault, trials: int, folder: Path, patch: pytest.MonkeyPatch) -> bool:
    attack = room.make(folder, trials)
    fault(patch)
    return attack.judged(trials).violation


def test_whatever_charges_a_ledger_is_attacked() -> None:
    """A new way to pay fails here, until it has an attack or a reason why there is none."""
    source = Path(defocus.__file__).parent
    paying = re.compile(
        r"^from defocus\.(release\.paid_computation|release\.charge|learning\.ledgers) import .*", re.MULTILINE
    )
    found = set()
    for path in source.rglob("*.py"):
        names = {name for line in paying.finditer(path.read_text("utf-8")) for name in re.split(r"[ ,]+", line[0])}
        place = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        if names & {"perform", "charge", "charge_run"} and not place.startswith("release."):
            found.add(place)
    assert found | {"release.release"} == set(PAYING) | set(ELSEWHERE)
    assert set(PAYING.values()) <= set(ROOMS)


def test_every_attack_stands_on_the_scoreboard() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scoreboard.md").read_text("utf-8")
    assert [name for name in ROOMS if f"\n| {name} |" not in page] == []


@pytest.mark.statistical
@pytest.mark.parametrize("name", QUICK)
def test_no_release_is_seen_to_lose_more_than_it_was_charged(name: str, tmp_path: Path) -> None:
    room = ROOMS[name]
    attack = room.make(tmp_path, room.few)
    finding = attack.judged(room.few)
    assert not finding.violation, finding
    assert not finding.notes
    assert attack.charges <= {attack.charged}


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "which"), FAULTS)
def test_the_same_audit_catches_a_release_that_is_broken(
    name: str, which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = ROOMS[name]
    assert caught(room, room.faults[which], room.few, tmp_path, monkeypatch)


@pytest.mark.statistical
def test_noise_for_one_edge_is_caught_where_a_person_owns_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    persons.one_change(monkeypatch)
    assert persons.edges(tmp_path, 1500).judged(1500).violation


@pytest.mark.parametrize("name", [name for name, room in ROOMS.items() if room.again])
def test_what_is_repeated_is_the_release(name: str, tmp_path: Path) -> None:
    """Given the same bits, the stage that is repeated shows what a release with its plan, charge and record shows."""
    attack = ROOMS[name].make(tmp_path, 1)
    assert attack.repeated is not None
    assert attack.whole is not None
    for seed, data in enumerate(attack.pair):
        shown = attack.whole(data, seeded(seed))
        np.testing.assert_array_equal(attack.repeated(data, seeded(seed)), shown)
    assert attack.charges == {attack.charged}


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.__name__.rsplit(".", 1)[1]))
def test_no_release_of_a_room_loses_more_and_most_come_near(place: ModuleType, tmp_path: Path) -> None:
    found = {}
    for i, room in enumerate(place.ROOMS):
        folder = tmp_path / str(i)
        folder.mkdir()
        attack = room.make(folder, room.many)
        found[room.name] = attack.judged(room.many)
        assert attack.charges <= {attack.charged}
    print(f"\n{table(found)}")  # noqa: T201  # what the audits show, for whoever looks: pytest -m long -s
    for room in place.ROOMS:
        finding = found[room.name]
        assert not finding.violation, finding
        assert finding.epsilon_lower >= room.near * float(finding.claimed or 0), finding


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "which"), SLIGHT)
def test_many_runs_catch_slighter_faults(
    name: str, which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = ROOMS[name]
    assert caught(room, room.slight[which], room.many, tmp_path, monkeypatch)


def test_all_audits_together_raise_hardly_ever_a_false_alarm() -> None:
    audits = len(QUICK) + len(FAULTS) + len(ROOMS) + len(SLIGHT)
    assert audits * (1 - CONFIDENCE) <= 1e-6
