"""The example of one hospital, one patient and one budget."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_patient.py"


def test_it_charges_five_data_sets_to_one_ledger_and_draws_the_burn_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "one_patient.svg"
    runpy.run_path(str(EXAMPLE))["main"](picture)
    told = capsys.readouterr().out
    for name in ("visits", "contacts", "survey", "app"):
        assert name in told
    assert "triangles: The budget does not cover this release" in told
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
