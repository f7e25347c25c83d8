"""Signed releases from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, Ledger, user
from defocus.mechanisms import Laplace
from defocus.release import release


@pytest.fixture
def where(tmp_path: Path) -> Path:
    path = tmp_path / "stays.sqlite"
    with Ledger.open(path, dataset="stays", unit=user("patient_id"), budget=Budget(1, 1e-6)) as ledger:
        release(Laplace(scale=4), 1402, ledger=ledger, purpose="[bold]patients", request="May")
    return path


def test_a_bundle_goes_from_the_ledger_to_a_stranger(defocus: Callable[..., Any], where: Path, tmp_path: Path) -> None:
    key, file = tmp_path / "hospital.key", tmp_path / "may.bundle"
    made = defocus("ledger", "bundle", where, "May", "--key", key, "--out", file)
    assert made.code == 0
    public = made.out.split()[-1]
    ran = defocus("verify", file, "--key", public)
    assert ran.code == 0
    for text in ("verified", "[bold]patients", "0.25", "patient_id", public):
        assert text in ran.out
    assert "compare it" in defocus("verify", file).out
    assert defocus("verify", file, "--json").json["ok"] is True
    wrong = defocus("verify", file, "--key", "0" * 64)
    assert wrong.code == 1
    assert "another key" in wrong.out
    file.write_text(file.read_text(encoding="ascii").replace("1402", "1403").replace("0.25", "0.15"), encoding="ascii")
    assert defocus("verify", file).code in {1, 2}


def test_heads_are_signed_and_witnessed(defocus: Callable[..., Any], where: Path, tmp_path: Path) -> None:
    key, own, memory = tmp_path / "hospital.key", tmp_path / "witness.key", tmp_path / "memory.json"
    first, second = tmp_path / "first.head", tmp_path / "second.head"
    assert defocus("ledger", "head", where, "--key", key, "--out", first).code == 0
    assert defocus("witness", first, "--key", own, "--memory", memory).code == 0
    with Ledger.open(where) as ledger:
        release(Laplace(scale=8), 3, ledger=ledger, purpose="more")
    assert defocus("ledger", "head", where, "--key", key, "--since", first, "--out", second).code == 0
    assert defocus("witness", second, "--key", own, "--memory", memory).code == 0
    assert defocus("witness", first, "--key", own, "--memory", memory).code == 1
    assert defocus("witness", tmp_path / "none", "--key", own, "--memory", memory).code == 2


def test_what_is_true_is_exported_and_what_is_not_is_not(
    defocus: Callable[..., Any], where: Path, tmp_path: Path
) -> None:
    key, file = tmp_path / "hospital.key", tmp_path / "may.bundle"
    out = {name: tmp_path / f"out.{name}" for name in ("yaml", "html", "pdf", "nist")}
    exports = ("--registry", out["yaml"], "--report", out["html"], "--nist", out["nist"])
    defocus("ledger", "bundle", where, "May", "--key", key, "--out", file)
    assert defocus("verify", file, "--key", "0" * 64, *exports).code == 1
    assert not any(path.exists() for path in out.values())
    assert defocus("verify", file, *exports).code == 0
    assert defocus("verify", file, "--report", out["pdf"]).code == 0
    assert out["pdf"].read_bytes().startswith(b"%PDF")
    assert "Pure DP" in out["yaml"].read_text("utf-8")
    assert "[bold]patients" in out["html"].read_text("utf-8")
    assert "Unit of privacy" in out["nist"].read_text("utf-8")
