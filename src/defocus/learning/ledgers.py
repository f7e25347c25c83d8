"""Which ledger pays for a fit or a run, how it is charged, and the price of one fit; without PyTorch."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from defocus.errors import BudgetExceededError, InvalidParameterError, NotDeclaredError
from defocus.learning.examples import PrivateExamples
from defocus.ledger import Ledger, Receipt
from defocus.ledger.creation import beside, exists
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget, delta_for
from defocus.privacy.events import Event
from defocus.privacy.units import Unit, rows
from defocus.release.charge import charge

__all__ = [
    "SCRATCH",
    "charge_run",
    "checked_scratch",
    "delta_of",
    "ledger_of",
    "place_of",
    "price",
    "scratched",
    "total_of",
]

SCRATCH = (
    "A scratch run: the data was said to be public or made up ({why}). Nothing is charged to a ledger that lasts, and"
    " nothing is promised to anyone in the data. The lines below tell what the same run does with private data."
)

_CUSTOMARY = 1e-6


def price(*, epsilon: Any, delta: Any, rho: Any, total: Budget | None = None, size: int | None = None) -> Budget:
    """What one fit may cost: epsilon and delta, or rho. See :func:`delta_of` for the default delta.

    >>> price(epsilon=1, delta=None, rho=None, total=Budget(3, 1e-5))
    Budget(epsilon=1, delta=1e-05)
    """
    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise InvalidParameterError(
            "The price of a fit is epsilon and delta, or rho.",
            fix="pass for example epsilon=1, delta=1e-6; or rho=0.1.",
        )
    if rho is not None:
        return Budget(rho=rho)
    return check_budget(Budget(epsilon, delta_of(total, size) if delta is None else delta))


def delta_of(total: Budget | None, size: int | None = None) -> float:
    """The delta of a fit by default: that of the ledger's budget, else 1e-6, or less for a large public ``size``.

    >>> delta_of(Budget(3, 1e-5)), delta_of(Budget(rho=1)), delta_of(None, 10**7)
    (1e-05, 1e-06, 1.99...e-08)
    """
    if total is not None and total.epsilon is not None:
        return float(total.delta)
    return _CUSTOMARY if size is None else min(_CUSTOMARY, delta_for(max(2, size)))


def place_of(ledger: Any, data: Any, unit: Unit | None) -> Ledger | str | Path:
    """The ledger that was named, else the one beside the file or folder that the data lies in.

    Examples have a place if they are a Dataset of a folder (``root``, as torchvision has it) or an array that is mapped
    from a file; inputs and targets have that of the inputs. What is in memory has none, as in :func:`defocus.open`.
    """
    if isinstance(ledger, Ledger | str | Path):
        return ledger
    if ledger is not None:
        raise InvalidParameterError(
            f"A fit is charged to a Ledger, but got {type(ledger).__name__}.",
            fix='pass ledger="visits.ledger", or one that is open: dp.Ledger.open(path, budget=…, unit=…, dataset=…).',
        )
    places = _places(data, unit)
    if len(places) == 1:
        return places[0]
    where = "lies in several places" if places else "is in memory and has no place of its own"
    raise NotDeclaredError(
        f"This data {where}, so nobody knows where its ledger is.",
        fix='pass ledger="visits.ledger", the same each time, or the budget would start anew.',
    )


def scratched(
    why: object, data: Any, unit: Unit | None, *, ledger: Any, budget: Any, run: object
) -> tuple[str | None, Any]:
    """The reason of a scratch ``run``, and the place of a ledger for it, in a folder that lasts as long as the run.

    Other runs have no reason, and their ledger. Data that a ledger protects is refused: a table, and a file or folder
    with a ledger beside it.
    """
    if why is None:
        return None, ledger
    reason = checked_scratch(why, data, unit, ledger=ledger, budget=budget)
    folder = tempfile.mkdtemp(prefix="defocus-scratch-")
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    return reason, Path(folder, "scratch.ledger")


def checked_scratch(why: object, data: Any, unit: Unit | None, *, ledger: Any, budget: Any) -> str:
    """The reason of a scratch run, or a refusal where there is none, or where the data is private.

    >>> checked_scratch(" made up ", None, None, ledger=None, budget=None)
    'made up'
    """
    if not isinstance(why, str) or not why.strip():
        raise InvalidParameterError(
            "scratch= says why the data may be used freely.", fix='pass for example scratch="random numbers".'
        )
    if isinstance(data, PrivateExamples) or any(map(exists, _places(data, unit))):
        raise InvalidParameterError(
            "This data has a ledger, so it is private, and no run on it is a scratch run.",
            fix="try things out on made-up data of the same form: for example torch.randn of the same shape.",
        )
    if ledger is not None or budget is not None:
        raise InvalidParameterError(
            "A scratch run has no ledger that lasts and no budget.", fix="leave ledger= and budget= out with scratch=."
        )
    return why.strip()


def ledger_of(place: Ledger | str | Path, *, unit: Unit | None, budget: Budget | None, new: Budget | None) -> Ledger:
    """The ledger to charge, opened if it is a place, and made with the total ``new`` if it does not exist.

    One that exists must protect the unit and have the total ``budget``, where these are given.
    """
    ledger = place if isinstance(place, Ledger) else _opened(place, unit, new)
    if unit is not None and ledger.unit != unit:
        raise InvalidParameterError(
            f"The fit protects {unit}, but the ledger protects {ledger.unit}; nothing was charged.",
            fix="pass unit=ledger.unit; or say to a ledger of persons how one appears in this data: ledger=ledger.data("
            '"survey", unit=dp.rows(per_person=1)), and unit=ledger.unit.',
        )
    ledger.terms.hold(dataset=None, unit=None, budget=budget)
    return ledger


def total_of(place: Ledger | str | Path, budget: Budget | None, *, anchor_file: str | None = None) -> Budget | None:
    """The total of the ledger, or the ``budget`` that it would be made with."""
    if isinstance(place, Ledger):
        return place.budget
    ledger = Ledger.find(place, anchor_file=anchor_file)
    if ledger is None:
        return budget
    with ledger:
        return ledger.budget


def charge_run(event: Event, *, ledger: Ledger, price: Budget, **more: Any) -> Receipt:
    """Charge a run, or refuse it with its price, the total of the ledger, and how several runs share one."""
    try:
        return charge(event, ledger=ledger, asked=price, **more)
    except BudgetExceededError as refused:
        refused.fix += (
            f" This run costs {price} (epsilon= and delta=), and the total of the ledger is {ledger.budget}: that was"
            " fixed when it was made, by budget= or by the price of its first run. Train with a smaller epsilon= if"
            " enough is left. For several runs, pass their total as budget= with the first one."
        )
        raise


def _opened(place: str | Path, unit: Unit | None, new: Budget | None) -> Ledger:
    if exists(place):
        return Ledger.open(place)
    return Ledger.open(place, budget=new, unit=unit or rows(), dataset=Path(place).stem or "data")


def _places(data: Any, unit: Unit | None) -> list[str | Path]:
    """The ledgers beside the files and folders that examples are read from, each once."""
    places = (beside(source, unit=unit, budget=Budget(1)) for source in _sources(data))
    return list(dict.fromkeys(place for place in places if place is not None))


def _sources(data: Any) -> Iterator[str | Path]:
    """The files and folders that examples are read from; of inputs and targets, those of the inputs."""
    data = data[0] if isinstance(data, tuple | list) and len(data) == 2 else data
    place = data.filename if isinstance(data, np.memmap) else getattr(data, "root", None)
    if isinstance(place, str | Path) and os.path.exists(place):  # noqa: PTH110  # never raises
        yield place
    elif hasattr(data, "dataset"):  # a Subset
        yield from _sources(data.dataset)
    elif isinstance(parts := getattr(data, "datasets", None), list | tuple | dict):  # one after or beside the other
        for part in parts.values() if isinstance(parts, dict) else parts:
            yield from _sources(part)
