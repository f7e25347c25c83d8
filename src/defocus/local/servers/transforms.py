"""The Walsh-Hadamard transform on integers."""

import numpy as np

from defocus.local.servers.tallies import Tally

__all__ = ["walsh", "walsh_rows"]


def walsh(values: Tally) -> Tally:
    """Sums of ``values`` under all 2**k patterns of signs: entry v of the result has minus where j & v is odd.

    >>> import numpy as np
    >>> walsh(np.array([1, 2, 0, 0]))
    array([ 3, -1,  3, -1])
    """
    return walsh_rows(values)


def walsh_rows(values: Tally) -> Tally:
    """The same along the last axis."""
    out = np.ascontiguousarray(values).copy()
    half = 1
    while half < out.shape[-1]:
        pairs = out.reshape(-1, 2, half)
        plus = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = plus
        half *= 2
    return out
