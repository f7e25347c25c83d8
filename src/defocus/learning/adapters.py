"""Low-rank adapters: a public model stays as it is, and little beside it is trained."""

import copy
import math
from collections.abc import Sequence
from typing import final

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import Number, UnfitModelError, count, positive

__all__ = ["LowRank", "adapt", "merge"]


@final
class LowRank(nn.Module):
    r"""A linear layer that stays as it is, with the product of two small matrices beside it: W + s · U D.

    Whoever asks for its ``weight`` gets the whole, as code does that passes a layer by.

    >>> layer = LowRank(nn.Linear(6, 4), rank=2, scale=1.0)
    >>> torch.equal(layer.weight, layer.layer.weight), [tuple(each.shape) for each in (layer.up, layer.down)]
    (True, [(4, 2), (2, 6)])
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), scale
        there = {"device": layer.weight.device, "dtype": torch.promote_types(layer.weight.dtype, torch.float32)}
        self.down = nn.Parameter(torch.empty(rank, layer.in_features, **there))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank, **there))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.train(layer.training)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the layer makes of it, and what the two matrices add."""
        made = self.layer(x)
        beside = F.linear(F.linear(x.to(self.down.dtype), self.down), self.up)
        found: torch.Tensor = made + (self.scale * beside).to(made.dtype)
        return found

    @property
    def weight(self) -> torch.Tensor:
        """The weight of the layer with what the two matrices add."""
        whole: torch.Tensor = self.layer.weight + (self.scale * self.up @ self.down).to(self.layer.weight.dtype)
        return whole

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias of the layer."""
        return self.layer.bias

    def merged(self) -> nn.Linear:
        """A plain layer that computes the same."""
        plain: nn.Linear = copy.deepcopy(self.layer)
        with torch.no_grad():
            plain.weight.copy_(self.weight)
        return plain.requires_grad_(True)


def adapt(
    model: nn.Module,
    *,
    rank: int = 8,
    names: Sequence[str] | None = None,
    whole: Sequence[str] = (),
    alpha: Number | None = None,
) -> nn.Module:
    """A copy of a model in which little is trained: low-rank matrices beside linear layers, and parts that are named.

    Private training adds noise to each parameter that is trained, so a large public model is better adapted by few.
    The model that is given stays as it is; the copy uses its memory for what is frozen, and computes what the model did
    until it is trained. Give the parameters of the copy to the optimizer, and :func:`merge` it afterwards.

    Args:
        model: a model with public weights, such as those of :func:`load_weights`.
        rank: how wide the matrices are.
        names: which linear layers get them, by their names or what these end in (``"query"`` for all that are called
            so), as ``target_modules`` of PEFT; all by default. Subclasses of ``Linear`` are left alone, since other
            code reads their weights, and so are layers that share a weight with ``whole=``, which trains it.
        whole: parts that are trained as they are, named in the same way: a new head, for example (``modules_to_save``).
        alpha: adapters count ``alpha / rank`` times (``lora_alpha``); by default once.

    Reference:
        Hu et al. (2022), LoRA: low-rank adaptation of large language models; Yu et al. (2022), Differentially private
        fine-tuning of language models.

    >>> model = nn.Sequential(nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 2))
    >>> adapted = adapt(model, rank=4, whole=["2"])
    >>> [name for name, each in adapted.named_parameters() if each.requires_grad]
    ['0.down', '0.up', '2.weight', '2.bias']
    """
    width, scale = count("rank", rank), 1.0 if alpha is None else float(positive("alpha", alpha)) / count("rank", rank)
    modules = dict(model.named_modules())
    kept = [name for name in modules if _is_named(name, whole)]
    inside = {each for name in kept for each in modules if each == name or each.startswith(f"{name}.")}
    free = {id(each) for name in kept for each in modules[name].parameters()}
    plain = [name for name, each in modules.items() if type(each) is nn.Linear and name not in inside]
    layers = [name for name in plain if free.isdisjoint(map(id, modules[name].parameters()))]  # tied to what is trained
    for asked, found in ((names or (), layers), (whole, kept)):
        missing = next((each for each in asked if not any(_is_named(name, [each]) for name in found)), None)
        if missing is not None:
            ends = sorted({name.rpartition(".")[2] for name in layers})
            raise UnfitModelError(
                f"The model has no {'part' if found is kept else 'linear layer'} called {missing!r:.100}.",
                fix=f"name one as model.named_modules() does; its linear layers end in {', '.join(ends) or 'nothing'}.",
            )
    chosen = [name for name in layers if names is None or _is_named(name, names)]
    if not chosen and not kept:
        raise UnfitModelError(
            "The model has no linear layer to put an adapter beside.", fix="name parts to be trained: whole=[…]."
        )
    shared = {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in model.parameters() if id(p) not in free}
    adapted: nn.Module = copy.deepcopy(model, memo=dict(shared))
    for name in kept:
        adapted.get_submodule(name).requires_grad_(True)
    layers_there = [adapted.get_submodule(name) for name in chosen]
    return _exchanged(
        adapted, {id(each): LowRank(each, width, scale) for each in layers_there if isinstance(each, nn.Linear)}
    )


def merge(model: nn.Module) -> nn.Module:
    """A copy of an adapted model in which adapters are added to their layers, so that it is of the kind it was before.

    Its ``state_dict`` has the names of the public one, and all of its parameters can be trained again. Free: what is
    made of released parameters is as private as they are.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> [*merge(adapt(model)).state_dict()] == [*model.state_dict()]
    True
    """
    plain = copy.deepcopy(model).requires_grad_(True)
    return _exchanged(plain, {id(each): each.merged() for each in plain.modules() if isinstance(each, LowRank)})


def _is_named(name: str, ends: Sequence[str]) -> bool:
    return any(name == end or name.endswith(f".{end}") for end in ends)


def _exchanged(model: nn.Module, instead: dict[int, nn.Module]) -> nn.Module:
    """The model with other modules in the place of some, wherever they stand."""
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if id(module) not in instead:
            continue
        if not name:
            return instead[id(module)]
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, instead[id(module)])
    return model
