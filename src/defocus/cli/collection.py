"""``defocus choose``, ``estimate`` and ``shuffler``."""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final, get_args

from defocus.answers.plots import blank
from defocus.cli.plots import ready, save
from defocus.cli.questions import check_places, deliver
from defocus.cli.terminal import console, table, to_json
from defocus.errors import DefocusError, InvalidParameterError
from defocus.local.aggregation import count_files
from defocus.local.designs import Categorical, Design, Numeric, from_json
from defocus.local.estimates import CollectedAnswer, Process
from defocus.local.means import Mean
from defocus.local.oracles import Oracle
from defocus.local.servers import State
from defocus.local.shuffling import Key, Round, Service, Shuffler, protocol_from_json
from defocus.local.shuffling.rounds import Protocol
from defocus.local.trust_models import Comparison, Option, Task, compare
from defocus.privacy.numbers import roughly

__all__ = [
    "COMPARED",
    "Asked",
    "curve",
    "described",
    "run_estimate",
    "run_shuffler",
    "show_choice",
    "show_recommendation",
]


COMPARED = get_args(Task)
"""What models of trust are compared for; for the rest, rooms and mechanisms are listed."""
_SIZES = (100, 1000, 10_000, 100_000, 1_000_000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be estimated, of how many, at which price."""

    task: Task
    users: int
    epsilon: float
    delta: float | None
    categories: int
    error: float | None

    def compared(self, users: int | None = None) -> Comparison:
        """The options, for another number of users if told."""
        n = self.users if users is None else users
        return compare(n, self.epsilon, self.task, delta=self.delta, categories=self.categories)


def show_choice(asked: Asked, *, plot: Path | None, as_json: bool) -> None:
    """Print the options, the least error first, and which one is recommended."""
    if plot is not None:
        ready(plot)
    comparison = asked.compared()
    chosen = comparison.recommend(error=asked.error)
    if plot is not None:
        save(curve(asked), plot)
    if as_json:
        to_json(
            {
                "task": comparison.task,
                "users": comparison.users,
                "epsilon": float(comparison.epsilon),
                "delta": float(comparison.delta),
                "sampling_error": comparison.sampling_error,
                "options": [_written(option) for option in comparison.options],
                "left_out": list(comparison.left_out),
                "recommended": _written(chosen),
            }
        )
        return
    screen = console()
    heads = ["model", "method", "error", "of users", "messages"]
    rows = [
        (o.model, o.method, roughly(o.error), f"{o.error / comparison.users:.2%}", f"{o.messages:.3g}")
        for o in comparison.options
    ]
    screen.print(
        f"{comparison.task} of {comparison.users} users, epsilon {comparison.epsilon:g},"
        f" delta {float(comparison.delta):g}"
    )
    screen.print(table(heads, rows, numbers=heads[2:]))
    for option in (comparison.of(model) for model in dict.fromkeys(o.model for o in comparison.options)):
        screen.print(f"{option.model} trusts {option.trust}.")
    for why in comparison.left_out:
        screen.print(f"Left out: {why}")
    screen.print(f"Recommended: {chosen.model}, {chosen.method}. {_why(asked, comparison, chosen)}")


def show_recommendation(*, as_json: bool, **asked: Any) -> None:
    """Print the ways that trust and law allow, the least error first, each with its line."""
    from defocus.recommendations import recommend  # noqa: PLC0415 # it loads all rooms

    found = recommend(**asked)
    if as_json:
        to_json(asdict(found))
        return
    screen = console()
    screen.print(f"{found.task} of {asked['people']}, epsilon {asked['epsilon']:g}; {found.measure}")
    heads = ["trusts", "law", "room", "mechanism", "error"]
    rows = [
        (way.trust, way.law, way.room, way.mechanism, "-" if way.error is None else roughly(way.error))
        for way in found.ways
    ]
    screen.print(table(heads, rows, numbers=heads[4:]))
    for way in found.ways:
        screen.print(f"{way.room}, {way.mechanism}: {way.note}", soft_wrap=True) if way.note else None
    for why in found.left_out:
        screen.print(f"Left out: {why}", soft_wrap=True)
    if found.best is None:
        screen.print("Nothing here does that with so little trust, or under that law.")
    else:
        screen.print(f"Recommended: {found.best.line}", soft_wrap=True, markup=False)


def curve(asked: Asked) -> Any:
    """A figure of each model's error against the number of users: the root of n, seen."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for n in _SIZES:
        comparison = asked.compared(n)
        for model in dict.fromkeys(option.model for option in comparison.options):
            lines.setdefault(model, []).append((n, comparison.of(model).error))
        lines.setdefault("sampling", []).append((n, comparison.sampling_error))
    figure = blank(7, 4.5)
    axes = figure.add_subplot()
    for name, points in lines.items():
        axes.plot([n for n, _ in points], [value for _, value in points], marker="o", markersize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel=f"standard error at epsilon {asked.epsilon:g}")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    return figure


def _why(asked: Asked, comparison: Comparison, chosen: Option) -> str:
    limit = comparison.sampling_error if asked.error is None else asked.error
    name = "the sampling error of so many users" if asked.error is None else "the error asked for"
    if chosen.error <= limit:
        return f"It needs the least trust of those within {name}, {roughly(limit)}."
    return f"None is within {name}, {roughly(limit)}; this one errs least."


def _written(option: Option) -> dict[str, Any]:
    return {
        "model": option.model,
        "method": option.method,
        "error": option.error,
        "trust": option.trust,
        "messages": option.messages,
        "local_epsilon": option.local_epsilon,
    }


_LONGEST = 1 << 26


def run_estimate(
    oracle: Path,
    reports: Sequence[str],
    *,
    processing: Any,
    engine: str | None,
    out: Path | None,
    plot: Path | None,
    **shown: bool,
) -> None:
    """Count the reports where they lie, estimate, and show."""
    check_places(out, plot)
    design = described(oracle)
    counted = count_files(design, list(reports), engine=engine)
    answer = _estimated(design, counted, None if processing is None else processing.value)
    deliver(answer, out=out, plot=plot, **shown)


def described(oracle: Path) -> Design:
    """The description in a file."""
    with oracle.open("rb") as file:
        return from_json(file.read(_LONGEST))


def _estimated(design: Design, counted: State, processing: Process | None) -> CollectedAnswer:
    if isinstance(design, Numeric):
        if processing is not None:
            raise InvalidParameterError(
                "A processing is for counts, but this oracle is about numbers.", fix="leave processing= out."
            )
        return Mean(design).estimate(counted)
    assert isinstance(design, Categorical)  # noqa: S101 # designs are of one kind or the other
    return Oracle(design).estimate(counted, processing=processing)


def _asked(oracle: Path) -> Design | Protocol:
    """The oracle or protocol that a file describes."""
    with oracle.open("rb") as file:
        text = file.read(_LONGEST)
    return protocol_from_json(text) if b"defocus.protocol" in text[:200] else from_json(text)


_KEY = 32
"""Bytes of a public key."""


def run_shuffler(
    oracle: Path, *, users: int, honest: int | None, analyser: str, out: Path, port: int, batches: int | None
) -> None:
    """Make the round, write it, and serve. The private key exists in this process only, and ends with it."""
    key, reader, design = Key.generate(), *_given(oracle, analyser)
    described = Round(design, users, key.public, reader, honest or 0)
    service = Service(Shuffler(described, key), port=port, batches=batches)
    out.write_text(described.to_json(), encoding="utf-8")
    screen = console()
    screen.print(f"Shuffling at {service.address} (the round is in {out})", soft_wrap=True)
    serving = threading.Thread(target=service.run, daemon=True)
    serving.start()
    try:
        service.finished.wait()
    except KeyboardInterrupt:
        pass
    finally:
        service.stop()
    rejected = sum(service.shuffler.rejected.values())
    screen.print(f"Stopped after {service.made} batches; {rejected} envelopes were rejected.")


def _given(oracle: Path, analyser: str) -> tuple[bytes, Design | Protocol]:
    """The analyser's key and the design or protocol; where both are wrong, both are told."""
    key, design, faults = b"", None, list[DefocusError]()
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(analyser)
    if len(key) != _KEY:
        wrong = f"The analyser's public key has {2 * _KEY} hexadecimal digits, but this is none."
        faults.append(InvalidParameterError(wrong, fix="pass Key.public.hex() of the analyser."))
    try:
        design = _asked(oracle)
    except DefocusError as error:
        faults.append(error)
    if design is not None and not faults:
        return key, design
    if len(faults) == 1:
        raise faults[0]
    raise InvalidParameterError(
        "\n".join(fault.what for fault in faults), fix=" And ".join(fault.fix for fault in faults)
    )
