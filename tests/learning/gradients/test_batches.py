"""What a batch is."""

import pytest
import torch
from torch import nn

from defocus.errors import UnfitDataError
from defocus.learning.gradients.batches import call, rows, size


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
