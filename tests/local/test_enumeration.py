"""Every oracle keeps epsilon exactly: all outcomes, all categories, rational arithmetic."""

import math
from fractions import Fraction

import pytest
from tests.local.enumeration import worst_ratio
from tests.local.making import small

from defocus.local.designs import NAMES
from defocus.local.levels import growth

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(5, 2), Fraction(7, 2)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NAMES)
def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely(name: str, epsilon: Fraction) -> None:
    for size in (2, 5):
        options = {"rows": 2, "width": 8} if name in {"cms", "hcms"} else {}
        if name == "rappor":
            options = {"cohorts": 3, "width": 7}
        made = small(name, size, epsilon, **options)
        worst = worst_ratio(made)
        assert worst <= growth(epsilon)[0], "the declared epsilon is exceeded"
        assert worst == made.ratio, "the stated ratio is not the true one"
        assert math.log(worst) > 0.99 * epsilon, "more noise than epsilon asks for"
