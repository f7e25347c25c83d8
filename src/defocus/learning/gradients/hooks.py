"""Hooks into a forward pass: uses of parameters that are known, and those that are not.

Noticing what happens in functions that are not taken apart: failures, and tensors that should not be there.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees

from defocus.learning.gradients.batch_rules import LostError, Place
from defocus.learning.gradients.batch_tracking import Expected, Follower, leaves
from defocus.learning.gradients.layouts import Layout, Region, Regions
from defocus.learning.gradients.tape import Tape

__all__ = ["ChangedError", "Handler", "Noticing", "Plan", "Seat", "Sight", "UnknownUseError", "Watch"]


@final
class Noticing(TorchFunctionMode):
    """Remembers whether a function failed.

    A model may catch an error and go on in another way. What failed for one example then decides for all of them,
    though no number of the batch came to Python. ``stray`` tells tensors that no function may be called with.
    """

    def __init__(self, stray: Callable[[torch.Tensor], bool] | None = None) -> None:
        super().__init__()
        self.failed, self._stray = False, stray

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, and remember if it fails."""
        del types
        try:
            if self._stray is not None:
                self._refuse_strays(trees.tree_leaves((args, kwargs)), self._stray)
            return func(*args, **(kwargs or {}))
        except Exception:
            self.failed = True
            raise

    def _refuse_strays(self, given: list[Any], stray: Callable[[torch.Tensor], bool]) -> None:
        if any(isinstance(each, torch.Tensor) and stray(each) for each in given):
            raise LostError


class ChangedError(Exception):
    """The model did not use its parameters as it did when it was looked at."""


class UnknownUseError(Exception):
    """A parameter is used in a way that one backward pass cannot take apart by examples."""


@final
@dataclass(frozen=True, slots=True)
class Sight:
    """One use of parameters as seen in a trial run: by what, of which, and on what tensor."""

    what: str
    names: tuple[str, ...]
    tensor: torch.Tensor
    place: Place | None
    known: bool


@final
@dataclass(frozen=True, slots=True)
class Seat:
    """One expected use of parameters, and where the examples are in the tensor that meets them."""

    what: str
    names: tuple[str, ...]
    layout: Layout


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """All uses of parameters in a pass, and all functions that its tensors go through, in their order."""

    seats: tuple[Seat, ...]
    calls: tuple[Expected, ...]


Handler = Callable[["Watch", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Does what the function would, with parameters detached and their gradients announced; NotImplemented to decline."""


@final
class Watch(TorchFunctionMode):
    """Active during one forward pass. Without a plan it only looks, and keeps what it saw in ``sights``.

    While it looks, examples are followed through every function that the model and the loss call. Later passes must
    call the same functions, in the same order and with the same arguments besides tensors. None of them may fail, even
    if the model goes on after that: an error in one example would decide what is computed of all.

    Parameters in uses that no handler knows stay attached to the graph, so that the backward pass would reach them:
    what is not taken apart by examples is noticed, never lost.
    """

    def __init__(
        self,
        handlers: dict[Any, Handler],
        regions: Regions,
        *,
        examples: int,
        anchor: torch.Tensor,
        tape: Tape | None = None,
        plan: Plan | None = None,
        follower: Follower | None = None,
    ) -> None:
        super().__init__()
        self.examples = examples
        self.tape = tape
        self.failed = False
        self.sights: list[Sight] = []
        self._looked_up: dict[int, tuple[Any, Callable[[Tape, torch.Tensor], None] | None]] = {}
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._handlers, self._regions, self._anchor = handlers, regions, anchor
        self._plan = plan if plan is not None else Plan((), ())
        self._follower, self._seen, self._called = follower, 0, 0
        self._inside = False
        self._unknown: Layout | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let a handler act in place of a function that it knows, and any other function as it is."""
        del types
        try:
            return self._call(func, args, kwargs or {})
        except Exception:
            self.failed = True
            raise

    def _call(self, func: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:  # noqa: SLF001 -- has no other name
            raise UnknownUseError  # what is kept for the backward pass may be changed until then
        if self._inside:
            return self._result(func, args, keywords)
        if self.tape is not None and func.__name__ not in _TELLING:
            expected = self._plan.calls[self._called] if self._called < len(self._plan.calls) else None
            if expected is None or expected.func is not func or not expected.fits(args, keywords, self.examples):
                raise ChangedError
            self._called += 1
        self._inside = True
        try:
            result = self._result(func, args, keywords)
            return result if self._follower is None else self._follow(func, args, keywords, result)
        finally:
            self._inside, self._unknown = False, None

    def _follow(self, func: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> Any:
        """Let the follower see a call, and what parameters met inside of it."""
        follower, unknown = self._follower, self._unknown
        if follower is None:
            return result
        if func.__name__ not in _TELLING:
            self.calls.append((func, leaves(args, keywords)))
        result = list(result) if func.__name__ == "__iter__" else result
        copies = unknown is not None and func.__name__ in _COPYING
        follower.saw(func, args, keywords, result, inside=unknown is not None and not copies)
        if copies and unknown is not None:
            follower.settle(result, unknown.place)
        return iter(result) if func.__name__ == "__iter__" else result

    def _result(self, func: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        handler = self._handlers.get(func)
        if handler is not None and torch.is_grad_enabled():
            result = handler(self, func, args, keywords)
            if result is not NotImplemented:
                return result
        if func.__name__ == "losses_alone":
            return self._losses_alone(func, *args, **keywords)
        return func(*args, **keywords)

    def _losses_alone(self, func: Callable[..., Any], one: Callable[..., Any], *args: Any) -> Any:
        """Losses of examples alone, out of functions that are not called by way of here.

        A loss gets one example at a time. What the model left behind, and the loss reads besides, has all of them.
        """
        follower = self._follower
        stray = lambda each: follower is not None and follower.knows(each) and follower.place(each) is not None  # noqa: E731 -- one use
        noticing = Noticing(None if follower is None else stray)

        def noticed(*given: Any) -> Any:
            with noticing:
                return one(*given)

        result = func(noticed, *args)
        self.failed = self.failed or noticing.failed
        return result

    def region(self, tensor: Any) -> Region | None:
        """The trainable parameter, or part of one, that a tensor is."""
        return self._regions.find(tensor) if isinstance(tensor, torch.Tensor) and tensor.requires_grad else None

    def seat(self, what: str, tensor: torch.Tensor, *regions: Region | None) -> Layout | None:
        """Where the examples are in a tensor that meets parameters; None while only looking."""
        names = tuple(region.name for region in regions if region is not None)
        if self.tape is None:
            self.sights.append(Sight(what, names, tensor.detach(), *self._followed(tensor)))
            return None
        seat = self._plan.seats[self._seen] if self._seen < len(self._plan.seats) else None
        self._seen += 1
        if seat is None or (seat.what, seat.names) != (what, names):
            raise ChangedError
        if not seat.layout.fits(tensor.shape, self.examples):
            raise ChangedError
        return seat.layout

    def _followed(self, tensor: torch.Tensor) -> tuple[Place | None, bool]:
        """Where examples are in a tensor, and whether that is known: a handler may have made the tensor."""
        layout = self._plan.seats[len(self.sights)].layout if len(self.sights) < len(self._plan.seats) else Layout(None)
        if self._follower is None or not self._follower.knows(tensor):
            self._unknown = layout
            return None, False
        self._follower.settle(tensor, layout.place)
        return self._follower.place(tensor), True

    def finished(self) -> None:
        """Refuse a pass in which a function failed, or that met fewer uses or called fewer functions than expected."""
        if self.failed:
            raise UnknownUseError
        if self.tape is None:
            return
        if self._seen != len(self._plan.seats) or self._called != len(self._plan.calls):
            raise ChangedError

    def run(self, compute: Callable[[], torch.Tensor], *inputs: Any) -> torch.Tensor:
        """The result of a computation with detached parameters, attached to the graph even if no input is."""
        if any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs):
            result = compute()
            if result.requires_grad:
                return result
        found: torch.Tensor = _Root.apply(self._anchor, compute)
        return found

    def looked_up(self, output: torch.Tensor, then: Callable[[Tape, torch.Tensor], None] | None) -> None:
        """Remember a tensor that may come from parameters alone, and what to do with its gradients of each example.

        If it meets the batch in a way that no handler knows, its gradient arrives for all examples at once, too late
        to be taken apart. ``then`` is None while that is not known, or known not to be so.
        """
        self._looked_up[id(output)] = (weakref.ref(output), then)
        if then is not None:
            output.register_hook(_too_late)

    def found(self, tensor: torch.Tensor) -> tuple[bool, Callable[[Tape, torch.Tensor], None] | None]:
        """Whether a tensor was looked up, and what to do with its gradients of each example."""
        reference, then = self._looked_up.get(id(tensor), (None, None))
        return (True, then) if reference is not None and reference() is tensor else (False, None)

    def listen(self, output: torch.Tensor, then: Callable[[Tape, torch.Tensor], None], *held: torch.Tensor) -> None:
        """When the gradient of an output arrives, hand it on; inputs that were held must not have changed by then.

        Then everything is let go of, as autograd does, whose graph would hold it until the end of the backward pass.
        """
        tape = self.tape
        if tape is None:
            raise UnknownUseError
        waiting = [(then, [(each, each._version) for each in held])]  # noqa: SLF001 -- autograd's own check of the same thing

        def arrived(gradient: torch.Tensor) -> None:
            then, inputs = waiting.pop()
            if any(each._version != version for each, version in inputs):  # noqa: SLF001
                raise ChangedError
            then(tape, gradient)

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


_TELLING = frozenset({"__get__", "__len__", "__hash__", "size", "dim", "made_of_losses"})
"""Functions that are asked for what they tell, and may be asked more or less often."""


_COPYING = frozenset({"expand", "repeat"})
"""Functions by which a parameter gets a row for each example."""


def _too_late(_: torch.Tensor) -> None:
    raise UnknownUseError
