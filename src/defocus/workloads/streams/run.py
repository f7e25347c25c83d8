r"""A running stream: its memory, its steps, and what each step releases.

What one step of a stream releases.

What a running stream remembers between steps, and the one place where its data meets noise.

``x`` is exact: integers times integers plus integer noise, sized beforehand so that 64 bits hold them. The
noisy row y is all that the rest sees: the estimate solves :math:`C\hat x = y` row by row in floating point and
adds up, remembering one number for each group of steps. The solver is given y, never x, so its rounding is
post-processing too.
"""

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np

from defocus.answers import Answer, AnswerColumn
from defocus.answers.columns import CONFIDENCE
from defocus.answers.tables import Keys
from defocus.errors import Number, ReleaseFailedError, StreamEndedError, StreamStateError, UnfitDataError
from defocus.mechanisms import Laplace
from defocus.noise import Bits, discrete_gaussian, discrete_laplace
from defocus.noise.bits import source
from defocus.privacy.html import html_facts
from defocus.workloads.record_counts import entries
from defocus.workloads.streams.design import Design, Errors
from defocus.workloads.streams.shaped import Shaped
from defocus.workloads.streams.state import Codes, StateFile, sealed
from defocus.workloads.streams.strategies import Factor, Floats, Ints, Tree, merging

__all__ = ["FactorMemory", "Memory", "Noise", "Running", "Step", "TreeMemory", "counted", "memory_of"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Step(Answer):
    """The noisy running sum after one step. Everything here may be shown to anyone.

    Errors are computed when they are asked for, since those of a long stream take a while.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> ledger = examples.ledger()
    >>> running = dp.workloads.RunningSum(30, epsilon=1, delta=1e-6).start(ledger=ledger, purpose="visits")
    >>> first = running.add(4000)
    >>> 3900 < first.value < 4100, first.half_width() < 100
    (True, True)
    >>> running.close()
    >>> ledger.close()
    """

    step: int
    """How many steps the sum covers."""
    value: float | Floats = field()
    """The sum: a number for a stream of counts, a vector for a stream of vectors."""
    _errors: Errors

    @property
    def keys(self) -> Keys:
        """The entries of a vector, by number."""
        return {} if isinstance(self.value, float) else {"entry": range(len(self.value))}

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The sum with standard errors and 95 % intervals."""
        values, half = np.atleast_1d(self.value), self.half_width()
        errors, ends = np.full(len(values), self.standard_error), (values - half, values + half)
        return (AnswerColumn("running_sum", values, errors, *ends, integral=False, how="noise of the whole stream"),)

    @property
    def question(self) -> str:
        """Which sum it is."""
        return f"running sum after {counted(self.step, 'step')}"

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in each entry."""
        return float(np.sqrt(self._errors.variance(self.step)))

    def half_width(self, confidence: Number = CONFIDENCE) -> float:
        """What the noise of one entry stays within with probability ``confidence``."""
        return self._errors.half_width(self.step, confidence)

    def _ends(self, column: AnswerColumn, confidence: Number) -> tuple[Floats, Floats]:
        half = self.half_width(confidence)
        return column.values - half, column.values + half

    def _topics(self) -> Mapping[str, Sequence[str]]:
        return {"cost": ["nothing more: the whole stream was charged when it was started"]}

    def __repr__(self) -> str:
        return f"Step(step={self.step}, value={self._shown(1)})"  # without its error, which takes a while to compute

    def __str__(self) -> str:
        half = self.half_width()
        digits = max(0, 2 - math.floor(math.log10(half))) if half > 0 else 0
        return f"step {self.step}: {self._shown(digits)} ± {half:.{digits}f} (95 %)"

    def _shown(self, digits: int) -> str:
        if isinstance(self.value, float):
            return f"{self.value:.{digits}f}"
        entries = [f"{entry:.{digits}f}" for entry in self.value.tolist()]
        return f"[{', '.join(entries if len(entries) <= 8 else [*entries[:3], '…', *entries[-3:]])}]"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(3, "step")
    ('1 step', '3 steps')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


Noise = Callable[[int], Ints]


class Memory(Protocol):
    """One step after another."""

    step: int

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """Take in the next step and return the noisy running sum after it. ``noise(k)`` gives k rows of noise."""

    def dump(self) -> dict[str, Any]:
        """Everything remembered, with JSON types only. Secret: it holds sums of the data without noise."""

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped; ValueError, TypeError or KeyError if it cannot be that."""


@final
class FactorMemory:
    """Groups of steps, or the steps of a shaped band: their exact sums, and the sums of what noisy rows say of them."""

    __slots__ = ("_estimate", "_exact", "_factor", "_first", "_m", "_total", "step")

    def __init__(self, factor: Factor | Shaped, width: int) -> None:
        room = factor.capacity
        self._factor = factor
        self._first = np.zeros(room, dtype=np.int64)
        self._exact = np.zeros((room, width), dtype=np.int64)
        self._estimate = np.zeros((room, width))
        self._total = np.zeros(width)
        self._m = self.step = 0

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """One row: y = C x + z in integers, then one row of the triangular system."""
        t, factor = self.step, self._factor
        self._shift(t)
        m, weight = self._m, factor.weight(t)
        self._first[m] = t
        self._exact[m] = weight * x
        g = factor.row(t, self._first[: m + 1])
        y = g @ self._exact[: m + 1] + noise(1)[0]
        # From here on post-processing: nothing below looks at x or at exact sums.
        self._estimate[m] = (y - g[:m].astype(np.float64) @ self._estimate[:m]) / float(g[m])
        self._total += self._estimate[m] / weight
        self._m, self.step = m + 1, t + 1
        return self._total.copy()

    def _shift(self, row: int) -> None:
        """Merge the groups, or forget the step, that this row no longer tells apart."""
        m, factor = self._m, self._factor
        if factor.spread is not None:
            for start, _ in merging(row, factor.spread):
                i = int(np.searchsorted(self._first[:m], start))
                for kept in (self._exact, self._estimate):
                    kept[i] += kept[i + 1]
                self._close(i + 1, m)
                m -= 1
        elif row >= factor.bandwidth:
            self._close(0, m)
            m -= 1
        self._m = m

    def _close(self, i: int, m: int) -> None:
        for kept in (self._first, self._exact, self._estimate):
            kept[i : m - 1] = kept[i + 1 : m]

    def dump(self) -> dict[str, Any]:
        """Groups in the order of time."""
        m = self._m
        return {
            "step": self.step,
            "first": self._first[:m].tolist(),
            "exact": self._exact[:m].tolist(),
            "estimate": self._estimate[:m].tolist(),
            "total": self._total.tolist(),
        }

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped."""
        first = np.array(kept["first"], dtype=np.int64)
        self.step, self._m = int(kept["step"]), len(first)
        self._first[: self._m] = first
        width = len(self._total)
        self._exact[: self._m] = np.array(kept["exact"], dtype=np.int64).reshape(self._m, width)
        self._estimate[: self._m] = np.array(kept["estimate"], dtype=np.float64).reshape(self._m, width)
        self._total[:] = np.array(kept["total"], dtype=np.float64)


@final
class TreeMemory:
    """For each level of a :class:`Tree` the block that is filling up, and the last complete one with its noise."""

    __slots__ = ("_exact", "_noisy", "_tree", "step")

    def __init__(self, tree: Tree, width: int) -> None:
        self._tree = tree
        self._exact = np.zeros((tree.levels, width), dtype=np.int64)
        self._noisy = np.zeros((tree.levels, width), dtype=np.int64)
        self.step = 0

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """Complete the blocks that end here, and add up those that make the running sum."""
        self.step += 1
        self._exact += x
        done = (self.step & -self.step).bit_length()  # blocks of 1, 2, 4, … steps up to the last power that divides
        self._noisy[:done] = self._tree.scale * self._exact[:done] + noise(done)
        self._exact[:done] = 0
        parts = [level for level in range(self._tree.levels) if self.step >> level & 1]
        return np.asarray(self._noisy[parts].astype(np.float64).sum(axis=0) / self._tree.scale)

    def dump(self) -> dict[str, Any]:
        """Level by level."""
        return {"step": self.step, "exact": self._exact.tolist(), "noisy": self._noisy.tolist()}

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped."""
        self.step = int(kept["step"])
        self._exact[:] = np.array(kept["exact"], dtype=np.int64)
        self._noisy[:] = np.array(kept["noisy"], dtype=np.int64)


_AHEAD = 1024
"""How many noisy numbers are drawn at a time: one by one costs thirty times as much."""


def memory_of(design: Design) -> Memory:
    """An empty memory for this strategy."""
    strategy = design.strategy
    if isinstance(strategy, Tree):
        return TreeMemory(strategy, design.entries)
    return FactorMemory(strategy, design.entries)


@final
class Running:
    """A charged stream. Made by :meth:`RunningSum.start` and :meth:`RunningSum.resume`; takes one step after another.

    Guarantee:
        The stream as a whole is one release of its event, however each step is chosen after seeing the sums
        before it. A step is noised once: it is kept, if there is a state file, before it is shown; a run that
        failed, was closed or was handed over takes no more steps; a forked child is refused.

    Threads may share it; steps then come in the order in which they get hold of it.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> ledger = examples.ledger()
    >>> stream = dp.workloads.RunningSum(30, epsilon=1, delta=1e-6)
    >>> running = stream.start(ledger=ledger, purpose="visits")
    >>> [running.add(visits).step for visits in (40, 38, 51)]
    [1, 2, 3]
    >>> running.close()
    >>> ledger.close()
    """

    __slots__ = (
        "_ahead",
        "_bits",
        "_closed",
        "_code",
        "_codes",
        "_design",
        "_errors",
        "_file",
        "_header",
        "_last",
        "_lock",
        "_memory",
        "_pid",
        "_single",
        "_width",
    )

    def __init__(
        self,
        design: Design,
        errors: Errors,
        memory: Memory,
        *,
        single: bool,
        bits: Bits,
        header: dict[str, Any],
        file: StateFile | None,
        last: list[float] | None,
        codes: Codes,
        code: str | None,
    ) -> None:
        self._design, self._errors, self._memory = design, errors, memory
        self._width, self._single = design.entries, single
        self._bits, self._header, self._file = bits, header, file
        self._last = None if last is None else (memory.step, last)
        self._ahead: Ints = np.zeros((0, self._width), dtype=np.int64)
        self._closed: str | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._codes, self._code = codes, code
        if file is not None or code is not None:
            self._keep(self._state(last))

    @property
    def step(self) -> int:
        """How many steps have been released."""
        return self._memory.step

    @property
    def last(self) -> Step | None:
        """The newest released step again, free of charge: after a crash it may not have been seen."""
        newest = self._last
        return None if newest is None else self._shown(newest[0], np.array(newest[1]))

    def add(self, x: object) -> Step:
        """Take in the data of the next step, exact integers, and release the running sum after it.

        Entries beyond the plan's ±``largest`` are cut to it, however large they are. Single numbers and lists have no
        type: fractions in them are rounded down, and what is no number, such as the sum of no rows in SQL, is zero.
        Arrays of other types than integers, and other lengths, are refused and use up no step.
        """
        if isinstance(x, np.ndarray | list | tuple) == self._single:
            raise UnfitDataError(
                f"A step of this stream is {'one integer' if self._single else f'a vector of {self._width} integers'}.",
                fix="pass one integer." if self._single else f"pass {self._width} integers, whatever their values.",
            )
        vector = entries([x] if self._single else x, length=self._width)
        with self._lock:
            self._ready()
            step, failed = self._released(np.clip(vector, -self._design.largest, self._design.largest))
        if failed or step is None:
            raise ReleaseFailedError(charge=self._header["charge"], mechanism="RunningSum")
        return step

    def save(self) -> dict[str, Any]:
        """Hand the stream over: return its secret state, with JSON types only, and take no more steps here.

        Go on with :meth:`RunningSum.resume`. Each saved state can be resumed once.
        """
        with self._lock:
            self._usable()
            state = self._state(None if self._last is None else self._last[1])
            try:
                self._keep(state)
            finally:
                self._shut("was handed over by save()")
        return state

    def close(self) -> None:
        """Take no more steps here. With a state file the stream can be resumed, without one it has ended."""
        with self._lock:
            self._shut("was closed")

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        steps = self._design.strategy.steps
        return f"Running(step {self.step} of {steps}, {self._closed or ('finished' if self.step == steps else 'open')})"

    def _repr_html_(self) -> str:
        newest = self.last
        return html_facts({"stream": repr(self)} | ({} if newest is None else {"newest": str(newest)}))

    def __reduce__(self) -> Any:
        raise StreamStateError(
            "A running stream cannot be copied: two copies would noise the same steps twice.",
            fix="hand it over with save() and RunningSum.resume().",
        )

    def _usable(self) -> None:
        if self._closed is not None:
            raise StreamStateError(f"This stream {self._closed}.", fix="go on where it was resumed, or resume it.")
        if os.getpid() != self._pid:
            raise StreamStateError(
                "This process was forked from the one that runs the stream.",
                fix="let one process run it; hand it over with save() and RunningSum.resume().",
            )

    def _ready(self) -> None:
        self._usable()
        if self._memory.step >= self._design.strategy.steps:
            raise StreamEndedError(self._design.strategy.steps)

    def _released(self, x: Ints) -> tuple[Step | None, bool]:
        """The step, kept before it is shown; if anything fails the run ends, since its noise may have been drawn."""
        try:
            total = self._memory.advance(x, self._noise)
            newest = self._memory.step, total.tolist()
            if self._file is not None:
                self._keep(self._state(newest[1]))
            self._last = newest  # only now: whoever reads it, in this thread or another, must see what was kept
            return self._shown(newest[0], total), False
        except Exception:  # noqa: BLE001  # its text may hold private values, so nothing of it may leave
            self._shut("failed in a step")
            return None, True
        except BaseException:
            self._shut("was interrupted in a step")
            raise

    def _shown(self, step: int, total: Floats) -> Step:
        return Step(step, float(total[0]) if self._single else total, self._errors)

    def _noise(self, rows: int) -> Ints:
        """Fresh noise, drawn ahead for speed; what was drawn and not used is forgotten with this object."""
        if len(self._ahead) < rows:
            more = max(rows, _AHEAD // self._width)
            noise = self._design.noise
            draw: Callable[..., Ints] = discrete_laplace if isinstance(noise, Laplace) else discrete_gaussian
            scale = noise.scale if isinstance(noise, Laplace) else noise.sigma
            fresh = draw(scale, more * self._width, self._bits).reshape(more, self._width)
            self._ahead = np.concatenate((self._ahead, fresh))
        taken, self._ahead = self._ahead[:rows], self._ahead[rows:]
        return taken

    def _state(self, last: list[float] | None) -> dict[str, Any]:
        """A state with a secret that is drawn for it alone, so that nobody makes it out of the one before."""
        salt = source(None).words(4).tobytes().hex()  # the system's bits: no secret is made of seeds
        return sealed({**self._header, "salt": salt, "memory": self._memory.dump(), "last": last})

    def _keep(self, state: dict[str, Any]) -> None:
        """Note a state as the newest, once it is on disk where there is a file for it."""
        if self._file is None:
            self._note(state["checksum"])
        else:
            self._file.write(state, lambda: self._note(state["checksum"]))

    def _note(self, code: str) -> None:
        self._codes.follow(self._code, code)
        self._code = code

    def _shut(self, why: str) -> None:
        self._closed = self._closed or why
        self._ahead = np.zeros((0, self._width), dtype=np.int64)
        if self._file is not None:
            self._file.let_go()
