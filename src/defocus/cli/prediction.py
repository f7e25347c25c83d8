"""``defocus predict``: what a trained model says about rows, arrays, images or texts. Nothing is charged."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from defocus.cli.terminal import console, facts, plain, to_json
from defocus.cli.training.estimators import CLASSIFIERS, Kept, columns, kept, table_of
from defocus.cli.training.networks import inputs
from defocus.errors import InvalidParameterError, UnfitDataError, UnknownColumnError

__all__ = ["predict"]

_WRITERS: Mapping[str, Callable[[pa.Table, Any], None]] = {
    ".csv": pacsv.write_csv,
    ".parquet": pq.write_table,
    ".pq": pq.write_table,
}


def predict(
    model: Path, data: Path, *, out: Path | None, keep: Sequence[str], probabilities: bool, as_json: bool
) -> None:
    """Write or print what the model says about every row, in their order."""
    if out is not None and out.suffix.lower() not in _WRITERS:
        raise InvalidParameterError(
            f"Predictions cannot be written as {out.suffix!r:.20}.", fix="name a file that ends in .csv or .parquet."
        )
    if model.suffix.lower() == ".json":
        predictions, told = _of_rows(kept(model), data, keep, probabilities=probabilities)
    else:
        predictions, told = _of_examples(model, data, keep, probabilities=probabilities)
    if out is not None:
        _WRITERS[out.suffix.lower()](predictions, out)
        told = {**told, "written": str(out)}
    if as_json:
        to_json(told if out is not None else predictions.to_pydict())
    elif out is not None:
        console().print(facts((name, plain(words)) for name, words in told.items()), soft_wrap=True)
    else:
        printed = pa.BufferOutputStream()
        pacsv.write_csv(predictions, printed)
        text = printed.getvalue().to_pybytes().decode()
        lines = map(plain, text.split("\n")) if sys.stdout.isatty() else text.split("\n")  # no text acts on a terminal
        sys.stdout.write("\n".join(lines))


def _of_rows(
    kept_model: Kept, data: Path, keep: Sequence[str], *, probabilities: bool
) -> tuple[pa.Table, dict[str, str]]:
    """Predictions of an estimator."""
    rows = table_of(data)
    for name in (*kept_model.features, *keep):
        if name not in rows.column_names:
            raise UnknownColumnError(name, rows.column_names)
    features = columns(rows, kept_model.features)
    beside = {name: rows[name] for name in keep}
    told = {"model": f"{kept_model.kind} of {', '.join(kept_model.features)}", "rows": str(rows.num_rows)}
    odd = {
        name: int(np.isnan(values).sum()) - rows[name].null_count
        for name, values in zip(kept_model.features, features.T, strict=True)
    }
    missing = [f"{name} {number}" for name, number in odd.items() if number > 0]
    if missing:
        told["missing"] = f"cells that are no numbers, taken as the middle of the bounds: {', '.join(missing)}"
    if not rows.num_rows:
        raise UnfitDataError("The table has no rows.", fix="name a table with a row at least.")
    return _joined(beside, _said(kept_model, features, probabilities=probabilities)), told


def _said(predictions: Kept, features: Any, *, probabilities: bool) -> dict[str, Any]:
    if probabilities and predictions.kind not in CLASSIFIERS:
        raise InvalidParameterError(f"A {predictions.kind} has no probabilities.", fix="leave --probabilities out.")
    if predictions.kind in CLASSIFIERS:
        return _named(predictions.model.predict_proba(features), predictions.classes, probabilities=probabilities)
    if predictions.kind == "PCA":
        along = predictions.model.transform(features)
        return {f"component_{place + 1}": values for place, values in enumerate(along.T)}
    return {"cluster" if predictions.kind == "KMeans" else "prediction": predictions.model.predict(features)}


def _named(chances: Any, classes: Sequence[Any], *, probabilities: bool) -> dict[str, Any]:
    """The most probable class of each row and, where they are asked for, the probabilities of all."""
    kinds = {type(label) for label in classes}
    names = [label if len(kinds) == 1 else str(label) for label in classes]
    columns: dict[str, Any] = {"prediction": [names[place] for place in chances.argmax(axis=1).tolist()]}
    if probabilities:
        columns |= {f"probability_{name}": chances[:, place] for place, name in enumerate(names)}
    return columns


def _of_examples(
    model: Path, data: Path, keep: Sequence[str], *, probabilities: bool
) -> tuple[pa.Table, dict[str, str]]:
    """Predictions of a network."""
    from defocus.cli.training.networks import restored  # noqa: PLC0415 # torch is loaded only for networks

    if keep:
        raise InvalidParameterError("Only tables have columns to keep.", fix="leave --keep out.")
    network = restored(model)
    x, files = inputs(data, network)
    said = _named(network.chances(x), network.classes, probabilities=probabilities)
    return _joined({} if files is None else {"file": files}, said), {
        "model": f"{network.kind} for {len(network.classes)} classes",
        "examples": str(len(x)),
    }


def _joined(beside: Mapping[str, Any], said: Mapping[str, Any]) -> pa.Table:
    twice = next((name for name in beside if name in said), None)
    if twice is not None:
        raise InvalidParameterError(
            f"A column called {twice!r:.60} is kept, and predictions are called so.", fix="rename it, or leave it out."
        )
    return pa.table({**beside, **said})
