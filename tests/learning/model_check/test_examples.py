"""Made-up examples look like the data and have nothing of it."""

import torch

from defocus.learning.model_check.examples import exchanged, families, given_up, ignoring, made_up, nearby
from defocus.learning.noise import Stream

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


X, WORDS, CLASSES = torch.full((1, 40), 7.0), torch.full((1, 9), 3), torch.full((1,), 2)


def made(bound: int = 10) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The floats, words and classes of each family."""
    found = families(((X, WORDS), CLASSES), Stream(bytes(32), "test"), {1: bound, 2: 3})
    return [(*wide[0], wide[1]) for wide, _ in found]


def test_floats_are_of_every_size_and_sign() -> None:
    largest = sorted(float(x.abs().max()) for x, _, _ in made())
    assert largest[0] < 1e-2
    assert largest[-1] > 1e5
    assert any(bool((x < 0).all()) for x, _, _ in made())
    assert any(bool((x > 0).all()) for x, _, _ in made())
    assert any(bool((x == x[:, :1]).all()) and not x[0].equal(x[1]) for x, _, _ in made())
    assert any(bool(((x > 10).sum(1) == 1).all()) for x, _, _ in made())  # one large number


def test_whole_numbers_reach_their_bounds_and_end_in_paddings() -> None:
    words = torch.cat([words for _, words, _ in made()])
    assert set(words.flatten().tolist()) == set(range(10))
    assert set(torch.cat([classes for _, _, classes in made()]).tolist()) == {0, 1, 2}
    assert {int(words[1, -1]) for _, words, _ in made()} == {0, 9, 5, *range(1, 8)}
    assert all(bool((words[1, 0] != words[1, -1]).all()) for _, words, _ in made())
    assert {99, 50} <= {int(words[1, -1]) for _, words, _ in made(100)}


def test_each_family_has_a_form_of_zeros_and_ones() -> None:
    for _, plain in families(((X, WORDS), CLASSES), Stream(bytes(32), "test"), {}):
        assert set(plain[0][1].flatten().tolist()) <= {0, 1}


def test_single_numbers_have_families_too() -> None:
    one = ((torch.zeros(1), torch.zeros(1, dtype=torch.bool)), torch.zeros(1))
    found = [wide for wide, _ in families(one, Stream(bytes(32), "test"), {})]
    assert all(inputs[0].shape == inputs[1].shape == target.shape == (2,) for inputs, target in found)
    assert max(float(target.abs().max()) for _, target in found) > 100


def test_nearby_examples_differ_by_rounding_only() -> None:
    x = torch.tensor([[1.0, -3.0], [1e6, 0.0]])
    (moved, words), _ = nearby(((x, WORDS), CLASSES), 2.0**-20)
    assert bool(((moved - x).abs() <= 1.01 * 2.0**-20 * x.abs()).all())
    assert not moved.equal(x)
    assert words.equal(WORDS)
