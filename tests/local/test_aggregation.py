import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp
from tests.local.making import small

from defocus.engines import DuckDbEngine
from defocus.engines.syntax import quoted
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    MismatchedOracleError,
    SourceError,
    UnreadableDescriptionError,
)
from defocus.local import Reports, mean, oracle
from defocus.local.aggregation import count_files, counted, counting, from_arrow, to_arrow, write_parquet
from defocus.local.clients import Client
from defocus.local.designs import Design, design, to_json
from defocus.local.servers import Server
from defocus.noise.testing import seeded

ASKED = oracle("k-rr", 70, 1)


def test_a_path_a_folder_a_glob_and_a_list_are_the_files_they_name(tmp_path: Path) -> None:
    for i in range(2):
        write_parquet(ASKED.encode([1] * (i + 1)), tmp_path / f"{i}.parquet")
    cases: list[tuple[Any, int]] = [
        (tmp_path / "1.parquet", 2),
        (str(tmp_path / "1.parquet"), 2),
        (tmp_path, 3),
        (str(tmp_path / "*.parquet"), 3),
        ([tmp_path / "0.parquet", str(tmp_path / "1.parquet")], 3),
    ]
    for given, reports in cases:
        assert count_files(ASKED, given).reports == reports


@pytest.mark.parametrize(
    "given", ["gone.parquet", "gone*.parquet", "gone/", ["gone.parquet"], "", "s3://there/x.parquet"]
)
def test_a_file_that_is_not_there_is_refused_in_words(given: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="To fix"):
        count_files(ASKED, str(tmp_path / given) if given == "gone.parquet" else given)


@pytest.mark.parametrize("given", [None, 5, [5], {"a": 1}])
def test_what_is_no_path_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match="a path, a folder, a glob or a list"):
        count_files(ASKED, given)


def test_files_that_hold_no_reports_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SourceError, match="not a Parquet file"):
        count_files(ASKED, tmp_path / "x.parquet")
    (tmp_path / "y.csv").write_text("cell\n1\n")
    with pytest.raises(SourceError, match="Parquet files only"):
        count_files(ASKED, tmp_path / "y.csv")


@pytest.mark.slow
def test_sets_of_more_members_than_a_byte_counts_are_counted(tmp_path: Path) -> None:
    asked = oracle("subset", 1000, 1)
    reports = asked.encode(np.arange(50), seeded(1))
    write_parquet(reports, tmp_path / "x.parquet")
    server = asked.server()
    server.add_reports(reports)
    counted = count_files(asked, tmp_path / "x.parquet")
    assert counted.rejected == {}
    assert np.array_equal(counted.tally, server.state().tally)


def test_an_engine_that_counts_more_than_there_is_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(ASKED.encode([1, 2, 3]), tmp_path / "x.parquet")
    honest = DuckDbEngine.run

    def lying(self: DuckDbEngine, select: exp.Expression, **how: Any) -> Any:
        found = honest(self, select, **how)
        return found.set_column(1, "n", [[99] * len(found)])

    monkeypatch.setattr(DuckDbEngine, "run", lying)
    with pytest.raises(UnreadableDescriptionError, match="more than the files hold"):
        count_files(ASKED, tmp_path / "x.parquet")


def test_the_engine_is_closed_also_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(ASKED.encode([1]), tmp_path / "x.parquet")
    closed, close = list[str](), DuckDbEngine.close

    def noted(self: DuckDbEngine) -> None:
        closed.append("closed")
        close(self)

    monkeypatch.setattr(DuckDbEngine, "close", noted)
    count_files(ASKED, tmp_path / "x.parquet")

    def fails(*_: Any, **__: Any) -> Any:
        (tmp_path / "x.parquet").unlink()
        raise SourceError("It is gone.", fix="write it again.")

    monkeypatch.setattr(DuckDbEngine, "run", fails)
    with pytest.raises(DefocusError):
        count_files(ASKED, tmp_path / "x.parquet")
    assert closed == ["closed", "closed"]


def test_engines_are_named_as_for_tables(tmp_path: Path) -> None:
    write_parquet(ASKED.encode([1]), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="engine="):
        count_files(ASKED, tmp_path / "x.parquet", engine="mainframe")
    assert count_files(ASKED, tmp_path / "x.parquet", memory="100MB", threads=1).reports == 1


@pytest.mark.parametrize("name", ["k-rr", "subset", "rappor", "d-bit", "cms"])
def test_the_query_is_one_of_trees_whose_names_are_quoted(name: str) -> None:
    query = counting(small(name, 40, 1).layout, exp.Table(this=quoted("reports")))
    for each in query.find_all(exp.Identifier):
        assert each.args["quoted"], each
    assert counting(design("k-rr", 5, 1).layout, query).find(exp.Subquery) is not None


FIVE = design("k-rr", 5, 1)


REPORTS = Client(FIVE).encode([1, 2, 3] * 20, seeded(1))


def test_everything_that_holds_reports_is_counted_alike() -> None:
    server = Server(FIVE)
    server.add_reports(REPORTS)
    batch = REPORTS.to_bytes()
    given: list[Any] = [REPORTS, server, server.state(), batch, bytearray(batch), memoryview(batch), list(REPORTS)]
    for each in [*given, iter(REPORTS), [batch]]:
        assert np.array_equal(counted(FIVE, each).tally, server.state().tally)
    assert counted(FIVE, Client(FIVE).report_json(3)).reports == 1


def test_messages_that_are_none_are_rejected_and_counted() -> None:
    found = counted(FIVE, [b"junk", "{}", *REPORTS])
    assert (found.reports, dict(found.rejected)) == (60, {"truncated": 1, "malformed": 1})
    with pytest.raises(MismatchedOracleError):
        counted(design("k-rr", 5, 2), REPORTS)


@pytest.mark.parametrize("given", [[3], range(4), np.arange(3), (None,), 3.5, None, [b"junk", 1.5], [["a"]]])
def test_what_is_no_message_is_refused_without_quoting_it(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"value of type \w+\.\nTo fix: randomise values first"):
        counted(FIVE, given)


DESIGNS: dict[str, Design] = {name: small(name, 70, 1) for name in ("k-rr", "oue", "subset", "cms", "rappor", "d-bit")}


DESIGNS |= {name: mean(name, 0, 69, 1).design for name in ("hybrid", "laplace")}


@pytest.mark.parametrize("name", DESIGNS)
def test_reports_survive_arrow_and_are_counted_alike_in_the_engine(name: str, tmp_path: Path) -> None:
    made = DESIGNS[name]
    bits = seeded(1)
    parts = [Client(made).encode(np.arange(400) % 70, bits) for _ in range(2)]
    server = Server(made)
    for i, each in enumerate(parts):
        again = from_arrow(to_arrow(each))
        assert np.array_equal(again.payload, each.payload)
        server.add_reports(each)
        write_parquet(each, tmp_path / f"{i}.parquet")
    counted = count_files(made, [tmp_path / "0.parquet", tmp_path / "1.parquet"])
    assert np.array_equal(counted.tally, server.state().tally)
    assert counted.rejected == {}


@pytest.mark.parametrize("name", ["k-rr", "oue", "subset", "cms", "laplace"])
def test_reports_that_no_client_makes_are_left_out_and_counted(name: str, tmp_path: Path) -> None:
    made = DESIGNS[name]
    payload = Client(made).encode(np.arange(100) % 70, seeded(2)).payload.copy()
    payload[7] = 255 if payload.dtype != np.dtype("<i8") else 2**62
    write_parquet(Reports(made, payload), tmp_path / "x.parquet")
    counted = count_files(made, [tmp_path / "x.parquet"])
    server = Server(made)
    server.add_reports(Reports(made, payload))
    assert counted.rejected == server.rejected == {"invalid": 1}
    assert np.array_equal(counted.tally, server.state().tally)


def test_files_of_another_oracle_and_tables_without_a_description_are_refused(tmp_path: Path) -> None:
    write_parquet(Client(DESIGNS["k-rr"]).encode([1]), tmp_path / "x.parquet")
    with pytest.raises(MismatchedOracleError):
        count_files(DESIGNS["oue"], [tmp_path / "x.parquet"])
    with pytest.raises(UnreadableDescriptionError, match="no description of an oracle in the metadata"):
        from_arrow(pa.table({"cell": [1]}))
    good = to_arrow(Client(DESIGNS["k-rr"]).encode([1]))
    table = good.rename_columns(["bell"]).replace_schema_metadata(good.schema.metadata)
    with pytest.raises(UnreadableDescriptionError, match="the columns are not those"):
        from_arrow(table)


@pytest.mark.parametrize("bad", [[-1, 2], [71, 1], [2**40, 1], [None, 1]])
def test_forged_columns_never_raise_in_the_engine_and_are_counted(bad: list[int | None], tmp_path: Path) -> None:
    made = DESIGNS["k-rr"]
    good = to_arrow(Client(made).encode([1, 2]))
    forged = pa.table({"cell": pa.array(bad, pa.int64())}).replace_schema_metadata(good.schema.metadata)
    pq.write_table(forged, tmp_path / "x.parquet")
    counted = count_files(made, [tmp_path / "x.parquet"])
    assert counted.reports == 1
    assert counted.rejected == {"invalid": 1}
    if bad[0] != 71:
        with pytest.raises(UnreadableDescriptionError):
            from_arrow(forged)
    floats = pa.table({"cell": [1.5, 2.0]}).replace_schema_metadata(good.schema.metadata)
    pq.write_table(floats, tmp_path / "y.parquet")
    with pytest.raises(UnreadableDescriptionError, match="the columns are not those"):
        count_files(made, [tmp_path / "y.parquet"])


def test_bits_beyond_the_width_are_seen_in_both_ways(tmp_path: Path) -> None:
    made = DESIGNS["oue"]
    good = to_arrow(Client(made).encode([1, 2], seeded(1)))
    last = pa.array([1 << 7, 0], pa.int64())
    forged = good.set_column(good.num_columns - 1, f"w{good.num_columns - 1}", last)
    pq.write_table(forged, tmp_path / "x.parquet")
    assert count_files(made, [tmp_path / "x.parquet"]).rejected == {"invalid": 1}
    wider = good.set_column(good.num_columns - 1, f"w{good.num_columns - 1}", pa.array([1 << 31, 0], pa.int64()))
    with pytest.raises(UnreadableDescriptionError, match="more bits"):
        from_arrow(wider)


def test_no_files_and_empty_ones_count_nothing(tmp_path: Path) -> None:
    assert count_files(DESIGNS["oue"], []).reports == 0
    write_parquet(Client(DESIGNS["laplace"]).encode([]), tmp_path / "x.parquet")
    assert count_files(DESIGNS["laplace"], [tmp_path / "x.parquet"]).reports == 0


def test_names_of_files_are_names_and_no_patterns(tmp_path: Path) -> None:
    asked, other = DESIGNS["k-rr"], small("k-rr", 70, 8)
    for name in ("mon[1].parquet", "a*.parquet", "q?.parquet", "x{1,2}.parquet"):
        write_parquet(Client(asked).encode([1] * 10), tmp_path / name)
    for name in ("mon1.parquet", "ab.parquet", "qq.parquet"):
        write_parquet(Client(other).encode([2] * 1000), tmp_path / name)
    for name in ("mon[1].parquet", "a*.parquet", "q?.parquet", "x{1,2}.parquet"):
        counted = count_files(asked, [tmp_path / name])
        assert (counted.reports, counted.rejected) == (10, {})


def test_a_description_of_a_huge_oracle_costs_no_memory(tmp_path: Path) -> None:
    """A file of some hundred bytes that describes a report of half a million columns."""
    large = to_json(design("oue", 1 << 22, 1)).encode()
    table = pa.table({"w0": pa.array([1], pa.int64())}).replace_schema_metadata({b"defocus.local": large})
    pq.write_table(table, tmp_path / "x.parquet")
    tracemalloc.start()
    try:
        with pytest.raises(MismatchedOracleError):
            count_files(DESIGNS["oue"], [tmp_path / "x.parquet"])
        with pytest.raises(UnreadableDescriptionError, match="the columns are not those"):
            from_arrow(table)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


ON_SPARK: dict[str, Design] = {name: small(name, 70, 1) for name in ("k-rr", "subset", "rappor")}


ON_SPARK["laplace"] = mean("laplace", 0, 69, 1).design


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_counts_what_a_server_counts(name: str, tmp_path: Path, spark: Any) -> None:
    made = ON_SPARK[name]
    reports = Client(made).encode(np.arange(400) % 70, seeded(1))
    path = tmp_path / "x.parquet"
    write_parquet(reports, path)
    counted = count_files(made, path, engine=spark)
    server = Server(made)
    server.add_reports(reports)
    assert np.array_equal(counted.tally, server.state().tally)
