"""Several processes that train one model: one secret, one sample, one noise.

Guarantee:
    All processes draw the sample of a step from the same secret stream, so it is the very sample that one process would
    draw, and the same event is charged for it, once, by the first process. Each computes the clipped gradients of its
    part of the sample; their sum meets the noise in the first process, and what is noisy is what the others get back.
"""

from typing import Any, final

import torch
from torch import distributed

from defocus.errors import InvalidParameterError, UnfitModelError
from defocus.learning.streams import KEY_BYTES
from defocus.noise.integers import Integers

__all__ = ["Ranks", "plain"]


@final
class Ranks:
    """The processes of ``torch.distributed``, or this one alone where none is set up."""

    __slots__ = ("rank", "world")

    def __init__(self) -> None:
        several = distributed.is_available() and distributed.is_initialized()
        self.rank: int = distributed.get_rank() if several else 0
        self.world: int = distributed.get_world_size() if several else 1

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
            for total in sums:
                distributed.reduce(total, 0)

    def told(self, tensors: list[torch.Tensor]) -> None:
        """Give everyone what the first process has."""
        if self.world > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, 0)

    def shared(self, key: bytes) -> bytes:
        """The first process's key, for all."""
        if self.world == 1:
            return key
        box = torch.tensor(list(key), dtype=torch.uint8)
        distributed.broadcast(box, 0)
        return bytes(box.tolist())

    def agree(self, digest: bytes, what: str) -> None:
        """Refuse if the processes were not given the same."""
        if self.world == 1:
            return
        mine = torch.tensor(list(digest[:KEY_BYTES]), dtype=torch.uint8)
        boxes = [torch.zeros_like(mine) for _ in range(self.world)]
        distributed.all_gather(boxes, mine)
        if any(not torch.equal(box, mine) for box in boxes):
            raise InvalidParameterError(
                f"The processes were not given the same {what}.", fix=f"start all of them with the same {what}."
            )

    def succeeded(self, *, ok: bool) -> bool:
        """Whether what the first process tried worked."""
        if self.world == 1:
            return ok
        box = torch.tensor([int(ok)])
        distributed.broadcast(box, 0)
        return bool(box.item())


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
