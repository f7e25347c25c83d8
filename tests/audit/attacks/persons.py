"""One person of a ledger, as edges, events, records, a node, or rows under another name: all of it comes or goes."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks import graphs
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus import workloads as w
from defocus.audit import batched
from defocus.graphs import Network
from defocus.noise.testing import seeded
from defocus.privacy import Unit

_OWNED = 4


def _hospital(folder: Path, name: str = "h") -> dp.Ledger:
    return dp.Ledger.open(folder / f"{name}.ledger", budget=AMPLE, unit=dp.user("patient"), dataset="hospital")


def _with_and_without(nodes: int) -> tuple[graphs.Edges, graphs.Edges]:
    """All others are joined in a ring, and in the second graph the person knows four of them."""
    ring: graphs.Edges = [(i, 1 + i % (nodes - 1)) for i in range(1, nodes)]
    return ring, [*ring, *((0, other) for other in range(1, _OWNED + 1))]


def edges(folder: Path, _runs: int) -> Attack:
    unit = dp.edge(per_person=_OWNED)
    return graphs.attack(folder, Network.edges, _with_and_without(9), epsilon=1, unit=unit, nodes=9, book=_hospital)


def triangles(folder: Path, _runs: int) -> Attack:
    unit = dp.edge(per_person=_OWNED)
    pair = _with_and_without(9)
    return graphs.attack(folder, Network.triangles, pair, epsilon=1, unit=unit, nodes=9, book=_hospital)


def node(folder: Path, _runs: int) -> Attack:
    return graphs.attack(folder, Network.edges, _with_and_without(9), epsilon=1, unit=None, book=_hospital)


def records(folder: Path, runs: int) -> Attack:
    """Each cell is a world, in which the person has four records or none."""
    bits, charges = seeded(41), set()
    ledger = _hospital(folder).data("stays", unit=dp.rows(per_person=_OWNED))
    plan = w.plan(w.identity(runs), epsilon=1, unit=ledger.unit)

    def release(count: int, n: int) -> Any:
        answers = plan.release(np.full(runs, count), ledger=ledger, purpose="how many in each cell", bits=bits)
        charges.add(answers.release.event)
        # The last bits of a cell depend on the noisy sum of all cells, so of all worlds: they are no part of one.
        return np.round(answers.values, 6)[:n]

    return Attack(release=batched(release), pair=(7, 7 + _OWNED), event=plan.event, charges=charges)


def alarms(folder: Path, runs: int) -> Attack:
    """Each entry of the stream is a world; the person is in two events of the first step and two of the second."""
    bits, charges = seeded(42), set()
    plan = w.RunningSum(3, epsilon=4, delta=1e-6, entries=runs, unit=dp.item(per_person=_OWNED), contribution=_OWNED)

    def release(there: int, n: int) -> Any:
        with _hospital(folder, str(there)) as book:
            ledger = book.data("alarms", unit=dp.item(per_person=_OWNED))
            running = plan.start(ledger=ledger, purpose="alarms so far", bits=bits)
            charges.add(ledger.events())
            seen = [running.add(np.full(runs, there * (2 if i < 2 else 0))).value for i in range(3)]
        return np.stack(seen, axis=1)[:n]

    return Attack(release=batched(release), pair=(0, 1), event=plan.event, charges=charges, delta=0.05)


def rows(folder: Path, runs: int) -> Attack:
    """Each group is a world; the person, called otherwise in this table, has three rows in it, or none."""
    bits, charges = seeded(43), set()
    keys = list(range(runs))
    ledger = _hospital(folder)
    common = pa.table({"who": [-1 - key for key in keys], "g": keys})
    person = pa.table({"who": [key for key in keys for _ in range(3)], "g": [key for key in keys for _ in range(3)]})

    def release(there: int, n: int) -> Any:
        frame = pa.concat_tables([common, *([person] if there else [])])
        table = dp.open(frame, ledger=ledger, name="stays", unit=dp.user("who"), bound=dp.tables.Bound(rows=3))
        answer = table.declare(g=keys).group_by("g").agg(n=dp.count()).release(epsilon=1, bits=bits)
        charges.add(answer.receipt.event)
        return np.asarray(answer.to_arrow()["n"])[:n]

    plan = dp.open(common, ledger=ledger, name="stays", unit=dp.user("who"), bound=dp.tables.Bound(rows=3))
    event = plan.declare(g=keys).group_by("g").agg(n=dp.count()).preview(epsilon=1).event
    return Attack(release=batched(release), pair=(0, 1), event=event, charges=charges)


def one_change(patch: pytest.MonkeyPatch) -> None:
    """Whatever a person owns is taken for one edge or one node, and noise is made for that."""
    patch.setattr(Unit, "changes", property(lambda _: 1))


HALF, SLIGHTLY = less_noise(Fraction(1, 2)), less_noise(Fraction(3, 4))
ROOMS = (
    Room(name="edges of a person", make=edges, faults=(HALF,), slight=(SLIGHTLY,), few=1500, many=8000, near=0.7,
         again=True),
    Room(name="triangles of a person", make=triangles, faults=(), slight=(), few=1000, many=4000, again=True),
    Room(name="a person is a node", make=node, faults=(), few=0, many=1500, again=True),
    Room(name="records of a person", make=records, faults=(HALF,), slight=(SLIGHTLY,), few=10_000, near=0.7),
    Room(name="alarms of a person", make=alarms, faults=(HALF,), few=6000, many=10_000, near=0.2),
    Room(name="rows of a person", make=rows, faults=(HALF,), few=6000, many=10_000, near=0.6),
)  # fmt: skip
