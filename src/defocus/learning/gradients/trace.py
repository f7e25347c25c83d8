"""A model and its loss as one graph of operators, traced once on tensors without numbers.

The graph is what runs afterwards, for batches of any size; the user's Python code does not run again. It is traced for
two sizes of a batch: where the two traces differ, a number is a multiple of the size, or the model does something else
for other sizes, and is refused by this way.
"""

import linecache
import logging
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, final

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot, make_fx
from torch.nn import Module, Parameter
from torch.nn import functional as F  # noqa: N812 -- its name everywhere
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.utils.stateless import _reparametrize_module
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees

from defocus.learning.gradients.layouts import Batch, call
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.reference import undisturbed
from defocus.learning.model_guard import held

__all__ = [
    "SIZES",
    "DrewError",
    "LookedError",
    "MixedError",
    "UnknownUseError",
    "drawn",
    "line_of",
    "raised_in",
    "trace",
]

SIZES = (2, 997)
"""Sizes of a batch for which a model is traced: the smallest, and a prime that is larger than what code asks about."""


class UnknownUseError(Exception):
    """Something that one pass for all examples cannot take apart; it says what, and in which line."""


class MixedError(UnknownUseError):
    """Examples meet, unless a loss of one number means the same without that."""


class DrewError(UnknownUseError):
    """Numbers were drawn where a graph would repeat them."""


class LookedError(UnknownUseError):
    """Numbers of a batch come to Python, which may decide by them what is computed."""


def trace(model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch) -> fx.Graph:
    """The losses (B,), or one number, as a graph of the parameters, the tensors of a batch and its size.

    After the losses come tensors that the model or the loss keeps. Its inputs are the parameters by their order, the
    tensors of the batch, and last the number of examples. Of each node, ``meta["shape"]`` tells the shape for each of
    ``SIZES``, or the shapes if it makes several tensors. ``recomputes`` of its module says whether something was to be
    computed again in the backward pass.

    Code that looks at numbers of a batch often does not where it is compiled (``torch.compiler.is_compiling()``), as
    that of transformers does with masks; so it is told that it is, if it looked before.
    """
    try:
        return _of_both_sizes(model, losses, parameters, batch)
    except DrewError:
        return _of_both_sizes(model, losses, parameters, batch, wary=True)
    except LookedError as looked:
        with _as_compiled():
            try:
                return _of_both_sizes(model, losses, parameters, batch)
            except UnknownUseError:
                raise looked from None


def _of_both_sizes(
    model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch, *, wary: bool = False
) -> fx.Graph:
    found = []
    for size in SIZES:
        with undisturbed(model, losses):
            found.append(_traced(model, losses, parameters, batch, size, wary=wary))
    small, large = found
    _merge(small, large)
    return small


@contextmanager
def _as_compiled() -> Iterator[None]:
    """As ``torch.export`` does it: code of the model is told that it is being compiled."""
    before = torch.compiler._is_compiling_flag  # noqa: SLF001 -- its only name
    torch.compiler._is_compiling_flag = True  # noqa: SLF001
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before  # noqa: SLF001


def _traced(
    model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch, size: int, *, wary: bool
) -> fx.Graph:
    leaves, form = trees.tree_flatten(tuple(batch))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        made = [
            torch.empty((size, *leaf.shape[1:]), dtype=leaf.dtype, device=leaf.device)
            for leaf in leaves
            if isinstance(leaf, torch.Tensor)
        ]
    weights = [mode.from_tensor(each) for each in parameters.values()]

    def whole(weights: list[torch.Tensor], made: list[torch.Tensor]) -> list[torch.Tensor]:
        given = iter(made)
        again = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        inputs, targets = trees.tree_unflatten(again, form)
        with _reparametrize_module(model, dict(zip(parameters, weights, strict=True)), tie_weights=True):
            before = {id(each) for each in held(model, losses.loss)}
            found = losses.whole(call(model, inputs), targets, size)
            after = [each for each in held(model, losses.loss) if isinstance(each, FakeTensor)]
            return [found, *(each for each in after if id(each) not in before)]

    watching = _Watching(wary=wary)
    try:
        with torch.enable_grad(), _unlogged(), _unaided(), _inside(model) as watching.modules, watching:
            traced = make_fx(whole, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)(weights, made)
    except UnknownUseError:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever it is, a plainer way may do
        looked = _LOOKED.get(type(error).__name__)
        if looked is not None:
            name = str(getattr(error, "func", "")).split(".")
            by = f" by the operator {name[1]}" if len(name) > 2 and not name[1].startswith("_") else ""
            raise LookedError(f"{looked}{by}{raised_in(error)}") from None
        by = f" of {watching.failed[1]}" if watching.failed and watching.failed[0] is error else ""
        raise UnknownUseError(f"it ended in a {type(error).__name__}{by}{raised_in(error)}") from None
    graph = traced.graph
    graph.owning_module, traced.recomputes = traced, watching.recomputes
    graph.set_codegen(fx.graph.CodeGen())
    graph.eliminate_dead_code()
    return graph


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep torch from logging a traceback of what fails here: the error says it, or a plainer way does without."""
    log = logging.getLogger(FakeTensorMode.__module__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


_LOOKED = {
    "DataDependentOutputException": "numbers of the batch come to Python",
    "DynamicOutputShapeException": "a shape depends on numbers of the batch",
}


@final
class _Watching(TorchFunctionMode):
    """Notes the module and the user's line in the nodes of every call, and refuses what changes gradients unseen.

    One that is ``wary`` looks at every call whether numbers were drawn elsewhere before, which takes its time.
    """

    def __init__(self, *, wary: bool) -> None:
        super().__init__()
        self.modules: list[str] = []
        self.failed: tuple[Exception, str] | None = None
        self.recomputes = False
        self._before = drawn() if wary else None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function as it is, if it is not one of these, and note where it was called."""
        del types
        name = getattr(func, "__name__", "")
        if name in _READING:
            raise LookedError(f"numbers of the batch come to Python by {name}{_line_here()}")
        if name in _HOOKS:
            raise UnknownUseError(f"{name} changes gradients{_line_here()}")
        if self._before is not None and self._before != drawn():
            raise UnknownUseError(f"{_DREW}{_line_here()}")
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)  # noqa: SLF001 -- has no other name
        if hooks is not None and getattr(hooks[0], "__module__", "") != "torch.utils.checkpoint":
            raise UnknownUseError(f"what is kept for the backward pass is changed{_line_here()}")
        self.recomputes |= hooks is not None
        line, graph = f"{self.modules[-1] if self.modules else ''}{_line_here()}", _traced_now()
        last = None if graph is None else _last(graph)
        try:
            found = _bags(*args, **(kwargs or {})) if func is F.embedding_bag else None
            return func(*args, **(kwargs or {})) if found is None else found
        except DataDependentOutputException:
            if any(isinstance(each, FakeTensor) and _of_the_batch(each) for each in args):
                raise LookedError(f"numbers of the batch come to Python by {name}{line}") from None
            raise UnknownUseError(f"a draw or a constant decides in Python what is computed{line}") from None
        except Exception as error:
            self.failed = self.failed if self.failed and self.failed[0] is error else (error, name)
            raise
        finally:
            node = None if graph is None else _last(graph)
            while node is not None and node is not last and "line" not in node.meta:
                node.meta["line"] = line
                node = node.prev


def _bags(
    ids: torch.Tensor, weight: torch.Tensor, *, mode: str, per_sample_weights: Any, padding_idx: Any, **more: Any
) -> torch.Tensor | None:
    """A bag for each row, looked up and added up; None for others. PyTorch counts its rows as it does for flat ones."""
    if ids.dim() != 2 or more["offsets"] is not None or more["max_norm"] is not None or more["scale_grad_by_freq"]:
        return None
    rows = F.embedding(ids, weight, padding_idx)
    if padding_idx is None:
        counted = torch.ones_like(ids, dtype=torch.bool).unsqueeze(2)
    else:
        counted = (ids != padding_idx % len(weight)).unsqueeze(2)
    if mode == "max":
        return torch.where(counted.any(1), rows.masked_fill(~counted, -torch.inf).max(1).values, 0.0)
    rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(2)
    total = torch.where(counted, rows, 0.0).sum(1)
    return total / counted.sum(1).clamp(min=1) if mode == "mean" else total


@contextmanager
def _inside(model: Module) -> Iterator[list[str]]:
    """The modules that are being called, the innermost last, in words."""
    names = {id(module): f" in {name} ({type(module).__name__})" for name, module in model.named_modules() if name}
    found: list[str] = []

    def enter(module: Module, _: Any) -> None:
        found.append(names.get(id(module), ""))

    def leave(*_: Any) -> None:
        found.pop()

    before, after = register_module_forward_pre_hook(enter), register_module_forward_hook(leave)
    try:
        yield found
    finally:
        before.remove()
        after.remove()


def _traced_now() -> fx.Graph | None:
    mode = get_proxy_mode()
    return None if mode is None else mode.tracer.graph


def _last(graph: fx.Graph) -> fx.Node:
    return graph._root.prev  # noqa: SLF001 -- nodes in their order have no other end


def _of_the_batch(tensor: FakeTensor) -> bool:
    """Whether a tensor was computed of the batch; True where that is not known."""
    mode = get_proxy_mode()
    slot = None if mode is None else get_proxy_slot(tensor, mode.tracer, None)
    if slot is None:
        return True
    left, seen = [slot.proxy.node], set()
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left += node.all_input_nodes
    return any(node.op == "placeholder" and node.name.startswith("made") for node in seen)


_READING = frozenset({"numpy", "tolist", "__array__", "__dlpack__"})
_HOOKS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})


@contextmanager
def _unaided() -> Iterator[None]:
    """Refuse functions with gradients of their own, which a graph would not have, and draws that it would repeat."""
    base: Any = torch.autograd.function._SingleLevelFunction  # noqa: SLF001 -- has no other name
    python, numpy, before = random.getstate(), np.random.get_state(), drawn()  # noqa: NPY002 -- what a model may draw from

    def refused(cls: type, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise UnknownUseError(f"the function {cls.__name__} has a gradient of its own{_line_here()}")

    base.apply = classmethod(refused)  # which Function.apply calls, also where it was bound before
    try:
        yield
        if before != drawn():
            raise DrewError(_DREW)
    finally:
        del base.apply
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def drawn() -> tuple[Any, ...]:
    """How far the generators of Python and numpy are."""
    numpy: Any = np.random.get_state()  # noqa: NPY002
    return random.getstate(), numpy[1].tobytes(), *numpy[2:]


_DREW = "the model draws from the generators of Python or numpy"


def _merge(small: fx.Graph, large: fx.Graph) -> None:
    """Write the size of a batch into the smaller graph, where the two differ by it."""
    pairs = list(zip(small.nodes, large.nodes, strict=False))
    if len(small.nodes) != len(large.nodes) or any((a.op, str(a.target)) != (b.op, str(b.target)) for a, b in pairs):
        at = next((a for a, b in pairs if (a.op, str(a.target)) != (b.op, str(b.target))), None)
        where = "" if at is None else f" from {_name(at)} on{line_of(at)}"
        raise UnknownUseError(f"the model calls other functions for a batch of another size{where}")
    last = [node for node in small.nodes if node.op == "placeholder"][-1]
    with small.inserting_after(last):
        examples = small.placeholder("examples")
    examples.meta["times"] = 1
    merger = _Merger(examples, {b: a for a, b in pairs})
    for a, b in pairs:
        a.meta["shape"] = _shapes(a.meta.get("val"), b.meta.get("val"))
        if a.op == "get_attr":
            _check_constant(a, b)
        a.args = merger.one(tuple(a.args), tuple(b.args), a)
        a.kwargs = {name: merger.one(value, b.kwargs[name], a) for name, value in a.kwargs.items()}


@final
class _Merger:
    """One argument out of the same argument of two traces."""

    def __init__(self, examples: fx.Node, twins: Mapping[fx.Node, fx.Node]) -> None:
        self._examples, self._twins = examples, twins
        self._products: dict[int, fx.Node] = {1: examples}

    def one(self, a: Any, b: Any, node: fx.Node) -> Any:
        """What both are: the same, or a multiple of the size of the batch."""
        if isinstance(a, fx.Node) and self._twins.get(b) is a:
            return a
        if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
            return type(a)(self.one(x, y, node) for x, y in zip(a, b, strict=True))
        if type(a) is not type(b) or isinstance(a, fx.Node | list | tuple):
            raise UnknownUseError(f"{_name(node)} does something else for a batch of another size{line_of(node)}")
        if a == b or (a != a and b != b):  # noqa: PLR0124 -- not a number
            return a
        if type(a) is int and a % SIZES[0] == 0 and a // SIZES[0] * SIZES[1] == b:
            return self._times(a // SIZES[0])
        raise UnknownUseError(f"{_name(node)} uses the size of the batch as a number{line_of(node)}")

    def _times(self, times: int) -> fx.Node:
        if times not in self._products:
            graph = self._examples.graph
            with graph.inserting_after(self._examples):
                self._products[times] = graph.call_function(_times, (self._examples, times))
            self._products[times].meta["times"] = times
        return self._products[times]


def _name(node: fx.Node) -> str:
    packet = getattr(node.target, "overloadpacket", node.target)
    return f"the operator {getattr(packet, '__name__', packet)}"


def _times(examples: int, times: int) -> int:
    return examples * times


def _check_constant(a: fx.Node, b: fx.Node) -> None:
    """A tensor from outside of the graph has to be there before, and the same for every batch."""
    mine, other = (getattr(node.graph.owning_module, str(node.target)) for node in (a, b))
    known = isinstance(mine, torch.Tensor) and not isinstance(mine, FakeTensor)
    if not known or mine.shape != other.shape or (mine is not other and not torch.equal(mine, other)):
        raise UnknownUseError(f"a tensor is made where it cannot be followed{line_of(a)}")


def _shapes(small: Any, large: Any) -> Any:
    if isinstance(small, torch.Tensor):
        return tuple(small.shape), tuple(large.shape)
    if isinstance(small, list | tuple):
        return [_shapes(a, b) for a, b in zip(small, large, strict=True)]
    return None


def line_of(node: fx.Node) -> str:
    """Where in the user's code a node comes from."""
    return str(node.meta.get("line", ""))


def _is_torch(name: str) -> bool:
    return "/torch/" in name or "/defocus/learning/" in name


def raised_in(error: BaseException) -> str:
    """Where in the user's code an error comes from."""
    found, at = "", error.__traceback__
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if not _is_torch(name):
            found = f" in {Path(name).name}, line {at.tb_lineno}"
        at = at.tb_next
    return found


def _line_here() -> str:
    """The innermost line that is neither torch's nor ours."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- a walk by inspect would take most of the time
    while frame is not None and _is_torch(frame.f_code.co_filename):
        if frame.f_code.co_name == "whole" and frame.f_code.co_filename == __file__:
            return ""  # nothing but torch's own modules
        frame = frame.f_back
    if frame is None:
        return ""
    name = frame.f_code.co_filename
    return f" in {Path(name).name}, line {frame.f_lineno}: {linecache.getline(name, frame.f_lineno).strip()}"
