"""DP-SGD that leaves the user's objects alone: a model, a loss, an optimizer, data, a unit and a price."""

import threading
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from defocus.errors import (
    InvalidParameterError,
    NotDeclaredError,
    Number,
    TrainingEndedError,
    UnfitDataError,
    UnfitModelError,
    count,
    probability,
)
from defocus.learning.accountant import Plan, plan, protected
from defocus.learning.canaries import Canaries
from defocus.learning.charge import Payment, paying
from defocus.learning.clipping import PerLayerClipping, as_clipping
from defocus.learning.data import Examples, Units, examples, table_examples, without_loader
from defocus.learning.distributed import Ranks, plain
from defocus.learning.examples import PrivateExamples, said_once
from defocus.learning.gradients import Gradients
from defocus.learning.gradients.layouts import Batch
from defocus.learning.gradients.losses import Loss
from defocus.learning.ledgers import SCRATCH, price, scratched
from defocus.learning.metrics import NoisyMetrics, Paid, PrivateMetrics, as_metrics
from defocus.learning.model_check import check_independent, check_sums_are_wide
from defocus.learning.model_guard import ModelGuard, tensors_in
from defocus.learning.noise import Correlated, noise_of
from defocus.learning.result import Progress, Sample, Silent, TrainingResult, explained
from defocus.learning.resume import State, agreed, check_place, digest_of_run
from defocus.learning.step import Stepper, withheld
from defocus.learning.suggestions import EPOCHS, suggest
from defocus.ledger import Ledger, Receipt
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.budgets import Budget
from defocus.privacy.html import html_lines
from defocus.privacy.one_run import OneRun
from defocus.privacy.units import Adjacency, Unit

__all__ = [
    "Trainer",
    "checked_memory",
    "checked_number",
    "checked_optimizer",
    "checked_parameters",
    "checked_precision",
    "checked_precision_here",
    "checked_size",
    "checked_unit",
    "lasting",
]


_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
_EXACT = ("fixed size", "shuffled")
"""Ways of sampling that make the exact number of units public."""


def checked_parameters(model: torch.nn.Module) -> list[str]:
    """The names of the trainable parameters, if sums of their gradients hold what was clipped."""
    trainable = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trainable:
        raise UnfitModelError(
            "The model has no trainable parameter.", fix="set requires_grad of the parameters to be trained."
        )
    unmade = [name for name, parameter in model.named_parameters() if is_lazy(parameter)]
    if unmade:
        raise UnfitModelError(
            f"The parameter {unmade[0]} has no shape yet: lazy layers get one from their first inputs.",
            fix="pass a synthetic example through the model before, and make the optimizer then; or name the shape:"
            " Linear(12, 4) and not LazyLinear(4).",
        )
    if any(getattr(module, "max_norm", None) is not None for module in model.modules()):
        raise UnfitModelError(
            "An embedding with max_norm= shortens the rows that a batch looks up, frozen or not, and so tells which.",
            fix="leave max_norm= out, and shorten all rows between steps where they must be short.",
        )
    for name, parameter in trainable.items():
        if parameter.dtype not in (torch.float32, torch.float64):
            raise UnfitModelError(
                f"The parameter {name} is of type {parameter.dtype}: sums of gradients in it are rounded by more than"
                " an example moves them, so clipping would not bound anyone.",
                fix='keep parameters in float32, and pass precision="bfloat16" for mixed precision.',
            )
    if len({parameter.device for parameter in trainable.values()}) > 1:
        raise UnfitModelError("The trainable parameters are on several devices.", fix="move the model to one device.")
    return list(trainable)


def checked_memory(model: torch.nn.Module, loss: object, data: Examples) -> None:
    """Refuse a model or a loss that holds the private rows themselves; warn of tensors that may be a copy of them.

    Whether numbers are equal is not looked at: a refusal would tell.
    """
    checked_precision_here(next(model.parameters()).device)
    names = {id(each): name for name, each in (*model.named_buffers(), *model.named_parameters())}
    for tensor in tensors_in(model, loss):
        name = f"the tensor {names[id(tensor)]}" if id(tensor) in names else "a tensor in an attribute"
        if data.holds(tensor):
            raise UnfitModelError(
                f"The model or the loss holds the training data itself, in {name}: what they hold is taken as public,"
                " and every example would see all others.",
                fix="hand rows over as inputs of a batch, and keep public numbers only in the model and the loss.",
            )
        if tensor.dim() > 1 and len(tensor) == data.length >= _MANY and not tensor.requires_grad:
            warnings.warn(
                f"{name[0].upper()}{name[1:]} has as many rows as there are examples. What a model or a loss holds is"
                " taken as public: if these are rows of private data, nothing protects them.",
                stacklevel=4,
            )


_MANY = 100


def checked_precision_here(device: torch.device) -> None:
    """Refuse a precision that was set around the trainer, for which noise has no margin."""
    if torch.is_autocast_enabled(device.type):
        raise InvalidParameterError(
            "torch.autocast is on around the trainer: products would be rounded to fewer bits than noise is made for.",
            fix='leave torch.autocast out, and pass precision="bfloat16" to the Trainer.',
        )


def checked_optimizer(optimizer: object, model: torch.nn.Module) -> None:
    """Refuse an optimizer that moves other parameters than those whose gradients are made private."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise UnfitModelError(
            f"The optimizer must be a torch.optim.Optimizer, but it is of type {type(optimizer).__name__}.",
            fix="pass for example torch.optim.Adam(model.parameters(), lr=1e-3).",
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnfitModelError(
            "LBFGS asks for gradients several times in a step, which is not what is charged.",
            fix="use an optimizer that takes one gradient for each step, such as SGD or Adam.",
        )
    moved = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    trainable = {id(each): name for name, each in model.named_parameters() if each.requires_grad}
    own = {id(parameter) for parameter in model.parameters()}
    if moved - own:
        raise UnfitModelError(
            "The optimizer moves parameters that the model does not have, whose gradients would not be private.",
            fix="make it after the model, from model.parameters(), and move the model to its device before.",
        )
    forgotten = [name for key, name in trainable.items() if key not in moved]
    if forgotten:
        raise UnfitModelError(
            f"The optimizer does not move the trainable parameter {forgotten[0]}.",
            fix="pass it to the optimizer, or freeze it: parameter.requires_grad_(False).",
        )


def checked_unit(unit: object, users: object) -> None:
    """Refuse a unit that examples cannot be counted in."""
    named = protected(unit)
    if (named.kind == "user") != (users is not None) and named.per_person is None:
        raise InvalidParameterError(
            "With unit=user(…), and only with it, users= says whose each example is.",
            fix="pass users=, an array with one user for each example, or unit=rows(). If examples have several owners:"
            " unit=rows(per_person=4), for at most 4 of anyone, and users=, a list of lists.",
        )


def checked_size(size: int | None, counted: int, sampling: object) -> int:
    """The public number of units: what was declared, or what the data has."""
    if size is None:
        return counted
    if count("size", size) != counted and sampling in _EXACT:
        raise InvalidParameterError(
            f"With sampling={sampling!r} the number of units is public, and it is not the size declared.",
            fix='leave size= out, or use sampling="poisson".',
        )
    return size


def _table_size(size: int | None, sampling: object) -> int:
    """The declared number of units in rows of a table, which may be those of any filter: how many is private."""
    if size is None:
        raise NotDeclaredError(
            "How many units these rows of a table have is private, and it decides the rate of sampling.",
            fix="declare a public number, about as many: size=10_000. It needs not be exact; a released count will do.",
        )
    if sampling in _EXACT:
        raise InvalidParameterError(
            f"With sampling={sampling!r} the number of units is public, and that of rows of a table is private.",
            fix='leave sampling= out, or use sampling="poisson" or "balls in bins".',
        )
    return count("size", size)


def _counted(
    data: Any, unit: Unit, users: object, *, size: int | None, sampling: object, form: tuple[Any, Batch | None]
) -> tuple[Examples, Units, int]:
    """The examples of a run, the unit of each, and the public number of units. Of a table, no row and its columns."""
    if isinstance(data, PrivateExamples):
        declared = _table_size(size, sampling)
        return *table_examples(data.empty()), declared
    listed = examples(data, *form)
    checked_unit(unit, users)
    units = Units(listed.length, users, unit.per_person)
    if not units.count and size is None:  # else that it is nobody may be private
        raise UnfitDataError(
            "users= names nobody, so no example is used.",
            fix="pass one user for each example; or with unit=rows(per_person=…) a list of owners for each.",
        )
    return listed, units, checked_size(size, units.count, sampling)


def checked_number(unit: Unit, place: object, sampling: object) -> None:
    """Refuse batches that make the number of units public where a person of the ledger may be absent from the data."""
    view = isinstance(place, Ledger) and place.terms.person is not None
    absent = unit.adjacency is Adjacency.REPLACE and (view or unit.per_person is not None)
    if absent and sampling in _EXACT:
        raise InvalidParameterError(
            "A person of this ledger may be absent from the data, so the number of units is not public.",
            fix='leave sampling= out, or use sampling="poisson".',
        )


def checked_precision(precision: str) -> torch.dtype | None:
    """The type that products are rounded to; None where they are not."""
    if precision not in _PRECISIONS:
        raise InvalidParameterError(
            f"There is no precision called {precision!r:.60}.", fix=f"choose one of {', '.join(_PRECISIONS)}."
        )
    return _PRECISIONS[precision]


def lasting(
    model: torch.nn.Module,
    *,
    batch_size: Number | None,
    epochs: Number | None,
    steps: int | None,
    unit: Unit,
    size: int,
    price: Budget | None,
) -> dict[str, Any]:
    """How large batches are and how long a run is; what is left out is proposed for the price, from public facts."""
    if price is not None and epochs is None and steps is None:
        epochs = EPOCHS
    if batch_size is None:
        if price is None or epochs is None:
            raise InvalidParameterError(
                "How large batches are is found for a price and a number of epochs, and one of them is missing.",
                fix="pass batch_size=, the expected number of units in a step; or epsilon= and epochs=.",
            )
        given = {"epsilon": price.epsilon, "delta": price.delta} if price.rho is None else {"rho": price.rho}
        batch_size = suggest(size=size, model=model, unit=unit, epochs=epochs, **given).batch_size
    return {"batch_size": batch_size, "epochs": epochs, "steps": steps}


@final
class Trainer:
    r"""Private training of a PyTorch model: charged once and as a whole, before the first batch is drawn.

    The model keeps its type, its state_dict and its forward; the optimizer is any of torch's and takes its own steps,
    from the noisy mean gradient that it finds in ``grad``.

    Guarantee:
        What leaves the run (the parameters after every step, the optimizer's state, and what ``metrics="paid"`` shows)
        is as private as the event that was charged says, for the unit of the ledger. Batches are drawn as the event
        says, from a cryptographic stream; the sum of clipped gradients gets Gaussian noise, and is divided by a public
        number. The run cannot take more steps than were paid for, also when it is resumed.
        One charge pays for one run, however often and by whomever it is resumed: no step is released from two
        different sums, and no two processes go on with it at once. See :mod:`defocus.learning.run_log`.
    Assumes:
        The number of units (``size``) is public: it decides the rate of sampling. Unless declared, the number of
        examples or users in the data is taken for it, as is usual. Of ``table.examples(…)`` it must be declared: their
        number is that of any filter, and no row is read before the charge. With ``rows(per_person=…)`` and ``users``,
        who owns which example is public (:mod:`~.ownership`). The loss is a sum or mean of one term for
        each example, and an example's term does not depend on the others: what can be checked of that is checked at
        set-up on synthetic examples. The model and the optimizer stay what they were then (:mod:`~.model_guard`).
        For what floating point does not promise, see :mod:`defocus.learning.noise`.
    Reference:
        Abadi et al. (2016), Deep learning with differential privacy; Ponomareva et al. (2023), How to DP-fy ML.

    Args:
        model: any ``torch.nn.Module`` with float parameters; ``DistributedDataParallel`` is looked through.
        loss: ``loss(output, target)``: a sum or mean of terms of examples, or the vector of these terms.
        optimizer: over the trainable parameters of the model.
        data: ``(inputs, targets)``, tensors or arrays; a torch Dataset of known length; or a DataLoader, whose dataset
            and batch size are taken; or ``table.examples(inputs, target)``, whose unit, users and ledger are taken.
            Batches are drawn by the trainer in each case, by ``sampling``.
        unit: what is protected, ``rows()`` or ``user("id")``; or ``rows(per_person=4)``, where a person is in several
            examples, and others are in them too; the ledger's must be the same. Only examples of a table go without.
        epsilon: with ``delta``, the price of the whole run; the noise is found for it.
        delta: by default that of the ledger's budget; for a new ledger 1e-6, or less if there are many units.
        rho: the price, instead of epsilon and delta, for batches of all units.
        noise_multiplier: the noise, as standard deviation over sensitivity of everything that a step releases. Without
            epsilon or rho, the run is charged what that costs; with one, it must not cost more.
        max_grad_norm: how long one gradient may be: a number, or a rule of :mod:`defocus.learning.clipping`.
        batch_size: the expected number of units in a step; by default the one that :func:`.suggest` proposes.
        epochs: how often each unit is drawn on average, 30 times by default; or pass ``steps``.
        steps: how many steps the run has; or pass ``epochs``.
        ledger: what is charged: an open ledger or the place of one. By default it lies beside the data, if that has a
            place: a Dataset of a folder, or arrays that are mapped from a file.
        budget: the total of the ledger, with which it is made if it does not exist; the price of the run by default.
        scratch: to try things out: why the data may be used freely, as it is public or made up. Nothing is charged to a
            ledger that lasts, and the run says that it promises nothing to anyone.
        users: for ``unit=user(…)``, the user of each example. A user's examples are clipped one by one and averaged;
            those without a user (None, NaN) are left out. For ``unit=rows(per_person=…)``, a list of the owners of each
            example: some are left out, so that nobody has more than so many, and *who owns what is taken as public*.
            Without ``users``, that nobody has more is taken on your word.
        size: the public number of units, if that of the data is not public, as that of a table's rows never is.
        sampling: "poisson", "balls in bins", "shuffled" or "fixed size"; each is charged as what is proven for it.
        noise: a :class:`~defocus.learning.noise_schedule.Schedule`, or
            :class:`~defocus.learning.noise_schedule.Banded` or
            :class:`~defocus.learning.noise_schedule.BufferedToeplitz` for correlated noise; the same in each step by
            default.
        randomness: "cryptographic" (the default on a CPU) or "generator" (the default elsewhere).
        metrics: what the progress shows of losses and norms: "paid" (1 % of the precision of each step), "private"
            (exact, for the data's owner only), "nothing", or a :class:`~defocus.learning.metrics.Metrics`.
        chunk: how many examples are computed at a time; larger batches are made of several. All by default, and half
            as many whenever memory of a GPU runs out.
        precision: "float32", or "bfloat16" for mixed precision; parameters and sums stay in float32, which is checked,
            and noise has a margin for the rounding of products.
        example: for a Dataset, one synthetic item, ``(input, target)``: what has other shapes or types counts as zero.
            That of tensors and arrays, and of a Subset of a TensorDataset, is known; else a probe tells it.
        probe: synthetic examples to check the model with, if it accepts none of those that are made up for it.
        purpose: why, for the ledger.
        who: by whom, for the ledger.
        bits: the source of random bits; the system's by default.
        audit: how many canaries to plant, persons who are made up, each in or out by a coin, or one of two: the result
            then says how much the run is seen to tell of one, beside what was charged. See
            :mod:`defocus.learning.canaries`.

    >>> import tempfile
    >>> import torch
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> model = torch.nn.Linear(4, 2)
    >>> run = dp.learning.Trainer(
    ...     model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), (x, (x[:, 0] > 0).long()),
    ...     unit=dp.rows(), epsilon=4, delta=1e-5, batch_size=20, steps=3, ledger=f"{home.name}/run.ledger",
    ... )
    >>> print(str(run.fit(progress=False)).splitlines()[1])
    steps:      3 of 3, 20 of 200 expected in each
    >>> run.close(); home.cleanup()
    """

    _offered: Sample | None

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        data: Any,
        *,
        unit: Unit | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise_multiplier: Number | None = None,
        max_grad_norm: Any = 1.0,
        batch_size: Number | None = None,
        epochs: Number | None = None,
        steps: int | None = None,
        ledger: Ledger | str | Path | None = None,
        budget: Budget | None = None,
        scratch: str | None = None,
        users: Any = None,
        size: int | None = None,
        sampling: str = "poisson",
        noise: Any = None,
        randomness: str | None = None,
        metrics: Any = "paid",
        chunk: int | None = None,
        precision: str = "float32",
        example: Any = None,
        probe: Batch | None = None,
        purpose: str = "train a model",
        who: str | None = None,
        bits: Bits | None = None,
        audit: int | None = None,
    ) -> None:
        module = plain(model)
        names = checked_parameters(module)
        checked_optimizer(optimizer, module)
        data, loaded = without_loader(data)
        self._table = data if isinstance(data, PrivateExamples) else None
        if self._table is not None:
            said_once(self._table, ledger=ledger, users=users, unit=None if unit == data.unit else unit)
            unit, ledger = self._table.unit, self._table.ledger
        unit = protected(unit)
        listed, units, declared = _counted(data, unit, users, size=size, sampling=sampling, form=(example, probe))
        checked_memory(module, loss, listed)
        narrow = checked_precision(precision)
        clipping = as_clipping(max_grad_norm)
        if isinstance(clipping, PerLayerClipping):
            clipping = clipping.grouped(names)
        shown = as_metrics(metrics)
        ranks = Ranks()
        tried, ledger = scratched(scratch, data, unit, ledger=ledger, budget=budget, run=self)
        place, usual = paying(ranks, ledger, data, unit=unit, budget=budget, size=declared)
        checked_number(unit, place, sampling)
        told = usual if delta is None else probability("delta", delta, one=False)
        given = epsilon is not None or rho is not None
        cost = price(epsilon=epsilon, delta=told if rho is None else delta, rho=rho) if given else None
        expected = loaded if batch_size is None else batch_size
        asked: dict[str, Any] = {"unit": unit, "price": cost, "size": declared}
        asked |= lasting(module, batch_size=expected, epochs=epochs, steps=steps, **asked)
        asked |= {"delta": float(told), "sampling": sampling, "clipping": clipping, "metrics": shown}
        asked |= {"noise": noise, "noise_multiplier": noise_multiplier}
        self.plan: Plan = plan(**asked)
        """What the run will do and owe; free to look at."""
        groups = clipping.names if isinstance(clipping, PerLayerClipping) else None
        self._tuned = partial(Gradients, module, loss, groups=groups)
        gradients = self._tuned()
        one = listed.form(next(module.parameters()).device)
        together = self.plan.batch_size if chunk is None else min(self.plan.batch_size, count("chunk", chunk))
        check_independent(module, loss, gradients, one, probe, batch=together)
        if narrow is not None:
            check_sums_are_wide(module, gradients, one, narrow)
        self._ways = gradients.explain()
        drawn = noise_of(randomness, next(module.parameters()).device)
        self._stepper = Stepper(
            model=module,
            standing=ModelGuard(module, optimizer),
            gradients=gradients,
            plan=self.plan,
            clipping=clipping,
            data=listed,
            units=units,
            ranks=ranks,
            noise=drawn if self.plan.strategy is None else Correlated(drawn, self.plan.strategy),
            chunk=None if chunk is None else count("chunk", chunk),
            precision=narrow,
            clips=clipping.start(),
            glance=NoisyMetrics(shown, batch=self.plan.batch_size)
            if isinstance(shown, Paid) and self.plan.shares[2]
            else None,
            private=PrivateMetrics() if shown == "private" else None,
        )
        if audit is not None:
            self._stepper.canaries = Canaries(audit, self._stepper.parameters, self.plan, clipping)
        self._optimizer, self._declared, self._scratch = optimizer, size is not None, tried
        about = f"DP-SGD, {self.plan.steps} steps, size {self.plan.size} "
        about += "declared" if self._declared else "taken as public"
        charged: dict[str, Any] = {"budget": budget, "purpose": purpose, "about": about, "who": who}
        self._paid = Payment(place, self.plan, asked, ranks, source(bits), **charged)
        self._taken, self._passed, self._offered, self._turn = 0, 0, None, threading.RLock()
        agreed(self.plan, self._stepper, optimizer)

    @property
    def steps_taken(self) -> int:
        """How many steps the run has taken, of ``plan.steps``; batches that were passed over do not count."""
        return self._taken - self._passed

    @property
    def receipt(self) -> Receipt | None:
        """The proof of the charge, once the run began; None before, and in all processes but the first."""
        return self._paid.receipt

    @property
    def private(self) -> PrivateMetrics | None:
        """With ``metrics="private"``: exact losses and norms, *for the data's owner only*."""
        return self._stepper.private

    @property
    def max_grad_norm(self) -> float:
        """How long a gradient may be in the next step; of all groups together where layers are clipped apart."""
        return float(np.linalg.norm(self._stepper.clips))

    def epsilon(self) -> float:
        """What the steps taken so far cost by themselves, at ``plan.delta``; all were charged beforehand."""
        return self.plan.epsilon_after(self._taken)

    def batches(self) -> Iterator[Sample]:
        """The batches that are left, for a loop of one's own: ``for batch in run.batches(): run.step(batch)``.

        The first one charges the run. A batch that is passed over without a step is gone, as it was paid for.
        """
        with self._turn:
            key = self._begun()
        while self._taken < self.plan.steps:
            self._offered = self._drawn(key)
            yield self._offered
            if self._offered is not None:
                self._taken, self._offered = self._taken + 1, None
                self._passed += 1
        if self._passed == self.plan.steps:
            warnings.warn(
                "All batches of the run were drawn, and no step was taken: the model is as it was, and the charge"
                " stays. Call run.step(batch) for each of run.batches().",
                stacklevel=2,
            )
        self._end()

    def step(self, batch: Sample) -> None:
        """Put the noisy mean gradient of a batch into ``grad``, and let the optimizer take its step.

        After the last one the end of the run is noted in the ledger.
        """
        with self._turn:
            self._step(batch)

    def _step(self, batch: Sample) -> None:
        if self._taken >= self.plan.steps:
            raise TrainingEndedError(
                f"The run took all of the {self.plan.steps} steps that it paid for.",
                fix="start another run: it is charged on its own.",
            )
        if batch is not self._offered or self._paid.key is None:
            raise TrainingEndedError(
                "This is not the batch whose turn it is.", fix="take batches from run.batches(), each one once."
            )
        checked_precision_here(next(self._stepper.model.parameters()).device)
        problem = withheld(  # by no name of its own: a traceback shows what this frame holds
            partial(self._stepper.make, batch.step, batch.units, self._paid.key, self._paid.note, batch.canaries)
        )
        if problem is not None:
            raise problem  # from here, where neither examples nor the key are at hand
        self._taken, self._offered = self._taken + 1, None  # its noise is drawn: whatever happens now, it is spent
        self._optimizer.step()
        self._end()

    def fit(
        self,
        *,
        checkpoint: str | Path | None = None,
        every: int | None = None,
        progress: bool = True,
    ) -> TrainingResult:
        """Take all steps that are left, and tell how it went.

        Args:
            checkpoint: a file that the run can go on from with :meth:`resume`, written as soon as the run is charged,
                anew after ``every`` steps, and when a new way to add up gradients was chosen. It is secret: see
                :mod:`defocus.learning.resume`.
            every: how many steps; an epoch by default.
            progress: whether to show a progress bar.
        """
        pause = max(1, round(self.plan.size / self.plan.batch_size)) if every is None else count("every", every)
        bar = Progress(self.plan) if progress and self._stepper.ranks.first else Silent()
        ways = 0
        if checkpoint is not None and not self._taken:
            check_place(checkpoint)
            self._begun()
            self.save(checkpoint)
        with self, bar:
            for batch in self.batches():
                self.step(batch)
                bar.show(self._taken, self._stepper.glance, self._stepper.private)
                before, ways = ways, len(self._stepper.gradients.tuning)
                due = self._taken % pause == 0 or self._taken == self.plan.steps or ways != before
                if checkpoint is not None and due:
                    self.save(checkpoint)
        return self.result()

    def result(self) -> TrainingResult:
        """What was done and what it cost."""
        self._end()
        return TrainingResult(
            plan=self.plan,
            steps=self.steps_taken,
            passed=self._passed,
            epsilon=self.epsilon(),
            receipt=self._paid.receipt,
            metrics=None if self._stepper.glance is None else self._stepper.glance.copy(),
            clips=self._stepper.clips,
            explanation=self.explain(),
            scratch=self._scratch is not None,
            audit=self.audited(),
        )

    def audited(self, confidence: float = 0.95) -> OneRun | None:
        """What the canaries of ``audit=`` show so far: a lower bound on epsilon. Free; None without canaries."""
        canaries, key = self._stepper.canaries, self._paid.key
        if canaries is None or key is None or not self._stepper.ranks.first:
            return None
        return canaries.result(key, self._stepper.units.count, self._taken, confidence)

    def save(self, path: str | Path, *, more: dict[str, Any] | None = None) -> None:
        """Write a checkpoint, which is secret: whoever has it can take the noise off what the run released.

        ``more`` is kept in it and given back by :meth:`resume`: the state_dict of a scheduler, for example.
        """
        if self._paid.key is None:
            raise InvalidParameterError(
                "The run has not begun, so there is nothing to go on from.", fix="save after the first batch."
            )
        if self._stepper.ranks.first:
            self._state().save(path, more or {})
        if self._paid.ended:
            self.close()

    def resume(self, path: str | Path) -> dict[str, Any]:
        """Go on where a checkpoint was written, bit for bit; nothing is charged. Returns what it was given to keep.

        Everything must be as it was: model, optimizer, data, settings and ledger. Anything else is refused, and so is
        a run that another process, or another trainer in this one, is at work on. Steps that were taken after the
        checkpoint are taken again; one that comes to other sums than before is refused, and no noise is drawn for it.
        """
        if self._taken or self._paid.key is not None:
            raise InvalidParameterError("The run has begun.", fix="resume before the first step, in a new Trainer.")
        self._look()
        state = self._state()
        more, tuning = self._paid.resume(state, path)
        self._stepper.gradients = self._tuned(tuning=tuning)  # other ways to add up would round differently
        self._taken, self._passed = state.taken, state.passed
        self._end()
        return more

    def close(self) -> None:
        """Let go of the run, as its end does, so that it can be resumed elsewhere. The next step takes hold again."""
        self._paid.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self) -> str:
        """What is done to the data, what is promised and what not, in plain words. Free."""
        paid = self._paid
        said = "" if self._scratch is None else f"{SCRATCH.format(why=self._scratch)}\n"
        return said + explained(
            self.plan,
            self._stepper,
            self._ways,
            "" if paid.receipt or self._scratch else paid.prospect(),
            receipt=None if self._scratch else paid.receipt,
            declared=self._declared,
        )

    def _repr_html_(self) -> str:
        return html_lines(self.explain().splitlines())

    def __repr__(self) -> str:
        scratch = "" if self._scratch is None else ", scratch"
        return (
            f"Trainer({type(self._stepper.model).__name__}, {self.plan.unit}, {self.plan.price},"
            f" {self.steps_taken} of {self.plan.steps} steps{scratch})"
        )

    def _begun(self) -> bytes:
        """The key of the run, once it is charged; rows of a table are read then, and not before."""
        key = self._paid.begin()
        self._look()
        return key

    def _look(self) -> None:
        """Read the rows of a table, of a run that is charged; of several processes all can, or all fail."""
        table, rows = self._table, list[tuple[Examples, Units]]()
        if table is None:
            return
        together = partial(self._stepper.ranks.together, partial(table_examples, table), "read the rows of the table")
        problem = withheld(lambda: rows.append(together()))
        if problem is not None:
            raise problem  # from here, where no rows are at hand
        self._stepper.data, self._stepper.units = rows[0]
        self._table = None

    def _end(self) -> None:
        """After the last step, note the end of the run in the ledger."""
        if self._taken >= self.plan.steps:
            self._paid.end(self._stepper.model)

    def _drawn(self, key: bytes) -> Sample:
        real, canaries = self._stepper.units.count, self._stepper.canaries
        units = self.plan.sampling.draw(self._taken, real + (0 if canaries is None else canaries.count), key)
        planted = units[units >= real] - real
        return Sample(self._taken, units[units < real], planted, self._stepper.data, self._stepper.units)

    def _state(self) -> State:
        return State(
            stepper=self._stepper,
            optimizer=self._optimizer,
            run=digest_of_run(self.plan, self._stepper, self._optimizer),
            key=self._paid.key or b"",
            taken=self._taken,
            passed=self._passed,
            receipt=self._paid.receipt,
            log=self._paid.log,
        )
