"""Evaluations: each group is a world, in which one row or one person more may be."""

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.audit import batched
from defocus.learning.evaluation import choice as evaluated
from defocus.mechanisms import Exponential
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.units import Unit

_OTHERS, _OWNED = 3, 4


def _sure(rows: Any) -> Any:
    return np.full(len(rows), 0.9)


def _attack(folder: Path, runs: int, unit: Unit, *, more: int) -> Attack:
    """In each group others with one row each; in the second data, somebody with ``more`` rows, all of them wrong."""
    bits, charges = seeded(61), set()
    ledger = dp.Ledger.open(folder / "evaluated.ledger", budget=AMPLE, unit=unit, dataset="patients")

    def asked(extra: int) -> dp.learning.Evaluation:
        here = np.repeat(np.arange(runs), _OTHERS + extra)
        place = np.tile(np.arange(_OTHERS + extra), runs)
        who = here * (_OTHERS + 1) + np.minimum(place, _OTHERS)
        users: dict[str, Any] = {"users": who} if unit.kind == "user" else {}
        return dp.learning.evaluate(
            _sure,
            np.zeros((len(here), 1)),
            (place < _OTHERS).astype(int),
            classes=[0, 1],
            groups=here,
            group_names=range(runs),
            buckets=[],
            ledger=ledger,
            **users,
        )

    def release(extra: int, n: int) -> Any:
        answer = asked(extra).release(epsilon=1, bits=bits)
        charges.add(answer.receipt.event)
        return answer.cells.reshape(answer.layout.shapes[0])[:n].reshape(n, -1)

    event: Any = asked(0).preview(epsilon=1).event
    return Attack(release=batched(release), pair=(0, more), event=event, charges=charges)


def rows(folder: Path, runs: int) -> Attack:
    return _attack(folder, runs, dp.rows(), more=1)


def persons(folder: Path, runs: int) -> Attack:
    return _attack(folder, runs, dp.user("patient"), more=_OWNED)


def choice(folder: Path, _runs: int) -> Attack:
    """Of two models the one that is behind, and told right by the added row alone: the rarer it is, the more it tells.

    The models are asked once about each data set, and the choice is made again and again.
    """
    bits, charges = seeded(62), set()
    ledger = dp.Ledger.open(folder / "chosen.ledger", budget=AMPLE, unit=dp.rows(), dataset="patients")
    models: dict[str, Any] = {"behind": lambda x: x[:, 0], "ahead": lambda x: x[:, 1]}
    others = [[0.1, 0.9]] * 2
    asked = []
    for rows_ in (others, [*others, [0.9, 0.1]]):
        there = np.array(rows_)
        asked.append(
            {
                name: dp.learning.evaluate(model, there, np.ones(len(there), int), classes=[0, 1], ledger=ledger)
                for name, model in models.items()
            }
        )

    def whole(which: int, drawn: Bits) -> int:
        found = dp.learning.choose(asked[which], epsilon=1, bits=drawn)
        assert found.receipt is not None
        charges.add(found.receipt.event)
        return list(models).index(found.best)

    def watched(self: Exponential, right: Any, drawn: Bits) -> int:
        planned.append(self)
        return honest(self, right, drawn)

    honest, planned = Exponential.sample, list[Exponential]()
    with mock.patch.object(Exponential, "sample", watched):
        whole(0, seeded(63))
    (event,), (mechanism,) = charges, planned
    exact = [[(each.exact(each.layout), each.layout) for each in models_.values()] for models_ in asked]

    def repeated(which: int, drawn: Bits) -> int:
        return int(mechanism.sample([evaluated._right(*one) for one in exact[which]], drawn))

    return Attack(
        release=lambda which: repeated(which, bits), pair=(0, 1), event=event, charges=charges, repeated=repeated,
        whole=whole,
    )  # fmt: skip


def as_sure_as_with_more_rows(patch: pytest.MonkeyPatch) -> None:
    """Each row counts three times."""
    honest = evaluated._right
    patch.setattr(evaluated, "_right", lambda cells, layout: 3 * honest(cells, layout))


HALF = less_noise(Fraction(1, 2))
ROOMS = (
    Room(name="a row", make=rows, faults=(HALF,), slight=(less_noise(Fraction(4, 5)),), near=0.5),
    Room(name="a person with several rows", make=persons, faults=(HALF,), near=0.5),
    Room(
        name="a choice of models",
        make=choice,
        faults=(),
        slight=(as_sure_as_with_more_rows,),
        near=0.4,
        again=True,
    ),
)
