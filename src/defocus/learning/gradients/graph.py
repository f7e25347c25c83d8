"""A checked graph: what was looked at is what runs, and leaves on a tape what per-example gradients are made of."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import fx
from torch.nn import Module, Parameter
from torch.utils import _pytree as trees

from defocus.learning.gradients.independence import VIEWS, check, meetings
from defocus.learning.gradients.layouts import Batch, Regions, size
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.places import Op, Place, place_of, rank_of
from defocus.learning.gradients.tape import Tape
from defocus.learning.gradients.trace import UnknownUseError, line_of, trace
from defocus.learning.gradients.uses import Pass, use
from defocus.learning.model_guard import version

__all__ = ["CheckedGraph"]


@final
class CheckedGraph:
    """The losses of a batch as a graph of operators of which each is known to keep examples apart.

    Python code of the model and the loss ran once, to make the graph, and does not run again. Whatever the graph does,
    it does for batches of any size. ``writes`` says whether it leaves anything in buffers of the model or the loss.
    """

    def __init__(
        self, model: Module, losses: Losses, parameters: Mapping[str, Parameter], batch: Batch, anchor: torch.Tensor
    ) -> None:
        self._run = Pass(Regions(parameters), anchor)
        self._parameters = list(parameters.values())
        graph = trace(model, losses, parameters, batch)
        check(graph, list(parameters))
        self.writes = any(node.meta.get("root") == "constant" and Op(node).changes for node in graph.nodes)
        graph.eliminate_dead_code()
        uses: Counter[str] = Counter()
        self._fixed: list[tuple[torch.Tensor, int]] = []
        self.convolves = False
        for op, trained in meetings(graph):
            uses.update(name for each in trained for name in each.meta["trained"])
            if op.name == "lstm":  # a projection is used at every time
                uses.update(name for each in trained for name in each.meta["trained"])
            self.convolves |= op.name.startswith("conv")
            moved = [self._moved(op.node, each) for each in trained]
            use(self._run, Op(op.node), moved)
        self.notes = _take_totals_apart(graph)
        if graph.owning_module.recomputes:
            self.notes += ("What torch.utils.checkpoint would compute again is kept in memory; see chunk=.",)
        graph.lint()
        self._module = fx.GraphModule(graph.owning_module, graph)
        self.several = frozenset(name for name, count in uses.items() if count > 1)

    @property
    def stale(self) -> bool:
        """Whether constants were written to by which weights are put together."""
        return any(version(each) != noted for each, noted in self._fixed)

    def _moved(self, user: fx.Node, weight: fx.Node) -> fx.Node:
        """A weight that only moves numbers of a parameter about, after noting in each pass where they come from."""
        if weight.op != "call_function" or len(weight.meta["trained"]) != 1:
            return weight
        fixed: list[torch.Tensor] = []
        places = _places(weight, fixed)
        if places is None:
            return weight
        self._fixed += [(each, version(each)) for each in fixed]
        (name,) = weight.meta["trained"]
        with weight.graph.inserting_after(weight):
            noted = weight.graph.call_function(self._run.noting(name, places.flatten()), (weight,))
        noted.meta = dict(weight.meta)
        user.replace_input_with(weight, noted)
        return noted

    def losses(self, batch: Batch, tape: Tape) -> torch.Tensor:
        """The losses (B,) of a batch; their backward pass fills the tape."""
        self._run.examples, self._run.tape = size(batch), tape
        tensors = [leaf for leaf in trees.tree_leaves(tuple(batch)) if isinstance(leaf, torch.Tensor)]
        (found,) = trees.tree_leaves(self._module.forward(*self._parameters, *tensors, self._run.examples))
        return found

    def finish(self) -> None:
        """Let go of the tape."""
        self._run.tape = None
        self._run.moved.clear()


_MOVING = VIEWS | {"index", "index_select", "clone", "_unsafe_view"}


def _places(weight: fx.Node, fixed: list[torch.Tensor]) -> torch.Tensor | None:
    """Of every number of a weight, its place in the parameter; None if anything is computed, or comes from outside.

    Constants by which numbers are moved are added to ``fixed``.
    """
    if weight.op == "get_attr":
        found: torch.Tensor = getattr(weight.graph.owning_module, str(weight.target))
        fixed.append(found)
        return found
    if weight.op == "placeholder":
        shape = weight.meta["shape"][0] if weight.meta.get("trained") else ()
        device = weight.meta["val"].device if shape else None
        return torch.arange(math.prod(shape), device=device).view(shape) if shape else None
    if weight.op != "call_function" or Op(weight).name not in _MOVING or Op(weight).name == "to":
        return None
    if any(each.meta.get("trained") for each in weight.all_input_nodes if each is not weight.args[0]):
        return None
    inputs = {each: _places(each, fixed) for each in weight.all_input_nodes}
    if any(each is None for each in inputs.values()):
        return None
    args, kwargs = fx.node.map_arg((weight.args, weight.kwargs), lambda node: inputs[node])
    moved: torch.Tensor = weight.target(*args, **kwargs)
    return moved


def _take_totals_apart(graph: fx.Graph) -> tuple[str, ...]:
    """Where a loss adds up all examples, let it tell the loss of each, as a batch of this one alone has it.

    What is returned says where that is not the same as the sum or the mean over all.
    """
    notes = []
    for node in graph.nodes:
        if node.op != "call_function" or node.meta.get("total") is None:
            continue
        op = Op(node)
        if op.placed and any(each.meta.get("total") is None for each in op.placed):
            node.target = _each(op)
            several = op["ignore_index"] is not None and (place_of(op.first) != Place(0) or rank_of(op.first) > 2)
            if several and node.meta["total"] == "mean":
                notes.append(f"The loss is each example's own mean over its targets{line_of(node)}.")
        else:  # the share of one example is not divided by their number
            node.args = tuple(each.meta["times"] if _counts(each) else each for each in node.args)
    return tuple(notes)


def _counts(value: Any) -> bool:
    return isinstance(value, fx.Node) and "times" in value.meta


def _each(op: Op) -> Callable[..., torch.Tensor]:
    name, func, kind, about = op.name, op.node.target, op.node.meta["total"], op.first
    place = place_of(about) or place_of(op["target"])
    if place is None:
        raise UnknownUseError(f"the operator {name} adds up no examples{line_of(op.node)}")
    fixed = {key: value for key, value in op.given.items() if not isinstance(value, fx.Node)}

    def apart(values: torch.Tensor) -> torch.Tensor:
        examples = values.shape[place.axis] // place.each
        return place.apart(values, examples).reshape(examples, -1)

    def reduced(values: torch.Tensor) -> torch.Tensor:
        rows = apart(values)
        return rows.mean(1) if kind == "mean" else rows.sum(1)

    if name in {"sum", "mean"}:
        return lambda values, *_, **named: reduced(values.to(named.get("dtype") or values.dtype))
    classes = "ignore_index" in fixed

    def losses(values: torch.Tensor, target: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
        del more, named
        rest = {key: value for key, value in fixed.items() if key not in {"self", "target", "reduction"}}
        every = func(values, target, reduction=0, **rest)
        if classes and kind == "mean" and not target.is_floating_point():
            counted = apart(target != fixed["ignore_index"]).sum(1)
            return apart(every).sum(1) / counted
        return reduced(every)

    return losses
