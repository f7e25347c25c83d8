"""Where the examples of a batch are in a tensor, and what functions of PyTorch do with them: a place, or LOST.

A function that is not named here loses the examples, even if it would treat them apart: then a slower way is taken,
which is right for any function.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

__all__ = [
    "HARMLESS",
    "LOST",
    "REVEALING",
    "RULES",
    "Call",
    "LostError",
    "Place",
    "agreed",
    "name_of",
    "read",
    "reshaped",
    "write",
]


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Axis ``axis`` counts ``outer`` times examples times ``inner``, in this order, the last one fastest."""

    axis: int
    outer: int = 1
    inner: int = 1


class LostError(Exception):
    """Examples of a batch may be mixed, or in another order, where a pass of all of them needs them apart."""


LOST = Place(-1)
"""The examples may be anywhere."""


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A function called with arguments, at least one of which has examples in it, and what it returned."""

    func: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[torch.Tensor]
    place: Callable[[torch.Tensor], Place | None]
    counts: Callable[[torch.Tensor], bool]
    """Whether a tensor has the numbers of all examples in their order, along its first axis."""

    def at(self, position: int, *names: str, default: Any = None) -> Any:
        """An argument by its position or one of its names."""
        if position < len(self.args):
            return self.args[position]
        return next((self.kwargs[name] for name in names if name in self.kwargs), default)

    def of(self, value: Any) -> Place | None:
        """The place of an argument, if it is a tensor."""
        return self.place(value) if isinstance(value, torch.Tensor) else None

    def only(self, *positions: int) -> bool:
        """Whether no other tensors than the arguments in these positions have examples in them."""
        rest = [each for at, each in enumerate(self.args) if at not in positions]
        rest += self.kwargs.values()
        return all(
            self.of(each) is None for value in rest for each in (value if isinstance(value, list | tuple) else [value])
        )


def agreed(places: Sequence[Place | None]) -> Place:
    """The one place of all tensors that have one."""
    found = {place for place in places if place is not None}
    return found.pop() if len(found) == 1 else LOST


def name_of(func: Any) -> tuple[str, bool]:
    """What a function is called, whatever form of it was, and whether it changes its first argument."""
    name = getattr(func, "__name__", "")
    if name in {"__get__", "__set__", "__delete__"}:
        return f"{getattr(func.__self__, '__name__', '')}.{name}", name != "__get__"
    if name.startswith("__") and name.endswith("__"):
        inner = name[2:-2]
        return (f"__{inner[1:]}__", True) if inner in _CHANGING else (name, False)
    return (name[:-1], True) if name.endswith("_") and not name.startswith("_") else (name, False)


def reshaped(place: Place, before: Sequence[int], after: Sequence[int]) -> Place:
    """The place in a tensor with the same numbers in the same order and another shape."""
    outer = math.prod(before[: place.axis]) * place.outer
    inner = math.prod(before[place.axis + 1 :]) * place.inner
    examples = before[place.axis] // (place.outer * place.inner)
    for axis in range(len(after)):
        ahead, behind = math.prod(after[:axis]), math.prod(after[axis + 1 :])
        if ahead and behind and outer % ahead == 0 and inner % behind == 0:
            found = Place(axis, outer // ahead, inner // behind)
            if found.outer * examples * found.inner == after[axis]:
                return found
    return LOST


_CHANGING = frozenset(
    {"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift"}
)


_MASKS = (torch.bool, torch.uint8)


def read(call: Call) -> Place:
    """The examples stay where they are if nothing but all of them is asked for, in their order."""
    value, index = call.args[0], call.args[1]
    place = call.of(value)
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, torch.Tensor) and part.dtype in _MASKS and call.of(part) is not None for part in parts):
        raise LostError  # how many it chooses, Python can see
    if place == Place(0) and isinstance(parts[0], torch.Tensor) and call.counts(parts[0]):
        return _of_each(call, parts)
    if place is None or any(_chooses(call, part) for part in parts):
        return LOST
    full = value.dim() - sum(_taken(part) for part in parts)
    at = next((number for number, part in enumerate(parts) if part is Ellipsis), None)
    if at is not None:
        parts[at : at + 1] = [slice(None)] * full
    return _kept(call, parts, place)


def _kept(call: Call, parts: list[Any], place: Place) -> Place:
    axis, kept, tensors = 0, 0, 0
    for part in parts:
        if part is None:
            kept += 1
            continue
        if axis == place.axis:
            break
        tensors += not isinstance(part, slice | int)
        kept += isinstance(part, slice)
        axis += 1
    else:
        part = slice(None)
        kept += place.axis - axis
    rest = [each for each in parts if not isinstance(each, slice | int) and each is not None]
    if tensors or (rest and not isinstance(part, slice)):
        return LOST  # where indices are tensors, their axes come in between, or in front of all
    if not isinstance(part, slice) or part != slice(None):
        return LOST
    found = Place(kept, place.outer, place.inner)
    if len(rest) > 1 and not _side_by_side(parts):
        return LOST
    return found if call.results[0].shape[kept] == call.args[0].shape[place.axis] else LOST


def _of_each(call: Call, parts: list[Any]) -> Place:
    """Entries that each example chooses for itself, when the first index counts the examples."""
    chosen = [part for part in parts if isinstance(part, torch.Tensor)]
    rest = parts[len(chosen) :]
    if any(not isinstance(part, torch.Tensor) for part in parts[: len(chosen)]) or any(_chooses(call, p) for p in rest):
        return LOST
    dims = max(part.dim() for part in chosen)
    if parts[0].dim() != dims or any(part.dtype in _MASKS for part in chosen):
        return LOST
    places = [(part, call.of(part)) for part in chosen[1:]]
    right = all(place is None or (place == Place(0) and part.dim() == dims) for part, place in places)
    return Place(0) if right else LOST


def write(call: Call) -> Place | None:
    """What is written must be the same for all examples, or a number that a mask of the same place chooses."""
    value, index, new = call.args
    place = call.of(value)
    simple = not isinstance(new, torch.Tensor) or (call.of(new) is None and new.dim() == 0)
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool and simple:
        return place if place is not None and call.of(index) == place and index.dim() > place.axis else LOST
    if place is None or not simple or _tensors(index):
        return LOST
    return place


def _tensors(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(not (part is None or part is Ellipsis or isinstance(part, slice | int)) for part in parts)


def _chooses(call: Call, part: Any) -> bool:
    """Whether a part of an index depends on the batch, or is of a kind that is not looked into here."""
    if isinstance(part, slice):
        return any(call.of(each) is not None for each in (part.start, part.stop, part.step))
    if isinstance(part, torch.Tensor):
        return call.of(part) is not None or part.dtype in _MASKS
    return not (part is None or part is Ellipsis or (isinstance(part, int) and not isinstance(part, bool)))


def _taken(part: Any) -> int:
    return 0 if part is None or part is Ellipsis else 1


def _side_by_side(parts: list[Any]) -> bool:
    at = [number for number, part in enumerate(parts) if isinstance(part, torch.Tensor | int) and part is not None]
    return not at or at == list(range(at[0], at[-1] + 1))


_Rule: TypeAlias = Callable[[Call], Place | tuple[Place | None, ...] | None]


def _pointwise(call: Call) -> Place:
    """Number by number, after broadcasting."""
    if not call.results:
        return LOST
    dims = call.results[0].dim()
    places = []
    for each in _given(call):
        place = call.of(each)
        if place is not None:
            places.append(Place(dims - each.dim() + place.axis, place.outer, place.inner))
            if call.results[0].shape[places[-1].axis] != each.shape[place.axis]:
                return LOST
    return agreed(places)


def _given(call: Call) -> list[torch.Tensor]:
    found = []
    for value in (*call.args, *call.kwargs.values()):
        found += [
            each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, torch.Tensor)
        ]
    return found


def _loss(call: Call) -> Place:
    return _pointwise(call) if call.kwargs.get("reduction") == "none" else LOST


def _classes(call: Call) -> Place:
    scores, target = call.at(0, "input"), call.at(1, "target")
    whole = call.kwargs.get("reduction") != "none" or scores.dim() < 2 or not call.only(0, 1)
    place = agreed([call.of(scores), call.of(target)])
    return LOST if whole or place.axis != 0 else place


def _along(position: int, default: Any = None, *, first: int = 0) -> _Rule:
    """A function along dimensions that are told in this position: others are apart, and some may be gone."""

    def rule(call: Call) -> Place:
        value = call.at(first, "input", "self", "x1")
        dims = call.at(position, "dim", "dims", "axis", "dimension", default=default)
        if isinstance(dims, torch.Tensor):
            return _pointwise(call)  # the larger of two tensors, for one
        tensors = [each for each in _given(call) if call.of(each) is not None]
        place = agreed([call.of(each) for each in tensors])
        if dims is None or not isinstance(value, torch.Tensor) or any(each.dim() != value.dim() for each in tensors):
            return LOST
        every = call.args[position:] if isinstance(dims, int) and call.name in {"flip", "permute"} else dims
        every = [every] if isinstance(every, int) else list(every)
        if not every:
            return LOST  # all at once, perhaps as if they were one
        touched = {dim % value.dim() for dim in every}
        if place is LOST or place.axis in touched or not call.results:
            return LOST
        fewer = value.dim() - call.results[0].dim()
        axis = place.axis - (sum(dim < place.axis for dim in touched) if fewer > 0 else 0)
        found = Place(axis, place.outer, place.inner)
        same = all(each.dim() > axis and each.shape[axis] == tensors[0].shape[place.axis] for each in call.results)
        return found if same else LOST

    return rule


def _rows(call: Call) -> Place:
    place = call.of(call.args[0])
    return LOST if place is None or place.axis == 0 else Place(place.axis - 1, place.outer, place.inner)


def _chosen(call: Call) -> Place | tuple[Place | None, ...] | None:
    """Rows by numbers that are the same for all examples."""
    return _along(1)(call) if call.of(call.at(2, "index")) is None else LOST


def _reshaped(call: Call) -> Place:
    place, value = call.of(call.args[0]), call.args[0]
    if place is None or not call.only(0) or call.results[0].dtype != value.dtype:
        return LOST
    return reshaped(place, value.shape, call.results[0].shape)


def _turned(apply: Callable[[Call, torch.Tensor], torch.Tensor]) -> _Rule:
    """Axes in another order, found out on a tensor of which each has its own length."""

    def rule(call: Call) -> Place:
        value = call.args[0]
        place = call.of(value)
        if place is None or not call.only(0):
            return LOST
        probe = torch.empty([axis + 2 for axis in range(value.dim())], device="meta")
        return Place(list(apply(call, probe).shape).index(place.axis + 2), place.outer, place.inner)

    return rule


def _method(call: Call, probe: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = getattr(probe, call.name)(*call.args[1:], **call.kwargs)
    return found


def _attribute(call: Call, probe: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = getattr(probe, call.name.partition(".")[0])
    return found


def _stretched(call: Call) -> Place:
    """New axes in front, and axes of one entry repeated."""
    value, result = call.args[0], call.results[0]
    place = call.of(value)
    if place is None:
        return LOST
    axis = result.dim() - value.dim() + place.axis
    return Place(axis, place.outer, place.inner) if result.shape[axis] == value.shape[place.axis] else LOST


def _joined(*, new: bool) -> _Rule:
    def rule(call: Call) -> Place:
        tensors, dim = call.at(0, "tensors"), call.at(1, "dim", "axis", default=0)
        place = agreed([call.of(each) for each in tensors])
        dims = call.results[0].dim()
        if place is LOST or any(each.dim() != tensors[0].dim() for each in tensors):
            return LOST
        if new:
            return Place(place.axis + (dim % dims <= place.axis), place.outer, place.inner)
        return LOST if dim % dims == place.axis else place

    return rule


def _product(call: Call) -> Place:
    left, right = call.args[:2] if len(call.args) > 1 else (call.args[0], call.at(1, "other", "mat2", "tensor2"))
    if call.name == "__rmatmul__":
        left, right = right, left
    dims, places = call.results[0].dim(), []
    if left.dim() < 2 or not call.only(0, 1):
        return LOST
    for value, lost in ((left, left.dim() - 1), (right, max(0, right.dim() - 2))):
        place = call.of(value)
        if place is not None:
            if place.axis == lost or (right.dim() == 1 and value is right):
                return LOST
            axis = place.axis if right.dim() == 1 else dims - value.dim() + place.axis
            places.append(Place(axis, place.outer, place.inner))
    return agreed(places)


def _added_product(call: Call) -> Place:
    place = call.of(call.args[1])
    return place if place is not None and place.axis == 0 and call.only(1) else LOST


def _einsum(call: Call) -> Place:
    equation, *operands = call.args
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    if not isinstance(equation, str) or "." in equation or "->" not in equation:
        return LOST
    terms, result = equation.replace(" ", "").split("->")
    found = set()
    for term, value in zip(terms.split(","), operands, strict=True):
        place = call.of(value)
        if place is not None:
            found.add((term[place.axis], place.outer, place.inner))
        if any(term.count(letter) > 1 for letter in term):
            return LOST
    letter, outer, inner = found.pop()
    return LOST if found or letter not in result else Place(result.index(letter), outer, inner)


def _first(*, kernel: bool) -> _Rule:
    """Images, whose first dimension counts them."""

    def rule(call: Call) -> Place:
        value = call.at(0, "input")
        short = value.dim() < 2 or (kernel and value.dim() != call.at(1, "weight").dim())
        fixed = call.at(5, "training", default=False) is False if call.name == "batch_norm" else True
        return Place(0) if call.of(value) == Place(0) and call.only(0) and not short and fixed else LOST

    return rule


def _last(count: int | Callable[[Call], int]) -> _Rule:
    """A function of the last dimensions alone."""

    def rule(call: Call) -> Place:
        value = call.at(0, "input")
        place = call.of(value)
        used = count if isinstance(count, int) else count(call)
        return LOST if place is None or place.axis >= value.dim() - used or not call.only(0) else place

    return rule


def _one(func: Callable[..., Any], rule: _Rule) -> _Rule:
    """Only for one of several functions of a name, whose arguments have other orders."""
    return lambda call: rule(call) if call.func is func else LOST


def _unfolded(call: Call) -> Place | tuple[Place | None, ...] | None:
    """Windows along a dimension, or patches of images."""
    if call.func is torch.Tensor.unfold:
        return _along(1)(call)
    return _one(F.unfold, _first(kernel=False))(call) if call.results[0].dim() == 3 else LOST


def _padded(call: Call) -> Place:
    value, pads = call.at(0, "input"), list(call.at(1, "pad"))
    place = call.of(value)
    pads += [0] * (2 * value.dim() - len(pads))
    if place is None:
        return LOST
    at = 2 * (value.dim() - 1 - place.axis)
    return LOST if any(pads[at : at + 2]) else place


def _attention(call: Call) -> Place:
    query, key, value = (call.at(at, name) for at, name in enumerate(("query", "key", "value")))
    mask, dims = call.at(3, "attn_mask"), call.results[0].dim()
    places = [call.of(query), call.of(key), call.of(value)]
    if any(each.dim() != dims for each in (query, key, value)):
        return LOST
    if call.of(mask) is not None:
        seen = call.place(mask)
        places.append(None if seen is None else Place(dims - mask.dim() + seen.axis, seen.outer, seen.inner))
    place = agreed(places)
    return LOST if place.axis >= dims - 2 else place


def _heads(call: Call) -> tuple[Place | None, ...]:
    tensors = {name: call.at(at, name) for at, name in enumerate(("query", "key", "value"))}
    right = all(each.dim() == 3 and call.of(each) in {None, Place(1)} for each in tensors.values())
    heads = call.at(4, "num_heads")
    allowed = {"query": Place(1), "key": Place(1), "value": Place(1), "key_padding_mask": Place(0)}
    allowed["attn_mask"] = Place(0, 1, heads)
    known = list(tensors.values())
    dims = {"attn_mask": 3, "key_padding_mask": 2}
    for name, value in call.kwargs.items():
        right = right and call.of(value) in {None, allowed.get(name)}
        right = right and (call.of(value) is None or value.dim() == dims.get(name, 3))
    others = [each for each in call.args if isinstance(each, torch.Tensor) and not any(each is one for one in known)]
    right = right and all(call.of(each) is None for each in others)
    return (Place(1), Place(0)) if right else (LOST, LOST)


def _recurrent(call: Call) -> tuple[Place | None, ...]:
    if len(call.args) != 9 or not isinstance(call.args[2], list | tuple) or call.args[0].dim() != 3:
        return (LOST,) * len(call.results)  # packed sequences do not say which example a row belongs to
    value, state = call.args[:2]
    axis = Place(0 if call.args[8] else 1)
    states = state if isinstance(state, list | tuple) else [state]
    right = call.of(value) in {None, axis} and all(call.of(each) in {None, Place(1)} for each in states)
    right = right and call.only(0, 1)
    return (axis, *[Place(1)] * (len(call.results) - 1)) if right else (LOST,) * len(call.results)


def _cell(call: Call) -> Place:
    states = call.args[1] if isinstance(call.args[1], list | tuple) else [call.args[1]]
    right = all(call.of(each) in {None, Place(0)} and each.dim() == 2 for each in (call.args[0], *states))
    return Place(0) if right and call.only(0, 1) else LOST


def _alone(call: Call) -> Place:
    """The losses of examples, each alone, of outputs and targets whose first dimension counts them."""
    return Place(0) if all(call.of(each) in {None, Place(0)} for each in call.args[1]) else LOST


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _new(call: Call) -> Place | None:
    """A tensor of its own, that takes after another in its type only."""
    return None if call.only(0) else LOST


_POINTWISE = _words(
    """
    add sub mul div true_divide multiply subtract divide floor_divide remainder fmod pow float_power neg negative
    positive abs absolute sign sgn square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin
    acos atan atan2 arctan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid logit floor ceil
    round trunc frac sinc clamp clip clamp_min clamp_max maximum minimum fmax fmin lerp addcmul addcdiv
    nan_to_num hypot xlogy logaddexp isnan isinf isfinite isposinf isneginf signbit eq ne lt le gt ge not_equal
    logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not heaviside
    copysign ldexp isclose relu relu6 gelu silu mish elu selu celu leaky_relu hardtanh hardswish
    hardsigmoid hardshrink softshrink tanhshrink softplus softsign logsigmoid threshold rrelu dropout alpha_dropout
    bernoulli masked_fill fill zero copy clone contiguous detach to float double half bfloat16 long int bool short
    type type_as cpu cuda alias requires_grad zeros_like ones_like full_like empty_like rand_like randn_like
    randint_like data.__get__ real.__get__ normal uniform __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__
    __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __neg__ __pos__ __abs__
    __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ rsub
    """
)
_LOSSES = _words("mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits")
_ALONG: dict[str, tuple[int, Any]] = {
    **dict.fromkeys(
        _words(
            "sum mean prod std var amax amin argmax argmin any all logsumexp nansum nanmean max min median nanmedian "
            "mode softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp flip aminmax count_nonzero"
        ),
        (1, None),
    ),
    **dict.fromkeys(("norm", "roll", "topk", "kthvalue"), (2, None)),
    "topk": (2, -1), "kthvalue": (2, -1), "sort": (1, -1), "argsort": (1, -1), "normalize": (2, 1),
    "cosine_similarity": (2, 1), "glu": (1, -1), "unbind": (1, 0), "chunk": (2, 0), "split": (2, 0),
    "split_with_sizes": (2, 0), "tensor_split": (2, 0), "select": (1, None), "narrow": (1, None),
    "gather": (1, None), "take_along_dim": (2, None), "scatter": (1, None), "scatter_add": (1, None), "diff": (2, -1),
}  # fmt: skip
_TURNED = ("transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "t", "adjoint")
_POOLS = ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool")

_IMAGES = _words(
    "group_norm instance_norm batch_norm interpolate local_response_norm dropout1d dropout2d dropout3d feature_dropout"
)

RULES: dict[str, _Rule] = {
    **dict.fromkeys(_POINTWISE, _pointwise),
    **dict.fromkeys(_LOSSES, _loss),
    **dict.fromkeys(("cross_entropy", "nll_loss"), _classes),
    **{name: _along(*where) for name, where in _ALONG.items()},
    "index_select": _chosen,
    **dict.fromkeys(_words("reshape view flatten unflatten ravel squeeze unsqueeze view_as reshape_as"), _reshaped),
    **dict.fromkeys(_TURNED, _turned(_method)),
    **dict.fromkeys(("T.__get__", "mT.__get__"), _turned(_attribute)),
    **dict.fromkeys(_words("expand repeat tile expand_as broadcast_to"), _stretched),
    **dict.fromkeys(("cat", "concat", "concatenate"), _joined(new=False)),
    "stack": _joined(new=True),
    **dict.fromkeys(_words("matmul __matmul__ __rmatmul__ mm bmm"), _product),
    "einsum": _einsum,
    **{f"conv{kind}{n}d": _first(kernel=True) for kind in ("", "_transpose") for n in (1, 2, 3)},
    **dict.fromkeys(_IMAGES, _first(kernel=False)),
    **{f"{pool}{n}d": _last(n) for pool in _POOLS for n in (1, 2, 3)},
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), _last(3)),
    **dict.fromkeys(("triu", "tril"), _last(2)),
    **dict.fromkeys(("linear",), _last(1)),
    **dict.fromkeys(("layer_norm", "rms_norm"), _last(lambda call: len(call.at(1, "normalized_shape")))),
    "embedding": _one(F.embedding, _last(0)),
    "bucketize": _last(0),
    "unfold": _unfolded,
    "one_hot": lambda call: LOST if call.at(1, "num_classes", default=-1) < 0 else _last(0)(call),
    "where": lambda call: _pointwise(call) if len(call.args) + len(call.kwargs) == 3 else LOST,
    "__iter__": _rows,
    "addmm": _added_product,
    "pad": _padded,
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _heads,
    **dict.fromkeys(_words("lstm gru rnn_tanh rnn_relu"), _recurrent),
    **dict.fromkeys(_words("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"), _cell),
    "__getitem__": read,
    "__setitem__": write,
    **dict.fromkeys(_words("new_zeros new_ones new_full new_empty new_tensor"), _new),
    "losses_alone": _alone,
}  # fmt: skip
"""By the name of a function, without the underscore of the form that changes its argument."""

HARMLESS = frozenset(
    _words(
        """
    size dim ndimension numel nelement __len__ stride is_contiguous element_size is_floating_point is_complex
    get_device storage_offset __hash__ is_signed is_inference is_same_size has_names retain_grad
    is_pinned is_set_to shape.__get__ dtype.__get__ device.__get__ layout.__get__ ndim.__get__ requires_grad.__get__
    requires_grad.__set__ is_leaf.__get__ is_cuda.__get__ is_cpu.__get__ is_nested.__get__
    is_sparse.__get__ is_mps.__get__ is_quantized.__get__ is_meta.__get__ is_mkldnn.__get__ is_xpu.__get__
    itemsize.__get__ nbytes.__get__ names.__get__ is_sparse_csr.__get__ is_ipu.__get__ is_maia.__get__
    is_mtia.__get__ is_vulkan.__get__ is_xla.__get__ grad.__get__ _version.__get__ _is_view result_type
    made_of_losses
    """
    )
)
"""Functions that tell or do nothing that depends on the numbers of a tensor."""

REVEALING = frozenset(
    _words("nonzero argwhere masked_select unique unique_consecutive bincount repeat_interleave _pack_padded_sequence")
)
"""Functions whose results have a shape that depends on the numbers of a tensor, which Python can see."""
