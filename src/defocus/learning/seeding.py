"""What torch draws within a step, for dropout and augmentation. No privacy rests on it, but repeating a step does."""

import contextlib
from collections.abc import Iterator

import torch

from defocus.learning.streams import derive

__all__ = ["seeded"]


@contextlib.contextmanager
def seeded(key: bytes, step: int, rank: int, device: torch.device) -> Iterator[None]:
    """Let torch's generators start from a seed of the run, the step and the process, and be as they were afterwards.

    So a step that is taken again, in whichever process and after whatever was drawn elsewhere, drops what it dropped.
    """
    seed = int.from_bytes(derive(key, "random", step, rank, size=8), "little")
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
