"""The check of a graph: that examples stay apart, from the batch to the loss."""

from collections.abc import Iterator, Sequence
from typing import Any, final

import torch
from torch import fx
from torch.utils import _pytree as trees

from defocus.errors import DependentExamplesError, UnfitModelError
from defocus.learning.gradients.operators import NEW, RULES, WIDE, placed
from defocus.learning.gradients.places import MixingError, Op, Place, place_of, rank_of, words
from defocus.learning.gradients.trace import SIZES, MixedError, UnknownUseError, line_of

__all__ = ["LINEAR", "VIEWS", "check", "dependent", "meetings"]

_CLASSES = frozenset({"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d"})
_SILENT = frozenset({"_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_assert_tensor_metadata", "_times"})
VIEWS = frozenset(
    words(
        "view reshape flatten unflatten unsqueeze squeeze view_as reshape_as permute transpose t"
        " movedim select slice narrow split chunk unbind expand expand_as contiguous to alias detach"
        " getitem unfold swapaxes mT numpy_T split_with_sizes"
    )
)


def check(graph: fx.Graph, parameters: Sequence[str]) -> None:
    """Note in ``meta["place"]`` of every node where the examples are, or refuse the graph by naming an operator.

    ``meta["trained"]`` tells by which parameters a value without examples can be trained. A loss of one number has to
    be a sum or a mean over examples; its node then has ``meta["total"]``.
    """
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node, name in zip(inputs, parameters, strict=False):
        node.meta |= {"place": None, "trained": frozenset({name}), "root": "parameter"}
    for node in inputs[len(parameters) : -1]:
        node.meta |= {"place": Place(0), "trained": frozenset(), "root": "batch"}
    (result,) = [node for node in graph.nodes if node.op == "output"]
    loss, *kept = trees.tree_leaves(result.args)
    learns = [True]
    try:
        for node in graph.nodes:
            if node.op == "get_attr":
                node.meta |= {"place": None, "trained": frozenset(), "root": "constant"}
            elif node.op == "call_function":
                _follow(node, learns)
    except MixingError as error:
        if loss.meta["shape"][0] == ():  # perhaps a mean over examples that is told in an odd way
            raise MixedError(str(error)) from None
        raise dependent(str(error)) from None
    _check_kept(kept)
    result.args = (loss,)
    if loss.meta.get("total") is None and loss.meta["place"] != Place(0):
        raise UnknownUseError("the loss is neither a vector of losses nor their sum or mean")


def _check_kept(kept: Sequence[fx.Node]) -> None:
    """No numbers of examples stay behind."""
    for each in kept:
        if place_of(each) is not None:
            made = "what the batch holds" if each.op == "placeholder" else f"what the operator {Op(each).name} makes"
            raise dependent(f"{made} is kept in the model or the loss for later batches{line_of(each)}")


def _follow(node: fx.Node, learns: list[bool]) -> None:
    op = Op(node)
    if op.name in _SILENT:
        if op.name == "_set_grad_enabled":
            learns[0] = bool(node.args[0])
        return
    if op.name == "getitem":
        source, at = node.args
        node.meta |= {key: source.meta[key] for key in ("place", "trained", "total", "learns", "root")}
        if isinstance(source.meta["place"], list):
            node.meta["place"] = source.meta["place"][at]
        return
    trained = frozenset[str]().union(*(each.meta.get("trained", ()) for each in op.tensors))
    node.meta |= {"total": None, "trained": trained if learns[0] and op.name != "detach" else frozenset()}
    node.meta["learns"] = learns[0]
    view = (
        op.name in VIEWS and op.tensors and op.tensors[0].meta["val"].dtype == getattr(node.meta["val"], "dtype", None)
    )
    node.meta["root"] = op.tensors[0].meta["root"] if view else "new"
    _check_write(op)
    _check_arguments(op)
    totals = [each for each in op.tensors if each.meta.get("total") is not None]
    if totals:
        node.meta |= {"total": _total_of_totals(op, totals), "place": Place(0)}
        return
    _check_counts(op)
    try:
        place = placed(op)
    except MixingError as error:
        kind = _total(op)
        if kind is None:
            raise MixingError(f"the operator {op.name} {error}{line_of(node)}") from None
        node.meta |= {"total": kind, "place": Place(0)}
        return
    node.meta["place"] = place
    _check_result(op, place)


def _check_result(op: Op, place: Any) -> None:
    """What has examples in it has them in one axis, for batches of any size; and nothing else grows with the batch."""
    shapes = op.node.meta["shape"]
    if shapes is None:
        raise UnknownUseError(f"the operator {op.name} makes no tensor{line_of(op.node)}")
    pairs = list(zip(shapes, place, strict=True)) if isinstance(shapes, list) else [(shapes, place)]
    if op.placed and op.name not in _SHAPED and any(at is None for _, at in pairs):
        raise MixingError(f"the operator {op.name} makes something of all examples{line_of(op.node)}")
    for dims, at in pairs:
        if dims is None:
            continue
        grown = [axis for axis, (a, b) in enumerate(zip(*dims, strict=True)) if a != b]
        if at is None and not grown:
            continue
        each = 0 if at is None else at.outer * at.inner
        sizes = zip(dims, SIZES, strict=True)
        right = at is not None and grown == [at.axis] and all(dim[at.axis] == each * n for dim, n in sizes)
        if not right:
            raise MixingError(f"the operator {op.name} puts examples where they cannot be told apart{line_of(op.node)}")


_SHAPED = NEW | {"to", "type_as", "broadcast_tensors"}
"""Operators that may ask an argument for its shape or type only."""


def _check_counts(op: Op) -> None:
    """The numbers of examples in their batch may be an index, and nothing else."""
    if any(each.meta.get("counts") for each in op.tensors):
        if op.name in VIEWS and op.node.meta["val"].dtype in WIDE:
            op.node.meta["counts"] = True
        elif op.name not in {"index", "index_put"}:
            raise MixingError(f"the operator {op.name} uses the numbers of examples in their batch{line_of(op.node)}")


def _check_write(op: Op) -> None:
    """Nothing writes into parameters, and nothing into what was given."""
    if not op.changes or not op.tensors:
        return
    where = op.first.meta["root"]
    if where == "batch":
        raise UnfitModelError(
            f"The model or the loss changes what it is given{line_of(op.node)}, so that a batch cannot be looked at"
            " twice.",
            fix="work on a copy: x = x / 255 and not x /= 255, and inplace=False in the first layer.",
        )
    if where == "parameter":
        raise DependentExamplesError(
            f"The model changes its own parameters in forward by the operator {op.name}{line_of(op.node)}, by what it"
            " sees and without noise.",
            fix="leave out max_norm= of embeddings and the like, or apply it between steps, to all rows.",
        )
    op.node.meta["root"] = where


def _check_arguments(op: Op) -> None:
    """The size of the batch may say how large something is, and nothing else."""
    for name, value in op.given.items():
        if isinstance(value, torch.Generator):
            raise UnknownUseError(f"the operator {op.name} draws from a generator of its own{line_of(op.node)}")
        for each in trees.tree_leaves(value):
            sized = isinstance(each, fx.Node) and "times" in each.meta
            shape = name in _SIZED and ("int" in op.types.get(name, "") or op.name == "arange")
            if sized and not shape:
                if op.name in {"div", "divide", "true_divide"} and op.first.meta.get("total") == "sum":
                    continue
                raise MixingError(f"the operator {op.name} uses the size of the batch as a number{line_of(op.node)}")


_SIZED = frozenset({"size", "sizes", "shape", "end", "repeats", "split_size"})


def _total(op: Op) -> str | None:
    """Whether an operator is the last step of a loss, over all numbers of all examples."""
    if op.node.meta["shape"] is None or isinstance(op.node.meta["shape"], list) or op.shape[0] != ():
        return None
    if not op.node.users or not all(_leads_out(user) for user in op.node.users):
        return None
    if op.name in {"sum", "mean"} and len(op.placed) == 1:
        return op.name
    if op["reduction"] in {1, 2} and op["weight"] is None and op["pos_weight"] is None and op.name in RULES:
        try:
            RULES[op.name](_Unreduced(op))  # type: ignore[arg-type]
        except MixingError:
            return None
        return "mean" if op["reduction"] == 1 else "sum"
    return None


@final
class _Unreduced:
    """The same operator without its reduction, whose result has the shape of its target or of its first argument."""

    def __init__(self, op: Op) -> None:
        self._op = op
        about = op["target"] if op.name in _CLASSES else max(op.tensors, key=rank_of)
        self.shape = about.meta["shape"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def __getitem__(self, name: str) -> Any:
        return self._op[name]


def _leads_out(node: fx.Node) -> bool:
    """Whether a number goes nowhere but to the end of the graph, by sums and constant factors."""
    if node.op == "output":
        return True
    scalar = Op(node).name in LINEAR and node.meta["shape"][0] == ()
    return scalar and bool(node.users) and all(_leads_out(user) for user in node.users)


LINEAR = frozenset(words("add mul multiply div divide true_divide neg sub rsub clone to _to_copy"))


def _total_of_totals(op: Op, totals: list[fx.Node]) -> str:
    """Sums of totals and their multiples."""
    kinds = {each.meta["total"] for each in totals}
    if op.changes and op.first not in totals:
        raise MixingError(f"the operator {op.name} writes a sum over examples into something else{line_of(op.node)}")
    products = op.name in {"mul", "multiply", "div", "divide", "true_divide"}
    if op.name not in LINEAR or (products and (len(totals) > 1 or op.first not in totals)):
        raise UnknownUseError(f"the operator {op.name} is used on the sum of all losses{line_of(op.node)}")
    others = [each for each in op.tensors if each not in totals]
    if len(kinds) > 1 or any(place_of(each) is not None for each in others):
        raise UnknownUseError(f"the operator {op.name} joins a sum and a mean of losses{line_of(op.node)}")
    if any(each.meta.get("trained") for each in others) and kinds != {"mean"}:
        raise UnknownUseError(f"the operator {op.name} adds parameters to a sum of losses{line_of(op.node)}")
    sized = any(isinstance(each, fx.Node) and "times" in each.meta for each in op.given.values())
    return "mean" if sized else str(kinds.pop())


def dependent(what: str) -> DependentExamplesError:
    """What is said of a model that ties examples."""
    return DependentExamplesError(
        f"In this model, {what}: clipping would bound nobody's influence.",
        fix="use GroupNorm instead of BatchNorm, as defocus.learning.fix(model) does, batch_first=True in recurrent and"
        " attention layers, take no means over the batch in forward, and return one loss for each example.",
    )


def meetings(graph: fx.Graph) -> Iterator[tuple[Op, list[fx.Node]]]:
    """Every operator by which something trained meets examples, and what of it is trained."""
    for node in list(graph.nodes):
        place = node.meta.get("place")
        placed = any(each is not None for each in place) if isinstance(place, list) else place is not None
        if node.op == "call_function" and placed and node.meta.get("learns"):
            op = Op(node)
            mine = [each for each in op.tensors if each.meta.get("place") is None and each.meta.get("trained")]
            if mine:
                yield op, mine
