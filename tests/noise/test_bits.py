import copy
import multiprocessing
import os
import pickle
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest

from defocus import noise
from defocus.errors import InvalidParameterError, NotBitsError
from defocus.noise.bits import bound, source
from defocus.noise.testing import seeded

pytestmark = pytest.mark.system

FORK = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_words_are_64_bits_writable_and_as_many_as_asked() -> None:
    for n in (0, 1, 7, 1000, (1 << 17) + 3):
        words = noise.system().words(n)
        assert words.shape == (n,)
        assert words.dtype == np.uint64
        assert words.flags.writeable


def test_every_bit_of_a_word_is_even() -> None:
    words = noise.system().words(1 << 18)
    ones = np.array([int(((words >> np.uint64(b)) & np.uint64(1)).sum()) for b in range(64)])
    assert (np.abs(ones - (1 << 17)) < 7 * 256).all()  # 7 standard deviations of 256


def test_no_mebibyte_repeats_another() -> None:
    pairs = noise.system().words(3 << 17).view("V16")  # of 128 bits: two words of 64 are equal once in 10⁸ runs
    assert np.unique(pairs).size == pairs.size


def test_calls_never_repeat_each_other() -> None:
    draws = [tuple(noise.system().words(4).tolist()) for _ in range(1000)]
    assert len(set(draws)) == 1000


@pytest.mark.parametrize("nbits", [0, 1, 5, 63, 64, 65, 128, 1000])
def test_integers_fill_their_bits_and_no_more(nbits: int) -> None:
    bits = noise.system()
    union = 0
    for _ in range(200):
        value = bits.integer(nbits)
        assert 0 <= value < 1 << nbits
        union |= value
    assert union == (1 << nbits) - 1


def test_the_pool_hands_each_word_out_once() -> None:
    values = [noise.system().integer(64) for _ in range(5000)]
    assert len(set(values)) == 5000


def test_threads_never_share_a_word() -> None:
    bits, found = noise.system(), list[list[int]]()
    start = threading.Barrier(8)

    def draw() -> None:
        start.wait()
        found.append([bits.integer(64) for _ in range(5000)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({word for words in found for word in words}) == 8 * 5000


def _next_words(count: int) -> list[int]:
    """What this process draws next, singly and in arrays."""
    return [*(noise.system().integer(64) for _ in range(count)), *noise.system().words(count).tolist()]


@FORK
def test_a_forked_child_never_repeats_its_parent() -> None:
    noise.system().integer(64)  # the pool now holds words that a careless child would hand out again
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"".join(w.to_bytes(8, "little") for w in _next_words(400)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        theirs = np.frombuffer(pipe.read(), "<u8").tolist()
    os.waitpid(child, 0)
    assert len(theirs) == 800
    assert not set(theirs) & set(_next_words(400))


@FORK
def test_a_fork_unseen_by_python_is_noticed_by_its_process_number(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = noise.system()
    bits.integer(64)
    pool = bits._pool  # type: ignore[attr-defined]  # the private source is the subject here
    left = set(pool)
    assert left
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert bits.integer(64) not in left
    assert not left & set(pool)


@FORK
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes_draw_different_words(method: str) -> None:
    """The source travels by name: each worker draws from its own."""
    bits = noise.system()
    bits.integer(64)
    with multiprocessing.get_context(method).Pool(2) as pool:
        theirs = pool.map(bits.integer, [64] * 1000, chunksize=10)
        arrays = pool.map(bits.words, [10] * 100, chunksize=1)
    drawn = [*theirs, *(word for array in arrays for word in array.tolist()), *_next_words(300)]
    assert len(set(drawn)) == len(drawn) == 2600


def test_a_copy_or_a_pickle_is_the_source_itself_and_carries_no_state() -> None:
    bits = noise.system()
    assert copy.copy(bits) is bits
    assert copy.deepcopy(bits) is bits
    assert pickle.loads(pickle.dumps(bits)) is bits  # noqa: S301  # our own bytes
    assert len(pickle.dumps(bits)) < 100


def test_none_means_the_system() -> None:
    assert source(None) is noise.system()
    mine = seeded(1)
    assert source(mine) is mine


@pytest.mark.parametrize("given", [0, 42, True, 1.5, "seed", np.random.default_rng(1), random.Random(1), seeded, b"k"])
@pytest.mark.parametrize(
    "call",
    [
        lambda bits: noise.discrete_gaussian(1, 3, bits),
        lambda bits: noise.discrete_laplace(1, 300, bits),
        lambda bits: noise.bernoulli(0.5, 3, bits),
        lambda bits: noise.bernoulli_exp(1, None, bits),
        lambda bits: noise.uniform(10, 3, bits),
        lambda bits: noise.permutation(3, bits),
        lambda bits: noise.exponential_choice([1, 2], bits),
    ],
)
def test_a_seed_or_a_generator_is_refused_everywhere(given: object, call: Callable[[object], object]) -> None:
    with pytest.raises(NotBitsError, match=rf"(?s)of type {type(given).__name__}.*To fix: leave bits out"):
        call(given)
    assert issubclass(NotBitsError, InvalidParameterError)


def test_all_exported_names_exist_and_no_seed_is_among_them() -> None:
    assert all(hasattr(noise, name) for name in noise.__all__)
    assert "seeded" not in noise.__all__


def test_bits_that_are_bound_to_a_value_repeat_for_it_differ_for_others_and_do_not_travel() -> None:
    secret = bytes(range(32))
    first = bound(secret, b"value").words(1000)
    assert (bound(secret, b"value").words(1000) == first).all()
    for other in (bound(secret, b"valuf"), bound(secret, b"value\0"), bound(bytes(32), b"value")):
        assert not (other.words(1000) == first).any()
    assert abs(int(np.bitwise_count(first).sum()) - 32_000) < 8 * 126.5  # 64 000 fair bits
    with pytest.raises(TypeError, match="stay"):
        pickle.dumps(bound(secret, b"value"))
