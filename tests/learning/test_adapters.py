"""Low-rank adapters: few parameters, one pass, and a plain model afterwards."""

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning.making import data, parameters, trainer
from torch import nn

from defocus.errors import InvalidParameterError, UnfitModelError
from defocus.learning import Gradients, adapt, merge
from defocus.learning.adapters import LowRank


class Encoder(nn.Module):
    """A layer of torch's own transformer, with tied parts around it."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(5, 8)
        self.body = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.again = self.inputs
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.body(torch.stack([self.inputs(x), self.again(2 * x)], dim=1))
        found: torch.Tensor = self.head(made.mean(dim=1))
        return found


def stirred(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, LowRank):
                nn.init.normal_(module.up)
    return model


def test_an_adapted_model_computes_what_it_did_until_it_is_trained_and_trains_only_what_was_asked(
    tmp_path: Path,
) -> None:
    model = Encoder()
    before = copy.deepcopy(model.state_dict())
    adapted = adapt(model, rank=2, names=["inputs", "linear1"], whole=["head"])
    x = data()[0]
    assert torch.equal(adapted(x), model(x))
    trained = {name for name, each in adapted.named_parameters() if each.requires_grad}
    assert trained == {"inputs.up", "inputs.down", "body.linear1.up", "body.linear1.down", "head.weight", "head.bias"}
    frozen = adapted.get_parameter("body.linear2.weight")
    assert frozen.data_ptr() == model.body.linear2.weight.data_ptr()
    assert adapted.get_submodule("again") is adapted.get_submodule("inputs")
    kept = [copy.deepcopy(adapted.get_parameter(name)) for name in ("body.linear2.weight", "inputs.layer.weight")]
    with warnings.catch_warnings(action="error"):  # one pass, and not slower
        run = trainer(tmp_path, model=adapted)
    assert run.fit(progress=False).steps == 8
    assert torch.equal(kept[0], frozen)
    assert torch.equal(kept[1], adapted.get_parameter("inputs.layer.weight"))
    assert all(torch.equal(each, model.state_dict()[name]) for name, each in before.items())
    assert all(each.requires_grad for each in model.parameters())


def test_gradients_of_adapters_are_those_of_a_loop() -> None:
    adapted = stirred(adapt(Encoder(), rank=3, whole=["head"]))
    x, y = data(6)
    found = Gradients(adapted, nn.CrossEntropyLoss()).clipped_sum((x, y), lambda norms: (0.1 / norms).clamp(max=1))
    trained = [each for each in adapted.parameters() if each.requires_grad]
    sums = [torch.zeros_like(each) for each in trained]
    for place in range(6):
        loss = nn.functional.cross_entropy(adapted(x[place : place + 1]), y[place : place + 1])
        parts = torch.autograd.grad(loss, trained)
        norm = torch.cat([part.flatten() for part in parts]).norm()
        assert torch.isclose(norm, found.norms[place], rtol=1e-4)
        sums = [whole + part * (0.1 / norm).clamp(max=1) for whole, part in zip(sums, parts, strict=True)]
    for each, whole in zip(trained, sums, strict=True):
        assert each.grad is not None
        assert torch.allclose(each.grad, whole, atol=1e-5)


def test_a_merged_model_is_of_the_kind_it_was_and_computes_the_same() -> None:
    model = Encoder()
    adapted = stirred(adapt(model, rank=3, alpha=6)).eval()
    plain = merge(adapted)
    x = data()[0]
    assert not torch.allclose(adapted(x), model.eval()(x), atol=1e-3)
    assert torch.allclose(plain(x), adapted(x), atol=1e-5)
    with torch.no_grad():  # torch's own shortcut reads weights and calls no layer
        assert torch.allclose(adapted(x), plain(x), atol=1e-5)
    assert [(name, each.shape) for name, each in plain.state_dict().items()] == [
        (name, each.shape) for name, each in model.state_dict().items()
    ]
    assert not any(isinstance(each, LowRank) for each in plain.modules())
    assert all(each.requires_grad for each in plain.parameters())
    assert plain.get_submodule("again") is plain.get_submodule("inputs")


def test_a_layer_alone_half_precision_and_tied_weights_are_adapted() -> None:
    alone = adapt(nn.Linear(4, 2), rank=1)
    assert isinstance(alone, LowRank)
    assert type(merge(alone)) is nn.Linear
    half = adapt(nn.Linear(4, 2, dtype=torch.bfloat16), rank=1)
    assert half.get_parameter("up").dtype == torch.float32
    assert half(torch.ones(3, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16
    tied = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6, bias=False))
    tied[1].weight = tied[0].weight
    whole = adapt(tied, whole=["1"])
    assert whole.get_parameter("0.weight") is whole.get_parameter("1.weight")
    assert whole.get_parameter("1.weight").requires_grad
    assert len(parameters(whole)) == 24


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"names": ["query"]}, "no linear layer called 'query'"),
        ({"names": ["out_proj"]}, "no linear layer called 'out_proj'"),
        ({"whole": ["score"]}, "no part called 'score'"),
    ],
)
def test_names_that_are_nowhere_are_refused_with_those_there_are(more: dict[str, Any], words: str) -> None:
    with pytest.raises(UnfitModelError, match=words) as caught:
        adapt(Encoder(), **more)
    assert "head, inputs, linear1, linear2" in caught.value.fix


def test_models_without_linear_layers_and_ranks_of_nothing_are_refused() -> None:
    with pytest.raises(UnfitModelError, match="no linear layer to put"):
        adapt(nn.Embedding(3, 2))
    with pytest.raises(InvalidParameterError, match="rank"):
        adapt(Encoder(), rank=0)


def test_a_part_that_is_trained_whole_is_trained_where_its_weight_is_tied_to_a_layer() -> None:
    model = nn.ModuleDict({"table": nn.Embedding(5, 4), "middle": nn.Linear(4, 4), "out": nn.Linear(4, 5)})
    model["out"].weight = model["table"].weight
    adapted = adapt(model, whole=["table"])
    trained = [name for name, each in adapted.named_parameters() if each.requires_grad]
    assert trained == ["table.weight", "middle.down", "middle.up"]
    assert adapted["out"].weight is adapted["table"].weight
