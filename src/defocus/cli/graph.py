"""``defocus graph``: opening a graph, asking it, and showing the answer."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from defocus.cli.options import total
from defocus.cli.questions import check_places, deliver, show
from defocus.cli.terminal import in_options
from defocus.errors import InvalidParameterError
from defocus.graphs import GraphQuery, Network, open_graph
from defocus.graphs.kernels.rows import ready
from defocus.graphs.ledgers import place_of
from defocus.graphs.node_names import Lines
from defocus.ledger import Ledger
from defocus.privacy.units import Unit, edge, item, node, weight

__all__ = ["Asked", "Opening", "Shown", "ask", "questions"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which graph, and what is said about it."""

    data: str
    unit: str | None
    nodes: str | None
    budget: float | None
    budget_delta: float
    ledger: str | None
    name: str | None
    ends: str | None
    table: str | None
    header: bool | None
    engine: str | None
    memory: str | None
    directed: bool
    weights: str | None
    time: str | None
    bound: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked, and at which price."""

    question: str
    settings: tuple[str, ...]
    method: str | None
    epsilon: float
    delta: float | None
    purpose: str | None
    who: str | None
    request: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How the answer is shown, and where it is written."""

    out: Path | None
    plot: Path | None
    preview: bool
    explain: bool
    as_json: bool


def ask(opening: Opening, asked: Asked, shown: Shown) -> None:
    """Open the graph, preview or release the question, and print it."""
    if opening.engine is None:
        ready()  # before a ledger is made
    check_places(shown.out, shown.plot)
    how: dict[str, Any] = {"explain": shown.explain, "as_json": shown.as_json, "spoken": _spoken}
    with _opened(opening, look=shown.preview) as network:
        query = _query(network, asked)
        if shown.preview:
            show(query.preview(epsilon=asked.epsilon, delta=asked.delta, method=asked.method), **how)
            return
        answer = query.release(
            epsilon=asked.epsilon,
            delta=asked.delta,
            method=asked.method,
            purpose=asked.purpose,
            who=asked.who,
            request=asked.request,
        )
    deliver(answer, out=shown.out, plot=shown.plot, **how)


def _spoken(line: str) -> str:
    """A line of an answer in which a method that it names is named as the option."""
    return in_options(line, {"method": "--method"})


def questions() -> Mapping[str, Any]:
    """What can be asked of a graph, by the names that the command takes."""
    found = {}
    for name, method in inspect.getmembers(Network, inspect.isfunction):
        returns = inspect.signature(method).return_annotation
        if not name.startswith("_") and name != "ask" and returns in {GraphQuery, "GraphQuery"}:
            found[name.replace("_", "-")] = method
    return found


@contextmanager
def _opened(opening: Opening, *, look: bool) -> Iterator[Network]:
    """The graph. Where one only looks, its ledger is for reading; one that nobody has made yet is gone afterwards."""
    with TemporaryDirectory() as folder, ExitStack() as opened:
        place: Ledger | Path | str | None = opening.ledger
        if look:
            budget = total(opening.budget, opening.budget_delta)
            found = Ledger.find(opening.ledger or place_of(opening.data, opening.table, _unit(opening), budget))
            if found is not None:
                place = opened.enter_context(found)
            elif opening.unit is not None and opening.budget is not None:  # else it is refused, and none is made
                place = Path(folder) / "preview.ledger"
        yield opened.enter_context(_graph(opening, place))


def _graph(opening: Opening, ledger: Ledger | Path | str | None) -> Network:
    return open_graph(
        opening.data,
        unit=_unit(opening),
        budget=total(opening.budget, opening.budget_delta),
        nodes=_nodes(opening.nodes),
        ledger=ledger,
        name=opening.name,
        ends=None if opening.ends is None else [part.strip() for part in opening.ends.split(",")],
        directed=opening.directed or None,
        weights=opening.weights,
        time=opening.time,
        table=opening.table,
        header=opening.header,
        engine=opening.engine,
        memory=opening.memory,
    )


def _unit(opening: Opening) -> Unit | None:
    bound = opening.bound
    if bound is not None and opening.unit not in {"node", "weight"}:
        raise InvalidParameterError(
            "--bound is the largest degree of a node or the largest weight, and neither is protected here.",
            fix="leave --bound out, or pass --unit node or --unit weight.",
        )
    if opening.unit == "weight":
        if bound is None:
            raise InvalidParameterError("Weights are protected up to a bound.", fix="pass --bound, the largest weight.")
        return weight(bound=bound)
    if opening.unit == "node":
        whole = bound is not None and float(bound).is_integer()
        return node(max_degree=int(bound) if bound is not None and whole else bound)  # type: ignore[arg-type]  # refused
    return {None: None, "edge": edge(), "event": item()}[opening.unit]


def _nodes(text: str | None) -> Any:
    """A number, the word, or the lines of a file."""
    if text is None or text in {"as-listed", "as listed"}:
        return text and "as listed"
    if text.removeprefix("-").isdecimal() and len(text) < 20:
        return int(text)
    if not Path(text).is_file():
        raise InvalidParameterError(
            f"--nodes {text!r:.80} is neither a number, nor as-listed, nor a file.",
            fix="pass --nodes 4039, --nodes as-listed, or a file with the name of a node in each line.",
        )
    written = Path(text).read_bytes().decode("utf-8", "surrogateescape")
    return Lines(name.removesuffix("\r") for name in written.split("\n"))


def _query(network: Network, asked: Asked) -> GraphQuery:
    known = questions()
    method = known.get(asked.question.replace("_", "-"))
    if method is None:
        raise InvalidParameterError(
            f"A graph cannot be asked {asked.question!r:.60}.", fix=f"ask one of {', '.join(sorted(known))}."
        )
    settings = dict(_setting(text) for text in asked.settings)
    parameters = inspect.signature(method).parameters
    names, empty = [name for name in parameters if name != "self"], inspect.Parameter.empty
    for name in settings:
        if name not in names:
            raise InvalidParameterError(
                f"{asked.question} has no setting {name!r:.60}.",
                fix=f"its settings are {', '.join(names)}." if names else "it has none.",
            )
    for name in names:
        needed = parameters[name].kind is inspect.Parameter.KEYWORD_ONLY and parameters[name].default is empty
        if needed and name not in settings:
            raise InvalidParameterError(f"{asked.question} needs the setting {name}.", fix=f"pass --set {name}=….")
    listed = [name for name in names if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL and name in settings]
    several = [part.strip() for name in listed for part in str(settings.pop(name)).split(",")]
    query: GraphQuery = method(network, *several, **settings)
    return query


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidParameterError(f"--set {text!r:.60} is not a setting.", fix="write for example --set k=3.")
    for kind in (int, float):
        try:
            return name.replace("-", "_"), kind(value)
        except ValueError:
            continue
    return name.replace("-", "_"), value
