import numpy as np
from tests.answers.making import column

from defocus.answers.columns import noisy
from defocus.answers.explanation import exactness, told


def test_exactness_names_the_range_of_errors_and_what_is_unknown() -> None:
    assert (
        exactness(column(values=[1000.0], errors=3), 0.1) == "visits: standard error of the noise 3.0, 95 % within 6.0"
    )
    assert exactness(column(errors=np.nan), 0.1) == "visits: how far off it is in value is not known"
    assert "14" in exactness(column(), 0.1)


def test_expected_absolute_errors_are_called_so() -> None:
    one = noisy("edges", [41.0], error=1.9, half=6, how="Laplace")
    assert exactness(one) == "edges: off by 1.9 on average, 95 % within 6.0"
    two = noisy("degree", [41.0, 3.0], error=np.array([1.9, 30.0]), half=6, how="Laplace")
    assert exactness(two, thing="entry") == "degree: off by 1.9 to 30 on average, 95 % within 6.0 for the median entry"


def test_topics_without_a_sentence_are_not_told() -> None:
    said = {"question": ["<q>"], "found": ()}
    assert "found" not in told(said, html=False)
    assert "&lt;q&gt;" in told(said, html=True)
