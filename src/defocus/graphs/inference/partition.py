"""Communities out of a noisy list of who is joined to whom, and what share of nodes they hold rightly."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.columns import Floats
from defocus.noise import Bits

__all__ = ["Partition", "least_strength", "partition", "recovery"]

_STEPS = 40
"""Of the iteration that finds leading directions. Those that stand out by a tenth are found to a thousandth."""
_SWEEPS = 15
"""How often every node may move to the community that it is joined to most."""
_STARTS = 10
"""From so many starts nodes are divided by the leading directions."""


def least_strength(nodes: int, variance: float) -> float:
    r"""How many more neighbours a node must have inside than in another community, for communities to stand out.

    Entries of ``variance`` v in a symmetric matrix make eigenvalues up to :math:`2\sqrt{nv}`; an eigenvalue
    :math:`\lambda` of the communities stands out of them if :math:`\lambda^2 > nv`. The graph itself adds its degrees,
    :math:`\lambda` at least, to nv.

    Reference:
        Baik, Ben Arous, Péché (2005), Phase transition of the largest eigenvalue; Benaych-Georges, Nadakuditi (2011),
        The eigenvalues and eigenvectors of finite, low rank perturbations of large random matrices.

    >>> round(least_strength(200, 0.18), 1)
    6.5
    """
    return (1 + math.sqrt(1 + 4 * nodes * variance)) / 2


def recovery(nodes: int, k: int, variance: float, strength: float) -> float:
    r"""The share of nodes in the right one of ``k`` communities of equal size, as it is to be expected.

    With :math:`\lambda` = ``strength`` more neighbours inside and :math:`s^2 = \lambda^2/(nv + \lambda)`, an
    eigenvector of the reports has the squared cosine :math:`1 - s^{-2}` with that of the communities, and misplaces a
    node with probability :math:`(k-1)\,\Phi(-\sqrt{(s^2-1)k/2})`. Moving nodes afterwards does a little better. Below
    the least strength, one in k is right by chance.

    >>> round(recovery(200, 2, 0.18, 16), 2), recovery(200, 2, 0.18, 4)
    (0.98, 0.5)
    """
    if strength <= least_strength(nodes, variance):
        return 1 / k
    far = math.sqrt((strength**2 / (nodes * variance + strength) - 1) * k / 2)
    return max(1 / k, 1 - (k - 1) * math.erfc(far / math.sqrt(2)) / 2)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The community of every node, from 0 on, largest first; and how many more neighbours a node has inside.

    ``strengths`` has one number for each of k - 1 directions, NaN where it does not stand out of the noise.
    """

    labels: NDArray[np.int64]
    strengths: Floats


def partition(reports: NDArray[np.bool_], nodes: int, k: int, flipped: float, bits: Bits) -> Partition:
    r"""Divide nodes into ``k`` communities by what was reported of all pairs, each of it ``flipped`` that often.

    Unbiased entries :math:`W = (R - f)/(1 - 2f)` are divided by the leading eigenvectors of the modularity matrix
    :math:`W - dd^\top/\sum d`; then each node moves to the community in which it has the most neighbours beyond what
    its degree would give, some times. Post-processing: it sees reports only, and ``bits`` for where to start.

    Reference:
        Newman (2006), Finding community structure in networks using the eigenvectors of matrices; Hehir, Slavković,
        Niu (2022), Consistent spectral clustering of network block models under local differential privacy.
    """
    noisy = _symmetric(reports, nodes, flipped)
    degrees = noisy.sum(axis=1, dtype=np.float64)
    total = max(float(degrees.sum()), 1.0)

    def times(block: Floats) -> Floats:
        product: Floats = (noisy @ block.astype(np.float32)).astype(np.float64)
        return product - np.outer(degrees, degrees @ block / total)

    bulk = nodes * flipped * (1 - flipped) / (1 - 2 * flipped) ** 2 + total / nodes
    shift, block = 2 * math.sqrt(bulk), np.linalg.qr(_uniform(bits, (nodes, min(nodes, k + 1))) - 0.5)[0]
    for _ in range(_STEPS):
        block = np.linalg.qr(times(block) + shift * block)[0]
    small = block.T @ times(block)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    leading = np.argsort(-values)[: k - 1]
    values = values[leading]
    labels = _divided((block @ turn[:, leading]) * np.maximum(values, 0.0), k, bits)
    for _ in range(_SWEEPS):
        inside = np.zeros((nodes, k), np.float32)
        inside[np.arange(nodes), labels] = 1
        volumes = np.maximum(degrees @ inside, 0.0)
        expected = np.outer(np.maximum(degrees, 0.0), volumes / max(float(volumes.sum()), 1.0))
        moved = ((noisy @ inside) - expected).argmax(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    order = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    place = np.empty(k, np.int64)
    place[order] = np.arange(k)
    # An eigenvalue that stands out is λ + nv/λ; the largest of noise alone is below this with 99 % (Tracy, Widom).
    clear = values > shift * (1 + nodes ** (-2 / 3))
    out = np.where(clear, (values + np.sqrt(np.maximum(values**2 - shift**2, 0.0))) / 2, np.nan)
    return Partition(place[labels], out)


def _symmetric(reports: NDArray[np.bool_], nodes: int, flipped: float) -> NDArray[np.float32]:
    """Unbiased entries for all pairs, from reports about pairs (0, 1), (0, 2), … (1, 2), …."""
    matrix = np.zeros((nodes, nodes), np.float32)
    start = 0
    for i in range(nodes - 1):
        row = (reports[start : start + nodes - 1 - i].astype(np.float32) - flipped) / (1 - 2 * flipped)
        matrix[i, i + 1 :] = matrix[i + 1 :, i] = row
        start += nodes - 1 - i
    return matrix


def _divided(points: Floats, k: int, bits: Bits) -> NDArray[np.int64]:
    """The best of several divisions into k parts by nearest means."""
    best, least = np.zeros(len(points), np.int64), math.inf
    for _ in range(_STARTS):
        centres = points[(_uniform(bits, (1,)) * len(points)).astype(np.int64)]
        for _ in range(k - 1):
            away = np.cumsum(_distances(points, centres).min(axis=1))
            place = np.searchsorted(away, _uniform(bits, (1,)) * away[-1])
            centres = np.vstack([centres, points[np.minimum(place, len(points) - 1)]])
        labels = _distances(points, centres).argmin(axis=1)
        for _ in range(30):
            for part in range(k):
                if (labels == part).any():
                    centres[part] = points[labels == part].mean(axis=0)
            labels = _distances(points, centres).argmin(axis=1)
        loss = float(_distances(points, centres).min(axis=1).sum())
        if loss < least:
            best, least = labels, loss
    return best


def _uniform(bits: Bits, shape: tuple[int, ...]) -> Floats:
    """Numbers between 0 and 1, for public starting points."""
    drawn: Floats = (bits.words(math.prod(shape)) >> np.uint64(11)).astype(np.float64) / 2**53
    return drawn.reshape(shape)


def _distances(points: Floats, centres: Floats) -> Floats:
    distances: Floats = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return distances
