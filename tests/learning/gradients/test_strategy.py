"""The fastest way is measured once and remembered."""

from defocus.learning.gradients.pieces.piece import Choices


def test_the_faster_way_is_taken_and_not_measured_again() -> None:
    runs: list[str] = []

    def quick() -> None:
        runs.append("quick")

    def slow() -> None:
        runs.append("slow")
        sum(range(100_000))

    choices = Choices()
    assert choices.pick("work", {"slow": slow, "quick": quick}) == "quick"
    measured = len(runs)
    assert choices.pick("work", {"slow": slow, "quick": quick}) == "quick"
    assert len(runs) == measured
    assert choices.remembered == {"work": "quick"}


def test_what_was_remembered_is_taken_unmeasured_if_it_is_still_offered() -> None:
    never = lambda: (_ for _ in ()).throw(AssertionError)  # noqa: E731 -- must not run
    assert Choices({"work": "slow"}).pick("work", {"slow": never, "quick": never}) == "slow"
    assert Choices({"work": "gone"}).pick("work", {"only": never}) == "only"


def test_a_forced_way_is_taken_wherever_it_is_offered() -> None:
    choices = Choices({"work": "a"}, forced=("c", "b"))
    assert choices.pick("work", {"a": print, "b": print}) == "b"
