"""The machine: run something on a data set and on a neighbour of it, and compare everything that can be seen.

**The rule.** Nothing that depends on private rows may choose code, type, shape, schema, error or length before noise.

**How it is checked.** Noise is not switched off but *held*. A first run, on the base data, writes a tape: at each place
where exact values meet randomness (a *seam*: ``sample`` of every mechanism, and its few kin) the mechanism, the exact
value and what was drawn. The second run, on the neighbour, is given the same draws, one by one. So

- the same mechanisms must be asked, in the same order, with the same parameters;
- each exact value may have moved by no more than the sensitivity that the mechanism was charged for;
- and since everything released was the same, *all* that can be seen must be the same, to the last bit: results, types,
  columns, keys, texts, errors, warnings, what is printed and logged, the charges, the statements that engines ran.

That is differential privacy under adaptive composition, taken literally: given what was released so far, the next step
may depend on private data through a mechanism only. A difference is a side door.

Noise that is drawn outside of these is marked, and where it is added to exact values is a seam as well, held to the
sensitivity that was charged for noise of its scale. Noise that meets exact values in yet another way is not held: then
results differ, and the test says so, until the place is named among the seams below.

**To add an odd row**, write it into ``odd_rows.VALUES``; everything is then tried with it. **To add a driver**, write a
function that runs the new entry point on the base and what was added to it, ``drive(home, odd) -> all that it shows``,
pass it to :func:`compared` in a test, and name the entry point in ``entries.DRIVEN``.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import io
import logging
import math
import os
import pkgutil
import re
import shutil
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar, final
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch

import defocus
from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.spark import SparkEngine
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    PermuteAndFlip,
    Quantiles,
    RangeFinding,
    ReportNoisyMax,
)
from defocus.noise.testing import seeded
from defocus.privacy import events

__all__ = ["TRIED", "Base", "Difference", "attempt", "compared", "machine", "modules", "no_differences", "plain"]

_SAMPLERS = ("sample", "add", "keep", "locate", "bounded", "found")
_APART = ("defocus.audit", "defocus.cli", "defocus.noise", "defocus.__main__")
_FLOAT = 1e-3
"""How much further than planned a sum of floats may move: training does not promise its last digits."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """What gave a neighbour away."""

    entry: str
    odd: str
    what: str

    def __str__(self) -> str:
        return f"{self.entry} | {self.odd} | {self.what}"


@functools.cache
def modules() -> tuple[Any, ...]:
    """Every module of the package, imported, so that nothing is imported while something is replaced."""
    names = [each.name for each in pkgutil.walk_packages(defocus.__path__, "defocus.")]
    return tuple(importlib.import_module(name) for name in names if not name.endswith("__main__"))


# --- The tape -------------------------------------------------------------------------------------------------------


@final
@dataclass(slots=True)
class Draw:
    """One meeting of an exact value and noise."""

    seam: str
    mechanism: str
    exact: Any
    reach: "Reach | None"
    made: Any


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """How far neighbours may be apart: in which norm, and how far."""

    norm: float
    limit: Fraction

    def exceeded(self, before: Sequence[Any], after: Sequence[Any]) -> str | None:
        """By what, if they are further apart."""
        if len(before) != len(after):
            return f"{len(before)} exact values became {len(after)}"
        if before == after:
            return None
        steps = [abs(Fraction(b) - Fraction(a)) for a, b in zip(before, after, strict=True)]
        far = max(steps, default=Fraction(0)) if self.norm == math.inf else Fraction(sum(s**self.norm for s in steps))
        most = self.limit if self.norm == math.inf else self.limit**self.norm
        if far <= most:
            return None
        times = float(far / most) ** (1 if self.norm == math.inf else 1 / self.norm)
        return (
            f"exact values moved {times:.6g} times as far as was charged for (L{self.norm:g} of {float(self.limit):g})"
        )


@final
class Tape:
    """What was drawn, in order; given another tape, the same is drawn again."""

    def __init__(self, given: "Tape | None" = None, *, measured: bool = True, moves: int = 1) -> None:
        self.given, self.measured, self.moves = given, measured, moves
        self.draws: list[Draw] = []
        self.problems: list[str] = []
        self.statements: list[str] = []
        self.charges: list[str] = []
        self.events: list[Any] = []
        self.inside = threading.local()

    @property
    def deep(self) -> bool:
        return bool(getattr(self.inside, "seam", False))

    def meet(self, seam: str, mechanism: Any, value: Any, draw: Callable[[Any], Any]) -> Any:
        """What ``draw`` makes of fresh bits, or what was made at this place before."""
        place = len(self.draws)
        exact, reach = _exact(mechanism, value)
        entry = Draw(seam, _worded(mechanism), exact, reach, None)
        self.draws.append(entry)
        self.inside.seam = True
        try:
            entry.made = draw(seeded(place))
        finally:
            self.inside.seam = False
        if self.given is None:
            return _copied(entry.made)
        return self._again(place, entry)

    def _again(self, place: int, entry: Draw) -> Any:
        assert self.given is not None
        if place >= len(self.given.draws):
            self.problems.append(f"one draw more: {entry.seam} of {entry.mechanism}")
            return entry.made
        before = self.given.draws[place]
        if (before.seam, before.mechanism) != (entry.seam, entry.mechanism):
            self.problems.append(
                f"draw {place} was {before.seam} of {before.mechanism}, and is {entry.seam} of {entry.mechanism}"
            )
            return entry.made
        if before.reach is not None and self.measured:
            allowed = Reach(before.reach.norm, before.reach.limit * self.moves)
            far = allowed.exceeded(before.exact, entry.exact)
            if far is not None:
                self.problems.append(f"draw {place}, {entry.seam} of {entry.mechanism}: {far}")
        chosen = entry.seam.endswith(".found")  # how many are chosen is drawn; of which type they are is not
        was, now = _shape(before.made, sized=not chosen), _shape(entry.made, sized=not chosen)
        if was != now and not (chosen and self.moves > 1):  # of many rows that say the same, some are chosen
            self.problems.append(f"draw {place}, {entry.seam} of {entry.mechanism}: {was} became {now}")
        return _copied(before.made)


_TAPE: list[Tape] = []


def _worded(mechanism: Any) -> str:
    text = repr(mechanism) if dataclasses.is_dataclass(mechanism) else type(mechanism).__name__
    return text if len(text) < 300 else text[:300]


def _copied(made: Any) -> Any:
    if isinstance(made, np.ndarray):
        return made.copy()
    return made


def _shape(made: Any, *, sized: bool = True) -> Any:
    if isinstance(made, np.ndarray):
        return type(made).__name__, str(made.dtype), made.shape if sized else made.ndim
    if isinstance(made, tuple | list) and sized:
        return type(made).__name__, [_shape(each) for each in made]
    return type(made).__name__


def _exact(mechanism: Any, value: Any) -> tuple[Any, Reach | None]:
    """The exact numbers that the mechanism sees, and how far they may move."""
    inner = getattr(mechanism, "mechanism", None)
    strategy = getattr(mechanism, "strategy", None)
    if strategy is not None and hasattr(mechanism, "noise"):  # a measurement of a workload
        value, mechanism = strategy.measure(value), mechanism.noise
    elif isinstance(inner, Laplace | Gaussian):  # noise on cells of a table
        mechanism = inner
    if isinstance(mechanism, Geometric):
        mechanism = mechanism.laplace
    reach = None
    if isinstance(mechanism, Laplace):
        reach = Reach(1, Fraction(mechanism.sensitivity))
    elif isinstance(mechanism, Gaussian):
        reach = Reach(2, Fraction(mechanism.sensitivity))
    elif isinstance(mechanism, Quantiles | RangeFinding):
        reach = Reach(1, Fraction(mechanism.sensitivity * (2 if mechanism.replace else 1)))
    elif isinstance(mechanism, Exponential | PermuteAndFlip | ReportNoisyMax | AboveThreshold):
        reach = Reach(math.inf, Fraction(mechanism.sensitivity))
    if reach is None:
        return None, None
    numbers = np.atleast_1d(np.asarray(value)).ravel().tolist()
    return [int(each) if isinstance(each, int) else Fraction(each) for each in numbers], reach


# --- The seams ------------------------------------------------------------------------------------------------------


def _mechanical() -> Iterator[tuple[type, str]]:
    """Every method anywhere that makes a noisy value of an exact one: named like a sampler, and given bits."""
    for module in modules():
        if module.__name__.startswith(_APART):
            continue
        for made in vars(module).values():
            if not inspect.isclass(made) or made.__module__ != module.__name__ or getattr(made, "_is_protocol", False):
                continue
            for name in _SAMPLERS:
                method = made.__dict__.get(name)
                if inspect.isfunction(method) and "bits" in inspect.signature(method).parameters:
                    yield made, name


def _sampling(made: type, name: str) -> Callable[..., Any]:
    original = made.__dict__[name]
    signature = inspect.signature(original)
    seam = f"{made.__module__}.{made.__qualname__}.{name}"

    @functools.wraps(original)
    def sample(self: Any, *given: Any, **named: Any) -> Any:
        if not _TAPE or _TAPE[-1].deep:
            return original(self, *given, **named)
        bound = signature.bind(self, *given, **named)
        value = list(bound.arguments.values())[1]

        def draw(bits: Any) -> Any:
            bound.arguments["bits"] = bits
            return original(*bound.args, **bound.kwargs)

        return _TAPE[-1].meet(seam, self, value, draw)

    return sample


def _found_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    """Which keys are found is drawn as a whole: of what was not kept, nothing may be seen."""

    def found(self: Any, selection: Any, bits: Any) -> Any:
        if not _TAPE or _TAPE[-1].deep:
            return original(self, selection, bits)
        draw = lambda drawn: original(self, selection, drawn)  # noqa: E731
        return _TAPE[-1].meet("tables.measurement.Measuring.found_keys", selection, None, draw)

    return found


def _kept_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    """The same where keys are found in blocks, on their way to a file."""

    def kept(self: Any, batches: Any) -> Any:
        if not _TAPE or _TAPE[-1].deep:
            return original(self, batches)
        draw = lambda _: list(original(self, batches))  # noqa: E731
        return iter(_TAPE[-1].meet("tables.bulk._Selected", self.selection, None, draw))

    return kept


def _advance(original: Callable[..., Any]) -> Callable[..., Any]:
    """A step of a stream: what comes in may move by what a unit contributes, and what comes out is public."""

    def advance(self: Any, x: Any, noise: Any) -> Any:
        if not _TAPE or _TAPE[-1].deep:
            return original(self, x, noise)
        return _TAPE[-1].meet(f"{type(self).__name__}.advance", self, x, lambda _bits: original(self, x, noise))

    return advance


def _torch_noise(original: Callable[..., Any]) -> Callable[..., Any]:
    """Noise on sums of gradients, in place."""

    def add(self: Any, sums: Sequence[Any], scales: Sequence[float], *given: Any, **named: Any) -> None:
        if not _TAPE or _TAPE[-1].deep:
            original(self, sums, scales, *given, **named)
            return
        before = [each.detach().double().clone() / scale for each, scale in zip(sums, scales, strict=True)]

        def draw(_bits: Any) -> Any:
            original(self, sums, scales, *given, **named)
            return [each.detach().clone().numpy() for each in sums]

        made = _TAPE[-1].meet(f"{type(self).__name__}.add", _Sums(tuple(scales)), before, draw)
        if _TAPE[-1].given is not None:
            exact = torch.cat([each.reshape(-1) for each in before])
            entry, place = _TAPE[-1].draws[-1], len(_TAPE[-1].draws) - 1
            entry.exact = exact
            earlier = _TAPE[-1].given.draws[place].exact if place < len(_TAPE[-1].given.draws) else exact
            if earlier is None or earlier.shape != exact.shape:
                _TAPE[-1].problems.append(f"draw {place}: sums of another shape")
            else:
                far = float((earlier - exact).norm())
                if _TAPE[-1].measured and not far <= _TAPE[-1].moves * (1 + _FLOAT):
                    _TAPE[-1].problems.append(f"draw {place}: sums of gradients moved {far:.6g} times the noise")
            for total, public in zip(sums, made, strict=True):
                total.copy_(torch.as_tensor(public))
        else:
            _TAPE[-1].draws[-1].exact = torch.cat([each.reshape(-1) for each in before])

    return add


def _scoring(original: Callable[..., Any]) -> Callable[..., Any]:
    """The score of a model on private examples, with noise; on public ones it is public."""

    @functools.wraps(original)
    def score(self: Any, model: Any, deviation: float) -> Any:
        if not _TAPE or _TAPE[-1].deep or not deviation:
            return original(self, model, deviation)
        return _TAPE[-1].meet("search score", None, None, lambda _bits: original(self, model, deviation))

    return score


def _binding(original: Callable[..., Any]) -> Callable[..., Any]:
    """A secret that follows from exact sums under a secret key: as good as drawn at random."""

    @functools.wraps(original)
    def bound(key: bytes, step: int, sums: Any) -> Any:
        if not _TAPE or _TAPE[-1].deep:
            return original(key, step, sums)
        return _TAPE[-1].meet(original.__name__, None, None, lambda _bits: original(key, step, sums))

    return bound


@final
@dataclass(frozen=True, slots=True)
class _Sums:
    scales: tuple[float, ...]


@final
class _Noise(np.ndarray):
    """Noise that was drawn outside of a mechanism: where it is added to exact values, that is a seam."""

    scale: Any = None

    def __array_finalize__(self, obj: Any) -> None:
        self.scale = getattr(obj, "scale", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        bare = [each.view(np.ndarray) if isinstance(each, _Noise) else each for each in inputs]
        made = getattr(ufunc, method)(*bare, **named)
        others = [each for each in inputs if not isinstance(each, _Noise)]
        if ufunc is np.add and method == "__call__" and len(others) == 1 and _TAPE and not _TAPE[-1].deep:
            return _met(self, others[0], lambda: made)
        return made


@final
@dataclass(frozen=True, slots=True)
class _Drawn:
    scale: Any


def _met(noise: _Noise, value: Any, make: Callable[[], Any]) -> Any:
    """Noise that was drawn ahead meets exact values."""
    charged = _charged(_TAPE[-1], noise.scale)
    mechanism: Any = _Drawn(noise.scale) if charged is None else charged
    return _TAPE[-1].meet("noise drawn ahead", mechanism, value, lambda _bits: make())


def _adding(original: Callable[..., Any]) -> Callable[..., Any]:
    """The sum that is cut to 64 bits, as a whole."""

    @functools.wraps(original)
    def add(value: Any, noise: Any) -> Any:
        if not isinstance(noise, _Noise) or not _TAPE or _TAPE[-1].deep:
            return original(value, noise)
        return _met(noise, value, lambda: original(value, noise.view(np.ndarray)))

    return add


def _charged(tape: Tape, scale: tuple[str, Any] | None) -> Laplace | Gaussian | None:
    """The mechanism of this scale that was charged for, so that exact values are held to what was paid."""
    if scale is None:
        return None
    kind, size = scale
    found: list[Any] = []
    waiting: list[Any] = list(tape.events)
    while waiting:
        each = waiting.pop()
        if isinstance(each, events.DiscreteGaussian) and kind == "gaussian" and float(each.sigma) == float(size):
            found.append(Gaussian(sigma=each.sigma, sensitivity=each.sensitivity))
        elif isinstance(each, events.DiscreteLaplace) and kind == "laplace" and float(each.scale) == float(size):
            found.append(Laplace(scale=each.scale, sensitivity=each.sensitivity))
        elif isinstance(each, tuple | list | frozenset):
            waiting += each
        elif dataclasses.is_dataclass(each):
            waiting += [getattr(each, one.name) for one in dataclasses.fields(each)]
    return max(found, key=lambda one: one.sensitivity, default=None)


def _direct(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Noise by itself. Within a seam it belongs to that; elsewhere it is marked, and watched until it is added."""

    @functools.wraps(original)
    def draw(scale: Any, size: int, bits: Any = None) -> Any:
        made = original(scale, size, bits)
        if not _TAPE or _TAPE[-1].deep:
            return made
        marked = made.view(_Noise)
        marked.scale = (kind, scale)
        return marked

    return draw


# --- Holding everything still ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _everywhere(replaced: Mapping[Any, Any]) -> Iterator[None]:
    """Replace functions in every module that has imported them."""
    undo: list[tuple[Any, str, Any]] = []
    for module in modules():
        for name, found in list(vars(module).items()):
            if callable(found) and getattr(found, "__hash__", None) is not None:
                with contextlib.suppress(TypeError):
                    if found in replaced:
                        undo.append((module, name, found))
                        setattr(module, name, replaced[found])
    try:
        yield
    finally:
        for module, name, found in undo:
            setattr(module, name, found)


class _Source:
    """The system's source of bits in a run: the same bits in each."""

    bits: Any = None


def _system() -> Any:
    return _Source.bits


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Everything that is needed to hold a run still, for as long as it takes."""
    from defocus.learning import hyperparameters  # noqa: PLC0415
    from defocus.learning import noise as learning_noise  # noqa: PLC0415
    from defocus.ledger import entries  # noqa: PLC0415 -- imported with all others
    from defocus.mechanisms.mechanism import add  # noqa: PLC0415
    from defocus.noise import discrete_gaussian, discrete_laplace, system  # noqa: PLC0415
    from defocus.tables import bulk  # noqa: PLC0415
    from defocus.tables.measurement import Measuring  # noqa: PLC0415
    from defocus.workloads.streams import run as streams_memory  # noqa: PLC0415

    modules()
    with contextlib.ExitStack() as undo:
        for made, name in list(_mechanical()):
            undo.enter_context(mock.patch.object(made, name, _sampling(made, name)))
        undo.enter_context(mock.patch.object(Measuring, "found_keys", _found_keys(Measuring.found_keys)))
        undo.enter_context(mock.patch.object(bulk._Selected, "__call__", _kept_keys(bulk._Selected.__call__)))
        for made in vars(streams_memory).values():
            if inspect.isclass(made) and "advance" in made.__dict__ and not getattr(made, "_is_protocol", False):
                undo.enter_context(mock.patch.object(made, "advance", _advance(made.__dict__["advance"])))
        for made in (learning_noise.Cryptographic, learning_noise.Generated, learning_noise.Correlated):
            undo.enter_context(mock.patch.object(made, "add", _torch_noise(made.add)))
        for made in vars(hyperparameters).values():
            if inspect.isclass(made) and "_score" in made.__dict__:
                undo.enter_context(mock.patch.object(made, "_score", _scoring(made.__dict__["_score"])))
        undo.enter_context(
            _everywhere(
                {
                    discrete_gaussian: _direct("gaussian", discrete_gaussian),
                    discrete_laplace: _direct("laplace", discrete_laplace),
                    add: _adding(add),
                    learning_noise.bound_to: _binding(learning_noise.bound_to),
                    learning_noise.by_length: _binding(learning_noise.by_length),
                    system: _system,
                    entries.now: lambda: "2026-01-01T00:00:00+00:00",
                }
            )
        )
        undo.enter_context(mock.patch("secrets.token_hex", lambda n=32: "0" * 2 * n))
        # Which data it is is hidden by a random salt; with the salt held, it would tell, so it is held as well.
        undo.enter_context(mock.patch("defocus.ledger.declarations.commitment", return_value="salt:held"))
        for engine in (DuckDbEngine, PostgreSqlEngine, SparkEngine):
            for name in ("run", "written", "_statement", "publish", "canonical", "kept", "schema"):
                if name in engine.__dict__:
                    undo.enter_context(mock.patch.object(engine, name, _counted(engine, name)))
        undo.enter_context(mock.patch.object(Ledger, "charge", _charging(Ledger.charge)))
        undo.enter_context(mock.patch.object(Ledger, "record", _recording(Ledger.record)))
        yield


def _counted(engine: type, name: str) -> Callable[..., Any]:
    original = engine.__dict__[name]

    @functools.wraps(original)
    def run(self: Any, *given: Any, **named: Any) -> Any:
        found = original(self, *given, **named)
        if _TAPE:
            _TAPE[-1].statements.append(f"{name} {found if name in {'written', '_statement'} else ''}")
        return found

    return run


def _charging(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def charge(self: Any, event: Any, **named: Any) -> Any:
        if _TAPE:
            _TAPE[-1].charges.append(f"charge {event!r} {named.get('purpose')!r} {named.get('parts')!r}")
            _TAPE[-1].events.append(event)
        return original(self, event, **named)

    return charge


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def record(self: Any, receipt: Any, value: Any, **named: Any) -> Any:
        if _TAPE:
            _TAPE[-1].charges.append(f"record {receipt.sequence} {plain(value)!r} {named.get('description')!r}")
        return original(self, receipt, value, **named)

    return record


# --- What can be seen -----------------------------------------------------------------------------------------------


@final
@dataclass(slots=True)
class Seen:
    """Everything that can be observed of a run."""

    result: Any = None
    error: Any = None
    warnings: list[str] = field(default_factory=list)
    out: str = ""
    err: str = ""
    logs: list[str] = field(default_factory=list)


class _Logs(logging.Handler):
    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def _observed(act: Callable[[], Any], tape: Tape) -> Seen:
    seen, out, err, logs = Seen(), io.StringIO(), io.StringIO(), _Logs()
    root = logging.getLogger()
    root.addHandler(logs)
    _Source.bits = seeded(1)
    torch.default_generator.manual_seed(0)  # the only one here; torch.manual_seed writes a stack down for each other
    np.random.seed(0)  # noqa: NPY002 -- a library might draw from it
    _TAPE.append(tape)
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            with contextlib.redirect_stderr(err):
                try:
                    seen.result = plain(act())
                except Exception as problem:  # noqa: BLE001 -- an error is something to be seen
                    seen.error = told(problem)
    finally:
        _TAPE.pop()
        root.removeHandler(logs)
    seen.warnings = [f"{each.category.__name__}: {each.message}" for each in caught]
    seen.out, seen.err, seen.logs = out.getvalue(), err.getvalue(), logs.lines
    return seen


def told(problem: BaseException) -> Any:
    """What an error tells: its type and text, its notes, and whatever it carries along."""
    chain: list[Any] = []
    waiting: list[BaseException | None] = [problem]
    while waiting and len(chain) < 8:
        each = waiting.pop(0)
        if each is None:
            continue
        try:
            text = str(each)
        except Exception:  # noqa: BLE001 -- the text of a hostile object
            text = "(cannot be written)"
        chain.append([type(each).__qualname__, text, list(getattr(each, "__notes__", []))])
        waiting += [each.__cause__, each.__context__ if each.__context__ is not each.__cause__ else None]
    return chain


class _Plain(list[Any]):
    """Something that is plain already."""


def attempt(act: Callable[[], Any], *, refused: str | None = None) -> Any:
    """What came of one call among several: its result, or what its error tells.

    On the base data it must work, or nothing is tried: an error ends the run there, unless it says what is ``refused``.
    """
    try:
        return _Plain(["result", plain(act())])
    except Exception as problem:
        if _TAPE and _TAPE[-1].given is None and (refused is None or not re.search(refused, str(problem))):
            raise
        return _Plain(["error", told(problem)])


def plain(made: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 -- one line for each kind of thing
    """Anything as something that can be compared, with its types, shapes and every bit of its numbers."""
    if made is None or isinstance(made, bool | str | bytes | _Plain):
        return made
    if isinstance(made, int | float | complex | Fraction):
        return f"{type(made).__name__} {made!r}"
    if isinstance(made, np.ndarray):
        values = [plain(each) for each in made.ravel().tolist()] if made.dtype == object else made.tobytes()
        return ["array", str(made.dtype), made.shape, values]
    if isinstance(made, torch.Tensor):
        return ["tensor", str(made.dtype), tuple(made.shape), made.detach().cpu().double().numpy().tobytes()]
    if scipy.sparse.issparse(made):
        return ["sparse", plain(made.toarray())]
    if isinstance(made, pa.Array | pa.ChunkedArray):
        return ["column", str(made.type), plain(made.to_pylist())]
    if isinstance(made, pa.Table):
        return ["table", str(made.schema), plain(made.to_pydict())]
    if isinstance(made, pd.DataFrame):
        return ["frame", [str(each) for each in made.dtypes], plain(made.to_dict("list"))]
    if isinstance(made, pl.DataFrame):
        return ["polars", str(made.schema), plain(made.to_dict(as_series=False))]
    if isinstance(made, Receipt):
        return ["receipt", made.sequence, repr(made.event), made.purpose]
    if isinstance(made, Mapping):
        return [type(made).__name__, [[plain(key), plain(value)] for key, value in made.items()]]
    if isinstance(made, list | tuple | set | frozenset):
        return [type(made).__name__, [plain(each) for each in made]]
    if isinstance(made, torch.nn.Module):
        return [type(made).__name__, plain(made.state_dict())]
    if dataclasses.is_dataclass(made) and not isinstance(made, type):
        inside = {each.name: getattr(made, each.name, None) for each in dataclasses.fields(made)}
        return [type(made).__name__, plain({k: v for k, v in inside.items() if not _machinery(v)})]
    if callable(getattr(made, "to_dict", None)):
        return [type(made).__name__, plain(made.to_dict())]
    return f"{type(made).__module__}.{type(made).__name__}"


def _machinery(made: Any) -> bool:
    return isinstance(made, Ledger) or type(made).__module__.startswith("defocus.engines") or callable(made)


# --- Comparing ------------------------------------------------------------------------------------------------------


def _first(before: Any, after: Any, where: str = "") -> str | None:
    """Where two plain things first differ, and how, in few words."""
    if type(before) is not type(after):
        return f"{where}: {_short(before)} became {_short(after)}"
    if isinstance(before, list):
        if isinstance(before, _Plain) and before[:1] != after[:1]:
            return f"{where}: {_short(before)} became {_short(after)}"
        if len(before) != len(after):
            return f"{where}: {_short(before)} became {_short(after)}"
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            found = _first(one, other, f"{where}[{place}]")
            if found is not None:
                return found
        return None
    return None if before == after else f"{where}: {_short(before)} became {_short(after)}"


def _short(what: Any) -> str:
    text = repr(what)
    return text if len(text) <= 240 else f"{text[:160]} … ({len(text)} characters)"


@contextlib.contextmanager
def _steady_home() -> Iterator[Path]:
    """The same folder for every run, empty at its beginning."""
    memory = Path("/dev/shm")  # noqa: S108 -- a ledger waits for the disk after each entry, so where there is one
    home = (memory if memory.is_dir() else Path(tempfile.gettempdir())) / f"defocus-soundness-{os.getpid():07d}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@final
class Base:
    """What was seen of the base data, to which neighbours are compared."""

    def __init__(self, entry: str, act: Callable[[Path], Any], *, measured: bool = True) -> None:
        self.entry, self.measured = entry, measured
        self.tape = Tape(measured=measured)
        with _steady_home() as home:
            self.seen = _observed(lambda: act(home), self.tape)

    def differences(self, odd: str, act: Callable[[Path], Any], *, moves: int = 1) -> list[Difference]:
        """What gives a neighbour away; ``moves`` neighbours away, values may move so many times as far."""
        tape = Tape(self.tape, measured=self.measured, moves=moves)
        with _steady_home() as home:
            seen = _observed(lambda: act(home), tape)
        found = list(tape.problems[:3])
        failed = _first(self.seen.error, seen.error, "error")
        if failed is not None:
            before, after = len(self.tape.charges), len(tape.charges)
            found.append(f"{failed}; after {after} entries in the ledger instead of {before}")
        elif len(tape.draws) < len(self.tape.draws):
            found.append(f"{len(self.tape.draws)} draws became {len(tape.draws)}")
        for name in ("warnings", "out", "err", "logs") if failed else ("result", "warnings", "out", "err", "logs"):
            where = _first(getattr(self.seen, name), getattr(seen, name), name)
            if where is not None:
                found.append(where)
        for name in () if failed else ("charges", "statements"):
            one, other = getattr(self.tape, name), getattr(tape, name)
            if len(one) != len(other):
                found.append(f"{len(one)} {name} became {len(other)}")
            elif (where := _first(one, other, name)) is not None:
                found.append(where)
        return [Difference(self.entry, odd, "; ".join(found))] if found else []


TRIED: Counter[str] = Counter()
"""How many odd rows each entry point was tried with."""

_Odd = TypeVar("_Odd")


def compared(
    entry: str,
    drive: Callable[[Path, Sequence[_Odd]], Any],
    odds: Mapping[str, _Odd],
    *,
    units: Callable[[Sequence[_Odd]], int] = len,
    apart: bool = False,
    measured: bool = True,
    works: bool = True,
    runs: int = 40,
    first: Base | None = None,
) -> list[Difference]:
    """Run the base once, unless it was run before, see that it works, and compare neighbours with it.

    Odd rows are added together, since a run takes a while; if they are of several ``units``, each its own unless told,
    exact values may move so many times as far. Where something differs, halves are tried, and halves of those, until it
    is known which rows do it, or enough of them after so many ``runs``; and the base again, since what does not repeat
    itself differs without a neighbour. With ``apart`` each is tried by itself.
    """
    base = first or Base(entry, lambda home: drive(home, ()), measured=measured)
    if works and base.seen.error is not None:
        return [Difference(entry, "(the base data)", f"does not work: {base.seen.error}")]
    TRIED[entry] += len(odds)

    left = [runs]

    def hunted(names: list[str]) -> list[Difference]:
        left[0] -= 1
        if left[0] < 0:
            return []
        chosen = [odds[name] for name in names]
        label = names[0] if len(names) == 1 else f"{len(names)} together: {', '.join(names)}"[:200]
        differing = base.differences(label, lambda home: drive(home, chosen), moves=units(chosen))
        if not differing or len(names) == 1:
            return differing
        half = len(names) // 2
        return hunted(names[:half]) + hunted(names[half:]) or differing

    names = list(odds)
    found: list[Difference] = []
    for piece in [[name] for name in names] if apart else [names] if names else []:
        left[0] += apart
        found += hunted(piece)
    return found and base.differences("(the same data again)", lambda home: drive(home, ())) + found


def no_differences(found: Sequence[Difference]) -> None:
    """Fail with all of them, each in a line: entry point, odd row, what differs."""
    lines = [f"  {str(each)[:900]}" for each in found]
    assert not found, "\n".join([f"{len(found)} side doors:", *lines])
