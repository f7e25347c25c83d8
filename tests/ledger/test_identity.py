"""Which data a data set is: files by their bytes, tables by their address, anything else not at all."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from defocus.ledger.identity import identity


def test_a_file_is_the_same_wherever_it_lies_and_another_after_one_byte(tmp_path: Path) -> None:
    first, moved, other = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    first.write_text("id,days\n1,2\n")
    moved.write_text("id,days\n1,2\n")
    other.write_text("id,days\n1,3\n")
    assert identity(first) == identity(str(moved)) == identity([moved])
    assert identity(first) != identity(other)
    assert identity(first) != identity([first, other])
    assert identity([first, other]) == identity([other, first])
    assert identity(str(tmp_path / "[ac].csv")) == identity([first, other])


def test_a_large_file_is_known_by_its_size_and_samples_of_its_bytes(tmp_path: Path) -> None:
    block = np.arange(6 << 20, dtype=np.uint8)
    file = tmp_path / "large.parquet"
    found = []
    for change in (None, 0, len(block) - 1, len(block) // 2):
        now = block.copy()
        if change is not None:
            now[change] ^= 1
        file.write_bytes(now.tobytes())
        found.append(identity(file))
    file.write_bytes(block.tobytes() + b"x")
    found.append(identity(file))
    assert len({found[0], found[1], found[2], found[4]}) == 4


def test_a_folder_is_its_files_without_ledgers(tmp_path: Path) -> None:
    (tmp_path / "year=1").mkdir()
    (tmp_path / "year=1" / "a.parquet").write_bytes(b"one")
    before = identity(tmp_path)
    (tmp_path / "data.ledger").write_bytes(b"changes with every charge")
    (tmp_path / "data.ledger.anchor").write_bytes(b"likewise")
    (tmp_path / "year=1" / "_SUCCESS").write_bytes(b"")
    (tmp_path / "year=1" / ".a.parquet.crc").write_bytes(b"crc")
    assert identity(tmp_path) == before == identity(str(tmp_path / "*" / "*.parquet"))
    (tmp_path / "year=1" / "b.parquet").write_bytes(b"two")
    assert identity(tmp_path) != before


def test_a_database_is_known_by_its_name_or_address_and_the_table(tmp_path: Path) -> None:
    file = tmp_path / "clinic.duckdb"
    file.write_bytes(b"pages")
    before = identity(file, "stays")
    file.write_bytes(b"pages, after a checkpoint")
    assert identity(file, "stays") == before != identity(file, "visits")
    address = identity("postgresql://ann:secret@db.example:5433/clinic", "stays")
    assert address == identity("postgresql://bob@db.example:5433/clinic?sslmode=require", "stays")
    assert address is not None
    assert "secret" not in address
    assert address != identity("postgresql://ann@db.example/clinic", "stays")


def test_data_in_memory_and_places_that_nobody_can_read_have_no_identity(tmp_path: Path) -> None:
    for nothing in (pa.table({"a": [1]}), None, 3, [], [(1, 2)], tmp_path / "missing.csv", "s3a://bucket/a.parquet"):
        assert identity(nothing) is None
