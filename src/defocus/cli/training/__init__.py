"""``defocus train``: reading a file, training what it asks for, writing the model and reporting."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from defocus import learning
from defocus.cli.terminal import console, facts, plain, to_json
from defocus.cli.training import remote
from defocus.cli.training.estimators import ESTIMATORS, table, write
from defocus.cli.training.files import EXAMPLES, NETWORKS, Training, expense, opened, read, text_of, tried
from defocus.cli.training.networks import arrays
from defocus.errors import InvalidParameterError, UnfitDataError

__all__ = ["draft", "train"]


def draft(kind: str) -> None:
    """Print a file to begin with."""
    examples = {**EXAMPLES, "server": remote.EXAMPLE}
    console().print(examples[kind], soft_wrap=True, end="")


def train(config: Path | None, *, server: str | None, preview: bool, quiet: bool, force: bool, as_json: bool) -> None:
    """Do what the file says, or only say it."""
    if config is None:
        raise InvalidParameterError(
            "It is not said what to train.", fix="name a file; defocus train --example table prints one."
        )
    if server is not None:
        top, out = remote.asked(text_of(config), config.absolute().parent)
        _writable(out, force=force)
        report = remote.fitted(top, out, server, preview=preview, as_json=as_json)
    else:
        report = _trained(read(config), preview=preview, force=force, progress=not (quiet or as_json))
    if as_json and report:
        to_json(report)
    elif report:
        console().print(facts((name, plain(words)) for name, words in report.items()), soft_wrap=True)


def _writable(out: Path, *, force: bool) -> None:
    if not out.parent.is_dir():
        raise InvalidParameterError("There is no folder for the model.", fix='make it, or write another out = "…".')
    if out.exists() and not force:
        raise InvalidParameterError(
            f"There is a model at {out.name!r:.100} already; nothing was charged.",
            fix='write another out = "…", or add --force to write over it.',
        )


def _trained(asked: Training, *, preview: bool, force: bool, progress: bool) -> Mapping[str, Any]:
    """What becomes of training here."""
    _writable(asked.out, force=force)
    if asked.kind in NETWORKS:
        from defocus.cli.training.networks import networked  # noqa: PLC0415 # torch is loaded only for networks

        return networked(asked, *arrays(asked, asked.data), preview=preview, progress=progress)
    return _estimated(asked, preview=preview)


def _estimated(asked: Training, *, preview: bool) -> Mapping[str, Any]:
    """An estimator of the table."""
    name = ESTIMATORS[asked.kind]
    features, target = table(asked, asked.data)
    test = None if asked.test is None else table(asked, asked.test)
    ends = [list(end) for end in zip(*asked.features.values(), strict=True)]
    cost = asked.price
    given: dict[str, Any] = {**asked.settings, "bounds": ends}
    given |= {"rho": cost.rho} if cost.rho is not None else {"epsilon": cost.epsilon, "delta": cost.delta}
    if asked.range is not None:
        given["target"] = asked.range
    elif asked.values and asked.supervised:
        given["classes"] = list(range(len(asked.values)))
        if asked.weights:
            given["class_weight"] = dict(enumerate(asked.weights))
    if test is not None and asked.values and asked.supervised and (test[1] < 0).all():
        raise UnfitDataError(
            "No public row has a declared class, so private ones hardly would; nothing was charged.",
            fix="write values = […] as they are written in the data, and check the public rows.",
        )
    told: dict[str, Any] = {
        "model": f"{name} of {len(asked.features)} feature{'s' * (len(asked.features) != 1)}",
        "protected": str(asked.unit),
    }
    kind = partial(getattr(learning, name), purpose=f"train {name}", **given)
    if preview:
        with tried(asked) as ledger:  # a fit to synthetic rows is refused where that to private ones would be
            model = kind(ledger=ledger).fit(np.zeros((2, len(asked.features))), np.zeros(2))
        return {**told, "cost": expense(asked, model.event_, "the fit")}
    with opened(asked) as ledger:
        model = kind(ledger=ledger)
        model.fit(features, target) if asked.supervised else model.fit(features)
        told |= {"cost": str(cost), "charged": str(model.receipt_), "left": str(ledger.remaining())}
    write(asked.out, name, asked.features, asked.values, model.released())
    if test is not None and asked.supervised:
        told["score"] = f"{model.score(*test):.4f} on the public rows"
    return {**told, "written": str(asked.out)}
