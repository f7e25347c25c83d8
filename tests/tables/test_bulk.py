"""Answers in files: the same release as in memory, written in blocks, with noise that is bound to what it covers."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import defocus as dp
from defocus.engines.duckdb import DuckDbEngine
from defocus.errors import DefocusError, EngineError, InvalidParameterError, QuestionFailedError, SourceError
from defocus.noise.testing import seeded
from defocus.tables import bulk

PAGES = 40
SURE: dict[str, Any] = {"epsilon": 2e4}
"""So much that noise is below a thousandth, and numbers are the exact ones."""


def views(seed: int = 1, number: int = 3000) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "reader": rng.integers(0, 400, number),
            "page": rng.integers(0, PAGES + 5, number),
            "wiki": rng.choice(["de", "en", "it's"], number),
            "seconds": rng.random(number) * 10,
        }
    )


def opened(home: Path, rows: pa.Table | None = None, unit: Any = None, **more: Any) -> Any:
    return dp.open(
        views() if rows is None else rows,
        unit=unit or dp.user("reader"),
        budget=dp.Budget(1e6, 1e-2),
        ledger=home / "views.ledger",
        name="views",
        **more,
    )


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A public table of keys, one of them three times, and one missing."""
    pq.write_table(pa.table({"page": [*range(PAGES), 3, 3, None]}), tmp_path / "pages.parquet")
    return tmp_path / "pages.parquet"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    keys = [(page, wiki) for page in range(PAGES) for wiki in ("de", "en", "it's")]
    pq.write_table(pa.table({"page": [a for a, _ in keys], "wiki": [b for _, b in keys]}), tmp_path / "both.parquet")
    return tmp_path / "both.parquet"


QUESTIONS: dict[str, Callable[[Any, Path, Path], Any]] = {
    "everything": lambda table, pages, _: (
        table.bound(rows=5)
        .group_by("page", keys=pages)
        .agg(n=dp.count(), m=dp.mean("seconds", 0, 10), u=dp.count_units(), d=dp.count_distinct("wiki", at_most=200))
    ),
    "found bound": lambda table, pages, _: table.group_by("page", keys=pages).agg(n=dp.count()),
    "two keys": lambda table, _, both: (
        table.bound(rows=5, per_group=2)
        .group_by("page", "wiki", keys=both)
        .agg(n=dp.count(), s=dp.sum("seconds", 0, 10))
    ),
    "keys in memory": lambda table, _, __: table.bound(rows=5).group_by("page", keys=range(PAGES)).agg(n=dp.count()),
    "people only": lambda table, pages, _: table.bound(rows=3).group_by("page", keys=pages).agg(u=dp.count_units()),
    "covering": lambda table, pages, _: (
        table.bound(rows=5).group_by("page", keys=pages).agg(n=dp.count()).covering(beyond=0.1)
    ),
}


def same(question: Any, home: Path, **price: Any) -> None:
    """The files hold what the answer in memory holds."""
    answer, written = question.release(**price), question.release_to(home, **price)
    keys = list(answer.keys)
    there = written.dataset().to_table().sort_by([(key, "ascending") for key in keys])
    here = answer.to_arrow()
    assert written.groups == there.num_rows == here.num_rows
    for name in there.column_names:
        if name in keys:
            assert there[name].to_pylist() == here[name].to_pylist()
        else:
            np.testing.assert_allclose(there[name].to_numpy(), here[name].to_numpy(), atol=0.05, err_msg=name)


@pytest.mark.parametrize("name", QUESTIONS)
def test_files_hold_what_the_answer_in_memory_does(name: str, tmp_path: Path, pages: Path, both: Path) -> None:
    with opened(tmp_path) as table:
        same(QUESTIONS[name](table, pages, both), tmp_path / "out", **SURE)


def test_rows_are_their_own_units_without_a_join_before_the_sums(tmp_path: Path, pages: Path) -> None:
    with opened(tmp_path, unit=dp.rows()) as table:
        same(table.group_by("page", keys=pages).agg(n=dp.count()), tmp_path / "out", **SURE)


def test_keys_are_found_and_none_that_nobody_has(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        question = table.bound(rows=5).group_by("page", keys=None).agg(n=dp.count())
        written = question.release_to(tmp_path / "out", epsilon=100, delta=1e-6)
    assert written.dataset().to_table()["page"].to_pylist() == list(range(PAGES + 5))
    assert not list(tmp_path.glob("*.incomplete"))


@pytest.mark.parametrize("rows", [1, "find"])
def test_too_few_people_leave_no_key_and_no_row(rows: Any, tmp_path: Path) -> None:
    with opened(tmp_path, views(number=30)) as table:
        question = table.bound(rows=rows).group_by("page", keys=None).agg(n=dp.count())
        written = question.release_to(tmp_path / "out", epsilon=0.1, delta=1e-9)
    assert written.groups == 0
    assert written.dataset().schema.names == ["page", "n"]


@pytest.mark.parametrize("kind", ["parquet", "dataset", "name", "csv", "frame"])
def test_public_keys_may_be_any_table_that_the_engine_reads(kind: str, tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415
    import pyarrow.dataset as pads  # noqa: PLC0415

    keys = pa.table({"wiki": ["de", "en", "xx"]})
    pq.write_table(keys, tmp_path / "wikis.parquet")
    (tmp_path / "wikis.csv").write_text("wiki\nde\nen\nxx\n")
    given = {
        "parquet": str(tmp_path / "wikis.parquet"),
        "dataset": pads.dataset(tmp_path / "wikis.parquet"),
        "name": "wikis",
        "csv": tmp_path / "wikis.csv",
        "frame": pl.DataFrame({"wiki": ["de", "en", "xx"]}),
    }[kind]
    with opened(tmp_path, public={"wikis": tmp_path / "wikis.parquet"}) as table:
        same(table.bound(rows=2).group_by("wiki", keys=given).agg(n=dp.count()), tmp_path / "out", **SURE)


def test_noise_has_the_announced_scale_and_no_other(tmp_path: Path) -> None:
    """On groups without a row the files hold bare noise."""
    keys = tmp_path / "keys.parquet"
    pq.write_table(pa.table({"page": range(10**6, 10**6 + 100_000)}), keys)
    with opened(tmp_path) as table:
        question = table.bound(rows=1).group_by("page", keys=keys).agg(n=dp.count(), u=dp.count_units())
        written = question.release_to(tmp_path / "out", epsilon=1, bits=seeded(5))
    found = written.dataset().to_table()
    for column in written.columns:
        noise = found[column.name].to_numpy()
        scale = column.error / np.sqrt(2)
        assert stats.kstest(noise[:60_000], stats.laplace(scale=scale).cdf).pvalue > 1e-6
        assert stats.kstest(noise[:60_000], stats.laplace(scale=1.1 * scale).cdf).pvalue < 1e-6
        assert noise.std() == pytest.approx(column.error, rel=0.03)
        assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(found["n"].to_numpy(), found["u"].to_numpy())[0, 1]) < 0.01


def blocks(secret: bytes = bytes(32)) -> Any:
    """What noises blocks of one count."""
    from defocus.privacy.sensitivity import Sensitivity  # noqa: PLC0415
    from defocus.tables.noise import laplace  # noqa: PLC0415

    column = bulk._Column("n", dp.count(), 0)
    noise = laplace(Sensitivity(1 << 24), Fraction(1))
    return bulk._Noisy(
        secret, pa.schema([("page", pa.int64())]), ((dp.count().split, noise),), (), (column,), 1 << 24, None
    )


def batch(keys: list[int], counts: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"k0": keys, "c0": [count << 24 for count in counts]})


def noise_of(found: Any, counts: Any) -> list[float]:
    (made,) = list(found)
    return list(made.column(1).to_numpy() - counts)


def test_a_block_that_is_computed_again_has_the_same_noise_and_any_other_has_its_own() -> None:
    keys, counts = list(range(100)), [7] * 100
    first = noise_of(blocks()([batch(keys, counts)]), counts)
    assert noise_of(blocks()([batch(keys, counts)]), counts) == first
    changed = {
        "one count more": batch(keys, [8, *counts[1:]]),
        "another key": batch([100, *keys[1:]], counts),
        "another order": batch(keys[::-1], counts),
        "another cut": batch(keys[:99], counts[:99]),
    }
    for name, other in changed.items():
        exact = other.column(1).to_numpy() / (1 << 24)
        noise = noise_of(blocks()([other]), exact)
        assert sum(a == b for a, b in zip(first, noise, strict=False)) < 10, name
    assert noise_of(blocks(b"\1" * 32)([batch(keys, counts)]), counts) != first


def test_blocks_travel_to_other_processes() -> None:
    import pickle  # noqa: PLC0415

    there = pickle.loads(pickle.dumps(blocks()))  # noqa: S301  # our own
    assert there.schema == blocks().schema
    assert len(pickle.dumps(blocks())) < 1 << 16  # what is longer Spark writes to files


def test_the_order_of_rows_and_files_follows_from_the_keys_alone(tmp_path: Path, pages: Path) -> None:
    def layout(name: str, rows: pa.Table) -> Any:
        home = tmp_path / name
        home.mkdir()
        with opened(home, rows) as table:
            written = (
                table.bound(rows=2).group_by("page", keys=pages).agg(n=dp.count()).release_to(home / "o", epsilon=1)
            )
        files = sorted(file.name for file in written.folder.iterdir())
        return files, [pq.read_table(file)["page"].to_pylist() for file in written.folder.glob("*.parquet")]

    reversed_rows = views().take(list(range(3000))[::-1])
    nobody = views().slice(0, 0)
    assert layout("a", views()) == layout("b", reversed_rows) == layout("c", nobody)
    assert layout("d", views())[1] == [list(range(PAGES))]


def test_one_charge_is_made_before_and_a_request_is_recalled_from_its_place(tmp_path: Path, pages: Path) -> None:
    with opened(tmp_path) as table:
        question = table.bound(rows=2).group_by("page", keys=pages).agg(n=dp.count(), m=dp.mean("seconds", 0, 10))
        written = question.release_to(tmp_path / "out", epsilon=1, request="views of today")
        entries = len(table.ledger.history())
        again = question.release_to(tmp_path / "out", epsilon=1, request="views of today")
        assert len(table.ledger.history()) == entries
        assert (again.folder, again.groups, again.columns, again.rules) == (
            written.folder, written.groups, written.columns, written.rules
        )  # fmt: skip
        assert again.head(3) == written.head(3)
        with pytest.raises(InvalidParameterError, match="another question"):
            question.release_to(tmp_path / "elsewhere", epsilon=1, request="views of today")
    about = json.loads((written.folder / "_about.json").read_text())
    assert (about["groups"], about["columns"][0]["name"]) == (PAGES, "n")
    assert all("40 groups in" in text for text in (str(written), written.explain(), repr(written)))
    assert written.to_dict()["groups"] == PAGES
    written.folder.rename(tmp_path / "moved")
    with pytest.raises(SourceError, match="is gone"):
        again.head()


def test_a_failure_keeps_the_charge_and_leaves_a_folder_that_says_so(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bulk._Noisy._noised

    def broken(self: Any, block: pa.RecordBatch) -> pa.RecordBatch:
        made(self, block)
        raise ValueError("reader 17")

    monkeypatch.setattr(bulk._Noisy, "_noised", broken)
    with opened(tmp_path) as table:
        question = table.bound(rows=2).group_by("page", keys=pages).agg(n=dp.count())
        entries = len(table.ledger.history())
        with pytest.raises(QuestionFailedError) as refused:
            question.release_to(tmp_path / "out", epsilon=1)
        assert "17" not in str(refused.value)
        assert refused.value.__context__ is None
        assert len(table.ledger.history()) == entries + 1
        assert (tmp_path / "out.incomplete").is_dir()
        assert not (tmp_path / "out").exists()
        monkeypatch.undo()
        with pytest.raises(InvalidParameterError, match="already"):
            question.release_to(tmp_path / "out", epsilon=1)
        assert len(table.ledger.history()) == entries + 1


REFUSED: dict[str, tuple[Callable[[Any, Path], Any], type[DefocusError], str]] = {
    "found bounds": (
        lambda t, k: t.group_by("page", keys=k).agg(s=dp.sum("seconds", bounds="find")).release_to("out", epsilon=1),
        DefocusError, "Bounds of values are not found",
    ),
    "found numbers of groups": (
        lambda t, k: t.group_by("page", keys=k).agg(u=dp.count_units()).release_to("out", epsilon=1),
        DefocusError, "In how many groups",
    ),
    "found numbers of values": (
        lambda t, k: t.bound(rows=3).group_by("page", keys=k).agg(d=dp.count_distinct("wiki"))
        .release_to("out", epsilon=1),
        DefocusError, "How many values",
    ),
    "keys of single columns": (
        lambda t, _: t.bound(rows=3).group_by("page", "wiki", keys={"page": [1], "wiki": None}).agg(n=dp.count())
        .release_to("out", epsilon=1, delta=1e-6),
        InvalidParameterError, "for all columns or for none",
    ),
    "no groups": (lambda t, _: t.agg(n=dp.count()).release_to("out", epsilon=1), InvalidParameterError, "no groups"),
    "a quantile": (
        lambda t, k: t.group_by("page", keys=k).agg(q=dp.median("seconds", 0, 10)).release_to("out", epsilon=1),
        DefocusError, "many cells",
    ),
    "the most frequent": (
        lambda t, k: t.top("page", 3, keys=k).release_to("out", epsilon=1), InvalidParameterError, "together",
    ),
    "sampling": (
        lambda t, k: t.bound(rows=2, by="sampling").group_by("page", keys=k).agg(n=dp.count())
        .release_to("o", epsilon=1),
        InvalidParameterError, "sampled",
    ),
    "a missing key": (
        lambda t, _: t.group_by("page", keys=[1, None]).agg(n=dp.count()).release_to("out", epsilon=1),
        InvalidParameterError, "missing",
    ),
    "no folder": (
        lambda t, k: t.group_by("page", keys=k).agg(n=dp.count()).release_to(7, epsilon=1),
        InvalidParameterError, "no folder",
    ),
    "far away": (
        lambda t, k: t.group_by("page", keys=k).agg(n=dp.count()).release_to("s3a://x/y", epsilon=1),
        InvalidParameterError, "file system",
    ),
    "nowhere": (
        lambda t, k: t.group_by("page", keys=k).agg(n=dp.count()).release_to("/nowhere/at/all", epsilon=1),
        InvalidParameterError, "cannot be written",
    ),
    "keys of another kind": (
        lambda t, k: t.group_by("wiki", keys=k.with_name("numbers.parquet")), DefocusError, "kind",
    ),
    "keys without the column": (lambda t, k: t.group_by("wiki", keys=k), DefocusError, "no column"),
    "keys that are not there": (lambda t, _: t.group_by("page", keys="no/such.parquet"), DefocusError, "no"),
    "one text for a list": (lambda t, _: t.group_by("wiki", keys="de"), InvalidParameterError, "not understood"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_before_the_charge(
    name: str, tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"wiki": [1, 2]}), tmp_path / "numbers.parquet")
    ask, kind, words = REFUSED[name]
    with opened(tmp_path) as table:
        entries = len(table.ledger.history())
        with pytest.raises(kind, match=words):
            ask(table, pages)
        assert len(table.ledger.history()) == entries
    assert not list(tmp_path.glob("*.incomplete"))


def test_an_engine_that_gives_results_as_a_whole_refuses(tmp_path: Path, pages: Path) -> None:
    def refuse(_: Any) -> None:
        raise EngineError("results come as a whole", fix="ask with release(…).")

    with opened(tmp_path) as table, pytest.MonkeyPatch.context() as patch:
        entries = len(table.ledger.history())
        patch.setattr(DuckDbEngine, "check_store", refuse)
        with pytest.raises(EngineError, match="as a whole"):
            table.bound(rows=1).group_by("page", keys=pages).agg(n=dp.count()).release_to(tmp_path / "out", epsilon=1)
        assert len(table.ledger.history()) == entries


@pytest.mark.slow
def test_spark_writes_the_same_on_its_executors(spark: Any, tmp_path: Path, pages: Path, both: Path) -> None:
    pq.write_table(views(), tmp_path / "views.parquet")
    with dp.open(
        tmp_path / "views.parquet", engine=spark, unit=dp.user("reader"), budget=dp.Budget(1e6, 1e-2),
        ledger=tmp_path / "s.ledger", name="views",
    ) as table:  # fmt: skip
        for name in ("everything", "two keys"):
            same(QUESTIONS[name](table, pages, both), tmp_path / name, **SURE)
        frame = spark.read.parquet(str(pages))
        question = table.bound(rows=5).group_by("page", keys=frame).agg(n=dp.count())
        one, two = (question.release_to(tmp_path / x, epsilon=1, bits=seeded(3)).dataset().to_table() for x in "ab")
        assert one == two  # blocks have the same rows in the same order each time
        found = table.bound(rows=5).group_by("page", keys=None).agg(n=dp.count())
        assert found.release_to(tmp_path / "found", epsilon=100, delta=1e-6).groups == PAGES + 5
        assert len(list((tmp_path / "found").glob("*.parquet"))) == 2  # as many as shuffle partitions
