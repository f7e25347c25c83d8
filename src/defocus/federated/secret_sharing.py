r"""Secrets that so many of their holders can put together, and fewer learn nothing of: Shamir's scheme.

A secret of 32 bytes is the value at zero of a random polynomial of degree t − 1 over the integers modulo the prime
:math:`2^{256} + 297`, and the share of holder x is its value at x. Any t values determine the polynomial; with fewer,
every secret is left with exactly one polynomial for each choice of the missing values, so all are equally likely.

Reference: Shamir (1979), How to share a secret.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence

from defocus.errors import InvalidParameterError

__all__ = ["PRIME", "SHARE", "coefficients", "combined", "divided"]

PRIME = (1 << 256) + 297
"""The smallest prime above all secrets of 32 bytes."""
SHARE = 33
"""Bytes of a share."""


def divided(secret: bytes, holders: Iterable[int], threshold: int) -> dict[int, bytes]:
    """A share for each holder, who are different numbers from 1 on; ``threshold`` of them give the secret again.

    >>> shares = divided(bytes(32), [1, 2, 3], 2)
    >>> combined({1: shares[1], 3: shares[3]}) == bytes(32)
    True
    """
    if len(secret) != SHARE - 1:
        raise InvalidParameterError("A secret to share has 32 bytes.", fix="share a key or a seed of 32 bytes.")
    polynomial = [*(secrets.randbelow(PRIME) for _ in range(threshold - 1)), int.from_bytes(secret)]
    shares = {}
    for x in holders:
        value = 0
        for term in polynomial:
            value = (value * x + term) % PRIME
        shares[x] = value.to_bytes(SHARE)
    return shares


def coefficients(holders: Sequence[int]) -> list[int]:
    """By what to multiply the shares of these holders to add up to the secret: Lagrange's polynomials at zero."""
    found = []
    for x in holders:
        above = below = 1
        for other in holders:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return found


def combined(shares: Mapping[int, bytes], factors: Sequence[int] | None = None) -> bytes | None:
    """The secret of which these are shares; None if it is none, so that one of them is wrong or there are too few."""
    factors = coefficients(list(shares)) if factors is None else factors
    secret = sum(int.from_bytes(share) * factor for share, factor in zip(shares.values(), factors, strict=True)) % PRIME
    return secret.to_bytes(SHARE - 1) if secret < 1 << 256 else None
