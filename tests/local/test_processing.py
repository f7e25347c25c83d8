import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.local import oracle, process
from defocus.local.processing import isotonic, norm_sub, simplex
from defocus.noise.testing import seeded

counts = st.lists(st.floats(-1000, 1000), min_size=1, max_size=30).map(np.array)


@given(counts, st.floats(1, 5000))
def test_norm_sub_is_the_projection_on_the_simplex(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], total: float
) -> None:
    one, other = norm_sub(values, total), simplex(values, total)
    assert one == pytest.approx(other, abs=1e-6 * (total + 1000))
    assert one.min() >= 0
    assert one.sum() == pytest.approx(total)


@given(counts)
def test_isotonic_counts_never_rise_and_keep_their_sum(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    made = isotonic(values, 0.0)
    assert (np.diff(made) <= 1e-9).all()
    assert made.sum() == pytest.approx(values.sum(), abs=1e-6)
    assert isotonic(made, 0.0) == pytest.approx(made)


@pytest.mark.statistical
def test_processing_brings_estimates_closer_and_says_that_it_is_biased() -> None:
    asked = oracle("oue", 200, 1, outside="refuse")
    people = np.minimum(np.arange(20_000) // 100, 199) // 4
    true = np.bincount(people, minlength=200)
    plain = asked.estimate(asked.encode(people, seeded(2)))
    for how in ("norm-sub", "simplex"):
        made = process(plain, how)
        assert ((made.counts - true) ** 2).sum() < 0.8 * ((plain.counts - true) ** 2).sum()
        assert not made.unbiased
        assert f"{how}: biased" in repr(made)
        with pytest.raises(InvalidParameterError, match="no interval"):
            made.intervals()
        with pytest.raises(InvalidParameterError, match="processed already"):
            process(made, "isotonic")
    assert asked.estimate(asked.encode(people, seeded(2)), processing="norm-sub").counts.min() == 0


def test_a_processing_that_nothing_has_is_refused() -> None:
    asked = oracle("k-rr", 3, 1)
    with pytest.raises(InvalidParameterError, match="norm-sub, simplex, isotonic"):
        asked.estimate(asked.encode([1]), processing="wishful")  # type: ignore[arg-type]
