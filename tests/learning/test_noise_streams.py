"""Streams of bits that follow from a key."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from defocus.learning.noise import KEY_BYTES, Stream, derive, new_key
from defocus.noise.testing import seeded

KEY = bytes(range(32))


@given(step=st.integers(0, 10**6))
def test_a_stream_repeats_itself_and_no_other(step: int) -> None:
    first = Stream(KEY, "noise", step).words(8)
    assert (first == Stream(KEY, "noise", step).words(8)).all()
    for other in (Stream(KEY, "noise", step + 1), Stream(KEY, "sample", step), Stream(bytes(32), "noise", step)):
        assert not (first == other.words(8)).any()


def test_labels_are_not_run_together() -> None:
    assert len({derive(KEY, "a", "b"), derive(KEY, "ab"), derive(KEY, "a", 1), derive(KEY, "a", "1"), derive(KEY)}) == 5


def test_words_and_integers_go_on_in_one_stream() -> None:
    stream, again = Stream(KEY, "x"), Stream(KEY, "x")
    words = again.words(4)
    assert stream.integer(64) == int(words[0])
    assert stream.integer(128) == int(words[1]) << 64 | int(words[2])
    assert stream.integer(3) == int(words[3]) >> 61


def test_bits_are_even() -> None:
    words = Stream(KEY, "even").words(200_000)
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * len(words))


def test_a_key_is_drawn_from_bits() -> None:
    assert len(new_key(seeded(1))) == KEY_BYTES
    assert new_key(seeded(1)) == new_key(seeded(1)) != new_key(seeded(2))
