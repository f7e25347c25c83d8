"""A lower bound on epsilon for any mechanism, by running it."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from defocus.audit.audit import Setting, audit
from defocus.audit.domains import Columns
from defocus.audit.findings import Finding
from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.runs import Batched, Mechanism
from defocus.errors import InvalidParameterError, Number, non_negative, positive, probability, whole

__all__ = ["Pairs", "lower_bound", "search"]

_CONFIRMED = 3
_SEVERAL, _LOOKED = 16, 12
"""Of more pairs than several, so many are looked at again after a first look."""
Pairs: TypeAlias = str | Columns | Iterable[Pair | tuple[Any, Any]] | Callable[[], Iterable[Pair | tuple[Any, Any]]]
"""A domain, as :func:`~defocus.audit.neighbours` takes it: a kind of data or the columns of tables; or pairs, or a
function that makes pairs."""


def lower_bound(
    mechanism: Mechanism,
    pair: Pair | tuple[Any, Any],
    trials: int = 100_000,
    confidence: float = 0.999,
    *,
    delta: Number = 0,
    claimed: Number | None = None,
    seconds: float | None = None,
    timing: bool = False,
) -> Finding:
    r"""A lower bound on the epsilon that ``mechanism`` loses on ``pair``, and the event that shows it.

    The mechanism is called as ``mechanism(data)``, once for each of ``trials`` runs on each data set,
    or as ``mechanism(data, n)`` if it is wrapped by :func:`~defocus.audit.batched`. What it raises is an output.
    With ``seconds``, runs double from a few hundred up to ``trials`` and stop at a violation of ``claimed`` or when
    the time is over. With ``timing``, the duration of a run counts as part of its output.

    Guarantee:
        With probability at least ``confidence``, the mechanism is not (ε, delta)-DP for any ε below
        the bound. Half of the runs choose one event and its direction; the other half, independent of
        it, judge it by Clopper–Pearson limits, α/2 for each of the two probabilities. With ``seconds``
        each of the J possible rounds judges with new runs at α/J, so stopping at any of them is
        covered by the union bound.
    Assumes:
        Runs on one data set are independent and identically distributed, so the mechanism keeps no state
        and does not change its data; and the data sets are neighbours.

    Error:
        One-sided: a low bound says nothing about privacy. The loss of the best event is reached up to
        about :math:`z_{\alpha/2}\sqrt{2(1-q)/(q\cdot\mathrm{trials})}`.
    Reference:
        Ding, Wang, Wang, Zhang, Kifer (2018), Detecting violations of differential privacy;
        Bichsel, Steffen, Bogunovic, Vechev (2021), DP-Sniper.

    >>> def mean(data):
    ...     return sum(data) / len(data)
    >>> finding = lower_bound(mean, ([], [1.0]), trials=2000, claimed=1)
    >>> finding.verdict, finding.event
    ('violation', 'kind of output is exactly raised ZeroDivisionError')
    """
    setting = _setting(
        mechanism, trials=trials, confidence=confidence, delta=delta, claimed=claimed, seconds=seconds, timing=timing
    )
    return audit(mechanism, _pair(pair), setting)


def search(
    mechanism: Mechanism,
    pairs: Pairs,
    trials: int = 100_000,
    confidence: float = 0.999,
    *,
    delta: Number = 0,
    claimed: Number | None = None,
    seconds: float | None = None,
    timing: bool = False,
) -> Finding:
    """Try many neighbouring data sets and report the one that shows most; parameters as in :func:`lower_bound`.

    Name the function and its domain, and the search looks for inputs by itself: what is hostile in that domain.

    Guarantee:
        As :func:`lower_bound`, over the whole search: a sixteenth of ``trials`` on every pair only ranks
        the pairs and is then thrown away; the best three are judged by new runs at α/3 each. Where there are many
        pairs, a first look with fewer runs chooses twelve of them, and is thrown away as well.

    >>> import numpy as np
    >>> finding = search(lambda data: float(np.nan_to_num(data).sum() > 0), "numbers", trials=2000, claimed=1)
    >>> finding.verdict, finding.pair
    ('violation', 'empty and one row: array([], dtype=float64) and array([1.])')
    >>> from defocus.mechanisms import Laplace
    >>> def triangles(edges):  # noise for the wrong sensitivity
    ...     there = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    ...     closed = [len(there & {frozenset((a, b)) for b in range(7)}) for a in range(7)]
    ...     return int(Laplace(scale=1).sample(np.array([sum(n * (n - 1) // 2 for n in closed)]))[0])
    >>> search(triangles, "edges", trials=1000, claimed=2).verdict  # on a clique that lacks an edge, say
    'violation'
    """
    setting = _setting(
        mechanism, trials=trials, confidence=confidence, delta=delta, claimed=claimed, seconds=seconds, timing=timing
    )
    listed = neighbours(pairs) if isinstance(pairs, str | Mapping) else pairs() if callable(pairs) else pairs
    tried = [_pair(pair) for pair in listed]
    if not tried:
        raise InvalidParameterError("There is no pair of data sets to try.", fix="pass at least one pair.")
    start = time.monotonic()
    best = _ranked(mechanism, tried, setting)[:_CONFIRMED]
    findings: list[Finding] = []
    for done, pair in enumerate(best):
        left = (setting.seconds or 0) - (time.monotonic() - start)
        part = setting.cut(trials=trials, seconds=left / (len(best) - done), parts=len(best))
        findings.append(audit(mechanism, pair, part))
        if findings[-1].violation:
            break
    return replace(
        max(findings, key=lambda finding: finding.epsilon_lower),
        confidence=setting.confidence,
        searched=tuple(pair.name for pair in tried),
        seconds=time.monotonic() - start,
    )


def _ranked(mechanism: Mechanism, tried: list[Pair], setting: Setting) -> list[Pair]:
    """The pairs, most promising first, by few runs on each."""
    if len(tried) == 1:
        return tried
    if len(tried) > _SEVERAL:
        tried = _best(mechanism, tried, setting, setting.trials // 128)[:_LOOKED]
    return _best(mechanism, tried, setting, setting.trials // 16)


def _best(mechanism: Mechanism, tried: list[Pair], setting: Setting, trials: int) -> list[Pair]:
    runs = min(setting.trials, max(trials, 500))
    quick = setting.cut(trials=runs, seconds=(setting.seconds or 0) / (3 * len(tried)))
    bounds = [audit(mechanism, pair, quick).epsilon_lower for pair in tried]
    return [tried[i] for i in sorted(range(len(tried)), key=lambda i: -bounds[i])]


def _setting(
    mechanism: Mechanism,
    *,
    trials: int,
    confidence: float,
    delta: Number,
    claimed: Number | None,
    seconds: float | None,
    timing: bool,
) -> Setting:
    if not callable(mechanism):
        raise InvalidParameterError(
            f"A mechanism must be callable, but it is {type(mechanism).__name__}.", fix="pass a function of the data."
        )
    if timing and isinstance(mechanism, Batched):
        raise InvalidParameterError(
            "The duration of one run cannot be seen when runs are batched.", fix="audit an unbatched mechanism."
        )
    return Setting(
        trials=whole("trials", trials, at_least=64),
        confidence=float(probability("confidence", confidence, zero=False, one=False)),
        delta=float(probability("delta", delta, one=False)),
        claimed=None if claimed is None else float(non_negative("claimed", claimed)),
        seconds=None if seconds is None else float(positive("seconds", seconds)),
        timing=timing,
    )


def _pair(pair: Any) -> Pair:
    if isinstance(pair, Pair):
        return pair
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return Pair("the given pair", pair[0], pair[1])
    raise InvalidParameterError(
        f"A pair of data sets must be a Pair or two data sets, but it is {type(pair).__name__}.",
        fix="pass (first, second), two neighbouring data sets.",
    )
