"""Nothing in the suite is random unless it says so: whoever leaves ``bits`` out draws a stream of the test's own.

The system's source is fed from a stream that depends on the name of the test, so each test draws the same noise on
every run, in whatever order and beside whatever else; likewise from the generators of Python, NumPy and PyTorch that
all code shares. Fixtures that several tests share have streams of their own. Tests of the system's source itself are
marked ``system``; processes that tests start or fork draw from the system.
``pytest --salt=7`` draws another noise everywhere: a test that fails for some salt asks more than is certain.
"""

import hashlib
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from defocus.noise import bits, system
from defocus.noise.testing import seeded


class Repeatable:
    """The plugin: one stream for each test, and for each fixture that outlives one."""

    def __init__(self, salt: int) -> None:
        self.salt = salt

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        if item.get_closest_marker("system"):
            return (yield)
        with self.drawing(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
        if request.scope == "function":
            return (yield)
        with self.drawing(f"{request.node.nodeid}::{fixturedef.argname}[{getattr(request, 'param', '')}]"):
            return (yield)

    @contextmanager
    def drawing(self, name: str) -> Iterator[None]:
        """Draw the noise of this name."""
        stream = seeded(int.from_bytes(hashlib.sha256(f"{self.salt} {name}".encode()).digest()))
        lock, here, before = threading.Lock(), os.getpid(), bits._stretching

        def stretch(part: memoryview) -> None:
            with lock:
                part[:] = stream.words(-(-len(part) // 8)).tobytes()[: len(part)]

        def stretching() -> Callable[[memoryview], None]:
            return stretch if os.getpid() == here else before()  # a forked child must not repeat its parent

        with pytest.MonkeyPatch.context() as patch, _shared_generators(stream):
            patch.setattr(bits, "_stretching", stretching)
            _forget()
            yield
        _forget()


def _forget() -> None:
    """Leave none of the words that the source keeps for single integers."""
    system().forget()  # type: ignore[attr-defined]  # the private source is the subject here


@contextmanager
def _shared_generators(stream: bits.Bits) -> Iterator[None]:
    torch = sys.modules.get("torch")
    kept = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()  # noqa: NPY002
    random.seed(stream.integer(64))
    np.random.seed(stream.integer(32))  # noqa: NPY002
    if torch:
        _seed(torch, stream.integer(64))
    yield
    random.setstate(kept[0])
    np.random.set_state(kept[1])  # noqa: NPY002
    if torch:
        torch.set_rng_state(kept[2])


def _seed(torch: Any, seed: int) -> None:
    """As ``torch.manual_seed``, which notes for every absent device the stack from which it was called."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
