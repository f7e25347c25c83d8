r"""What a budget lets others learn about one unit, exactly, and the largest budget that keeps such a risk.

The question is whether one unit, such as a person, is in the data; all else may be known. Let P be the law of all that
is released with the unit and Q the law without it (or the other way round), E a set of outputs, and t the distance
between the log-odds of a prior p and of a belief q: :math:`e^t = \frac{q}{1-q}\,/\,\frac{p}{1-p}`.

*Belief.* Who learns E believes with odds :math:`\frac{p}{1-p}\cdot\frac{P(E)}{Q(E)}`: more than q exactly when
:math:`P(E) > e^t Q(E)`.

* ``pure``: P(E) ≤ e^ε Q(E), so beliefs reach at most :math:`p e^\varepsilon/(1-p+p e^\varepsilon)`, and with randomised
  response they do. They stay within q exactly when ε ≤ t.
* ``approximate`` and ``gaussian``: rare outputs may tell everything, so no q < 1 bounds beliefs for all of them. An
  *exception* η is the probability with which beliefs may be above q. P(E) ≤ G(Q(E)) for every E, with a concave G that
  worst cases reach, so the least Q(E)/P(E) for P(E) = x grows with x. No E of probability η or more leads to a belief
  above q exactly when none of probability η does, that is, when P(E) = η implies :math:`Q(E) \ge e^{-t}\eta`. For
  η ≤ 1/2 the least Q(E) is :math:`e^{-\varepsilon}(\eta-\delta)`, or :math:`\Phi(\Phi^{-1}(\eta)-\mu)`. So the risk is
  kept exactly when :math:`\varepsilon \le t + \log(1-\delta/\eta)`, or when
  :math:`\mu \le \Phi^{-1}(\eta) - \Phi^{-1}(e^{-t}\eta)`. The outputs after which a belief is above q are such a set E:
  they have a probability below η.

*Attack.* A test for the unit with false-positive rate α has at most the true-positive rate

.. math:: \min(e^\varepsilon\alpha + \delta,\ 1 - e^{-\varepsilon}(1-\alpha-\delta)) \quad\text{or}\quad
    \Phi(\Phi^{-1}(\alpha)+\mu).

Proof. Let E be where the test says yes. P(E) ≤ e^ε Q(E) + δ, and Q(not E) ≤ e^ε P(not E) + δ; the second bound defines
μ-GDP. Worst cases reach both. It is at most β exactly when
:math:`\varepsilon \le \max\big(\log\frac{\beta-\delta}{\alpha}, \log\frac{1-\alpha-\delta}{1-\beta}\big)`, or when
:math:`\mu \le \Phi^{-1}(\beta) - \Phi^{-1}(\alpha)`.

Reference:
    Kairouz, Oh, Viswanath (2015), The composition theorem for differential privacy, for the worst cases;
    Dong, Roth, Su (2022), Gaussian differential privacy, Propositions 2.4 and 2.5.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from scipy.special import log_ndtr, ndtr, ndtri

from defocus.errors import InvalidParameterError, Number, choice, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget
from defocus.privacy.numbers import above, at_most, below

__all__ = ["KINDS", "Risk", "budget_of", "checked_kind", "kind_of", "size"]

KINDS = ("pure", "gaussian", "approximate")
"""How a budget may be stated: epsilon alone; mu; epsilon and delta."""
_SAFE = 1 - 1e-8
"""Covers the rounding of the formulas, and the part in 10⁹ by which a filter may exceed its budget."""
_ROUNDING = 1e-14
"""More than the rounding of a normal quantile, relative to one plus its size."""


def size(budget: Budget) -> float:
    """The number that makes one budget of a kind larger than another: epsilon or mu."""
    return float(budget.epsilon if budget.epsilon is not None else budget.mu or 0)


def kind_of(budget: Budget) -> str:
    """Which of :data:`KINDS` a budget is.

    >>> kind_of(Budget(1)), kind_of(Budget(mu=1)), kind_of(Budget(1, 1e-6))
    ('pure', 'gaussian', 'approximate')
    """
    if budget.rho is not None:
        raise InvalidParameterError(
            "The exact risk of a budget in rho is not known.", fix="state the budget as (epsilon, delta) or mu."
        )
    return "gaussian" if budget.mu is not None else "approximate" if budget.delta else "pure"


def budget_of(kind: str, amount: float, delta: Number = 0) -> Budget:
    """The budget of a kind with so much epsilon or mu.

    >>> budget_of("approximate", 1, 1e-6)
    Budget(epsilon=1, delta=1e-06)
    """
    return Budget(mu=amount) if kind == "gaussian" else Budget(amount, delta if kind == "approximate" else 0)


def checked_kind(kind: str, delta: Number = 0) -> tuple[str, Number]:
    """Which of :data:`KINDS` is meant, with the delta that goes with it, or none.

    >>> checked_kind("Approximate", 1e-6)
    ('approximate', 1e-06)
    """
    name = choice("kind of budget", kind, KINDS, {"epsilon": "pure", "epsilondelta": "approximate", "mu": "gaussian"})
    part = probability("delta", delta, one=False)
    if name == "approximate" and not part:
        raise InvalidParameterError(
            "An approximate budget has a delta, and none was given.",
            fix="pass delta=1e-6, well below one over the number of people.",
        )
    if name != "approximate" and part:
        raise InvalidParameterError(
            f"A {name} budget has no delta.", fix='leave delta out, or choose kind="approximate".'
        )
    check_budget(budget_of(name, 1, part))
    return name, part


@final
@dataclass(frozen=True, slots=True)
class Risk:
    """The most that others may learn about whether one unit is in the data.

    Guarantee:
        :meth:`largest` gives a budget that keeps the risk, whatever is released within it and whatever is known
        beside it; a budget larger by one part in 10⁴ does not keep it.

    Args:
        posterior: a prior belief, and the largest belief that it may become.
        attack: the false-positive rate of a test for the unit, and the largest true-positive rate it may have.
        exception: the probability with which a belief may be above the largest; needed where there is a delta or mu.

    >>> Risk(posterior=(0.5, 0.75)).largest("pure")
    Budget(epsilon=1.09861)
    >>> Risk(attack=(0.01, 0.05)).largest("gaussian")
    Budget(mu=0.681494)
    """

    posterior: tuple[Number, Number] | None = None
    attack: tuple[Number, Number] | None = None
    exception: Number = 0

    def __post_init__(self) -> None:
        names = {"posterior": ("the prior", "the largest belief"), "attack": ("the false-positive rate", "the largest")}
        for name, (start, end) in names.items():
            given: Any = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _pair(name, given, start, end))
        rare = probability("exception", self.exception)
        if rare > Fraction(1, 2):
            raise InvalidParameterError(
                f"An exception of probability {float(rare):g} would be the rule.", fix="choose exception <= 0.5."
            )
        object.__setattr__(self, "exception", rare)

    def largest(self, kind: str, delta: Number = 0) -> Budget:
        """The largest budget of one of :data:`KINDS` that keeps the risk, rounded down to six digits.

        ``delta`` is that of an approximate budget.
        """
        most = float(at_most(min(self.limits(kind, delta).values()) * _SAFE))
        return budget_of(checked_kind(kind, delta)[0], most, delta)

    def limits(self, kind: str, delta: Number = 0) -> dict[str, float]:
        """The epsilon or mu that each of ``posterior`` and ``attack`` allows, not yet rounded."""
        name = self._checked(kind, delta)
        found = {}
        if self.posterior is not None:
            found["posterior"] = self._within_posterior(*self.posterior, name, delta)
        if self.attack is not None:
            found["attack"] = _within_attack(*self.attack, name, delta)
        if not found:
            raise InvalidParameterError("No risk was given.", fix="pass posterior=(0.5, 0.75), or attack=(0.01, 0.05).")
        return found

    def posterior_at(self, budget: Budget) -> float:
        """The largest belief that anyone can reach from the prior under ``budget``, exceptions apart."""
        if self.posterior is None:
            raise InvalidParameterError("No prior was given.", fix="pass posterior=(0.5, 0.75).")
        prior = above(self.posterior[0])
        self._checked(kind_of(budget), budget.delta)
        return _sigmoid(math.log(prior) - math.log1p(-prior) + self._shift(budget))

    def attack_at(self, budget: Budget) -> float:
        """The largest true-positive rate of any test with the false-positive rate, under ``budget``."""
        if self.attack is None:
            raise InvalidParameterError("No false-positive rate was given.", fix="pass attack=(0.01, 0.05).")
        alpha, amount, delta = above(self.attack[0]), size(budget), float(budget.delta)
        if kind_of(budget) == "gaussian":
            return float(ndtr(ndtri(alpha) + amount))
        grown = math.exp(amount) if amount < 700 else math.inf
        return max(0.0, min(1.0, grown * alpha + delta, 1 - (1 - alpha - delta) / grown))

    def _shift(self, budget: Budget) -> float:
        """By how much log-odds may grow."""
        amount, rare = size(budget), float(self.exception)
        match kind_of(budget):
            case "pure":
                return amount
            case "gaussian":
                return math.log(rare) - float(log_ndtr(ndtri(rare) - amount))
            case _:
                return amount - math.log(1 - Fraction(budget.delta) / Fraction(self.exception))

    def _checked(self, kind: str, delta: Number) -> str:
        name, _ = checked_kind(kind, delta)
        if self.posterior is None or name == "pure":
            if self.exception:
                raise InvalidParameterError(
                    "An exception belongs to a posterior under a budget with delta or mu.", fix="leave exception out."
                )
        elif self.exception <= delta:
            raise InvalidParameterError(
                f"Under {'an' if name == 'approximate' else 'a'} {name} budget rare answers may tell more than any"
                " bound on beliefs allows"
                + (f", and with probability delta = {float(delta):g} they may tell everything." if delta else "."),
                fix=f"say how rare: exception={10 * float(delta) or 1e-6:g}, the probability of a larger belief.",
            )
        return name

    def _within_posterior(self, prior: Number, most: Number, kind: str, delta: Number) -> float:
        p, q = Fraction(prior), Fraction(most)
        ratio = q * (1 - p) / (p * (1 - q))
        if kind == "gaussian":
            rare = below(self.exception)
            return _apart(ndtri(max(rare * math.exp(-_log(ratio)), 1e-300)), ndtri(rare))
        return _log(ratio * (1 - _padded(delta) / Fraction(self.exception or 1)), delta)


def _within_attack(alpha: Number, most: Number, kind: str, delta: Number) -> float:
    if kind == "gaussian":
        return _apart(ndtri(above(alpha)), ndtri(below(most)))
    a, b, d = Fraction(alpha), Fraction(most), _padded(delta)
    return _log(max((b - d) / a, (1 - a - d) / (1 - b)), delta)


def _padded(delta: Number) -> Fraction:
    """What a filter that is to keep ``delta`` may reach."""
    return Fraction(delta) * (2 - Fraction(_SAFE))


def _pair(name: str, given: Any, start: str, end: str) -> tuple[Number, Number]:
    try:
        first, second = given
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"{name} must be two probabilities, {start} and {end}.", fix=f"pass {name}=(0.01, 0.05)."
        ) from None
    low, high = (
        probability(f"{name}: {what}", x, zero=False, one=False) for what, x in ((start, first), (end, second))
    )
    if not low < high:
        raise InvalidParameterError(
            f"{name}: {start} is {float(low):g}, and {end} is {float(high):g}, which no release can keep.",
            fix=f"choose {end} above {start}.",
        )
    return low, high


def _log(ratio: Fraction, delta: Number = 0) -> float:
    """The logarithm of a ratio above one, which keeps its digits near one and cannot overflow."""
    if ratio < 2:
        return _room(math.log1p(float(max(ratio - 1, Fraction(0)))), delta)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def _apart(low: float, high: float) -> float:
    """How far two normal quantiles are apart, at least."""
    return _room(float(high) - float(low) - _ROUNDING * (2 + abs(float(low)) + abs(float(high))))


def _room(amount: float, delta: Number = 0) -> float:
    """The amount, if there is any."""
    if amount > 1e-9:
        return amount
    raise InvalidParameterError(
        f"delta = {float(delta):g} alone takes all of the risk that is allowed."
        if delta
        else "The risk that is allowed is so close to none that no budget keeps it.",
        fix="choose a smaller delta, a larger exception, or a larger risk." if delta else "allow a larger risk.",
    )
