"""Questions to several owners: a person of many extreme rows at one of two sites, in every world.

What is seen is what the coordinator publishes. Each site adds all of the noise, since the other may know its own, so a
bound of about a half of the charge is what there is to be found here; noise of one site is attacked as any table's.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.audit.attacks.attack import AMPLE, Attack, Room
from tests.audit.attacks.tables import unbounded

import defocus as dp
from defocus.audit import batched
from defocus.federated import federation
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


ROOMS = (Room(name="counts of two sites", make=counts, faults=(unbounded,), few=2500, many=10_000, near=0.3),)
