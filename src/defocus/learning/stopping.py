r"""How often a private search tries: a random number that follows the law its price was proven for.

Guarantee:
    Exact for rational :math:`\gamma` and :math:`\eta`. The number of tosses up to the first head of a coin of
    probability :math:`\gamma` has the law :math:`P(k) \propto (1-\gamma)^k`; kept with probability
    :math:`\prod_{i=2}^{k}(i-1+\eta)/i`, coin by coin, else drawn anew, it has the law
    :math:`P(k) \propto (1-\gamma)^k \binom{k+\eta-1}{k}` on k >= 1: the truncated negative binomial, since
    :math:`\binom{k+\eta-1}{k} = \eta\prod_{i=2}^{k}(i-1+\eta)/i`. Its limit at :math:`\eta = 0` is the logarithmic law.
Reference:
    Papernot, Steinke (2022), Hyperparameter tuning with Rényi differential privacy, Definition 1.
"""

from fractions import Fraction

from defocus.errors import InvalidParameterError, Number
from defocus.noise import Bits, bernoulli

__all__ = ["number_of_runs"]

_TOSSES = 64


def number_of_runs(gamma: Number, eta: Number, bits: Bits) -> int:
    """A number of at least one, of the truncated negative binomial law."""
    heads, shape = Fraction(gamma), Fraction(eta)
    if not 0 < heads < 1 or not -1 < shape <= 1:
        raise InvalidParameterError(
            "gamma must lie between 0 and 1, and eta be above -1 and at most 1.", fix="pass eta = 0, the usual choice."
        )
    while True:
        found = _first_head(heads, bits)
        if _kept(found, shape, bits):
            return found


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
