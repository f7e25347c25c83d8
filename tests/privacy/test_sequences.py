"""The bound for fixed sequences, with its label."""

import pytest

from defocus.privacy.accounting import account
from defocus.privacy.events import Gaussian, Laplace, Selected
from defocus.privacy.sequences import fixed_sequence_bound


def test_the_bound_is_the_tightest_and_says_when_it_holds() -> None:
    found = fixed_sequence_bound(30 * Gaussian(20), 1e-6)
    assert found.epsilon == pytest.approx(account(30 * Gaussian(20), "gdp").epsilon(1e-6), rel=1e-3)
    assert "valid only if the sequence of privacy parameters was fixed in advance" in str(found)
    assert found.accountant == "pld"


def test_what_the_tightest_cannot_express_goes_to_the_next() -> None:
    found = fixed_sequence_bound(Selected(Gaussian(5), 0.1), 1e-6)
    assert found.accountant == "rdp"
    assert found.epsilon > account(Gaussian(5), "rdp").epsilon(1e-6)


def test_the_bound_is_labelled_in_json_and_has_no_infinity() -> None:
    found = fixed_sequence_bound(100 * Laplace(10), 1e-6).to_dict()
    assert found["epsilon"] < 8
    assert "only if" in found["valid"]
    assert fixed_sequence_bound(Gaussian(1), 0).to_dict()["epsilon"] is None
