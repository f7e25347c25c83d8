"""What every mechanism offers, so that a release can hold any of them."""

from typing import Any, Protocol, runtime_checkable

from defocus.noise import Bits
from defocus.privacy.events import Event

__all__ = ["Mechanism"]


@runtime_checkable
class Mechanism(Protocol):
    """A value becomes a noisy value. Everything but :meth:`sample` is public and free of charge.

    Guarantee:
        Reading :attr:`event`, :attr:`error` and :meth:`interval`, and calling :meth:`check`,
        draws no random bit. The event describes exactly the noise that :meth:`sample` draws.

    One whose answer is not a number also says so: ``answers_with`` is "candidate" for a position, whose
    error is in units of utility; "crossings" for comparisons, which are off by the error; and "report" for
    an answer that is false with probability ``error``.

    >>> from defocus.mechanisms import Laplace
    >>> isinstance(Laplace(scale=2), Mechanism)
    True
    """

    @property
    def event(self) -> Event:
        """What one release owes to the ledger."""

    @property
    def error(self) -> float:
        """The expected absolute error of one entry, or of one choice in units of its utility."""

    def interval(self, confidence: float) -> float:
        """A half-width that the error stays within with probability of at least ``confidence``.

        Unlike :meth:`defocus.privacy.Loss.interval`, which is two bounds on an epsilon, this is one number.
        """

    def check(self, value: Any) -> None:
        """Refuse data of the wrong type or length; a release calls it before it charges the ledger."""

    def sample(self, value: Any, bits: Bits | None = None) -> Any:
        """One noisy release of ``value``. The ledger has been charged before this is called."""
