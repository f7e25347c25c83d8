r"""Files that a run can go on from, bit for bit: tensors and JSON, and nothing that could run code.

The layout is that of safetensors: eight bytes with the length of a header, the header in JSON with the type, shape and
place of every tensor, then the raw tensors. The header's ``__metadata__`` holds everything else as JSON text, and a
SHA-256 digest of all the rest.

A checkpoint is *secret*. It holds the key of the run, from which sampling and noise follow: who has it can take the
noise off everything that the run released. Its file is readable by its owner only (mode 0600); delete it when the run
is over.

Settings, data and ledger are compared with those of the run, and others are refused. Steps that were taken after a
checkpoint are taken again, and must come to the same sums: they get the same noise, and tell nothing new. Any other
sum is refused, since a second run would have to be charged: see :mod:`defocus.learning.run_log`. A checkpoint belongs
to the log of its run, and is of no use without it.

Sums come out as they did where arithmetic repeats itself: on a CPU with as many threads as before, for shapes of
batches that were seen before the checkpoint (for new ones the fastest way to add up is measured anew, and ways round
differently; ``fit`` writes a checkpoint when that happened), and with random draws of models and data made by torch.
On a GPU that is not sure unless ``torch.use_deterministic_algorithms`` is set. Where sums do not repeat themselves, a
run goes on from a checkpoint that was written after its last step, and from no other.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from defocus.errors import CheckpointError, DefocusError
from defocus.ledger.lock import sync_directory

__all__ = ["check_place", "key_in", "load", "save", "tree_in", "tree_out"]

_FORMAT = "defocus training run 1"
_LONGEST_HEADER = 100 << 20
_DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def check_place(path: str | Path) -> None:
    """Refuse a place where no checkpoint can be written, before anything is charged for one."""
    temporary = _temporary(Path(path))
    with _written(Path(path)):
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        temporary.unlink()


def save(path: str | Path, content: dict[str, Any]) -> None:
    """Put a tree of numbers, texts, lists, mappings and tensors into a file, whole or not at all."""
    tensors: list[torch.Tensor] = []
    state = json.dumps(tree_out(content, tensors), allow_nan=False)
    header: dict[str, Any] = {}
    blocks: list[bytes] = []
    offset = 0
    for i, tensor in enumerate(tensors):
        raw = _raw(tensor)
        header[str(i)] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        blocks.append(raw)
        offset += len(raw)
    digest = hashlib.sha256(_vouched(state, header))
    for block in blocks:
        digest.update(block)
    header["__metadata__"] = {"format": _FORMAT, "state": state, "digest": digest.hexdigest()}
    text = json.dumps(header, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    _write(Path(path), [struct.pack("<Q", len(text)), text, *blocks])


def load(path: str | Path) -> dict[str, Any]:
    """The tree that :func:`save` put there; a file that is damaged or something else is refused."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        return _read(raw)
    except DefocusError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, RecursionError, struct.error):
        raise _damaged(path) from None


def key_in(path: str | Path) -> bytes:
    """The key of the run that wrote a checkpoint, read off its beginning; nothing is vouched for."""
    try:
        with Path(path).open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, _LONGEST_HEADER)))
        entries = dict(json.loads(header["__metadata__"]["state"])["map"])
        return bytes.fromhex(entries["key"]["bytes"])
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
        raise _damaged(path) from None


def tree_out(value: Any, tensors: list[torch.Tensor]) -> Any:  # noqa: PLR0911 -- one kind a line
    """A tree with JSON types only; its tensors are put into the list, and referred to by number.

    >>> tree_out({"lr": 0.1, "betas": (0.9, 0.999)}, [])
    {'map': [['lr', 0.1], ['betas', {'tuple': [0.9, 0.999]}]]}
    """
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, torch.Tensor) and value.dtype in _NAMES:
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, list):
        return [tree_out(each, tensors) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [tree_out(each, tensors) for each in value]}
    if isinstance(value, dict) and all(isinstance(key, str | int) for key in value):
        return {"map": [[key, tree_out(each, tensors)] for key, each in value.items()]}
    raise CheckpointError(
        f"A checkpoint holds numbers, texts and tensors, but it was given a {type(value).__name__}.",
        fix="keep state_dicts of tensors and numbers in more=, and use an optimizer whose state_dict() is one.",
    )


def tree_in(value: Any, tensors: list[torch.Tensor]) -> Any:  # noqa: PLR0911 -- one kind a line
    """The tree that :func:`tree_out` described."""
    if isinstance(value, list):
        return [tree_in(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "tuple":
        return tuple(tree_in(each, tensors) for each in inner)
    if kind == "map":
        return {key: tree_in(each, tensors) for key, each in inner}
    if kind == "bytes":
        return bytes.fromhex(inner)
    if kind == "float":
        return float(inner)
    raise ValueError(kind)


def _read(raw: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<Q", raw[:8])
    if length > min(_LONGEST_HEADER, len(raw) - 8):
        raise ValueError(length)
    header = json.loads(raw[8 : 8 + length])
    told = header.pop("__metadata__")
    if told["format"] != _FORMAT:
        raise CheckpointError(
            "This file is not a checkpoint of a training run of this version.", fix="pass a file that save() wrote."
        )
    body = memoryview(raw)[8 + length :]
    digest = hashlib.sha256(_vouched(told["state"], header))
    digest.update(body)
    if digest.hexdigest() != told["digest"]:
        raise ValueError(digest)
    tensors = [_tensor(header[str(i)], body) for i in range(len(header))]
    found = tree_in(json.loads(told["state"]), tensors)
    if not isinstance(found, dict):
        raise TypeError(found)
    return found


def _vouched(state: str, header: dict[str, Any]) -> bytes:
    return json.dumps([_FORMAT, state, header], sort_keys=True).encode() + b"\n"


def _raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().data)


def _tensor(told: dict[str, Any], body: memoryview) -> torch.Tensor:
    start, end = told["data_offsets"]
    flat = torch.empty(end - start, dtype=torch.uint8)
    flat.numpy()[:] = np.array(body[start:end], dtype=np.uint8)
    return flat.view(_DTYPES[told["dtype"]]).reshape(told["shape"])


def _write(path: Path, parts: list[bytes]) -> None:
    temporary = _temporary(path)
    with _written(path):
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(handle, "wb") as file:  # noqa: PTH123 -- a descriptor, for its permissions
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        yield
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be written: {error.strerror or type(error).__name__}.",
            fix="check that its folder exists and has room.",
        ) from None


def _unreadable(path: str | Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} cannot be read: {error.strerror or type(error).__name__}.", fix="check its path."
    )


def _damaged(path: str | Path) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} is damaged: it is cut off, altered, or was never one.",
        fix="resume from an older one, or start a new run, which is charged on its own.",
    )
