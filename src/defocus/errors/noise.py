"""Refusals of the noise floor."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = ["NoiseOverflowError", "NotBitsError"]


class NotBitsError(InvalidParameterError):
    """Something that is not a source of random bits was passed as one."""

    def __init__(self, given: object) -> None:
        super().__init__(
            f"bits must be a source of cryptographic random bits, but it is of type {type(given).__name__}.",
            fix="leave bits out; a test that needs repeatable noise passes defocus.noise.testing.seeded(seed).",
        )


class NoiseOverflowError(DefocusError, OverflowError):
    """A sample does not fit the 64-bit integers in which noise is returned."""

    def __init__(self, digits: int) -> None:
        super().__init__(
            f"A noise sample of {digits} bits does not fit a 64-bit integer.",
            fix="use a smaller scale or a coarser grid; at scales up to 2**40 this has probability below "
            "exp(-2**22), so check the source of random bits as well.",
        )
