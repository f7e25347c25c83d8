"""Several owners of one example: what is charged beside what is owed, and how many examples are left for which noise.

``python benchmarks/owners.py``. What is owed is computed here, by sums of losses on a grid, for the mixture over the
binomial number of a person's examples in a sample.
"""

from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

from defocus.learning.data import Units
from defocus.learning.sampling import owed
from defocus.privacy import SampledGaussian, account, calibrate

DELTA = 1e-5


def exact(k: int, rate: float, sigma: float, steps: int) -> float:
    """Epsilon of steps on samples in which a person has a binomial number of k examples; to about 1e-3."""
    n, width = 1 << 18, 2e-4
    y = np.linspace(-14 * sigma, k + 14 * sigma, 400_001)
    there = sum(weight * norm.pdf(y, j, sigma) for j, weight in enumerate(binom.pmf(np.arange(k + 1), k, rate)))
    absent = norm.pdf(y, 0, sigma)
    found = 0.0
    for one, other in ((there, absent), (absent, there)):
        loss = np.log(one) - np.log(other)
        places = np.clip(np.round(loss / width).astype(int) + n // 2, 0, n - 1)
        masses = np.bincount(places, one, minlength=n)
        spectrum = np.fft.rfft(np.fft.ifftshift(masses / masses.sum()))
        law = np.fft.fftshift(np.fft.irfft(spectrum**steps, n))
        grid = (np.arange(n) - n // 2) * width

        def over(epsilon: float, law: object = law, grid: object = grid) -> float:
            far = np.asarray(grid) > epsilon
            return float((np.asarray(law)[far] * -np.expm1(epsilon - np.asarray(grid)[far])).sum()) - DELTA

        found = max(found, float(brentq(over, 0, 20)))
    return found


def main() -> None:
    """Print both tables."""
    print("k rate noise steps | owed charged")
    for k, rate, sigma, steps in (
        (2, 0.01, 1.5, 1000), (4, 0.01, 2.0, 1000), (4, 0.01, 4.0, 1000), (8, 0.01, 4.0, 1000), (8, 0.01, 8.0, 1000),
        (4, 0.05, 6.0, 500),
    ):  # fmt: skip
        charged = account(owed(steps * SampledGaussian(sigma, rate), k)).epsilon(DELTA)
        print(k, rate, sigma, steps, "|", f"{exact(k, rate, sigma, steps):.3f} {charged:.3f}")
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 5001)
    users = rng.choice(5000, (50_000, 3), p=weights / weights.sum())
    extra = rng.random(users.shape) < 0.5
    extra[:, 0] = False
    owners = [row[~left].tolist() for row, left in zip(users, extra, strict=True)]
    print(
        "k | used of 50000 examples, noise for epsilon 3 in 1000 steps of 256; the same for all of them, if k was true"
    )
    for k in (1, 2, 4, 8, 16, 32):
        used = Units(len(owners), owners, k).count
        print(k, "|", used, f"{_noise(k, used):.3g}", f"{_noise(k, len(owners)):.3g}")


def _noise(k: int, size: int) -> float:
    rate = Fraction(256, size)
    return calibrate(lambda z: 1000 * owed(SampledGaussian(z, rate), k), epsilon=3, delta=DELTA)


if __name__ == "__main__":
    main()
