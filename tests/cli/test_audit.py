"""Attacks from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_the_targets_are_listed(defocus: Callable[..., Any]) -> None:
    ran = defocus("audit", "--list")
    assert ran.code == 0
    assert "laplace" in ran.out
    assert "broken/half-noise" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert {"name", "about", "epsilon", "delta"} == set(defocus("audit", "--list", "--json").json[0])


def test_a_broken_mechanism_exits_with_one(defocus: Callable[..., Any], tmp_path: Path) -> None:
    ran = defocus("audit", "broken/half-noise", "--trials", 20_000, "--plot", tmp_path / "found.png")
    assert ran.code == 1
    assert "violation" in ran.out
    assert "claimed" in ran.out
    assert (tmp_path / "found.png").exists()
    assert max(map(len, ran.out.splitlines())) <= 80


def test_an_honest_mechanism_exits_with_zero_and_is_not_called_proved(defocus: Callable[..., Any]) -> None:
    ran = defocus("audit", "laplace", "--trials", 10_000)
    assert ran.code == 0
    assert "none found (would detect >= " in ran.out
    assert "prove" not in ran.out


def test_the_finding_as_json(defocus: Callable[..., Any]) -> None:
    ran = defocus("audit", "broken/half-noise", "--trials", 20_000, "--json")
    assert ran.code == 1
    assert ran.json["target"] == "broken/half-noise"
    assert ran.json["violation"] is True
    assert ran.json["epsilon_lower"] > 1


def test_an_unknown_name_is_not_understood_and_says_where_the_names_are(defocus: Callable[..., Any]) -> None:
    ran = defocus("audit", "laplase")
    assert ran.code == 2  # 1 would read as a violation
    assert "did you mean laplace?" in ran.err
    assert "defocus audit --list" in ran.err
    assert "audit.targets" not in ran.err


def test_a_dotted_name_is_told_how_to_write_ones_own(defocus: Callable[..., Any]) -> None:
    ran = defocus("audit", "mymech.noisy_count")
    assert ran.code == 2
    assert "write mymech:noisy_count" in ran.err


def test_runs_that_were_not_made_are_explained(
    defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open_to_audit.py").write_text("def count(rows):\n    return len(rows)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    options = ("--claimed", 1, "--pairs", "numbers", "--trials", 20_000)
    found = defocus("audit", "open_to_audit:count", *options)
    assert "stopped early, since this is enough" in " ".join(found.out.split())
    assert "stopped early" not in defocus("audit", "laplace", "--trials", 2_000).out


def test_ones_own_mechanism_is_named_by_module_and_function(
    defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_to_audit.py").write_text(
        "def count(rows):\n    return len(rows)\nnot_callable = 3\n", encoding="utf-8"
    )
    (tmp_path / "unfinished_to_audit.py").write_text("def count(rows:\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    options = ("--claimed", 1, "--pairs", "numbers", "--trials", 1000)
    assert defocus("audit", "mine_to_audit:count", *options).code == 1
    assert defocus("audit", "mine_to_audit:missing", *options).code == 2
    assert defocus("audit", "mine_to_audit:not_callable", *options).code == 2
    assert defocus("audit", "no_such_module:count", *options).code == 2
    assert defocus("audit", ":count", *options).code == 2
    ran = defocus("audit", "unfinished_to_audit:count", *options)
    assert ran.code == 2
    assert "SyntaxError" in ran.err
    assert defocus("audit", "mine_to_audit:count", "--claimed", 1).code == 2
    assert defocus("audit", "mine_to_audit:count", "--claimed", 1, "--pairs", "nonsense").code == 2
    assert defocus("audit", "laplace", "--claimed", 1).code == 2
