from defocus.errors import DefocusError, InvalidParameterError, NotShuffledError, SealError


def test_refusals_say_what_happened_and_how_to_mend_it() -> None:
    refused = NotShuffledError("secure aggregation", "only a sum is shown", "charge the local event.")
    assert str(refused) == (
        "There is no amplification by shuffling in secure aggregation: only a sum is shown.\n"
        "To fix: charge the local event."
    )
    assert isinstance(refused, InvalidParameterError)
    assert str(SealError("A batch")).startswith("A batch could not be opened.\nTo fix: ")
    assert isinstance(SealError("A batch"), DefocusError)
