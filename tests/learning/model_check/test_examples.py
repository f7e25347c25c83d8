"""Made-up examples look like the data and have nothing of it."""

import torch

from defocus.learning.model_check.examples import exchanged, extremes, made_up
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


def test_extremes_have_every_size_and_sign_and_leave_whole_numbers() -> None:
    inputs, target = made_up(ONE, 3, Stream(bytes(32), "test"))
    found = list(extremes((inputs, target)))
    assert all(each[0]["k"].equal(inputs["k"]) for each in found)
    largest = [float(each[0]["x"].abs().max()) for each in found]
    assert any(number > 1e20 for number in largest)
    assert any(0 < number < 1e-20 for number in largest)
    assert any(bool((each[0]["x"] < 0).all()) for each in found)
    assert any(bool(each[0]["x"].isnan().all()) for each in found)
