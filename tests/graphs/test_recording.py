"""Ledgers outlive code: what earlier versions kept is read as it was meant."""

from typing import Any

import pytest

from defocus.graphs import Network
from defocus.graphs.recording import from_record, to_record
from defocus.noise.testing import seeded

FIRST: dict[str, Any] = {
    "kind": "graph",
    "keys": {"degree": {"range": [0, 3, 1]}, "node": ["ada", 7, None]},
    "columns": [
        {
            "name": "nodes",
            "how": "Laplace noise of scale 4",
            "integral": True,
            "values": [12.0, -1.0, 3.0],
            "errors": [4.0, "nan", 4.0],
            "low": [0.0, "-inf", -9.0],
            "high": [24.0, "inf", 15.0],
        }
    ],
    "question": "number of nodes of each degree",
    "rules": ["an edge from a node to itself is left out"],
    "method": "laplace",
    "processing": ["fitted"],
    "notes": ["found"],
    "facts": "a digest",
}
"""As the first version wrote it."""


def test_a_record_of_the_first_version_is_read(friends: Network) -> None:
    receipt = friends.edges().release(epsilon=1, bits=seeded(1)).receipt
    answer = from_record(FIRST, receipt)
    assert answer.keys == {"degree": range(3), "node": ["ada", 7, None]}
    (column,) = answer.columns
    assert column.absolute
    assert column.values.tolist() == [12, -1, 3]
    assert column.low.tolist() == [0, float("-inf"), -9]
    assert (answer.method, answer.rules, answer.asked) == ("laplace", tuple(FIRST["rules"]), None)
    again = to_record(answer)
    assert [each.pop("absolute") for each in again["columns"]] == [True]  # said since
    assert {name: again[name] for name in FIRST if name != "facts"} == {
        name: FIRST[name] for name in FIRST if name != "facts"
    }
    for text in (str(answer), answer.explain()):
        assert "fitted" in text
        assert "found" in text


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_what_was_asked_for_is_kept(friends: Network, delta: float | None) -> None:
    answer = friends.edges().release(epsilon=1, delta=delta, bits=seeded(1))
    back = from_record(to_record(answer), answer.receipt)
    assert back.asked == answer.asked is not None
    assert back.explain() == answer.explain()
