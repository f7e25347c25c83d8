"""Who may read what a ledger leaves on disk."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from defocus.ledger import Ledger
from defocus.ledger.sqlite import SqliteFile
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace
from defocus.privacy.units import user


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_new_ledger_and_everything_beside_it_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    seen: dict[str, int] = {}

    def look() -> None:
        for file in tmp_path.iterdir():
            seen[file.name] = seen.get(file.name, 0) | stat.S_IMODE(file.stat().st_mode)

    real = SqliteFile.begin

    def begin(self: SqliteFile, connection: Any, *, write: bool) -> None:
        real(self, connection, write=write)
        look()

    monkeypatch.setattr(SqliteFile, "begin", begin)
    before = os.umask(mask)
    try:
        terms: dict[str, Any] = {"budget": Budget(1), "unit": user("patient"), "dataset": "visits"}
        with Ledger.open(tmp_path / "a.ledger", anchor_file=tmp_path / "a.anchor", **terms) as ledger:
            ledger.record(ledger.charge(Laplace(10), purpose="secret"), 7)
            look()
    finally:
        os.umask(before)
    assert {"a.ledger", "a.ledger-journal", "a.ledger.lock", "a.anchor", "a.anchor.lock"} <= seen.keys()
    assert set(seen.values()) == {0o600}


def test_an_anchor_file_that_was_opened_to_others_stays_so(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": Budget(1), "unit": user("patient"), "dataset": "visits"}
    with Ledger.open(tmp_path / "a.ledger", anchor_file=tmp_path / "a.anchor", **terms) as ledger:
        (tmp_path / "a.anchor").chmod(0o640)
        ledger.charge(Laplace(10), purpose="count")
    assert stat.S_IMODE((tmp_path / "a.anchor").stat().st_mode) == 0o640
