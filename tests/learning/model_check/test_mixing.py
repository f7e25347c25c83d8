"""Models that mix examples are refused before the charge, by operator and line; their near twins are trained."""
# ruff: noqa: NPY002 -- what models may draw from

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.gradients.comparing import Model
from tests.learning.making import trainer
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import DependentExamplesError, UnfitModelError

Use = Callable[[Any, torch.Tensor], Any]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
TIMES, WIDTH, CLASSES = 4, 8, 3
TOPS: dict[str, float] = {}


def net(use: Use, *, last: bool = False) -> nn.Module:
    """What is done to (examples, times, width), between two linear layers; or what is done to the scores."""

    def forward(m: Any, x: torch.Tensor) -> Any:
        return use(m, m.out(m.a(x).mean(1))) if last else m.out(use(m, m.a(x)).mean(1))

    torch.manual_seed(0)
    parts: dict[str, Any] = {"a": nn.Linear(WIDTH, WIDTH), "out": nn.Linear(WIDTH, CLASSES)}
    parts |= {"norm": nn.BatchNorm1d(TIMES), "norm2d": nn.BatchNorm2d(1), "group": nn.GroupNorm(1, TIMES)}
    parts |= {"kept": nn.Buffer(torch.ones(WIDTH)), "count": nn.Buffer(torch.zeros(())), "seen": None, "past": []}
    parts |= {"lstm": nn.LSTM(WIDTH, WIDTH), "lstm_first": nn.LSTM(WIDTH, WIDTH, batch_first=True)}
    parts |= {
        "heads": nn.MultiheadAttention(WIDTH, 2),
        "heads_first": nn.MultiheadAttention(WIDTH, 2, batch_first=True),
    }
    parts |= {"memory": nn.Buffer(torch.zeros(16, WIDTH)), "conv": nn.Conv1d(TIMES, TIMES, 3, padding=1)}
    found = Model(forward, **parts)
    for name, part in parts.items():
        if isinstance(part, nn.Module) and name not in {"a", "out"}:
            part.requires_grad_(False)
    return found


class Centred(torch.autograd.Function):
    """Takes the mean over an axis in forward, and passes gradients as they are."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, axis: int) -> torch.Tensor:
        del ctx
        return x - x.mean(axis, keepdim=True)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        del ctx
        return gradients[0], None


class Scaled(torch.autograd.Function):
    """Passes numbers as they are, and divides gradients by their norm over axes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
        ctx.axes = axes
        return x * 1

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (gradient,) = gradients
        return gradient / (gradient.square().sum(ctx.axes, keepdim=True).sqrt() + 1e-3), None


def hooked(axis: int) -> Use:
    def use(m: Any, x: torch.Tensor) -> Any:
        del m
        x.register_hook(lambda gradient: gradient - gradient.mean(axis, keepdim=True))
        return x

    return use


def called(what: Use) -> Use:
    """By a hook of a module, which is there for one pass."""

    def use(m: Any, x: torch.Tensor) -> Any:
        layer = nn.Identity()
        layer.register_forward_hook(lambda _, __, found: what(m, found))
        return layer(x)

    return use


def running(m: Any, x: torch.Tensor) -> Any:
    m.kept.mul_(0.9).add_(0.1 * x.detach().mean((0, 1)))
    return x - m.kept


def told_apart(m: Any, x: torch.Tensor) -> Any:
    m.count.add_(1)
    return x - m.kept


def queued(m: Any, x: torch.Tensor) -> Any:
    m.memory[:2] = x.detach().mean(1)[:2]
    return x + m.memory.mean(0)


def in_an_attribute(m: Any, x: torch.Tensor) -> Any:
    before, m.seen = m.seen, x.detach().mean(0)
    return x if before is None else x - before


def in_a_list(m: Any, x: torch.Tensor) -> Any:
    m.past.append(x.detach())
    return x + m.past[0].mean()


def largest_ever(m: Any, x: torch.Tensor) -> Any:
    del m
    TOPS["top"] = max(TOPS.get("top", 1.0), float(x.detach().abs().max()))
    return x / TOPS["top"]


def written(m: Any, x: torch.Tensor) -> Any:
    with torch.no_grad():
        m.out.weight.mul_(1 / m.out.weight.norm().clamp(min=1))
    return x


def normed(m: Any, x: torch.Tensor) -> Any:
    return x * (1 / m.out.weight.norm().clamp(min=1))


def first_replaced(m: Any, x: torch.Tensor) -> Any:
    del m
    x = x.clone()
    x[0] = x[1]
    return x


def first_time_replaced(m: Any, x: torch.Tensor) -> Any:
    del m
    x = x.clone()
    x[:, 0] = x[:, 1]
    return x


def scattered(axis: int) -> Use:
    def use(m: Any, x: torch.Tensor) -> Any:
        del m
        return torch.zeros_like(x).scatter_add(axis, x.argsort(axis), x)

    return use


def whitened(axis: int) -> Use:
    def use(m: Any, x: torch.Tensor) -> Any:
        del m
        products = torch.einsum("btd,bte->de", x, x) if axis == 0 else x.mT @ x
        return x @ torch.linalg.inv(torch.eye(WIDTH) + products)

    return use


def weighted(m: Any, x: torch.Tensor) -> Any:
    del m
    weights = (x.flatten(1) @ x.flatten(1).T).softmax(1)
    return torch.einsum("bc,ctd->btd", weights, x)


MODELS: dict[str, tuple[Use, str, Use]] = {
    "batch norm": (lambda m, x: m.norm(x), "batch_norm", lambda m, x: m.group(x)),
    "batch norm of images": (
        lambda m, x: m.norm2d(x[:, None])[:, 0],
        "batch_norm",
        lambda m, x: m.group(x[..., None])[..., 0],
    ),
    "batch norm by function": (
        lambda _, x: F.batch_norm(x, None, None, training=True),
        "batch_norm",
        lambda _, x: F.instance_norm(x),
    ),
    "the mean": (lambda _, x: x - x.mean(0), "mean", lambda _, x: x - x.mean(1, keepdim=True)),
    "the mean of all": (lambda _, x: x - x.mean(), "mean", lambda _, x: x - x.mean((1, 2), keepdim=True)),
    "a hundred-millionth of the mean": (
        lambda _, x: x + 1e-8 * x.mean(0),
        "mean",
        lambda _, x: x + 1e-8 * x.mean(1, keepdim=True),
    ),
    "a mean that only gradients see": (
        lambda _, x: x + (x.mean(0) - x.mean(0).detach()),
        "mean",
        lambda _, x: x + (x.mean(2, keepdim=True) - x.detach().mean(2, keepdim=True)),
    ),
    "the deviation": (lambda _, x: x / (1 + x.std(0)), "std", lambda _, x: x / (1 + x.std(1, keepdim=True))),
    "the variance of all": (lambda _, x: x / (1 + x.var()), "var", lambda _, x: x / (1 + x.var(2, keepdim=True))),
    "the largest": (lambda _, x: x / x.abs().amax(), "amax", lambda _, x: x / x.abs().amax((1, 2), keepdim=True)),
    "the largest with its place": (
        lambda _, x: x - x.max(0).values,
        "max",
        lambda _, x: x - x.max(1, keepdim=True).values,
    ),
    "the norm of all": (
        lambda _, x: x / x.norm().clamp(min=1),
        "linalg_vector_norm|norm",
        lambda _, x: x / x.flatten(1).norm(dim=1)[:, None, None].clamp(min=1),
    ),
    "the median": (
        lambda _, x: x * (x > x.median(0).values),
        "median",
        lambda _, x: x * (x > x.median(1, keepdim=True).values),
    ),
    "a quantile": (
        lambda _, x: x.clamp(max=x.quantile(0.9).detach()),
        "quantile",
        lambda _, x: x.clamp(max=x.quantile(0.9, dim=1, keepdim=True).detach()),
    ),
    "any of them": (lambda _, x: x + (x > 3).any(), "any", lambda _, x: x + (x > 3).any(2, keepdim=True)),
    "how many there are": (lambda _, x: x / len(x), "div", lambda _, x: x / x.shape[1]),
    "the place in the batch": (
        lambda _, x: x + torch.arange(len(x))[:, None, None],
        "add",
        lambda _, x: x + torch.arange(x.shape[1])[:, None],
    ),
    "softmax": (lambda _, x: x.softmax(0), "softmax", lambda _, x: x.softmax(1)),
    "logsumexp": (lambda _, x: x - x.logsumexp(0), "logsumexp", lambda _, x: x - x.logsumexp(2, keepdim=True)),
    "sorting": (lambda _, x: x.sort(0).values, "sort", lambda _, x: x.sort(1).values),
    "ranking": (lambda _, x: x + x.argsort(0).argsort(0), "argsort", lambda _, x: x + x.argsort(1).argsort(1)),
    "the strongest of all": (
        lambda _, x: x + x.topk(2, 0).values.sum(0),
        "topk",
        lambda _, x: x + x.topk(2, 1).values.sum(1, keepdim=True),
    ),
    "running sums": (lambda _, x: x.cumsum(0), "cumsum", lambda _, x: x.cumsum(1)),
    "the largest so far": (lambda _, x: x.cummax(0).values, "cummax", lambda _, x: x.cummax(1).values),
    "rolling": (lambda _, x: x + 0.1 * x.roll(1, 0), "roll", lambda _, x: x + 0.1 * x.roll(1, 1)),
    "flipping": (lambda _, x: x + x.flip(0), "flip", lambda _, x: x + x.flip(1)),
    "differences of neighbours": (
        lambda _, x: x + F.pad(x.diff(dim=0), (0, 0, 0, 0, 0, 1)),
        "diff|slice",
        lambda _, x: x + F.pad(x.diff(dim=1), (0, 0, 0, 1)),
    ),
    "the first to all": (lambda _, x: x + x[:1], "slice", lambda _, x: x + x[:, :1]),
    "the last to all": (lambda _, x: x + x[-1], "select", lambda _, x: x + x[:, -1:]),
    "the first replaced": (first_replaced, "select", first_time_replaced),
    "mixup": (lambda _, x: 0.5 * x + 0.5 * x[torch.randperm(len(x))], "randperm", lambda _, x: x[:, torch.randperm(4)]),
    "mixup by numpy": (
        lambda _, x: x + x[torch.from_numpy(np.random.permutation(len(x)))],
        "numpy",
        lambda _, x: x + float(np.random.normal()),
    ),
    "another example by numbers": (
        lambda _, x: x + x[x[:, 0, 0].argsort()],
        "argsort",
        lambda _, x: x.take_along_dim(x.argsort(1), 1),
    ),
    "the strongest example": (
        lambda _, x: x + x[x[:, 0, 0].argmax()],
        "__getitem__",
        lambda _, x: x + x[torch.arange(len(x)), x[..., 0].argmax(1)][:, None],
    ),
    "index_select": (
        lambda _, x: x.index_select(0, torch.arange(len(x)).flip(0)),
        "flip",
        lambda _, x: x.index_select(1, torch.arange(4).flip(0)),
    ),
    "gathering": (lambda _, x: x.gather(0, x.argsort(0)), "argsort", lambda _, x: x.gather(1, x.argsort(1))),
    "scattering": (scattered(0), "argsort", scattered(1)),
    "letters": (
        lambda _, x: torch.einsum("btd,cte->bde", x, x).mean(2, keepdim=True).mT,
        "einsum",
        lambda _, x: torch.einsum("btd,bte->bde", x, x),
    ),
    "products of pairs": (weighted, "matmul|mm|permute", lambda _, x: (x @ x.mT).softmax(2) @ x),
    "whitening": (whitened(0), "einsum", whitened(1)),
    "distances": (
        lambda _, x: x + torch.cdist(x.flatten(1), x.flatten(1)).mean(1)[:, None, None],
        "cdist",
        lambda _, x: x + (x[:, :, None] - x[:, None]).norm(dim=-1).mean(2, keepdim=True),
    ),
    "attention": (
        lambda m, x: m.heads(x, x, x)[0],
        "bmm|scaled_dot_product_attention",
        lambda m, x: m.heads_first(x, x, x)[0],
    ),
    "attention by function": (
        lambda _, x: F.scaled_dot_product_attention(
            x.mT.mT.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1)
        ).transpose(0, 1),
        "scaled_dot_product_attention",
        lambda _, x: F.scaled_dot_product_attention(x, x, x),
    ),
    "an LSTM over examples": (lambda m, x: m.lstm(x)[0], "lstm", lambda m, x: m.lstm_first(x)[0]),
    "a convolution over examples": (
        lambda m, x: m.conv(x.permute(2, 1, 0)).permute(2, 1, 0),
        "conv1d",
        lambda m, x: m.conv(x),
    ),
    "pooling over examples": (
        lambda _, x: F.avg_pool1d(x.permute(1, 2, 0), 3, 1, 1).permute(2, 0, 1),
        "avg_pool1d",
        lambda _, x: F.avg_pool1d(x, 3, 1, 1),
    ),
    "pairs by reshaping": (
        lambda _, x: (
            x + x.reshape(-1, 2 if len(x) > 1 else 1, 4, 8).mean(1).repeat_interleave(2 if len(x) > 1 else 1, 0)
        ),
        "reshape",
        lambda _, x: x + x.reshape(-1, 2, 2, 8).mean(1).repeat(1, 2, 1),
    ),
    "examples as features": (
        lambda _, x: F.layer_norm(x.permute(1, 2, 0), (len(x),)).permute(2, 0, 1),
        "layer_norm",
        lambda _, x: F.layer_norm(x, (8,)),
    ),
    "a norm of all": (lambda _, x: F.layer_norm(x, x.shape), "layer_norm", lambda _, x: F.layer_norm(x, x.shape[1:])),
    "Fourier over examples": (
        lambda _, x: torch.fft.fft(x, dim=0).real,
        "fft_fft",
        lambda _, x: torch.fft.fft(x, dim=1).real,
    ),
    "a mask of the first": (
        lambda _, x: x.masked_fill(x[:1] > 0, 0.0),
        "slice",
        lambda _, x: x.masked_fill(x[:, :1] > 0, 0.0),
    ),
    "joining": (lambda _, x: torch.cat([x[1:], x[:1]]), "slice", lambda _, x: torch.cat([x[:, 1:], x[:, :1]], 1)),
    "a branch by a draw": (
        lambda _, x: x - x.mean(0) if random.random() < 0.5 else x,
        "generators",
        lambda _, x: x * 0.5 if random.random() < 0.5 else x,
    ),
    "a hook of a module": (
        called(lambda _, x: x - x.mean(0)),
        "mean",
        called(lambda _, x: x - x.mean(2, keepdim=True)),
    ),
    "a hook of gradients": (hooked(0), "register_hook", hooked(1)),
    "a function with a gradient of its own": (
        lambda _, x: Centred.apply(x, 0),
        "Centred",
        lambda _, x: Centred.apply(x, 1),
    ),
    "a gradient of its own that mixes": (
        lambda _, x: Scaled.apply(x, (0, 1, 2)),
        "Scaled",
        lambda _, x: Scaled.apply(x, (1, 2)),
    ),
    "a running mean": (running, "mean", told_apart),
    "a memory bank": (queued, "slice", lambda m, x: x + m.memory.mean(0)),
    "an attribute": (in_an_attribute, "mean", lambda m, x: x + m.kept),
    "a list": (in_a_list, "detach", lambda _, x: x),
    "a global name": (largest_ever, "__float__", lambda _, x: x / 2),
    "parameters that are written to": (written, "mul", normed),
}


def contrastive(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    del target
    normal = F.normalize(output, dim=1)
    return F.cross_entropy(normal @ normal.T, torch.arange(len(output)), reduction="none")


def pairs_of_all(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    del target
    return (1 - output[:, None, 0] + output[None, :, 1]).relu().mean(1)


def barlow(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    del target
    correlation = output.T @ output / len(output)
    return (correlation - torch.eye(CLASSES)).square().sum()


def correlated(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    found, wanted = output[:, 0] - output[:, 0].mean(), target.float() - target.float().mean()
    return 1 - (found * wanted).sum() / (found.norm() * wanted.norm() + 1e-3)


def every(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output, target, reduction="none")


def spread(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return every(output, target).mean() + (1 - output.std(0)).relu().mean()


LOSSES: dict[str, tuple[Loss, str, Loss]] = {
    "contrastive": (contrastive, "mm|matmul", lambda o, t: every(F.normalize(o, dim=1) @ torch.eye(CLASSES), t)),
    "every pair": (pairs_of_all, "rsub|sub|add", lambda o, t: (1 - o[:, 0] + o[:, 1]).relu() + 0 * t),
    "Barlow twins": (barlow, "mm|matmul", lambda o, t: (o.square() - 1).square().sum(1) + 0 * t),
    "a correlation": (correlated, "mean", lambda o, t: (o[:, 0] - t).square()),
    "a spread": (spread, "std", lambda o, t: every(o, t).mean()),
    "the hardest examples": (
        lambda o, t: every(o, t).topk(1 + len(t) // 2).values.mean(),
        "topk",
        lambda o, t: o.topk(2, 1).values.mean(1) + 0 * t,
    ),
    "beside the mean": (
        lambda o, t: every(o, t) / every(o, t).mean().detach(),
        "mean",
        lambda o, t: every(o, t) / every(o, t).detach().clamp(min=1),
    ),
    "by how many are counted": (
        lambda o, t: every(o, t) / (t != 1).sum(),
        "sum",
        lambda o, t: every(o, t) / ((t != 1) + 1.0),
    ),
    "by how often a class is": (
        lambda o, t: every(o, t) / torch.bincount(t, minlength=CLASSES)[t],
        "bincount",
        lambda o, t: every(o, t) / torch.ones(CLASSES)[t],
    ),
    "a bound by the largest": (
        lambda o, t: every(o / o.abs().max(), t),
        "max",
        lambda o, t: every(o / o.abs().amax(1, keepdim=True), t),
    ),
}


def set_up(folder: Path, use: Use, loss: Any = None) -> None:
    TOPS.clear()
    x, y = torch.randn(64, TIMES, WIDTH, generator=torch.Generator().manual_seed(0)), torch.arange(64) % CLASSES
    trainer(folder, model=net(use), data=(x, y), loss=loss or nn.CrossEntropyLoss())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*MODELS, *LOSSES])
def test_what_mixes_examples_is_refused_before_the_charge_by_operator_and_line(tmp_path: Path, name: str) -> None:
    use, operator, _ = MODELS.get(name, (lambda _, x: x, "", None))
    loss, operator, _ = LOSSES.get(name, (None, operator, None))
    with pytest.raises((DependentExamplesError, UnfitModelError)) as caught:
        set_up(tmp_path, use, loss)
    assert not (tmp_path / "run.ledger").exists()
    caught.match(rf"\b({operator})\b.* in (test_mixing|norm|making)\.py, line \d+")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*MODELS, *LOSSES])
def test_near_twins_that_keep_examples_apart_are_trained(tmp_path: Path, name: str) -> None:
    _, _, use = MODELS.get(name, (None, "", lambda _, x: x))
    loss = LOSSES[name][2] if name in LOSSES else None
    set_up(tmp_path, use, loss)
