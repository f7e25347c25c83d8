"""Where examples are in a tensor."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from defocus.learning.gradients.places import Place


@given(
    shape=st.lists(st.integers(1, 4), min_size=0, max_size=3),
    axis=st.integers(0, 3),
    outer=st.integers(1, 3),
    inner=st.integers(1, 3),
)
def test_examples_are_brought_to_the_front_and_their_entries_stay(
    shape: list[int], axis: int, outer: int, inner: int
) -> None:
    axis = min(axis, len(shape))
    apart = torch.randn(5, *shape[:axis], outer, inner, *shape[axis:])
    together = apart.movedim(0, axis + 1).flatten(axis, axis + 2)
    found = Place(axis, outer, inner).apart(together, 5)
    entries = apart.flatten(axis + 1, axis + 2)
    assert torch.equal(found, entries if outer * inner > 1 else entries.squeeze(axis + 1))


def test_entries_on_both_sides_of_the_examples_are_theirs() -> None:
    rows = torch.tensor([5, 6, 7]).repeat(2).repeat_interleave(2)[:, None]
    assert Place(0, 2, 2).sequences(rows, 3).squeeze().tolist() == [[5] * 4, [6] * 4, [7] * 4]
