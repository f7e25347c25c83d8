r"""Choosing among many private runs and paying for little more than one: hyper-parameter tuning.

The number of runs K must be random and stay secret. :func:`select` describes the release of the best run when K
follows the truncated negative binomial law with a wished mean. Released by pure DP runs of ``epsilon``, the best
costs ``(2 + eta) * epsilon`` however large the mean is.

Reference:
    Liu, Talwar (2019), Private selection from private candidates; Papernot, Steinke (2022), Hyperparameter tuning
    with Rényi differential privacy.
"""

import math
from fractions import Fraction

from defocus.errors import InvalidParameterError, Number, finite, positive
from defocus.privacy.events import Event, Selected
from defocus.privacy.numbers import above, below, bisect

__all__ = ["expected_runs", "pure_selection_epsilon", "select"]


def select(event: Event, *, runs: Number, eta: Number = 0) -> Selected:
    """The best of a random number of runs of ``event``, ``runs`` on average.

    A larger ``eta`` concentrates the number of runs around its mean and costs more; 0 is the usual choice.

    >>> from defocus.privacy.events import Pure
    >>> chosen = select(Pure(0.5), runs=20)
    >>> round(chosen.gamma, 5), round(expected_runs(chosen), 3)
    (0.01096, 20.0)
    """
    wished = above(positive("runs", runs))
    if not 1 < wished < 1e12:
        raise InvalidParameterError(
            f"The mean number of runs must lie between 1 and 1e12, but it is {wished:g}.",
            fix="pass runs > 1, for example 20.",
        )
    Selected(event, Fraction(1, 2), eta)  # refuses an eta for which there is no law, before it is searched
    low, high = -690.0, -1e-14  # the logarithm of gamma: the mean falls as gamma grows
    shape = above(finite("eta", eta))
    gamma = math.exp(bisect(lambda t: not _mean(math.exp(t), shape) > wished, low, high, steps=200).yes)
    chosen = Selected(event, gamma, eta)
    if not math.isclose(_mean(gamma, shape), wished, rel_tol=1e-6):
        raise InvalidParameterError(
            f"No law of the number of runs with eta {shape:g} has a mean of {wished:g} within floating-point range.",
            fix="choose fewer runs, or eta nearer to 0.",
        )
    return chosen


def expected_runs(event: Selected) -> float:
    """The mean number of runs, rounded up.

    >>> from defocus.privacy.events import Pure
    >>> round(expected_runs(Selected(Pure(1), gamma=0.1)), 2)
    3.91
    """
    gamma = below(event.gamma)
    return _mean(gamma, above(event.eta)) * (1 + 1e-12) if gamma else math.inf


def pure_selection_epsilon(event: Selected, epsilon: Number) -> Fraction:
    """The pure guarantee of the best run when each run is ``epsilon``-DP: (2 + eta) times as much.

    >>> pure_selection_epsilon(Selected(Event(), Fraction(1, 100), 0), Fraction(1, 2))
    Fraction(1, 1)
    """
    return (2 + Fraction(event.eta)) * Fraction(epsilon)


def _mean(gamma: float, eta: float) -> float:
    r"""η(1−γ)/(γ(1−γ^η)), and its limit (1/γ−1)/log(1/γ) at η = 0."""
    log_gamma = math.log(gamma)
    x = eta * log_gamma
    # (1 - γ^η)/η = -log γ · (e^x - 1)/x, without dividing by zero.
    ratio = math.expm1(x) / x if abs(x) > 1e-8 else 1 + x / 2
    share = gamma * -log_gamma * ratio
    return (1 - gamma) / share if share else math.inf
