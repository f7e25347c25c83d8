r"""What is checked of a model before the first charge: that an example means the same whoever is beside it.

Clipping bounds what one example adds to a sum. It bounds nothing if the example also moves the terms of the others, as
with batch normalisation, ``x - x.mean(0)``, or a loss averaged over the tokens of a whole batch. So at set-up, on
examples that are *made up* (of the shape of the data and none of its values), the first example of a batch is
kept while the others are exchanged, and its loss and its gradient must stay what they are. Buffers, which are released
without noise, must stay what they are also when all examples are exchanged.

Every comparison starts torch's generators from the same state and keeps the shapes, so that dropout draws the same
masks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from torch.nn import Module
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees

from defocus.errors import DefocusError, DependentExamplesError, UnfitModelError
from defocus.learning.gradients import Gradients
from defocus.learning.gradients.batches import Batch, call, size
from defocus.learning.gradients.losses import Loss, Losses
from defocus.learning.streams import Stream

__all__ = ["check_independent", "check_sums_are_wide", "made_up"]

_ROWS = 4
_TOLERANCE = 1e-3
"""Relative: far above the rounding of floats, far below what a batch-mate moves."""
_ROUNDING = 1e-5
"""What single precision may leave of a gradient where its terms cancel, as a share of the whole."""


def made_up(one: Batch, rows: int, stream: Stream, *, ignored: int | None = None) -> Batch:
    """Examples of the shapes and types of ``one``, with values that have nothing to do with the data.

    Floats are uniform on [-1, 1), whole numbers 0 or 1, which every vocabulary has. With ``ignored``, every other whole
    number of the targets is that.
    """

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        shape = (rows, *leaf.shape[1:])
        total = int(torch.Size(shape).numel())
        words = torch.from_numpy((stream.words(total) >> 32).astype("int64")).view(shape)
        if leaf.dtype.is_floating_point:
            return (words.double() / 2**31 - 1).to(leaf.device, leaf.dtype)
        return (words % 2).to(leaf.device, leaf.dtype)

    inputs, targets = trees.tree_map(filled, one)
    if ignored is not None:
        targets = trees.tree_map(lambda leaf: _ignoring(leaf, ignored), targets)
    return inputs, targets


def check_independent(model: Module, loss: Loss, gradients: Gradients, one: Batch, probe: Batch | None) -> None:
    """Refuse a model or a loss that ties the examples of a batch together, or that keeps statistics of them.

    The model, its buffers, gradients and torch's generators are left as they were found.
    """
    device = next(model.parameters()).device
    stream = Stream(bytes(32), "made-up examples")
    first, second = (
        (_chosen(probe, offset, device) if probe is not None else made_up(one, _ROWS, stream))
        for offset in (0, _ROWS - 1)
    )
    with _untouched(model, device) as again:
        try:
            _checked(model, loss, gradients, (first, _joined(first, second)), again)
            _check_buffers(model, loss, (first, second if probe is not None else _apart(first, second)), again)
            if probe is None:
                _check_ignored(model, loss, one, stream, again)
        except DefocusError:
            raise
        except Exception as error:
            raise UnfitModelError(
                f"The model failed on made-up examples of the shape of the data: {type(error).__name__}: {error}"[:600],
                fix="mend it, or pass probe=(inputs, targets), a few made-up examples that it accepts.",
            ) from error


def check_sums_are_wide(model: Module, gradients: Gradients, one: Batch, precision: torch.dtype) -> None:
    """Refuse mixed precision where the sum of clipped gradients comes out rounded to the narrow type.

    Rounding a sum s to 8 bits moves it by up to :math:`2^{-9}|s|`, and by how much depends on every example: for a
    thousand aligned gradients that is more than the clip. Products may be narrow; what adds up examples must not be.
    """
    device = next(model.parameters()).device
    batch = made_up(one, 4 * _ROWS, Stream(bytes(32), "made-up examples"))
    with _untouched(model, device) as again:
        again()
        with torch.autocast(device.type, dtype=precision):
            gradients.clipped_sum(batch, torch.ones_like)
        for name, parameter in model.named_parameters():
            found = parameter.grad
            if found is None or not parameter.requires_grad or int((found != 0).sum()) < _ROWS:
                continue
            if torch.equal(found, found.to(precision).to(found.dtype)):
                raise UnfitModelError(
                    f"In {precision} the sum of the gradients of {name} is itself rounded to few bits, by more than one"
                    " example adds to a large batch, so clipping would not bound anyone.",
                    fix='use precision="float32" for this model.',
                )


def _checked(
    model: Module, loss: Loss, gradients: Gradients, batches: tuple[Batch, Batch], again: Callable[[], None]
) -> None:
    losses, (first, mixed) = Losses(loss), batches
    here, buffers = _losses(model, losses, first, again)
    there, others = _losses(model, losses, mixed, again)
    if not _close(here[0], there[0]):
        raise _dependent("the loss of an example changes with the other examples of its batch")
    _compare_buffers(buffers, others)
    alone = _gradient(model, gradients, first, again)
    beside = _gradient(model, gradients, mixed, again)
    if not _alike(alone, beside):
        raise _dependent("the gradient of an example changes with the other examples of its batch")
    with _Steady():
        fewer = tuple(trees.tree_map(lambda leaf: leaf[:2] if isinstance(leaf, torch.Tensor) else leaf, first))
        more, _ = _losses(model, losses, first, again)
        less, _ = _losses(model, losses, (fewer[0], fewer[1]), again)
        same = _alike(_gradient(model, gradients, first, again), _gradient(model, gradients, fewer, again))
    if not _close(more[0], less[0]) or not same:
        raise _dependent("the loss or gradient of an example changes with the number of examples in its batch")


def _check_buffers(model: Module, loss: Loss, batches: tuple[Batch, Batch], again: Callable[[], None]) -> None:
    """Buffers must be the same after two batches that have no example in common, in any place."""
    one, other = (_losses(model, Losses(loss), batch, again)[1] for batch in batches)
    _compare_buffers(one, other)


def _compare_buffers(buffers: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> None:
    for name, buffer in buffers.items():
        if not torch.equal(buffer, others[name]):
            raise DependentExamplesError(
                f"The buffer {name} of the model keeps statistics of the examples, and would release them.",
                fix="turn it off (track_running_stats=False), or put that module in eval() for the training.",
            )


def _check_ignored(model: Module, loss: Loss, one: Batch, stream: Stream, again: Callable[[], None]) -> None:
    """The same for targets that the loss ignores, where it takes them: a mean over the others ties examples."""
    marked = getattr(loss, "ignore_index", -100)
    first, second = (made_up(one, _ROWS, stream, ignored=marked) for _ in range(2))
    plain = made_up(one, _ROWS, stream)
    losses = Losses(loss)
    try:
        here, _ = _losses(model, losses, _joined(first, second), again)
        there, _ = _losses(model, losses, _joined(first, plain), again)
    except DefocusError:
        raise
    except Exception:  # noqa: BLE001 -- a loss that knows no ignored targets
        return
    if torch.isfinite(here[0]) and torch.isfinite(there[0]) and not _close(here[0], there[0]):
        raise _dependent("the loss of an example changes with how many targets of the others are ignored")


def _losses(
    model: Module, losses: Losses, batch: Batch, again: Callable[[], None]
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    again()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.enable_grad():
        found = losses.each(call(model, batch[0]), batch[1], size(batch))
    if not all(torch.equal(was, parameter) for was, parameter in zip(before, model.parameters(), strict=True)):
        with torch.no_grad():
            for was, parameter in zip(before, model.parameters(), strict=True):
                parameter.copy_(was)
        raise DependentExamplesError(
            "The model changes its own parameters in forward, by what it sees and without noise.",
            fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
        )
    if not found.requires_grad:
        raise UnfitModelError(
            "The loss has no gradient: nothing that is trained moves it.",
            fix="return a differentiable loss of the model's output, such as cross_entropy, not a count of errors.",
        )
    return found.detach().float(), {name: buffer.clone() for name, buffer in model.named_buffers()}


def _gradient(model: Module, gradients: Gradients, batch: Batch, again: Callable[[], None]) -> list[torch.Tensor]:
    """The gradient of the first example alone, as a step would add it, its length checked against the norm told."""
    again()

    def only_first(norms: torch.Tensor) -> torch.Tensor:
        factors = torch.zeros_like(norms)
        factors[..., 0] = 1.0
        return factors

    made = gradients.clipped_sum(batch, only_first)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = [parameter.grad.detach().clone() for parameter in parameters]
    length = torch.stack([each.double().square().sum() for each in found]).sum().sqrt()
    told = made.norms.double().reshape(-1, made.norms.shape[-1])[:, 0].square().sum().sqrt()
    if torch.isfinite(told) and not _close(length, told, tolerance=5e-2):
        raise UnfitModelError(
            "The gradient of an example is not as long as its norm says, so that clipping would not bound it.",
            fix="this is a fault in how gradients are computed for this model; report it, with the layers it uses.",
        )
    return found


def _close(a: torch.Tensor, b: torch.Tensor, *, tolerance: float = _TOLERANCE) -> bool:
    a, b = a.double(), b.double()
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return bool(torch.equal(torch.isfinite(a), torch.isfinite(b)))
    return bool((a - b).norm() <= tolerance * torch.maximum(a.norm(), b.norm()) + 1e-7)


def _alike(ones: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Whether two gradients are the same, parameter by parameter, but for what rounding leaves of the whole.

    A bias that the norm after it takes away has a gradient of rounding errors only, which differ from batch to batch.
    """
    whole = torch.stack([each.double().norm() for each in (*ones, *others)]).norm()
    return all(
        _close(a, b) or bool((a.double() - b.double()).norm() <= _ROUNDING * whole)
        for a, b in zip(ones, others, strict=True)
    )


def _joined(first: Batch, second: Batch) -> Batch:
    """The first example of one batch with the other examples of another."""

    def mixed(a: Any, b: Any) -> Any:
        return torch.cat([a[:1], b[1 : len(a)]]) if isinstance(a, torch.Tensor) else a

    found: Batch = trees.tree_map(mixed, first, second)
    return found


def _apart(first: Batch, second: Batch) -> Batch:
    """Made-up examples that differ from the first everywhere: the floats of the second, and 1 for 0 and 0 for 1."""

    def other(a: Any, b: Any) -> Any:
        return b if not isinstance(a, torch.Tensor) or a.dtype.is_floating_point else a.logical_not().to(a.dtype)

    found: Batch = trees.tree_map(other, first, second)
    return found


def _chosen(probe: Batch, offset: int, device: torch.device) -> Batch:
    """Four rows of the user's made-up examples; others further on."""
    rows = size(probe)
    if rows < 2 * _ROWS - 1:
        raise UnfitModelError(
            f"probe= has {rows} examples, too few to exchange the neighbours of one.",
            fix=f"pass at least {2 * _ROWS - 1} made-up examples that differ.",
        )
    found: Batch = trees.tree_map(
        lambda leaf: leaf[offset : offset + _ROWS].to(device) if isinstance(leaf, torch.Tensor) else leaf, tuple(probe)
    )
    return found


def _ignoring(leaf: Any, ignored: int) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.dtype.is_floating_point or leaf.dtype == torch.bool:
        return leaf
    flat = leaf.reshape(-1).clone()
    flat[1::2] = ignored
    return flat.view(leaf.shape)


def _dependent(what: str) -> DependentExamplesError:
    return DependentExamplesError(
        f"In this model, {what}: clipping would bound nobody's influence.",
        fix="use GroupNorm, LayerNorm or InstanceNorm instead of BatchNorm, take no means over the batch in forward,"
        " and return one loss for each example.",
    )


@final
class _Steady(TorchFunctionMode):
    """Dropout that drops nothing and noise that is none, so that batches of different sizes can be compared."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = kwargs or {}
        if func in _DROPOUTS:
            return args[0] if args else given["input"]
        made = func(*args, **given)
        if func in _NORMALS:
            return made.detach().zero_()
        if func in _UNIFORMS:
            return made.detach().fill_(0.5)
        return made


_DROPOUTS = (
    *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout),
    *(torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout),
)
_NORMALS = (torch.randn, torch.randn_like, torch.normal, torch.Tensor.normal_)
_UNIFORMS = (torch.rand, torch.rand_like, torch.Tensor.uniform_)


@contextmanager
def _untouched(model: Module, device: torch.device) -> Iterator[Callable[[], None]]:
    """Leave buffers, gradients and generators as they were; what is yielded starts each pass from the same state."""
    parameters = list(model.parameters())
    kept = [parameter.grad for parameter in parameters]
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    at_start = torch.get_rng_state()
    on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def again() -> None:
        torch.set_rng_state(at_start)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device, device)
        for parameter in parameters:
            parameter.grad = None
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])

    try:
        yield again
    finally:
        again()
        for parameter, grad in zip(parameters, kept, strict=True):
            parameter.grad = grad
