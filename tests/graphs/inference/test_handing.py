import pytest

from defocus.errors import DefocusError
from defocus.graphs import build
from defocus.graphs.inference import to_networkx


def test_nodes_and_edges_arrive_with_their_names() -> None:
    made = to_networkx(build(4, [0, 1], [1, 2]), ["a", "b", "c", "d"])
    assert sorted(made.nodes) == ["a", "b", "c", "d"]
    assert {frozenset(pair) for pair in made.edges} == {frozenset("ab"), frozenset("bc")}
    assert sorted(to_networkx(build(3, [0], [2])).edges) == [(0, 2)]


@pytest.mark.parametrize("labels", [["a"], ["a", "a", "b"], []])
def test_labels_that_do_not_tell_nodes_apart_are_refused(labels: list[str]) -> None:
    with pytest.raises(DefocusError, match="as many different labels"):
        to_networkx(build(3, [0], [2]), labels)
