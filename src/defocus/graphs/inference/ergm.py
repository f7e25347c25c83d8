"""Exponential random graph models, fitted to noisy statistics by simulation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.columns import Floats
from defocus.errors import InvalidParameterError, whole
from defocus.graphs.kernels.rows import compiled
from defocus.noise import Bits

__all__ = ["MOST_NODES", "TERMS", "ErgmFit", "fit_ergm", "simulate_ergm"]

TERMS = ("edges", "stars_2", "triangles")
"""The statistics that a model may have."""
MOST_NODES = 500
"""Simulation takes the square of this and more."""

_ROUNDS = 25
"""At _STRIDE a round, a start that is up to fifty standard deviations off can arrive."""
_SAMPLES = 300
"""Graphs simulated in a round: their mean is then known to 0.06 standard deviations, well below _NEAR."""
_NEAR = 0.15
"""The fit ends when the simulated mean is so many standard deviations from the released statistics."""
_STRIDE = 2.0
"""In each round the simulated mean is led at most so many standard deviations towards them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ErgmFit:
    """Coefficients of a model with standard errors that count the noise, and whether the search arrived."""

    terms: tuple[str, ...]
    coefficients: Floats
    standard_errors: Floats
    simulated: Floats
    converged: bool


def fit_ergm(terms: Sequence[str], statistics: Floats, variances: Floats, nodes: int, bits: Bits) -> ErgmFit:
    r"""The model :math:`P(G) \propto e^{\theta \cdot s(G)}` whose mean statistics are the released ones.

    Guarantee:
        Post-processing: it reads released numbers only. ``bits`` seeds the simulation; nothing private depends on it.

    The likelihood equation of an exponential family, :math:`E_\theta s = s_{obs}`, is solved by Newton steps with
    simulated means and covariances C, each led towards the target only as far as the simulation can see. With
    noise of covariance N on the statistics, :math:`\hat\theta` has covariance
    :math:`C^{-1}(C + N)C^{-1} = C^{-1} + C^{-1}NC^{-1}`: the second term is what privacy costs.

    Error:
        Models with stars and triangles are degenerate for many values of the statistics: no model of the family puts
        its mass near them. Then, and when noise took them out of reach, the fit does not converge and says so.
    Reference:
        Snijders (2002), Markov chain Monte Carlo estimation of exponential random graph models; Hummel, Hunter,
        Handcock (2012), Improving simulation-based algorithms for fitting ERGMs; Karwa, Krivitsky, Slavković (2017),
        Sharing social network data: differentially private estimation of exponential family random-graph models.
    """
    used = _checked_terms(terms)
    count = whole("nodes", nodes, at_least=3)
    if count > MOST_NODES:
        raise InvalidParameterError(
            f"A model of {count} nodes takes too long to simulate.",
            fix=f"fit graphs of at most {MOST_NODES} nodes.",
        )
    pairs = math.comb(count, 2)
    target = np.maximum(np.asarray(statistics, dtype=np.float64), 0.0)
    density = min(max(float(target[0]) if used[0] == "edges" else 1.0, 1.0), pairs - 1.0) / pairs
    theta = np.zeros(len(used))
    if used[0] == "edges":
        theta[0] = math.log(density / (1 - density))
    mean, spread, near = target, np.eye(len(used)), False
    for _ in range(_ROUNDS):
        drawn = _simulated(used, theta, count, bits, edges=density * pairs, samples=_SAMPLES)
        mean, spread = drawn.mean(axis=0), np.atleast_2d(np.cov(drawn.T)) + 1e-6 * np.eye(len(used))
        away = target - mean
        distance = math.sqrt(max(0.0, float(away @ np.linalg.solve(spread, away))))
        if distance < _NEAR:
            near = True
            break
        theta = theta + min(1.0, _STRIDE / distance) * np.linalg.solve(spread, away)
        if not np.isfinite(theta).all() or np.abs(theta).max() > 50:
            break
    inverse = np.linalg.inv(spread)
    covariance = inverse + inverse @ np.diag(np.asarray(variances, dtype=np.float64)) @ inverse
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    return ErgmFit(used, theta, errors, mean, near)


def simulate_ergm(terms: Sequence[str], coefficients: Floats, nodes: int, bits: Bits, *, samples: int) -> Floats:
    """Statistics of graphs drawn from a model, one row each."""
    used = _checked_terms(terms)
    theta = np.asarray(coefficients, dtype=np.float64)
    density = 1 / (1 + math.exp(-min(max(float(theta[0]), -30), 30))) if used[0] == "edges" else 0.5
    return _simulated(used, theta, nodes, bits, edges=density * math.comb(nodes, 2), samples=samples)


def _checked_terms(terms: Sequence[str]) -> tuple[str, ...]:
    used = tuple(terms)
    if not used or len(set(used)) < len(used) or any(term not in TERMS for term in used):
        raise InvalidParameterError(
            "A model has some of the terms edges, stars_2 and triangles, each once.",
            fix='pass terms=("edges", "triangles").',
        )
    return used


def _simulated(used: tuple[str, ...], theta: Floats, nodes: int, bits: Bits, *, edges: float, samples: int) -> Floats:
    """Statistics of a chain in which so many ``edges`` are expected, four toggles for each between samples."""
    places = [TERMS.index(term) for term in used]
    full = np.zeros(len(TERMS))
    full[places] = theta
    gap = min(3 * math.comb(nodes, 2), 4 * max(10, int(edges)) + nodes)
    chain = np.array([samples, 20 * gap, gap], np.int64)
    drawn: Floats = _chain(full, nodes, chain, np.uint64(bits.integer(64)))
    return drawn[:, places]


@compiled
def _chain(theta: Floats, nodes: int, sizes: NDArray[np.int64], seed: np.uint64) -> Floats:
    """Metropolis steps that toggle a random edge or a random pair, half of the time each, from the empty graph.

    One word of splitmix64 serves each step: a bit for the kind, 31 bits for the place, 32 for acceptance.

    Reference:
        Morris, Handcock, Hunter (2008), Specification of exponential-family random graph models: terms and
        computational aspects.
    """
    samples, burn, gap = sizes[0], sizes[1], sizes[2]
    joined, place = np.zeros((nodes, nodes), np.uint8), np.zeros((nodes, nodes), np.int64)
    pairs = nodes * (nodes - 1) // 2
    left, right = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    degrees = np.zeros(nodes, np.int64)
    stars, triangles = np.int64(0), np.int64(0)
    out = np.empty((samples, 3))
    edges, state = 0, seed
    for step in range(1, burn + samples * gap + 1):
        state += np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        where = np.int64((word >> np.uint64(1)) & np.uint64(0x7FFFFFFF))
        height = (np.int64(word >> np.uint64(32)) + 0.5) / 4294967296.0
        if edges > 0 and word & np.uint64(1):
            e = (where * edges) >> 31
            i, j = left[e], right[e]
        else:
            place_of = (where * 2 * pairs) >> 31
            i, j = place_of // (nodes - 1), place_of % (nodes - 1)
            j += j >= i
            i, j = min(i, j), max(i, j)
        there = np.int64(joined[i, j])
        ends = degrees[i] + degrees[j] - 2 * there
        common = np.int64(0)
        for k in range(nodes):
            common += joined[i, k] & joined[j, k]
        # How much likelier the way back is than the way there, as a proposal.
        if there:
            back = 1 / (pairs / edges + 1.0) if edges > 1 else 2 / (pairs + 1.0)
        else:
            back = pairs / (edges + 1.0) + 1.0 if edges > 0 else (pairs + 1.0) / 2
        sign = 1 - 2 * there
        if math.log(height) < sign * (theta[0] + theta[1] * ends + theta[2] * common) + math.log(back):
            stars += sign * ends
            triangles += sign * common
            joined[i, j] = joined[j, i] = 1 - there
            degrees[i] += sign
            degrees[j] += sign
            if there:
                edges -= 1
                e = place[i, j]
                left[e], right[e] = left[edges], right[edges]
                place[left[e], right[e]] = e
            else:
                left[edges], right[edges] = i, j
                place[i, j] = edges
                edges += 1
        if step > burn and (step - burn) % gap == 0:
            row = (step - burn) // gap - 1
            out[row, 0], out[row, 1], out[row, 2] = edges, stars, triangles
    return out
