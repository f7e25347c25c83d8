"""Answers about graphs: rules that take edges away, how results are drawn, and how a ledger keeps them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from defocus.answers import Effect, Released, Rule, plots
from defocus.answers.answer import Figure, read, written
from defocus.answers.rules import rules_of
from defocus.answers.tables import spelt
from defocus.errors import InvalidParameterError
from defocus.graphs.question import TIME, Result
from defocus.ledger import Receipt

__all__ = ["WEIGHTS_CUT", "answered", "cap_found", "capped", "from_record", "projected", "to_record"]

WEIGHTS_CUT = Rule("weights are cut to their declared range", Effect.CUT)
_EARLIER = dict.fromkeys(
    (
        "at each node, at most",
        "count up to a cap at each node, which is found",
        "are left out where a node would have more than",
        "weights are cut to their declared range",
    ),
    Effect.CUT,
)
"""Words of rules in records that do not say what a rule does."""


def capped(most: int, what: str) -> Rule:
    """A cap on what counts at a node."""
    return Rule(f"at each node, at most {most} of its {what} count", Effect.CUT)


def cap_found(what: str) -> Rule:
    """The same, where the cap is found."""
    return Rule(f"{what} count up to a cap at each node, which is found; what is beyond it is lost", Effect.CUT)


def projected(most: object) -> Rule:
    """Edges beyond a largest degree."""
    return Rule(f"edges are left out where a node would have more than {most}", Effect.CUT)


def answered(result: object, question: str, receipt: Receipt, rules: Sequence[str], **more: Any) -> Released:
    """The answer that the result of a method is."""
    if not isinstance(result, Result) or not result.columns:
        raise InvalidParameterError("A method gave no result.", fix="let run() return a Result with columns.")
    return Released(
        result.keys,
        result.columns,
        question,
        receipt,
        rules_of(rules),
        processing=result.processing,
        notes=result.notes,
        figure=_figure(result.keys, len(result.columns[0].values)),
        **more,
    )


def _figure(keys: Mapping[str, Sequence[Any]], entries: int) -> Figure:
    """Numbers along time are steps, and along many degrees or ranks a curve."""
    if list(keys) == [TIME] and entries > 1:
        return "series"
    along = any(isinstance(values, range) and name != "node" for name, values in list(keys.items())[:1])
    return "curve" if along and entries > plots.MOST else "bars"


_LONG = 10**1000
"""Whole numbers from here on are kept as text: JSON is read with limits of its own."""


def to_record(answer: Released) -> dict[str, Any]:
    """The answer with JSON types only. Names of nodes that are neither text nor numbers are kept as text."""
    keys = {name: _keys(values) for name, values in answer.keys.items()}
    return {"kind": "graph", "keys": keys, **written(answer), "method": answer.method, "notes": list(answer.notes)}


def from_record(record: Any, receipt: Receipt) -> Released:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""

    def made(*, columns: Any, processing: Any, **parts: Any) -> Released:
        keys = {name: _listed(values) for name, values in record["keys"].items()}
        result = Result(columns, keys, processing, tuple(record["notes"]))
        return answered(result, method=record["method"], **parts)

    return read(record, receipt, "a graph", made, absolute=True, earlier=_EARLIER)


def _listed(values: Any) -> Any:
    if isinstance(values, dict) and "moments" in values:
        return [datetime.fromisoformat(text) for text in values["moments"]]
    return range(*values["range"]) if isinstance(values, dict) else list(values)


def _keys(values: Any) -> Any:
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if listed and all(type(x) is datetime and x.tzinfo is None for x in listed):
        return {"moments": [x.isoformat() for x in listed]}
    return [_plain(x) for x in listed]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    short = isinstance(value, int | np.integer) and abs(int(value)) < _LONG
    return int(value) if short else spelt(value)
