"""Uses of parameters: for each operator by which something trained meets examples, how its gradient is taken apart.

An operator runs with its weights detached, and what their gradients are made of is given to the tape when the gradient
of its result arrives. Weights are parameters, views of them, or anything that is computed of them alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import torch
from torch import fx
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.independence import LINEAR
from defocus.learning.gradients.layouts import Region, Regions
from defocus.learning.gradients.pieces import Convolution, Direct, Lookup, Outer, Piece
from defocus.learning.gradients.pieces.convolution import Shape
from defocus.learning.gradients.pieces.piece import Tools, wide
from defocus.learning.gradients.places import Op, Place, place_of, rank_of, words
from defocus.learning.gradients.tape import Tape
from defocus.learning.gradients.trace import UnknownUseError, line_of

__all__ = ["ChangedError", "Pass", "use"]


class ChangedError(Exception):
    """What was kept for the backward pass was changed until then."""


@final
class Pass:
    """One pass of a batch through a graph: the number of its examples, and the tape that collects what it leaves."""

    def __init__(self, regions: Regions, anchor: torch.Tensor) -> None:
        self.regions, self.anchor = regions, anchor
        self.examples, self.tape = 0, None
        self.moved: dict[int, tuple[torch.Tensor, str, torch.Tensor]] = {}

    examples: int
    tape: Tape | None

    def run(self, compute: Callable[[], torch.Tensor], *inputs: Any) -> torch.Tensor:
        """The result of a computation with detached parameters, attached to the graph even if no input is."""
        if any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs):
            result = compute()
            if result.requires_grad:
                return result
        found: torch.Tensor = _Root.apply(self.anchor, compute)
        return found

    def give(self, weight: Any, make: Callable[[Region, Tools], Piece]) -> None:
        """Hand the gradients of a weight to the tape: those of a parameter, or of what a weight was computed of."""
        if self.tape is None or weight is None or not weight.requires_grad:
            return
        region = self.regions.find(weight)
        if region is not None:
            self.tape.take(make(region, self.tape.tools))
            return
        each = make(Region("", tuple(weight.shape), tuple(weight.stride()), 0), self.tape.tools).each()
        if id(weight) not in self.moved:
            self.tape.derive(weight, each)
            return
        _, name, places = self.moved[id(weight)]
        whole = self.regions.whole(name)
        flat = each.new_zeros(len(each), math.prod(whole.shape), dtype=wide(each.dtype))
        flat.index_add_(1, places, each.flatten(1).to(flat.dtype))
        self.tape.take(Direct(whole, flat.view(len(each), *whole.shape)))

    def noting(self, name: str, places: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """Remember, in each pass, that a weight holds the numbers in these places of a parameter."""

        def noted(weight: torch.Tensor) -> torch.Tensor:
            self.moved[id(weight)] = (weight, name, places)
            return weight

        return noted

    def listen(self, output: torch.Tensor, then: Callable[[torch.Tensor], None], *held: torch.Tensor) -> None:
        """When the gradient of an output arrives, hand it on; inputs that were held must not have changed by then.

        Then everything is let go of, as autograd does, whose graph would hold it until the end of the backward pass.
        """
        waiting = [(then, [(each, each._version) for each in held])]  # noqa: SLF001 -- autograd's own check of the same thing

        def arrived(gradient: torch.Tensor) -> None:
            then, inputs = waiting.pop()
            if any(each._version != version for each, version in inputs):  # noqa: SLF001
                raise ChangedError
            then(gradient)

        output.register_hook(arrived)


class _Root(torch.autograd.Function):
    """A computation that the backward pass reaches and does not go through."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, compute: Callable[[], torch.Tensor]) -> torch.Tensor:
        del ctx, anchor
        return compute()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None]:
        del ctx, gradients
        return None, None


_Use: TypeAlias = Callable[..., Any]
_Maker: TypeAlias = Callable[[Pass, Op], _Use]


def use(run: Pass, op: Op, trained: list[fx.Node]) -> None:
    """Put into the graph, in the place of an operator, what does the same and takes its gradient apart."""
    maker = _MAKERS.get(op.name)
    flat = op.name not in {"matmul", "mm"} or rank_of(op.tensors[1]) == 2
    if maker is not None and flat and not op.changes and set(trained) <= set(_weights(op)):
        op.node.target = maker(run, op)
        return
    if op.changes and op.first in trained:
        raise UnknownUseError(f"the operator {op.name} changes what is trained in its place{line_of(op.node)}")
    whole = op.node.meta["total"] is not None
    if op.name not in _SPREADING or (whole and op.name not in LINEAR):
        raise UnknownUseError(f"the operator {op.name} is not known to take parameters{line_of(op.node)}")
    place, rank = place_of(op.node), 1 if whole else len(op.shape[0])
    if place is None or (op.name in _MATRICES and place.axis >= rank - 2):
        raise UnknownUseError(f"the operator {op.name} is not known to take parameters on this side{line_of(op.node)}")
    if op.name == "repeat" and [each for each in op["repeats"] if each != 1] != [op["repeats"][place.axis]]:
        raise UnknownUseError(f"the operator repeat repeats parameters in several axes{line_of(op.node)}")
    for each in trained:
        graph = op.node.graph
        with graph.inserting_before(op.node):
            table, ids = _looked_up(each)
            spread = graph.call_function(_spread(run, place, rank), (each, table, ids))
        op.node.replace_input_with(each, spread)
    if op.name == "repeat":
        op.node.target = _repeated


def _repeated(copies: torch.Tensor, repeats: Any) -> torch.Tensor:
    del repeats
    return copies


def _looked_up(node: fx.Node) -> tuple[Any, Any]:
    """The table and the numbers by which a weight was looked up, if it was."""
    if getattr(node.target, "overloadpacket", None) is torch.ops.aten.embedding:
        op = Op(node)
        if op["padding_idx"] in {None, -1} and not op["sparse"]:
            return op["weight"], op["indices"]
    return None, None


def _weights(op: Op) -> list[Any]:
    found: list[Any] = []
    for name in ("weight", "bias", "mat2", "other", "self" if op.name == "addmm" else "bias", "params"):
        value = op[name]
        found += value if isinstance(value, list | tuple) else [value]
    return [*found, *(op[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh"))]


def _bare(tensor: Any) -> Any:
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


def _lowered(tensor: torch.Tensor) -> torch.Tensor:
    """What autocast would make of an input of a matrix product, so that what is kept is what was multiplied."""
    kind = tensor.device.type
    if tensor.dtype == torch.float32 and torch.is_autocast_enabled(kind):
        return tensor.to(torch.get_autocast_dtype(kind))
    return tensor


def _place(op: Op, node: fx.Node) -> Place:
    place = place_of(node)
    if place is None:
        raise UnknownUseError(f"the operator {op.name} meets no examples{line_of(op.node)}")
    return place


def _spread(run: Pass, place: Place, rank: int) -> _Use:
    """One copy of a weight for each example, whose gradient is then the example's own."""

    def spread(weight: torch.Tensor, table: torch.Tensor | None, ids: torch.Tensor | None) -> torch.Tensor:
        shape = [1] * (rank - weight.dim()) + list(weight.shape)
        wanted = [*shape]
        wanted[place.axis] = place.each * run.examples
        copies = run.run(lambda: weight.detach().reshape(shape).expand(wanted))

        def arrived(gradient: torch.Tensor) -> None:
            own = place.apart(gradient, run.examples)
            own = own if weight.dim() else own.reshape(run.examples, -1).sum(1)
            if place.each > 1 and weight.dim():
                own = own.sum(place.axis + 1, dtype=wide(own.dtype))  # where the entries of an example are
            own = own.reshape(run.examples, *weight.shape)
            if table is not None and ids is not None and run.regions.find(table) is not None:
                every = ids.reshape(1, -1).expand(run.examples, -1)
                rows = own.reshape(*every.shape, -1)
                run.give(table, lambda region, tools: Lookup(region, every, rows, tools))
            else:
                run.give(weight, lambda region, _: Direct(region, own))

        run.listen(copies, arrived)
        return copies

    return spread


def _product(run: Pass, op: Op) -> _Use:
    """``x @ weight`` as a product has it, or ``x @ weight.T``, as a linear layer has it."""
    transposed = op.name != "linear"
    x_node = op["mat1"] if op.name == "addmm" else op["input"] if op.name == "linear" else op["self"]
    weight_node = op["mat2"] if op["mat2"] is not None else op["weight"] if op["weight"] is not None else op["other"]
    if rank_of(weight_node) != 2 or op["beta"] not in {None, 1} or op["alpha"] not in {None, 1}:
        raise UnknownUseError(f"the operator {op.name} is not known to take parameters so{line_of(op.node)}")
    bias_node = op["self"] if op.name == "addmm" else op["bias"]
    if bias_node is not None and (rank_of(bias_node) != 1 or rank_of(x_node) < 2):
        raise UnknownUseError(f"the operator {op.name} is not known to take parameters so{line_of(op.node)}")
    place, func = _place(op, x_node), op.node.target

    def product(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
        kept = _lowered(x)

        def compute() -> torch.Tensor:
            if not transposed:
                return F.linear(kept, _bare(weight), _bare(bias))
            given = (kept, _bare(weight)) if bias is None else (_bare(bias), kept, _bare(weight))
            found: torch.Tensor = func(*given)
            return found

        output = run.run(compute, x)

        def arrived(gradient: torch.Tensor) -> None:
            right = place.sequences(gradient, run.examples)
            if weight.requires_grad:
                left = place.sequences(kept.detach(), run.examples)
                sides = (left, right) if transposed else (right, left)
                run.give(weight, lambda region, tools: Outer(region, *sides, tools))
            if bias is not None and bias.requires_grad:
                sums = right if right.dim() == 2 else right.sum(1, dtype=wide(right.dtype))
                run.give(bias, lambda region, tools: Direct(region, sums, tools))

        run.listen(output, arrived, x)
        return output

    if op.name == "addmm":
        return _named("addmm", lambda bias, x, weight, **_: product(x, weight, bias))
    return _named(op.name, product)


def _named(name: str, function: _Use) -> _Use:
    function.__name__ = name
    return function


def _tuple(value: Any, space: int) -> tuple[int, ...]:
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * space if len(values) == 1 else values


def _padding(value: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Padding on both sides; ``same`` puts the odd one behind, as PyTorch does."""
    if value == "valid":
        return ((0, 0),) * len(kernel)
    if value == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    return tuple((side, side) for side in _tuple(value, len(kernel)))


def _convolution(run: Pass, op: Op) -> _Use:
    """A transposed convolution sees the gradient of its output as a convolution sees its input, and the other way."""
    if place_of(op.node) != Place(0):
        raise UnknownUseError(f"the operator {op.name} meets parts of examples{line_of(op.node)}")
    transposed, func = "transpose" in op.name, op.node.target
    kernel = tuple(op["weight"].meta["shape"][0][2:])
    space = len(kernel)
    stride, dilation = (_tuple(op[name], space) for name in ("stride", "dilation"))
    shape = Shape(kernel, stride, _padding(op["padding"], kernel, dilation), dilation, op["groups"])

    def convolution(x: torch.Tensor, weight: torch.Tensor, bias: Any = None, *more: Any, **named: Any) -> torch.Tensor:
        kept = _lowered(x)
        output = run.run(lambda: func(kept, _bare(weight), _bare(bias), *more, **named), x)

        def arrived(gradient: torch.Tensor) -> None:
            pair = (gradient, kept.detach()) if transposed else (kept.detach(), gradient)
            run.give(weight, lambda region, tools: Convolution(region, *pair, shape, tools))
            if bias is not None and bias.requires_grad:
                sums = gradient.sum(tuple(range(2, gradient.dim())), dtype=wide(gradient.dtype))
                run.give(bias, lambda region, _: Direct(region, sums))

        run.listen(output, arrived, x)
        return output

    return convolution


def _embedding(run: Pass, op: Op) -> _Use:
    place = _place(op, op.node)
    skipped = op["padding_idx"]
    rows = op["weight"].meta["shape"][0][0]
    skipped = None if skipped in {None, -1} else skipped % rows

    def embedding(weight: torch.Tensor, indices: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
        del more, named
        output = run.run(lambda: F.embedding(indices, weight.detach()))

        def arrived(gradient: torch.Tensor) -> None:
            ids = place.apart(indices, run.examples).reshape(run.examples, -1)
            found = place.apart(gradient, run.examples).reshape(*ids.shape, -1)
            if skipped is not None:
                found = found.masked_fill((ids == skipped).unsqueeze(2), 0.0)
            run.give(weight, lambda region, tools: Lookup(region, ids, found, tools))

        run.listen(output, arrived, indices)
        return output

    return embedding


def _norm(run: Pass, op: Op) -> _Use:
    """The input is normalised a second time when its gradient arrives, which costs less than keeping it."""
    names, func = list(op.types), op.node.target
    trailing = op.name in {"layer_norm", "rms_norm"}
    place = _place(op, op.node)
    if not trailing and place != Place(0):
        raise UnknownUseError(f"the operator {op.name} meets parts of examples{line_of(op.node)}")

    def reduced(values: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        if not trailing:
            return values.flatten(2).sum(2, dtype=wide(values.dtype)) if values.dim() > 2 else values
        apart = place.apart(values, run.examples)
        return apart.reshape(run.examples, -1, *shape).sum(1, dtype=wide(apart.dtype))

    def norm(*args: Any, **named: Any) -> torch.Tensor:
        given = dict(zip(names, args, strict=False)) | named
        x, weight, bias = args[0], given.get("weight"), given.get("bias")

        def computed(x: torch.Tensor, weight: Any, bias: Any) -> torch.Tensor:
            changed = given | {names[0]: x, "weight": weight} | ({"bias": bias} if "bias" in names else {})
            found: torch.Tensor = func(**changed)
            return found

        output = run.run(lambda: computed(x, _bare(weight), _bare(bias)), x)

        def arrived(gradient: torch.Tensor) -> None:
            if weight is not None and weight.requires_grad:
                normal = computed(x.detach().to(gradient.dtype), None, None)
                values = reduced(normal.mul_(gradient), weight.shape)
                run.give(weight, lambda region, _: Direct(region, values))
            if bias is not None and bias.requires_grad:
                run.give(bias, lambda region, _: Direct(region, reduced(gradient, bias.shape)))

        run.listen(output, arrived, x)
        return output

    return norm


def _group_norm(run: Pass, op: Op) -> _Use:
    """As :func:`_norm`, with one backward pass of PyTorch's for the input and for each example's scales and shifts."""
    names, general = list(op.types), _norm(run, op)

    def norm(*args: Any, **named: Any) -> torch.Tensor:
        given = {"weight": None, "bias": None, "eps": 1e-5} | dict(zip(names, args, strict=False)) | named
        x, weight, bias = args[0], given["weight"], given["bias"]
        if not _plain(x):
            return general(*args, **named)

        def arrived(scales: torch.Tensor, shifts: torch.Tensor) -> None:
            run.give(weight, lambda region, _: Direct(region, scales))
            run.give(bias, lambda region, _: Direct(region, shifts))

        how = _bare(weight), _bare(bias), given["num_groups"], given["eps"], arrived
        output: torch.Tensor = _GroupNorm.apply(run.anchor, x, *how)
        run.listen(output, lambda _: None, x)
        return output

    return norm


class _GroupNorm(torch.autograd.Function):
    """A group norm that tells each example's gradients of scales and shifts.

    PyTorch adds them up over all examples: it is told of one example that has the channels of all, and adds nothing.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 -- PyTorch's way
        ctx: Any, anchor: Any, x: torch.Tensor, weight: Any, bias: Any, groups: int, eps: float, arrived: Any
    ) -> torch.Tensor:
        del anchor
        x = x.contiguous()
        sizes = (*x.shape[:2], math.prod(x.shape[2:]), groups)
        found, *moments = torch.native_group_norm(x, weight, bias, *sizes, eps)
        ctx.save_for_backward(x, *moments, x.new_ones(sizes[1]) if weight is None else weight)
        ctx.sizes, ctx.arrived = sizes, arrived
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        examples, channels, length, groups = ctx.sizes
        x, *moments, scales = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[1], True, True]
        found, *sums = torch.ops.aten.native_group_norm_backward(
            *(each.reshape(1, examples * channels, length) for each in (gradients[0], x)),
            *(each.view(1, -1) for each in moments),
            scales.repeat(examples), 1, examples * channels, length, examples * groups, wanted,
        )  # fmt: skip
        ctx.arrived(*(each.view(examples, channels) for each in sums))
        return None, found.view_as(x) if wanted[0] else None, None, None, None, None, None


def _plain(x: torch.Tensor) -> bool:
    """Whether numbers are as PyTorch's own kernels of norms take them, without autocast, on every device."""
    fit = x.dtype in {torch.float32, torch.float64} and not torch.is_autocast_enabled(x.device.type)
    return fit and x.dim() > 2 and x.numel() > 0 and (x.is_cuda or x.is_contiguous())


_State: TypeAlias = tuple[torch.Tensor, ...]
_Cell: TypeAlias = Callable[[torch.Tensor, torch.Tensor, _State], _State]
"""From what inputs and states bring, each through its weights, and the last state, to the next state."""


def _lstm(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    i, f, g, o = (inputs + states).chunk(4, -1)
    cell = f.sigmoid() * last[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    (ri, zi, ni), (rh, zh, nh) = inputs.chunk(3, -1), states.chunk(3, -1)
    update = (zi + zh).sigmoid()
    new = (ni + (ri + rh).sigmoid() * nh).tanh()
    return ((1 - update) * new + update * last[0],)


def _tanh(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    del last
    return ((inputs + states).tanh(),)


def _relu(inputs: torch.Tensor, states: torch.Tensor, last: _State) -> _State:
    del last
    return ((inputs + states).relu(),)


def _linear_over(run: Pass, x: torch.Tensor, weight: Any, bias: Any, axis: int) -> torch.Tensor:
    """A linear layer whose examples are in an axis of its own."""
    output = run.run(lambda: F.linear(x, _bare(weight), _bare(bias)), x)

    def arrived(gradient: torch.Tensor) -> None:
        right, left = (Place(axis).sequences(each, run.examples) for each in (gradient, x.detach()))
        run.give(weight, lambda region, tools: Outer(region, right, left, tools))
        if bias is not None:
            run.give(bias, lambda region, _: Direct(region, right if right.dim() == 2 else right.sum(1)))

    run.listen(output, arrived, x)
    return output


def _layers(cell: _Cell) -> _Maker:
    """Recurrent layers, unrolled over time.

    The product of the inputs with their weights is one linear layer over all times. The product of the states is
    computed inside of the loop with detached weights; a tensor of zeros that is added to it collects its gradients over
    all times, and together with the states they are the two factors of the gradients of the recurrent weights.
    """

    def maker(run: Pass, op: Op) -> _Use:
        del op

        def layers(  # noqa: PLR0917 -- ATen's
            x: torch.Tensor, hidden: Any, weights: Sequence[Any], biased: bool, count: int, dropout: float,
            training: bool, both: bool, batch_first: bool,
        ) -> tuple[torch.Tensor, ...]:  # fmt: skip
            first: _State = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
            each = len(weights) // (count * (2 if both else 1))
            x = x.transpose(0, 1) if batch_first else x
            ends: list[_State] = []
            for layer in range(count):
                outputs = []
                for way in range(2 if both else 1):
                    turn = len(ends)
                    mine = list(weights[turn * each : (turn + 1) * each])
                    biases = [mine.pop(2), mine.pop(2)] if biased else [None, None]
                    start = tuple(state[turn] for state in first)
                    output, end = _one_way(run, cell, x.flip(0) if way else x, start, weights=mine, biases=biases)
                    outputs.append(output.flip(0) if way else output)
                    ends.append(end)
                x = torch.cat(outputs, -1)
                if dropout and training and layer < count - 1:
                    x = F.dropout(x, dropout, training=True)
            result = x.transpose(0, 1) if batch_first else x
            return result, *(torch.stack(states) for states in zip(*ends, strict=True))

        return layers

    return maker


def _one_way(
    run: Pass, cell: _Cell, x: torch.Tensor, state: _State, *, weights: list[Any], biases: Sequence[Any]
) -> tuple[torch.Tensor, _State]:
    """One layer in one direction, over (time, example, features)."""
    inputs = _linear_over(run, x, weights[0], biases[0], 1)
    recurrent, projection = weights[1], weights[2] if len(weights) > 2 else None
    before: list[torch.Tensor] = []
    outputs = []
    zeros = run.run(lambda: x.new_zeros(()).expand(*x.shape[:2], recurrent.shape[0]))

    def arrived(gradient: torch.Tensor) -> None:
        left = gradient.transpose(0, 1)
        states = torch.stack([each.detach() for each in before], 1)
        run.give(recurrent, lambda region, tools: Outer(region, left, states, tools))
        if biases[1] is not None:
            run.give(biases[1], lambda region, _: Direct(region, left.sum(1)))

    run.listen(zeros, arrived)
    for time in range(len(x)):
        before.append(state[0])
        states = F.linear(state[0], _bare(recurrent), _bare(biases[1])) + zeros[time]
        state = cell(inputs[time], states, state)
        if projection is not None:
            state = (_linear_over(run, state[0], projection, None, 0), *state[1:])
        outputs.append(state[0])
    return torch.stack(outputs), state


def _cells(cell: _Cell) -> _Maker:
    def maker(run: Pass, op: Op) -> _Use:
        del op

        def step(x: torch.Tensor, hidden: Any, of_inputs: Any, of_states: Any, *biases: Any) -> Any:
            last: _State = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
            first, second = biases or (None, None)
            inputs = _linear_over(run, x, of_inputs, first, 0)
            found = cell(inputs, _linear_over(run, last[0], of_states, second, 0), last)
            return found if len(found) > 1 else found[0]

        return step

    return maker


_MAKERS: dict[str, _Maker] = {
    **dict.fromkeys(("linear", "addmm", "matmul", "mm"), _product),
    **dict.fromkeys((f"conv{turn}{space}d" for space in (1, 2, 3) for turn in ("", "_transpose")), _convolution),
    "embedding": _embedding,
    **dict.fromkeys(("layer_norm", "rms_norm", "instance_norm", "batch_norm"), _norm),
    "group_norm": _group_norm,
    "lstm": _layers(_lstm),
    "gru": _layers(_gru),
    "rnn_tanh": _layers(_tanh),
    "rnn_relu": _layers(_relu),
    "lstm_cell": _cells(_lstm),
    "gru_cell": _cells(_gru),
    "rnn_tanh_cell": _cells(_tanh),
    "rnn_relu_cell": _cells(_relu),
}
_MATRICES = frozenset({"matmul", "bmm", "scaled_dot_product_attention"})
_SPREADING = _MATRICES | frozenset(
    words(
        "add sub rsub mul multiply div divide true_divide where lerp maximum minimum pow addcmul"
        " addcdiv expand expand_as repeat _prelu_kernel clamp subtract copy mse_loss xlogy atan2"
    )
)
