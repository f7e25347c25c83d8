"""``defocus site`` and ``defocus federation``: files that are made, sites that are asked."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.federated.processes import free_ports

import defocus as dp
from defocus.federated.membership import read_site
from defocus.federated.site import Site

NAMES = ("north", "south", "east")
SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def federation(defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three sites in threads, of files that the commands made."""
    monkeypatch.chdir(tmp_path)
    ports = free_ports(len(NAMES))
    made = defocus("federation", "init", *(f"{name}=127.0.0.1:{port}" for name, port in zip(NAMES, ports, strict=True)))
    assert made.code == 0
    assert "put beside it what defocus site init makes at the sites: north.pem, south.pem, east.pem" in made.out
    opened, sites = [], []
    for name in NAMES:
        ran = defocus("site", "init", name)
        assert (ran.code, f"{name}.pem" in ran.out) == (0, True)
    for name in NAMES:
        text = (tmp_path / "site.toml").read_text().replace('"north"', f'"{name}"').replace("north.key", f"{name}.key")
        (tmp_path / f"{name}.toml").write_text(text)
        rows = pa.table({"patient": [f"{name}-{i}" for i in range(200)]})
        facts: dict[str, Any] = {"unit": dp.user("patient"), "budget": dp.Budget(50, 1e-6), "name": "visits"}
        opened.append(dp.open(rows, ledger=tmp_path / f"{name}.ledger", **facts))
        sites.append(Site(read_site(tmp_path / f"{name}.toml"), opened[-1].bound(rows=1)))
        threading.Thread(target=sites[-1].serve, daemon=True).start()
    yield tmp_path
    for site in sites:
        site.close()
    for table in opened:
        table.close()


def test_sites_are_previewed_asked_and_tell_their_budgets(defocus: Callable[..., Any], federation: Path) -> None:
    seen = defocus("federation", "preview", SQL, "--epsilon", 10)
    assert (seen.code, "expected: " in seen.out) == (0, True)
    ran = defocus("federation", "ask", SQL, "--epsilon", 10, "--json")
    assert abs(ran.json["rows"][0]["n"] - 600) < 20
    ran = defocus("federation", "ask", SQL, "--epsilon", 10, "--out", "answer.csv", "--purpose", "beds", "--explain")
    assert ran.code == 0
    assert (federation / "answer.csv").read_text().startswith('"n","n_error"')
    left = defocus("federation", "budget", "--json").json
    assert list(left) == list(NAMES)
    assert len({re.sub(r"\d", "", said) for said in left.values()}) == 1
    assert "epsilon 30" in left["north"]
    ran = defocus("history", "-d", "north.ledger")
    assert "beds" in ran.out
    for words in (["preview"], ["ask"]):
        refused = defocus("federation", *words, SQL, "--epsilon", 1, "--without", "east")
        assert (refused.code, "east: the coordinator asks without it" in refused.err) == (1, True)
    refused = defocus("federation", "ask", SQL, "--epsilon", 40)
    assert refused.code == 1
    assert "Its budget does not cover this." in " ".join(refused.err.split())
    assert "epsilon 30" in defocus("federation", "budget").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", "SELECT a", "--epsilon", "0"], "must be positive"),
        (["ask", SQL, "--epsilon", "1", "--federation", "none.toml"], "none.toml"),
        (["ask", SQL, "--epsilon", "1", "--out", "answer.ods"], "is written as"),
        (["ask", SQL, "--epsilon", "1", "--key", "north.key"], "does not belong to the coordinator"),
        (["init", "north=127.0.0.1:1"], "already"),
        (["init", "north", "--folder", "new"], "not a site and where it listens"),
        (["init", 'a"]=x:1', "--folder", "new"], "cannot be called"),
        (["init", "north=10.0.0.1:1", "--folder", "nowhere"], "no folder"),
    ],
)
@pytest.mark.usefixtures("federation")
def test_what_cannot_be_is_refused_in_words(defocus: Callable[..., Any], words: list[str], said: str) -> None:
    Path("new").mkdir()
    ran = defocus("federation", *words)
    assert ran.code in {1, 2}
    assert said in ran.err.replace("\n", " ")
    assert not list(Path("new").iterdir())


def test_sites_too_few_are_refused_before_the_file_stands(
    defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        assert defocus("site", "init", name).code == 0
    ran = defocus("federation", "init", "a=x:1", "b=x:2", "--dropouts", 1)
    assert (ran.code, "the rest is too few" in ran.err) == (1, True)
    assert not (tmp_path / "federation.toml").exists()
    assert defocus("site", "init", "a").code == 2
    ran = defocus("site", "serve")
    assert ran.code != 0
    assert "federation.toml" in ran.err
    assert defocus("federation", "init", "a=x:1", "b=x:2", "--overlap", 2).code == 0
    assert "overlap = 2" in (tmp_path / "federation.toml").read_text()
