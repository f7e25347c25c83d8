r"""How often a private search tries: a random number that follows the law its price was proven for.

Guarantee:
    Exact for rational :math:`\gamma` and :math:`\eta`. The number of tosses up to the first head of a coin of
    probability :math:`\gamma` has the law :math:`P(k) \propto (1-\gamma)^k`; kept with probability
    :math:`\prod_{i=2}^{k}(i-1+\eta)/i`, coin by coin, else drawn anew, it has the law
    :math:`P(k) \propto (1-\gamma)^k \binom{k+\eta-1}{k}` on k >= 1: the truncated negative binomial, since
    :math:`\binom{k+\eta-1}{k} = \eta\prod_{i=2}^{k}(i-1+\eta)/i`. Its limit at :math:`\eta = 0` is the logarithmic law.
Reference:
    Papernot, Steinke (2022), Hyperparameter tuning with Rényi differential privacy, Definition 1.

Looking for settings at a price that is known beforehand: the best of a random, secret number of private runs.

Trying settings on private data and keeping the best is a release of all tries; a plain loop over :class:`Trainer`
charges each of them, and should. What is cheaper is random stopping: the number of runs is drawn from a law, each run
takes a setting at random, and only the best run is shown, with its score. However many runs there were, that costs two
to three times as much as one.

Guarantee:
    The whole search is charged once, before the first run, as :class:`~defocus.privacy.events.Selected` of what one run
    releases: its model, and its score. Every run draws its setting from the same public law, takes the same steps with
    the same noise, and is independent of the others, so that all are runs of one mechanism. How many there were, and
    all but the best, are dropped.
Assumes:
    A score is private too. On a *public* validation set it is a function of the released model, and free. On a private
    one, which shares no unit with the training data or does, the number of examples told right gets Gaussian noise; one
    row moves it by at most one, and its event is part of each run's, added to that of training. ``make`` is trusted: it
    is called once for each run, and must neither tell how often nor carry anything from one run to the next. That two
    runs share a parameter that is trained, its memory or an optimizer is refused; copies of it are not noticed. Time is
    not hidden: whoever sees how long a search takes learns about the number of runs.
Reference:
    Liu, Talwar (2019), Private selection from private candidates; Papernot, Steinke (2022), Hyperparameter tuning with
    Rényi differential privacy, Theorem 2.
"""

import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from defocus.answers.tables import text_facts
from defocus.errors import CannotCalibrateError, InvalidParameterError, Number, in_range, positive
from defocus.learning.accountant import Plan, plan
from defocus.learning.clipping import FixedClipping
from defocus.learning.data import Examples, Units, examples, without_loader
from defocus.learning.distributed import Ranks
from defocus.learning.ledgers import charge_run, ledger_of, place_of, price, total_of
from defocus.learning.model_check.trials import generators
from defocus.learning.model_guard import Snapshot
from defocus.learning.suggestions import EPOCHS
from defocus.learning.trainer import Trainer, checked_unit
from defocus.ledger import Ledger, Receipt
from defocus.ledger.creation import check_kinds
from defocus.noise import Bits, bernoulli, discrete_gaussian, uniform
from defocus.noise.bits import source
from defocus.noise.ranges import Integers
from defocus.privacy.accounting import tightest
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import DiscreteGaussian, Event, Selected
from defocus.privacy.html import html_facts
from defocus.privacy.selection import select
from defocus.privacy.units import Unit
from defocus.release.paid_computation import silence

__all__ = ["SearchResult", "number_of_runs", "search"]


def number_of_runs(gamma: Number, eta: Number, bits: Bits) -> int:
    """A number of at least one, of the truncated negative binomial law."""
    heads, shape = Fraction(gamma), Fraction(eta)
    if not 0 < heads < 1 or not -1 < shape <= 1:
        raise InvalidParameterError(
            "gamma must lie between 0 and 1, and eta be above -1 and at most 1.", fix="pass eta = 0, the usual choice."
        )
    while True:
        number = _first_head(heads, bits)
        if _kept(number, shape, bits):
            return number


def _first_head(heads: Fraction, bits: Bits) -> int:
    """How many tosses it takes to the first head."""
    before = 0
    while True:
        tosses = bernoulli(heads, _TOSSES, bits)
        if tosses.any():
            return before + int(tosses.argmax()) + 1
        before += _TOSSES


def _kept(number: int, shape: Fraction, bits: Bits) -> bool:
    if shape == 0:
        return bernoulli(Fraction(1, number), bits=bits)  # the same product, at once
    return all(bernoulli((i - 1 + shape) / i, bits=bits) for i in range(2, number + 1))


_Make = Callable[[Any], Any]
_GRAIN = 2**40
"""Gamma is a multiple of one over this, so that coins for it are exact."""
_DEAREST = 64.0
_TOSSES = 64
_CHUNK = 1024


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best run of a search, as :func:`search` returns it. How many others there were is secret, and not in here.

    >>> best = SearchResult(model=None, setting=0.1, score=0.91, event=None, receipt=None, price=Budget(1, 1e-6))
    >>> print(best)
    setting:  0.1
    score:    0.9100
    charged:  nothing: the data is public
    """

    model: Any = field(repr=False)
    setting: Any
    score: float
    """The share of the validation set that is told right; with noise where that set is private."""
    event: Event | None
    """What was charged; None for a search on public data, which is free."""
    receipt: Receipt | None
    price: Budget
    """What the search was allowed to cost; on public data, what one run could."""

    @property
    def facts(self) -> dict[str, str]:
        """Names and words."""
        facts = {"setting": f"{self.setting}", "score": f"{self.score:.4f}"}
        if self.receipt is None:
            return {**facts, "charged": "nothing: the data is public"}
        unit, cost = self.receipt.terms.unit, f"{self.price} for all runs together, however many there were"
        return {**facts, "protected": str(unit), "cost": cost, "charged": str(self.receipt)}

    def __str__(self) -> str:
        return text_facts({name: [words] for name, words in self.facts.items()})

    def _repr_html_(self) -> str:
        return html_facts(self.facts)


def search(
    make: _Make,
    data: Any = None,
    *,
    settings: Sequence[Any],
    validation: Any,
    unit: Unit,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    batch_size: Number | None = None,
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
    epochs: Number | None = None,
    steps: int | None = None,
    public: Any = None,
    private_validation: bool = False,
    precision: Number = 0.005,
    runs: Number = 10,
    eta: Number = 0,
    users: Any = None,
    example: Any = None,
    purpose: str = "search for settings",
    who: str | None = None,
    bits: Bits | None = None,
) -> SearchResult:
    """The best of a random number of private runs, charged once; or of all settings on public data, for free.

    Args:
        make: from a setting to ``(model, loss, optimizer)``, or these and a ``max_grad_norm``. It must not look at
            private data, and make each anew: runs that share what is trained are refused.
        data: the private data, as a :class:`Trainer` takes it.
        settings: what to try; each run takes one at random. Batch, steps and noise are the same for all.
        validation: ``(inputs, classes)`` that runs are scored on; public by default.
        unit: what is protected.
        epsilon: with ``delta``, the price of the whole search; on public data, what one run could cost.
        delta: as for a Trainer.
        rho: as for a Trainer.
        batch_size: the expected number of units in a step; that of a DataLoader by default.
        ledger: what is charged, once; by default as for a Trainer.
        budget: the total of the ledger, if it is made now; the price by default.
        epochs: how often each unit is drawn on average in a run, 30 times by default; or pass ``steps``.
        steps: how many steps a run has.
        public: public data to search on instead: each setting once, as it would be trained, and nothing is charged.
        private_validation: whether ``validation`` is private; its size is taken as public.
        precision: the standard deviation of the noise of a score on a private validation set.
        runs: how many runs there are on average.
        eta: the shape of the law of their number; 0 is the usual choice, and 1 costs more and varies less.
        users: for ``unit=user(…)``, the user of each example; for ``unit=rows(per_person=…)``, the owners of each.
        example: for a Dataset, one synthetic item, ``(input, target)``, as for a Trainer.
        purpose: why, for the ledger.
        who: by whom, for the ledger.
        bits: the source of random bits; the system's by default.

    >>> import torch
    >>> import defocus as dp
    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> known = (x, (x[:, 0] > 0).long())
    >>> def make(rate):
    ...     model = torch.nn.Linear(4, 2)
    ...     return model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=rate)
    >>> best = dp.learning.search(
    ...     make, public=known, settings=[0.01, 1.0], validation=known, unit=dp.rows(), epsilon=8, delta=1e-5,
    ...     batch_size=50, steps=3,
    ... )
    >>> best.setting in (0.01, 1.0)
    True
    """
    if (data is None) == (public is None):
        raise InvalidParameterError(
            "A search is on private data or on public data, one of them.", fix="pass data, or public=, and not both."
        )
    if public is not None and private_validation:
        raise InvalidParameterError(
            "A search on public data charges nothing, so it cannot pay for scores on private examples.",
            fix="pass a public validation set with public=, or private data with private_validation=True.",
        )
    tried, drawn = _settings(settings), source(bits)
    check_kinds(budget=budget, unit=unit)
    checked_unit(unit, users)
    held = _held(validation, example)
    given, loaded = without_loader(data if public is None else public)
    size = Units(examples(given, example).length, users, unit.per_person).count
    place = place_of(ledger, given, unit) if public is None else None
    total = None if place is None else total_of(place, budget)
    cost = price(epsilon=epsilon, delta=delta, rho=rho, total=total, size=size)
    asked: dict[str, Any] = {"unit": unit, "delta": 0.0, "size": size, "steps": steps, "sampling": "poisson"}
    asked |= {"batch_size": loaded if batch_size is None else batch_size, "noise": None, "metrics": "nothing"}
    asked |= {"epochs": EPOCHS if epochs is None and steps is None else epochs, "clipping": FixedClipping(1)}
    one = _One(make, (given, example, users), held, drawn)
    if place is None:
        alone = plan(**asked, price=cost, noise_multiplier=None)
        best = max((one.run(setting, alone, 0.0) for setting in tried), key=lambda each: each[2])
        return SearchResult(*best, None, None, cost)
    if private_validation and (unit.kind != "rows" or (unit.per_person or 1) > 1):
        raise InvalidParameterError(
            "One person may have many examples in the validation set, so no noise for its score is proven.",
            fix="pass a public validation set, or unit=rows().",
        )
    deviation = float(in_range("precision", precision, 1e-6, 1)) * held.length if private_validation else 0.0
    chosen, alone = _priced(asked, cost, deviation, runs=runs, eta=eta)
    for setting in (*tried, *tried):  # twice, to see that two runs of one setting share nothing either
        one.check(setting, alone)
    if Ranks().world > 1:
        raise InvalidParameterError("A search is one process.", fix="run it outside of torch.distributed.")
    book = ledger_of(place, unit=unit, budget=budget, new=cost if budget is None else budget)
    about = f"{len(tried)} settings, about {float(runs):g} runs of {alone.steps} steps, size {size} as public"
    receipt = charge_run(chosen, ledger=book, price=cost, purpose=purpose, question=about, who=who)
    tries = (uniform(len(tried), bits=drawn) for _ in range(number_of_runs(chosen.gamma, chosen.eta, drawn)))
    # Left as they are found: what is drawn from them in each run would tell how many there were.
    # Nor is anything warned of: it may be about private examples, and tell how many runs there were.
    with silence(), generators(torch.device("cuda" if torch.cuda.is_available() else "cpu")):
        best = max((one.run(tried[number], alone, deviation) for number in tries), key=lambda each: each[2])
    return SearchResult(*best, chosen, receipt, cost)


def _priced(
    asked: dict[str, Any], cost: Budget, deviation: float, *, runs: Number, eta: Number
) -> tuple[Selected, Plan]:
    """What the search owes, and the plan of one run: with the least noise for which the search keeps its price."""
    in_range("eta", eta, -0.99, 1)
    in_range("runs", positive("runs", runs), 1.01, 1000)
    first = plan(**asked, price=cost, noise_multiplier=None)
    law = select(first.event, runs=runs, eta=eta)
    gamma = Fraction(max(1, round(float(law.gamma) * _GRAIN)), _GRAIN)

    def whole(ratio: float) -> Selected:
        run = first.owes([ratio] * first.steps)
        return Selected(run if not deviation else run + DiscreteGaussian(deviation), gamma, Fraction(eta))

    try:
        ratio = calibrate(
            whole,
            cost,
            adjacency=first.unit.adjacency,
            method="rdp",
            low=first.ratio,
            high=_DEAREST * first.ratio,
            precision=1e-3,
        )
    except CannotCalibrateError:
        score = f", most of it for scores with noise of {deviation:.3g} rows" if deviation else ""
        raise InvalidParameterError(
            f"However noisy the runs are, the search costs more than {cost}{score}.",
            fix="pass a larger precision=, more validation rows or public ones, fewer runs=, or a larger epsilon=.",
        ) from None
    loss = tightest(first.owes([ratio] * first.steps), first.unit.adjacency)
    share = Budget(loss.epsilon(first.delta) * (1 + 1e-6), first.delta)
    return whole(ratio), plan(**asked, price=share, noise_multiplier=ratio)


@final
class _One:
    """One run: a model for a setting, trained, and scored."""

    __slots__ = ("_bits", "_data", "_example", "_held", "_make", "_optimizers", "_storages", "_users")

    def __init__(self, make: _Make, given: tuple[Any, Any, Any], held: Examples, bits: Bits) -> None:
        self._make, (self._data, self._example, self._users), self._held, self._bits = make, given, held, bits
        self._storages: set[StorageWeakRef] = set()
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()

    def run(self, setting: Any, planned: Plan, deviation: float) -> tuple[Any, Any, float]:
        """The model, the setting and the score. Its charge goes to a ledger that is thrown away: the search paid."""
        with tempfile.TemporaryDirectory() as folder:
            model, run = self._trainer(setting, planned, Path(folder))
            run.fit(progress=False)
        return model, setting, self._score(model, deviation)

    def check(self, setting: Any, planned: Plan) -> None:
        """Refuse what cannot be trained, before anything is charged."""
        with tempfile.TemporaryDirectory() as folder:
            self._trainer(setting, planned, Path(folder))

    def _trainer(self, setting: Any, planned: Plan, folder: Path) -> tuple[Any, Trainer]:
        parts = self._make(setting)
        if not isinstance(parts, tuple) or len(parts) not in {3, 4}:
            raise InvalidParameterError(
                "make must give (model, loss, optimizer), or these and a max_grad_norm.", fix="return a tuple of them."
            )
        model, loss, optimizer, *clip = parts
        self._apart(model, optimizer)
        run = Trainer(
            model,
            loss,
            optimizer,
            self._data,
            unit=planned.unit,
            epsilon=planned.price.epsilon,
            delta=None if planned.price.epsilon is None else planned.price.delta,
            rho=planned.price.rho,
            max_grad_norm=clip[0] if clip else 1.0,
            batch_size=planned.sampling.batch,
            steps=planned.steps,
            noise_multiplier=planned.ratio,
            ledger=folder / "run.ledger",
            users=self._users,
            example=self._example,
            metrics="nothing",
            bits=self._bits,
        )
        if run.plan.event != planned.event:
            raise InvalidParameterError("A run would cost something else than planned.", fix="report this, please.")
        return model, run

    def _apart(self, model: Any, optimizer: Any) -> None:
        """Refuse what shares memory that is trained, or an optimizer, with a run before: it would go on from there.

        A weak reference keeps the name of a storage and frees its memory, so no later one can be taken for it.
        """
        if not isinstance(model, torch.nn.Module) or not isinstance(optimizer, torch.optim.Optimizer):
            return  # the trainer says what is wrong
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        trained += [parameter for group in optimizer.param_groups for parameter in group["params"]]
        storages = {StorageWeakRef(parameter.untyped_storage()) for parameter in trained}
        if optimizer in self._optimizers or storages & self._storages:
            raise InvalidParameterError(
                "Two runs share a parameter or an optimizer, so that one would go on from the other.",
                fix="make a new model and a new optimizer in each call of make.",
            )
        self._storages |= storages
        self._optimizers.add(optimizer)

    def _right(self, model: torch.nn.Module, numbers: Integers, device: torch.device) -> int:
        """How many of these are told right; one on which the model fails is not, and moves nobody else's answer."""
        snapshot = Snapshot(model)
        try:
            inputs, classes = self._held.take(numbers, device)
            return int((model(inputs).argmax(-1) == classes).sum())
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 -- whatever an example does
            if len(numbers) <= 1:
                return 0
        finally:
            snapshot.restore()
        half = len(numbers) // 2
        return sum(self._right(model, part, device) for part in (numbers[:half], numbers[half:]))

    def _score(self, model: torch.nn.Module, deviation: float) -> float:
        right, device, before = 0, next(model.parameters()).device, model.training
        model.eval()
        with torch.no_grad():
            for start in range(0, self._held.length, _CHUNK):
                right += self._right(model, np.arange(start, min(start + _CHUNK, self._held.length)), device)
        model.train(before)
        noise = int(discrete_gaussian(deviation, 1, self._bits)[0]) if deviation else 0
        return (right + noise) / self._held.length


def _held(validation: Any, example: Any) -> Examples:
    held = examples(validation, example)
    targets = held.form()[1]
    if not isinstance(targets, torch.Tensor) or targets.dtype.is_floating_point or targets.dim() != 1:
        raise InvalidParameterError(
            "A search counts how many classes are told right, but the targets of validation= are not classes.",
            fix="pass (inputs, classes) with one whole number for each example; for other scores, search on public data"
            " with a loop of your own.",
        )
    return held


def _settings(settings: Any) -> list[Any]:
    if isinstance(settings, str | bytes | dict) or not isinstance(settings, Sequence) or not len(settings):
        raise InvalidParameterError(
            "settings must list what to try.", fix='pass for example settings=[{"rate": 0.1}, {"rate": 1.0}].'
        )
    return list(settings)
