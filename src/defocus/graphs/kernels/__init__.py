"""Loops that are compiled when they are first called (numba, extra ``graph``): exact, on 64-bit integers."""

from defocus.graphs.kernels.rows import compiled, in_pieces

__all__ = ["compiled", "in_pieces"]
