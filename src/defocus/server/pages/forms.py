"""What forms say: a question built from declared columns, and a dataset file filled in field by field."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import InvalidParameterError
from defocus.server.pages.rendering import text_of
from defocus.tables.dataset_file import Dataset, Facts

__all__ = ["AGGREGATES", "OPERATORS", "ROWS", "asked", "chosen", "dataset_text", "fields_of", "number_of"]

ROWS = range(3)
"""So many conditions and so many statistics can be built without SQL."""
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
AGGREGATES = {
    "count": "number of rows",
    "count_units": "number of people",
    "mean": "mean of",
    "sum": "sum of",
    "median": "median of",
    "std": "standard deviation of",
    "count_distinct": "number of different values of",
}
"""The statistics of the form, and what they are called there."""
_WHOLE = frozenset({"count", "count_units"})


def asked(form: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The question of a form, as the desk reads it."""
    price = {"epsilon": number_of(form, "epsilon"), "delta": number_of(form, "delta", 0.0) or None}
    how = text_of(form, "how", "build")
    if how == "sql":
        return {"sql": text_of(form, "sql"), **price}
    if how == "graph":
        settings = dict(_settings(text_of(form, "graph_settings")))
        about: dict[str, Any] = {"graph": text_of(form, "graph"), "statistic": text_of(form, "statistic")}
        return {"kind": "graph", **about, "settings": settings, **price}
    conditions = list(_conditions(form, schema))
    rows = {"filter": conditions} if conditions else {}
    if how == "synthesis":
        columns = dict.fromkeys(chosen(form, "find_values"))
        return {"kind": "synthesis", "only": chosen(form, "only"), "columns": columns, **rows, **price}
    if how == "model":
        about = {"model": text_of(form, "model"), "inputs": chosen(form, "inputs"), "target": text_of(form, "target")}
        return {"kind": "model", **about, "settings": dict(_settings(text_of(form, "model_settings"))), **rows, **price}
    said: dict[str, Any] = {"aggregates": dict(_aggregates(form, schema)), **rows, **price}
    groups = list(dict.fromkeys(name for i in range(2) if (name := text_of(form, f"group{i}"))))
    if groups:
        said["group_by"] = groups
        if text_of(form, "find"):
            said["keys"] = None
    return said


def chosen(form: Mapping[str, Any], name: str) -> list[str]:
    """Everything that was ticked under one name."""
    return list(form.getlist(name)) if hasattr(form, "getlist") else [one for one in [form.get(name)] if one]


def _settings(text: str) -> Iterator[tuple[str, Any]]:
    """Settings, as ``k = 3, method = ladder`` says them."""
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in one.partition("="))
        if not equals or not name or not value:
            raise InvalidParameterError(f"{one!r:.60} is no setting.", fix="write for example k = 3.")
        number = value.lstrip("-").replace(".", "", 1)
        whole = number.isdecimal() and number.isascii()
        yield name, value if not whole else float(value) if "." in value else int(value)


def _conditions(form: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    for i in ROWS:
        name, operator = text_of(form, f"column{i}"), text_of(form, f"operator{i}", "=")
        if not name:
            continue
        if operator not in OPERATORS:
            raise InvalidParameterError("A condition compares.", fix=f"choose one of {', '.join(OPERATORS)}.")
        yield f"{_quoted(name)} {operator} {_constant(text_of(form, f'value{i}'), schema[name])}"
    if text_of(form, "condition"):
        yield text_of(form, "condition")


def _constant(text: str, column: Column) -> str:
    """A constant of SQL; a number for a column of numbers, else text in quotes."""
    if column.kind.numeric:
        try:
            return repr(float(text)) if "." in text or "e" in text.lower() else str(int(text))
        except ValueError:
            raise InvalidParameterError(
                f"{column.name!r:.60} holds numbers, and {text!r:.40} is none.", fix="write a number."
            ) from None
    if column.kind is Kind.BOOLEAN and text.lower() in {"true", "false"}:
        return text.lower()
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _aggregates(form: Mapping[str, Any], schema: Schema) -> Iterator[tuple[str, dict[str, Any]]]:
    for i in ROWS:
        function, name = text_of(form, f"function{i}"), text_of(form, f"of{i}")
        if not function:
            continue
        if function not in AGGREGATES:
            raise InvalidParameterError("There is no such statistic.", fix=f"choose among {', '.join(AGGREGATES)}.")
        if function in _WHOLE:
            yield function, {"function": function}
            continue
        if not name:
            raise InvalidParameterError(f"{AGGREGATES[function]} which column?", fix="choose a column beside it.")
        column, more = schema[name], {}
        if function != "count_distinct" and column.low is None:
            more = {"bounds": "find"}
        yield f"{function} of {name}", {"function": function, "column": name, **more}


def number_of(form: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A number in a form."""
    text = text_of(form, name)
    if not text and default is not None:
        return default
    try:
        return float(text)
    except ValueError:
        raise InvalidParameterError.about(name, "must be a number.", "write {} = 0.5.") from None


def dataset_text(form: Mapping[str, Any]) -> str:
    """The dataset file that a form describes. What is wrong in it, reading it says."""
    text = json.dumps  # texts of JSON are texts of TOML
    lines = [f"name = {text(text_of(form, 'name'))}", f"data = {text(text_of(form, 'data'))}"]
    if text_of(form, "table"):
        lines.append(f"table = {text(text_of(form, 'table'))}")
    purposes = [one.strip() for one in text_of(form, "purposes").splitlines() if one.strip()]
    if purposes:
        lines.append(f"purposes = {text(purposes)}")
    unit = text_of(form, "unit")
    lines += ["", "[unit]", f"column = {text(unit)}" if unit else "rows = true"]
    lines += ["", "[budget]", f"epsilon = {_plain(form, 'epsilon')}"]
    if text_of(form, "delta"):
        lines.append(f"delta = {_plain(form, 'delta')}")
    if text_of(form, "rows"):
        lines += ["", "[bound]", f"rows = {_plain(form, 'rows')}"]
    for i in range(_columns(form)):
        lines += _declared(form, i)
    return "\n".join(lines) + "\n"


def _columns(form: Mapping[str, Any]) -> int:
    return next(i for i in range(1001) if f"c{i}_name" not in form or i == 1000)


def _declared(form: Mapping[str, Any], i: int) -> list[str]:
    """What is declared about one column; nothing where no field is filled in."""
    facts = []
    if text_of(form, f"c{i}_type"):
        facts.append(f"kind = {json.dumps(text_of(form, f'c{i}_type'))}")
    if text_of(form, f"c{i}_low") or text_of(form, f"c{i}_high"):
        facts += [f"low = {_plain(form, f'c{i}_low')}", f"high = {_plain(form, f'c{i}_high')}"]
    values = [one.strip() for one in text_of(form, f"c{i}_values").split(",") if one.strip()]
    if values:
        whole = text_of(form, f"c{i}_kind") == "integer"
        facts.append(f"values = [{', '.join(one if whole and _is_whole(one) else json.dumps(one) for one in values)}]")
    return ["", f"[columns.{json.dumps(text_of(form, f'c{i}_name'))}]", *facts] if facts else []


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdecimal() and text.isascii()


_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?")


def _plain(form: Mapping[str, Any], name: str) -> str:
    """A number or a date as it was written, if it is one."""
    text = text_of(form, name)
    if _DATED.fullmatch(text):
        with contextlib.suppress(ValueError):
            datetime.fromisoformat(text)
            return text
    try:
        float(text)
    except ValueError:
        return json.dumps(text)
    return text if text[:1] not in {".", "+"} and text[-1:] != "." else repr(float(text))


def fields_of(dataset: Dataset, schema: Schema | None) -> dict[str, str]:
    """The fields of a form that describe a dataset file, with a line for each column of its data."""
    budget, bound = dataset.budget, dataset.bound
    fields = {
        "name": dataset.name,
        "data": ", ".join(dataset.data),
        "table": dataset.table or "",
        "purposes": "\n".join(dataset.purposes),
        "unit": dataset.unit.column or "",
        "epsilon": _shown(budget.epsilon),
        "delta": _shown(budget.delta or None),
        "rows": "" if bound is None or bound.find else _shown(bound.rows),
    }
    names = list(dataset.columns) if schema is None else [column.name for column in schema]
    for i, name in enumerate(names):
        facts = dataset.columns.get(name, Facts())
        kind = "" if schema is None or name not in schema else str(schema[name].kind)
        fields |= {
            f"c{i}_name": name,
            f"c{i}_kind": kind,
            f"c{i}_type": "" if facts.kind is None else str(facts.kind),
            f"c{i}_low": _shown(facts.low),
            f"c{i}_high": _shown(facts.high),
            f"c{i}_values": ", ".join(str(value) for value in facts.values or ()),
        }
    return fields


def _shown(number: Any) -> str:
    if isinstance(number, date):
        return number.isoformat()
    return "" if number is None else f"{float(number):.12g}"
