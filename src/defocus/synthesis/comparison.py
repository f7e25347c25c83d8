"""How good synthetic rows are, and what they give away: exact numbers, for the owner of the private rows only.

What is computed here looks at private rows without noise. It is free because nothing of it may be shown to others.
What may be shown was measured with held-back budget: ``made.quality`` and ``made.report``.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.answers import export
from defocus.answers.page import document
from defocus.answers.plots import Look
from defocus.engines.sources import source
from defocus.errors import InvalidParameterError, MissingExtraError, UnknownColumnError, WrongKindError
from defocus.privacy.html import html_facts, html_table
from defocus.synthesis.field import counted

__all__ = ["Comparison", "compare"]

_BINS = 16
"""Into how many parts of equal size numbers are divided."""
_MOST_SETS, _MOST_ROWS, _COMPARED = 400, 2000, 5000
"""At most so many triples are looked at, so many rows attacked, and so many synthetic rows compared with each."""
_FREQUENT = 0.01
_WARNING = "For the owner of the private rows only: these numbers are exact, and were not made private."


@final
@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Exact distances between private and synthetic rows, for the owner only. Made by :func:`compare`.

    >>> rows = pa.table({"a": [0, 1] * 50, "b": [True, False] * 50})
    >>> compare(rows, rows).k_marginal
    1000.0
    """

    columns: tuple[str, ...]
    divergence: tuple[float, ...]
    """The Jensen–Shannon divergence of each column, in bits."""
    pairs: NDArray[np.float64]
    """The total variation distance of each pair of columns; of single columns on the diagonal."""
    triples: float
    """The mean total variation distance of triples of columns."""
    correlation: float
    """The mean absolute difference of rank correlations."""
    covered: float
    """Of the pairs of values that one in a hundred private rows has, the part that the synthetic rows have half to
    twice as often."""
    prediction: dict[str, float] = field(default_factory=dict)
    """How well a model that was trained on private and on synthetic rows predicts held-out rows."""
    membership: dict[str, float] = field(default_factory=dict)
    """The AUC of an attack that tells members by the nearest synthetic row; beside it that on copies of members."""

    @property
    def k_marginal(self) -> float:
        """The score of the NIST challenges: 1000 (1 - mean total variation distance of triples)."""
        return 1000 * (1 - self.triples)

    @property
    def facts(self) -> dict[str, float]:
        """The numbers by name."""
        number = len(self.columns)
        two = float(self.pairs[np.triu_indices(number, 1)].mean()) if number > 1 else 0.0
        return {
            "total variation of columns": float(np.diag(self.pairs).mean()),
            "total variation of pairs": two,
            "total variation of triples": self.triples,
            "k-marginal score": self.k_marginal,
            "difference of rank correlations": self.correlation,
            "frequent subgroups covered": self.covered,
            **{f"prediction, trained on {name} rows": value for name, value in self.prediction.items()},
            **{f"membership AUC, {name}": value for name, value in self.membership.items()},
        }

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        return "\n".join([_WARNING, *(f"{name:<{width}}  {value:.4g}" for name, value in self.facts.items())])

    def plot(self) -> Any:
        """Divergence of columns, and distances of pairs."""
        number = len(self.columns)
        figure = Look().paper(120 + 26 * number)
        left, right = figure.subplots(1, 2, sharey=True)
        left.barh(range(number), self.divergence, color="#1f6c64")
        left.set_yticks(range(number), [name[:24].replace("$", r"\$") for name in self.columns], fontsize=8)
        left.set_xlabel("Jensen–Shannon divergence, bits", fontsize=8)
        shown = right.imshow(self.pairs, cmap="viridis", aspect="auto")
        right.set_xticks([])
        right.set_xlabel("total variation of pairs", fontsize=8)
        figure.colorbar(shown, ax=right)
        return figure

    def report(self, path: str | Path, *, title: str = "Synthetic and private rows") -> Path:
        """Write one HTML file with all numbers and plots, which says that it is for the owner only."""
        rows = [[name, f"{value:.4f}"] for name, value in zip(self.columns, self.divergence, strict=True)]
        facts = html_facts({name: f"{value:.4g}" for name, value in self.facts.items()})
        body = (
            f"<p><strong>{escape(_WARNING)}</strong></p>{facts}{self.plot().tag()}"
            f"{html_table(['column', 'Jensen–Shannon divergence'], rows, right=[False, True], caption='columns')}"
        )
        export.write_bytes(path, document(title, body).encode("utf-8", "replace"))
        return Path(path)


def compare(real: Any, synthetic: Any, *, holdout: Any = None, target: str | None = None) -> Comparison:
    """Compare synthetic rows with the private ones exactly, for the owner only: nothing of it is private.

    Args:
        real: the private rows, a table or frame.
        synthetic: synthetic rows with the same columns.
        holdout: rows of other people, which the synthetic rows were not made of; predictions and membership need them.
        target: the column to predict.

    >>> rows = pa.table({"a": [0, 1] * 50, "b": [True, False] * 50})
    >>> made = compare(rows, pa.table({"a": [0, 1] * 50, "b": [True] * 100}))
    >>> made.pairs.round(2).tolist()
    [[0.0, 0.5], [0.5, 0.5]]
    """
    tables = [_table(one) for one in (real, synthetic, *(() if holdout is None else (holdout,)))]
    names = tuple(tables[1].column_names)
    for name in (*names, *([] if target is None else [target])):
        if any(name not in table.column_names for table in tables):
            short = next(table for table in tables if name not in table.column_names)
            raise UnknownColumnError(name, short.column_names)
    if not all(table.num_rows for table in tables):
        raise InvalidParameterError("There is no row to compare.", fix="pass rows of private and of synthetic people.")
    sizes, codes = _coded(tables, names)
    mine, theirs, *others = codes
    number = len(names)
    pairs = np.zeros((number, number))
    for own in itertools.combinations_with_replacement(range(number), 2):
        pairs[own] = pairs[own[::-1]] = _distance(mine, theirs, tuple(dict.fromkeys(own)), sizes)
    triples = list(itertools.combinations(range(number), 3))
    if len(triples) > _MOST_SETS:
        triples = [triples[i] for i in np.random.default_rng(0).choice(len(triples), _MOST_SETS, replace=False)]
    return Comparison(
        columns=names,
        divergence=tuple(_divergence(mine[:, i], theirs[:, i], sizes[i]) for i in range(number)),
        pairs=pairs,
        triples=float(np.mean([_distance(mine, theirs, own, sizes) for own in triples])) if triples else 0.0,
        correlation=_correlation(mine, theirs),
        covered=_covered(mine, theirs, sizes),
        prediction={} if target is None or not others else _predictions(names.index(target), mine, theirs, others[0]),
        membership={} if not others else _memberships(mine, theirs, others[0]),
    )


def _table(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    opened = source(given)
    try:
        return opened.engine.run(opened.relation)
    finally:
        opened.engine.close()


def _coded(tables: Sequence[pa.Table], names: Sequence[str]) -> tuple[list[int], list[NDArray[np.int64]]]:
    """The rows as codes: values as they are, numbers in parts of equal size of the first table; missing is a value."""
    sizes, columns = [], []
    for name in names:
        chunks = _alike(name, [table[name].combine_chunks() for table in tables])
        numbers = pa.types.is_integer(chunks[0].type) or pa.types.is_floating(chunks[0].type)
        numbers = numbers or pa.types.is_temporal(chunks[0].type)
        held = [np.asarray(chunk.to_pandas()) for chunk in chunks]
        known = [np.asarray(chunk.is_valid()) for chunk in chunks]
        if numbers and len(set(held[0][known[0]].tolist())) > _BINS:
            ends = np.unique(np.quantile(held[0][known[0]].astype(float), np.linspace(0, 1, _BINS + 1)[1:-1]))
            found = [np.searchsorted(ends, one.astype(float), side="right") for one in held]
            size = len(ends) + 1
        else:
            places: dict[Any, int] = {}
            found = [np.array([places.setdefault(value, len(places)) for value in one.tolist()]) for one in held]
            size = len(places)
        columns.append([np.where(there, own, size) for own, there in zip(found, known, strict=True)])
        sizes.append(size + 1)
    return sizes, [np.stack([column[i] for column in columns], 1).astype(np.int64) for i in range(len(tables))]


def _alike(name: str, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns in one type, so that 1, 1.0 and '1' are the same value: a number where all of them are."""
    plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in columns]
    kinds = list(dict.fromkeys(one.type for one in plain))
    if len(kinds) == 1:
        return plain
    for kind in (pa.float64(), *(own for own in kinds if pa.types.is_temporal(own)), pa.bool_(), pa.string()):
        try:
            return [one.cast(kind) for one in plain]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    raise WrongKindError(f"The column {name!r:.60} is of types that have no value in common.", fix="cast one of them.")


def _distance(one: NDArray[np.int64], two: NDArray[np.int64], own: tuple[int, ...], sizes: Sequence[int]) -> float:
    shares = [counted(rows, own, sizes) / len(rows) for rows in (one, two)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _divergence(one: NDArray[np.int64], two: NDArray[np.int64], size: int) -> float:
    p, q = (np.bincount(own, minlength=size) / len(own) for own in (one, two))
    middle = (p + q) / 2
    parts = [own[own > 0] * np.log2(own[own > 0] / middle[own > 0]) for own in (p, q)]
    return float(sum(part.sum() for part in parts) / 2)


def _correlation(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    if one.shape[1] < 2:
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [np.nan_to_num(np.corrcoef(rows, rowvar=False)) for rows in (one, two)]
    return float(np.abs(found[0] - found[1])[np.triu_indices(one.shape[1], 1)].mean())


def _covered(one: NDArray[np.int64], two: NDArray[np.int64], sizes: Sequence[int]) -> float:
    held = []
    for own in itertools.combinations(range(len(sizes)), 2):
        mine, theirs = (counted(rows, own, sizes) / len(rows) for rows in (one, two))
        frequent = mine >= _FREQUENT
        held.append((theirs[frequent] >= mine[frequent] / 2) & (theirs[frequent] <= 2 * mine[frequent]))
    return float(np.concatenate(held).mean()) if held and sum(map(len, held)) else 1.0


def _predictions(
    target: int, mine: NDArray[np.int64], theirs: NDArray[np.int64], held: NDArray[np.int64]
) -> dict[str, float]:
    try:
        ensemble, metrics = import_module("sklearn.ensemble"), import_module("sklearn.metrics")
    except ImportError as error:
        raise MissingExtraError("Predicting", package="scikit-learn", extra="learn") from error
    found = {}
    for name, rows in (("private", mine), ("synthetic", theirs)):
        inputs, wanted = np.delete(rows, target, 1), rows[:, target]
        if len(np.unique(wanted)) < 2:
            found[name] = 0.5
            continue
        model = ensemble.HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(inputs, wanted)
        asked, true = np.delete(held, target, 1), held[:, target]
        if len(np.unique(true)) == len(model.classes_) == 2:
            found[name] = float(metrics.roc_auc_score(true == model.classes_[1], model.predict_proba(asked)[:, 1]))
        else:
            found[name] = float((model.predict(asked) == true).mean())
    return found


def _memberships(
    members: NDArray[np.int64], synthetic: NDArray[np.int64], others: NDArray[np.int64]
) -> dict[str, float]:
    """The attack on these rows, and on a generator that hands out copies of a half of the members."""
    random = np.random.default_rng(0)
    chosen = [rows[random.permutation(len(rows))[:_MOST_ROWS]] for rows in (members, others)]
    copies = chosen[0][random.integers(0, len(chosen[0]), len(chosen[0]))]
    inside, outside = chosen
    attacked = {"these rows": synthetic, "copies of members": copies}
    return {name: _attacked(inside, outside, shown) for name, shown in attacked.items()}


def _attacked(members: NDArray[np.int64], others: NDArray[np.int64], shown: NDArray[np.int64]) -> float:
    """How well members are told by how many columns the most similar row that is shown has in common with them."""
    random = np.random.default_rng(1)
    shown = shown[random.permutation(len(shown))[:_COMPARED]].astype(np.int32)
    alike = []
    for rows in (members, others):
        parts = np.array_split(rows.astype(np.int32), max(1, len(rows) // 100))
        alike.append(np.concatenate([(part[:, None, :] == shown[None]).sum(2).max(1) for part in parts]))
    inside, outside = alike
    more = (inside[:, None] > outside[None]).mean() + (inside[:, None] == outside[None]).mean() / 2
    return float(more)
