"""Where the examples of a batch are in every value of a graph: one table of operators.

The table says of each operator which axis of its result counts the examples, given where they are in its arguments. An
operator that mixes examples, or that is not in the table, is named, with the line of the user's code.

Guarantee:
    In a graph that passes, entries of a value that belong to one example are functions of this example, of parameters
    and constants, and of draws that look at no example. A value has an axis for the examples if, and only if, it may
    depend on them: a value without one is the same whatever the batch is, and so is what is written into constants.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import fx

from defocus.errors import UnfitModelError
from defocus.learning.gradients.places import MixingError, Op, Place, place_of, rank_of, reshaped, words
from defocus.learning.gradients.trace import SIZES, UnknownUseError, line_of

__all__ = ["NEW", "RULES", "WIDE", "placed"]


def _agreed(places: Sequence[Place]) -> Place:
    first = next((each for each in places if not each.alike), places[0])
    if not all(each.takes(first) for each in places):
        raise MixingError("pairs examples with each other")
    return first


def _kept(op: Op, touched: Sequence[int] | None, what: str) -> Place:
    """The place in the first argument, which must not be among the axes that are touched."""
    place = place_of(op.first)
    if place is None or len(op.placed) > 1:
        raise MixingError("uses numbers of examples to choose from others")
    if touched is None or place.axis in touched:
        raise MixingError(what)
    return place


_Rule: TypeAlias = Callable[[Op], "Place | list[Place | None] | None"]


def _pointwise(op: Op) -> Place:
    """Number by number, after broadcasting."""
    rank = len(op.shape[0])
    found = []
    for each in op.placed:
        place = each.meta["place"]
        found.append(Place(rank - rank_of(each) + place.axis, place.outer, place.inner, place.alike))
    return _agreed(found)


def _each_alike(op: Op) -> list[Place | None]:
    """Tensors that are given one shape."""
    place, rank = _agreed([_right(each, len(op.node.meta["shape"][0][0])) for each in op.placed]), len(op["tensors"])
    return [place if place_of(each) is not None else None for each in op["tensors"]][:rank]


def _same(op: Op) -> Place | None:
    """The first argument, of another type or in another memory, or something of its shape."""
    place = place_of(op.first)
    if place is None and op.name not in {"to", "type_as"}:  # of which only the type of the other is asked
        raise MixingError("reads numbers of the batch")
    return place


def _view(op: Op) -> Place:
    place = place_of(op.first)
    if place is None:
        raise UnknownUseError(f"the operator {op.name} asks for the shape of a batch{line_of(op.node)}")
    found = reshaped(place, op.first.meta["shape"][1], op.shape[1])
    if found is None:
        raise MixingError("puts numbers of several examples together")
    return found


def _turned(op: Op) -> Place:
    """Axes in another order, found out on a tensor of which each has its own length."""
    place = _kept(op, [], "")
    lengths = tuple(range(2, 2 + rank_of(op.first)))
    turned = op.node.target(torch.empty(lengths, device="meta"), *op.node.args[1:], **op.node.kwargs)
    return Place(list(turned.shape).index(lengths[place.axis]), place.outer, place.inner)


def _along(name: str = "dim", *, default: int | None = None) -> _Rule:
    """Something along axes: the others are apart, and those may be gone."""

    def rule(op: Op) -> Place | list[Place | None]:
        given = op[name] if op[name] is not None else default
        touched = None if given is None else [given] if isinstance(given, int) else list(given)
        rank = rank_of(op.first)
        axes = None if not touched else sorted({each % rank for each in touched})
        places = {place_of(each) for each in op.placed}
        if len(places) != 1 or any(rank_of(each) != rank for each in op.placed):
            raise MixingError("pairs examples with each other")
        place = places.pop()
        if place is None or axes is None or place.axis in axes:
            raise MixingError("goes over the examples of the batch")
        shapes = op.node.meta["shape"]
        several = isinstance(shapes, list)
        gone = rank - len((shapes[0] if several else shapes)[0])
        axis = place.axis - (sum(each < place.axis for each in axes) if gone > 0 else 0)
        found = Place(axis, place.outer, place.inner)
        return [found] * len(shapes) if several else found

    return rule


def _part(op: Op) -> Place | list[Place | None]:
    """A part along one axis."""
    place, rank = place_of(op.first), rank_of(op.first)
    axis = (op["dim"] or 0) % rank
    if place is None or len(op.placed) > 1:
        raise MixingError("uses numbers of examples to choose from others")
    if axis == place.axis:
        if op.name == "slice" and op.shape == op.first.meta["shape"] and op["step"] in {None, 1}:
            return place
        raise MixingError("takes some examples out of the batch")
    shift = 1 if op.name in {"select", "unbind"} and axis < place.axis else 0
    found = Place(place.axis - shift, place.outer, place.inner)
    shapes = op.node.meta["shape"]
    return [found] * len(shapes) if isinstance(shapes, list) else found


def _joined(op: Op) -> Place:
    """Tensors one after the other; one without numbers, as a cache is at the start, may have any shape."""
    values = [each for each in op["tensors"] if each.meta["shape"][0] != (0,)]
    places = [each.meta["place"] for each in values]
    if None in places:
        raise MixingError("puts examples and what is none of them in one row")
    place = _agreed(places)
    rank = rank_of(values[0]) + (op.name == "stack")
    axis = (op["dim"] or 0) % rank
    if op.name == "stack":
        return Place(place.axis + (axis <= place.axis), place.outer, place.inner)
    if axis == place.axis:
        raise MixingError("puts examples of several batches in one row")
    return place


def _repeated(op: Op) -> Place:
    place, times = _kept(op, [], ""), list(op["repeats"])
    axis = place.axis + len(times) - rank_of(op.first)
    if not isinstance(times[axis], int):
        raise MixingError("repeats the batch as often as it has examples")
    return Place(axis, place.outer * times[axis], place.inner)


def _interleaved(op: Op) -> Place:
    place, times, axis = _kept(op, [], ""), op["repeats"], op["dim"]
    if not isinstance(times, int) or axis is None:
        raise MixingError("repeats examples as often as numbers say")
    if axis % rank_of(op.first) != place.axis:
        return place
    return Place(place.axis, place.outer, place.inner * times)


def _made(op: Op) -> Place | None:
    """Made of public numbers, for each example alike or by draws of its own."""
    small, large = op.shape
    grown = [axis for axis, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
    if not grown:
        return None
    if len(grown) > 1:
        raise MixingError("makes a table of pairs of examples")
    return Place(grown[0], 1, small[grown[0]] // SIZES[0], alike=op.name in NEW)


def _counted(op: Op) -> Place | None:
    """Numbers in a row: those of examples, which nothing may look at but an index of all of them."""
    if op.shape[0] == op.shape[1]:
        return None
    whole = (
        op.node.meta["val"].dtype in WIDE
        and op["start"] in {None, 0}
        and op["step"] in {None, 1}
        and op.shape == ((SIZES[0],), (SIZES[1],))
    )
    if not whole:
        raise MixingError("counts the examples of the batch")
    op.node.meta["counts"] = True
    return Place(0)


WIDE = (torch.int32, torch.int64)
"""Types in which examples can be counted."""


def _gathered(op: Op) -> Place:
    """Numbers that each example chooses among its own."""
    found = _along("dim")(op)
    if len(op.placed) < len(op.tensors) or not isinstance(found, Place):
        raise MixingError("puts numbers of examples into one table")
    return found


def _chosen(op: Op) -> Place:
    """Rows by public numbers."""
    if place_of(op.first) is None:
        raise UnknownUseError(f"the operator {op.name} is not known to look up examples{line_of(op.node)}")
    return _kept(op, [op["dim"] % rank_of(op.first)], "chooses among examples")


def _indexed(op: Op) -> Place:
    """Entries by tensors of numbers; those of each example where the first index counts the examples."""
    place, indices = place_of(op.first), list(op["indices"])
    chosen = [(at, each) for at, each in enumerate(indices) if each is not None]
    if op.name == "index_put" and place is None:
        raise MixingError("writes into one table what examples say")
    if any(each.meta["val"].dtype in {torch.bool, torch.uint8} for _, each in chosen) or place_of(op["values"]):
        raise UnknownUseError(
            f"the operator {op.name} with masks or numbers of examples is not known{line_of(op.node)}"
        )
    together = [at for at, _ in chosen] == list(range(chosen[0][0], chosen[-1][0] + 1))
    rank = max(rank_of(each) for _, each in chosen)
    start = chosen[0][0] if together else 0
    counting = [each for at, each in chosen if place is not None and at == place.axis]
    if place is None or counting:
        if counting and not (counting[0].meta.get("counts") and (place is None or place == Place(place.axis))):
            raise MixingError("chooses among examples")
        placed = [each for _, each in chosen if place_of(each) is not None]
        own = [_right(each, rank) for each in placed]
        found = _agreed(own)
        found = Place(found.axis + start, found.outer, found.inner)
    else:
        if any(place_of(each) is not None for _, each in chosen):
            raise MixingError("chooses for all examples by numbers of one")
        before = sum(at < place.axis for at, _ in chosen)
        moved = rank if (together and before) or not together else 0
        found = Place(place.axis - before + moved, place.outer, place.inner)
    return place if op.name == "index_put" and place is not None else found


def _right(node: fx.Node, rank: int) -> Place:
    place: Place = node.meta["place"]
    return Place(place.axis + rank - rank_of(node), place.outer, place.inner)


def _masked_write(op: Op) -> Place:
    """What a mask of the same place chooses, set to a number; else like an index."""
    indices = [each for each in op["indices"] if each is not None]
    values = op["values"]
    mask = indices[0] if len(indices) == 1 and len(op["indices"]) == 1 else None
    if mask is not None and mask.meta["val"].dtype == torch.bool and place_of(values) is None:
        place = place_of(op["self"])
        if place is not None and place_of(mask) == place and rank_of(values) == 0:
            return place
        raise MixingError("writes into examples by a mask of others")
    return _indexed(op)


def _multiplied(op: Op) -> Place:
    """Matrix products, with the axes of matrices last and all others apart."""
    left, right = op.tensors[:2] if op.name != "baddbmm" else (op["batch1"], op["batch2"])
    if op.name == "baddbmm" and place_of(op["self"]) is not None:
        raise MixingError("is not known for such arguments")
    one, other = place_of(left), place_of(right)
    rank = len(op.shape[0])
    found = []
    if one is not None:
        if one.axis == rank_of(left) - 1:
            raise MixingError("adds up over the examples of the batch")
        last = rank_of(left) > 1 and rank_of(right) == 1
        found.append(Place(one.axis + rank - rank_of(left) + last, one.outer, one.inner))
    if other is not None:
        if other.axis == max(0, rank_of(right) - 2):
            raise MixingError("adds up over the examples of the batch")
        first = rank_of(left) == 1 and rank_of(right) > 1 and other.axis < rank_of(right) - 2
        found.append(Place(other.axis + rank - rank_of(right) + first, other.outer, other.inner))
    return _agreed(found)


def _product(op: Op) -> Place:
    """``x @ weight`` or ``x @ weight.T``, and something added that no example is in."""
    x = op["mat1"] if op.name == "addmm" else op["input"]
    place = place_of(x)
    rest = [each for each in op.placed if each is not x]
    if place is None or (rest and not (op.name == "addmm" and rest == [op["self"]] and place_of(op["self"]) == place)):
        raise MixingError("multiplies examples with each other")
    if place.axis == rank_of(x) - 1:
        raise MixingError("adds up over the examples of the batch")
    return place


def _summed(op: Op) -> Place:
    """An einsum: the letter of the examples is one, and stays."""
    told, values = op["equation"].replace(" ", ""), op["tensors"]
    if "." in told or "->" not in told:
        raise UnknownUseError(f"the operator einsum with {told!r} is not known{line_of(op.node)}")
    sides, result = told.split("->")
    letters = set()
    places = []
    for letter_row, value in zip(sides.split(","), values, strict=True):
        place = place_of(value)
        if place is not None:
            letters.add(letter_row[place.axis])
            places.append((place.outer, place.inner))
    letter = letters.pop() if len(letters) == 1 else ""
    if not letter or letter not in result or len(set(places)) != 1:
        raise MixingError("adds up or pairs examples of the batch")
    return Place(result.index(letter), *places[0])


def _attention(op: Op) -> Place:
    """Queries, keys and values of (examples, ..., positions, features)."""
    named = [op["query"], op["key"], op["value"]]
    if any(place_of(each) is None for each in named):
        raise UnknownUseError(f"attention to what is no example is not known{line_of(op.node)}")
    place, rank = _agreed([each.meta["place"] for each in named]), rank_of(named[0])
    if place.axis >= rank - 2 or any(rank_of(each) != rank for each in named):
        raise MixingError("attends from one example to others")
    mask = op["attn_mask"]
    if place_of(mask) is not None and _right(mask, rank) != place:
        raise MixingError("attends by a mask of other examples")
    return place


def _leading(rank: int, name: str = "") -> _Rule:
    """Layers of images and the like: the examples are first."""

    def rule(op: Op) -> Place | list[Place | None]:
        x = op[name] if name else op.first
        place = place_of(x)
        others = [each for each in op.placed if each is not x]
        if place is None or place.axis != 0 or rank_of(x) != rank:
            raise MixingError("takes the examples for something else: they must come first")
        if any(place_of(each) != place for each in others):
            raise MixingError("pairs examples with each other")
        shapes = op.node.meta["shape"]
        return [place] * len(shapes) if isinstance(shapes, list) else place

    return rule


def _convolved(op: Op) -> Place:
    found = _leading(rank_of(op["weight"]), "input")(op)
    if len(op.placed) > 1 or not isinstance(found, Place):
        raise MixingError("has a kernel made of examples")
    return found


def _normalised(op: Op) -> Place:
    place = place_of(op["input"])
    if place is None or len(op.placed) > 1 or place.axis >= rank_of(op["input"]) - len(op["normalized_shape"]):
        raise MixingError("takes means over the examples of the batch")
    return place


def _by_channel(op: Op) -> Place:
    if op.name == "batch_norm" and op["training"]:
        raise MixingError("in training mode takes means over the examples of the batch")
    if op.name == "instance_norm" and op["use_input_stats"] and op["running_mean"] is not None:
        raise UnfitModelError(
            "An instance norm that tracks running statistics would store data of the batch without noise.",
            fix="make it with track_running_stats=False.",
        )
    place = place_of(op["input"])
    if place is None or place.axis != 0 or rank_of(op["input"]) < 2 or len(op.placed) > 1:
        raise MixingError("takes the examples for something else: they must come first")
    return place


def _looked_up(op: Op) -> Place:
    if op["scale_grad_by_freq"]:
        raise UnfitModelError(
            "An embedding with max_norm or scale_grad_by_freq changes with the data of the batch, without noise.",
            fix="leave both at their defaults.",
        )
    place = place_of(op["indices"])
    if place is None or place_of(op["weight"]) is not None:
        raise MixingError("looks up examples in a table of others")
    return place


def _padded(op: Op) -> Place:
    reach = rank_of(op.first) - len(op["pad"] if op["pad"] is not None else op["padding"]) // 2
    return _kept(op, range(reach, rank_of(op.first)), "adds rows to the batch")


def _triangle(op: Op) -> Place:
    rank = rank_of(op.first)
    return _kept(op, [rank - 2, rank - 1], "orders the examples of the batch")


def _hot(op: Op) -> Place:
    return _kept(op, [], "")


def _recurrent(op: Op) -> list[Place | None]:
    if "batch_first" not in op.types or "params" not in op.types:
        raise UnknownUseError(f"packed sequences do not say which example a row belongs to{line_of(op.node)}")
    x = op["input"]
    states = op["hx"] if isinstance(op["hx"], list | tuple) else [op["hx"]]
    place = Place(0 if op["batch_first"] else 1)
    inside = [*states, x]
    if place_of(x) != place or any(place_of(each) not in {None, Place(1)} for each in states):
        raise MixingError("takes the examples for times: they must come first, with batch_first=True")
    if any(each not in inside for each in op.placed):
        raise MixingError("has weights made of examples")
    return [place, *[Place(1)] * len(states)]


def _cell(op: Op) -> Place | list[Place | None]:
    if any(place_of(each) not in {None, Place(0)} for each in op.placed) or rank_of(op["input"]) != 2:
        raise MixingError("takes the examples for something else: they must come first")
    shapes = op.node.meta["shape"]
    return [Place(0)] * len(shapes) if isinstance(shapes, list) else Place(0)


def _classes(op: Op) -> Place:
    """Scores of classes in the second axis, or in the last one of rows; a target for each."""
    scores, target = op.first, op["target"]
    one, other = place_of(scores), place_of(target)
    if one is None or one.axis != 0 or rank_of(scores) < 2 or other not in {one, None} or len(op.placed) > 2:
        raise MixingError("takes the examples for classes")
    return one


def _unseen(op: Op) -> Place:
    raise MixingError(_UNSEEN[op.name])


_UNSEEN = {
    "embedding_renorm": "changes its table by the words of the batch (max_norm=)",
    "masked_scatter": "puts numbers in a row over all examples",
    "_fused_moving_avg_obs_fq_helper": "keeps ranges of the batch",
    "masked_select": "chooses numbers among all examples",
    "nonzero": "tells where numbers are, over all examples",
    "cdist": "pairs examples with each other",
}

_NUMBERWISE = (
    "abs absolute neg negative exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sign sgn sin cos tan"
    " asin acos atan sinh cosh tanh asinh acosh atanh arctan arcsin arccos sigmoid relu relu6 gelu silu mish elu selu"
    " celu leaky_relu prelu _prelu_kernel rrelu hardtanh hardsigmoid hardswish softplus softshrink hardshrink threshold"
    " log_sigmoid erf erfc erfinv sinc lgamma digamma floor ceil round trunc frac fix nan_to_num clamp clip clamp_min"
    " clamp_max add sub subtract rsub mul multiply div divide true_divide floor_divide remainder fmod pow float_power"
    " atan2 arctan2 hypot maximum minimum fmax fmin max min where masked_fill lerp addcmul addcdiv eq ne lt le gt ge"
    " not_equal less less_equal greater greater_equal logical_not logical_and logical_or logical_xor bitwise_not"
    " bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ isnan isinf isfinite isposinf isneginf copysign xlogy"
    " special_xlogy logaddexp logaddexp2 logit heaviside dropout native_dropout alpha_dropout feature_dropout"
    " feature_alpha_dropout bernoulli isclose expand broadcast_to expand_as tanhshrink softsign real imag"
    " copy nextafter deg2rad rad2deg"
)
_ALIKE = (
    "contiguous clone detach alias to _to_copy type_as lift_fresh lift_fresh_copy zeros_like ones_like full_like"
    " empty_like rand_like randn_like randint_like fill zero normal uniform exponential random float"
    " double half cast pin_memory requires_grad positive resolve_conj resolve_neg"
)
NEW = frozenset(
    words(
        "zeros ones full empty rand randn randint new_zeros new_ones new_full new_empty empty_permuted normal bernoulli"
    )
)
"""Operators that make tensors of public numbers or of draws, for each example alike."""
_LOSSES = (
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div"
    " soft_margin_loss poisson_nll_loss hinge_embedding_loss margin_ranking_loss"
)

RULES: dict[str, _Rule] = {
    **dict.fromkeys(words(_NUMBERWISE), _pointwise),
    **dict.fromkeys(words(_LOSSES), _pointwise),
    **dict.fromkeys(words(_ALIKE), _same),
    **dict.fromkeys(words(
        "view reshape _unsafe_view flatten unflatten unsqueeze squeeze view_as reshape_as"
    ), _view),
    **dict.fromkeys(words(
        "permute transpose t movedim moveaxis swapaxes swapdims numpy_T mT adjoint"
    ), _turned),
    **dict.fromkeys(
        words(
        "sum mean prod amax amin any all logsumexp var std var_mean std_mean norm linalg_vector_norm"
        " argmax argmin count_nonzero median nanmean nansum mode kthvalue cumsum cumprod logcumsumexp"
        " cummax cummin softmax _softmax log_softmax _log_softmax softmin sort argsort diff"
        " count_nonzero aminmax"
    ),
        _along(),
    ),
    **dict.fromkeys(["topk", "glu", "cosine_similarity"], _along(default=-1)),
    **dict.fromkeys(["flip", "roll"], _along("dims")),
    **dict.fromkeys(words(
        "select slice narrow split split_with_sizes chunk unbind tensor_split unsafe_split"
        " unsafe_chunk"
    ), _part),
    "broadcast_tensors": _each_alike,
    "unfold": _along("dimension"),
    **dict.fromkeys(words(
        "cat concat concatenate stack"
    ), _joined),
    "repeat": _repeated,
    "repeat_interleave": _interleaved,
    **dict.fromkeys(words(
        "gather scatter scatter_add scatter_reduce take_along_dim"
    ), _gathered),
    "index_select": _chosen,
    "index": _indexed,
    "index_put": _masked_write,
    **dict.fromkeys(words(
        "matmul mm bmm baddbmm mv dot"
    ), _multiplied),
    **dict.fromkeys(["linear", "addmm"], _product),
    "einsum": _summed,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(words(
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ), _convolved),
    **dict.fromkeys(words(
        "max_pool1d avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d upsample_nearest1d"
        " upsample_linear1d lp_pool1d"
    ), _leading(3)),
    **dict.fromkeys(
        words(
        "max_pool2d avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d upsample_nearest2d"
        " upsample_bilinear2d upsample_bicubic2d _upsample_nearest_exact2d pixel_shuffle"
        " pixel_unshuffle channel_shuffle im2col max_pool2d_with_indices grid_sampler"
        " fractional_max_pool2d"
    ),
        _leading(4),
    ),
    **dict.fromkeys(words(
        "max_pool3d avg_pool3d adaptive_avg_pool3d upsample_nearest3d upsample_trilinear3d"
    ), _leading(5)),
    **dict.fromkeys(["layer_norm", "rms_norm"], _normalised),
    **dict.fromkeys(["group_norm", "instance_norm", "batch_norm"], _by_channel),
    "embedding": _looked_up,
    **dict.fromkeys(words(
        "pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d"
        " replication_pad2d replication_pad3d _pad_circular"
    ), _padded),
    **dict.fromkeys(["tril", "triu"], _triangle),
    "one_hot": _hot,
    **dict.fromkeys(words(
        "lstm gru rnn_tanh rnn_relu"
    ), _recurrent),
    **dict.fromkeys(words(
        "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"
    ), _cell),
    **dict.fromkeys(words(
        "cross_entropy_loss nll_loss nll_loss_nd nll_loss2d"
    ), _classes),
    **dict.fromkeys(_UNSEEN, _unseen),
}  # fmt: skip
"""By the name of an operator in ATen, whatever its form: where the examples are in what it returns."""


def placed(op: Op) -> Place | list[Place | None] | None:
    """Where the examples are in the result of an operator, or in its results."""
    if op.name == "arange":
        return _counted(op)
    if not op.placed and op.name not in {"expand", "repeat", "broadcast_to", "expand_as", *NEW}:
        shapes = op.node.meta["shape"]
        return [None] * len(shapes) if isinstance(shapes, list) else None
    if not op.placed or (op.name in NEW and op.name not in RULES):
        return _made(op)
    if op["reduction"] not in {None, 0}:
        raise MixingError("adds up the losses of all examples")
    rule = RULES.get(op.name)
    if op.name in {"max", "min"} and getattr(op.node.target, "_overloadname", "") != "other":
        rule = _along()
    if rule is None:
        raise UnknownUseError(f"the operator {op.name} is not known to keep examples apart{line_of(op.node)}")
    return rule(op)
