from typing import Any

import numpy as np
import pytest

from defocus import workloads as w
from defocus.noise.testing import seeded
from defocus.workloads.matrices import MatrixStrategy

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
MANY = 2**45
FEW = np.random.default_rng(1).normal(size=(3, 20))
FAINT = w.union(w.kron(w.prefix(6), w.total(5)), w.kron(w.total(6), w.identity(5)), weights=[1, 1e-10])
HALVES = w.strategy([[1, 1, 0, 0], [0, 0, 1, 1]])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("workload", "given"),
    [(w.prefix(64), None), (w.explicit(FEW), None), (FAINT, None), (w.total(4), HALVES)],
    ids=["many queries", "fewer queries than cells", "faint queries", "a strategy that leaves cells open"],
)
def test_the_error_is_the_same_for_many_records_as_for_none(workload: Any, given: Any, noise: str) -> None:
    """Reconstruction is linear: with the same noise, only rounding can tell them apart."""
    plan = w.plan(workload, **PRICE, noise=noise, total=MANY, strategy=given)
    cells, measure = int(np.prod(workload.sizes)), plan.measurement
    for x in (np.full(cells, MANY // cells), MANY * np.eye(cells, dtype=np.int64)[cells // 2]):
        errors = [
            measure.strategy.answers(workload, measure.sample(data, seeded(3))) - workload.answer(data)
            for data in (x, np.zeros_like(x))
        ]
        apart = np.abs(errors[0] - errors[1]) / np.sqrt(plan.variances())
        assert float(apart.max()) < 0.01


def test_rows_that_were_wrapped_around_are_answered_all_the_same() -> None:
    strategy = MatrixStrategy.of((2,), np.array([[2**20, 1], [0, 1]]))
    assert np.isfinite(strategy.cells(np.array([-(2**63), 2**63 - 1]))).all()
