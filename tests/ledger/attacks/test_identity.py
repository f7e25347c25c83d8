"""Which data it is: told to who should not know, or not told apart."""

import json
from pathlib import Path

import pytest

import defocus as dp
from defocus.cli.app import main
from defocus.ledger.declarations import commitment
from defocus.ledger.identity import identity


@pytest.mark.parametrize("command", [["units"], ["ledger", "show"]])
def test_an_export_does_not_let_a_guess_of_the_data_be_tried(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data, place = tmp_path / "v.csv", tmp_path / "a.ledger"
    data.write_text("patient,hiv\n1,0\n2,1\n")
    with dp.Ledger.open(place, budget=dp.Budget(5), unit=dp.user("patient"), dataset="hospital") as ledger:
        dp.open(data, ledger=ledger, name="visits").close()
    assert main([*command, str(place), "--json"]) == 0
    shown = capsys.readouterr().out
    json.loads(shown)
    guess = tmp_path / "guess.csv"
    for value in (0, 1):  # everybody else's rows are known: is patient 2 positive?
        guess.write_text(f"patient,hiv\n1,0\n2,{value}\n")
        told = identity(guess)
        assert told is not None
        for word in shown.split('"'):
            if len(word) == 129 and word[64] == ":":
                assert commitment(told, word) != word
    assert "salt" not in shown


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("postgresql://u@db/clinic?options=-csearch_path%3Da", "postgresql://u@db/clinic?options=-csearch_path%3Db"),
        ("postgresql://u@db/clinic?port=6000", "postgresql://u@db/clinic?port=7000"),
        ("postgresql://ann@db", "postgresql://bob@db"),
        ("postgresql:///?dbname=a", "postgresql:///?dbname=b"),
    ],
)
def test_tables_of_other_databases_are_told_apart(one: str, other: str) -> None:
    assert identity(one, "stays") != identity(other, "stays")


def test_one_table_of_one_database_is_the_same_data() -> None:
    address = "postgresql://u@db/clinic"
    assert identity(address, "stays") == identity(address, "public.stays")
    assert identity(address, "stays") == identity("postgresql://u@DB/clinic", "stays")
