"""Which numbers of a batch a model looks at in Python, and which whole numbers it looks things up by."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees
from torch.utils._python_dispatch import TorchDispatchMode

from defocus.learning.gradients.layouts import Batch

__all__ = ["Peeks", "peeking"]

_NONE: frozenset[int] = frozenset()


@final
class Peeks:
    """What was seen while a batch went through a model.

    ``python`` is whether a number that was computed from the batch, or a shape that depends on one, came to Python: by
    ``if x.max() > 1``, ``.item()``, ``.tolist()``, ``.numpy()``, ``x[mask]``, ``nonzero`` and the like. What is
    computed may then depend on all examples, in ways that no trial shows. ``bounds`` tells, by the number of a leaf of
    the batch, below what its whole numbers must be, for those that choose rows of a table or classes.
    """

    def __init__(self, batch: Batch) -> None:
        self.python = False
        self.bounds: dict[int, int] = {}
        self._from: dict[int, frozenset[int]] = {}
        self._held: list[Any] = []
        for number, leaf in enumerate(trees.tree_leaves(tuple(batch))):
            if isinstance(leaf, torch.Tensor):
                self.mark([leaf], frozenset({number}))

    def origins(self, tensors: Iterable[Any]) -> frozenset[int]:
        """From which leaves of the batch the numbers of tensors come."""
        found = [self._from.get(_memory(each)[0], _NONE) for each in tensors if isinstance(each, torch.Tensor)]
        return _NONE.union(*found)

    def mark(self, tensors: Iterable[Any], origins: frozenset[int]) -> None:
        """Remember where the numbers of tensors come from."""
        for each in tensors:
            if isinstance(each, torch.Tensor):
                name, memory = _memory(each)
                self._from[name] = self._from.get(name, _NONE) | origins
                self._held.append(memory)  # so that no other memory gets its name

    def bound(self, index: Any, below: int) -> None:
        """Remember below what the numbers of an index must be."""
        for number in self.origins([index]):
            self.bounds[number] = min(below, self.bounds.get(number, below))


@contextmanager
def peeking(batch: Batch) -> Iterator[Peeks]:
    """Watch what is done with a batch."""
    peeks = Peeks(batch)
    below = _Below(peeks)
    with below, _Above(peeks, below):
        yield peeks


@final
class _Above(TorchFunctionMode):
    """Sees what reads memory at once, and what is only checked."""

    def __init__(self, peeks: Peeks, below: "_Below") -> None:
        super().__init__()
        self._peeks, self._below = peeks, below

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _READING and self._peeks.origins(args[:1]):
            self._peeks.python = True
        if name == "one_hot":
            classes = args[1] if len(args) > 1 else given.get("num_classes", -1)
            if classes > 0:  # its numbers are looked at for being classes only
                self._peeks.bound(args[0] if args else given["tensor"], classes)
                with self._below.trusting():
                    return func(*args, **given)
        return func(*args, **given)


@final
class _Below(TorchDispatchMode):
    """Sees every function that is computed, also those inside of others."""

    def __init__(self, peeks: Peeks) -> None:
        super().__init__()
        self._peeks, self._trusted = peeks, False

    @contextmanager
    def trusting(self) -> Iterator[None]:
        """While a function runs that shows nothing of what it looks at."""
        self._trusted = True
        try:
            yield
        finally:
            self._trusted = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = kwargs or {}
        tensors = trees.tree_leaves((args, given))
        origins = self._peeks.origins(tensors)
        if origins:
            self._look(func, args)
        made = func(*args, **given)
        if origins:
            written = [value for value, each in zip(args, func._schema.arguments, strict=False) if _writes(each)]  # noqa: SLF001
            self._peeks.mark(trees.tree_leaves((made, written)), origins)
        return made

    def _look(self, func: Any, args: Any) -> None:
        name = func.overloadpacket.__name__
        if name in _TABLES:
            table, index, axis = _TABLES[name]
            self._peeks.bound(args[index], args[table].shape[args[1] if axis is None else axis])
        if not self._trusted and _tells(name, func.tags, args, self._peeks):
            self._peeks.python = True


def _tells(name: str, tags: Any, args: Any, peeks: Peeks) -> bool:
    """Whether a number comes to Python, or a shape depends on numbers."""
    if name in {"index", "index_put", "_index_put_impl", "_unsafe_index"}:
        masks = [each for each in args[1] if each is not None and each.dtype in {torch.bool, torch.uint8}]
        filled = name.startswith(("index_put", "_index_put")) and args[2].numel() == 1
        return bool(peeks.origins(masks)) and not filled
    if name == "_pack_padded_sequence":
        return bool(peeks.origins(args[1:2]))
    return "ctc_loss" not in name and bool({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & {*tags})


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _memory(tensor: torch.Tensor) -> tuple[int, Any]:
    """What tells the memory of a tensor from others as long as what comes second is held."""
    try:
        storage = tensor.untyped_storage()
    except RuntimeError:  # one without any
        return id(tensor), tensor
    return storage._cdata, storage  # noqa: SLF001 -- its only name


_READING = frozenset({"tolist", "numpy", "__array__", "__dlpack__"})
_TABLES: dict[str, tuple[int, int, int | None]] = {
    "embedding": (0, 1, 0),
    "_embedding_bag": (0, 1, 0),
    "_embedding_bag_forward_only": (0, 1, 0),
    "nll_loss_forward": (0, 1, 1),
    "nll_loss2d_forward": (0, 1, 1),
    "gather": (0, 2, None),
    "index_select": (0, 2, None),
}
"""Where the table and the numbers are among the arguments, and by which axis they choose; None: it is an argument."""
