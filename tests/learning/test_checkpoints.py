"""Checkpoints: safe files, whole or refused."""

import json
import math
import stat
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import CheckpointError
from defocus.learning.checkpoints import key_in, load, save, tree_in, tree_out

plain = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text() | st.binary()
trees = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=12,
)


@given(tree=trees)
def test_trees_come_back_as_they_were(tree: Any) -> None:
    out = tree_out(tree, [])
    assert tree_in(json.loads(json.dumps(out, allow_nan=False)), []) == tree


def content() -> dict[str, Any]:
    return {
        "weights": torch.randn(3, 4),
        "half": torch.randn(5).to(torch.bfloat16),
        "step": torch.tensor(7.0),
        "mask": torch.tensor([True, False]),
        "none": torch.zeros(0, 3),
        "turned": torch.randn(2, 3).t(),
        "nan": torch.tensor([math.nan, math.inf, -0.0]),
        "groups": [{"lr": 0.1, "betas": (0.9, 0.999), "limit": math.inf}],
        "key": bytes(range(32)),
    }


def test_every_bit_comes_back(tmp_path: Path) -> None:
    given = content()
    save(tmp_path / "c", given)
    found = load(tmp_path / "c")
    assert found.keys() == given.keys()
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype
            assert found[name].shape == value.shape
            raw = [each.contiguous().reshape(-1).view(torch.uint8) for each in (value, found[name])]
            assert torch.equal(*raw)
        else:
            assert found[name] == value


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b"")
    path.chmod(0o644)
    save(path, {"a": 1})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


def test_any_byte_altered_or_cut_off_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save(path, {"weights": torch.arange(6.0), "lr": 0.125})
    whole = path.read_bytes()
    for i in range(0, len(whole), 3):
        if whole[i] != 0x20:  # a space in JSON may become another without meaning anything else
            path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
            with pytest.raises(CheckpointError):
                load(path)
    for end in (0, 5, 8, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match="damaged") as caught:
            load(path)
        assert "older one" in caught.value.fix
    path.write_bytes(whole + b"x")
    with pytest.raises(CheckpointError):
        load(path)


def header(told: dict[str, Any]) -> bytes:
    text = json.dumps(told).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        header({"__metadata__": {}}),
        header({"__metadata__": {"format": "defocus training run 1", "state": "1", "digest": ""}}),
        header({"__metadata__": {"format": "other"}}),
        header([1]),  # type: ignore[arg-type]  # what a file may hold
        b"\x80\x04\x95" + b"\x00" * 64,  # a pickle
        struct.pack("<Q", 200_000) + b"[" * 200_000,
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "c").write_bytes(raw)
    with pytest.raises(CheckpointError):
        load(tmp_path / "c")


def test_the_key_is_found_without_reading_the_rest(tmp_path: Path) -> None:
    save(tmp_path / "c", content())
    assert key_in(tmp_path / "c") == bytes(range(32))
    save(tmp_path / "d", {"a": 1})
    (tmp_path / "e").write_bytes(b"a file of someone else")
    for other in ("d", "e"):
        with pytest.raises(CheckpointError, match="damaged"):
            key_in(tmp_path / other)
    with pytest.raises(CheckpointError, match="cannot be read"):
        key_in(tmp_path / "f")


def test_places_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "nowhere" / "c", {})


@pytest.mark.parametrize(
    "thing", [object(), {1.5: 2}, {(1, 2): 3}, lambda: 1, 2**70, torch.zeros(2, dtype=torch.complex64)]
)
def test_what_is_no_number_text_or_tensor_is_refused(tmp_path: Path, thing: Any) -> None:
    with pytest.raises(CheckpointError, match="holds numbers, texts and tensors"):
        save(tmp_path / "c", {"a": [thing]})
    assert not (tmp_path / "c").exists()
