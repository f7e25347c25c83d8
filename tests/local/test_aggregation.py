from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlglot import exp
from tests.local.making import small

from defocus.engines import DuckDbEngine
from defocus.engines.syntax import quoted
from defocus.errors import DefocusError, InvalidParameterError, SourceError, UnreadableDescriptionError
from defocus.local import count_files, oracle, write_parquet
from defocus.local.aggregation import counting
from defocus.local.designs import design
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
