"""A table on a server, asked as one that is opened here."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.server.making import Served, approve, rows, serving

import defocus as dp
from defocus.cli import main
from defocus.errors import InvalidParameterError, NotDeclaredError, RequestWaitsError, ServerError
from defocus.server.client import RemoteTable
from defocus.server.questions import Question
from defocus.server.roles import Role
from defocus.tables.table_questions import lowered, spelled

AGGREGATES: dict[str, Any] = {
    "count": dp.count(),
    "known": dp.count("days"),
    "people": dp.count_units(),
    "different": dp.count_distinct("ward", at_most=2),
    "sum": dp.sum("days", 0, 30, missing=1),
    "mean": dp.mean("days", bounds=(Fraction(1, 3), 30)),
    "median": dp.median("days", 0, 30, buckets=64),
    "several": dp.quantiles("days", [0.25, 0.75], 0, 30, intervals=True),
    "bins": dp.histogram("days", [0, 10, 30]),
    "found": dp.mean("days", bounds="find"),
    "ratio": dp.ratio("days", "patient", numerator_bounds=(0, 30), denominator_bounds=(0, 500)),
    "both": dp.correlation("days", "patient", x_bounds=(0, 30), y_bounds=(0, 500)),
    "weighted": dp.weighted_mean("days", "patient", bounds=(0, 30), weight_bounds=(0, 500)),
    "std": dp.std("days", 0, 30),
}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("server")) as made:
        made.desk.datasets.set_policy(made.people[Role.STEWARD], "visits", automatic=1, most=3, why="a test")
        yield made


@pytest.fixture
def visits(hospital: Served) -> RemoteTable:
    return dp.connect(hospital.url, hospital.tokens[Role.ANALYST])


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_arrives_as_it_was_asked(tmp_path: Path, name: str) -> None:
    how: dict[str, Any] = {
        "unit": dp.user("patient"),
        "budget": dp.Budget(9, 1e-6),
        "ledger": tmp_path / "a",
        "name": "visits",
    }
    with dp.open(rows(), **how) as table:
        said = Question.read({"aggregates": {name: spelled(AGGREGATES[name])}, "epsilon": 1}).said
        assert repr(lowered(table, said).arrangement) == repr(table.agg(**{name: AGGREGATES[name]}).arrangement)


def test_a_question_is_previewed_and_released_as_here(visits: RemoteTable) -> None:
    asked = visits.where("days > 2").derive(long="days > 9").group_by("long", keys=[False, True]).agg(n=dp.count())
    seen = asked.preview(epsilon=0.25)
    assert seen.columns[0].name == "n"
    assert "policy: approved" in str(seen)
    answer = asked.release(epsilon=0.25, purpose="planning", reason="beds", request="long stays")
    assert isinstance(answer, dp.tables.Released)
    assert answer.to_arrow().column_names[:2] == ["long", "n"]
    assert answer.receipt.who == "Ana"
    again = asked.release(epsilon=0.25, purpose="planning", request="long stays")
    assert again.to_csv() == answer.to_csv()
    assert "epsilon" in answer.explain()
    assert answer.derive(share="n / SUM(n) OVER ()").names[-1] == "share"


def test_a_select_is_released_as_here(visits: RemoteTable) -> None:
    text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC"
    answer = visits.sql(text, epsilon=0.25, purpose="research")
    assert answer["n"].values[0] > answer["n"].values[1]
    with pytest.raises(InvalidParameterError, match="whole table"):
        visits.where("days > 1").sql_query(text)


def test_who_must_wait_is_told_at_once_and_comes_back_by_name(hospital: Served, visits: RemoteTable) -> None:
    asked = visits.agg(people=dp.count_units())
    with pytest.raises(RequestWaitsError, match="request='beds'"):
        asked.release(epsilon=1.5, purpose="planning", request="beds")
    (waiting,) = hospital.desk.waiting_for(hospital.people[Role.OFFICER])
    approve(hospital.desk, hospital.people[Role.OFFICER], waiting.id)
    assert abs(asked.release(epsilon=1.5, purpose="planning", request="beds").value - 200) < 30


def test_refusals_of_the_server_are_told_in_its_words(hospital: Served, visits: RemoteTable) -> None:
    with pytest.raises(ServerError, match="named purposes only"):
        visits.agg(n=dp.count()).release(epsilon=0.1, purpose="sale")
    with pytest.raises(NotDeclaredError, match=r"what the release is for(.|\n)*one of planning, research"):
        visits.agg(n=dp.count()).release(epsilon=0.1)
    with pytest.raises(ServerError, match="refused: one request may cost at most epsilon 3"):
        visits.agg(n=dp.count()).release(epsilon=4, purpose="planning")
    with pytest.raises(ServerError, match="nobody's"):
        dp.connect(hospital.url, "dfc_wrong")
    with pytest.raises(InvalidParameterError, match="no data set 'other'"):
        dp.connect(hospital.url, hospital.tokens[Role.ANALYST], dataset="other")
    with pytest.raises(ServerError, match="cannot be reached"):
        dp.connect("http://127.0.0.1:9", "dfc_x")
    with pytest.raises(InvalidParameterError, match="cannot be asked of a server"):
        spelled(pa)


@pytest.mark.parametrize("url", ["http://privacy.example", "ftp://x", "privacy.example", "file:///etc/passwd"])
def test_a_token_is_never_sent_in_the_clear(url: str) -> None:
    with pytest.raises(InvalidParameterError, match="HTTPS only"):
        dp.connect(url, "dfc_x")


def test_what_is_declared_can_be_looked_at(visits: RemoteTable) -> None:
    said = visits.describe()
    assert said["purposes"] == ["planning", "research"]
    assert {column["name"] for column in said["columns"]} == {"patient", "ward", "days", "name"}
    assert "dfc_" not in repr(visits)


def test_the_command_asks_a_server(
    hospital: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--epsilon", "0.1", "--server", hospital.url]
    assert main(["preview", *text]) == 2
    assert "DEFOCUS_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("DEFOCUS_TOKEN", hospital.tokens[Role.ANALYST])
    assert main(["preview", *text, "--dataset", "visits", "--rows", "2", "--explain"]) == 0
    assert "policy: approved" in capsys.readouterr().out
    assert main(["query", *text, "--purpose", "planning", "--reason", "beds", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith('"ward","n"')
    assert main(["query", *text, "--purpose", "sale"]) == 1
    assert "named purposes only" in capsys.readouterr().err
