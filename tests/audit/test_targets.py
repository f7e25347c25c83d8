import pytest
from tests.waiting import HANGS

from defocus.audit import attack, targets
from defocus.errors import DefocusError, UnknownTargetError
from defocus.noise.testing import seeded


def test_names_lead_to_targets_and_cannot_be_changed() -> None:
    known = targets(seeded(1))
    assert all(name == target.name for name, target in known.items())
    assert {"laplace", "broken/half-noise", "broken/float-laplace", "broken/truncated-noise", "broken/nan"} <= set(
        known
    )
    with pytest.raises(TypeError):
        known["mine"] = known["laplace"]  # type: ignore[index]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["broken/half-noise", "laplace"])
def test_a_target_is_attacked_by_its_name(name: str) -> None:
    finding = attack(name, 10_000, 0.99, bits=seeded(2))
    assert finding.violation is name.startswith("broken/")
    assert finding.confidence == 0.99
    assert finding.claimed == pytest.approx(1, abs=1e-4)


def test_an_attack_can_be_given_a_time() -> None:
    finding = attack("broken/less-noise", seconds=HANGS, bits=seeded(3))
    assert finding.violation
    assert finding.seconds < HANGS


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(UnknownTargetError, match=r"(?s)'broken/half-nose'.*broken/half-noise") as caught:
        attack("broken/half-nose")
    assert isinstance(caught.value, DefocusError)
    assert isinstance(caught.value, LookupError)
