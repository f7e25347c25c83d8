import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.local import best, best_mean, choices


@given(st.integers(2, 3000), st.sampled_from([0.25, 1, 2, 4]))
def test_the_best_is_within_two_percent_of_the_least_variance_and_short(size: int, epsilon: float) -> None:
    found, chosen = choices(size, epsilon), best(size, epsilon)
    least = found[0].variance
    assert [each.variance for each in found] == sorted(each.variance for each in found)
    assert chosen.variance(1) <= 1.02 * least
    assert all(each.report_bytes >= chosen.report_bytes for each in found if each.variance <= 1.02 * least)


def test_randomised_response_wins_where_it_is_known_to() -> None:
    """Wang et al. (2017): when there are fewer than 3 e**epsilon + 2 categories."""
    for epsilon in (1, 2, 3):
        limit = 3 * math.exp(epsilon) + 2
        assert best(2, epsilon).name in {"k-rr", "pgr"}
        assert best(int(limit * 0.5), epsilon).variance(1) <= choices(int(limit * 0.5), epsilon)[0].variance * 1.02
        assert best(int(limit * 4), epsilon).name != "k-rr"


def test_reports_can_be_kept_short_and_large_domains_are_served() -> None:
    assert best(1000, 1, most_bytes=2).report_bytes == 2
    assert best(1_000_000, 1).report_bytes <= 4
    with pytest.raises(InvalidParameterError, match="reports that short"):
        best(1_000_000, 1, most_bytes=1)
    assert best(["a", "b"], 1, outside="other").domain.size == 3
    assert "variance" in repr(choices(10, 1)[0])


def test_what_is_wrong_with_the_question_is_said() -> None:
    with pytest.raises(InvalidParameterError, match="epsilon"):
        best(10, -1)
    with pytest.raises(InvalidParameterError, match="size of the domain"):
        best(0, 1)


def test_the_best_mean_has_the_least_worst_variance() -> None:
    assert best_mean(-1, 1, 1).worst_variance == pytest.approx(4.29, rel=0.01)
    assert best_mean(-1, 1, 4).worst_variance == pytest.approx(0.219, rel=0.01)
