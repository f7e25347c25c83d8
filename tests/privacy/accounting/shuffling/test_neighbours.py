import pytest

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.shuffling.neighbours import replaced_only
from defocus.privacy.events import Gaussian, Pure, Sampled, SampledBatch, Selected, Shuffled
from defocus.privacy.units import Adjacency

SHUFFLED = Shuffled(Pure(1), 100)


@pytest.mark.parametrize("event", [SHUFFLED, 3 * SHUFFLED + Gaussian(1), Selected(SHUFFLED, 0.1)])
def test_shuffled_reports_anywhere_need_a_value_that_is_replaced(event: Shuffled) -> None:
    replaced_only(event, Adjacency.REPLACE)
    with pytest.raises(UnsupportedEventError, match="can be counted"):
        replaced_only(event, Adjacency.ADD_REMOVE)


def test_other_events_may_have_any_neighbours() -> None:
    for adjacency in Adjacency:
        replaced_only(Sampled(Gaussian(1), 0.1) + Pure(1), adjacency)


def test_a_poisson_sample_has_a_size_that_depends_on_one_user() -> None:
    replaced_only(SampledBatch(SHUFFLED, 100, 200), Adjacency.REPLACE)
    with pytest.raises(UnsupportedEventError, match="Poisson"):
        replaced_only(Sampled(SHUFFLED, 0.1), Adjacency.REPLACE)
