"""What the tests of estimators share: every release of a fit, watched."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from defocus import rows
from defocus.learning.estimators import descent, fit_budget
from defocus.learning.estimators.fit_budget import FitBudget, Noise
from defocus.learning.ledgers import place_of
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import add
from defocus.noise import Bits
from defocus.release.paid_computation import silence

_NOWHERE = "nowhere.ledger"


@dataclass
class Watched:
    """The exact sums that fits released, the noise that was really added to them, and the mechanism that was asked."""

    exact: list[NDArray[np.int64]] = field(default_factory=list)
    noise: list[NDArray[np.int64]] = field(default_factory=list)
    asked: list[Noise] = field(default_factory=list)

    def add(self, asked: Noise, exact: Any, noisy: Any) -> None:
        self.asked.append(asked)
        self.exact.append(np.atleast_1d(np.asarray(exact, dtype=np.int64)))
        self.noise.append(np.atleast_1d(np.asarray(noisy, dtype=np.int64)) - self.exact[-1])

    def clear(self) -> None:
        for each in (self.exact, self.noise, self.asked):
            each.clear()

    def standardised(self) -> NDArray[np.float64]:
        """All noise in units of its declared standard deviation, or of the declared scale of Laplace noise."""
        scales = [float(by.sigma if isinstance(by, Gaussian) else by.scale) for by in self.asked]
        return np.concatenate([each / scale for each, scale in zip(self.noise, scales, strict=True)])


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """What the mechanisms are asked and answer; they are left as they are. Gradients draw their noise ahead."""
    seen, ahead = Watched(), list[Gaussian]()
    drawn = descent._fresh
    sampled: dict[type, Callable[..., Any]] = {Gaussian: Gaussian.sample, Laplace: Laplace.sample}

    def sample(self: Noise, value: Any, bits: Any = None) -> Any:
        noisy = sampled[type(self)](self, value, bits)
        seen.add(self, value, noisy)
        return noisy

    def fresh(noise: Gaussian, bits: Bits) -> Any:
        ahead.append(noise)
        return drawn(noise, bits)

    def added(value: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        noisy = add(value, noise)
        seen.add(ahead[-1], value, noisy)
        return noisy

    for kind in sampled:
        monkeypatch.setattr(kind, "sample", sample)
    monkeypatch.setattr(descent, "_fresh", fresh)
    monkeypatch.setattr(descent, "add", added)
    return seen


def scale_p_value(standardised: NDArray[np.float64], scale: float = 1.0) -> float:
    """How well noise fits a standard deviation of ``scale``: two-sided, by the sum of its squares."""
    total, n = float((standardised**2).sum()) / scale**2, len(standardised)
    return float(2 * min(chi2.cdf(total, n), chi2.sf(total, n)))


def laplace_p_value(standardised: NDArray[np.float64], scale: float = 1.0) -> float:
    """How well noise fits Laplace noise of this ``scale``: sizes are exponential, and their sum is a gamma variable."""
    total, n = 2 * float(abs(standardised).sum()) / scale, 2 * len(standardised)
    return float(2 * min(chi2.cdf(total, n), chi2.sf(total, n)))


@pytest.fixture
def fits() -> Callable[..., float]:
    return scale_p_value


@pytest.fixture
def fits_laplace() -> Callable[..., float]:
    return laplace_p_value


@pytest.fixture(autouse=True)
def unpaid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that name no ledger are computed and not charged, which is quick; tests of charges name one."""
    opened, spend = fit_budget._opened, FitBudget.spend

    def found(ledger: Any, data: Any, unit: Any) -> Any:
        return _NOWHERE if ledger is None else place_of(ledger, data, unit)

    def spent(self: FitBudget, event: Any, compute: Any, **more: Any) -> Any:
        if self.ledger != _NOWHERE:
            return spend(self, event, compute, **more)
        with silence():
            return compute(), None

    def nowhere(ledger: Any, unit: Any, budget: Any) -> Any:
        terms = SimpleNamespace(unit=rows() if unit is None else unit, budget=None)
        return nullcontext(terms) if ledger == _NOWHERE else opened(ledger, unit, budget)

    monkeypatch.setattr(fit_budget, "place_of", found)
    monkeypatch.setattr(fit_budget, "_opened", nowhere)
    monkeypatch.setattr(FitBudget, "spend", spent)
