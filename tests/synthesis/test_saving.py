"""Files of strangers: whatever stands in them, they are refused when they are loaded, or rows can be drawn."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, SourceError
from defocus.noise.testing import seeded
from defocus.synthesis import Generator, GraphGenerator, PeopleGenerator

BAD: list[Any] = [None, -1, 10**30, math.nan, math.inf, "x", [], {}, [[]], 0, [10**9], {"shape": [1], "data": ""}]


def paths(written: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands; of long lists the first places only."""
    if before:
        yield before
    inside = (
        written.items() if isinstance(written, dict) else enumerate(written[:2]) if isinstance(written, list) else ()
    )
    for key, value in inside:
        yield from paths(value, (*before, key))


def changed(written: Any, path: tuple[Any, ...], value: Any) -> Any:
    own = copy.deepcopy(written)
    inside = own
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return own


def refused_or_usable(cls: Any, written: Any, where: Path) -> None:
    for path in paths(written):
        for value in BAD:
            where.write_text(json.dumps(changed(written, path, value)), "utf-8")
            try:
                made = cls.load(where)
            except SourceError:
                continue
            try:
                made.sample(3, bits=seeded(1)) if cls is not GraphGenerator else made.sample(bits=seeded(1))
                assert not hasattr(cls, "quality") or made.quality.num_rows
            except DefocusError:
                pass  # such as a condition that nobody meets
            except Exception as error:
                raise AssertionError(f"{path} = {value!r} was loaded, and then: {error!r}") from error


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    data = pa.table({"age": [20 + i % 50 for i in range(300)], "ward": [["A", "B", None][i % 3] for i in range(300)]})
    how: dict[str, Any] = {"budget": dp.Budget(20, 1e-3), "ledger": tmp_path_factory.mktemp("a") / "a", "name": "v"}
    with dp.open(data, unit=dp.rows(), columns={"age": (0, 99), "ward": ["A", "B"]}, **how) as table:
        made: Generator = table.synthesise(epsilon=8, delta=1e-6, bits=seeded(1))
    return made


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_generator_of_a_stranger_is_refused_or_usable(people: Generator, tmp_path: Path) -> None:
    refused_or_usable(Generator, people.to_json(), tmp_path / "x.json")


@pytest.mark.parametrize(
    "change",
    [
        {"total": 1e300},
        {"prediction": {"column": "ward", "auc": math.nan, "error": 0.1, "synthetic": 0.5}},
        {"prediction": {"column": "ward", "auc": 0.5, "error": -1, "synthetic": 0.5}},
        {"prediction": {"column": "ward", "auc": 0.5, "error": None, "synthetic": math.inf}},
    ],
)
def test_numbers_that_nothing_can_be_are_refused(people: Generator, change: dict[str, Any], tmp_path: Path) -> None:
    written = people.to_json()
    told = {"prediction": {"column": "ward", "auc": 0.5, "error": None, "synthetic": 0.5}}
    (tmp_path / "x.json").write_text(json.dumps(written | told), "utf-8")
    assert Generator.load(tmp_path / "x.json").prediction is not None
    (tmp_path / "x.json").write_text(json.dumps(written | change), "utf-8")
    with pytest.raises(SourceError, match="not a saved generator"):
        Generator.load(tmp_path / "x.json")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_people_of_a_stranger_are_refused_or_usable(tmp_path: Path) -> None:
    visits = pa.table({"who": [i // 2 for i in range(200)], "day": [i % 9 for i in range(200)]})
    how: dict[str, Any] = {"budget": dp.Budget(20, 1e-3), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(visits, unit=dp.user("who"), columns={"day": list(range(9))}, **how) as table:
        made = table.bound(rows=2).synthesise(epsilon=9, delta=1e-6, order="day", bits=seeded(1))
    made.save(tmp_path / "x.json")
    assert PeopleGenerator.load(tmp_path / "x.json").sample(9, bits=seeded(1)).num_rows > 8
    refused_or_usable(PeopleGenerator, made.to_json(), tmp_path / "x.json")


def test_a_graph_of_a_stranger_is_refused_or_usable(tmp_path: Path) -> None:
    where = tmp_path / "x.json"
    GraphGenerator(np.full(8, 2.0), 3.0, tuple("abababab"), np.full((2, 2), 3.0)).save(where)
    refused_or_usable(GraphGenerator, json.loads(where.read_text("utf-8")), where)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, '{"format": 1e999}', "\udcff", ""])
@pytest.mark.parametrize("cls", [Generator, PeopleGenerator, GraphGenerator])
def test_what_is_no_saved_generator_is_refused(cls: Any, text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SourceError):
        cls.load(tmp_path / "x.json")
