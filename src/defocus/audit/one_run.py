"""A lower bound on epsilon from one run in which many canaries were planted, each by a coin of its own."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from defocus.errors import InvalidParameterError, Number, non_negative, probability

__all__ = ["OneRun", "one_run", "p_value"]

_PARTS = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Shares of the canaries that are guessed, fixed beforehand; each gets an equal part of the error."""
_MOST = 64.0
_SAFE = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """What one run with canaries shows. Made by :func:`one_run`.

    >>> found = one_run(list(range(200)), [0] * 100 + [1] * 100, claimed=1)
    >>> found.violation, found.guesses, found.correct
    (True, 200, 200)
    """

    epsilon_lower: float
    """With ``confidence``, the run is not (ε, ``delta``)-DP for any ε below this."""
    claimed: float | None
    delta: float
    confidence: float
    canaries: int
    guesses: int
    """How many canaries the best test guessed; it abstains on the others."""
    correct: int
    tests: int
    """How many numbers of guesses were tried; each had an equal part of the error."""

    @property
    def violation(self) -> bool:
        """Whether the bound is above the claim."""
        return self.claimed is not None and self.epsilon_lower > self.claimed

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f", claimed {self.claimed:.6g}"
        return (
            f"{'violation' if self.violation else 'none found'}: epsilon >= {self.epsilon_lower:.4g}"
            f" at delta {self.delta:.3g}{claim} ({100 * self.confidence:.10g} % confidence, one run,"
            f" {self.correct} of {self.guesses} guesses right, {self.canaries} canaries)"
        )


def one_run(
    scores: Any, planted: Any, *, delta: Number = 0, claimed: Number | None = None, confidence: float = 0.95
) -> OneRun:
    r"""A lower bound on the epsilon of one run, from the scores of canaries and the coins that planted them.

    Each canary is put in or left out by a fair coin. ``scores`` are made of what the run released, higher where a
    canary looks planted; ``planted`` are the coins. The highest scores are guessed to be in, the lowest out.

    Guarantee:
        With probability at least ``confidence``, the run is not (ε, delta)-DP, one canary added or removed, for any ε
        below the bound. If it were, of r guesses W would be right with
        :math:`\Pr[W \ge v] \le f(v) + 2m\delta\max_i (f(v-i) - f(v))/i`, where f is the upper tail of
        Bin(r, 1/(1+e^{-ε})). Five numbers r are tried, each at a fifth of the error.
    Assumes:
        Coins are fair and independent, and scores depend on them through released values only. Coins and scores are
        in the same order. Ties are broken by that order, which must not tell the coins.

    Error:
        One-sided: a low bound says nothing about privacy. Without noise m guesses show about
        :math:`\ln(m/\ln(5/(1-\mathrm{confidence})))`.
    Reference:
        Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run, theorem 5.2.

    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> coins = draw.integers(0, 2, 1000)
    >>> print(one_run(coins + draw.laplace(0, 1, 1000), coins, claimed=1).violation)
    False
    """
    values, coins = _checked(scores, planted)
    error = 1 - float(probability("confidence", confidence, zero=False, one=False))
    at = float(probability("delta", delta, one=False))
    order = np.argsort(values, kind="stable")
    m = len(values)
    tried = sorted({max(2, 2 * round(m * part / 2)) if part < 1 else m for part in _PARTS})
    best = (-1.0, 0, 0)
    for guesses in tried:
        low = guesses // 2
        right = int((~coins[order[:low]]).sum() + coins[order[m - (guesses - low) :]].sum())
        best = max(best, (_bound(m, guesses, right, at, error / len(tried)), guesses, right))
    return OneRun(
        epsilon_lower=best[0],
        claimed=None if claimed is None else float(non_negative("claimed", claimed)),
        delta=at,
        confidence=float(confidence),
        canaries=m,
        guesses=best[1],
        correct=best[2],
        tests=len(tried),
    )


def _checked(scores: Any, planted: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, coins = np.asarray(scores, np.float64), np.asarray(planted)
    if values.ndim != 1 or values.shape != coins.shape or len(values) < 2 or np.isnan(values).any():
        raise InvalidParameterError(
            "Canaries need one score and one coin each, at least two of them, and no score may be NaN.",
            fix="pass two lists of the same length.",
        )
    if not np.isin(coins, (0, 1)).all():
        raise InvalidParameterError(
            "A coin is 1 where the canary was planted and 0 where it was not.", fix="pass zeros and ones as planted=."
        )
    return values, coins.astype(bool)


def _bound(m: int, guesses: int, right: int, delta: float, error: float) -> float:
    """The least epsilon that the guesses do not reject, rounded down."""
    low, high = 0.0, _MOST
    if p_value(m, guesses, right, 0.0, delta) > error:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(m, guesses, right, middle, delta) <= error else (low, middle)
    return low


def p_value(m: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """How likely so many right guesses are at most under (epsilon, delta)-DP; see :func:`one_run`.

    >>> p_value(10, 10, 10, 0.0, 0.0) * 1024 < 1.001
    True
    """
    chance = 1 / (1 + np.exp(-epsilon))
    tails = np.ones(right + 1)
    if right:
        tails[1:] = bdtrc(np.arange(right), guesses, chance)  # tails[k] is the probability of at least k
    gained = (tails[:right][::-1] - tails[right]) / np.arange(1, right + 1)
    whole = tails[right] + 2 * m * delta * max(float(gained.max(initial=0.0)), 0.0)
    return min(1.0, float(whole) * (1 + _SAFE))
