import json
from fractions import Fraction

import pytest

from defocus import mechanisms
from defocus.errors import InvalidParameterError
from defocus.ledger.storing import stored_event
from defocus.privacy.events import Event, Gaussian, Laplace, Pure, Sampled, compose
from defocus.privacy.wire import from_wire


@pytest.mark.parametrize("event", [Pure(0.1), Laplace(Fraction(1, 3)), 7 * Sampled(Gaussian(1.5), 0.01) + Pure(1)])
def test_what_is_stored_reads_back_as_the_same_event(event: Event) -> None:
    assert from_wire(json.loads(json.dumps(stored_event(event)))) == event


def test_an_event_of_a_foreign_class_is_refused() -> None:
    class Mine(Event):
        pass

    with pytest.raises(InvalidParameterError, match="not an event a ledger can store"):
        stored_event(Mine())


def test_an_endless_event_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="several parts"):
        stored_event(compose(Pure(Fraction(1, 10**80 + n)) for n in range(12_000)))


def test_a_mechanism_in_place_of_its_event_is_named_as_one() -> None:
    with pytest.raises(InvalidParameterError, match="got the mechanism Laplace") as refusal:
        stored_event(mechanisms.Laplace(scale=2))
    assert "mechanism.event" in refusal.value.fix
    with pytest.raises(InvalidParameterError, match="got the class Laplace"):
        stored_event(Laplace)
