"""Tensors in files, in the layout of safetensors, in which nothing can run.

Eight bytes with the length of a header, the header in JSON with the type, shape and place of every tensor, then the raw
tensors. Texts may stand in the header under ``__metadata__``. So checkpoints of runs, weights of public models and
networks of ``defocus train`` are kept.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["framed", "is_kept", "laid_out", "taken_apart", "tensor_at"]

_Body: TypeAlias = npt.NDArray[np.uint8]

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


def is_kept(value: object) -> bool:
    """Whether a file can hold this: a dense tensor of a type that is known.

    >>> is_kept(torch.zeros(2)), is_kept(torch.zeros(2, dtype=torch.complex64)), is_kept(2.0)
    (True, False, False)
    """
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_meta:
        return False
    return value.dtype in _NAMES


def laid_out(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, Any], list[bytes]]:
    r"""A header without metadata, and the blocks that it describes.

    >>> laid_out({"bias": torch.zeros(2)})
    ({'bias': {'dtype': 'F32', 'shape': [2], 'data_offsets': [0, 8]}}, [b'\x00\x00\x00\x00\x00\x00\x00\x00'])
    """
    header: dict[str, Any] = {}
    blocks: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        flat = tensor.detach().cpu().resolve_neg().contiguous().reshape(-1)
        blocks.append(bytes(flat.view(torch.uint8).numpy().data))
        ends = [offset, offset + len(blocks[-1])]
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": ends}
        offset = ends[1]
    return header, blocks


def framed(header: Mapping[str, Any], blocks: list[bytes]) -> list[bytes]:
    """The parts of a file, one after another."""
    text = json.dumps(header, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)), text, *blocks]


def taken_apart(path: str | Path) -> tuple[dict[str, Any], _Body]:
    """The header of a file, and the bytes behind it, of which those that are asked for are read.

    Every byte belongs to one tensor, so that what is read is no larger than the file. Raises a ``ValueError``,
    ``KeyError``, ``TypeError`` or ``struct.error`` for what is no such file.
    """
    with Path(path).open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _LONGEST_HEADER:
            raise ValueError(length)
        text = file.read(length)
    header = json.loads(text)
    if len(text) < length or not isinstance(header, dict):
        raise ValueError(length)
    rest = Path(path).stat().st_size - 8 - length
    reached = 0
    for start, end in sorted(told["data_offsets"] for name, told in header.items() if name != "__metadata__"):
        if start != reached or end < start:
            raise ValueError(start)
        reached = end
    if reached != rest:
        raise ValueError(rest)
    return header, np.memmap(path, np.uint8, "r", offset=8 + length) if rest else np.zeros(0, np.uint8)


def tensor_at(told: Mapping[str, Any], body: _Body) -> torch.Tensor:
    """The tensor that an entry of a header tells of, in memory of its own."""
    start, end = told["data_offsets"]
    if not 0 <= start <= end <= len(body) or any(type(each) is not int or each < 0 for each in told["shape"]):
        raise ValueError(end)
    flat = torch.empty(end - start, dtype=torch.uint8)  # from_numpy gives what is empty strides that no view has
    flat.numpy()[:] = body[start:end]
    return flat.view(_DTYPES[told["dtype"]]).reshape(told["shape"])
