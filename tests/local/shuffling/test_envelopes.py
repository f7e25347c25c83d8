import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, SealError
from defocus.local.shuffling.envelopes import GROWTH, Key, seal

KEY = Key.generate()


@given(message=st.binary(max_size=200), context=st.binary(max_size=20))
def test_what_is_sealed_opens_with_the_key_and_grows_by_a_constant(message: bytes, context: bytes) -> None:
    sealed = seal(message, KEY.public, context)
    assert len(sealed) == len(message) + GROWTH
    assert KEY.open(sealed, context) == message


@given(at=st.integers(0, 200), flip=st.integers(1, 255))
def test_a_single_changed_byte_is_noticed(at: int, flip: int) -> None:
    sealed = bytearray(seal(b"a report", KEY.public, b"round"))
    sealed[at % len(sealed)] ^= flip
    with pytest.raises(SealError):
        KEY.open(bytes(sealed), b"round")


@given(garbage=st.binary(max_size=120))
def test_garbage_never_opens_and_never_crashes(garbage: bytes) -> None:
    with pytest.raises(SealError):
        KEY.open(garbage, b"round")


def test_other_readers_and_other_rounds_cannot_open() -> None:
    sealed = seal(b"a report", KEY.public, b"round 1")
    with pytest.raises(SealError):
        Key.generate().open(sealed, b"round 1")
    with pytest.raises(SealError):
        KEY.open(sealed, b"round 2")


def test_equal_messages_look_different() -> None:
    assert seal(b"yes", KEY.public, b"") != seal(b"yes", KEY.public, b"")


def test_a_key_survives_storage_and_is_not_shown() -> None:
    assert Key.from_bytes(KEY.to_bytes()).public == KEY.public
    assert KEY.to_bytes().hex() not in repr(KEY)


@pytest.mark.parametrize("bad", [b"", b"short", "x" * 32, None, 3])
def test_what_is_no_key_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameterError):
        Key.from_bytes(bad)
    with pytest.raises(InvalidParameterError):
        seal(b"", bad, b"")  # type: ignore[arg-type]  # what a caller without types may pass


def test_two_parties_prove_to_each_other_and_to_nobody_else_who_they_are() -> None:
    mine, theirs = Key.generate(), Key.generate()
    assert mine.proof(theirs.public, b"batch 0") == theirs.proof(mine.public, b"batch 0")
    others = {Key.generate().proof(theirs.public, b"batch 0"), mine.proof(theirs.public, b"batch 1")}
    assert mine.proof(theirs.public, b"batch 0") not in others
    with pytest.raises(InvalidParameterError):
        mine.proof(b"short", b"")
