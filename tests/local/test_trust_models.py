import math

import pytest

from defocus.errors import InvalidParameterError
from defocus.local.levels import LARGEST_NUMERIC_EPSILON
from defocus.local.trust_models import Comparison, compare

COUNTED = compare(10_000, 1)


def test_trust_buys_accuracy() -> None:
    for task in ("count", "mean"):
        found = COUNTED if task == "count" else compare(10_000, 1, "mean")
        assert found.of("central").error < found.of("shuffle").error < found.of("local").error


def test_the_local_error_grows_with_the_root_of_the_users_and_the_shuffled_one_does_not() -> None:
    more = compare(1_000_000, 1, delta=1e-8)
    assert more.of("local").error / COUNTED.of("local").error == pytest.approx(10, rel=1e-3)
    assert more.of("shuffle").error < 1.2 * COUNTED.of("shuffle").error


def test_published_constants() -> None:
    """Laplace noise of scale 1, randomised response with variance e/(e-1)^2 a user."""
    assert COUNTED.of("local").error == pytest.approx(100 * math.sqrt(math.e) / (math.e - 1), rel=1e-3)
    assert COUNTED.of("central").error == pytest.approx(math.sqrt(2 * math.e) / (math.e - 1), rel=1e-6)


def test_the_least_trust_that_is_accurate_enough_is_recommended() -> None:
    assert COUNTED.recommend().model == "shuffle"
    assert COUNTED.recommend(error=200).model == "local"
    assert COUNTED.recommend(error=2).model == "central"
    assert COUNTED.recommend(error=1e-9).model == "central"
    assert compare(10_000, 3).recommend().model == "local"


def test_few_users_have_fewer_options_and_still_an_answer() -> None:
    found = compare(3, 0.5)
    assert found.recommend().model == "central"
    assert isinstance(found, Comparison)
    assert "recommended: central" in str(found)


def test_a_histogram_is_compared_category_by_category() -> None:
    found = compare(2000, 1, "histogram", categories=8, delta=1e-6)
    assert found.sampling_error == pytest.approx(math.sqrt(2000 * 7 / 64))
    assert found.of("central").error < found.of("shuffle").error < found.of("local").error


@pytest.mark.parametrize(
    "bad",
    [{"n": 0}, {"n": 2.5}, {"epsilon": 0}, {"epsilon": math.nan}, {"task": "guess"}, {"delta": 1}],
)
def test_bad_questions_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameterError):
        compare(**({"n": 100, "epsilon": 1} | bad))  # type: ignore[arg-type]  # one of them is bad


@pytest.mark.parametrize("epsilon", [10, 20, 40])
def test_a_mean_is_compared_also_where_epsilon_is_large(epsilon: int) -> None:
    """Reports about numbers go up to 16, and others to 32: who may spend more spends that."""
    found = compare(1000, epsilon, "mean", delta=1e-6)
    assert {option.model for option in found.options} == {"central", "shuffle", "local"}
    assert found.of("local").local_epsilon == min(epsilon, LARGEST_NUMERIC_EPSILON)
    assert all(0 < (option.local_epsilon or 1) <= LARGEST_NUMERIC_EPSILON for option in found.options)


def test_what_too_few_users_cannot_do_is_left_out_with_the_reason() -> None:
    found = compare(3, 1e-3, delta=1e-9)
    assert [each.partition(": ")[0] for each in found.left_out] == ["shuffle, several messages"]
    assert "do not hide" in found.left_out[0]
    assert f"left out: {found.left_out[0]}" in str(found)
    assert COUNTED.left_out == ()
