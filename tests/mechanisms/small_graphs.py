"""All labelled graphs on a few nodes, and how far two of their statistics move: written from the definitions."""

import itertools
from functools import cache
from math import comb

import numpy as np

Pair = tuple[int, int, int, int]
"""A value and its level in one graph, and in a neighbour that has one edge more or less."""


@cache
def degrees_and_triangles(n: int) -> tuple[np.ndarray, np.ndarray]:
    ends = list(itertools.combinations(range(n), 2))
    number = np.arange(1 << len(ends))
    joined = np.zeros((len(number), n, n), np.int64)
    for bit, (i, j) in enumerate(ends):
        joined[:, i, j] = joined[:, j, i] = number >> bit & 1
    return joined.sum(2), np.einsum("gij,gjk,gki->g", joined, joined, joined) // 6


@cache
def value(n: int, statistic: str) -> np.ndarray:
    degrees, triangles = degrees_and_triangles(n)
    if statistic == "triangles":
        return triangles
    k = int(statistic.removesuffix("-stars"))
    stars: np.ndarray = np.array([[comb(int(d), k) for d in row] for row in degrees]).sum(1)
    return stars


@cache
def moves(n: int, statistic: str) -> np.ndarray:
    """How far the statistic of each graph can move by one edge: its local sensitivity."""
    exact = value(n, statistic)
    number = np.arange(len(exact))
    furthest: np.ndarray = np.max([abs(exact[number ^ (1 << bit)] - exact) for bit in range(n * (n - 1) // 2)], axis=0)
    return furthest


def neighbours(n: int, values: np.ndarray, levels: np.ndarray) -> set[Pair]:
    """Every pair of neighbouring graphs, as far as values and levels tell them apart."""
    number = np.arange(len(values))
    found: set[Pair] = set()
    for bit in range(n * (n - 1) // 2):
        other = number ^ (1 << bit)
        found |= set(zip(*(x.tolist() for x in (values, levels, values[other], levels[other])), strict=True))
    return found
