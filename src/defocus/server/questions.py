"""Questions as JSON, of every kind that a server answers: read, previewed, released, kept and shown in one way.

``{"kind": "synthesis", "only": ["age", "ward"], "epsilon": 1, "delta": 1e-7}``; without ``kind`` it is a question to a
table. A kind says how a question of it is put to a data set, what its release is kept as, and what pages show of it.
Whatever the kind, it is charged by its room's one charge, under the id of the request.
"""

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from defocus.answers import Released
from defocus.answers.columns import AnswerColumn
from defocus.answers.export import csv_text
from defocus.answers.preview import Preview
from defocus.answers.rules import rules_of
from defocus.errors import DefocusError, InvalidParameterError, Number, choice, count, positive, probability
from defocus.ledger import Ledger, Receipt
from defocus.tables import table_questions
from defocus.tables.answers import from_record, to_record
from defocus.tables.table_questions import listed, lowered, number_of, stepped, unread

__all__ = ["KINDS", "MODELS", "Asked", "File", "Kind", "Model", "Question", "Source", "statistics"]

_LARGEST = 100_000
_SETTING = re.compile(r"[A-Za-z0-9_., -]{1,100}")
_MOST = 10_000
"""The largest whole number that a setting may be: rounds of a fit, clusters, degrees."""
_RECORDS = 1_000_000
"""The most synthetic records: they are kept in the records of the server, and drawn anew for each download."""
_PRICE = frozenset({"epsilon", "delta"})
_TABLE = frozenset({"part", "rows", "groups", "filter", "steps"})

File = tuple[str, Callable[[Any], bytes]]
"""The type of a file, and what makes it of a release."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What is asked: the table of a data set, its graphs by name, and who approved the question, if somebody did."""

    table: Any
    graph: Callable[[str], Any]
    approver: str | None = None

    def paid(self, about: Any) -> Any:
        """A table or a graph whose charges say who approved them."""
        return about if self.approver is None else replace(about, ledger=about.ledger.approved(self.approver))


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was put to a data set: free to preview, and released for one charge to its ledger."""

    ledger: Ledger
    preview: Callable[..., Preview]
    release: Callable[..., Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of question."""

    fields: frozenset[str]
    """What a question of this kind may say, beside its kind and price."""
    of: Callable[[Source, Mapping[str, Any]], Asked]
    """Puts a question to a data set; what does not fit is refused."""
    written: Callable[[Any], dict[str, Any]]
    """A release as it is kept, with JSON types only."""
    read: Callable[[Any, Receipt], Any]
    """The release that was kept, with the receipt that paid for it."""
    shown: Callable[[Any], Released]
    """What pages and tables show of a release: numbers with errors."""
    files: Mapping[str, File] = field(default_factory=dict)
    """The files that a release can be had as, beside those of every answer."""


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A question and its price. Made by :meth:`read`; everything in it is public.

    >>> asked = Question.read({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5})
    >>> asked.epsilon, asked.delta
    (0.5, None)
    """

    said: Mapping[str, Any]
    epsilon: Number
    delta: Number | None

    @classmethod
    def read(cls, said: Any) -> "Question":
        """The question that is written as these JSON types."""
        if not isinstance(said, Mapping):
            raise unread("it is not an object", 'write {"sql": "SELECT …", "epsilon": 0.5}.')
        kind = said.get("kind", "table")
        if not isinstance(kind, str) or kind not in KINDS:
            raise unread(f"there is no kind {str(kind)!r:.40}", f"it can be {', '.join(KINDS)}.")
        known = KINDS[kind].fields | {"kind", "epsilon", "delta"}
        for key in said:
            if key not in known:
                raise unread(f"{key!r:.40} means nothing", f"it can be {', '.join(sorted(known))}.")
        try:
            size = len(json.dumps(said, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise unread("it is not plain JSON", "leave out numbers that are not finite.") from None
        if size > _LARGEST:
            raise unread(f"it is longer than {_LARGEST} characters", "ask a smaller question.")
        if said.get("epsilon") is None:
            raise unread("it has no price", "write what it may cost: epsilon.")
        price, delta = positive("epsilon", number_of(said["epsilon"])), said.get("delta")
        none = delta in {None, 0} if not isinstance(delta, list | dict) else False
        return cls(dict(said), price, None if none else probability("delta", number_of(delta), one=False))

    @property
    def kind(self) -> Kind:
        """Which kind it is."""
        return KINDS[self.said.get("kind", "table")]

    @property
    def text(self) -> str:
        """Everything but the price, in one text: the same for the same question."""
        return json.dumps({name: one for name, one in self.said.items() if name not in _PRICE}, sort_keys=True)

    @property
    def price(self) -> dict[str, Any]:
        """What it may cost."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def of(self, source: Source) -> Asked:
        """The question, put to a data set, to preview or release. What does not fit it is refused."""
        try:
            return self.kind.of(source, self.said)
        except DefocusError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            raise unread(
                "its parts do not fit together", "compare it with the examples in the documentation."
            ) from None

    @property
    def conditions(self) -> tuple[frozenset[str], str]:
        """The conditions on rows, each in one spelling, and everything else in one text; see :mod:`.policy`."""
        return table_questions.conditions(self.text)


def _table(source: Source, said: Mapping[str, Any]) -> Asked:
    """Statistics of a table: a SELECT, or steps and aggregates."""
    table = source.paid(source.table)
    query = lowered(table, said)
    return Asked(table.ledger, query.preview, query.release)


def statistics() -> dict[str, Any]:
    """What can be asked of a graph, by name: all that needs no weights, times or groups beside its edges.

    >>> "triangles" in statistics()
    True
    """
    from defocus.graphs.question_names import questions  # noqa: PLC0415  # slow to load

    return {name: made for name, made in questions().items() if name not in {"group-edges", "interactions", "weights"}}


def _graph(source: Source, said: Mapping[str, Any]) -> Asked:
    """A statistic of a graph about the same people."""
    from defocus.graphs.question_names import asked  # noqa: PLC0415  # slow to load

    name = str(said.get("statistic", ""))
    if name not in statistics():
        raise unread(f"a graph is not asked {name!r:.40}", f"its statistic is one of {', '.join(statistics())}.")
    network = source.paid(source.graph(str(said.get("graph", ""))))
    query = asked(network, name, _settings(said))
    method = said.get("method")

    def release(*, progress: Any, **how: Any) -> Released:
        del progress  # it is not told
        made: Released = query.release(method=method, **how)
        return made

    return Asked(network.ledger, partial(query.preview, method=method), release)


def _graph_record(answer: Released) -> dict[str, Any]:
    from defocus.graphs.question import to_record  # noqa: PLC0415  # slow to load

    return to_record(answer)


def _graph_answer(record: Any, receipt: Receipt) -> Released:
    from defocus.graphs.question import from_record  # noqa: PLC0415  # slow to load

    return from_record(record, receipt)


def _synthesis(source: Source, said: Mapping[str, Any]) -> Asked:
    """Synthetic rows of the table, after its steps."""
    from defocus.synthesis import Synthesiser  # noqa: PLC0415  # slow to load

    table = stepped(source.paid(source.table), said)
    columns = {name: _domain(one) for name, one in dict(said.get("columns") or {}).items()}
    given: dict[str, Any] = {
        "constraints": tuple(listed(said.get("constraints") or [])),
        "computed": dict(said.get("computed") or {}),
    }
    given |= {name: said[name] for name in ("only", "focus", "method") if said.get(name)}
    records = said.get("records")
    if records is not None and count("records", records) > _RECORDS:
        raise unread(f"it wants more than {_RECORDS} records", "ask for fewer: each stands for several people.")
    wanted = Synthesiser(table, columns=columns, rows=records, **given)

    def release(*, progress: Any, **how: Any) -> Any:
        del progress
        return wanted.fit(**how)

    return Asked(table.ledger, wanted.preview, release)


def _domain(said: Any) -> Any:
    """What a column may hold: ``{"bounds": [0, 99]}``, ``{"values": ["a", "b"]}``, or null to find it."""
    if said is None:
        return None
    if isinstance(said, Mapping) and said.keys() <= {"bounds", "values"} and len(said) == 1:
        ((what, given),) = said.items()
        return tuple(given) if what == "bounds" else list(given)
    raise unread(
        "a column has neither bounds nor values", 'write {"age": {"bounds": [0, 99]}}, or null to find values.'
    )


def _generator(record: Any, receipt: Receipt) -> Any:
    from defocus.synthesis import Generator  # noqa: PLC0415  # slow to load

    return Generator.from_json(record, receipt)


def _quality(made: Any) -> Released:
    """How far synthetic rows are from the data in each pair of columns."""
    measured = made.quality
    distance, error = (measured[name].to_numpy() for name in ("distance", "error"))
    low, high = (np.clip(distance + side * 1.96 * error, 0, 1) for side in (-1, 1))
    column = AnswerColumn("distance", distance, error, low, high, integral=False, how="total variation, Gaussian noise")
    named = [one.name for one in measured.schema if pa.types.is_string(one.type)]
    keys = {name: measured[name].to_pylist() for name in named}
    mean = f"mean distance {made.distance:.4f} ± {made.distance_error:.2g}"
    more = {"things": ("pair", "pairs"), "notes": (mean,), "asked": made.asked}
    return Released(keys, (column,), made.question, made.receipt, made.rules, **more)


def _parquet(made: Any) -> bytes:
    """Synthetic rows, drawn anew: the generator was released, so drawing is free."""
    sink = io.BytesIO()
    pq.write_table(made.sample(), sink)
    return sink.getvalue()


MODELS = {
    "logistic": ("LogisticRegression", ("solver", "intervals", "fit_intercept", "C", "max_iter")),
    "additive": ("AdditiveModel", ("max_depth", "max_iter")),
    "naive-bayes": ("NaiveBayes", ("n_bins",)),
    "linear-regression": ("LinearRegression", ("solver", "intervals", "fit_intercept", "clip", "alpha", "max_iter")),
    "k-means": ("KMeans", ("n_clusters", "max_iter")),
    "pca": ("PCA", ("n_components",)),
}
"""What can be fitted, by the names that ``defocus train`` has, and the settings that it takes here."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted model: what was released of it, and the charge that paid for it.

    >>> fitted = {"n_features_in_": 1, "coef_": [0.5], "intercept_": 2.0}
    >>> record = {"model": "LinearRegression", "features": {"age": [0, 100]}, "fitted": fitted}
    >>> Model(record, None).estimator.predict([[10.0]])
    array([7.])
    """

    record: Mapping[str, Any]
    receipt: Receipt | None

    @property
    def estimator(self) -> Any:
        """The model, which predicts as the one that was fitted."""
        from defocus import learning  # noqa: PLC0415  # slow to load

        kind = getattr(learning, choice("model", self.record["model"], sorted(kind for kind, _ in MODELS.values())))
        low, high = zip(*self.record["features"].values(), strict=True)
        return kind.restored(self.record["fitted"], bounds=(low, high))

    @property
    def answer(self) -> Released:
        """What was released, number by number."""
        if self.receipt is None:
            raise InvalidParameterError("The model has no receipt.", fix="take the one that was released.")
        return from_record(self.record["shown"], self.receipt)

    def to_file(self) -> bytes:
        """The file that ``defocus predict`` reads."""
        fitted, classes = dict(self.record["fitted"]), self.record["fitted"].get("classes_", [])
        if classes:
            fitted["classes_"] = list(range(len(classes)))
        told = {"model": self.record["model"], "features": self.record["features"], "classes": classes}
        return json.dumps({"format": "defocus model 1", **told, "fitted": fitted}, indent=2).encode()


def _model(source: Source, said: Mapping[str, Any]) -> Asked:
    """A model that is fitted to columns of the table, after its steps."""
    from defocus import learning  # noqa: PLC0415  # slow to load

    name = str(said.get("model", ""))
    if name not in MODELS:
        raise unread(f"there is no model {name!r:.40}", f"it is one of {', '.join(MODELS)}.")
    (called, known), settings = MODELS[name], _settings(said)
    for setting in settings:
        if setting not in known:
            raise unread(f"{name} has no setting {setting!r:.40}", f"it has {', '.join(known)}.")
    kind = getattr(learning, called)
    table = stepped(source.paid(source.table), said)
    rows = table.examples(listed(said.get("inputs") or []), said.get("target") or None)
    question = f"{name} of {', '.join(rows.inputs)}{f' for {rows.target}' if rows.target else ''}"

    def preview(*, epsilon: Number, delta: Number | None = None) -> Preview:
        seen: Preview = kind(**settings, epsilon=epsilon, delta=delta or 0).preview(rows)
        return replace(seen, question=question)

    def release(*, epsilon: Number, delta: Number | None, progress: Any, **how: Any) -> Model:
        del progress
        made = kind(**settings, epsilon=epsilon, delta=delta or 0, **how).fit(rows)
        return Model(_kept(made, rows, question), made.receipt_)

    return Asked(table.ledger, preview, release)


def _kept(made: Any, rows: Any, question: str) -> dict[str, Any]:
    fitted = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in made.released().items()}
    low, high = rows.input_bounds
    features = {name: [float(a), float(b)] for name, a, b in zip(rows.inputs, low, high, strict=True)}
    kept = {"format": "defocus fit 1", "model": type(made).__name__, "features": features, "fitted": fitted}
    return {**kept, "shown": to_record(_parts(made, rows, question))}


def _parts(made: Any, rows: Any, question: str) -> Released:
    """Every number of a model, or its coefficients with intervals where these were paid for."""
    rules = rules_of([f"inputs are cut to their declared bounds: {', '.join(rows.inputs)}"])
    if "inference_" in made.__dict__:
        found = made.coefficients()
        keys = {name: pa.array(values, pa.string()) for name, values in found.keys.items()}
        return Released(keys, found.columns, question, made.receipt_, found.rules, notes=tuple(found.notes))
    names, values = [], []
    for name, value in made.released().items():
        array = np.asarray(value)
        if name != "n_features_in_" and array.dtype.kind in "fi":
            names += [f"{name.rstrip('_')}{list(place) if place else ''}" for place in np.ndindex(array.shape)]
            values += array.ravel().tolist()
    unknown = np.full(len(values), np.nan)
    how = "computed from noisy sums"
    column = AnswerColumn("value", np.array(values), unknown, unknown, unknown, integral=False, how=how, error_of="")
    return Released(
        {"parameter": pa.array(names, pa.string())},
        (column,),
        question,
        made.receipt_,
        rules,
        things=("number", "numbers"),
    )


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Settings are numbers, switches and plain words: nothing that could be a path or a list of anything."""
    given = said.get("settings") or {}
    if not isinstance(given, Mapping):
        raise unread("settings are no object", 'write {"settings": {"k": 3}}.')
    for name, value in given.items():
        plain = isinstance(value, str) and _SETTING.fullmatch(value)
        if not plain and not (isinstance(value, int | float) and abs(value) <= _MOST):
            raise unread(f"the setting {name!r:.40} is no plain value", f"write a word, or a number up to {_MOST}.")
    return dict(given)


def _same(made: Released) -> Released:
    return made


KINDS = {
    "table": Kind(
        fields=_TABLE | {"sql", "dialect", "bounds", "at_most", "intervals", "keys", "group_by", "aggregates"},
        of=_table,
        written=to_record,
        read=from_record,
        shown=_same,
    ),
    "graph": Kind(
        fields=frozenset({"graph", "statistic", "settings", "method"}),
        of=_graph,
        written=_graph_record,
        read=_graph_answer,
        shown=_same,
    ),
    "synthesis": Kind(
        fields=_TABLE | {"only", "columns", "constraints", "computed", "records", "focus", "method"},
        of=_synthesis,
        written=lambda made: made.to_json(),
        read=_generator,
        shown=_quality,
        files={
            "synthetic.csv": ("text/csv; charset=utf-8", lambda made: csv_text(made.sample()).encode()),
            "synthetic.parquet": ("application/vnd.apache.parquet", _parquet),
            "generator.json": ("application/json", lambda made: json.dumps(made.to_json()).encode()),
        },
    ),
    "model": Kind(
        fields=_TABLE | {"model", "inputs", "target", "settings"},
        of=_model,
        written=lambda made: dict(made.record),
        read=Model,
        shown=lambda made: made.answer,
        files={"model.json": ("application/json", Model.to_file)},
    ),
}
"""Every kind of question, by the name that a question has it by; one without is about a table."""
