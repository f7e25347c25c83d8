"""Every public callable, found by looking; and what is known about each: a driver, or why it needs none.

To add a driver: write a test that runs the callable on a base and on neighbours (``watching.compared``), and name the
callable here under ``DRIVEN`` with the test that drives it. What is made of public facts alone is told by the types of
its parameters; what the types do not tell is named in ``PUBLIC`` with the reason. Anything else fails a test by name.
"""

import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import typer

import defocus

__all__ = ["DRIVEN", "PUBLIC", "commands", "entries", "private"]

_PRIVATE = frozenset(
    [
        "data",
        "X",
        "y",
        "x",
        "value",
        "values",
        "edges",
        "records",
        "table",
        "rows",
        "codes",
        "counts",
        "answers",
        "utilities",
        "model",
        "loss",
        "batch",
        "columns",
        "message",
        "messages",
        "reports",
        "validation",
        "probe",
        "graph",
        "inputs",
        "targets",
        "losses",
        "norms",
        "left",
        "right",
        "leading",
        "labels",
        "images",
        "sequences",
        "estimate",
        "result",
    ]
)
"""Names of parameters under which private data may come in."""


def rooms() -> list[str]:
    """The public rooms."""
    return [name for name in dir(defocus) if inspect.ismodule(getattr(defocus, name))]


def entries() -> Iterator[tuple[str, Any]]:
    """Every public function, and every public method of a public class, each once, by its name in its room."""
    seen: set[int] = set()
    for room in [*rooms(), ""]:
        home = importlib.import_module(f"defocus.{room}" if room else "defocus")
        for name in dir(home) if home is defocus else home.__all__:
            found = getattr(home, name)
            if id(found) in seen or inspect.ismodule(found) or not callable(found):
                continue
            seen.add(id(found))
            place = f"{room}.{name}" if room else name
            if inspect.isclass(found):
                if issubclass(found, BaseException):
                    continue
                yield place, found
                for inner in sorted(vars_of(found)):
                    method = getattr(found, inner)
                    yield f"{place}.{inner}", method
            else:
                yield place, found


def vars_of(made: type) -> set[str]:
    """The names of the public methods of a class that are written in this package."""
    found = set()
    for each in made.__mro__:
        if each.__module__.startswith("defocus"):
            found |= {
                name
                for name, method in vars(each).items()
                if not name.startswith("_")
                and (inspect.isfunction(method) or isinstance(method, classmethod | staticmethod))
            }
    return found


def private(found: Any) -> list[str]:
    """The parameters through which private data may come in, by their names."""
    try:
        wanted = inspect.signature(found).parameters
    except ValueError:
        return []
    return [name for name in wanted if name in _PRIVATE]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of the terminal, with its parameters."""
    from defocus.cli.app import app  # noqa: PLC0415 -- it loads every command

    def walk(command: Any, above: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
        inner = getattr(command, "commands", None)
        if inner:
            for name, each in inner.items():
                yield from walk(each, (*above, name))
        else:
            yield " ".join(above), [each.name for each in command.params]

    yield from walk(typer.main.get_command(app), ())


_ESTIMATORS = (
    "AdditiveModel",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NaiveBayes",
    "PCA",
    "StandardScaler",
)

DRIVEN: Mapping[str, str] = {
    "federated.federation": "tests/federated/test_federation: before noise the sites add up to their union",
    "synthesis.Synthesiser": "test_tables: synthetic data",
    **{f"synthesis.{name}": "test_training: synthetic images and sequences" for name in (
        "ExampleSynthesiser", "Images.encode", "Sequences.encode")},
    "synthesis.PeopleSynthesiser": "test_tables: synthetic people",
    "synthesis.synthesise_people": "test_tables: synthetic people",
    "synthesis.synthesise": "test_tables: synthetic data",
    "tables.open": "test_tables: every way to open",
    "tables.Table": "test_tables",
    "tables.Table.examples": "test_tables: models of a table; test_training: a table",
    "graphs.open_graph": "test_graphs: every way to open",
    "graphs.Network": "test_graphs: every question by every method",
    "graphs.GraphQuery": "test_graphs",
    "graphs.neighbour_sums": "test_graphs",
    "release.release": "test_numbers: every mechanism",
    "ledger.Ledger.record": "test_numbers, test_tables: what every release records",
    "workloads.records": "test_numbers",
    "workloads.Plan.release": "test_numbers",
    "workloads.Running.add": "test_numbers",
    "mechanisms.Grid.total": "test_numbers",
    "mechanisms.Grid.contributions": "test_numbers",
    "learning.Trainer": "test_training",
    "learning.Trainer.step": "test_training: fit takes every step",
    "learning.Gradients": "test_training",
    "learning.Gradients.clipped_sum": "test_training",
    "learning.search": "test_training",
    "learning.evaluate": "test_evaluation; test_tables: models of a table",
    "learning.Evaluation": "test_evaluation: made by evaluate",
    "learning.Evaluation.exact": "test_evaluation: what release adds noise to",
    "learning.choose": "test_evaluation: of what evaluate made; tests/learning/evaluation/test_choice: its law",
    "learning.Metrics.vector": "test_training: shown by default",
    **{f"learning.{name}.{how}": "test_estimators" for name in _ESTIMATORS for how in ("fit", "preview")},
    **{
        f"mechanisms.{name}.{how}": "test_numbers: through release, which checks and samples"
        for name in (
            "AboveThreshold", "Exponential", "Gaussian", "Geometric", "Laplace", "PartitionSelection", "PermuteAndFlip",
            "Quantiles", "RangeFinding", "ReportNoisyMax", "SubsetChoice",
        )
        for how in ("sample", "check", "keep", "locate", "stream")
    },
    "mechanisms.RangeFinding.add": "test_numbers: sample adds, then reads; test_tables: found bounds",
    **{
        f"mechanisms.{name}.{how}": "test_graphs: the questions that use it"
        for name in ("Ladder", "NoisyLocalSensitivity", "Ramp")
        for how in ("sample", "check", "bounded")
    },
    "mechanisms.RandomizedResponse.sample": "test_local: k-rr",
    "mechanisms.RandomizedResponse.check": "test_local: k-rr",
    "local.Client.encode": "test_local",
    "local.Client.report": "test_local",
    "local.Client.report_json": "test_local",
    "local.Oracle.encode": "test_local",
    "local.Mean.encode": "test_local",
    "local.Memory.report": "test_local",
    "local.ChangingMemory.report": "test_local",
    "local.Memory.payload": "test_local",
    "local.Attributes.encode": "test_local",
    "local.Categories.codes": "test_local: every categorical client",
    "local.Interval.positions": "test_local: every numeric client",
    "local.HeavyHitters.client": "test_local",
    "local.HeavyHitters.device": "test_local",
    "local.heavy_hitters": "test_local",
    **{f"graphs.{name}.exact": "test_graphs: the questions that use it" for name in (
        "Degrees", "Edges", "Histogram", "Joint", "Stars", "Triangles", "Statistic")},
    **{f"graphs.{name}": "test_graphs: in memory, every way to open builds one" for name in (
        "build", "build_directed", "Stars.level", "Stars.widths", "Triangles.local")},
}  # fmt: skip
"""What takes private data, and where it is driven."""

_APPLIED = "applies what was released to the caller's own rows; nothing of them is released"
_RELEASED = "takes what was released, or reports that were randomised"
_FACTS = "takes public facts"

PUBLIC: Mapping[str, str] = {
    "server.RemoteGrouped": "what is asked, as JSON: the server asks its own table",
    **dict.fromkeys(("server.RemoteTable.derive", "server.RemoteTable.group_by", "server.RemoteTable.part",
        "server.RemoteTable.model", "server.Role", "server.Settings"), _FACTS),
    "workloads.Running": "made by RunningSum.start and resume, which are driven",
    **{f"learning.{name}.{how}": _APPLIED for name in _ESTIMATORS for how in (
        "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform",
            "score")},
    **{f"local.{name}": _RELEASED for name in (
        "Oracle.estimate", "Mean.estimate", "Mean.distribution", "Server.add", "Server.add_many", "Server.add_records",
        "Server.add_reports", "Server.merge", "State.from_bytes", "ChangingServer.add", "from_arrow",
        "to_arrow", "write_parquet", "process",
        "Attributes.table", "HeavyHitters.kept", "Estimate", "Reports", "Tables", "Collected",
        "collect")},
    "mechanisms.RandomizedResponse.estimate": _RELEASED,
    "mechanisms.RangeFinding.read": _RELEASED,
    "mechanisms.Grid.decimal": _RELEASED,
    "mechanisms.Grid.nearest": "takes public numbers",
    "tables.report": _RELEASED,
    "tables.AnswerColumn": _RELEASED,
    "tables.Written": _RELEASED,
    "tables.Cube": "made by Table.cube of public facts",
    "federated.Coordinator.accept": "masked vectors: tests/federated/test_secure_aggregation looks at what they show",
    "federated.Party.receive": "messages of the coordinator",
    "federated.Party.bring": "integers that were noised, as those of federated.Party",
    "federated.Party": "integers that were noised, of a public length: every 64-bit value is masked alike",
    "synthesis.Generator": _RELEASED,
    "synthesis.GraphGenerator": _RELEASED,
    "local.Categories": _FACTS,
    "synthesis.PeopleGenerator": _RELEASED,
    "synthesis.Combined": _RELEASED,
    "synthesis.Comparison": "exact, for whoever holds the private rows, and says so; nothing is released",
    "synthesis.Synthesiser.preview": _FACTS,
    "tables.Examples": "made by Table.examples of public facts",
    "tables.Grouped": "made by Table.group_by of public facts",
    "tables.Query": "made by agg of public facts",
    "tables.Invariants": _FACTS,
    "local.ContributionFilter.sends": "runs on the person's own device; what it lets through is a row like any other",
    "graphs.Preview": _FACTS,
    "tables.Bound": _FACTS,
    "graphs.Released": _RELEASED,
    "graphs.Graph.neighbours": "the graph itself, which its owner holds; a network shows none",
    "graphs.Graph": "likewise",
    "graphs.DirectedGraph": "likewise",
    "workloads.WorkloadAnswer": _RELEASED,
    "workloads.Records": "made by records",
    "release.Release": _RELEASED,
    "ledger.Recorded": _RELEASED,
    "ledger.Terms.read": _FACTS,
    "ledger.Declaration.read": _FACTS,
    "ledger.Head.read": _RELEASED,
    "ledger.SigningKey.sign": "signs what is released",
    "ledger.Ledger": "made by open, of declared facts",
    "privacy.appearance": _FACTS,
    "learning.SearchResult": _RELEASED,
    "learning.Gradients.check": "made-up examples, before the charge",
    "learning.fix": "a model, which is public",
    "learning.adapt": "likewise",
    "learning.merge": "a model that was trained, and is as private as its run",
    "learning.load_weights": "a public model",
    "learning.save_weights": "weights that are public, or released",
    "learning.EvaluationAnswer": _RELEASED,
    **{f"errors.{name}": "checks a public parameter" for name in (
        "choice", "count", "finite", "in_range", "non_negative", "positive", "probability", "storable", "whole")},
    **dict.fromkeys(("graphs.Public", "learning.PerLayerClipping", "learning.Suggestion",
        "learning.Suggestion.error_at", "learning.Metrics", "learning.suggest",
        "local.Comparison.of", "local.Option", "local.collection_event",
        "mechanisms.RandomizedResponse.interval", "noise.bernoulli_exp", "privacy.Adjacency",
        "privacy.Budget.covers", "privacy.from_wire", "tables.Bound.of", "tables.Column",
        "tables.Choice.sign", "tables.Choice.take", "tables.choose_budget",
        "tables.Column.value", "tables.Kind", "tables.Schema", "tables.Table.bound",
        "tables.Grouped.mode", "tables.Grouped.top", "tables.Table.mode", "tables.Table.top",
        "tables.Table.cube", "tables.Table.derive", "tables.Table.group_by", "tables.Table.part",
        "tables.Table.hierarchy",
        "tables.correlation", "tables.covariance", "tables.histogram"), _FACTS),
    **dict.fromkeys(("mechanisms.Bounded", "mechanisms.Estimate", "graphs.Released.take",
        "tables.AnswerColumn.taken", "workloads.Step"), _RELEASED),
    "mechanisms.Mechanism.check": "a protocol; those that have it are driven",
    "mechanisms.Mechanism.sample": "likewise",
    "workloads.Workload.answer": "exact answers for whoever holds the data; nothing is released",
    "workloads.Marginals.answer": "likewise",
    "audit.lower_bound": "synthetic neighbours, which an auditor chooses",
    "audit.search": "likewise",
    "audit.batched": "likewise",
    **dict.fromkeys(
        ("audit.ClosestRecord", "audit.ClosestRecord.of", "audit.ClosestRecord.places", "audit.MarginalDensity",
        "audit.MarginalDensity.of", "audit.membership"),
        "an attack, for whoever holds the rows: it releases nothing",
    ),
    "audit.Reconstruction": "secrets that an auditor made up",
    "audit.published": _RELEASED,
    "audit.reconstruct": _RELEASED,
    "audit.one_run": "scores and coins of canaries, which an auditor made",
}  # fmt: skip
"""What has a parameter that sounds private and is not, and why."""
