"""``defocus init``: a first dataset file, from the schema and from answers to public questions."""

import contextlib
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import typer

from defocus.cli.options import total
from defocus.cli.terminal import console, plain
from defocus.engines.origins import is_address
from defocus.engines.sources import source
from defocus.errors import DatasetFileError, InvalidParameterError, Number
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit, rows, user
from defocus.tables.dataset_check import check, compared
from defocus.tables.dataset_draft import draft, likely_units
from defocus.tables.dataset_file import read

__all__ = ["init", "validate"]


def init(
    data: list[str],
    *,
    out: Path,
    table: str | None,
    name: str | None,
    unit: str | None,
    by_rows: bool,
    budget: Number | None,
    budget_delta: Number,
    force: bool,
) -> bool:
    """Write a draft, asking what only its owner knows, and say whether it can be used as it is."""
    if out.exists() and not force:
        raise InvalidParameterError(f"{out} exists.", fix="choose another --out, or replace it with --force.")
    if unit is not None and by_rows:
        raise InvalidParameterError("--unit and --rows exclude each other.", fix="choose whom to protect in one way.")
    _without_secrets(data)
    given: list[str | Path] = [one if "://" in one else Path(one) for one in data]
    where: str | Path | list[str | Path] = given[0] if len(given) == 1 else given
    person, whole = _asked(where, table, unit, by_rows=by_rows, budget=budget, budget_delta=budget_delta)
    text = draft(where, table=table, name=name, unit=person, budget=whole, home=out.absolute().parent)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidParameterError(
            f"The file could not be written: {error.strerror}.", fix="choose another --out."
        ) from error
    console().print(f"written: {plain(out)}", soft_wrap=True)
    return validate(out)


def validate(path: Path) -> bool:
    """Say what is left to decide or does not fit; nothing is looked at but the schema and the ledger."""
    screen = console()
    try:
        dataset = read(path)
    except DatasetFileError as error:
        screen.print(plain(f"left to decide: {error.what}"), soft_wrap=True)
        screen.print(plain(f"To fix: {error.fix}"), soft_wrap=True)
        return False
    checked = check(dataset)
    problems, facts = (checked.problems, []) if checked.problems else compared(dataset)
    for problem in problems:
        screen.print(plain(f"does not fit: {problem}"), style="red", soft_wrap=True)
    if not problems:
        for fact in [*checked.notes, *facts]:
            screen.print(plain(fact), soft_wrap=True)
        screen.print("the file is complete and fits the data; add bounds and domains of columns as you need them")
    return not problems


def _without_secrets(data: list[str]) -> None:
    """Refuse an address that would bring a password into the file, which is public."""
    for one in filter(is_address, data):
        address: Any = None
        with contextlib.suppress(ValueError):
            address = urlsplit(one)
        if address is None or address.password or {"password", "sslpassword"} & parse_qs(address.query).keys():
            raise InvalidParameterError(
                "The address would be written to the file with its password.",
                fix="leave the password out: it is read from ~/.pgpass or PGPASSWORD, or for MariaDB from MYSQL_PWD.",
            )


def _asked(
    data: str | Path | list[str | Path],
    table: str | None,
    unit: str | None,
    *,
    by_rows: bool,
    budget: Number | None,
    budget_delta: Number,
) -> tuple[Unit | None, Budget | None]:
    """Whom to protect and what may be lost: from the options, else asked on a terminal, else left open in the file."""
    talking = sys.stdin.isatty() and sys.stdout.isatty()
    person = rows() if by_rows else None if unit is None else user(unit)
    if person is None and talking:
        opened = source(data, table=table)
        opened.engine.close()
        guesses = likely_units(opened.schema)
        said = typer.prompt(
            "Which column names the person (empty: each row is one)?", default=guesses[0] if guesses else ""
        )
        person = user(said) if said else rows()
    if budget is None and talking:
        budget = typer.prompt("What may all releases together lose, as epsilon?", default=1.0, type=float)
    return person, total(budget, budget_delta)
