"""Several processes that train one model: one secret, one sample, one noise.

Guarantee:
    All processes draw the sample of a step from the same secret stream, so it is the very sample that one process would
    draw, and the same event is charged for it, once, by the first process. Each computes the clipped gradients of its
    part of the sample; their sum meets the noise in the first process, and what is noisy is what the others get back.
    That needs all of them to hold the same data: one who is example 5 here and example 6 there could be in one sample
    twice. So they compare settings, parameters and data before anything is charged, checkpoints when they resume, and
    the number of each step; and a step that fails in one of them fails in all, before sums are added up.
Assumes:
    Data is compared by its length and 256 examples: differences beyond that are not noticed. A process that is gone
    ends the others at once, one that is silent after the timeout of ``init_process_group``; the charge stays.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, final

import torch
from torch import distributed

from defocus.errors import InvalidParameterError, LostProcessError, UnfitModelError
from defocus.learning.noise import KEY_BYTES
from defocus.noise.ranges import Integers

__all__ = ["Ranks", "plain"]

_T = TypeVar("_T")


@final
class Ranks:
    """The processes of ``torch.distributed``, or this one alone where none is set up."""

    __slots__ = ("_device", "rank", "world")

    def __init__(self) -> None:
        several = distributed.is_available() and distributed.is_initialized()
        self.rank: int = distributed.get_rank() if several else 0
        self.world: int = distributed.get_world_size() if several else 1
        on_gpu = several and distributed.get_backend() == "nccl"  # which sends nothing from elsewhere
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")

    @property
    def first(self) -> bool:
        """Whether this process charges, adds the noise and writes files."""
        return self.rank == 0

    def part(self, numbers: Integers) -> Integers:
        """This process's part of a sample."""
        return numbers[self.rank :: self.world]

    def added(self, sums: list[torch.Tensor]) -> None:
        """Add up the sums of all processes, in the first one."""
        if self.world > 1:
            with _talking():
                for total in sums:
                    distributed.reduce(total, 0)

    def told(self, tensors: list[torch.Tensor]) -> None:
        """Give everyone what the first process has."""
        if self.world > 1:
            with _talking():
                for tensor in tensors:
                    distributed.broadcast(tensor, 0)

    def shared(self, key: bytes) -> bytes:
        """The first process's key, for all."""
        if self.world == 1:
            return key
        box = self._box(key)
        with _talking():
            distributed.broadcast(box, 0)
        return bytes(box.tolist())

    def number(self, value: float) -> float:
        """The first process's number, for all."""
        number: float = struct.unpack("<d", self.shared(struct.pack("<d", value)))[0]
        return number

    def agree(self, digest: bytes, what: str) -> None:
        """Refuse if the processes were not given the same."""
        if self.world == 1:
            return
        mine = self._box(digest[:KEY_BYTES])
        boxes = [torch.zeros_like(mine) for _ in range(self.world)]
        with _talking():
            distributed.all_gather(boxes, mine)
        if any(not torch.equal(box, mine) for box in boxes):
            raise InvalidParameterError(
                f"The processes were not given the same {what}.", fix=f"start all of them with the same {what}."
            )

    def together(self, action: Callable[[], _T], what: str, *, at: int = 0) -> _T:
        """What an action gives here, if it succeeds in all processes; if it fails in one, it fails in all.

        ``at`` says how far this process is; that must be the same in all of them.
        """
        if self.world == 1:
            return action()
        done: list[_T] = []
        problem: BaseException | None = None
        try:
            done.append(action())
        except BaseException as found:  # noqa: BLE001 -- the others wait to hear of it, whatever it is
            problem = found
        box = torch.tensor([problem is None, at, -at], dtype=torch.int64, device=self._device)
        try:
            with _talking():
                distributed.all_reduce(box, distributed.ReduceOp.MIN)
        except LostProcessError:
            if problem is None:
                raise
        if problem is not None:
            raise problem
        ok, first, last = box.tolist()
        if not ok:
            raise InvalidParameterError(f"Another process could not {what}.", fix="see its error.")
        if first != -last:
            raise InvalidParameterError(
                "The processes are not at the same step.", fix="take the same batches in all of them, each one once."
            )
        return done[0]

    def _box(self, numbers: bytes) -> torch.Tensor:
        return torch.tensor(list(numbers), dtype=torch.uint8, device=self._device)


@contextlib.contextmanager
def _talking() -> Iterator[None]:
    """Say in plain words that another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(
            "Another process of this run is gone, or did not answer in time. What was charged stays charged.",
            fix="see its error; start all processes again and resume the newest checkpoint.",
        ) from error


def plain(model: Any) -> torch.nn.Module:
    """The module inside of ``DistributedDataParallel``, whose own averaging would send gradients without noise."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return model.module
    if isinstance(model, torch.nn.DataParallel):
        raise UnfitModelError(
            "DataParallel is not supported.", fix="use one process for each device, and torch.distributed."
        )
    if not isinstance(model, torch.nn.Module):
        raise UnfitModelError(
            f"The model must be a torch.nn.Module, but it is of type {type(model).__name__}.",
            fix="pass the module itself.",
        )
    return model
