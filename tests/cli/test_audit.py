"""Attacks from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import defocus as dp


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


FITS = """
import numpy as np

def copied(rows):
    return rows

def noise(rows):
    made = np.random.default_rng(rows.num_rows)
    return rows.select([]).append_column("x", [made.uniform(0, 1, rows.num_rows)])

def score(model, rows):
    return -np.abs(rows["x"].to_numpy() - model["x"].to_numpy().mean())
"""


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fits_to_audit.py").write_text(FITS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    made = pa.table({"person": np.repeat(np.arange(100), 2), "x": draw.uniform(0, 1, 200)})
    pq.write_table(made, tmp_path / "people.parquet")
    pa_csv.write_csv(made, tmp_path / "people.csv")
    return tmp_path


def test_who_was_in_is_said_of_a_fit_of_ones_own(defocus: Callable[..., Any], people: Path) -> None:
    options = ("--claimed", 1, "--plot", "roc.svg", "--report", "audit.html")
    ran = defocus("audit", "membership", "fits_to_audit:copied", "people.parquet", *options)
    assert ran.code == 1
    assert ran.out.startswith("violation")
    assert "closest record: area 1.0000" in " ".join(ran.out.split())
    assert (people / "roc.svg").exists()
    assert "violation" in (people / "audit.html").read_text("utf-8")
    more = ("--person", "person", "--score", "fits_to_audit:score", "--shadows", 4, "--claimed", 1, "--json")
    found = defocus("audit", "membership", "fits_to_audit:noise", "people.csv", *more)
    assert found.code == 0
    assert (found.json["persons"], found.json["shadows"], len(found.json["attacks"])) == (100, 4, 4)


def test_what_cannot_be_attacked_is_refused(defocus: Callable[..., Any], people: Path) -> None:
    assert people.exists()
    for words in (("people.txt",), ("gone.csv",), ("people.csv", "--person", "x2"), ("people.csv", "--score", "a:b")):
        assert defocus("audit", "membership", "fits_to_audit:copied", *words).code == 2


def test_the_history_of_a_ledger_is_told(defocus: Callable[..., Any], tmp_path: Path) -> None:
    rows = pa.table({"age": [1, 2]})
    with dp.open(rows, unit=dp.rows(), budget=dp.Budget(3), ledger=tmp_path / "a", name="t") as table:
        for limit in (30, 31, 31):
            table.where(f"age > {limit}").agg(n=dp.count()).release(epsilon=0.5)
    ran = defocus("audit", "history", tmp_path / "a", "--report", tmp_path / "a.html", "--plot", tmp_path / "a.svg")
    assert ran.code == 0, ran.err
    told = " ".join(ran.out.split())
    assert "present or not" in told
    assert "entries 1 and 3" in told
    assert "asked again" in told
    assert max(map(len, ran.out.splitlines())) <= 80
    assert (tmp_path / "a.html").exists()
    assert (tmp_path / "a.svg").exists()
    assert defocus("audit", "history", tmp_path / "a", "--json").json["charges"] == 3
    assert defocus("audit", "history", tmp_path / "gone").code == 1


def test_columns_of_a_table_are_a_domain(
    defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def oldest(table):\n    return max([0, *(age or 0 for age in table['age'].to_pylist())])\n"
    (tmp_path / "tables_to_audit.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    options = ("--claimed", 1, "--pairs", "age=0:99; ward=A,B", "--trials", 500, "--report", "audit.html")
    assert defocus("audit", "tables_to_audit:oldest", *options).code == 1
    assert (tmp_path / "audit.html").exists()


RELEASES = """
import numpy as np

draw = np.random.default_rng(0)

def counts(planted, scale=1.0):
    return np.bincount(planted, minlength=300) + draw.laplace(0, scale, 300)

def less(planted):
    return counts(planted, 0.3)

def total(planted):
    return float(len(planted))

def own(total, canary):
    return total

def broken(planted):
    raise KeyError("no such village")

def answers(secrets):
    return np.loadtxt("queries.csv", delimiter=",", skiprows=1) @ secrets
"""


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "releases_to_audit.py").write_text(RELEASES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    coins = draw.integers(0, 2, 500)
    scores = pa.table({"score": coins + draw.normal(0, 0.5, 500), "planted": coins, "group": coins * 0})
    pa_csv.write_csv(scores, tmp_path / "scores.csv")
    pq.write_table(scores.set_column(1, "planted", pa.array(coins > 0)), tmp_path / "scores.parquet")
    pa_csv.write_csv(pa.table({f"p{i}": draw.integers(0, 2, 60) for i in range(20)}), tmp_path / "queries.csv")
    with dp.Ledger.open(tmp_path / "a.ledger", budget=dp.Budget(1), unit=dp.rows(), dataset="visits"):
        pass
    return tmp_path


def test_canaries_in_a_release_of_ones_own(defocus: Callable[..., Any], releases: Path) -> None:
    options = ("--canaries", 300, "--claimed", 1, "--confidence", 1 - 1e-6)  # its coins are the system's
    kept = ("--keep", "a.ledger", "--request", "May", "--report", "a.html", "--plot", "a.svg")
    right = defocus("audit", "canaries", "releases_to_audit:counts", *options, *kept)
    assert (right.code, right.out.split("\n")[0].strip()) == (0, "none found"), right.err
    assert (releases / "a.svg").exists()
    assert "none found" in (releases / "a.html").read_text("utf-8")
    assert defocus("ledger", "bundle", "a.ledger", "May", "--key", "key", "--out", "May.json").code == 0
    assert defocus("verify", "May.json", "--json").json["value"]["canaries"] == 300
    wrong = defocus("audit", "canaries", "releases_to_audit:less", *options, "--json")
    assert (wrong.code, wrong.json["violation"]) == (1, True)
    scored = ("--canaries", 20, "--claimed", 1, "--score", "releases_to_audit:own", "--runs", 2)
    assert defocus("audit", "canaries", "releases_to_audit:total", *scored).code == 0


@pytest.mark.parametrize("file", ["scores.csv", "scores.parquet"])
def test_scores_of_other_programs(defocus: Callable[..., Any], releases: Path, file: str) -> None:
    assert releases.exists()
    options = ("--event", "gaussian(1)", "--delta", 1e-5, "--independent")
    ran = defocus("audit", "scores", file, *options, "--json")
    assert (ran.code, ran.json["violation"], ran.json["method"]) == (1, True, "independent")
    assert defocus("audit", "scores", file, "--event", "gaussian(1/2)", *options[2:]).code == 0


def test_secrets_in_answers(defocus: Callable[..., Any], releases: Path) -> None:
    assert releases.exists()
    ran = defocus("audit", "reconstruction", "releases_to_audit:answers", "queries.csv", "--claimed", 0.1, "--json")
    assert (ran.code, ran.json["share"]) == (1, 1.0)


def test_a_history_is_kept_in_its_ledger(defocus: Callable[..., Any], releases: Path) -> None:
    assert releases.exists()
    assert defocus("audit", "history", "a.ledger", "--request", "audit of May").code == 0
    assert defocus("ledger", "bundle", "a.ledger", "audit of May", "--key", "key", "--out", "b.json").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("canaries", "releases_to_audit:broken", "--canaries", 9, "--claimed", 1), "raised KeyError"),
        (("canaries", "releases_to_audit:counts", "--canaries", 9, "--claimed", 1), "--score"),
        (("canaries", "releases_to_audit:counts", "--canaries", 1, "--claimed", 1), "canaries"),
        (("canaries", "releases_to_audit:counts", "--canaries", 300), "--claimed 1"),
        (("membership", "releases_to_audit:broken", "scores.csv", "--claimed", 1), "raised KeyError"),
        (("scores", "scores.csv", "--claimed", 1, "--event", "gaussian(1)"), "in one way"),
        (("scores", "scores.csv", "--claimed", 1, "--independent"), "event"),
        (("scores", "queries.csv", "--claimed", 1), "score"),
        (("scores", "scores.csv", "--claimed", 1, "--request", "May"), "--keep"),
        (("laplace", "--trials", 500, "--request", "May"), "--keep"),
        (("reconstruction", "releases_to_audit:broken", "queries.csv"), "raised KeyError"),
        (("reconstruction", "releases_to_audit:answers", "queries.csv", "--method", "guessing"), "linear program"),
    ],
)
def test_what_is_not_understood_exits_with_two_and_says_why(
    defocus: Callable[..., Any], releases: Path, words: tuple[Any, ...], said: str
) -> None:
    assert releases.exists()
    ran = defocus("audit", *words)
    assert ran.code == 2, ran.err
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
