"""What the tests of estimators share: every release of a fit, watched."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from defocus.learning.estimators import noisy_gradients
from defocus.mechanisms import Gaussian
from defocus.mechanisms.values import add
from defocus.noise import discrete_gaussian
from defocus.noise.testing import seeded


@dataclass
class Watched:
    """The exact sums that fits released, the noise that was added to them, and its declared scale."""

    exact: list[NDArray[np.int64]] = field(default_factory=list)
    noise: list[NDArray[np.int64]] = field(default_factory=list)
    scales: list[tuple[float, float]] = field(default_factory=list)

    def standardised(self) -> NDArray[np.float64]:
        """All noise in units of its declared standard deviation."""
        pairs = zip(self.noise, self.scales, strict=True)
        return np.concatenate([each / sigma for each, (sigma, _) in pairs])


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen = Watched()
    bits = seeded(20)

    def sample(self: Gaussian, value: Any, _bits: Any = None) -> Any:
        vector = np.atleast_1d(np.asarray(value, dtype=np.int64))
        assert len(vector) == self.dimension
        noise = discrete_gaussian(self.sigma, len(vector), bits)
        seen.exact.append(vector)
        seen.noise.append(noise)
        seen.scales.append((float(self.sigma), float(self.sensitivity)))
        noisy = add(vector, noise)
        return int(noisy[0]) if np.ndim(value) == 0 else noisy

    def added(value: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        seen.exact.append(value)
        return add(value, noise)

    monkeypatch.setattr(Gaussian, "sample", sample)
    monkeypatch.setattr(noisy_gradients, "add", added)
    return seen


def scale_p_value(standardised: NDArray[np.float64], scale: float = 1.0) -> float:
    """How well noise fits a standard deviation of ``scale``: two-sided, by the sum of its squares."""
    total, n = float((standardised**2).sum()) / scale**2, len(standardised)
    return float(2 * min(chi2.cdf(total, n), chi2.sf(total, n)))


@pytest.fixture
def fits() -> Callable[..., float]:
    return scale_p_value
