"""What tests of runs share."""

import logging

import pytest

from defocus.learning import trainer

# pytest listens to every logger that keeps its messages to itself, and PyTorch writes its diary of traces once anybody
# listens, a stack of calls for each tensor.
logging.getLogger("torch.__trace").propagate = True


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make trainers without the checks of their models, which take most of the time of short runs."""
    monkeypatch.setattr(trainer, "check_independent", lambda *_, **__: None)
