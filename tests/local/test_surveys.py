from typing import Any

import numpy as np
import pytest

from defocus.errors import InvalidParameterError, OutOfDomainError
from defocus.local import Attributes, Categories, attributes, oracle
from defocus.noise.testing import seeded
from defocus.privacy import events


def people(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    sex = rng.integers(0, 2, n)
    age = np.minimum(rng.poisson(2 + sex, n), 5)
    return {"sex": sex, "age": age, "town": rng.integers(0, 4, n)}


@pytest.mark.statistical
@pytest.mark.parametrize("how", ["each", "pairs", "joint"])
def test_tables_are_unbiased_and_their_errors_are_the_stated_ones(how: Any) -> None:
    columns = people(6000)
    asked, bits = attributes({"sex": 2, "age": 6, "town": 4}, 2, how=how, outside="refuse"), seeded(7)
    wanted = ("age",) if how == "each" else ("age", "sex")
    sizes = {"age": 6, "sex": 2}
    cells = np.ravel_multi_index([columns[name] for name in wanted], [sizes[name] for name in wanted])
    true = np.bincount(cells, minlength=6 if how == "each" else 12)
    estimates = [asked.table(asked.encode(columns, bits), wanted) for _ in range(60)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(60)
    assert (z**2).mean() == pytest.approx(1, abs=0.25)
    assert estimates[0].reports == 6000


def test_a_person_pays_epsilon_however_many_attributes_there_are() -> None:
    assert attributes({f"a{i}": 3 for i in range(10)}, 1, how="pairs").event == events.Pure(1)
    assert len(attributes({f"a{i}": 3 for i in range(10)}, 1, how="pairs").oracles) == 45


def test_one_attribute_needs_no_set() -> None:
    assert list(attributes({"a": 3}, 1, how="pairs").oracles) == [("a",)]


@pytest.mark.parametrize(
    ("domains", "how"), [({}, "each"), ([2, 3], "each"), ({"a": 2}, "some"), ({"a": 1 << 12, "b": 1 << 12}, "joint")]
)
def test_descriptions_without_meaning_are_refused(domains: Any, how: Any) -> None:
    with pytest.raises(InvalidParameterError):
        attributes(domains, 1, how=how)


def test_columns_are_complete_and_of_one_length() -> None:
    asked = attributes({"a": 3, "b": 3}, 1)
    with pytest.raises(InvalidParameterError, match="b is missing"):
        asked.encode({"a": [1]})
    with pytest.raises(InvalidParameterError, match=r"differ in length\.\nTo fix: give one value of every attribute"):
        asked.encode({"a": [1], "b": [1, 2]})
    with pytest.raises(OutOfDomainError):
        attributes({"a": 3, "b": 3}, 1, outside="refuse").encode({"a": [1], "b": [3]})


def test_a_table_that_was_not_asked_about_is_refused() -> None:
    asked = attributes({"a": 3, "b": 3}, 1)
    tables = asked.encode({"a": [1] * 50, "b": [2] * 50}, seeded(1))
    for names in (("a", "b"), ("c",), ("a", "a"), ()):
        with pytest.raises(InvalidParameterError, match="asked about"):
            asked.table(tables, names)
    assert len(asked.table(tables, "a")) == 4


@pytest.mark.statistical
def test_who_is_asked_about_what_is_part_of_the_error() -> None:
    """At a large epsilon reports have hardly any noise, and the choice of people is all that is left."""
    columns, bits = people(3000), seeded(8)
    asked = attributes({"sex": 2, "age": 6, "town": 4}, 12, outside="refuse")
    true = np.bincount(columns["town"], minlength=4)
    estimates = [asked.table(asked.encode(columns, bits), "town") for _ in range(100)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert (z**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / z.size))


def test_an_oracle_that_costs_more_or_asks_another_question_is_refused() -> None:
    known = {"a": Categories(3), "b": Categories(2)}
    assert Attributes(known, 1, {("a", "b"): oracle("k-rr", 6, 1, outside="refuse")}).epsilon == 1
    for names, asked in (
        (("a",), oracle("k-rr", 3, 32, outside="refuse")),
        (("a",), oracle("k-rr", 4, 1, outside="refuse")),
        (("a",), oracle("k-rr", Categories(3), 1)),
        (("a", "b"), oracle("k-rr", 5, 1, outside="refuse")),
        (("c",), oracle("k-rr", 3, 1, outside="refuse")),
        (("a", "a"), oracle("k-rr", 9, 1, outside="refuse")),
        (("a",), oracle("k-rr", ["x", "y", "z"], 1, outside="refuse")),
    ):
        with pytest.raises(InvalidParameterError, match="does not suit"):
            Attributes(known, 1, {names: asked})


def test_values_outside_have_a_bucket() -> None:
    asked = attributes({"a": ["x", "y"], "b": 3}, 1)
    assert len(asked.encode({"a": ["x", None, 7], "b": [9, "?", 1]})) == 3


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["k-rr", "subset", "oue"])
def test_errors_of_sums_of_cells_know_that_cells_compete_for_reports(name: str) -> None:
    columns, bits = people(1500), seeded(11)
    asked = attributes({"sex": 2, "age": 6, "town": 4}, 2, how="joint", outside="refuse")
    asked = Attributes(asked.domains, 2, {("sex", "age", "town"): oracle(name, 48, 2, outside="refuse")})
    true = np.bincount(columns["sex"])
    estimates = [asked.table(asked.encode(columns, bits), "sex") for _ in range(150)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert (z**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / z.size) + 0.05)
