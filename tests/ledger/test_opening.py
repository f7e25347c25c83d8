from pathlib import Path
from typing import Any

import pytest

from defocus.errors import InvalidParameterError, LedgerUnavailableError
from defocus.ledger.opening import anchor_file_of, place_of
from defocus.ledger.sqlite import SqliteFile


def test_a_link_is_followed_once_when_the_ledger_is_opened(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    place = place_of(tmp_path / "link" / "a.ledger", timeout=1, read_only=False)
    assert isinstance(place, SqliteFile)
    assert place.path == tmp_path / "real" / "a.ledger"


@pytest.mark.parametrize("path", [3, "", b"a", "a\0b"])
def test_an_anchor_file_must_be_a_path(path: Any) -> None:
    with pytest.raises(InvalidParameterError, match="anchor_file"):
        anchor_file_of(path)


@pytest.mark.parametrize("path", ["missing/anchor", ".", pytest.param("x" * 5000, id="long")])
def test_an_anchor_file_needs_a_directory(tmp_path: Path, path: str) -> None:
    with pytest.raises(LedgerUnavailableError, match="To fix"):
        anchor_file_of(tmp_path / path)


def test_a_ring_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(LedgerUnavailableError, match="To fix"):
        place_of(tmp_path / "a" / "x.ledger", timeout=1, read_only=False)
