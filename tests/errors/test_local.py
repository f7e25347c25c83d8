import pickle

import pytest

from defocus.errors import DefocusError, MismatchedOracleError, OutOfDomainError, UnreadableDescriptionError


@pytest.mark.parametrize(
    "error",
    [
        OutOfDomainError("5 categories", rule="outside='other'"),
        MismatchedOracleError("Reports", "00ff", "ff00"),
        UnreadableDescriptionError("it is empty"),
    ],
)
def test_every_refusal_says_what_to_do_and_survives_a_process(error: DefocusError) -> None:
    assert isinstance(error, ValueError)
    assert "\nTo fix: " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own error
