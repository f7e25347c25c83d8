"""How much may be lost: a budget in the vocabulary its owner thinks in."""

from dataclasses import dataclass
from typing import final

from defocus.errors import InvalidParameterError, Number, positive, probability, storable
from defocus.privacy.losses import Loss

__all__ = ["Budget", "target"]

_DIRECT = 0.5


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """(epsilon, delta), or rho of zero-concentrated DP, or mu of Gaussian DP: exactly one of them.

    Of the delta of a ledger, the part ``direct`` is kept for releases that spend a delta of their own, as those do that
    find the keys of groups; the rest pays for tight composition.

    >>> Budget(1, 1e-5)
    Budget(epsilon=1, delta=1e-05)
    >>> Budget(rho=0.5)
    Budget(rho=0.5)
    >>> Budget(1, 1e-5, direct=0.25)
    Budget(epsilon=1, delta=1e-05, direct=0.25)
    """

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    mu: Number | None = None
    direct: Number = _DIRECT

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        delta = storable("delta", probability("delta", self.delta, one=False))
        if len(given) != 1 or (delta and given != ["epsilon"]):
            raise InvalidParameterError(
                f"A budget is one of (epsilon, delta), rho or mu, but got {', '.join(given) or 'none'}"
                f"{' with a delta' if delta and given != ['epsilon'] else ''}.",
                fix="give epsilon=1, perhaps with delta=1e-6, or rho=0.5, or mu=1.",
            )
        (name,) = given
        object.__setattr__(self, name, storable(name, positive(name, getattr(self, name))))
        object.__setattr__(self, "delta", delta)
        direct = storable("direct", probability("direct", self.direct, one=False))
        object.__setattr__(self, "direct", direct if delta else _DIRECT)

    def __repr__(self) -> str:
        if self.epsilon is None:
            name = "mu" if self.rho is None else "rho"
            return f"Budget({name}={getattr(self, name)})"
        delta = f", delta={self.delta}" if self.delta else ""
        direct = f", direct={self.direct}" if delta and self.direct != _DIRECT else ""
        return f"Budget(epsilon={self.epsilon}{delta}{direct})"

    def covers(self, loss: Loss) -> bool:
        """Whether everything ``loss`` describes fits in this budget, as far as its accountant can tell."""
        _is_a_loss(loss)
        if self.epsilon is not None:
            return loss.epsilon(self.delta) <= self.epsilon
        if self.rho is not None:
            return loss.rho() <= self.rho
        return self.mu is not None and loss.mu() <= self.mu


def target(
    budget: object = None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
) -> Budget:
    """What noise is to meet: the price of a release, by the names of its parameters, or a budget as a whole.

    >>> target(epsilon=1, delta=1e-6)
    Budget(epsilon=1, delta=1e-06)
    """
    if budget is None:
        return Budget(epsilon, 0 if delta is None else delta, rho, mu)
    if not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"Noise is calibrated to a Budget, but got {type(budget).__name__}.",
            fix=f"write for example Budget(1, 1e-6), or epsilon={budget if isinstance(budget, Number) else 1} by name.",
        )
    if not epsilon is delta is rho is mu is None:
        raise InvalidParameterError(
            "Noise is calibrated to a budget or to parameters, and both were given.", fix="leave one of them out."
        )
    return budget


def _is_a_loss(loss: object) -> None:
    if not isinstance(loss, Loss):
        raise InvalidParameterError(
            f"A budget covers the loss of an event, but got {type(loss).__name__}.",
            fix="write budget.covers(account(event)).",
        )
