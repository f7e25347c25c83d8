"""``defocus graph``: opening a graph, asking it, and showing the answer."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from defocus.cli.options import total
from defocus.cli.questions import check_places, deliver, remote_table, show
from defocus.cli.terminal import in_options
from defocus.errors import InvalidParameterError, probability
from defocus.graphs import Network, open_graph
from defocus.graphs.kernels.rows import ready
from defocus.graphs.node_names import Lines
from defocus.graphs.open import place_of
from defocus.graphs.question_names import asked
from defocus.ledger import Ledger
from defocus.privacy.units import Unit, edge, item, node, weight

__all__ = ["ask"]


def ask(
    *,
    question: str,
    settings: list[str] | None,
    epsilon: float,
    delta: float | None,
    method: str | None,
    server: str | None,
    dataset: Path,
    reason: str | None,
    purpose: str | None,
    who: str | None,
    request: str | None,
    out: Path | None,
    plot: Path | None,
    preview: bool,
    confidence: float,
    explain: bool,
    as_json: bool,
    **opening: Any,
) -> None:
    """Open the graph, preview or release the question, and print it; ``opening`` is what is said about the graph."""
    given = dict(map(_setting, settings or []))
    if server is None and opening["engine"] is None:
        ready()  # before a ledger is made
    check_places(out, plot)
    level = float(probability("confidence", confidence, zero=False, one=False))
    how: dict[str, Any] = {"explain": explain, "as_json": as_json, "spoken": _spoken}
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "method": method}
    if server is not None:
        there = remote_table(server, dataset).graph(opening["data"], question, method=price.pop("method"), **given)
        if preview:
            show(there.preview(**price), **how)
            return
        answer = there.release(**price, purpose=purpose, reason=reason, request=request)
        deliver(answer, out=out, plot=plot, confidence=level, **how)
        return
    with _opened(look=preview, **opening) as network:
        query = asked(network, question, given)
        if preview:
            show(query.preview(**price), **how)
            return
        answer = query.release(**price, purpose=purpose, who=who, request=request)
    deliver(answer, out=out, plot=plot, confidence=level, **how)


def _spoken(line: str) -> str:
    """A line of an answer in which a method that it names is named as the option."""
    return in_options(line, {"method": "--method"})


@contextmanager
def _opened(
    *,
    look: bool,
    data: str,
    unit: str | None,
    bound: float | None,
    per_person: int | None,
    budget: float | None,
    budget_delta: float,
    ledger: str | None,
    nodes: str | None,
    ends: str | None,
    directed: bool,
    table: str | None,
    **more: Any,
) -> Iterator[Network]:
    """The graph. Where one only looks, its ledger is for reading; one that nobody has made yet is gone afterwards."""
    protected, limit = _unit(unit, bound, per_person), total(budget, budget_delta)
    with TemporaryDirectory() as folder, ExitStack() as opened:
        place: Ledger | Path | str | None = ledger
        if look:
            there = Ledger.find(ledger or place_of(data, table, protected, limit))
            if there is not None:
                place = opened.enter_context(there)
            elif unit is not None and budget is not None:  # else it is refused, and none is made
                place = Path(folder) / "preview.ledger"
        graph = open_graph(
            data,
            unit=protected,
            budget=limit,
            nodes=_nodes(nodes),
            ledger=place,
            ends=None if ends is None else [part.strip() for part in ends.split(",")],
            directed=directed or None,
            table=table,
            **more,
        )
        yield opened.enter_context(graph)


def _unit(kind: str | None, bound: float | None, per_person: int | None) -> Unit | None:
    if per_person is not None and kind not in {"edge", "event", "weight"}:
        raise InvalidParameterError(
            "--per-person is how many edges, events or weights one person has, and none of these is protected here.",
            fix="leave --per-person out, or pass --unit edge, --unit event or --unit weight.",
        )
    if bound is not None and kind not in {"node", "weight"}:
        raise InvalidParameterError(
            "--bound is the largest degree of a node or the largest weight, and neither is protected here.",
            fix="leave --bound out, or pass --unit node or --unit weight.",
        )
    if kind == "weight":
        if bound is None:
            raise InvalidParameterError("Weights are protected up to a bound.", fix="pass --bound, the largest weight.")
        return weight(bound=bound, per_person=per_person)
    if kind == "node":
        whole = bound is not None and float(bound).is_integer()
        return node(max_degree=int(bound) if bound is not None and whole else bound)  # type: ignore[arg-type]  # refused
    return None if kind is None else {"edge": edge, "event": item}[kind](per_person=per_person)


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
