"""The guide from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus.cli import choosing


def test_the_options_are_listed_with_trust_and_a_recommendation(defocus: Callable[..., Any]) -> None:
    ran = defocus("choose", "count", "--users", 10_000, "--epsilon", 1)
    assert ran.code == 0
    for word in ("central", "shuffle", "local", "trusts nobody", "Recommended: shuffle"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json_holds_all_numbers(defocus: Callable[..., Any]) -> None:
    answer = defocus("choose", "mean", "--users", 1000, "--epsilon", 1, "--delta", "1e-6", "--json").json
    assert answer["recommended"]["model"] in {"central", "shuffle", "local"}
    assert {option["model"] for option in answer["options"]} == {"central", "shuffle", "local"}
    assert answer["delta"] == 1e-6


def test_an_error_that_is_acceptable_decides(defocus: Callable[..., Any]) -> None:
    words = ("choose", "count", "--users", 10_000, "--epsilon", 1, "--json")
    assert defocus(*words, "--error", 500).json["recommended"]["model"] == "local"
    assert defocus(*words, "--error", 1.5).json["recommended"]["model"] == "central"


def test_a_plot_shows_all_models(defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_SIZES", (50, 100))
    where = tmp_path / "curve.svg"
    assert defocus("choose", "count", "--users", 100, "--epsilon", 1, "--delta", 1e-6, "--plot", where).code == 0
    assert where.stat().st_size > 1000


def test_bad_questions_are_refused(defocus: Callable[..., Any]) -> None:
    assert defocus("choose", "guess", "--users", 100, "--epsilon", 1).code == 2
    ran = defocus("choose", "count", "--users", 0, "--epsilon", 1)
    assert ran.code == 2
    assert "To fix" in ran.err
    assert defocus("choose", "count", "--users", 9, "--epsilon", 1, "--plot", "curve.txt").code == 2
