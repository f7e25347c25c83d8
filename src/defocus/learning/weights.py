"""Weights of public models in folders, as they are published: safetensors and ``config.json``. Nothing in them runs."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from defocus.errors import UnfitModelError
from defocus.learning.tensor_files import framed, is_kept, laid_out, taken_apart, tensor_at

__all__ = ["load_weights", "save_weights"]

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"


def load_weights(folder: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights of a model by name, and its configuration, from a folder as hubs of models hand it out.

    ``model.safetensors``, or the parts that ``model.safetensors.index.json`` names, and ``config.json`` if it is there.
    Nothing is downloaded and nothing in the files runs; pickles, such as ``pytorch_model.bin``, are refused.

    Assumes:
        The weights are public: what a model was trained on before is not protected by what it is trained with now.

    >>> import tempfile
    >>> home = tempfile.TemporaryDirectory()
    >>> save_weights(home.name, torch.nn.Linear(3, 2).state_dict(), {"width": 3})
    >>> weights, config = load_weights(home.name)
    >>> {name: tuple(each.shape) for name, each in weights.items()}, config
    ({'weight': (2, 3), 'bias': (2,)}, {'width': 3})
    >>> home.cleanup()
    """
    home = Path(folder)
    weights: dict[str, torch.Tensor] = {}
    for part, listed in _parts(home).items():
        try:
            header, body = taken_apart(home / part)
            names = [name for name in header if name != "__metadata__"] if listed is None else listed
            weights |= {name: tensor_at(header[name], body) for name in names}
        except OSError as error:
            raise _unfit(f"{part} cannot be read: {error.strerror or type(error).__name__}", _FIX) from None
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, RecursionError, struct.error):
            raise _unfit(f"{part} is damaged, or its types are not known", "fetch it again.") from None
    return weights, _json(home / _CONFIG) if (home / _CONFIG).exists() else {}


def save_weights(
    folder: str | Path, weights: Mapping[str, torch.Tensor], config: Mapping[str, Any] | None = None
) -> None:
    """Write weights and a configuration as :func:`load_weights`, transformers and safetensors read them.

    ``weights`` is a ``state_dict()``. Those of a model that was trained privately are as private as its run was.

    >>> import tempfile
    >>> home = tempfile.TemporaryDirectory()
    >>> save_weights(f"{home.name}/tiny", torch.nn.Linear(3, 2).state_dict())
    >>> sorted(place.name for place in Path(home.name, "tiny").iterdir())
    ['model.safetensors']
    >>> home.cleanup()
    """
    given: Any = weights
    for name, each in given.items() if isinstance(given, Mapping) else [(None, None)]:
        if not isinstance(name, str) or name == "__metadata__" or not is_kept(each):
            raise _unfit(f"{name!r:.100} is no tensor of a type that the file has", "pass model.state_dict().")
    try:
        text = None if config is None else json.dumps(dict(config), indent=2) + "\n"
    except (ValueError, TypeError, RecursionError):
        raise _unfit("config= is no mapping of what JSON has", "pass a dict of texts, numbers and lists.") from None
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
        header, blocks = laid_out(weights)
        with (home / _WEIGHTS).open("wb") as file:
            file.writelines(framed({"__metadata__": {"format": "pt"}, **header}, blocks))
        if text is not None:
            (home / _CONFIG).write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unfit(f"they cannot be written: {error.strerror or type(error).__name__}", "name a folder.") from None


_FIX = f"name a folder with {_WEIGHTS}, or with {_INDEX} and the parts that it names."


def _parts(home: Path) -> dict[str, list[str] | None]:
    """The names of the files that hold the tensors, and of the tensors in each; None for all of them."""
    if (home / _WEIGHTS).exists():
        return {_WEIGHTS: None}
    if (home / _INDEX).exists():
        listed = _json(home / _INDEX).get("weight_map")
        there = listed if isinstance(listed, dict) else {}
        parts = sorted({str(part) for part in there.values()})
        if parts and all(part and Path(part).name == part for part in parts):  # nothing outside of the folder
            return {part: [name for name in there if str(there[name]) == part] for part in parts}
        raise _unfit(f"{_INDEX} names no files beside it", "fetch it again.")
    if any(home.glob("*.bin")) or any(home.glob("*.pt")):
        raise _unfit(
            "the folder has a pickle only, and opening one may run code",
            "fetch the model as safetensors, or convert it where you trust it: save_weights(folder,"
            " torch.load(file, weights_only=True)).",
        )
    raise _unfit("they are not there", _FIX)


def _json(place: Path) -> dict[str, Any]:
    try:
        content = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content
    raise _unfit(f"{place.name} is no JSON object", "fetch it again.")


def _unfit(problem: str, fix: str) -> UnfitModelError:
    return UnfitModelError(f"Of the weights of a model, {problem}.", fix=fix)
