"""What a test draws depends on its name and on nothing else."""

import os
import random

import numpy as np
import pytest
import torch
from tests.cases import left_out_of
from tests.repeatable import Repeatable

from defocus.noise import system

seen: list[int] = []


def drawn() -> list[int]:
    """Single integers, arrays of several blocks, and what is not noise."""
    words = system().words(3 << 17)
    shared = [random.getrandbits(64), int(np.random.randint(2**62)), int(torch.randint(2**62, ()))]  # noqa: NPY002
    return [system().integer(64), *words[:: 1 << 16].tolist(), system().integer(64), *shared]


def test_a_name_draws_the_same_always_and_another_name_or_salt_another() -> None:
    names = [(0, "a"), (0, "b"), (1, "a"), (0, "a")]
    first, other, salted, again = [[*_draws(salt, name)] for salt, name in names]
    assert first == again
    assert not set(first) & {*other, *salted}


def _draws(salt: int, name: str) -> list[int]:
    with Repeatable(salt).drawing(name):
        return [*drawn(), *drawn()]


def test_no_draw_repeats_another() -> None:
    several = [each for _ in range(50) for each in drawn()]
    assert len(set(several)) == len(several)


def test_what_is_drawn_inside_is_not_seen_outside() -> None:
    """A fixture that is set up by one test, and found by another, gives both the same noise."""
    with Repeatable(0).drawing("one"):
        alone = [random.random(), int(system().words(1)[0])]
    with Repeatable(0).drawing("one"):
        with Repeatable(0).drawing("fixture"):
            drawn()
        assert [random.random(), int(system().words(1)[0])] == alone


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_repeat_its_parent() -> None:
    system().integer(64)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, system().words(4).tobytes() + system().integer(64).to_bytes(8, "little"))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        theirs = np.frombuffer(pipe.read(), "<u8").tolist()
    os.waitpid(child, 0)
    assert len(theirs) == 5
    assert not {*theirs} & {*system().words(4).tolist(), system().integer(64)}


@pytest.mark.parametrize("_time", ["first", "second"])
def test_each_test_draws_noise_of_its_own(_time: str) -> None:
    seen.append(system().integer(64))
    assert len(set(seen)) == len(seen)


@pytest.mark.system
def test_marked_tests_draw_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: int) -> bytes:
        raise OSError("no generator")

    monkeypatch.setattr(os, "urandom", gone)
    with pytest.raises(OSError, match="no generator"):
        system().words(1)
    with Repeatable(0).drawing("here"):
        system().words(1)


@pytest.mark.parametrize(("cases", "most"), [(0, 8), (7, 8), (8, 8), (9, 8), (100, 8), (3, 2)])
def test_fewer_cases_are_the_first_the_last_and_some_between(cases: int, most: int) -> None:
    out = left_out_of(list(range(cases)), most)
    kept = sorted(set(range(cases)) - set(out))
    assert len(kept) == min(cases, most)
    assert not {0, cases - 1} & set(out)
    assert max(np.diff(kept), default=0) <= max(1, -(-cases // (most - 1)))
