"""One loss for each example, whatever the loss reduces to."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from defocus.errors import InvalidParameterError, UnfitModelError
from defocus.learning.gradients.losses import Losses

LOSSES = [nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss, nn.BCEWithLogitsLoss]


@given(kind=st.sampled_from(LOSSES), examples=st.integers(1, 5), width=st.integers(1, 4))
def test_a_known_loss_is_that_of_each_example_alone(kind: type[nn.Module], examples: int, width: int) -> None:
    output, target = torch.randn(examples, width), torch.rand(examples, width)
    alone = torch.stack([kind()(output[i : i + 1], target[i : i + 1]) for i in range(examples)])
    for loss in (kind(), lambda out, aim: 1.0 * kind()(out, aim)):
        assert torch.allclose(Losses(loss).each(output, target, examples), alone, atol=1e-6)


def test_a_target_of_several_words_is_averaged_within_its_example() -> None:
    output, target = torch.randn(4, 3, 5), torch.randint(0, 3, (4, 5))
    alone = torch.stack([nn.CrossEntropyLoss()(output[i : i + 1], target[i : i + 1]) for i in range(4)])
    assert torch.allclose(Losses(nn.CrossEntropyLoss()).each(output, target, 4), alone, atol=1e-6)


def test_a_mean_over_the_whole_batch_of_unequal_examples_is_refused() -> None:
    output, target = torch.randn(4, 3, 5), torch.randint(0, 3, (4, 5))
    target[0, 1:] = -100
    with pytest.raises(UnfitModelError, match="neither the sum nor the mean"):
        Losses(nn.CrossEntropyLoss()).each(output, target, 4)


def test_losses_without_targets_and_of_several_outputs() -> None:
    output = {"a": torch.randn(4, 2), "b": torch.randn(4)}
    found = Losses(lambda out, _: (out["a"].square().sum(1) + out["b"]).mean()).each(output, None, 4)
    assert torch.allclose(found, output["a"].square().sum(1) + output["b"], atol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        lambda out, _: out.argmax(1).sum(),
        lambda *_: 3.0,
        lambda out, _: out,
        lambda out, _: out.sum() * out.mean(),
        lambda out, _: out.std(),
    ],
)
def test_what_is_no_loss_of_examples_is_refused(loss: object) -> None:
    with pytest.raises(UnfitModelError, match="To fix"):
        Losses(loss).each(torch.randn(4, 3) + 2, None, 4)  # type: ignore[arg-type]


def test_outputs_and_targets_of_different_shapes_are_told_apart() -> None:
    """Without what torch warns of, which is not shown of private examples."""
    for loss in (nn.MSELoss(), nn.BCEWithLogitsLoss(), nn.functional.l1_loss):
        with pytest.raises(UnfitModelError, match=r"shape \(B, 1\) and the target \(B,\), which differ") as caught:
            Losses(loss).each(torch.randn(4, 1), torch.rand(4), 4)
        assert "unsqueeze" in caught.value.fix


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda out, _: out.argmax(1).sum(), r"made of integers \(torch.int64\)"),
        (lambda out, _: out.argmax(1), r"made of integers \(torch.int64\)"),
        (lambda *_: 3.0, "not a tensor, but of type float"),
    ],
)
def test_losses_of_another_type_are_told_by_it(loss: object, words: str) -> None:
    with pytest.raises(UnfitModelError, match=words):
        Losses(loss).each(torch.randn(4, 3), None, 4)  # type: ignore[arg-type]


def test_what_cannot_be_called_is_no_loss() -> None:
    with pytest.raises(InvalidParameterError, match="is the class CrossEntropyLoss") as caught:
        Losses(nn.CrossEntropyLoss)
    assert "CrossEntropyLoss()" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="of type str, which cannot be called"):
        Losses("ce")  # type: ignore[arg-type]
