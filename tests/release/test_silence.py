"""No warning is shown while private values are computed on."""

import threading
import warnings

import numpy as np
import pytest
from tests.waiting import HANGS

from defocus.release.silence import silence


def test_nothing_is_warned_of_inside_and_everything_is_as_before_outside() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with silence():
            warnings.warn("the largest value is 12", stacklevel=1)
            assert np.isinf(np.array([1.0]) / 0).all()
        assert list(warnings.filters) == before
        assert not seen
        warnings.warn("public", stacklevel=1)
    assert [str(each.message) for each in seen] == ["public"]


def test_warnings_that_are_errors_are_silent_too_and_failures_end_the_silence() -> None:
    before = list(warnings.filters)

    def fail() -> None:
        with silence():
            warnings.warn("an error elsewhere", stacklevel=1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(warnings.filters) == before


def test_no_thread_ends_the_silence_of_another() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        inside, ended = threading.Event(), threading.Event()

        def other() -> None:
            with silence():
                inside.set()
                ended.wait(HANGS)
                warnings.warn("private", stacklevel=1)

        with silence():
            thread = threading.Thread(target=other)
            thread.start()
            assert inside.wait(HANGS)
        ended.set()
        thread.join()
        assert list(warnings.filters) == before
    assert not seen


def test_filters_of_others_are_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.resetwarnings()
        with silence():
            warnings.simplefilter("ignore")
        assert [each[:3] for each in warnings.filters] == [("ignore", None, Warning)]
