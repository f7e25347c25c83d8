"""Functions are called with what they were called with in trial runs, or with as many more as there are examples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.gradients.comparing import Model, clip
from torch import nn

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.arguments import Expected, expected, leaves

NAN = float("nan")


def test_leaves_are_numbers_and_names_with_a_mark_for_tensors() -> None:
    t = torch.zeros(1)
    assert leaves((t, t, [1, (2.5, t)], slice(None, 3)), {"dim": -1, "dtype": torch.float32}) == (
        torch.Tensor, 1, 2.5, torch.Tensor, None, 3, None, "dim", -1, "dtype", torch.float32,
    )  # fmt: skip
    assert leaves((NAN, np.int64(3), print, {"a": True}), {}) == (float, 3, type(print), "a", True)


def fits(two: Any, three: Any, examples: int, now: Any) -> bool | None:
    found = expected([(torch.sum, leaves(two, {}))], [(torch.sum, leaves(three, {}))])
    return None if found is None else found[0].fits(now, {}, examples)


def test_whole_numbers_may_grow_with_the_examples_in_a_line() -> None:
    assert fits((2, 4), (3, 4), 10, (10, 4))
    assert fits((11,), (16,), 10, (51,))
    assert not fits((2, 4), (3, 4), 10, (10, 5))
    assert not fits((2, 4), (3, 4), 10, (9, 4))
    assert not fits((2, 4), (3, 4), 10, (10, 4, 1))
    assert not fits((1,), (1,), 10, (0,))


@pytest.mark.parametrize(("two", "three"), [((0.0,), (1.0,)), ((True,), (False,)), (("a",), ("b",)), ((1,), (1, 1))])
def test_nothing_else_may_change_with_the_examples(two: Any, three: Any) -> None:
    assert fits(two, three, 4, two) is None


def test_the_functions_must_be_the_same() -> None:
    assert expected([(torch.sum, ())], [(torch.mean, ())]) is None
    assert expected([(torch.sum, ())], []) is None
    assert expected([(torch.sum, (1,))], [(torch.sum, (1,))]) == (Expected(torch.sum, (1,), (1,), fixed=True),)


def moved(model: nn.Module, between: Callable[[Any], None]) -> float:
    """How far the sum moves if an example that is unlike the others is left out, after a batch and a change."""
    torch.manual_seed(0)
    x = torch.cat([100 * torch.ones(1, 6), torch.ones(9, 6) + 0.01 * torch.randn(9, 6)])
    gradients, found = Gradients(model, nn.MSELoss()), []
    gradients.clipped_sum((x, torch.zeros(10, 4)), clip(1.0))
    between(model)
    for rows in (slice(0, 10), slice(1, 10)):
        model.zero_grad()
        gradients.clipped_sum((x[rows], torch.zeros(10, 4)[rows]), clip(1.0))
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    return float((found[0] - found[1]).norm())


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: m.a(x) - m.a(x).mean(m.axis, keepdim=True),
        lambda m, x: m.a(x.cumsum(1 if len(x) < 4 else 0)),
    ],
    ids=["an axis that is changed", "an axis chosen by the size"],
)
def test_an_axis_that_changes_later_moves_no_other_example(forward: Any) -> None:
    assert moved(Model(forward, a=nn.Linear(6, 4), axis=1), lambda m: setattr(m, "axis", 0)) < 1.001


def test_a_model_that_names_the_number_of_examples_goes_by_one_backward_pass() -> None:
    model = Model(lambda m, x: m.a(x.view(len(x) * 2, 3)).view(len(x), -1), a=nn.Linear(3, 2))
    gradients = Gradients(model, nn.MSELoss())
    for size in (4, 7):
        gradients.clipped_sum((torch.randn(size, 6), torch.zeros(size, 4)), clip(1.0))
    assert gradients.explain() == "Per-example gradients by one backward pass."
