"""What tests of runs share."""

import pytest

from defocus.learning import trainer


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make trainers without the checks of their models, which take most of the time of short runs."""
    monkeypatch.setattr(trainer, "check_independent", lambda *_, **__: None)
