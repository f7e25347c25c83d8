"""Networks of ``defocus train``: on arrays and images, through the trainer; and what they predict."""

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, final

from defocus.cli.training_data import NO_CLASS, arrays
from defocus.cli.training_files import NETWORKS, Training
from defocus.cli.training_ledgers import opened, price, tried
from defocus.cli.training_models import loaded
from defocus.errors import InvalidParameterError, MissingExtraError, UnfitDataError
from defocus.learning.suggesting import suggest

__all__ = ["Network", "networked", "restored"]

_GROUPS = 4
_HIDDEN = 64
_RATE = 1e-3
_FORMAT = "defocus network 1"
_AT_ONCE = 1024


@final
@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A trained network, what it was made for, and the classes that its numbers stand for."""

    kind: str
    shape: tuple[int, ...]
    hidden: int
    classes: tuple[Any, ...]
    side: int | None
    colour: bool
    net: Any

    def chances(self, x: Any) -> Any:
        """The probability of each class for every example."""
        torch = _torch()
        made = _shaped(torch.from_numpy(x), self.kind)
        if tuple(made.shape[1:]) != self.shape:
            raise UnfitDataError(
                f"Examples have the shape {tuple(made.shape[1:])}, but the network was trained on {self.shape}.",
                fix="pass examples as they were when it was trained.",
            )
        with torch.no_grad():
            parts = [self.net(made[i : i + _AT_ONCE]).softmax(1) for i in range(0, len(made), _AT_ONCE)]
        return torch.cat(parts).numpy()


def networked(asked: Training, x: Any, y: Any, users: Any, *, preview: bool, progress: bool) -> Mapping[str, Any]:
    """A network, trained as the file says; what it leaves open is suggested from public facts."""
    if len(asked.values) < 2:
        raise InvalidParameterError(
            "The classes are not declared.", fix="write classes = 10 in [model]; for folders of images, values = […]."
        )
    torch = _torch()
    from defocus.learning.trainer import Trainer  # noqa: PLC0415 # needs torch, of which it was made sure

    device = _device(torch, str(asked.training.get("device", "cpu")))
    inputs = _shaped(torch.from_numpy(x), asked.kind)
    shape, hidden = tuple(inputs.shape[1:]), int(asked.settings.get("hidden", _HIDDEN))
    net = _network(torch.nn, asked.kind, shape, hidden, len(asked.values)).to(device)
    units = asked.size or (len(x) if users is None else len(set(users.tolist())))
    settings = _settings(asked, net, units)
    told = {
        "model": f"{asked.kind} of {sum(each.numel() for each in net.parameters())} parameters",
        "protected": str(asked.unit),
        "size": f"{units}, {'declared' if asked.size else 'taken as public'}",
    }
    test = None if asked.test is None else arrays(asked, asked.test)
    if test is not None and (test[1] == NO_CLASS).all():
        raise UnfitDataError(
            "No public example has a declared class; nothing was charged.", fix="check y, or the folders, of test."
        )
    optimizer = torch.optim.Adam(net.parameters(), lr=float(asked.training.get("rate", _RATE)))
    trainer = partial(
        Trainer,
        net,
        torch.nn.CrossEntropyLoss(reduction="none", ignore_index=NO_CLASS),
        optimizer,
        (inputs, torch.from_numpy(y)),
        users=users,
        purpose=f"train {asked.kind}",
        **settings,
    )
    if preview:
        named = ("batch", "steps", "epochs", "clip")
        plan: dict[str, str] = {name: str(settings[name]) for name in named if name in settings}
        with tried(asked) as ledger:
            event = trainer(ledger=ledger).plan.event
        return {**told, **plan, "cost": price(asked, event, "the first batch")}
    with opened(asked) as ledger, trainer(ledger=ledger) as run:
        kept = asked.training.get("checkpoint")
        place = None if kept is None else asked.out.parent / kept
        if place is not None and place.exists():
            told |= _resumed(run, optimizer, place)
        made = run.fit(progress=progress, checkpoint=place)
    torch.save({name: value.cpu() for name, value in net.state_dict().items()}, asked.out)
    made_for = {"format": _FORMAT, "kind": asked.kind, "shape": list(shape), "hidden": hidden}
    made_for |= {"classes": list(asked.values), "side": asked.side, "colour": asked.colour}
    _beside(asked.out).write_text(json.dumps(made_for, indent=2) + "\n", encoding="utf-8")
    report = {**told, **made.facts}
    if test is not None:
        with torch.no_grad():
            guessed = net(_shaped(torch.from_numpy(test[0]), asked.kind).to(device)).argmax(1).cpu().numpy()
        report["accuracy"] = f"{(guessed == test[1]).mean():.4f} on the public examples"
    return {**report, "written": str(asked.out)}


def _resumed(run: Any, optimizer: Any, place: Path) -> dict[str, str]:
    """Go on from a checkpoint, which says how fast the run began to learn."""
    rate = optimizer.param_groups[0]["lr"]
    run.resume(place)
    began = optimizer.param_groups[0]["lr"]
    if began != rate:
        raise InvalidParameterError(
            f"The run in {place.name!r:.100} began with rate = {began:g}, and cannot go on with another one.",
            fix=f"write rate = {began:g}, or name another checkpoint for another run, which is charged on its own.",
        )
    return {"resumed": f"after step {run.steps_taken} of {run.plan.steps}, for which nothing is charged again"}


def restored(place: Path) -> Network:
    """The network that was written to a place, with the description beside it. No pickle is opened."""
    told = loaded(_beside(place), _FORMAT)
    kind, shape, hidden, classes = (told.get(name) for name in ("kind", "shape", "hidden", "classes"))
    side, colour = told.get("side"), told.get("colour")
    if not isinstance(shape, list) or not isinstance(hidden, int) or not isinstance(classes, list):
        raise _damaged(place)
    if kind not in NETWORKS or not isinstance(side, int | None) or any(type(each) is not int for each in shape):
        raise _damaged(place)
    torch = _torch()
    net = None
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # whatever a damaged file does, it is damaged
        made = _network(torch.nn, str(kind), tuple(shape), hidden, len(classes))
        made.load_state_dict(torch.load(place, map_location="cpu", weights_only=True))
        net = made.eval()
    if net is None:
        raise _damaged(place)
    return Network(str(kind), tuple(shape), hidden, tuple(classes), side, bool(colour), net)


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError("Training networks", package="torch", extra="learn") from error


def _device(torch: Any, name: str) -> str:
    with suppress(Exception):  # whatever a device that is not there does
        torch.zeros(1, device=name)
        return name
    raise InvalidParameterError(f"There is no device {name!r:.60} here.", fix='write device = "cpu", or leave it out.')


def _beside(place: Path) -> Path:
    return Path(f"{place}.json")


def _damaged(place: Path) -> UnfitDataError:
    return UnfitDataError(
        f"The network {place.name!r:.100} is damaged, or not the one that is described beside it.",
        fix=f"keep {place.name!r:.100} and {_beside(place).name!r:.100} as defocus train wrote them.",
    )


def _settings(asked: Training, net: Any, units: int) -> dict[str, Any]:
    clip = asked.training.get("clip", 1.0)
    if "batch" not in asked.training:
        found = suggest(size=units, budget=asked.budget, model=net, unit=asked.unit, clip=clip).settings()
    else:
        found = {"batch": asked.training["batch"], "epochs": asked.training["epochs"], "clip": clip}
        found |= {"unit": asked.unit, "budget": asked.budget, "size": units}
    return found if asked.size else {name: value for name, value in found.items() if name != "size"}


def _shaped(x: Any, kind: str) -> Any:
    """Images with a channel for convolutions; rows for everything else."""
    if kind != "cnn":
        return x.flatten(1)
    if x.dim() == 3:
        return x[:, None]
    if x.dim() != 4:
        raise InvalidParameterError(
            "A cnn needs images: x of shape (n, side, side) or (n, channels, side, side).", fix='write kind = "mlp".'
        )
    return x


def _network(nn: Any, kind: str, shape: tuple[int, ...], hidden: int, classes: int) -> Any:
    if kind == "linear":
        return nn.Linear(shape[0], classes)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(shape[0], hidden), nn.Tanh(), nn.Linear(hidden, classes))
    wide = 2 * _GROUPS * max(1, hidden // 8 // _GROUPS)
    return nn.Sequential(
        nn.Conv2d(shape[0], wide, 3, stride=2, padding=1, bias=False),
        nn.GroupNorm(_GROUPS, wide),
        nn.Tanh(),
        nn.Conv2d(wide, 2 * wide, 3, stride=2, padding=1, bias=False),
        nn.GroupNorm(_GROUPS, 2 * wide),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * wide, classes),
    )
