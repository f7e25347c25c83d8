import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.local.making import small

from defocus.errors import MismatchedOracleError, UnreadableDescriptionError
from defocus.local import Reports, mean
from defocus.local.aggregation import count_files, from_arrow, to_arrow, write_parquet
from defocus.local.clients import Client
from defocus.local.designs import Design, design, to_json
from defocus.local.servers import Server
from defocus.noise.testing import seeded

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
