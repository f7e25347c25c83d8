"""The auditor attacks oracles: it finds nearly epsilon, and never more; and it catches a client that is wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.local.making import small

from defocus.audit import batched, lower_bound
from defocus.local.clients import Client
from defocus.local.designs import Design
from defocus.noise.testing import seeded


def attacked(made: Design, claimed: Design) -> Any:
    bits = seeded(5)

    def reports(value: int, n: int) -> Sequence[int]:
        payload = Client(made).encode(np.full(n, value), bits).payload
        cells: list[int] = (payload if payload.ndim == 1 else payload @ (1 << 8 * np.arange(payload.shape[1]))).tolist()
        return cells

    return lower_bound(batched(reports), (0, 1), 40_000, claimed=claimed.epsilon)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["k-rr", "hadamard", "oue", "pgr"])
def test_the_auditor_finds_nearly_epsilon_and_never_more(name: str) -> None:
    made = small(name, 3, 1)
    finding = attacked(made, made)
    assert finding.verdict != "violation"
    assert 0.75 < finding.epsilon_lower <= 1


@pytest.mark.statistical
def test_the_auditor_catches_a_client_with_a_larger_epsilon() -> None:
    finding = attacked(small("k-rr", 3, 1.5), small("k-rr", 3, 1))
    assert finding.verdict == "violation"
