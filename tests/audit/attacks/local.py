"""Local collection: what one device sends about one value or another; once, and again and again from its memory."""

from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.audit.attacks.attack import Attack, Fault, Room

import defocus as dp
from defocus import local
from defocus.audit import batched
from defocus.local.clients import Client, Memory, categorical
from defocus.local.clients.memory import _drawn
from defocus.local.designs import Rappor, design, numeric
from defocus.local.designs.registry import NAMES, NUMERIC_NAMES
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.events import Pure

_SMALL: dict[str, dict[str, Any]] = {
    "cms": {"rows": 1, "width": 16},
    "hcms": {"rows": 2, "width": 16},
    "d-bit": {"asked": 4},
    "rappor": {"cohorts": 1, "width": 16},
}
"""Other than the default where reports would be too long to look at all bits of."""
_HEADER = 10
_TIMES = 12
"""How often a device reports."""


def _asked(name: str, times: int = 1) -> local.Oracle | local.Mean:
    """The oracle at epsilon 1, or so many times that; RAPPOR, whose single reports cost less, at 2."""
    epsilon = (2 if name == "rappor" else 1) * times
    if name in NUMERIC_NAMES:
        return local.Mean(numeric(name, 0, 24, epsilon))
    return local.Oracle(design(name, 4, epsilon, **_SMALL.get(name, {})))


def _values(name: str) -> tuple[float, float]:
    return (0, 24) if name in NUMERIC_NAMES else (0, 3)


def _charged(folder: Path, asked: local.Oracle | local.Mean, **more: Any) -> Any:
    people = dp.user("phone", replace=True)
    with dp.Ledger.open(folder / "phones.ledger", budget=dp.Budget(9), unit=people, dataset="phones") as ledger:
        return local.collect(asked, ledger=ledger, purpose="a survey", **more).event


def _seen(name: str, messages: list[bytes]) -> Any:
    """What is in messages besides their header: a number where it is one or short, and bits where it is long."""
    bodies = [message[_HEADER:] for message in messages]
    if name in NUMERIC_NAMES or len(bodies[0]) <= 2:
        return np.array([[int.from_bytes(body, "little", signed=len(body) == 8)] for body in bodies])
    return np.unpackbits(np.array([np.frombuffer(body, np.uint8) for body in bodies]), axis=1).astype(np.int64)


def once(name: str, folder: Path, _runs: int) -> Attack:
    """Reports of many people who have the same value, as they are sent."""
    bits, asked = seeded(61), _asked(name)

    def release(value: float, n: int) -> Any:
        return _seen(name, list(asked.encode(np.full(n, value), bits)))

    single = Pure(asked.design.report_epsilon) if isinstance(asked.design, Rappor) else asked.event
    return Attack(
        release=batched(release), pair=_values(name), event=single, paid=asked.event, charges={_charged(folder, asked)}
    )


def from_memory(name: str, folder: Path, _runs: int) -> Attack:
    """How often each bit is set in all reports that one device sends about a value that stays the same."""
    bits, asked = seeded(62), _asked(name)

    def release(value: float) -> Any:
        memory = local.Memory(asked.design, bits=bits)
        reports = [memory.report(value, bits=bits)[_HEADER:] for _ in range(_TIMES)]
        return np.unpackbits(np.array([np.frombuffer(each, np.uint8) for each in reports]), axis=1).sum(axis=0)

    charged = _charged(folder, asked, reports=_TIMES, values=1)
    return Attack(release=release, pair=_values(name), event=asked.event, charges={charged})


def loosened(name: str, patch: pytest.MonkeyPatch) -> None:
    """A device that randomises for twice the epsilon that was said, and more for RAPPOR."""
    honest, loose = Client.encode, Client(_asked(name, 8 if name == "rappor" else 2).design)
    patch.setattr(Client, "encode", lambda _self, values, bits: honest(loose, values, bits))


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """A device that draws anew for each report."""
    honest = Memory.payload

    def payload(self: Memory, value: float, bits: Bits) -> Any:
        self._kept = _drawn(self.design, bits)
        return honest(self, value, bits)

    patch.setattr(Memory, "payload", payload)


def bare(patch: pytest.MonkeyPatch) -> None:
    """RAPPOR that remembers filters with hardly any noise."""
    honest, loose = categorical.permanent, cast("Rappor", _asked("rappor", 16).design)
    patch.setattr(categorical, "permanent", lambda _design, cohort, codes, bits: honest(loose, cohort, codes, bits))


_QUICK = ("k-rr", "oue", "pgr", "duchi", "laplace")


def _once(name: str) -> Room:
    fault, quick = partial(loosened, name), name in _QUICK
    return Room(
        name=name, make=partial(once, name), faults=(fault,) if quick else (), slight=() if quick else (fault,),
        few=20_000 if quick else 0, many=60_000, near=0.1 if name in {"cms", "rappor"} else 0.7,
    )  # fmt: skip


def _remembering(name: str, fault: Fault, few: int = 0) -> Room:
    faults, slight = ((fault,), ()) if few else ((), (fault,))
    made = partial(from_memory, name)
    return Room(name=f"{name} from memory", make=made, faults=faults, slight=slight, few=few, many=600)


ROOMS = (
    *(_once(name) for name in (*NAMES, *NUMERIC_NAMES)),
    _remembering("duchi", forgetful, few=400),
    _remembering("d-bit", forgetful),
    _remembering("rappor", bare),
)
