r"""Central, shuffled or local: what each would cost in error and in trust, before anything is collected.

All are compared for one user's value replaced, at the same (epsilon, delta). A collector who is trusted with the values
adds noise once; where everybody randomises alone, n users make a noise that grows with :math:`\sqrt n`; a shuffler
between them gives most of that back, since nobody knows who sent which report.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, final, get_args

from defocus.errors import CannotCalibrateError, InvalidParameterError, Number, count, positive, probability, whole
from defocus.local.designs import Design, design, numeric
from defocus.local.domains import Categories, Interval
from defocus.local.levels import LARGEST_EPSILON, LARGEST_NUMERIC_EPSILON
from defocus.local.oracles import best, best_mean
from defocus.local.shuffling import MultiMessageHistogram, MultiMessageSum, local_epsilon
from defocus.mechanisms import Laplace
from defocus.privacy import Budget, gaussian_sigma
from defocus.privacy.numbers import PAD

__all__ = ["Comparison", "Model", "Option", "Task", "compare"]

Task: TypeAlias = Literal["count", "histogram", "mean"]
Model: TypeAlias = Literal["central", "shuffle", "local"]

_TRUST: dict[Model, str] = {
    "central": "the collector, with every value",
    "shuffle": "that shuffler and analyst do not collude, and that the counted users are honest",
    "local": "nobody",
}
_MARKS = 8
"""How many marks say yes: the noise of more of them is less skewed, and so can be less."""
_PRECISION = 5e-3
"""Of the logarithm of a local epsilon: the predicted error is off by half a percent at most."""
_ORDER: tuple[Model, ...] = ("local", "shuffle", "central")
"""From the least trust to the most."""


@final
@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer, with the standard error it would have and what it asks for.

    >>> best = compare(100_000, 1).of("central")
    >>> round(best.error, 1), best.messages
    (1.4, 1.0)
    """

    model: Model
    method: str
    error: float
    """The standard error of a count, of a sum for means: of all users together, in their units."""
    messages: float
    """How many messages a user sends on average."""
    local_epsilon: float | None = None
    """What each report promises by itself, where that is anything."""

    @property
    def trust(self) -> str:
        """Whom, and with what, everybody has to trust."""
        return _TRUST[self.model]


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The options for one task, the least error first.

    >>> found = compare(100_000, 1)
    >>> found.of("central").error < found.of("local").error
    True
    """

    task: Task
    users: int
    epsilon: Number
    delta: Number
    categories: int
    options: tuple[Option, ...]
    left_out: tuple[str, ...] = ()
    """Protocols that cannot keep the promise among so few users, with the reason."""

    def of(self, model: Model) -> Option:
        """The best option of a model."""
        return min((o for o in self.options if o.model == model), key=lambda o: o.error)

    @property
    def sampling_error(self) -> float:
        """The standard error that so many users have anyway, as a sample of others like them."""
        share = 1 / self.categories
        return math.sqrt(self.users * share * (1 - share))

    def recommend(self, *, error: Number | None = None) -> Option:
        """The option that needs the least trust among those that are accurate enough; the least error if none is.

        Accurate enough is a standard ``error`` of at most so much; by default of no more than the sampling error:
        noise then at most doubles the variance that the data has by itself.
        """
        allowed = self.sampling_error if error is None else float(positive("error", error))
        at_hand = [self.of(model) for model in _ORDER if any(o.model == model for o in self.options)]
        return next((o for o in at_hand if o.error <= allowed), min(at_hand, key=lambda o: o.error))

    def __str__(self) -> str:
        head = f"{self.task} of {self.users} users at epsilon {float(self.epsilon):g}, delta {float(self.delta):g}"
        lines = [f"  {o.model:8} {o.method:32} error {o.error:10.4g}   trusts {o.trust}" for o in self.options]
        lines += [f"  left out: {why}" for why in self.left_out]
        return "\n".join([head, *lines, f"recommended: {self.recommend().model}, {self.recommend().method}"])


def compare(
    n: int, epsilon: Number, task: Task = "count", *, delta: Number | None = None, categories: int = 16
) -> Comparison:
    """Predicted standard errors of all models for a ``task`` among ``n`` users.

    Tasks: "count", how many say yes; "histogram", how many are in each of so many ``categories`` (the error is that of
    one rare category); "mean", of numbers in [0, 1] (the error is that of their sum, at the worst numbers).
    ``delta`` is 1/n² by default, and at most 1e-6.

    >>> compare(100_000, 1).recommend().model
    'shuffle'
    """
    users, budget = count("n", n), _budget(n, epsilon, delta)
    if task not in get_args(Task):
        raise InvalidParameterError(
            f"There is no task {str(task)[:40]!r}.", fix=f"choose one of {', '.join(get_args(Task))}."
        )
    size = whole("categories", categories, at_least=2) if task == "histogram" else 2
    compared = [*_central(task, budget), _local(task, users, epsilon, size)]
    left_out = list[str]()
    for name, make in _SHUFFLED.items():
        try:
            compared.append(make(task, users, budget, size))
        except CannotCalibrateError as refused:
            left_out.append(f"{name}: {refused.what}")
    options = tuple(sorted(compared, key=lambda o: o.error))
    return Comparison(task, users, epsilon, budget.delta, size, options, tuple(left_out))


def _budget(n: int, epsilon: Number, delta: Number | None) -> Budget:
    chosen = min(1e-6, 1 / n**2) if delta is None else probability("delta", delta, zero=False, one=False)
    return Budget(epsilon, max(chosen, 1e-10) if delta is None else chosen)


def _central(task: Task, budget: Budget) -> list[Option]:
    """One user changes a count or a sum by one, and two counts of a histogram."""
    moved = 2 if task == "histogram" else 1
    epsilon, delta = Fraction(budget.epsilon or 0), budget.delta
    laplace = Laplace(scale=moved / epsilon, sensitivity=moved)
    sigma = gaussian_sigma(epsilon, delta, sensitivity=math.sqrt(moved) * PAD)
    return [
        Option("central", "Laplace noise", math.sqrt(laplace.variance), 1.0),
        Option("central", "Gaussian noise", sigma, 1.0),
    ]


def _local(task: Task, n: int, epsilon: Number, size: int) -> Option:
    """One report each, of as much epsilon as there is, or as oracles know."""
    spent = min(epsilon, _largest(task))
    if task == "mean":
        oracle = best_mean(0, 1, spent)
        return Option("local", oracle.name, math.sqrt(n * oracle.worst_variance), 1.0, float(spent))
    chosen = best(Categories(size), spent)
    return Option("local", chosen.name, math.sqrt(chosen.variance(n)), 1.0, float(spent))


def _largest(task: Task) -> int:
    return LARGEST_NUMERIC_EPSILON if task == "mean" else LARGEST_EPSILON


def _single(task: Task, n: int, budget: Budget, size: int) -> Option:
    """One report each, randomised so little that shuffling makes up for it."""
    make: Callable[[Number], Design] = (
        (lambda e: numeric("duchi", 0, 1, e)) if task == "mean" else (lambda e: design("k-rr", Categories(size), e))
    )
    local = local_epsilon(make, n, budget.epsilon or 0, budget.delta, at_most=_largest(task), precision=_PRECISION)
    if task == "mean":
        oracle = numeric("duchi", 0, 1, local)
        return Option("shuffle", "one bit, shuffled", math.sqrt(n * oracle.worst_variance), 1.0, local)
    return Option(
        "shuffle", "k-rr, shuffled", math.sqrt(design("k-rr", Categories(size), local).variance(n)), 1.0, local
    )


def _multiple(task: Task, n: int, budget: Budget, size: int) -> Option:
    """Several messages each, some of which are said for no reason."""
    epsilon, delta = budget.epsilon or 0, budget.delta
    protocol: MultiMessageSum | MultiMessageHistogram
    if task == "histogram":
        protocol = MultiMessageHistogram(Categories(size), n, epsilon, delta)
    else:
        levels = _MARKS if task == "count" else 0
        protocol = MultiMessageSum(Interval(0, 1), n, epsilon, delta, levels)
    error = protocol.noise if isinstance(protocol, MultiMessageSum) and task == "count" else protocol.error
    return Option("shuffle", "several messages", error, protocol.messages_per_user)


_SHUFFLED: dict[str, Callable[[Task, int, Budget, int], Option]] = {
    "shuffle, one message": _single,
    "shuffle, several messages": _multiple,
}
"""The protocols with a shuffler."""
