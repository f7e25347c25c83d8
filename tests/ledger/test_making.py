from pathlib import Path

import pytest

from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows


@pytest.mark.parametrize("budget", [Budget(1e-6, 0.9), Budget(1, 0.5)])
def test_no_ledger_is_made_for_a_budget_that_promises_nothing(tmp_path: Path, budget: Budget) -> None:
    with pytest.raises(InvalidParameterError, match="may be broken altogether"):
        Ledger.open(tmp_path / "a", dataset="visits", unit=rows(), budget=budget)
    assert not (tmp_path / "a").exists()
