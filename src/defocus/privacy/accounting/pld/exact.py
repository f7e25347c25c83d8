"""Compositions of few atoms, enumerated: exact where a lattice would only be close."""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammaln

from defocus.privacy.accounting.pld.atoms import Atoms
from defocus.privacy.accounting.pld.profiles import Floats, Profile, U

__all__ = ["enumerated"]

_MOST = 4000


def enumerated(profiles: Sequence[tuple[Profile, int]]) -> Atoms | None:
    """The whole composition as atoms, or None where there would be more than a few thousand.

    A product of pairs has the sums of their losses; T copies of one pair have one loss for
    each way to share T among its atoms, with multinomial masses. Equal losses are not
    merged, which changes no answer.
    """
    losses, log_p, log_q = np.zeros(1), np.zeros(1), np.zeros(1)
    log_kept, symmetric, error = 0.0, True, 0.0
    for profile, times in profiles:
        atoms = profile.atoms()
        if atoms is None:
            return None
        shares = _shares(len(atoms.losses), times)
        if shares is None or len(shares) * len(losses) > _MOST:
            return None
        ways = gammaln(times + 1) - gammaln(shares + 1).sum(axis=1)
        with np.errstate(divide="ignore"):
            p, q = np.log(atoms.p), np.log(atoms.q)
        losses = np.add.outer(losses, shares @ np.asarray(atoms.losses)).ravel()
        log_p = np.add.outer(log_p, ways + _weighted(shares, p)).ravel()
        log_q = np.add.outer(log_q, ways + _weighted(shares, q)).ravel()
        # A mass that underflowed to nothing is off by less than the 1e-300 that every curve is padded with.
        largest = float(np.max(np.abs(p[p > -np.inf]))) + float(np.max(np.abs(q[q > -np.inf]))) + 1
        error += times * (atoms.error + 8 * U * largest) + 16 * U * float(gammaln(times + 2)) + 32 * U
        log_kept += times * math.log1p(-atoms.at_infinity)
        symmetric &= atoms.symmetric
    order = np.argsort(losses, kind="stable")
    lost = -math.expm1(log_kept)
    return Atoms(
        _tuple(losses[order]), _tuple(np.exp(log_p[order])), _tuple(np.exp(log_q[order])), lost, symmetric, error
    )


def _weighted(shares: Floats, logs: Floats) -> Floats:
    """The sum of ``shares`` times ``logs`` in each row, where none of an impossible outcome counts as nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(shares > 0, shares * logs, 0.0).sum(axis=1))


def _shares(atoms: int, times: int) -> Floats | None:
    """All ways to share ``times`` among ``atoms``, one a row."""
    if math.comb(times + atoms - 1, atoms - 1) > _MOST:
        return None
    if atoms == 1:
        return np.full((1, 1), float(times))
    if atoms == 2:
        first = np.arange(times + 1, dtype=np.float64)
        return np.column_stack((times - first, first))
    bars = np.array(list(combinations_with_replacement(range(times + 1), atoms - 1))).reshape(-1, atoms - 1)
    edges = np.concatenate((np.zeros((len(bars), 1)), bars, np.full((len(bars), 1), times)), axis=1)
    return np.asarray(np.diff(edges, axis=1), dtype=np.float64)


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
