"""Weights in folders: as they are published, and nothing that could run."""

import json
import struct
from pathlib import Path

import pytest
import torch

from defocus.errors import UnfitModelError
from defocus.learning import load_weights, save_weights
from defocus.learning.tensor_files import framed, laid_out

PUBLISHED = (
    b'8\x00\x00\x00\x00\x00\x00\x00{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  \x00\x00\x80?\x00\x00\x00@'
)
"""What the library of that name writes for {"a": torch.tensor([1.0, 2.0])}."""


def test_weights_of_all_types_and_shapes_come_back_with_the_configuration(tmp_path: Path) -> None:
    kinds = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.float64)
    weights = {f"layer.{i}": torch.arange(6).reshape(2, 3).to(kind) for i, kind in enumerate(kinds)}
    weights |= {"none": torch.zeros(0, 4), "one": torch.tensor(3.0), "turned": torch.rand(3, 4).T}
    save_weights(tmp_path / "model", weights, {"hidden_size": 3})
    found, config = load_weights(tmp_path / "model")
    assert config == {"hidden_size": 3}
    assert found.keys() == weights.keys()
    assert all(torch.equal(each, weights[name]) and each.dtype == weights[name].dtype for name, each in found.items())


def test_a_published_file_is_read_and_written_to_the_last_byte(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(PUBLISHED)
    found, config = load_weights(tmp_path)
    assert found["a"].tolist() == [1, 2]
    assert config == {}
    parts = b"".join(framed(*laid_out(found)))
    (length,) = struct.unpack("<Q", parts[:8])
    assert json.loads(parts[8 : 8 + length]) == json.loads(PUBLISHED[8:64])
    assert parts[8 + length :] == PUBLISHED[64:]


def test_parts_are_put_together_and_none_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    for place, name in enumerate("ab"):
        part = b"".join(framed(*laid_out({name: torch.full((2,), float(place))})))
        (tmp_path / f"model-{place}.safetensors").write_bytes(part)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-0.safetensors", "b": "model-1.safetensors"}}))
    assert {name: each.tolist() for name, each in load_weights(tmp_path)[0].items()} == {"a": [0, 0], "b": [1, 1]}
    index.write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))
    with pytest.raises(UnfitModelError, match="names no files beside it"):
        load_weights(tmp_path)


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("pytorch_model.bin", b"", "pickle only"),
        ("other.txt", b"", "not there"),
        ("model.safetensors", b"", "damaged"),
        ("model.safetensors", PUBLISHED[:-1], "damaged"),
        ("model.safetensors", PUBLISHED[:30], "damaged"),
        ("model.safetensors", PUBLISHED.replace(b"[0,8]", b"[4,8]"), "damaged"),
        ("model.safetensors", PUBLISHED.replace(b"[0,8]}}  ", b"[7,15]}} "), "damaged"),
        ("model.safetensors", PUBLISHED.replace(b"F32", b"F31"), "damaged"),
        ("model.safetensors", PUBLISHED.replace(b"[0,8]", b"[0,9]"), "damaged"),
        ("model.safetensors", struct.pack("<Q", 2**62) + b"{}", "damaged"),
        ("model.safetensors", struct.pack("<Q", 2) + b"[]", "damaged"),
        ("model.safetensors.index.json", b"{}", "names no files"),
        ("model.safetensors.index.json", b"[", "no JSON object"),
    ],
)
def test_what_is_damaged_or_could_run_is_refused(tmp_path: Path, name: str, raw: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(UnfitModelError, match=words):
        load_weights(tmp_path)


def test_what_is_no_tensor_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UnfitModelError, match="'a' is no tensor"):
        save_weights(tmp_path, {"a": torch.zeros(2, dtype=torch.complex64)})
    (tmp_path / "file").touch()
    with pytest.raises(UnfitModelError, match="cannot be written"):
        save_weights(tmp_path / "file", {"a": torch.zeros(2)})


def written(home: Path, entries: object, body: bytes, name: str = "model.safetensors") -> None:
    text = json.dumps(entries).encode()
    (home / name).write_bytes(struct.pack("<Q", len(text)) + text + body)


def entry(shape: list[int], *places: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, "data_offsets": list(places)}


@pytest.mark.parametrize(
    "entries",
    [
        {f"a{i}": entry([2], 0, 8) for i in range(1000)},  # a small file of much memory
        {"a": entry([1], 0, 4), "b": entry([1], 2, 6)},
        {"a": entry([1], 0, 4)},
        {"a": entry([1], 4, 8)},
        {"a": entry([-1], 0, 8)},
        {"a": entry([True, 2], 0, 8)},
    ],
)
def test_every_byte_belongs_to_one_tensor_of_a_shape(tmp_path: Path, entries: dict[str, object]) -> None:
    written(tmp_path, entries, bytes(8))
    with pytest.raises(UnfitModelError, match="damaged"):
        load_weights(tmp_path)


def test_a_part_gives_the_tensors_that_are_listed_for_it(tmp_path: Path) -> None:
    listed = {"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(listed))
    written(tmp_path, {"a": entry([1], 0, 4)}, struct.pack("<f", 1), "1.safetensors")
    written(tmp_path, {"a": entry([1], 0, 4), "b": entry([1], 4, 8)}, struct.pack("<ff", 2, 3), "2.safetensors")
    assert {name: float(each) for name, each in load_weights(tmp_path)[0].items()} == {"a": 1, "b": 3}
    written(tmp_path, {"c": entry([1], 0, 4)}, bytes(4), "2.safetensors")
    with pytest.raises(UnfitModelError, match=r"2\.safetensors is damaged"):
        load_weights(tmp_path)


@pytest.mark.parametrize(
    "weights",
    [{"__metadata__": torch.ones(2)}, {3: torch.ones(2)}, {"a": torch.eye(2).to_sparse()}, [torch.ones(2)]],
    ids=["metadata", "number", "sparse", "list"],
)
def test_what_has_no_place_in_a_file_is_refused_and_leaves_none(tmp_path: Path, weights: object) -> None:
    with pytest.raises(UnfitModelError, match="is no tensor of a type"):
        save_weights(tmp_path, weights)  # type: ignore[arg-type]
    with pytest.raises(UnfitModelError, match="config="):
        save_weights(tmp_path, {"a": torch.ones(2)}, {"x": object()})
    assert not list(tmp_path.iterdir())
