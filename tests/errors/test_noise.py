import pickle

from defocus.errors import DefocusError, NoiseOverflowError, NotBitsError


def test_refusals_survive_the_way_between_processes() -> None:
    for error in (NotBitsError(3), NoiseOverflowError(70)):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
        assert type(copy) is type(error)
        assert str(copy) == str(error)


def test_they_are_what_python_would_raise_as_well() -> None:
    assert issubclass(NotBitsError, DefocusError | ValueError)
    assert issubclass(NoiseOverflowError, OverflowError)


def test_a_refused_generator_is_named_by_its_type_and_never_shown() -> None:
    seed = "19991231"
    assert seed not in str(NotBitsError(seed))
    assert "of type str" in str(NotBitsError(seed))
