"""Following the examples of a batch through a forward pass, function by function.

Shapes cannot tell whether a row still belongs to the example whose number it has: sorting, flipping and indexing keep
them. So every function that a batch goes through must be one that is known to treat examples apart, with arguments with
which it does. Whatever else is done to a tensor leaves the examples lost in it, for good.

Guarantee:
    If the losses of a pass have a place, and so has every tensor that met a parameter, then the i-th loss is a function
    of the parameters and of the i-th rows of the batch alone, whatever the values in them: the entries of a tensor that
    have number i at its place are computed from entries with number i at theirs, by the rules of ``treating``, and no
    number of a batch came to Python, which could have decided by it what is computed.
Assumes:
    The same functions are called, in the same order, for another batch (a watch compares them), with arguments that
    depend on the number of examples only. Nothing reads a tensor's memory past PyTorch.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, TypeAlias, final

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils import _pytree as trees

from defocus.learning.gradients.batch_rules import HARMLESS, LOST, REVEALING, RULES, Call, LostError, Place, name_of

__all__ = ["Expected", "Follower", "expected", "leaves"]


_State: TypeAlias = tuple[int, int, int]
_KEEPING = frozenset({"unsqueeze", "__getitem__", "to", "view", "reshape"})


@final
class Follower:
    """Where the examples of one pass are in every tensor that is met."""

    def __init__(self, batch: Any) -> None:
        self.strangers: list[torch.Tensor] = []
        """Tensors that no function of this pass made: constants, if they are those of another pass too."""
        self.course: list[tuple[Place | None, ...]] = []
        """The places of the results of each call that was followed: those of another pass, whatever its size."""
        self._known: dict[int, tuple[torch.Tensor, Place | None]] = {}
        self._memory: defaultdict[int, list[torch.Tensor]] = defaultdict(list)
        self._states: dict[int, _State] = {}
        self._counts: set[int] = set()
        self._examples = 0
        for leaf in trees.tree_leaves(batch):
            if isinstance(leaf, torch.Tensor):
                self._note(leaf, Place(0))
                self._examples = len(leaf)

    def place(self, tensor: torch.Tensor) -> Place | None:
        """Where the examples are in a tensor; None where there are none."""
        if isinstance(tensor.grad_fn, BackwardCFunction):
            raise LostError  # a function with a backward pass of its own, which may do anything with examples
        known = self._known.get(id(tensor))
        if known is None:
            self.strangers.append(tensor)
            self._note(tensor, None)
            return None
        if _state(tensor) != self._states[id(tensor)]:
            raise LostError  # written to by something that is not seen
        return known[1]

    @property
    def constants(self) -> list[torch.Tensor]:
        """All tensors that do not depend on the batch."""
        return [tensor for tensor, place in self._known.values() if place is None]

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether a function of this pass made a tensor, or it was met already."""
        return id(tensor) in self._known

    def settle(self, tensor: torch.Tensor, place: Place | None) -> None:
        """Let a tensor that was made without the batch, with a row for each example, belong to them from here on."""
        if place is not None and self.place(tensor) is None:
            self._known[id(tensor)] = (tensor, place)

    def saw(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, *, inside: bool
    ) -> None:
        """Find the places of the results of a function; ``inside``, parameters met tensors that it made on its way."""
        results = _tensors(result)
        name, changing = name_of(func)
        changing = changing or name == "__setitem__" or any(each is args[0] for each in results if args)
        for each in (*args[: int(changing)], kwargs.get("out")):
            self._written(each)
        places = [self.place(each) for each in _tensors((args, kwargs))]
        if all(place is None for place in places):
            if inside:
                raise LostError  # rows for examples, perhaps, made without them
            self._constant(name, args, results)
        elif not _of_torch(func):
            raise LostError  # it may have written to what it was given, unseen
        elif name not in HARMLESS:
            call = Call(func, name, args, kwargs, results, self.place, self._counting)
            found = self._found(call, lost=LOST in places)
            if changing:
                self._change(args[0], found)
            for number, each in enumerate(results):
                self._note(each, found[number] if isinstance(found, tuple) else found)
        if name not in HARMLESS:
            self.course.append(tuple(self._known[id(each)][1] for each in results))

    def _found(self, call: Call, *, lost: bool) -> Place | tuple[Place | None, ...] | None:
        rule = RULES.get(call.name)
        if (rule is None and not call.results) or call.name in REVEALING or call.kwargs.get("out") is not None:
            raise LostError  # a number that Python can see, or a tensor that others may be views of
        return LOST if rule is None or lost else rule(call)

    def _constant(self, name: str, args: tuple[Any, ...], results: list[torch.Tensor]) -> None:
        for each in results:
            self._note(each, None)
            if name == "arange" or (name in _KEEPING and self._counting(args[0])):
                self._count(each)

    def _count(self, tensor: torch.Tensor) -> None:
        """Remember a tensor that counts the examples."""
        if self._counts_all(tensor):
            self._counts.add(id(tensor))

    def _counts_all(self, tensor: torch.Tensor) -> bool:
        if tensor.dtype not in {torch.int32, torch.int64}:
            return False  # it could not count more examples
        whole = torch.arange(self._examples, device=tensor.device)
        return bool(tensor.dim()) and len(tensor) == self._examples and torch.equal(tensor.flatten(), whole)

    def _counting(self, tensor: object) -> bool:
        return isinstance(tensor, torch.Tensor) and id(tensor) in self._counts and self._counts_all(tensor)

    def _written(self, tensor: Any) -> None:
        """A function that is seen wrote to a tensor, once, and so to all that share its memory."""
        if not isinstance(tensor, torch.Tensor) or not self.knows(tensor):
            return
        for each in self._memory[_memory(tensor)]:
            now, before = _state(each), self._states[id(each)]
            if now[:2] != before[:2] or now[2] > before[2] + 1:
                raise LostError
            self._states[id(each)] = now

    def _change(self, tensor: Any, place: Any) -> None:
        """What is written to has its place, which other views of the same memory must share."""
        if not isinstance(tensor, torch.Tensor):
            raise LostError
        if place == self.place(tensor):
            return
        apart = len(self._memory[_memory(tensor)]) == 1 and not any(tensor is each for each in self.strangers)
        if not apart or not isinstance(place, Place) or place is LOST:
            raise LostError
        self._known[id(tensor)] = (tensor, place)

    def _note(self, tensor: torch.Tensor, place: Place | None) -> None:
        known = self._known.get(id(tensor))
        if known is None:
            self._memory[_memory(tensor)].append(tensor)
            self._states[id(tensor)] = _state(tensor)
        elif known[1] is not None and place is None:
            return
        self._known[id(tensor)] = (tensor, place)


def _of_torch(func: Callable[..., Any]) -> bool:
    """Whether a name means what it means in PyTorch: operators of others may have any, with other arguments."""
    module = getattr(func, "__module__", None) or "torch"
    return module.partition(".")[0] in {"torch", "defocus"} and not module.startswith("torch._ops")


def _state(tensor: torch.Tensor) -> _State:
    """What becomes another one when other numbers come into a tensor."""
    version = 0 if tensor.is_inference() else tensor._version  # noqa: SLF001 -- autograd's own check of the same thing
    return int(tensor._cdata), _memory(tensor), version  # noqa: SLF001 -- tensors may be swapped


def _memory(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 -- empty ones have no other name
    except RuntimeError as error:  # not a plain tensor
        raise LostError from error


def _tensors(tree: Any) -> list[torch.Tensor]:
    """All tensors of arguments, also those in slices."""
    found: list[torch.Tensor] = []
    for leaf in trees.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif isinstance(leaf, slice):
            found += [each for each in (leaf.start, leaf.stop, leaf.step) if isinstance(each, torch.Tensor)]
    return found


_PLAIN = (int, float, str, Number, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))


@final
@dataclass(frozen=True, slots=True)
class Expected:
    """A function that a pass calls, and the leaves of its arguments for two examples and for three.

    A leaf that is the same for both must stay the same. Whole numbers may grow along with the examples, in one line
    with both. Any other leaf could be chosen by how many examples there are, as the axis of a sum.
    """

    func: Callable[..., Any]
    two: tuple[Any, ...]
    three: tuple[Any, ...]
    fixed: bool

    def fits(self, args: tuple[Any, ...], keywords: dict[str, Any], examples: int) -> bool:
        """Whether arguments are those of the trial runs, for another number of examples."""
        found = leaves(args, keywords)
        if self.fixed or len(found) != len(self.three):
            return found == self.three
        return all(
            c == b if a == b else _whole(c) and c == a + (examples - 2) * (b - a)
            for a, b, c in zip(self.two, self.three, found, strict=True)
        )


def expected(
    two: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
    three: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
) -> tuple[Expected, ...] | None:
    """What later passes must call, out of the functions and leaves of two trial runs; None if they disagree."""
    if len(two) != len(three):
        return None
    found = []
    for (func, a), (other, b) in zip(two, three, strict=True):
        if func is not other or len(a) != len(b):
            return None
        if not all(x == y or (_whole(x) and _whole(y)) for x, y in zip(a, b, strict=True)):
            return None
        found.append(Expected(func, a, b, fixed=a == b))
    return tuple(found)


def leaves(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """All numbers and names among arguments, in their order, with a mark where there are tensors between them."""
    found: list[Any] = []
    for each in args:
        _gather(each, found)
    for name, each in keywords.items():
        found.append(name)
        _gather(each, found)
    return tuple(found)


def _gather(value: Any, found: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        if not found or found[-1] is not torch.Tensor:
            found.append(torch.Tensor)
    elif isinstance(value, list | tuple):
        for each in value:
            _gather(each, found)
    elif isinstance(value, dict):
        for name, each in value.items():
            found.append(name)
            _gather(each, found)
    elif isinstance(value, slice):
        found += [value.start, value.stop, value.step]
    elif isinstance(value, float) and math.isnan(value):
        found.append(float)  # unlike itself
    else:
        found.append(value if isinstance(value, _PLAIN) else type(value))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
