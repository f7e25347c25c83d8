"""Every oracle keeps epsilon exactly: all outcomes, all categories, rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2
from tests.local.enumeration import Law, law, worst_ratio
from tests.local.making import small

from defocus.local.clients import Client
from defocus.local.designs import NAMES
from defocus.local.layouts import BitRows
from defocus.local.levels import growth
from defocus.noise.testing import seeded

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


def seen(name: str, epsilon: Fraction, code: int, size: int) -> tuple[Law, dict[int, int]]:
    """The enumerated law of reports about a category, and how often the client made each report in fact."""
    options = {"rows": 2, "width": 4} if name in {"cms", "hcms"} else {}
    made = small(name, 5, epsilon, **options)
    payload = Client(made).encode(np.full(size, code), seeded(11)).payload
    if isinstance(made.layout, BitRows):
        layout = made.layout
        bits = np.unpackbits(payload[:, layout.prefix :], axis=1, count=layout.width, bitorder="little")
        numbers = layout.row(payload) << layout.width | bits @ (1 << np.arange(layout.width))
    else:
        numbers = payload
    values, counts = np.unique(numbers, return_counts=True)
    return law(made, code), dict(zip(values.tolist(), counts.tolist(), strict=True))


def misfit(expected: Law, found: dict[int, int]) -> float:
    """How likely a misfit as large as this would be under the expected law."""
    total = sum(found.values())
    assert set(found) <= {report for report, chance in expected.items() if chance}
    cells = [(float(chance) * total, found.get(report, 0)) for report, chance in expected.items()]
    return float(chi2.sf(sum((got - mean) ** 2 / mean for mean, got in cells), len(cells) - 1))


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in NAMES if name != "rappor"])
def test_clients_report_by_the_enumerated_law_and_no_other(name: str) -> None:
    epsilon = Fraction(2)
    expected, found = seen(name, epsilon, 1, 60_000)
    assert misfit(expected, found) > 1e-4
    wrong, _ = seen(name, epsilon, 2, 1)
    assert misfit(wrong, found) < 1e-6, "the law of another category"
    if name not in {"olh", "pgr", "subset"}:  # these have another set of reports at another epsilon
        further, _ = seen(name, epsilon * Fraction(11, 10), 1, 1)
        assert misfit(further, found) < 1e-6, "the law of an epsilon 10 % larger"
