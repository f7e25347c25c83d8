"""The newest state of a stream: one follows another, and nobody else does."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import StreamStateError
from defocus.ledger import Ledger
from defocus.workloads.streams_codes import FileCodes, LedgerCodes, codes_of


@pytest.mark.parametrize(
    "made", [lambda ledger, _: LedgerCodes(ledger, "d" * 64), lambda _, path: FileCodes(path / "x")]
)
def test_of_many_who_follow_one_state_one_is_next(ledger: Ledger, tmp_path: Path, made: Any) -> None:
    first = made(ledger, tmp_path)
    assert first.newest() is None
    first.follow(None, "a" * 64)

    def went_on(letter: str) -> bool:
        try:
            made(ledger, tmp_path).follow("a" * 64, letter * 64)
        except StreamStateError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(went_on, "bcde")) == 1
    with pytest.raises(StreamStateError):
        first.follow(None, "f" * 64)
    assert first.newest() in {letter * 64 for letter in "bcde"}
    with pytest.raises(StreamStateError):
        first.follow("a" * 64, "f" * 64)


class Remote:
    """A ledger elsewhere."""

    where = "postgresql://ada@host/visits"


def test_where_states_are_noted_follows_from_the_ledger_and_the_charge(ledger: Ledger, tmp_path: Path) -> None:
    found = codes_of(ledger, sequence=3, digest="ab" * 32)
    assert isinstance(found, FileCodes)
    assert found.path == tmp_path.resolve() / "visits.ledger.runs" / "3-abababababababab.sum"
    assert isinstance(codes_of(Remote(), sequence=3, digest="ab" * 32), LedgerCodes)  # type: ignore[arg-type]
