from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.local.making import small

from defocus.errors import MismatchedOracleError, UnreadableDescriptionError
from defocus.local import Reports, mean
from defocus.local.clients import Client
from defocus.local.designs import NAMES, NUMERIC_NAMES, Design
from defocus.local.files import count_files, from_arrow, to_arrow, write_parquet
from defocus.local.servers import Server
from defocus.noise.testing import seeded

DESIGNS: dict[str, Design] = {name: small(name, 70, 1) for name in NAMES}
DESIGNS |= {name: mean(name, 0, 69, 1).design for name in NUMERIC_NAMES}


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
    with pytest.raises(UnreadableDescriptionError, match="none in the metadata"):
        from_arrow(pa.table({"cell": [1]}))
    good = to_arrow(Client(DESIGNS["k-rr"]).encode([1]))
    table = good.rename_columns(["bell"]).replace_schema_metadata(good.schema.metadata)
    with pytest.raises(UnreadableDescriptionError, match="columns"):
        from_arrow(table)


def test_another_engine_runs_the_same_statement(tmp_path: Path) -> None:
    write_parquet(Client(DESIGNS["k-rr"]).encode([1, 2, 3], seeded(1)), tmp_path / "x.parquet")
    seen: list[str] = []

    def run(sql: str) -> list[tuple[int, int]]:
        seen.append(sql)
        return [(4, 3)]

    assert count_files(DESIGNS["k-rr"], [tmp_path / "x.parquet"], run=run).tally[4] == 3
    assert seen == ["SELECT cell, COUNT(*) FROM reports WHERE cell < 70 GROUP BY cell"]
