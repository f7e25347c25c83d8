import json
import math

from defocus.ledger import Ledger
from defocus.mechanisms import Exponential, Gaussian, Laplace
from defocus.noise.testing import seeded
from defocus.release import Release, release


def one(ledger: Ledger, purpose: str = "number of visits") -> Release:
    return release(Laplace(scale=2), 1041, ledger=ledger, purpose=purpose, who="Ada", bits=seeded(3))


def test_explain_says_what_was_protected_how_well_by_what_and_at_which_cost(ledger: Ledger) -> None:
    text = one(ledger).explain()
    for words in (
        "number of visits (Ada",
        "everything about one patient_id, added or removed, in ward visits",
        "epsilon 0.5 for this release alone",
        "by at most 1.649",
        "at most 62.2 %",
        "Laplace(scale=2, sensitivity=1)",
        "entry 1 of the ledger",
        "one release of epsilon 2.5",
        "Budget(epsilon=3, delta=1e-06)",
    ):
        assert words in text


def test_the_odds_of_a_pure_release_are_e_to_the_epsilon(ledger: Ledger) -> None:
    promised = one(ledger).promise()
    assert promised.epsilon == 0.5
    assert promised.delta == 0
    assert math.isclose(promised.odds, math.exp(0.5), rel_tol=1e-9)


def test_a_gaussian_release_names_its_delta_and_the_chance_of_exception(ledger: Ledger) -> None:
    found = release(Gaussian(sigma=10), 5, ledger=ledger, purpose="count")
    assert found.promise().delta == 1e-6
    assert "except with probability 1e-06" in found.explain()


def test_a_release_is_json_and_a_page_without_markup_from_its_purpose(ledger: Ledger) -> None:
    found = one(ledger, "<script>alert(1)</script>")
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_str_is_one_line_with_the_interval(ledger: Ledger) -> None:
    assert str(one(ledger)) == "1046 ± 6 (95 %), number of visits"


def test_the_position_of_a_choice_is_called_one(ledger: Ledger) -> None:
    found = release(Exponential(epsilon=0.5, candidates=2), [900, 0], ledger=ledger, purpose="most common")
    assert "value:       0 (the position of what was chosen, counted from 0)" in found.explain()
    assert "position" not in one(ledger).explain()
