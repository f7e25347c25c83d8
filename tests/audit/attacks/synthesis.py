"""Synthetic rows and people: one more of a value that nobody else has. What is attacked is all that a fit releases."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.events import Event
from defocus.synthesis import Generator, PeopleGenerator, PeopleSynthesiser, Synthesiser, people, synthesiser
from defocus.synthesis.counting import Counter
from defocus.tables.table import Table

_PRICE = {"epsilon": 4, "delta": 1e-6}
Made = Generator | PeopleGenerator


def _measured(made: Made) -> Any:
    """Sizes, distances, margins and tables: everything else, synthetic rows too, follows from them."""
    parts: list[Any] = []
    for one in (made,) if isinstance(made, Generator) else (made.persons, made.steps):
        own = one.fitted
        parts.append(np.r_[own.total, own.distances.counts])
        alone = {(i,): margin for i, margin in enumerate(own.margins)}
        for columns in (*alone, *combinations(range(len(alone)), 2)):
            cells = np.full((4,) * len(columns), -1e6)  # which tables there are, and of how many bins, is released too
            noisy = (alone | own.tables).get(columns)
            counts = np.zeros((0,) * len(columns)) if noisy is None else noisy.counts
            cells[tuple(slice(0, size) for size in counts.shape)] = counts
            parts.append(cells.ravel())
    return np.round(np.concatenate(parts), 6)


class _Remembered:
    """Exact counts, each computed once for each table: a fit asks for them again and again."""

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}
        self.honest = Counter._block

    @contextmanager
    def of(self, which: int) -> Iterator[None]:
        """Within, fits compute nothing else before they draw: no plan, no charge, no rehearsal."""
        with pytest.MonkeyPatch.context() as patch:

            def block(counter: Counter, chosen: Any, sizes: Any, bins: Any) -> Any:
                key = (which, len(counter.domains), tuple(chosen), *(tuple(own.tolist()) for own in bins))
                if key not in self.found:
                    self.found[key] = self.honest(counter, chosen, sizes, bins)
                return self.found[key]

            patch.setattr(Counter, "_block", block)
            for room in (synthesiser, people):
                honest = room.planned
                patch.setattr(room, "planned", lambda views, *rest, kept=honest: self._planned(kept, views, *rest))
                patch.setattr(room, "perform", lambda _event, compute, **_: compute(None))
                patch.setattr(room, "rehearse", lambda *_: None)
            patch.setattr(DuckDbEngine, "snapshot", lambda _: nullcontext())
            patch.setattr(Synthesiser, "_allowed", lambda _: {})
            yield

    def _planned(self, honest: Callable[..., Any], views: Any, *rest: Any) -> Any:
        key = ("plan", len(views))
        if key not in self.found:
            self.found[key] = honest(views, *rest)
        return self.found[key]


def _attack(tables: list[Table], make: Callable[[Table], Any]) -> Attack:
    bits, remembered = seeded(71), _Remembered()
    charges: set[Event] = set()
    wanted = [make(table) for table in tables]

    def repeated(which: int, drawn: Bits) -> Any:
        with remembered.of(which):
            return _measured(wanted[which].fit(bits=drawn, **_PRICE))

    def whole(which: int, drawn: Bits) -> Any:
        made = wanted[which].fit(bits=drawn, **_PRICE)
        receipt = (made if isinstance(made, Generator) else made.persons).receipt
        charges.update(() if receipt is None else (receipt.event,))
        return _measured(made)

    event = wanted[0].preview(**_PRICE).event
    return Attack(
        release=lambda which: repeated(which, bits), pair=(0, 1), event=event, charges=charges, delta=0.05,
        repeated=repeated, whole=whole,
    )  # fmt: skip


def rows(folder: Path, _runs: int) -> Attack:
    """The only row of its kind, in two columns of which each value is frequent."""
    common = {"a": [0, 0, 1] * 100, "b": [0, 1, 0] * 100}
    columns = {name: [0, 1] for name in common}
    tables = [
        dp.open(pa.table(each), unit=dp.rows(), budget=AMPLE, ledger=folder / f"{i}.ledger", name="r", columns=columns)
        for i, each in enumerate((common, {name: [*own, 1] for name, own in common.items()}))
    ]
    return _attack(tables, Synthesiser)


def persons(folder: Path, _runs: int) -> Attack:
    """The only person whose rows are all of one kind."""
    common = {"who": [i // 2 for i in range(200)], "day": [i % 2 for i in range(200)]}
    more = {"who": [*common["who"], -1, -1], "day": [*common["day"], 1, 1]}
    facts: dict[str, Any] = {"unit": dp.user("who"), "budget": AMPLE, "name": "visits", "columns": {"day": [0, 1]}}
    tables = [
        dp.open(pa.table(each), ledger=folder / f"{i}.ledger", **facts).bound(rows=2)
        for i, each in enumerate((common, more))
    ]
    return _attack(tables, lambda table: PeopleSynthesiser(table, "day", (), None, {}, None))


TENTH, HALF = less_noise(Fraction(1, 10)), less_noise(Fraction(1, 2))
ROOMS = (
    Room(name="rows", make=rows, faults=(TENTH,), slight=(HALF,), few=300, many=3000, again=True),
    Room(name="people", make=persons, faults=(), slight=(TENTH,), few=0, many=400, again=True),
)
