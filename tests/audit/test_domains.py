"""Hostile neighbours of domains: they are neighbours, they are hostile, and faults that need them are found."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from defocus.audit import Pair, batched, neighbours, search
from defocus.audit.domains import read_columns
from defocus.errors import InvalidParameterError
from defocus.mechanisms import Laplace

COLUMNS = {"age": (0, 99), "weight": (0.0, 200.0), "ward": ["A", "B"], "sick": [False, True]}


def rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


@pytest.mark.parametrize("replace", [False, True])
def test_tables_differ_in_one_row(replace: bool) -> None:
    for pair in neighbours(COLUMNS, replace=replace):
        assert pair.first.schema == pair.second.schema
        gone, come = rows(pair.first) - rows(pair.second), rows(pair.second) - rows(pair.first)
        assert (gone.total(), come.total()) in {(int(replace), 1), (0, 0)} or (not replace and come.total() == 1)
        assert pair.second.num_rows == pair.first.num_rows + (not replace)


def test_tables_hold_what_is_hostile() -> None:
    names = "\n".join(pair.name for pair in neighbours(COLUMNS))
    for words in ("empty", "a hundred equal rows", "largest", "smallest", "of nothing", "not a number", "infinite",
                  "largest integer", "a new key", "that is there", "at random"):  # fmt: skip
        assert words in names
    added = [row for pair in neighbours(COLUMNS) for row in pair.second.to_pylist()]
    assert any(row["weight"] is not None and math.isnan(row["weight"]) for row in added)
    assert {"unheard of", "", None, "A"} <= {row["ward"] for row in added}
    assert {2**63 - 1, -(2**63), None, 0, 99} <= {row["age"] for row in added}


def test_the_same_domain_makes_the_same_pairs() -> None:
    for one, other in zip(neighbours(COLUMNS), neighbours(COLUMNS), strict=True):
        assert repr(one.second.to_pylist()) == repr(other.second.to_pylist())


@pytest.mark.parametrize("replace", [False, True])
def test_graphs_differ_in_an_edge(replace: bool) -> None:
    for pair in neighbours("edges", replace=replace):
        one, other = Counter(pair.first), Counter(pair.second)
        assert max((one - other).total(), (other - one).total()) == 1


@pytest.mark.parametrize("replace", [False, True])
def test_graphs_differ_in_the_edges_of_one_node(replace: bool) -> None:
    for pair in neighbours("nodes", replace=replace):
        moved = set(pair.first) ^ set(pair.second)
        assert moved
        assert any(all(node in edge for edge in moved) for node in range(10))
        assert len({node for edge in pair.second for node in edge}) <= 7


@pytest.mark.parametrize("replace", [False, True])
def test_batches_differ_in_one_gradient(replace: bool) -> None:
    for pair in neighbours("gradients", replace=replace):
        one, other = (Counter(map(repr, batch.tolist())) for batch in (pair.first, pair.second))
        assert max((one - other).total(), (other - one).total()) == 1
        assert len(pair.second) - len(pair.first) == (not replace)


def noisy(total: float, scale: int, n: int) -> Any:
    return Laplace(scale=scale).sample(np.full(n, int(total)))


def clipped(batch: Any) -> Any:
    """The sum of gradients, each with norm one at most; what is no number is nothing."""
    kept = np.nan_to_num(batch, nan=0.0, posinf=1e30, neginf=-1e30)
    norms = np.linalg.norm(kept, axis=1, keepdims=True)
    return (kept / np.maximum(norms, 1)).sum(axis=0)


def ages(table: pa.Table) -> list[int]:
    return [age for age in table["age"].to_pylist() if age is not None]


def weights(table: pa.Table) -> Any:
    return np.clip(table["kg"].drop_null().to_numpy(), 0, 1).sum()


def pairs_of_edges(edges: Any) -> int:
    degrees = Counter(node for edge in edges for node in edge)
    return sum(degree * (degree - 1) // 2 for degree in degrees.values())


def texts(table: pa.Table) -> list[str]:
    return [text for text in table["ward"].to_pylist() if text is not None]


def fails_if(condition: Any, n: int) -> Any:
    return ["failed"] * n if condition else noisy(0, 1, n)


def overflows(table: pa.Table) -> bool:
    numbers = table["kg"].drop_null().to_numpy()
    with np.errstate(over="ignore"):
        return bool(np.isfinite(numbers).all() and np.isinf(numbers.sum()))


def wraps(table: pa.Table) -> bool:
    return bool(np.array(ages(table), np.int64).sum() < 0 <= min(ages(table), default=0))


def ties(values: list[str]) -> bool:
    counts = [count for _, count in Counter(values).most_common(2)]
    return len(counts) == 2 and counts[0] == counts[1]


def local(edges: Any, n: int) -> Any:
    """Triangles, with noise for what an edge of this very graph can change."""
    near = {node: {b if a == node else a for a, b in edges if node in (a, b) and a != b} for node in range(7)}
    common = {(a, b): len(near[a] & near[b]) for a in range(7) for b in range(a)}
    triangles = sum(common[a, b] for a, b in common if b in near[a]) // 3
    return noisy(triangles, max(1, *common.values()), n)


def clipped_late(batch: Any) -> float:
    return float(1000 * batch.sum(axis=0).clip(-1, 1)[0]) if np.isfinite(batch).all() else 0.0


FAULTS: dict[str, tuple[Any, Any, str]] = {
    "ages are not clipped": (
        {"age": (0, 9)},
        lambda t, n: noisy(min(sum(map(float, ages(t))), 2.0**60), 9, n),
        "integer",
    ),
    "a missing value fails": (
        {"age": (0, 9)},
        lambda t, n: noisy(sum(min(a, 9) for a in t["age"].to_pylist()), 9, n),
        "nothing",
    ),
    "new keys are shown": ({"ward": ["A", "B"]}, lambda t, n: [sorted(set(map(str, t["ward"].to_pylist())))] * n, ""),
    "NaN takes the sum over": ({"kg": (0.0, 1.0)}, lambda t, n: weights(t) + noisy(0, 1, n), "not a number"),
    "nodes of many edges": ("edges", lambda es, n: noisy(pairs_of_edges(es), 1, n), ""),
    "edges for nodes": ("nodes", lambda es, n: noisy(len(es), 1, n), ""),
    "a sum overflows": ({"kg": (0.0, 1.0)}, lambda t, n: fails_if(overflows(t), n), "largest float, and again"),
    "a sum wraps": ({"age": (0, 9)}, lambda t, n: fails_if(wraps(t), n), "largest integer"),
    "a tie fails": ({"ward": ["A", "B"]}, lambda t, n: fails_if(ties(texts(t)), n), ""),
    "equal rows fail": ({"age": (0, 9)}, lambda t, n: fails_if(max(Counter(ages(t)).values(), default=0) > 1, n), ""),
    "hidden below six": ({"age": (0, 9)}, lambda t, n: fails_if(t.num_rows < 6, n), "5 equal rows"),
    "hidden below ten": ({"age": (0, 9)}, lambda t, n: fails_if(t.num_rows < 10, n), ""),
    "hidden below fifty": ({"age": (0, 9)}, lambda t, n: fails_if(t.num_rows < 50, n), ""),
    "a quote fails": ({"ward": ["A", "B"]}, lambda t, n: fails_if("'" in "".join(texts(t)), n), "quote"),
    "letters of another case": (
        {"ward": ["A", "B"]},
        lambda t, n: fails_if(len({x.lower() for x in texts(t)}) < len(set(texts(t))), n),
        "letters",
    ),
    "noise by this graph": ("edges", local, "square"),
    "loops count twice": ("edges", lambda es, n: noisy(sum(1 + (a == b) for a, b in es), 1, n), "loop"),
    "zero over zero": ("gradients", lambda g, n: fails_if((~g.any(axis=1)).any() if len(g) else False, n), "of zero"),
    "clipped entry by entry": (
        "gradients",
        lambda g, n: noisy(1000 * np.nan_to_num(g, nan=0).clip(-1, 1).sum(), 1000, n),
        "all directions",
    ),
    "clipped too late": ("gradients", lambda g, n: noisy(clipped_late(g), 100, n), ""),
}


RARE = {"noise by this graph"}
"""What shows in the tails of noise only."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_only_function_and_domain_are_named(name: str) -> None:
    domain, fault, words = FAULTS[name]
    found = search(batched(fault), domain, trials=40_000 if name in RARE else 2000, claimed=1)
    assert found.violation
    assert words in found.pair


GOOD: dict[str, tuple[Any, Any]] = {
    "table": ({"age": (0, 9)}, lambda t, n: noisy(sum(min(max(x or 0, 0), 9) for x in t["age"].to_pylist()), 9, n)),
    "edges": ("edges", lambda es, n: noisy(len(es), 1, n)),
    "nodes": ("nodes", lambda es, n: noisy(len({a for e in es for a in e}), 7, n)),
    "gradients": ("gradients", lambda g, n: noisy(round(1000 * clipped(g)[0]), 1000, n)),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_private_on_the_whole_domain_is_not_called(name: str) -> None:
    domain, good = GOOD[name]
    found = search(batched(good), domain, trials=2000, claimed=1)
    assert not found.violation, found
    assert len(found.searched) == len(neighbours(domain))


def test_of_many_pairs_the_one_that_tells_is_judged() -> None:
    pairs = [Pair(str(i), 0, int(i == 40)) for i in range(60)]
    found = search(batched(lambda value, n: noisy(9 * value, 1, n)), pairs, trials=2000, claimed=1)
    assert found.violation
    assert found.pair.startswith("40:")


def test_columns_are_read_from_a_command_line() -> None:
    assert read_columns("age = 0:99;ward= A, B;kg=0.5:2") == {"age": (0, 99), "ward": ["A", "B"], "kg": (0.5, 2.0)}
    assert read_columns("x=a:b") == {"x": ["a:b"]}


@pytest.mark.parametrize("said", [(3, 1), (0, math.inf), "AB", [1, "a"], 3, [], (1, 2, 3)])
def test_refuses_columns_that_hold_nothing_known(said: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"not understood|needs a column"):
        neighbours({"age": said} if said else {})
