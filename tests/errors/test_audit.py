import pickle

from defocus.errors import UnknownTargetError


def test_an_unknown_target_names_its_neighbours() -> None:
    error = UnknownTargetError("laplacian", ["laplace", "gaussian", "broken/nan"])
    assert "'laplacian'" in str(error)
    assert "To fix: choose one of the 3 names of audit.targets(), for example laplace" in str(error)


def test_a_hostile_name_is_shortened_and_quoted() -> None:
    text = str(UnknownTargetError("x\n" * 1000, ["laplace"]))
    assert len(text) < 300
    assert "\\n" in text


def test_it_survives_pickling() -> None:
    error = UnknownTargetError("a", ["laplace"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  # our own bytes
