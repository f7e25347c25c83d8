import itertools
import json
from typing import Any

import numpy as np
import pytest
from tests.workloads.streaming import matrix

from defocus import Budget
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.workloads.streams import RunningSum
from defocus.workloads.streams.design import Design, Participation, design
from defocus.workloads.streams.shaped import LONGEST_SHAPED, Shaped, shape_of
from defocus.workloads.streams.strategies import Factor

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def shaped(steps: int, bandwidth: int, bits: int = 18) -> Shaped:
    return Shaped(steps, bits=bits, bandwidth=bandwidth, shape=shape_of(steps, bandwidth))


def far(steps: int, participations: int, separation: int) -> Any:
    for times in range(1, participations + 1):
        for pattern in itertools.combinations(range(steps), times):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                yield list(pattern)


@pytest.mark.parametrize(("participations", "separation"), [(2, 3), (3, 4), (4, 3), (3, 5), (9, 2), (2, 13)])
def test_no_pattern_of_participations_exceeds_the_sensitivity(participations: int, separation: int) -> None:
    """The matrix that is really applied, every pattern that the promise allows, in Python integers."""
    strategy = shaped(14, separation)
    C = matrix(strategy)
    worst = max(sum(x * x for x in C[:, p].sum(axis=1)) for p in far(14, participations, separation))
    declared = strategy.squared_sensitivity(participations, separation)
    assert declared * (1 - 2**-14) <= worst <= declared
    signed = C[:, 0] - C[:, separation]
    assert sum(x * x for x in signed) <= declared


def test_columns_are_of_one_length_and_no_row_looks_ahead() -> None:
    strategy = shaped(40, 9)
    C = matrix(strategy)
    lengths = np.array([sum(x * x for x in column) for column in C.T], float) / 4.0**18
    assert lengths == pytest.approx(np.ones(40), rel=1e-4)
    assert strategy.squared_sensitivity(1, 1) == max(sum(x * x for x in column) for column in C.T)
    assert all(C[t, s] == 0 for t in range(40) for s in range(40) if s > t or t - s >= 9)
    assert max(sum(row) for row in C) <= strategy.reach


def test_a_band_wider_than_the_separation_has_no_sensitivity() -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # nobody can ask for it
        shaped(14, 4).squared_sensitivity(2, 3)


@pytest.mark.parametrize(("steps", "bandwidth"), [(1, 1), (2, 1), (7, 3), (40, 9), (40, 40)])
def test_variances_are_those_of_the_matrix_in_use(steps: int, bandwidth: int) -> None:
    strategy = shaped(steps, bandwidth)
    B = np.tri(steps) @ np.linalg.inv(matrix(strategy).astype(float))
    assert list(strategy.variances()) == pytest.approx((B**2).sum(axis=1).tolist(), rel=1e-11)


def unit(strategy: Shaped | Factor, participations: int, separation: int) -> tuple[float, float]:
    found = np.array(list(strategy.variances())) * float(strategy.squared_sensitivity(participations, separation))
    return float(found.mean()), float(found.max())


def test_it_is_far_below_the_banded_square_root_and_level_with_the_peer() -> None:
    """256 steps, 4 times 64 apart: jax-privacy 2.0.0, banded.optimize(256, bands=64), has 29.3668 and 41.3414."""
    mean, largest = unit(shaped(256, 64), 4, 64)
    plain_mean, plain_largest = unit(Factor(256, bits=(18, 0), bandwidth=64), 4, 64)
    assert mean < 0.94 * plain_mean
    assert largest < 0.9 * plain_largest
    assert mean < 29.3668 * 1.0005
    assert largest < 41.3414


def test_the_plan_takes_it_where_columns_of_a_unit_cannot_meet() -> None:
    plan = RunningSum(60, **PRICE, participations=3, separation=20)
    assert isinstance(plan._design.strategy, Shaped)
    assert plan.memory == 20
    once = RunningSum(60, **PRICE, method="banded", bandwidth=20)
    wide = RunningSum(60, **PRICE, method="banded", bandwidth=21, participations=3, separation=20)
    crowded = RunningSum(1024, **PRICE, participations=50, separation=20)
    long = RunningSum(LONGEST_SHAPED + 1, **PRICE, participations=2, separation=1000)
    assert all(isinstance(other._design.strategy, Factor) for other in (once, wide, crowded, long))


def test_a_design_survives_json_and_one_whose_noise_does_not_cover_it_is_refused() -> None:
    found = design(
        steps=40,
        entries=1,
        largest=2**24,
        price=Budget(1, 1e-6),
        laplace=False,
        participation=Participation(3, 10, 1, replace=False),
        method="banded",
        bandwidth=None,
        spread=8,
    )
    kept = json.loads(json.dumps(found.to_dict()))
    again = Design.of(kept)
    assert again.to_dict() == found.to_dict()
    assert list(again.strategy.variances()) == list(found.strategy.variances())
    short = [row[:-1] for row in kept["shape"]]
    for tampered in ({"participation": [4, 10, "1", False]}, {"participation": [3, 9, "1", False]}, {"shape": short}):
        with pytest.raises(ValueError):  # noqa: PT011 # resume() says what it means
            Design.of(kept | tampered)


@pytest.mark.statistical
def test_released_sums_have_the_predicted_error_also_when_resumed(ledger: Ledger) -> None:
    plan = RunningSum(24, epsilon=0.5, delta=1e-7, participations=3, separation=8, entries=3000)
    stream = plan.start(ledger=ledger, purpose="errors", bits=seeded(11))
    seen = [np.asarray(stream.add([5] * 3000).value) for _ in range(9)]
    stream = RunningSum.resume(stream.save(), ledger=ledger, bits=seeded(12))
    seen += [np.asarray(stream.add([5] * 3000).value) for _ in range(15)]
    errors = np.array([np.mean((values - 5 * (t + 1)) ** 2) for t, values in enumerate(seen)])
    assert errors == pytest.approx(plan.variances, rel=0.15)
