"""Forms become questions and dataset files, whatever names and values hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError
from defocus.server.pages.forms import asked, dataset_text, fields_of
from defocus.tables.dataset_file import parsed

ODD = 'a "b"; DROP'
SCHEMA = Schema(
    [
        Column("ward", Kind.TEXT),
        Column("stay", Kind.NUMBER, 0, 30),
        Column("age", Kind.INTEGER),
        Column("seen", Kind.BOOLEAN),
        Column(ODD, Kind.TEXT),
    ]
)


def question(**form: str) -> dict[str, Any]:
    return asked({"function0": "count", "epsilon": "0.5", **form}, SCHEMA)


def test_a_form_says_what_is_asked() -> None:
    said = question(function1="mean", of1="stay", function2="median", of2="age", group0="ward", delta="1e-6")
    assert said == {
        "aggregates": {
            "count": {"function": "count"},
            "mean of stay": {"function": "mean", "column": "stay"},
            "median of age": {"function": "median", "column": "age", "bounds": "find"},
        },
        "group_by": ["ward"],
        "epsilon": 0.5,
        "delta": 1e-6,
    }
    assert question(group0="ward", group1="ward", find="1")["keys"] is None
    assert question(how="sql", sql=" SELECT 1 ") == {"sql": "SELECT 1", "epsilon": 0.5, "delta": None}


@pytest.mark.parametrize(
    ("column", "value", "made"),
    [
        ("ward", "O'Brien", "\"ward\" = 'O''Brien'"),
        ("stay", "1.5", '"stay" = 1.5'),
        ("age", "-3", '"age" = -3'),
        ("seen", "TRUE", '"seen" = true'),
        (ODD, "x", '"a ""b""; DROP" = \'x\''),
    ],
)
def test_conditions_are_quoted(column: str, value: str, made: str) -> None:
    assert question(column0=column, value0=value)["filter"] == [made]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"column0": "age", "value0": "old"}, "'old' is none"),
        ({"column0": "age", "value0": "1", "operator0": "OR 1="}, "compares"),
        ({"function1": "mean"}, "which column"),
        ({"function1": "eval", "of1": "age"}, "no such statistic"),
        ({"epsilon": "much"}, "epsilon must be a number"),
    ],
)
def test_a_form_that_cannot_be_meant_is_refused(form: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        question(**form)


def test_a_column_that_is_not_declared_is_refused() -> None:
    with pytest.raises(UnknownColumnError):
        question(column0="salary", value0="1")


def test_a_dataset_file_becomes_fields_and_the_same_file_again() -> None:
    text = f"""name = "visits"
data = "visits.csv"
purposes = ["planning", "re\\"search"]
unit.column = "patient"
budget = {{epsilon = 1.5, delta = 1e-6}}
bound.rows = 3
[columns.stay]
kind = "number"
low = 0
high = 30
[columns.seen]
kind = "date"
low = 2020-01-01
high = 2024-12-31
[columns.{'"a b"'}]
values = ["x", "y"]
"""
    fields = fields_of(parsed(text), None)
    assert parsed(dataset_text(fields)) == parsed(text)


line = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)


@given(name=line, data=line, epsilon=line, low=line, values=line, column=line, purposes=line)
def test_whatever_is_typed_gives_a_file_that_says_so_or_is_refused(**typed: str) -> None:
    form = {key: typed[key] for key in ("name", "data", "epsilon", "purposes")}
    form |= {"c0_name": typed["column"], "c0_low": typed["low"], "c0_high": "9", "c0_values": typed["values"]}
    try:
        found = parsed(dataset_text(form))
    except DefocusError:
        return
    assert found.name == typed["name"].strip()
    assert list(found.data) == [typed["data"].strip()]
    assert set(found.columns) <= {typed["column"].strip()}


@pytest.mark.parametrize(
    ("form", "question"),
    [
        (
            [("how", "synthesis"), ("only", "ward"), ("only", "name"), ("find_values", "name"), ("delta", "1e-7")],
            {"kind": "synthesis", "only": ["ward", "name"], "columns": {"name": None}, "epsilon": 0.5, "delta": 1e-7},
        ),
        (
            [("how", "model"), ("model", "k-means"), ("inputs", "days"), ("model_settings", "n_clusters = 2")],
            {
                "kind": "model",
                "model": "k-means",
                "inputs": ["days"],
                "target": "",
                "settings": {"n_clusters": 2},
                "epsilon": 0.5,
                "delta": None,
            },
        ),
        (
            [("how", "graph"), ("graph", "contacts"), ("statistic", "stars"), ("graph_settings", "k = 3")],
            {
                "kind": "graph",
                "graph": "contacts",
                "statistic": "stars",
                "settings": {"k": 3},
                "epsilon": 0.5,
                "delta": None,
            },
        ),
    ],
)
def test_a_form_asks_questions_of_every_kind(form: list[tuple[str, str]], question: dict[str, Any]) -> None:
    assert asked(QueryParams([*form, ("epsilon", "0.5")]), Schema([])) == question
