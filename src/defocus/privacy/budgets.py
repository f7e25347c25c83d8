"""How much may be lost: a budget in the vocabulary its owner thinks in."""

from dataclasses import dataclass
from typing import final

from defocus.errors import InvalidParameterError, Number, non_negative, positive, probability
from defocus.privacy.losses import Loss

__all__ = ["Budget"]


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """(epsilon, delta), or rho of zero-concentrated DP, or mu of Gaussian DP: exactly one of them.

    >>> Budget(1, 1e-5)
    Budget(epsilon=1, delta=1e-05)
    >>> Budget(rho=0.5)
    Budget(rho=0.5)
    """

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    mu: Number | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1 or (self.delta and given != ["epsilon"]):
            raise InvalidParameterError(
                f"A budget is one of (epsilon, delta), rho or mu, but got {', '.join(given) or 'none'}"
                f"{' with a delta' if self.delta and given != ['epsilon'] else ''}.",
                fix="write Budget(1, 1e-6), Budget(rho=0.5) or Budget(mu=1).",
            )
        positive(given[0], getattr(self, given[0]))
        probability("delta", self.delta, one=False)
        non_negative("delta", self.delta)

    def __repr__(self) -> str:
        if self.epsilon is None:
            name = "mu" if self.rho is None else "rho"
            return f"Budget({name}={getattr(self, name)})"
        return (
            f"Budget(epsilon={self.epsilon}, delta={self.delta})" if self.delta else f"Budget(epsilon={self.epsilon})"
        )

    def covers(self, loss: Loss) -> bool:
        """Whether everything ``loss`` describes fits in this budget, as far as its accountant can tell."""
        if self.epsilon is not None:
            return loss.epsilon(self.delta) <= self.epsilon
        if self.rho is not None:
            return loss.rho() <= self.rho
        return loss.mu() <= float(self.mu or 0)
