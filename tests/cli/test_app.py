"""The command as a whole: versions, help, exit codes, and no traceback ever."""

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.waiting import HANGS

from defocus.cli.app import app

COMMANDS = ("account", "calibrate", "advise", "audit", "ledger")


def test_the_version_is_the_installed_one(defocus: Callable[..., Any]) -> None:
    ran = defocus("--version")
    assert ran.code == 0
    assert ran.out == f"defocus {importlib.metadata.version('defocus')}\n"


def test_help_names_every_command_and_the_exit_codes(defocus: Callable[..., Any]) -> None:
    ran = defocus("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert name in ran.out
    assert "Exit codes" in ran.out


@pytest.mark.parametrize(
    "words", [[name, "--help"] for name in COMMANDS] + [["ledger", "show", "-h"], ["ledger", "verify", "-h"]]
)
def test_every_command_explains_itself_in_80_columns(defocus: Callable[..., Any], words: list[str]) -> None:
    ran = defocus(*words)
    assert ran.code == 0
    assert "Usage: defocus" in ran.out
    assert not re.search(r"--(json|list|monotone|adaptive) +<", ran.out)  # a flag takes no value
    assert max(map(len, ran.out.splitlines())) <= 80


def test_an_option_has_one_meaning_in_every_command() -> None:
    helps: dict[str, set[str]] = {}
    for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]  # it is a group
        for option in command.params:
            helps.setdefault(max(option.opts, key=len), set()).add(getattr(option, "help", ""))
    shared = ("--budget", "--budget-delta", "--ledger", "--purpose", "--request", "--rho", "--table", "--who", "--json")
    assert {name: len(helps[name]) for name in shared} == dict.fromkeys(shared, 1)


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["account"],
        ["account", "gaussian(1)", "--delta", "abc"],
        ["account", "gaussian(1)", "--method", "magic"],
        ["account", "gaussian(1)", "--delta", "2"],
        ["account", "gaussian(1)", "--delta", "nan"],
        ["account", "gaussian(1)", "--delta", "-1"],
        ["account", "gaussian(0)"],
        ["account", "__import__('os')"],
        ["account", "gaussian(1)\x00"],
        ["account", "("],
        ["calibrate", "gaussian(1)", "--epsilon", "1", "--delta", "1e-6"],
        ["calibrate", "gaussian(x)"],
        ["calibrate", "gaussian(x)", "--epsilon", "1", "--rho", "1"],
        ["calibrate", "gaussian(x)", "--epsilon", "-1"],
        ["audit"],
        ["audit", "mine:count"],
        ["advise", "--epsilon", "nan"],
        ["ledger"],
        ["ledger", "burn"],
    ],
)
def test_what_is_not_understood_exits_with_two_and_no_traceback(defocus: Callable[..., Any], words: list[str]) -> None:
    ran = defocus(*words)
    assert ran.code == 2
    assert "Traceback" not in ran.out + ran.err


def test_a_refusal_goes_to_the_error_stream(defocus: Callable[..., Any]) -> None:
    ran = defocus("account", "gausian(1)")
    assert ran.out == ""
    assert "did you mean gaussian?" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "start", [["-m", "defocus"], ["-c", "import sys; from defocus.cli import main; sys.exit(main())"]]
)
def test_it_runs_as_a_program(start: list[str]) -> None:
    ran = subprocess.run(  # noqa: S603 # our own command
        [sys.executable, *start, "account", "pure(1)", "--method", "basic", "--delta", "0"],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert re.search(r"basic\s+1\b", ran.stdout)
    assert ran.stdout.isascii() or "\x1b" not in ran.stdout


def test_a_cold_start_does_not_load_what_it_does_not_need() -> None:
    heavy = ("sqlalchemy", "matplotlib", "defocus.audit", "defocus.ledger")
    code = f"import sys; import defocus.cli; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS, check=True)  # noqa: S603
    assert ran.stdout == "[]\n"


def test_a_terminal_without_greek_still_gets_its_answer() -> None:
    ran = subprocess.run(  # our own command
        [sys.executable, "-m", "defocus", "account", "laplace(20)"],
        capture_output=True,
        timeout=HANGS,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 0
    assert b"R\\xe9nyi" in ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_is_told_in_words(more: list[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(  # noqa: S603 # our own command
            [sys.executable, "-m", "defocus", "account", "pure(1)", "--method", "basic", *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANGS,
            check=False,
        )
    assert ran.returncode == 1
    assert "could not be written" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_other_refusals_of_the_system_are_not_taken_for_output(
    defocus: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "books/\x1b[2J.ledger")

    monkeypatch.setattr("defocus.cli.ledgers.show", absent)
    ran = defocus("ledger", "show", "books")
    assert ran.code == 1
    assert "Permission denied" in ran.err
    assert "books" in ran.err
    assert "\x1b" not in ran.err
    assert "could not be written" not in ran.err
