"""Questions to several owners: a person of many extreme rows at one of two sites, in every world.

What is seen is what the coordinator publishes. Each site adds all of the noise, since the other may know its own, so a
bound of about a half of the charge is what there is to be found here; noise of one site is attacked as any table's.
Clients of a training count on each other's noise, so there nearly all of the charge is to be found.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise
from tests.audit.attacks.tables import unbounded

import defocus as dp
from defocus.audit import batched
from defocus.federated import federation
from defocus.federated.training_plan import TrainingPlan
from defocus.noise.testing import seeded
from defocus.privacy.events import Event

_ROWS = 60


def counts(folder: Path, runs: int) -> Attack:
    charges: set[Event] = set()
    each = np.arange(runs)
    queries = []
    for there in (0, 1):
        owned = {"north": 1, "south": 1 + there * _ROWS}
        sites = {}
        for i, (name, rows) in enumerate(owned.items()):
            people = np.concatenate([each, np.repeat(each + runs, rows - 1)]) + 10 * runs * i
            data = pa.table({"person": people, "world": np.concatenate([each, np.repeat(each, rows - 1)])})
            facts: dict[str, Any] = {"unit": dp.user("person"), "budget": AMPLE, "name": "visits"}
            sites[name] = dp.open(data, ledger=folder / f"{there}.{name}", bound=dp.tables.Bound(rows=5), **facts)
        asked = federation(sites).group_by("world", keys=range(runs))
        queries.append(asked.agg(n=dp.count()))

    def release(which: int, n: int) -> Any:
        answer = queries[which].release(epsilon=2)
        charges.add(answer.receipt.event)
        return np.asarray(answer["n"].values)[:n]

    event = queries[0].preview(epsilon=2).event
    return Attack(release=batched(release), pair=(0, 1), event=event, charges=charges)


def a_round(_folder: Path, _runs: int) -> Attack:
    """A round of training: three clients each add a share of noise, and one has an update beyond all bounds, or none.

    A round is charged by Flower's mods, with :attr:`TrainingPlan.event`; here its sum is made of the same calls.
    """
    plan, bits = TrainingPlan(clients=3, rounds=1, clip=1.0, noise_multiplier=1.0), seeded(71)
    others = [plan.encoded([np.array([0.6, 0.8])]), plan.encoded([np.array([-0.8, 0.6])])]
    share = plan.noise(2)

    def release(update: list[float]) -> Any:
        vectors = [*others, plan.encoded([np.array(update)])]
        total: Any = sum(share.sample(each, bits) for each in vectors)
        return plan.decoded(total, plan.clients)

    return Attack(release=release, pair=([0.0, 0.0], [1e300, 0.0]), event=plan.event(2), delta=0.05)


def four_times_as_long(patch: pytest.MonkeyPatch) -> None:
    """Updates are clipped to four norms."""
    honest = TrainingPlan.encoded
    patch.setattr(TrainingPlan, "encoded", lambda self, update: 4 * honest(self, update))


HALF, QUARTER = less_noise(Fraction(1, 2)), less_noise(Fraction(1, 4))
ROOMS = (
    Room(name="counts of two sites", make=counts, faults=(unbounded,), few=2500, many=10_000, near=0.3),
    Room(
        name="a round of training",
        make=a_round,
        faults=(QUARTER, four_times_as_long),
        slight=(HALF,),
        few=2500,
        near=0.4,
    ),
)
