"""Made-up examples look like the data and have nothing of it."""

import torch

from defocus.learning.inventing import exchanged, given_up, ignoring, made_up
from defocus.learning.streams import Stream

ONE = ({"x": torch.full((1, 3), 7.0), "k": torch.full((1, 2), 9)}, torch.tensor([True]))


def test_made_up_examples_have_shapes_and_types_of_the_data_and_none_of_its_values() -> None:
    inputs, target = made_up(ONE, 5, Stream(bytes(32), "test"))
    assert inputs["x"].shape == (5, 3)
    assert inputs["x"].dtype == torch.float32
    assert inputs["x"].abs().max() <= 1
    assert set(inputs["k"].flatten().tolist()) <= {0, 1}
    assert target.dtype == torch.bool


def test_what_is_exchanged_differs_in_every_number() -> None:
    inputs, target = exchanged(ONE, 4, Stream(bytes(32), "test"))
    for leaf in (*inputs.values(), target):
        assert len(leaf) == 8
        assert bool((leaf[:4] != leaf[4:]).all())


def test_targets_of_the_first_ones_are_ignored() -> None:
    targets = torch.ones(4, 3, dtype=torch.long)
    assert ignoring((targets, targets), -100)[1].tolist() == [[1, -100, 1], [-100, 1, -100], [1, 1, 1], [1, 1, 1]]
    assert ignoring((targets, targets.bool()), -100)[1].all()


def test_only_floats_can_be_no_numbers() -> None:
    inputs, target = made_up(ONE, 5, Stream(bytes(32), "test"))
    lost = given_up((inputs, target), 3)
    assert lost is not None
    assert lost[0]["x"].isnan().any(1).tolist() == [False] * 3 + [True] * 2
    assert lost[0]["k"].equal(inputs["k"])
    assert given_up((inputs["k"], target), 3) is None
