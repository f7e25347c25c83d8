"""One audit of one pair: run, choose an event, judge it with fresh runs, perhaps double and go on."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from defocus.audit.bounds import Bound, bound, detectable
from defocus.audit.events import Event, Split, choose
from defocus.audit.findings import Finding, Picture, sketch
from defocus.audit.neighbours import Pair
from defocus.audit.outcomes import Column, read
from defocus.audit.runs import Mechanism, Outputs, Raised, run

__all__ = ["Setting", "audit"]

_FIRST_ROUND = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How long to look and how sure to be."""

    trials: int
    confidence: float
    delta: float
    claimed: float | None
    seconds: float | None
    timing: bool

    @property
    def alpha(self) -> float:
        """The error allowed to each round."""
        return (1 - self.confidence) / len(self.rounds())

    def cut(self, *, trials: int, seconds: float, parts: int = 1) -> "Setting":
        """The same for a part of the search: its runs, its time if time is limited, its share of the error."""
        return replace(
            self,
            trials=trials,
            seconds=None if self.seconds is None else max(seconds, 1e-3),
            confidence=1 - (1 - self.confidence) / parts,
        )

    def rounds(self) -> list[Split]:
        """The rounds there may be, fixed before the first run; each one's judging runs are new."""
        sizes = [self.trials]
        while self.seconds is not None and sizes[-1] >= 2 * _FIRST_ROUND:
            sizes.append(sizes[-1] // 2)
        trained = [*sizes[1:], sizes[-1] // 2]
        return [Split(n, train // 2, train) for n, train in zip(sizes, trained, strict=True)][::-1]


@final
@dataclass(frozen=True, slots=True)
class _Judged:
    """One round's event and what the judging runs say about it."""

    event: Event
    hits: tuple[int, int]
    split: Split
    bound: Bound
    picture: Picture


def audit(mechanism: Mechanism, pair: Pair, setting: Setting) -> Finding:
    """Audit one pair; the guarantee is that of :func:`defocus.audit.lower_bound`."""
    start = time.monotonic()
    rounds = setting.rounds()
    limit = math.inf if setting.seconds is None else start + setting.seconds
    outputs_of_pairs: list[tuple[Outputs, Outputs, Any]] = []
    judged: list[_Judged] = []
    for split in rounds:
        began = time.monotonic()
        new = split.n - (judged[-1].split.n if judged else 0)
        # The first round is short and always finished, so that there is something to report.
        more = run(mechanism, (pair.first, pair.second), new, deadline=limit if judged else math.inf)
        if more is None:
            break
        outputs_of_pairs.append(more)
        judged.append(_judge(_columns(outputs_of_pairs, split, setting), split, setting))
        now = time.monotonic()
        violated = setting.claimed is not None and judged[-1].bound.epsilon > setting.claimed
        if violated or now + 2 * (now - began) > limit:
            break
    return _report(judged, pair, setting, _notes(outputs_of_pairs), time.monotonic() - start)


def _columns(outputs: list[tuple[Outputs, Outputs, Any]], split: Split, setting: Setting) -> list[Column]:
    sides = (_joined([part[0] for part in outputs]), _joined([part[1] for part in outputs]))
    columns = read(sides, split.train)
    if setting.timing:
        times = np.concatenate([part[2] for part in outputs], axis=1).reshape(-1)
        columns.append(Column("run time in nanoseconds", times))
    return columns


def _joined(parts: list[Outputs]) -> Outputs:
    if all(isinstance(part, np.ndarray) and part.shape[1:] == parts[0].shape[1:] for part in parts):
        return np.concatenate(parts)
    return [output for part in parts for output in part]


def _judge(columns: list[Column], split: Split, setting: Setting) -> _Judged:
    event = choose(columns, split, alpha=setting.alpha, delta=setting.delta)
    counts = [int(part.sum()) for part in split.of(event.holds, "judge")]
    hits = (counts[event.likelier], counts[1 - event.likelier])
    proven = bound(hits, split.n - split.train, setting.alpha, delta=setting.delta, claimed=setting.claimed)
    return _Judged(event, hits, split, proven, sketch(columns, split))


def _report(judged: list[_Judged], pair: Pair, setting: Setting, notes: tuple[str, ...], seconds: float) -> Finding:
    best, last = max(judged, key=lambda j: j.bound.epsilon), judged[-1].split
    runs = best.split.n - best.split.train
    reach = detectable(
        last.n - last.train,
        setting.alpha,
        delta=setting.delta,
        claimed=setting.claimed or 0.0,
        likely=min(0.5, best.hits[0] / runs),
    )
    return Finding(
        epsilon_lower=best.bound.epsilon,
        claimed=setting.claimed,
        delta=setting.delta,
        delta_lower=best.bound.delta,
        confidence=setting.confidence,
        event=best.event.words,
        p=best.hits[0] / runs,
        q=best.hits[1] / runs,
        likelier=best.event.likelier,
        trials=last.n,
        judged=runs,
        seconds=seconds,
        pair=str(pair),
        detectable=reach,
        notes=notes,
        picture=best.picture,
    )


def _notes(all_outputs: list[tuple[Outputs, Outputs, Any]]) -> tuple[str, ...]:
    """Say so when there was nothing to see: a mechanism that never answers is trivially private."""
    sides = [outputs for part in all_outputs for outputs in part[:2]]
    if any(isinstance(outputs, np.ndarray) for outputs in sides):
        return ()
    kinds = {output.kind if isinstance(output, Raised) else None for outputs in sides for output in outputs}
    if None in kinds:
        return ()
    return (f"Every run raised {' or '.join(sorted(map(str, kinds)))}, so the audit saw no answers.",)
