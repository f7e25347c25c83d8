"""Loops that are compiled when they are first called (numba, extra ``graph``): exact, on 64-bit integers."""

from defocus.graphs.kernels.rows import in_pieces

__all__ = ["in_pieces"]
