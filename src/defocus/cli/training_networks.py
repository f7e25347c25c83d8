"""Networks of ``defocus train``: on arrays and images, through the trainer."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from defocus.cli.training_data import NO_CLASS, arrays
from defocus.cli.training_files import Training
from defocus.cli.training_ledgers import opened
from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.learning.suggesting import suggest

__all__ = ["networked"]

_GROUPS = 4


def networked(asked: Training, x: Any, y: Any, users: Any, *, preview: bool, progress: bool) -> Mapping[str, Any]:
    """A network, trained as the file says; what it leaves open is suggested from public facts."""
    if len(asked.values) < 2:
        raise InvalidParameterError(
            "The classes are not declared.", fix="write classes = 10 in [model]; for folders of images, values = […]."
        )
    try:
        torch: Any = import_module("torch")
    except ImportError as error:
        raise MissingExtraError("Training networks", package="torch", extra="learn") from error
    from defocus.learning.trainer import Trainer  # noqa: PLC0415 # needs torch, of which it was made sure

    device = str(asked.training.get("device", "cpu"))
    inputs = _shaped(torch.from_numpy(x), asked.kind)
    net = _network(torch.nn, asked, tuple(inputs.shape[1:])).to(device)
    units = asked.size or (len(x) if users is None else len(set(users.tolist())))
    settings = _settings(asked, net, units)
    told = {
        "model": f"{asked.kind} of {sum(each.numel() for each in net.parameters())} parameters",
        "protected": str(asked.unit),
        "size": f"{units}, {'declared' if asked.size else 'taken as public'}",
    }
    if preview:
        named = ("batch", "steps", "epochs", "clip")
        plan: dict[str, str] = {name: str(settings[name]) for name in named if name in settings}
        return {**told, **plan, "cost": f"{asked.budget}, charged to {Path(asked.ledger).name} before the first batch"}
    test = None if asked.test is None else arrays(asked, asked.test)
    with opened(asked) as ledger:
        run = Trainer(
            net,
            torch.nn.CrossEntropyLoss(reduction="none", ignore_index=NO_CLASS),
            torch.optim.Adam(net.parameters(), lr=float(asked.training.get("rate", 1e-3))),
            (inputs, torch.from_numpy(y)),
            users=users,
            ledger=ledger,
            purpose=f"train {asked.kind}",
            **settings,
        )
        kept = asked.training.get("checkpoint")
        place = None if kept is None else asked.out.parent / kept
        if place is not None and place.exists():
            run.resume(place)
        made = run.fit(progress=progress, checkpoint=place)
    torch.save({name: value.cpu() for name, value in net.state_dict().items()}, asked.out)
    report = {**told, **made.facts}
    if test is not None:
        with torch.no_grad():
            guessed = net(_shaped(torch.from_numpy(test[0]), asked.kind).to(device)).argmax(1).cpu().numpy()
        report["accuracy"] = f"{(guessed == test[1]).mean():.4f} on the public examples"
    return {**report, "written": str(asked.out)}


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


def _network(nn: Any, asked: Training, shape: tuple[int, ...]) -> Any:
    classes, hidden = len(asked.values), int(asked.settings.get("hidden", 64))
    if asked.kind == "linear":
        return nn.Linear(shape[0], classes)
    if asked.kind == "mlp":
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
