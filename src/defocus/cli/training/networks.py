"""Networks of ``defocus train``: models, arrays and folders of images.

The data of ``defocus train`` for networks: arrays and folders of images; for texts see :mod:`.texts`. Refusals never
quote what is in them.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import numpy as np

from defocus.cli.training.estimators import loaded
from defocus.cli.training.files import NETWORKS, TEXTS, TextForm, Training, expense, opened, tried
from defocus.cli.training.texts import labelled_texts, plain_texts
from defocus.errors import InvalidParameterError, MissingExtraError, UnfitDataError
from defocus.learning.suggestions import EPOCHS, suggest

__all__ = ["NO_CLASS", "Network", "arrays", "inputs", "networked", "restored"]


NO_CLASS = -100
"""The class of an example that has none of the declared ones: it adds nothing to the loss."""

_SIDE = 28
_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}


def arrays(asked: Training, place: Path) -> tuple[Any, Any, Any]:
    """Inputs, classes and users of a .npz file, or of a folder with a folder of images or texts for each class."""
    if asked.form is not None:
        return labelled_texts(asked, asked.form, place, NO_CLASS)
    if place.is_dir():
        return (*_images(asked, place), None)
    kept = _kept(place)
    users = asked.unit.column
    for name in ("x", "y", *([] if users is None else [users])):
        if name not in kept:
            raise UnfitDataError(
                f"The data has no array {name!r:.60}.", fix=f"write it with numpy.savez(file, …, {name}=…)."
            )
    x, y = kept["x"], kept["y"]
    if x.dtype.kind not in "fiub" or x.ndim < 2 or y.dtype.kind not in "iub" or y.shape != (len(x),):
        raise UnfitDataError(
            "x must hold numbers with an example in each row, and y the whole number of its class.",
            fix="write for example x of shape (n, 28, 28) and y of shape (n,).",
        )
    inside = (y >= 0) & (y < len(asked.values))
    return x.astype(np.float32), np.where(inside, y, NO_CLASS).astype(np.int64), None if users is None else kept[users]


def _kept(place: Path) -> dict[str, Any]:
    """The arrays of an .npz file; pickles in it are not opened."""
    try:
        with place.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile):
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        pass  # what is wrong with it would quote it
    raise UnfitDataError(
        f"The arrays in {place.name!r:.100} cannot be read.",
        fix='name an .npz file written with numpy.savez(file, x=…, y=…), or a folder of images, as data = "…".',
    )


def inputs(place: Path, network: "Network") -> tuple[Any, list[str] | None]:
    """Inputs to predict: the array x of an .npz file, a column of texts, or what is in a folder with its names."""
    side, colour = network.side, network.colour
    if network.form is not None:
        return plain_texts(place, network.form)
    if place.is_dir():
        files = _files(place)
        read = _reader(side, colour=colour)
        if not files:
            raise UnfitDataError("There is no image in the folder.", fix=f"put there {', '.join(sorted(_IMAGES))}.")
        arrays = [read(file) for file in files]
        if any(image is None for image in arrays):
            raise UnfitDataError("An image cannot be read.", fix="take out what is no image, and run it again.")
        return np.stack(arrays), [file.name for file in files]
    x = _kept(place).get("x")
    if x is None or x.dtype.kind not in "fiub" or x.ndim < 2 or not len(x):
        raise UnfitDataError(
            "x must hold numbers with an example in each row.", fix="write it with numpy.savez(file, x=…)."
        )
    return x.astype(np.float32), None


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in _IMAGES)


def _reader(side: int | None, *, colour: bool) -> Callable[[Path], Any]:
    """What makes an array of numbers from 0 to 1 of an image, channels first; None of what cannot be read."""
    try:
        opened = import_module("PIL.Image").open
    except ImportError as error:
        raise MissingExtraError("Reading images", package="Pillow", extra="plot") from error
    size, mode = (side or _SIDE, side or _SIDE), "RGB" if colour else "L"

    def read(file: Path) -> Any:
        with suppress(Exception), warnings.catch_warnings(action="ignore"):  # whatever a file does that is no image
            with opened(file) as image:
                pixels = np.asarray(image.convert(mode).resize(size), dtype=np.float32) / 255
            return pixels.transpose(2, 0, 1) if colour else pixels[None]
        return None

    return read


def _images(asked: Training, place: Path) -> tuple[Any, Any]:
    """Images and their classes; one that cannot be read is a black one without a class, so that none makes it fail."""
    read = _reader(asked.side, colour=asked.colour)
    black = np.zeros((3 if asked.colour else 1, asked.side or _SIDE, asked.side or _SIDE), np.float32)
    files, classes = [], []
    for number, name in enumerate(asked.values):
        folder = place / str(name)
        if not folder.is_dir():
            raise UnfitDataError(
                f"There is no folder {str(name)!r:.60} in the data.", fix="list the folders as values = […] in [model]."
            )
        for file in _files(folder):
            image = read(file)
            files.append(black if image is None else image)
            classes.append(NO_CLASS if image is None else number)
    if not files:
        raise UnfitDataError("There is no image in the data.", fix=f"put them there as {', '.join(sorted(_IMAGES))}.")
    return np.stack(files), np.array(classes, dtype=np.int64)


_GROUPS = 4
_HIDDEN = 64
_RATE = 1e-3
_FORMAT = "defocus network 2"
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
    form: TextForm | None
    net: Any

    def chances(self, x: Any) -> Any:
        """The probability of each class for every example."""
        torch = _torch()
        examples = _shaped(torch.from_numpy(x), self.kind)
        if tuple(examples.shape[1:]) != self.shape:
            raise UnfitDataError(
                f"Examples have the shape {tuple(examples.shape[1:])}, but the network was trained on {self.shape}.",
                fix="pass examples as they were when it was trained.",
            )
        with torch.no_grad():
            parts = [self.net(examples[i : i + _AT_ONCE]).softmax(1) for i in range(0, len(examples), _AT_ONCE)]
        return torch.cat(parts).numpy()


def networked(asked: Training, x: Any, y: Any, users: Any, *, preview: bool, progress: bool) -> Mapping[str, Any]:
    """A network, trained as the file says; what it leaves open is suggested from public facts."""
    if len(asked.values) < 2:
        raise InvalidParameterError(
            "The classes are not declared.",
            fix="write classes = 10 in [model]; for folders of images or texts, values = […].",
        )
    torch = _torch()
    from defocus.learning.trainer import Trainer  # noqa: PLC0415 # needs torch, of which it was made sure

    device = _device(torch, str(asked.training.get("device", "cpu")))
    inputs = _shaped(torch.from_numpy(x), asked.kind)
    shape, hidden = tuple(inputs.shape[1:]), int(asked.settings.get("hidden", _HIDDEN))
    net = _network(asked.kind, shape, hidden, len(asked.values), asked.form).to(device)
    units = asked.size or (len(x) if users is None else len(set(users.tolist())))
    settings = _settings(asked, net, units)
    told = {
        "model": f"{asked.kind} of {sum(parameter.numel() for parameter in net.parameters())} parameters",
        "protected": str(asked.unit),
        "size": f"{units}, {'declared' if asked.size else 'taken as public'}",
    }
    test = None if asked.test is None else arrays(asked, asked.test)
    if test is not None and (test[1] == NO_CLASS).all():
        raise UnfitDataError(
            "No public example has a declared class; nothing was charged.", fix="check y, or the folders, of test."
        )
    optimizer = torch.optim.Adam(net.parameters(), lr=float(asked.training.get("rate", _RATE)))
    weight = torch.tensor(asked.weights, dtype=torch.float32, device=device) if asked.weights else None
    trainer = partial(
        Trainer,
        net,
        torch.nn.CrossEntropyLoss(weight, reduction="none", ignore_index=NO_CLASS),
        optimizer,
        (inputs, torch.from_numpy(y)),
        users=users,
        purpose=f"train {asked.kind}",
        **settings,
    )
    if preview:
        named = ("batch_size", "steps", "epochs", "max_grad_norm")
        plan: dict[str, str] = {name: str(settings[name]) for name in named if name in settings}
        with tried(asked) as ledger:
            event = trainer(ledger=ledger).plan.event
        return {**told, **plan, "cost": expense(asked, event, "the first batch")}
    with opened(asked) as ledger, trainer(ledger=ledger) as run:
        kept = asked.training.get("checkpoint")
        place = None if kept is None else asked.out.parent / kept
        if place is not None and place.exists():
            told |= _resumed(run, optimizer, place)
        result = run.fit(progress=progress, checkpoint=place)
    from defocus.learning.tensor_files import framed, laid_out  # noqa: PLC0415 # likewise

    asked.out.write_bytes(b"".join(framed(*laid_out(net.state_dict()))))
    made_for = {"format": _FORMAT, "kind": asked.kind, "shape": list(shape), "hidden": hidden}
    made_for |= {"classes": list(asked.values), "side": asked.side, "colour": asked.colour}
    made_for |= {"texts": None if asked.form is None else asdict(asked.form)}
    _beside(asked.out).write_text(json.dumps(made_for, indent=2) + "\n", encoding="utf-8")
    report = {**told, **result.facts}
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
    if (
        kind not in NETWORKS
        or not isinstance(side, int | None)
        or any(type(side_length) is not int for side_length in shape)
    ):
        raise _damaged(place)
    _torch()
    from defocus.learning.tensor_files import taken_apart, tensor_at  # noqa: PLC0415 # needs torch

    net, form = None, None
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # whatever a damaged file does, it is damaged
        form = TextForm(**told["texts"]) if kind in TEXTS else None
        header, body = taken_apart(place)
        network = _network(str(kind), tuple(shape), hidden, len(classes), form)
        network.load_state_dict({name: tensor_at(each, body) for name, each in header.items()})
        net = network.eval()
    if net is None:
        raise _damaged(place)
    return Network(str(kind), tuple(shape), hidden, tuple(classes), side, bool(colour), form, net)


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
    told: dict[str, Any] = {
        "unit": asked.unit,
        "epsilon": asked.price.epsilon,
        "delta": asked.price.delta,
        "size": units,
    }
    told |= {"max_grad_norm": asked.training.get("max_grad_norm", 1.0), "epochs": asked.training.get("epochs", EPOCHS)}
    if "batch_size" in asked.training:
        settings = {**told, "batch_size": asked.training["batch_size"]}
    else:
        settings = suggest(model=net, **told).settings()
    if "audit" in asked.training:
        settings["audit"] = asked.training["audit"]
    return settings if asked.size else {name: value for name, value in settings.items() if name != "size"}


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


def _network(kind: str, shape: tuple[int, ...], hidden: int, classes: int, form: TextForm | None) -> Any:
    nn = _torch().nn
    if form is not None:
        from defocus.cli.training.text_networks import Attention, Bag  # noqa: PLC0415 # needs torch

        if kind == "bag":
            return Bag(form.vocabulary, hidden, classes)
        return Attention(form.vocabulary, form.length, hidden, classes)
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
