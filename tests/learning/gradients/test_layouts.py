"""Batches, and regions of parameters."""

import pytest
import torch
from torch import nn

from defocus.errors import UnfitDataError
from defocus.learning.gradients.layouts import Regions, call, rows, size


def test_parameters_and_their_views_are_regions_and_nothing_else_is() -> None:
    weight, other = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(3))
    regions = Regions({"weight": weight})
    assert regions.find(weight) == regions.whole("weight")
    part = regions.find(weight[1:3, ::2].t())
    assert part is not None
    assert (part.shape, part.stride, part.offset) == ((3, 2), (2, 6), 6)
    assert part.places().tolist() == [6, 12, 8, 14, 10, 16]
    for stranger in (other, weight.detach(), weight * 1, weight.detach()[1:], torch.zeros(2), None, "weight"):
        assert regions.find(stranger) is None


def test_what_is_added_to_a_view_lands_in_its_place() -> None:
    weight = nn.Parameter(torch.zeros(3, 4))
    regions = Regions({"weight": weight})
    view = regions.find(weight[1:, 1:3].t())
    assert view is not None
    for _ in range(2):
        regions.add(view, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert weight.grad.tolist() == [[0, 0, 0, 0], [0, 2, 6, 0], [0, 4, 8, 0]]


def test_a_gradient_lies_in_memory_as_its_parameter_does() -> None:
    weight = nn.Parameter(torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last))
    regions = Regions({"weight": weight})
    regions.add(regions.whole("weight"), torch.ones(4, 3, 2, 2))
    assert weight.grad.stride() == weight.stride()


def test_a_batch_knows_its_size_and_its_rows() -> None:
    batch = ({"a": torch.arange(6).view(3, 2), "b": [torch.zeros(3)]}, torch.arange(3))
    assert size(batch) == 3
    part = rows(batch, 1, 2)
    assert part[0]["a"].tolist() == [[2, 3]]
    assert size(part) == 1
    assert size((torch.zeros(4, 2), None)) == 4


@pytest.mark.parametrize(
    "batch",
    [None, 3, (1,), (1, 2, 3), (None, None), ([], []), (torch.tensor(1), None), (torch.zeros(3), torch.zeros(2))],
)
def test_anything_else_is_refused_without_quoting_it(batch: object) -> None:
    with pytest.raises(UnfitDataError, match="To fix: give \\(inputs, targets\\)"):
        size(batch)


def test_inputs_are_handed_over_as_they_come() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor | float = 1.0) -> torch.Tensor:
            return x * y

    two, three = torch.tensor(2.0), torch.tensor(3.0)
    assert [float(call(Both(), each)) for each in (two, (two, three), {"y": two, "x": three})] == [2, 6, 6]
