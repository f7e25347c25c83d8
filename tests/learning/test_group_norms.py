"""Group norms in the place of batch norms: said, and never silent."""

from pathlib import Path

import pytest
import torch
from tests.learning.making import trainer
from torch import nn

from defocus.errors import DependentExamplesError
from defocus.learning import fix
from defocus.learning.group_norms import ReplacedLayersWarning


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12, eps=1e-3))
        self.last = nn.Linear(12, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.first(x))
        return found


def test_a_fixed_model_is_trained_and_the_one_given_stays_as_it_is(tmp_path: Path) -> None:
    model = Block()
    with pytest.raises(DependentExamplesError, match=r"batch_norm .* in first\.1 \(BatchNorm1d\)") as caught:
        trainer(tmp_path, model=model)
    assert "fix(model)" in caught.value.fix
    with pytest.warns(ReplacedLayersWarning, match=r"GroupNorm is in the place of BatchNorm1d in first\.1"):
        fixed = fix(model)
    assert isinstance(model.first[1], nn.BatchNorm1d)
    norm = fixed.get_submodule("first.1")
    assert isinstance(norm, nn.GroupNorm)
    assert (norm.num_groups, norm.num_channels, norm.eps) == (4, 12, 1e-3)
    assert trainer(tmp_path, model=fixed).fit(progress=False).steps == 8


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(6, affine=False), nn.InstanceNorm2d(6, track_running_stats=True)])
def test_a_layer_alone_is_exchanged_too_and_keeps_no_statistics(layer: nn.Module) -> None:
    with pytest.warns(ReplacedLayersWarning, match="the model"):
        fixed = fix(layer.eval())
    assert not dict(fixed.named_buffers())
    assert not fixed.training
    x = torch.randn(4, 6, 3, 3)
    assert torch.allclose(fixed(x)[:1], fixed(x[:1]), atol=1e-6)


def test_scales_and_shifts_are_taken_over() -> None:
    model = nn.Sequential(nn.Conv2d(1, 6, 1), nn.BatchNorm2d(6))
    nn.init.uniform_(model[1].weight)
    with pytest.warns(ReplacedLayersWarning):
        fixed = fix(model)
    assert torch.equal(fixed[1].weight, model[1].weight)
    assert fixed[1].weight is not model[1].weight


def test_what_needs_no_fixing_is_copied_without_a_word() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    assert str(fix(model)) == str(model)
