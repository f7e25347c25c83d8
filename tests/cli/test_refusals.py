"""Refusals name the options of the command, and nothing that only Python has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus.cli.app import options_of
from defocus.cli.terminal import in_options, tell
from defocus.errors import DefocusError, positive

FOUND = "SELECT CAST(FLOOR(days / 10) AS BIGINT) AS band, COUNT(*) FROM visits GROUP BY band"
KNOWN = {"epsilon": "--epsilon", "delta": "--delta", "at_most": "--at-most", "unit": "--unit", "explain": "--explain"}


def test_a_budget_is_the_total_of_a_ledger_where_a_command_has_one() -> None:
    known = {"epsilon": "--epsilon", "delta": "--delta", "budget": "--budget", "budget_delta": "--budget-delta"}
    assert in_options("write Budget(1, 1e-6).", known) == "write --budget 1 --budget-delta 1e-6."


def test_the_options_are_those_of_the_command_that_was_called() -> None:
    assert options_of(["query", "SELECT 1", "--epsilon", "1"])["at_most"] == "--at-most"
    assert "anchor_file" in options_of(["ledger", "verify", "query"])
    assert "epsilon" not in options_of(["ledger", "show", "x"])
    assert "version" in options_of(["nonsense"])


@pytest.mark.parametrize(
    ("python", "terminal"),
    [
        ("pass delta=, for example 1e-6.", "pass --delta, for example 1e-6."),
        ("leave delta= out and name the keys.", "leave --delta out and name the keys."),
        ("ask with delta=1.25e-07: so much is left.", "ask with --delta 1.25e-07: so much is left."),
        ("pass at_most=3.", "pass --at-most 3."),
        ("add explain=True.", "add --explain."),
        ("protect unit='patient_id'.", "protect --unit patient_id."),
        ('protect people: unit=dp.user("patient_id").', "protect people: --unit patient_id."),
        ("choose unit=dp.weight(bound=…) or unit=dp.node().", "choose --unit weight --bound … or --unit node."),
        ("write Budget(1, 1e-6) or Budget(2).", "write --epsilon 1 --delta 1e-6 or --epsilon 2."),
        ("the epsilon of Budget(epsilon=1, delta=1e-06)", "the epsilon of Budget(epsilon=1, delta=1e-06)"),
        ("my_delta=3 and keys=None stay", "my_delta=3 and keys=None stay"),
    ],
)
def test_parameters_become_options_and_nothing_else_does(python: str, terminal: str) -> None:
    assert in_options(python, KNOWN) == terminal
    assert in_options(python, {}) == python


@pytest.mark.parametrize(
    ("python", "terminal"),
    [
        ("list their names: nodes=[…].", "list their names: --nodes FILE."),
        ('say it: ends=("from_id", "to_id").', "say it: --ends from_id,to_id."),
        ("pass header=False, or header=True.", "pass --no-header, or --header."),
        ("open it without directed=True.", "open it without --directed."),
        ("open it with directed=False.", "open it with directed=False."),
        ("leave side= out; with cap=3.", "leave --set side out; with --set cap=3."),
        ("pass --set every=….", "pass --set every=…."),
    ],
)
def test_lists_flags_and_settings_have_forms_of_their_own(python: str, terminal: str) -> None:
    assert in_options(python, options_of(["graph"])) == terminal


def test_a_parameter_that_is_checked_is_called_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (DefocusError("No list.", fix="pass nodes=[…].", command="pass --nodes FILE."), _refused()):
        tell(error, KNOWN)
    assert capsys.readouterr().err.splitlines() == [
        "No list.",
        "To fix: pass --nodes FILE.",
        "--epsilon must be positive, but it is -1.",
        "To fix: pass --epsilon > 0.",
    ]


def _refused() -> DefocusError:
    with pytest.raises(DefocusError) as caught:
        positive("epsilon", -1)
    return caught.value


def test_whoever_forgets_a_delta_is_told_the_option(defocus: Callable[..., Any], home: Path) -> None:
    del home
    ran = defocus("query", FOUND, "--epsilon", "1")
    assert "--delta" in ran.err
    assert "delta=" not in ran.err


def test_a_wrong_number_is_told_by_its_option(defocus: Callable[..., Any], home: Path) -> None:
    del home
    ran = defocus("preview", "SELECT COUNT(*) FROM visits", "--epsilon", "0")
    assert ran.code == 2
    assert "--epsilon" in ran.err
    ran = defocus("query", "SELECT COUNT(DISTINCT ward) FROM visits", "--epsilon", "1", "--at-most", "0")
    assert "--at-most" in ran.err
    assert "at_most" not in ran.err


def test_a_delta_that_would_work_is_told_as_an_option_that_works(defocus: Callable[..., Any], home: Path) -> None:
    del home
    assert defocus("query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5").code == 0
    ran = defocus("query", FOUND, "--epsilon", "1", "--delta", "1e-6")
    assert ran.code == 1
    assert "ask with --delta 5e-07" in " ".join(ran.err.split())
    assert defocus("query", FOUND, "--epsilon", "1", "--delta", "1.25e-07").code == 0


def test_a_column_of_which_nothing_is_known_is_declared_in_the_file(home: Path, defocus: Callable[..., Any]) -> None:
    text = (home / "defocus.toml").read_text("utf-8").replace('values = ["A", "B"]\n', "")
    (home / "defocus.toml").write_text(text, "utf-8")
    refused = defocus("synthesise", "--out", "made.csv", "--epsilon", 1, "--delta", 1e-6, "--only", "ward")
    assert refused.code
    assert "under [columns.ward], values = [" in refused.err
    assert "--find ward" in refused.err
    assert "columns={" not in refused.err
