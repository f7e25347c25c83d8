"""What a table says is left, for everybody and for parts."""

from pathlib import Path

import pyarrow as pa
import pytest

import defocus as dp
from defocus.privacy.units import Unit
from defocus.tables.parts import Declared

FRESH = "left for a part that was not charged yet:"
VISITS = pa.table({"patient": [1, 2, 3], "ward": ["a", "b", "b"]})


def lines(place: Path, unit: Unit, parts: str | Declared | None, *asked: str, restricted: bool = False) -> list[str]:
    """What a table says after a release of epsilon 0.75 about these parts, or about everybody."""
    opened = dp.open(VISITS, unit=unit, budget=dp.Budget(1), ledger=place, name="visits", parts=parts)
    with opened as table:
        about = table.part(*asked) if asked else table
        about.agg(n=dp.count()).release(epsilon=0.75 if asked else 0.125)
        return str(about if restricted else table).split("\n")[1:]


def test_everybody_and_a_part_that_was_not_charged_are_told_apart(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.rows(), "ward", "a")
    assert said == [
        "protects one row, added or removed; left for everybody: one release of epsilon 0.25",
        f"in parts by ward (text); each row is in one part; {FRESH} one release of epsilon 1",
    ]
    said = lines(tmp_path / "l", dp.rows(), "ward")
    assert said[0].endswith("left for everybody: one release of epsilon 0.125")
    assert said[1].endswith(f"{FRESH} one release of epsilon 0.875")


def test_rows_of_a_part_say_what_is_left_for_it(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.rows(), "ward", "a", restricted=True)
    assert said[0].endswith("left for these parts: one release of epsilon 0.25")


def test_parts_that_everybody_pays_for_have_nothing_of_their_own(tmp_path: Path) -> None:
    said = lines(tmp_path / "l", dp.user("patient"), "ward", "a")
    assert said == [
        "protects everything about one patient, added or removed; one release of epsilon 0.25",
        "in parts by ward (text), of which each is charged to everybody",
    ]


@pytest.mark.parametrize(
    ("unit", "parts", "remedy"),
    [
        (dp.rows(), "ward", 'declare parts="ward"'),
        (
            dp.user("patient"),
            dp.parts("ward", people="in one part"),
            'declare parts=dp.parts("ward", people="in one part")',
        ),
    ],
)
def test_a_ledger_with_parts_that_is_opened_without_them_says_so(
    tmp_path: Path, unit: Unit, parts: str | Declared, remedy: str
) -> None:
    lines(tmp_path / "l", unit, parts, "a")
    (_, told) = lines(tmp_path / "l", unit, None)
    assert told.startswith("the ledger has parts by ward (text)")
    assert "charged to everybody" in told
    assert told.endswith(remedy)
