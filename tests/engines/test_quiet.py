"""What an engine said about a failure goes no further, in no attribute of what is raised."""

import traceback
from collections.abc import Callable

import pytest

from defocus.engines.quiet import quietly
from defocus.errors import EngineError, SourceError


def failing(problem: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise problem

    return work


def test_a_failure_leaves_nothing_behind() -> None:
    work = failing(ValueError("secret"))
    with pytest.raises(EngineError) as caught:
        quietly(work, lambda _: EngineError("It failed.", fix="ask again."))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_refusal_of_our_own_stays_as_it_is() -> None:
    known = SourceError("The table was closed.", fix="open it again.")
    with pytest.raises(SourceError) as caught:
        quietly(failing(known), lambda _: EngineError("It failed.", fix="ask again."))
    assert caught.value is known


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        quietly(failing(KeyboardInterrupt()), lambda _: EngineError("It failed.", fix="ask again."))


def test_what_the_work_gives_comes_back() -> None:
    assert quietly(lambda: 42, lambda _: EngineError("It failed.", fix="ask again.")) == 42
