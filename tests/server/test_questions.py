"""Every kind of question goes the same way: preview, request, approval, one charge, release, bundle, files."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.server.making import Served, approve, finished, hospital, person, serving, working

import defocus as dp
from defocus.answers.tables import PAGE
from defocus.cli import main
from defocus.errors import DefocusError, NotDeclaredError, NotFoundError, ServerError
from defocus.publication import evaluation_page, release_report
from defocus.server.client import RemoteTable
from defocus.server.pages.translations import translated
from defocus.server.questions import KINDS, MODELS, Model, Question
from defocus.server.requests import Desk
from defocus.server.roles import ADMINISTRATOR, PUBLIC, Role
from defocus.tables.table_questions import conditions

FILE = """
name = "visits"
data = "visits.parquet"
purposes = ["planning", "research"]
unit.column = "patient"
budget.epsilon = 40
budget.delta = 1e-5
bound.rows = 2
[columns.ward]
values = ["A", "B"]
[columns.days]
low = 0
high = 30
[graphs.contacts]
data = "contacts.csv"
ends = ["from", "to"]
max_degree = 10
"""
QUESTIONS: dict[str, dict[str, Any]] = {
    "table": {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1},
    "graph": {"kind": "graph", "graph": "contacts", "statistic": "edges", "epsilon": 2},
    "synthesis": {"kind": "synthesis", "only": ["ward", "days"], "epsilon": 2, "delta": 1e-6},
    "model": {"kind": "model", "model": "logistic", "inputs": ["days"], "target": "ward", "epsilon": 2, "delta": 1e-6},
}


def contacts(home: Path) -> None:
    folder = home / "datasets" / "visits"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{i},{(i + step) % 200}" for i in range(200) for step in (1, 2)]
    (folder / "contacts.csv").write_text("\n".join(["from,to", *lines]) + "\n")


@pytest.fixture(scope="module")
def open_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("kinds")
    contacts(home)
    made = hospital(home, FILE)
    yield made
    made.close()


def test_every_kind_has_a_question_here() -> None:
    assert QUESTIONS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_kind_goes_from_a_free_preview_to_one_charge_and_a_bundle(open_desk: Desk, kind: str) -> None:
    desk, question = open_desk, QUESTIONS[kind]
    ana, omar = person(desk, Role.ANALYST), person(desk, Role.OFFICER)
    book = desk.ledger(omar, "visits")
    before = len(book)
    seen = desk.preview(ana, "visits", question)
    assert (seen.verdict.state, seen.answer.fits) == ("waiting", True)
    assert len(book) == before
    asked = desk.submit(ana, "visits", question, "planning", "we need beds", kind)
    approve(desk, omar, asked.id)
    with working(desk):
        done = finished(desk, ana, asked.id)
    assert done.state == "released", done.why
    charges = [one for one in book.entries() if one.kind == "charge" and one.content.get("request") == asked.id]
    assert [(one.who, one.content["approved_by"], one.purpose) for one in charges] == [("Ana", "Omar", "planning")]
    answer = desk.answer(ana, asked.id)
    assert answer.to_csv() == desk.answer(ana, asked.id).to_csv()
    again = desk.submit(ana, "visits", question, "planning", "we need beds", kind)
    assert again.id == asked.id
    bundle = desk.publish(omar, asked.id)
    assert bundle.verify(key=desk.key(PUBLIC)).problems == ()
    assert "Verified" in release_report(bundle)
    assert "Unit of privacy" in evaluation_page(bundle)
    for name, (_, make) in asked.kind.files.items():
        assert make(desk.result(ana, asked.id)), name
    assert desk.verify(omar, "visits").ok


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_was_charged_before_a_crash_is_recalled_free(open_desk: Desk, kind: str) -> None:
    desk = open_desk
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=5, automatic_delta=1e-6, why="a test")
    ana = person(desk, Role.ANALYST)
    asked = desk.submit(ana, "visits", QUESTIONS[kind], "research", "beds", f"{kind} again")
    claimed = desk.claim()
    assert claimed is not None
    assert claimed.id == asked.id
    put = Question.read(claimed.question).of(desk._source(desk.datasets.described("visits"), "research"))
    made = desk._released(put, Question.read(claimed.question), claimed, None)  # and then the process is killed
    entries = len(put.ledger)
    assert desk.finish(claimed).state == "released"
    assert len(put.ledger) == entries
    assert asked.kind.shown(desk.result(ana, asked.id)).to_csv() == asked.kind.shown(made).to_csv()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_fitted_and_predicts(open_desk: Desk, model: str) -> None:
    desk, ana = open_desk, person(open_desk, Role.ANALYST)
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=5, automatic_delta=1e-6, why="a test")
    aim = {"logistic": "ward", "additive": "ward", "naive-bayes": "ward", "linear-regression": "days"}.get(model)
    settings = {"k-means": {"n_clusters": 2}, "linear-regression": {"intervals": True}}.get(model, {})
    said = {"kind": "model", "model": model, "inputs": ["days"], "target": aim, "settings": settings}
    asked = desk.submit(ana, "visits", {**said, "epsilon": 0.5, "delta": 1e-7}, "planning", "beds")
    with working(desk):
        assert finished(desk, ana, asked.id).state == "released"
    made: Model = desk.result(ana, asked.id)
    fitted = made.estimator
    assert len(fitted.predict(np.array([[3.0], [20.0]])) if model != "pca" else fitted.transform([[3.0], [4.0]])) == 2
    told = json.loads(made.to_file())
    assert told["features"] == {"days": [0.0, 30.0]}
    assert len(made.answer.columns[0].values) > 0


def test_synthetic_rows_and_models_are_files(open_desk: Desk) -> None:
    desk, ana = open_desk, person(open_desk, Role.ANALYST)
    files = {name: make for kind in KINDS.values() for name, (_, make) in kind.files.items()}
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=5, automatic_delta=1e-6, why="a test")
    asked = desk.submit(ana, "visits", QUESTIONS["synthesis"], "research", "beds")
    with working(desk):
        assert finished(desk, ana, asked.id).state == "released"
    made = desk.result(ana, asked.id)
    acting = SimpleNamespace(sample=lambda: pa.table({"ward": ["=1+1", "B"]}))
    assert files["synthetic.csv"](acting).decode().splitlines()[1:] == ['"\'=1+1"', '"B"']  # no spreadsheet computes it
    rows = list(csv.DictReader(io.StringIO(files["synthetic.csv"](made).decode())))
    assert rows[0].keys() == {"ward", "days"}
    assert pq.read_table(pa.BufferReader(files["synthetic.parquet"](made))).column_names == ["ward", "days"]
    assert made.receipt.sequence in {one.charge for one in desk.history(ana)}


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ({"kind": "sale"}, "there is no kind 'sale'"),
        ({"kind": "graph", "graph": "contacts", "statistic": "group-edges"}, "a graph is not asked 'group-edges'"),
        ({"kind": "graph", "graph": "other", "statistic": "edges"}, "no such graph"),
        ({"kind": "graph", "graph": "contacts", "statistic": "stars", "settings": {"k": "/etc/x"}}, "no plain value"),
        ({"kind": "graph", "graph": "contacts", "statistic": "edges", "settings": {"k": 3}}, "no setting 'k'"),
        ({"kind": "synthesis", "sql": "SELECT 1"}, "'sql' means nothing"),
        ({"kind": "synthesis", "columns": {"days": [1, 2]}}, "neither bounds nor values"),
        ({"kind": "synthesis", "only": ["ward"]}, "need a delta"),
        ({"kind": "synthesis", "only": ["ward"], "records": 10**9, "delta": 1e-7}, "more than 1000000 records"),
        ({"kind": "synthesis", "only": ["ward"], "records": "9" * 9, "delta": 1e-7}, "records"),
        ({"kind": "model", "model": "oracle", "inputs": ["days"]}, "there is no model 'oracle'"),
        ({"kind": "model", "model": "k-means", "inputs": ["days"], "settings": {"bits": 1}}, "no setting 'bits'"),
        ({"kind": "model", "model": "k-means", "inputs": ["days"], "settings": {"max_iter": 10**9}}, "no plain value"),
        ({"kind": "model", "model": "k-means", "inputs": ["ward"]}, "An input is a number"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_charged(
    open_desk: Desk, question: dict[str, Any], problem: str
) -> None:
    ana, book = person(open_desk, Role.ANALYST), open_desk.ledger(person(open_desk, Role.OFFICER), "visits")
    before = len(book)
    with pytest.raises(DefocusError, match=problem):
        open_desk.submit(ana, "visits", {"epsilon": 1, **question}, "planning", "beds")
    assert len(book) == before


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, RemoteTable]]:
    home = tmp_path_factory.mktemp("remote")
    contacts(home)
    with serving(home, FILE) as made:
        limits = {"automatic": 5, "automatic_delta": 1e-6}
        made.desk.datasets.set_policy(made.people[Role.STEWARD], "visits", why="a test", **limits)
        yield made, dp.connect(made.url, made.tokens[Role.ANALYST])


def test_every_kind_is_asked_by_a_program(remote: tuple[Served, RemoteTable]) -> None:
    served, visits = remote
    assert visits.describe()["graphs"] == ["contacts"]
    price: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}
    edges = visits.graph("contacts", "edges")
    assert edges.preview(epsilon=2).columns[0].name
    assert edges.release(epsilon=2, purpose="planning").columns[0].name == "edges"
    wanted = visits.where("days < 20").synthesis(only=["days", "ward"], rows=100)
    assert wanted.preview(**price).verdict.startswith("approved")
    assert wanted.release(**price, purpose="planning").sample(7).num_rows == 7
    fitted = visits.model("logistic", ["days"], "ward").release(**price, purpose="planning", request="model")
    assert set(fitted.estimator.predict([[1.0], [2.0]])) <= {"A", "B"}
    same = visits.model("logistic", ["days"], "ward").release(**price, purpose="planning", request="model")
    assert same.record == fitted.record
    with pytest.raises(ServerError, match="no such graph"):
        visits.graph("friends", "edges").preview(epsilon=1)
    with served.client(Role.ANALYST) as ana:
        for one in ana.get("/api/v1/requests").json():
            page = ana.get(f"/requests/{one['id']}")
            pictures = re.findall(r'(?:src|srcset)="(/requests/[^"]+)"', page.text)
            assert [ana.get(place).status_code for place in (f"/requests/{one['id']}", *pictures)].count(200) == 3 - (
                2 * (one["question"].get("kind") == "model")
            )
            assert ana.get(f"/requests/{one['id']}/chart.svg").status_code < 500


def test_commands_ask_a_server_for_synthetic_rows_and_graphs(
    remote: tuple[Served, RemoteTable],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served, _ = remote
    monkeypatch.setenv("DEFOCUS_TOKEN", served.tokens[Role.ANALYST])
    where = ["--server", served.url, "--purpose", "planning", "--epsilon", "2", "--delta", "1e-7"]
    assert main(["synthesise", "--out", str(tmp_path / "rows.csv"), "--only", "ward", "--only", "days", *where]) == 0
    assert (tmp_path / "rows.csv").read_text().startswith('"ward","days"')
    assert main(["graph", "contacts", "edges", *where]) == 0
    assert "edges" in capsys.readouterr().out


def test_the_command_fits_a_model_on_a_server_and_predicts_with_it(
    remote: tuple[Served, RemoteTable],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served, visits = remote
    monkeypatch.setenv("DEFOCUS_TOKEN", served.tokens[Role.ANALYST])
    assert main(["train", "--example", "server"]) == 0
    text = capsys.readouterr().out.replace('"research"', '"planning"').replace("= 1e-6", "= 1e-7")
    text = text.replace('["age", "days"]', '["days"]').replace('# filter = "age >= 18"', 'filter = "days < 25"')
    text = text.replace('logistic"  ', 'naive-bayes"  ')
    file, model = tmp_path / "train.toml", tmp_path / "model.json"
    file.write_text(text)
    command = ["train", str(file), "--server", served.url]
    assert main([*command, "--preview"]) == 0
    assert "policy: approved" in capsys.readouterr().out
    assert not model.exists()
    assert main(command) == 0
    assert "NaiveBayes of days" in capsys.readouterr().out
    kept = model.read_bytes()
    left = visits.describe()["left"]
    assert main(command) == 2  # there is a model
    assert main([*command, "--force", "--json"]) == 0  # recalled by its request
    assert json.loads(capsys.readouterr().out)["written"] == str(model)
    assert (model.read_bytes(), visits.describe()["left"]) == (kept, left)
    (tmp_path / "rows.csv").write_text("days\n1\n20\n")
    assert main(["predict", str(model), str(tmp_path / "rows.csv")]) == 0
    assert set(capsys.readouterr().out.split()[1:]) <= {"A", "B", '"A"', '"B"'}
    for old, new, words in (
        ('out = "model.json"', 'data = "visits.csv"', "The server decides about data"),
        ('kind = "naive-bayes"', 'kind = "mlp"', "A server fits no model 'mlp'"),
        ("epsilon = 1 ", "# epsilon = 1", "what the training may cost"),
        ("# max_iter = 10", "rounds = 3", "no setting 'rounds'"),
    ):
        file.write_text(text.replace(old, new).replace('request = "ward-model"', ""))
        assert main([*command, "--force"]) in {1, 2}
        assert words in " ".join(capsys.readouterr().err.split())


def test_a_graph_is_declared_for_persons_only(tmp_path: Path) -> None:
    contacts(tmp_path)
    desk = hospital(tmp_path)
    for text, problem in (
        (FILE.replace('unit.column = "patient"', "unit.rows = true").replace("bound.rows = 2", ""), "each row alone"),
        (FILE.replace("contacts.csv", "nothing.csv"), "There is no file"),
        (FILE.replace("contacts.csv", "../../../etc/passwd"), "may not reach"),
        (f'{FILE}[consent]\ndata = "c.csv"\nunit = "patient"\n', "a graph has none"),
    ):
        with pytest.raises(DefocusError, match=problem):
            desk.declare(ADMINISTRATOR, text, "a test")
    ana = person(desk, Role.ANALYST)
    with pytest.raises(NotFoundError, match="let a steward declare one"):
        desk.preview(ana, "visits", QUESTIONS["graph"])
    with pytest.raises(NotDeclaredError):
        desk.preview(ana, "visits", {**QUESTIONS["synthesis"], "delta": None})
    desk.close()


ENGLISH = re.compile(r"[A-Za-z]{2,}(?:,? [A-Za-z]{2,}){2,}")
SPOKEN = {
    **QUESTIONS,
    "statistics": {
        "aggregates": {
            "m": {"function": "mean", "column": "days"},
            "s": {"function": "sum", "column": "days"},
            "p": {"function": "count_units"},
            "q": {"function": "median", "column": "days"},
            "v": {"function": "std", "column": "days"},
        },
        "filter": ["days > 3"],
        "group_by": ["ward"],
        "epsilon": 1,
    },
    "found": {
        "aggregates": {"n": {"function": "count"}},
        "group_by": "name",
        "keys": None,
        "epsilon": 1,
        "delta": 1e-7,
    },
}


@pytest.mark.parametrize("name", SPOKEN)
def test_every_sentence_about_an_answer_is_chinese_on_a_chinese_page(open_desk: Desk, name: str) -> None:
    desk, ana = open_desk, person(open_desk, Role.ANALYST)
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=5, automatic_delta=1e-6, why="a test")
    said = [str(rule) for rule in desk.preview(ana, "visits", SPOKEN[name]).answer.rules]
    asked = desk.submit(ana, "visits", SPOKEN[name], "planning", "beds", f"in Chinese: {name}")
    with working(desk):
        assert finished(desk, ana, asked.id).state == "released"
    answer = desk.answer(ana, asked.id)
    said += [note for note in answer.cells_and_notes(PAGE)[1] if note != answer.question]
    topics = answer.sentences()
    said += [line for topic, lines in topics.items() if topic != "question" for line in lines] + list(topics)
    left = [text for text in said if ENGLISH.search(translated(text, "zh").partition("事件：")[0])]
    assert left == []


def test_what_is_null_is_not_asked() -> None:
    plain = conditions('{"aggregates": {"n": {"function": "count"}}}')
    assert conditions('{"aggregates": {"n": {"function": "count"}}, "steps": null, "filter": null}')[0] == plain[0]
