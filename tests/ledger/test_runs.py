"""Where runs note what they released, and the charge that paid for them."""

from pathlib import Path

import pytest

from defocus.ledger import Ledger
from defocus.ledger.runs import charge_of, make_run_folder, run_file, run_folder
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace
from defocus.privacy.units import rows


class Remote:
    """A ledger elsewhere."""

    where = "postgresql://ada@host/visits"


def test_a_run_notes_in_a_file_beside_its_ledger_that_is_named_after_its_charge(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(1), unit=rows(), dataset="visits") as ledger:
        folder = run_folder(ledger)
        assert folder == tmp_path / "a.ledger.runs"
        assert run_file(ledger, 3, "ab" * 32, ".sum") == folder / "3-abababababababab.sum"
        make_run_folder(folder)
        make_run_folder(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
    assert run_file(Remote(), 3, "ab" * 32) is None  # type: ignore[arg-type]


def test_a_run_is_found_by_the_number_and_the_hash_of_its_charge_alone(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(1), unit=rows(), dataset="visits") as ledger:
        receipt = ledger.charge(Laplace(10), purpose="train")
        assert charge_of(ledger, receipt.sequence, receipt.hash) == (receipt, None)
        end = ledger.record(receipt, 7)
        assert charge_of(ledger, receipt.sequence, receipt.hash) == (receipt, end)
        genesis = next(ledger.entries())
        others = [(2, receipt.hash), (1, genesis.hash), (0, genesis.hash), (end.sequence, end.hash), (None, None)]
        for sequence, digest in others:
            assert charge_of(ledger, sequence, digest) is None


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(FileExistsError):
        make_run_folder(tmp_path / "runs")
