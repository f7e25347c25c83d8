r"""Which of several models is best on private rows: its name, and nothing else of the rows.

Each model has the number of rows, or persons, that it tells right. One row more, or one person, raises each of these
numbers by at most one and lowers none: so the exponential mechanism needs half the noise that it would otherwise, and
how many models there are costs nothing. A model may be asked about rows of its own form, such as rows with and without
sums over neighbours; what was released before, such as these sums, is public.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, positive
from defocus.learning.evaluation.cells import Layout
from defocus.learning.evaluation.question import Evaluation
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import Exponential, PermuteAndFlip
from defocus.mechanisms.mechanism import IntVector
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.units import Adjacency
from defocus.release.paid_computation import perform

__all__ = ["ModelChoice", "choose"]

_CONFIDENCE = 0.95


@final
@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that :func:`choose` recommends.

    >>> print(ModelChoice("sums", ("alone", "sums"), 30.2, None))
    sums, of alone, sums: with 95 % at most 30.2 fewer right than the best of them
    """

    best: str
    """Its name."""
    names: tuple[str, ...]
    interval: float
    """With 95 % it tells at most so many rows, or persons, fewer right than the best of all, whatever the rows are."""
    receipt: Receipt | None

    def __str__(self) -> str:
        names = ", ".join(self.names)
        return f"{self.best}, of {names}: with 95 % at most {self.interval:.3g} fewer right than the best of them"


def choose(
    models: Mapping[str, Evaluation],
    *,
    epsilon: Number,
    purpose: str | None = None,
    who: str | None = None,
    request: str | None = None,
    bits: Bits | None = None,
) -> ModelChoice:
    """Recommend one of several models by how many private rows each tells right: the names are public, the rows not.

    Guarantee:
        The exponential mechanism, or permute-and-flip where the ledger has a budget without delta, on the exact counts:
        charged once, before a row is looked at. The models, however they were fitted, are paid for where they were.
    Assumes:
        As :func:`evaluate`, for each model.

    Error:
        ``interval`` rows, with 95 %; more rows do not make it larger.
    Reference:
        McSherry, Talwar (2007), Mechanism design via differential privacy.

    Args:
        models: for each name what :func:`evaluate` made of a model and its rows. Rows that none was fitted to are the
            fair ones, the same for all models.
        epsilon: the price.
        purpose: why, in one line; the question itself by default.
        who: by whom; the account's name by default.
        request: a name, under which the same choice is returned again, free of charge.
        bits: the source of random bits; the system's by default.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> X = np.linspace(0, 1, 2000).reshape(-1, 1)
    >>> book = dp.Ledger.open(f"{home.name}/a.ledger", budget=dp.Budget(2), unit=dp.rows(), dataset="rows")
    >>> cuts = {"low": lambda rows: rows[:, 0], "high": lambda rows: rows[:, 0] ** 3}
    >>> asked = {n: dp.learning.evaluate(m, X, X[:, 0] > 0.5, ledger=book, classes=[0, 1]) for n, m in cuts.items()}
    >>> choose(asked, epsilon=0.5).best
    'low'
    >>> book.close(); home.cleanup()
    """
    ledger = _ledger(models)
    names, price, drawn_from = tuple(models), positive("epsilon", epsilon), source(bits)
    unit, layouts = ledger.unit, [asked.layout for asked in models.values()]
    weight = max(layout.unit for layout in layouts)
    added = unit.adjacency is not Adjacency.REPLACE  # one that is replaced may raise some and lower others
    plain = ledger.budget.epsilon is not None and not ledger.budget.delta
    mechanism = (PermuteAndFlip if plain else Exponential)(
        epsilon=price, candidates=len(names), sensitivity=weight * (unit.per_person or 1), monotone=added
    )

    def shown(place: Any, receipt: Receipt) -> ModelChoice:
        return ModelChoice(names[int(place)], names, mechanism.interval(_CONFIDENCE) / weight, receipt)

    def compute(receipt: Receipt) -> ModelChoice:
        right = [_right(asked.exact(asked.layout), asked.layout) for asked in models.values()]
        return shown(mechanism.sample(right, drawn_from), receipt)

    question = f"which of {len(names)} models tells most right: {', '.join(names)}"[:400]
    return perform(
        mechanism.event,
        compute,
        ledger=ledger,
        purpose=ledger.purpose_of(purpose, question),
        description=question,
        written=lambda made: names.index(made.best),
        read=shown,
        facts=repr([(name, each.facts, each.scorer.fingerprint, each.layout) for name, each in models.items()]),
        who=who,
        request=request,
        what="choice",
    )


def _ledger(models: Mapping[str, Evaluation]) -> Ledger:
    """The open ledger of all of them."""
    asked: list[Any] = list(models.values())
    if len(asked) < 2 or not all(isinstance(each, Evaluation) for each in asked):
        raise InvalidParameterError(
            "A choice is among two or more models.", fix='pass {"one": evaluate(…), "other": evaluate(…)}.'
        )
    first = asked[0]
    if not isinstance(first.ledger, Ledger) or any(each.ledger is not first.ledger for each in asked):
        raise InvalidParameterError(
            "Models are chosen among on one open ledger.", fix="open it, and pass ledger= to each evaluate(…)."
        )
    kinds = {(each.layout.classes, each.layout.persons) for each in asked}
    if first.layout.kind == "number" or len(kinds) > 1:
        raise InvalidParameterError(
            "Models are chosen among by the rows that they tell right, of the same classes and the same persons.",
            fix="pass the same classes= to each evaluate(…), and users= to all or to none.",
        )
    return first.ledger


def _right(cells: IntVector, layout: Layout) -> int:
    """How many are told right: cells in which the prediction is the label."""
    parts, lines, outcomes = layout.shapes[0]
    table = np.asarray(cells[: parts * lines * outcomes]).reshape(parts, lines, outcomes).sum(axis=0)
    if len(layout.classes) > 2:
        return int(np.trace(table[:-1, :-1]))
    second = np.array(layout.edges[:-1]) >= layout.threshold
    return int(table[0, :-1][~second].sum() + table[1, :-1][second].sum())
