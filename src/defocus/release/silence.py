"""Silence while private values are computed on: what is warned of may depend on them."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

__all__ = ["silence"]

_EVERYTHING = ("ignore", re.compile(""), Warning, None, 0)
"""A filter of our own, which simplefilter("ignore") of others neither finds nor replaces."""


@contextmanager
def silence() -> Iterator[None]:
    """Show no warning, of Python or numpy, until the end of the block.

    Filters of warnings belong to the whole process. Each block adds a line to them and takes one such line away, so
    that of several threads none ends the silence of another, and after the last nothing is left behind.

    >>> with silence():
    ...     warnings.warn("the largest value is 12", stacklevel=1)
    """
    filters: Any = warnings.filters  # a list, which the next catch_warnings() copies
    filters.insert(0, _EVERYTHING)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with suppress(ValueError):
            filters.remove(_EVERYTHING)
