import base64
import json
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.cli import main
from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
    NotDeclaredError,
    QualityNotReachedError,
    SourceError,
    UnknownColumnError,
    WrongKindError,
)
from defocus.noise.testing import seeded
from defocus.synthesis import Generator, Synthesiser, synthesise

FACTS: dict[str, Any] = {"age": (0, 99), "ward": ["A", "B", "C"]}


def people(n: int = 4000) -> pa.Table:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, n)
    ward = np.where(age >= 60, "C", rng.choice(["A", "B"], n))
    return pa.table({"age": pa.array(age, mask=rng.random(n) < 0.1), "ward": ward, "smoker": rng.random(n) < 0.3})


def opened(where: Path, data: pa.Table, **more: Any) -> Any:
    given: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(20, 1e-3), "name": "v", **more}
    return dp.open(data, ledger=where / "a.ledger", **given)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    with opened(tmp_path, people()) as made:
        yield made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    where = tmp_path_factory.mktemp("made")
    with opened(where, people()) as table:
        return synthesise(table, epsilon=4, delta=1e-6, columns=FACTS, bits=seeded(1))


@pytest.mark.slow
def test_synthesis_loads_no_room_that_it_does_not_need() -> None:
    """Each package is tens of megabytes, of which a person with a small machine has few."""
    heavy = ("defocus.graphs", "defocus.learning", "scipy.optimize", "scipy.stats", "numba", "torch", "sklearn")
    code = f"import sys, defocus as dp; dp.synthesise; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert found.stdout.strip() == "[]"


def test_synthetic_rows_have_the_columns_types_and_missing_values_of_the_table(made: Generator) -> None:
    rows = made.sample(bits=seeded(2))
    assert rows.schema == pa.schema([("age", pa.int64()), ("ward", pa.string()), ("smoker", pa.bool_())])
    assert 0.05 < rows["age"].null_count / rows.num_rows < 0.15
    assert rows["smoker"].null_count == 0
    ages = np.array(rows["age"].drop_null())
    assert np.quantile(ages, 0.02) > 15
    assert np.quantile(ages, 0.98) < 93


def test_a_dependence_between_a_number_and_a_text_is_kept(made: Generator) -> None:
    rows = made.sample(bits=seeded(2)).drop_null().to_pandas()
    assert (rows[rows.ward == "C"].age >= 58).mean() > 0.95
    assert (rows[rows.ward != "C"].age <= 62).mean() > 0.95


def test_the_charge_is_one_entry_and_made_before_the_first_count(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a private value: 17")

    monkeypatch.setattr("defocus.synthesis.counting.Counter.counts", fails)
    with pytest.raises(dp.errors.QuestionFailedError) as caught:
        synthesise(table, epsilon=1, delta=1e-6, columns=FACTS)
    assert "17" not in str(caught.value)
    charges = [entry for entry in table.ledger.entries() if entry.kind == "charge"]
    assert len(charges) == 1


def test_a_price_above_the_budget_is_refused_and_nothing_is_charged(table: Any) -> None:
    with pytest.raises(BudgetExceededError):
        synthesise(table, epsilon=200, delta=1e-6, columns=FACTS)
    assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_a_request_is_recalled_free_of_charge(table: Any) -> None:
    first = synthesise(table, epsilon=1, delta=1e-6, columns=FACTS, request="may")
    left = table.remaining().epsilon
    again = synthesise(table, epsilon=1, delta=1e-6, columns=FACTS, request="may")
    assert table.remaining().epsilon == left
    assert json.dumps(first.to_json()) == json.dumps(again.to_json())
    with pytest.raises(InvalidParameterError, match="another question"):
        synthesise(table, epsilon=1, delta=1e-6, columns={**FACTS, "age": (0, 120)}, request="may")


def test_constraints_hold_in_every_row(table: Any) -> None:
    rule = "ward <> 'C' OR age >= 60"
    odd = "age % 2 = 0 OR smoker OR ward = 'A'"  # three columns, which the model does not know about
    generator = synthesise(table, epsilon=2, delta=1e-6, columns=FACTS, constraints=[rule, odd])
    rows = generator.sample(6000).to_pandas()
    assert len(rows) == 6000
    assert not ((rows.ward == "C") & (rows.age < 60)).any()
    assert not ((rows.age % 2 == 1) & ~rows.smoker.astype(bool) & (rows.ward != "A")).any()
    assert rows.age.isna().any()  # where a constraint is NULL it holds


def test_a_computed_column_follows_from_others(tmp_path: Path) -> None:
    data = people()
    decades = pa.array([None if age is None else age // 10 for age in data["age"].to_pylist()], pa.int64())
    with opened(tmp_path, data.append_column("decade", decades)) as table:
        made = synthesise(table, epsilon=2, delta=1e-6, columns=FACTS, computed={"decade": "age // 10"})
        rows = made.sample().drop_null().to_pandas()
        assert list(rows.columns) == ["age", "ward", "smoker", "decade"]
        assert (rows.decade == rows.age // 10).all()
        with pytest.raises(WrongKindError):
            Synthesiser(table, FACTS, computed={"decade": "ward"})


def test_rows_are_drawn_given_a_condition(made: Generator) -> None:
    rows = made.sample(500, where="smoker AND age > 70")
    assert rows.num_rows == 500
    assert all(rows["smoker"].to_pylist())
    assert min(rows["age"].to_pylist()) > 70
    with pytest.raises(InvalidParameterError, match="No synthetic record"):
        made.sample(5, where="age > 98 AND age < 97")
    assert made.sample(0).num_rows == 0
    assert made.sample(9000).num_rows == 9000


def test_a_generator_is_kept_in_a_file_that_holds_no_code(made: Generator, tmp_path: Path) -> None:
    made.save(tmp_path / "g.json")
    again = Generator.load(tmp_path / "g.json")
    assert again.sample(50, bits=seeded(3)).equals(made.sample(50, bits=seeded(3)))
    assert again.quality.equals(made.quality)
    for wrong in ('{"format": "other"}', "[]", "", '{"format": "defocus synthetic data 1"}'):
        (tmp_path / "x.json").write_text(wrong, "utf-8")
        with pytest.raises(SourceError, match="saved generator"):
            Generator.load(tmp_path / "x.json")


@pytest.mark.parametrize("shape", [[3, 2], [2**40, 2], [-1, -6]])
def test_no_file_is_inflated_beyond_the_size_that_it_declares(
    made: Generator, tmp_path: Path, shape: list[int]
) -> None:
    bomb = base64.b64encode(zlib.compress(bytes(2**24), 9)).decode()
    written = {**made.to_json(), "records": {"shape": shape, "data": bomb}}
    (tmp_path / "x.json").write_text(json.dumps(written), "utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="saved generator"):
            Generator.load(tmp_path / "x.json")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_the_report_tells_quality_and_cost(made: Generator, tmp_path: Path) -> None:
    page = made.report(tmp_path / "q.html", title="<b>").read_text("utf-8")
    assert "Jensen" in page
    assert "&lt;b&gt;" in page
    assert "asked for were epsilon 4" in page
    assert "pairs of columns were measured" in made.explain()


def test_a_result_below_the_stated_quality_is_not_shown_but_handed_over(table: Any) -> None:
    with pytest.raises(QualityNotReachedError) as caught:
        synthesise(table, epsilon=0.5, delta=1e-6, columns=FACTS, accept=1e-6)
    assert caught.value.generator.sample(3).num_rows == 3
    assert synthesise(table, epsilon=2, delta=1e-6, columns=FACTS, accept=0.2).distance < 0.2


def test_the_preview_is_free_and_says_what_can_be_resolved(table: Any) -> None:
    wanted = Synthesiser(table, FACTS)
    small, large = (wanted.preview(epsilon=eps, delta=1e-6, rows=4000) for eps in (0.1, 2))
    assert [column.name for column in small.columns] == ["age", "ward", "smoker", "pairs"]
    assert small.columns[0].error is not None
    assert large.columns[0].error is not None
    assert small.columns[0].error > 5 * large.columns[0].error
    assert "with 4000 rows" in str(large)
    assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_the_preview_tells_the_noise_that_is_drawn(table: Any) -> None:
    wanted = Synthesiser(table, FACTS)
    expected = wanted.preview(epsilon=1, delta=1e-6).columns[1].error
    made = wanted.fit(epsilon=1, delta=1e-6)
    assert made.fitted.margins[1].sigma == pytest.approx(
        expected * (4 / 3) ** 0.5, rel=0.02
    )  # three bins hold four codes


def test_no_more_values_are_kept_than_the_charged_event_counts_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("defocus.synthesis.views.CELLS", 11)  # two columns of text, each with "other" and missing
    data = pa.table({"id": range(4000), **{name: [f"{name}{i % 20:02}" for i in range(4000)] for name in "ab"}})
    with opened(tmp_path, data, unit=dp.user("id")) as table:
        made = synthesise(table, epsilon=4, delta=1e-4, columns={"a": None, "b": None}, only=["a", "b"])
    assert [domain.values for domain in made.domains] == [("a00", "a01", "a02"), ("b00", "b01", "b02")]


def test_frequent_values_are_found_and_rare_ones_are_other(tmp_path: Path) -> None:
    cities = ["Rome"] * 800 + ["Oslo"] * 600 + [f"hamlet {i}" for i in range(50)]
    with opened(tmp_path, pa.table({"city": cities})) as table:
        made = synthesise(table, epsilon=4, delta=1e-4, columns={"city": None})
        assert set(made.sample(400)["city"].to_pylist()) == {"Rome", "Oslo", "other"}
        with pytest.raises(NotDeclaredError, match="city"):
            synthesise(table, epsilon=4, delta=1e-4)


def test_dates_and_moments_stay_in_their_bounds(tmp_path: Path) -> None:
    days = [date(2024, 1, 1 + i % 28) for i in range(500)]
    moments = [datetime(2024, 5, 1, i % 24, 30) for i in range(500)]  # noqa: DTZ001
    facts = {
        "day": (date(2024, 1, 1), date(2024, 12, 31)),
        "moment": (datetime(2024, 5, 1), datetime(2024, 5, 2)),  # noqa: DTZ001
    }
    with opened(tmp_path, pa.table({"day": days, "moment": moments})) as table:
        rows = synthesise(table, epsilon=8, delta=1e-4, columns=facts).sample()
    assert rows.schema.types == [pa.date32(), pa.timestamp("us")]
    found = sorted(rows["day"].drop_null().to_pylist())
    assert found[len(found) // 20] >= date(2024, 1, 1)
    assert found[len(found) * 9 // 10] <= date(2024, 2, 10)
    assert all(datetime(2024, 5, 1) <= one <= datetime(2024, 5, 2) for one in rows["moment"].drop_null().to_pylist())  # noqa: DTZ001


def test_a_person_with_many_rows_weighs_no_more_than_the_bound(tmp_path: Path) -> None:
    crowd = pa.table({"person": [*range(1000), *([5000] * 30_000)], "ward": ["A"] * 1000 + ["B"] * 30_000})
    with opened(tmp_path, crowd, unit=dp.user("person")) as table:
        made = synthesise(table.bound(rows=2), epsilon=4, delta=1e-6, columns={"ward": ["A", "B"]})
        assert made.order == ("ward",)
        wards = made.sample()["ward"].to_pylist()
        assert 900 < len(wards) < 1150
        assert wards.count("B") < 60
        with pytest.raises(InvalidParameterError, match="bound that is known"):
            synthesise(table.bound(rows="find"), epsilon=1, delta=1e-6, columns={"ward": ["A", "B"]})


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.bool_())}),
        pa.table({"a": [3], "b": [True]}),
        pa.table({"a": [3] * 500, "b": [True] * 500}),
        pa.table({"a": pa.array([None] * 500, pa.int64()), "b": pa.array([None] * 500, pa.bool_())}),
        pa.table({"a": [10**9, -(10**9)] * 200, "b": [True, None] * 200}),
    ],
    ids=["no rows", "one row", "one value", "all missing", "out of bounds"],
)
def test_odd_tables_have_synthetic_rows_of_the_same_schema(data: pa.Table, tmp_path: Path) -> None:
    with opened(tmp_path, data) as table:
        made = synthesise(table, epsilon=1, delta=1e-6, columns={"a": (0, 9)})
        assert made.sample().schema == pa.schema([("a", pa.int64()), ("b", pa.bool_())])


def test_a_budget_too_small_for_anything_says_that_columns_are_independent(table: Any) -> None:
    made = synthesise(table, epsilon=0.001, delta=1e-6, columns=FACTS, rows=100)
    assert "columns are independent" in made.explain()
    assert made.sample().num_rows == 100


def test_a_hundred_thousand_declared_values_are_joined_and_merged(tmp_path: Path) -> None:
    data = pa.table({"code": [f"c{i % 3}" for i in range(3000)], "b": [i % 3 == 0 for i in range(3000)]})
    with opened(tmp_path, data) as table:
        facts = {"code": [f"c{i}" for i in range(100_000)]}
        made = synthesise(table, epsilon=8, delta=1e-6, columns=facts, rows=500)
        assert made.sample(100)["code"].type == pa.string()
        shown = made.sample(500).to_pandas()
        assert (shown.code == "c0").mean() > 0.1


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"delta": None}, NotDeclaredError, "delta"),
        ({"columns": {"age": (0, 99)}}, NotDeclaredError, r'if ward holds numbers, declare types=\{"ward": "integer"'),
        ({"columns": {**FACTS, "nobody": (0, 1)}}, UnknownColumnError, "nobody"),
        ({"columns": {**FACTS, "age": None}}, WrongKindError, "age"),
        ({"columns": {**FACTS, "age": (9, 1)}}, InvalidParameterError, "rise"),
        ({"columns": {**FACTS, "age": (0, 9, 20)}}, InvalidParameterError, "step"),
        ({"columns": {**FACTS, "ward": (0, 9)}}, InvalidParameterError, "if ward holds numbers, declare types="),
        ({"only": "age"}, InvalidParameterError, "list"),
        ({"only": []}, InvalidParameterError, "no column"),
        ({"constraints": "age > 3"}, InvalidParameterError, "list"),
        ({"constraints": ["age + 3"]}, WrongKindError, "true or false"),
        ({"constraints": ["height > 3"]}, UnknownColumnError, "height"),
        ({"rows": 0}, InvalidParameterError, "rows"),
        ({"accept": 2}, InvalidParameterError, "accept"),
        ({"epsilon": -1}, InvalidParameterError, "epsilon"),
    ],
)
def test_what_cannot_be_made_is_refused_before_any_charge(table: Any, change: Any, error: Any, word: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "columns": FACTS, **change}
    with pytest.raises(error, match=word) as caught:
        synthesise(table, **given)
    assert "To fix" in str(caught.value)
    assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_something_else_than_a_table_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="made from a table"):
        synthesise(people(), epsilon=1, delta=1e-6)


def test_the_command_writes_rows_a_page_and_a_generator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(people(), tmp_path / "v.parquet")
    (tmp_path / "defocus.toml").write_text(
        'name = "v"\ndata = "v.parquet"\n[unit]\nrows = true\n[budget]\nepsilon = 9\ndelta = 1e-4\n'
        "[columns.age]\nlow = 0\nhigh = 99\n",
        "utf-8",
    )
    price = ["--epsilon", "2", "--delta", "1e-5", "--find", "ward", "--dataset", str(tmp_path / "defocus.toml")]
    assert main(["synthesise", *price, "--preview"]) == 0
    files = ["--save", str(tmp_path / "g.json"), "--report", str(tmp_path / "q.html"), "--n", "70"]
    assert main(["synthesise", "--out", str(tmp_path / "s.csv"), *price, *files]) == 0
    assert "total variation distance" in capsys.readouterr().out
    assert len((tmp_path / "s.csv").read_text("utf-8").splitlines()) == 71
    assert Generator.load(tmp_path / "g.json").sample(2).num_rows == 2
    capsys.readouterr()
    for places, told in ((["--out", str(tmp_path / "s.txt")], "ends in .txt"), ([], "No file was named")):
        assert main(["synthesise", *places, *price]) == 2
        assert told in capsys.readouterr().err
    with dp.Ledger.open(tmp_path / "v.ledger", read_only=True) as book:
        assert [entry.kind for entry in book.entries()].count("charge") == 1


@pytest.mark.parametrize("method", ["bayesian network", "independent"])
def test_other_models_go_through_the_same_interface(table: Any, method: str, tmp_path: Path) -> None:
    made = table.synthesise(epsilon=4, delta=1e-6, columns=FACTS, method=method, rows=2000)
    rows = made.sample(where="smoker").drop_null().to_pandas()
    old = rows[rows.ward == "C"].age >= 58
    assert (old.mean() > 0.9) == (method == "bayesian network")
    assert len(made.fitted.tables) <= 2  # no cycle among three columns
    made.save(tmp_path / "g.json")
    assert Generator.load(tmp_path / "g.json").sample(3).num_rows == 3


def test_what_is_in_focus_is_measured_and_alone_is_checked(table: Any) -> None:
    focus = [("ward", "smoker"), "age"]
    made = synthesise(table, epsilon=2, delta=1e-6, columns=FACTS, focus=focus, rows=2000)
    assert made.quality["columns"].to_pylist() == ["ward, smoker", "age"]
    assert made.quality["measured"].to_pylist() == [True, True]  # although ward and smoker are independent
    everything = synthesise(table, epsilon=2, delta=1e-6, columns=FACTS, rows=2000)
    assert made.fitted.distances.sigma < everything.fitted.distances.sigma
    with pytest.raises(UnknownColumnError):
        synthesise(table, epsilon=1, delta=1e-6, columns=FACTS, focus=["height"])


def test_nothing_is_synthesised_of_people_whose_consent_was_not_looked_at(tmp_path: Path) -> None:
    crowd = pa.table({"person": range(50), "ward": ["A"] * 50})
    willing = pa.table({"person": range(20), "purpose": ["research"] * 20})
    facts = {"ward": ["A", "B"]}
    with opened(tmp_path, crowd, unit=dp.user("person"), consent=willing, columns=facts) as table:
        with pytest.raises(dp.errors.DefocusError, match="purpose"):
            table.synthesise(epsilon=1, delta=1e-6)
        assert table.for_purpose("research").synthesise(epsilon=1, delta=1e-6).sample(3).num_rows == 3


def test_values_are_not_found_where_rows_do_not_say_whose_they_are(tmp_path: Path) -> None:
    """One person's rows would count as so many people."""
    rows = pa.table({"t": ["common"] * 300 + ["unique"] * 60})
    how: dict[str, Any] = {"budget": dp.Budget(3, 1e-6), "ledger": tmp_path / "a", "name": "p"}
    with dp.open(rows, unit=dp.rows(per_person=60), **how) as table:
        with pytest.raises(NotDeclaredError, match="whose they are") as caught:
            Synthesiser(table, columns={"t": None}).fit(epsilon=1, delta=1e-6)
        assert "declare the values" in caught.value.fix
        assert not any(table.ledger.spent())


ODD: list[dict[str, Any]] = [
    {"age": 2**62, "pay": float("inf"), "ward": "Z", "city": "Ur", "day": date(1, 1, 1), "sick": None},
    {"age": -(2**63), "pay": float("nan"), "ward": "", "city": "\x01'\"", "day": date(9999, 12, 31), "sick": True},
    {"age": None, "pay": None, "ward": None, "city": None, "day": None, "sick": None},
    {"age": 5, "pay": -1e308, "ward": "other", "city": "y" * 50_000, "day": date(2020, 1, 1), "sick": False},
]


def test_one_more_person_whoever_it_is_changes_nothing_but_noisy_counts(tmp_path: Path) -> None:
    """Schema, codes, rules, charge and file of a table with one odd row more are those without it."""
    rng, n = np.random.default_rng(0), 600
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.string(), pa.date32(), pa.bool_()]
    schema = pa.schema(list(zip(ODD[0], kinds, strict=True)))
    columns = [rng.integers(18, 90, n), rng.exponential(99, n), rng.choice(["A", "B"], n), ["Rome"] * n]
    rows = [pa.array(own) for own in (*columns, [date(2020, 1, 1)] * n, rng.random(n) < 0.3)]
    plain = pa.Table.from_arrays(rows, schema=schema)
    spans = {"age": (0, 99), "pay": (0, 1000), "day": (date(2019, 1, 1), date(2022, 1, 1))}
    facts = {**spans, "ward": ["A", "B"], "city": None}

    def told(data: pa.Table, where: str) -> Any:
        (tmp_path / where).mkdir()
        with opened(tmp_path / where, data) as table:
            asked: dict[str, Any] = {"columns": facts, "predict": "sick", "constraints": ["age > 9 OR NOT sick"]}
            made = synthesise(table, epsilon=1, delta=1e-6, bits=seeded(4), **asked)
            kinds = [entry.kind for entry in table.ledger.entries()]
        written = made.to_json()
        shown = {name: written[name] for name in ("question", "order", "rules", "constraints", "domains", "together")}
        assert made.receipt is not None
        return made.sample(5).schema, shown, sorted(written), made.receipt.event, kinds

    known = told(plain, "plain")
    for place, odd in enumerate(ODD):
        assert told(pa.concat_tables([plain, pa.Table.from_pylist([odd], schema=schema)]), str(place)) == known
