"""Exponential random graph models, fitted to noisy statistics by simulation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.answers.columns import Floats
from defocus.errors import InvalidParameterError, whole
from defocus.machine_code import compiled
from defocus.noise import Bits

__all__ = ["MOST_NODES", "TERMS", "ErgmFit", "fit_ergm", "simulate_ergm"]

TERMS = ("edges", "stars_2", "triangles", "gwesp")
"""The statistics that a model may have; "gwesp" are edges in a triangle."""
MOST_NODES = 5000
"""A simulated graph takes six bytes for each pair of nodes: 150 MB."""

_ROUNDS = 15
"""At _STRIDE a round, a start that is up to thirty standard deviations off can arrive."""
_SAMPLES = 300
"""Graphs simulated in a round."""
_NEAR = 0.25
"""The fit ends when the simulated mean is so many standard deviations from the released statistics."""
_STRIDE = 2.0
"""In each round the simulated mean is led at most so many standard deviations towards them."""
_TOGGLES = 20_000_000
"""A round of a large graph takes so many; then fewer than four for each edge lie between samples."""
_MOST_EDGES = 2_000_000
"""No simulated graph has more; one that tries to is no model of a sparse graph."""
_RATES = (0.1, 0.03, 0.01, 0.003, 0.001)
"""How far the coefficient of edges is led at each look, in five stretches."""
_SIZES = np.array([1.0, 0.02, 0.1, 0.5])
"""How large coefficients usually are, beside that of edges."""
_NOWHERE = np.zeros(len(TERMS))
_LOOKS = 800
"""How often coefficients are led on the way in each stretch."""
_OUT_OF_REACH = 20.0
"""So many standard deviations off after the search, nothing is near."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ErgmFit:
    """Coefficients of a model with standard errors that count the noise, and whether the search arrived.

    ``steady`` says whether a second chain, from a graph without edges, came to the same statistics. A model that has
    them from one start only is degenerate: its graphs are of two kinds.
    """

    terms: tuple[str, ...]
    coefficients: Floats
    standard_errors: Floats
    simulated: Floats
    converged: bool
    steady: bool


def fit_ergm(terms: Sequence[str], statistics: Floats, variances: Floats, nodes: int, bits: Bits) -> ErgmFit:
    r"""The model :math:`P(G) \propto e^{\theta \cdot s(G)}` whose mean statistics are the released ones.

    Guarantee:
        Post-processing: it reads released numbers only. ``bits`` seeds the simulation; nothing private depends on it.

    The likelihood equation of an exponential family, :math:`E_\theta s = s_{obs}`, is solved in two steps. A chain of
    graphs is led to the released statistics by coefficients that rise where a statistic is too low and fall where it is
    too high, ever more slowly. Newton steps follow, with means and covariances C of the same chain, each led
    towards the target only as far as the simulation can see. With noise of covariance N on the statistics,
    :math:`\hat\theta` has covariance :math:`C^{-1}(C + N)C^{-1} = C^{-1} + C^{-1}NC^{-1}`: the second term is what
    privacy costs.

    Error:
        Models with stars and triangles are degenerate for many values of the statistics: no model of the family puts
        its mass near them, since each further triangle makes the next one likelier. Then, and when noise took them out
        of reach, the fit does not converge and says so. With "gwesp" an edge is closed once only, and models of
        clustered graphs exist: ``benchmarks/README.md`` says which were tried.
    Reference:
        Borisenko, Byshkin, Lomi (2019), A simple algorithm for scalable Monte Carlo inference, for the first step;
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
    edges = min(max(float(target[0]) if used[0] == "edges" else pairs / 2, 1.0), pairs - 1.0)
    chain = _Chain(count, used, edges, bits)
    theta = chain.searched(target, math.log(edges / (pairs - edges)) if used[0] == "edges" else 0.0)
    mean, spread, near = target, np.eye(len(used)), False
    for _ in range(_ROUNDS):
        drawn = chain.drawn(theta, _SAMPLES)
        mean, spread = drawn.mean(axis=0), np.atleast_2d(np.cov(drawn.T)) + 1e-6 * np.eye(len(used))
        away = target - mean
        distance = math.sqrt(max(0.0, float(away @ np.linalg.solve(spread, away))))
        if distance < _NEAR:
            near = True
            break
        if not distance < _OUT_OF_REACH:
            break
        theta = theta + min(1.0, _STRIDE / distance) * np.linalg.solve(spread, away)
        if not np.isfinite(theta).all() or np.abs(theta).max() > 50:
            break
    inverse = np.linalg.inv(spread)
    covariance = inverse + inverse @ np.diag(np.asarray(variances, dtype=np.float64)) @ inverse
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    steady = near and _Chain(count, used, edges, bits).arrives(theta, mean, np.sqrt(np.diag(spread)))
    return ErgmFit(used, theta, errors, mean, near and steady, steady)


def simulate_ergm(terms: Sequence[str], coefficients: Floats, nodes: int, bits: Bits, *, samples: int) -> Floats:
    """Statistics of graphs drawn from a model, one row each."""
    used = _checked_terms(terms)
    theta = np.asarray(coefficients, dtype=np.float64)
    density = 1 / (1 + math.exp(-min(max(float(theta[0]), -30), 30))) if used[0] == "edges" else 0.5
    chain = _Chain(nodes, used, density * math.comb(nodes, 2), bits)
    chain.drawn(theta, 20)
    return chain.drawn(theta, samples)


def _checked_terms(terms: Sequence[str]) -> tuple[str, ...]:
    used = tuple(terms)
    if not used or len(set(used)) < len(used) or any(term not in TERMS for term in used):
        raise InvalidParameterError(
            f"A model has some of the terms {', '.join(TERMS)}, each once.",
            fix='pass terms=("edges", "gwesp").',
        )
    return used


@final
class _Chain:
    """A Markov chain of graphs, at first without edges, in which so many ``edges`` are expected."""

    def __init__(self, nodes: int, used: tuple[str, ...], edges: float, bits: Bits) -> None:
        self.places = [TERMS.index(term) for term in used]
        most = min(math.comb(nodes, 2), _MOST_EDGES)
        self.graph = (
            np.zeros((nodes, nodes), np.int32),
            np.zeros((nodes, nodes), np.int16),
            np.zeros(nodes, np.int64),
            np.zeros((most, 2), np.int32),
            np.zeros(most, np.int32),
            np.zeros(len(TERMS)),
            np.array([bits.integer(64)], np.uint64),
        )
        four = 4 * max(10, int(edges)) + nodes
        self.gap = min(four, 3 * math.comb(nodes, 2), max(_TOGGLES // _SAMPLES, int(edges) // 2))
        self.between = max(10, int(edges) // 20)

    def drawn(self, theta: Floats, samples: int) -> Floats:
        """Statistics after every gap."""
        return self._walk(self._full(theta), samples, self.gap)

    def searched(self, target: Floats, density: float) -> Floats:
        """Coefficients that keep the chain at the target, on average over the last stretches."""
        aim, theta = self._full(target), np.zeros(len(TERMS))
        theta[0] = density if 0 in self.places else 0.0
        self._walk(theta, 3, self.gap)
        led = self._full(np.ones(len(self.places))) * _SIZES
        kept = []
        for rate in _RATES:
            for _ in range(20):
                self._walk(theta, _LOOKS // 20, self.between, (aim, rate * led))
                kept.append(theta[self.places])
        found: Floats = np.mean(kept[-30:], axis=0)
        return found

    def arrives(self, theta: Floats, mean: Floats, spread: Floats) -> bool:
        """Whether this chain comes near the mean of another one, within the time of some rounds."""
        for _ in range(5 * _SAMPLES // 20):
            here = self.drawn(theta, 20).mean(axis=0)
            if (np.abs(here - mean) < 3 * spread + 1e-3).all():
                return True
        return False

    def _full(self, values: Floats) -> Floats:
        full = np.zeros(len(TERMS))
        full[self.places] = values
        return full

    def _walk(
        self, theta: Floats, samples: int, gap: int, towards: tuple[Floats, Floats] = (_NOWHERE, _NOWHERE)
    ) -> Floats:
        out = np.empty((samples, len(TERMS)))
        _toggled(theta, self.graph, out, gap, towards)
        return out[:, self.places]


@compiled
def _toggled(  # noqa: C901, PLR0912, PLR0915  # one loop, compiled as a whole
    theta: Floats, graph: Any, out: Floats, gap: int, towards: tuple[Floats, Floats]
) -> None:
    """Metropolis steps that toggle a random edge or a random pair, half of the time each: "tie, no tie".

    After every ``gap`` steps statistics are written to ``out``, and coefficients are led ``towards`` an aim. A
    step takes as long as the smaller degree of the pair. Two words of splitmix64 serve it: one for the place, one for
    the kind and for acceptance.

    Reference:
        Morris, Handcock, Hunter (2008), Specification of exponential-family random graph models: terms and
        computational aspects.
    """
    place, near, degrees, ends, shared, stats, state = graph
    aim, led = towards
    nodes, most = len(degrees), len(shared)
    pairs = nodes * (nodes - 1) // 2
    both = np.empty(nodes, np.int64)
    edges, word = np.int64(stats[0]), state[0]
    for step in range(1, len(out) * gap + 1):
        word += np.uint64(0x9E3779B97F4A7C15)
        one = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        one = (one ^ (one >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        one ^= one >> np.uint64(31)
        word += np.uint64(0x9E3779B97F4A7C15)
        other = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        other = (other ^ (other >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        other ^= other >> np.uint64(31)
        where = np.float64(one >> np.uint64(11)) / 9007199254740992.0
        height = (np.float64(other >> np.uint64(11)) + 0.5) / 9007199254740992.0
        if edges > 0 and other & np.uint64(1):
            e = np.int64(where * edges)
            i, j = np.int64(ends[e, 0]), np.int64(ends[e, 1])
        else:
            at = np.int64(where * 2 * pairs)
            i, j = at // (nodes - 1), at % (nodes - 1)
            j += j >= i
        there = np.int64(place[i, j] > 0)
        sign = 1 - 2 * there
        a, b = (i, j) if degrees[i] <= degrees[j] else (j, i)
        common, closed = 0, 0
        for k in range(degrees[a]):
            w = np.int64(near[a, k])
            if place[b, w] > 0:
                both[common] = w
                common += 1
                # Edges to w that are closed by this edge alone.
                closed += (shared[place[a, w] - 1] == there) + (shared[place[b, w] - 1] == there)
        closed += common > 0
        ends_sum = degrees[i] + degrees[j] - 2 * there
        # How much likelier the way back is than the way there, as a proposal.
        if there:
            back = 1 / (pairs / edges + 1.0) if edges > 1 else 2 / (pairs + 1.0)
        else:
            back = pairs / (edges + 1.0) + 1.0 if edges > 0 else (pairs + 1.0) / 2
        gain = theta[0] + theta[1] * ends_sum + theta[2] * common + theta[3] * closed
        if (there or edges < most) and math.log(height) < sign * gain + math.log(back):
            stats[0] += sign
            stats[1] += sign * ends_sum
            stats[2] += sign * common
            stats[3] += sign * closed
            for k in range(common):
                shared[place[i, both[k]] - 1] += sign
                shared[place[j, both[k]] - 1] += sign
            if there:
                e = np.int64(place[i, j]) - 1
                edges -= 1
                place[i, j] = place[j, i] = 0
                if e != edges:
                    x, y = ends[edges, 0], ends[edges, 1]
                    ends[e, 0], ends[e, 1], shared[e] = x, y, shared[edges]
                    place[x, y] = place[y, x] = e + 1
                for x, y in ((i, j), (j, i)):
                    degrees[x] -= 1
                    k = 0
                    while near[x, k] != y:
                        k += 1
                    near[x, k] = near[x, degrees[x]]
            else:
                ends[edges, 0], ends[edges, 1], shared[edges] = i, j, common
                edges += 1
                place[i, j] = place[j, i] = edges
                near[i, degrees[i]] = j
                near[j, degrees[j]] = i
                degrees[i] += 1
                degrees[j] += 1
        if step % gap == 0:
            out[step // gap - 1] = stats
            for k in range(len(theta)):
                theta[k] += led[k] * np.sign(aim[k] - stats[k])
    state[0] = word
