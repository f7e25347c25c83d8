"""``defocus train FILE --server URL``: the file says what to fit to a data set of a server, and why it is asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from defocus.cli.options import FILE
from defocus.cli.questions import remote_table, show
from defocus.cli.training.files import ESTIMATORS, needed
from defocus.errors import DatasetFileError
from defocus.tables.dataset_file import Section, parse

__all__ = ["EXAMPLE", "asked", "fitted"]

EXAMPLE = """\
dataset = "visits"           # the data set of the server, which has its own unit, bounds and ledger
out = "model.json"
epsilon = 1                  # the price of this training
delta = 1e-6
purpose = "research"         # one of those that the data set declares
reason = "who stays longer"  # for the officer who decides
request = "ward-model"       # a name: asked again under it, the same model is returned, free

[model]
kind = "logistic"            # or additive, naive-bayes, linear-regression, k-means, pca
inputs = ["age", "days"]     # columns with declared bounds
target = "ward"              # none for k-means and pca
# filter = "age >= 18"       # only these rows
# max_iter = 10              # settings of the model
"""


def asked(text: str, home: Path) -> tuple[Section, Path]:
    """What a file asks a server for, and where the model is to be written."""
    top = parse(text)
    for key in ("data", "ledger", "anchor_file", "unit", "budget", "features", "size"):
        if key in top:
            top.refuse(
                key, f"The server decides about {key}", f"remove {key}; defocus train --example server prints a file."
            )
    top.only("dataset", "out", "epsilon", "delta", "purpose", "reason", "request", "model")
    return top, home / (top.word("out") or "model.json")


def fitted(top: Section, out: Path, server: str, *, preview: bool, as_json: bool) -> Mapping[str, Any]:
    """Ask for the model, and write it; empty where only its preview was shown."""
    model = top.section("model")
    kind = needed(model, "kind")
    if kind not in ESTIMATORS:
        model.refuse("kind", f"A server fits no model {kind!r:.60}", f"choose {', '.join(ESTIMATORS)}.")
    epsilon = top.number("epsilon")
    if epsilon is None:
        top.refuse(None, "It is not said what the training may cost", "write epsilon = 1 and delta = 1e-6.")
    price = {"epsilon": epsilon, "delta": top.number("delta")}
    table = remote_table(server, Path(top.word("dataset") or FILE))
    for condition in model.words("filter"):
        table = table.where(condition)
    settings = {key: value for key, value in model.values.items() if key not in {"kind", "inputs", "target", "filter"}}
    wanted = table.model(kind, model.words("inputs"), model.word("target"), **settings)
    if preview:
        show(wanted.preview(**price, purpose=top.word("purpose")), explain=False, as_json=as_json)
        return {}
    why = {key: top.word(key) for key in ("purpose", "reason", "request")}
    made = wanted.release(**price, **why)
    try:
        out.write_bytes(made.to_file())
    except OSError as error:
        raise DatasetFileError(
            f"The model cannot be written: {error.strerror}.", fix="ask again under the same request; it is free."
        ) from error
    return {
        "model": f"{made.record['model']} of {', '.join(made.record['features'])}",
        "charged": str(made.receipt),
        "written": str(out),
    }
