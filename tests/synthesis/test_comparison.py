from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from defocus.errors import InvalidParameterError, UnknownColumnError
from defocus.synthesis import compare


def rows(n: int, seed: int, noise: float = 0.2) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 15, n)
    ward = np.where(age > 60, "C", rng.choice(["A", "B"], n))
    other = rng.integers(0, 40, (n, 6))
    more = {f"x{i}": other[:, i] for i in range(6)}
    sick = (age > 55) ^ (rng.random(n) < noise)
    return pa.table({"age": pa.array(age, mask=rng.random(n) < 0.05), "ward": ward, "sick": sick, **more})


def independent(table: pa.Table, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({name: table[name].take(rng.permutation(table.num_rows)) for name in table.column_names})


def test_a_distance_is_zero_for_the_same_rows_and_grows_where_columns_are_shuffled() -> None:
    real = rows(1500, 1)
    same, other = compare(real, real), compare(real, independent(real))
    assert same.facts["total variation of pairs"] == 0
    assert same.k_marginal == 1000
    assert same.covered == 1
    assert max(other.divergence) < 1e-9  # columns alone are the same
    assert other.pairs[0, 1] > 0.3
    assert other.k_marginal < 900
    assert other.covered < 1
    assert other.correlation > 0.01


def test_copies_of_members_are_told_and_rows_of_other_people_are_not() -> None:
    real, others = rows(600, 1), rows(600, 2)
    found = compare(real, rows(600, 3), holdout=others).membership
    assert found["these rows"] == pytest.approx(0.5, abs=0.06)
    assert found["copies of members"] > 0.75


@pytest.mark.slow
def test_a_model_of_shuffled_rows_predicts_nothing() -> None:
    real, others = rows(800, 1), rows(800, 2)
    good = compare(real, rows(800, 3), holdout=others, target="sick").prediction
    bad = compare(real, independent(real), holdout=others, target="sick").prediction
    assert good["synthetic"] > good["private"] - 0.07
    assert bad["synthetic"] < 0.65


@pytest.mark.slow
def test_the_page_says_that_it_is_for_the_owner_only(tmp_path: Path) -> None:
    found = compare(rows(100, 1), rows(100, 2))
    page = found.report(tmp_path / "c.html", title="<i>").read_text("utf-8")
    assert "owner of the private rows only" in page
    assert "&lt;i&gt;" in page
    assert "<svg" in page or "data:image" in page
    assert "not made private" in str(found)


@pytest.mark.parametrize(
    ("other", "error"),
    [(pa.table({"y": [1]}), UnknownColumnError), (pa.table({"a": pa.array([], pa.int64())}), InvalidParameterError)],
)
def test_what_cannot_be_compared_is_refused(other: Any, error: Any) -> None:
    with pytest.raises(error, match="To fix"):
        compare(pa.table({"a": [1, 2]}), other)


@pytest.mark.parametrize("values", [[1.0, 2.0, None], ["1", "2", None]])
def test_values_of_other_types_are_the_same_values(values: list[Any]) -> None:
    found = compare(pa.table({"a": [1, 2, None]}), pa.table({"a": values}))
    assert found.pairs.tolist() == [[0.0]]
