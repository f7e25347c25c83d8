"""How many people, or how much epsilon, a private test needs: noise costs statistical power."""

import math
from dataclasses import asdict, dataclass
from typing import Any, final

from defocus.answers import plotting, showing
from defocus.errors import InvalidParameterError, Number
from defocus.privacy.pages import html_facts
from defocus.tables.power_planning import FEWEST, Plan

__all__ = ["Power", "power"]


@final
@dataclass(frozen=True, slots=True)
class Power:
    """A test that was planned: four numbers of which one was found, and what to do with the released means.

    ``n`` is the number of people in each group. ``critical`` is how far the released mean must be from the null
    value (of two groups: the means from each other) to call it a difference; :meth:`claims` decides exactly.
    """

    found: str
    n: int
    epsilon: float
    effect: float
    power: float
    plan: Plan
    mechanism: str
    critical: float
    noise: float
    sampling: float
    n_without_noise: int

    def __str__(self) -> str:
        return showing.text_facts(self._facts())

    def _repr_html_(self) -> str:
        return html_facts(self._facts())

    def to_dict(self) -> dict[str, Any]:
        """The plan with JSON types only."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "plan"} | asdict(self.plan)

    def claims(self, *released: tuple[float, float]) -> bool:
        """Whether to call it a difference, from what was released: (mean, count) of the group, or of both groups.

        The distance is weighed with the released counts, so that noise in the denominator of a mean does no harm: a
        mean times its count is a sum, whose law is known. Of two groups, twice the product of the counts over
        their sum takes the place of the count.

        >>> plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8)
        >>> plan.claims((0.36, 1031.2)), plan.claims((0.32, 1031.2))
        (True, False)
        """
        if len(released) != self.plan.groups:
            raise InvalidParameterError(
                f"The plan has {self.plan.groups} group(s), but {len(released)} were given.",
                fix="pass (mean, count) for each group.",
            )
        means, counts = [float(mean) for mean, _ in released], [float(count) for _, count in released]
        if not min(counts) > 0:
            return False  # so few people that the noise took them all
        weight = counts[0] if len(counts) == 1 else 2 * counts[0] * counts[1] / sum(counts)
        apart = abs(means[-1] - (self.plan.null if len(means) == 1 else means[0]))
        return apart * weight > self.critical * self.n

    def at(self, n: float, *, private: bool = True) -> float:
        """The power with ``n`` people in each group, all else the same; without noise if not ``private``."""
        return self.plan.power(n, self.epsilon if private else math.inf, self.effect)

    def plot(self) -> Any:
        """A matplotlib figure: power against the number of people, with and without noise (extra ``plot``)."""
        sizes = [self.n * 2 ** (i / 4) for i in range(-12, 9) if self.n * 2 ** (i / 4) >= FEWEST]
        figure = plotting.blank(6, 3.6)
        axes = figure.add_subplot()
        axes.plot(sizes, [self.at(n) for n in sizes], color=plotting.TEAL, label=f"epsilon {self.epsilon:.4g}")
        without = [self.at(n, private=False) for n in sizes]
        axes.plot(sizes, without, color="#888888", linestyle="--", label="without noise")
        axes.plot([self.n], [self.power], "o", color=plotting.TEAL)
        axes.axhline(self.plan.alpha, color="#888888", linewidth=0.8, linestyle=":")
        who = "people" if self.plan.groups == 1 else "people in each group"
        axes.set(xscale="log", ylim=(0, 1.02), xlabel=who, ylabel=f"power to notice {self.effect:.4g}")
        axes.set_xticks(sizes[::4], [f"{round(n):,}".replace(",", " ") for n in sizes[::4]])
        axes.minorticks_off()
        axes.legend()
        axes.grid(visible=True, alpha=0.3)
        return figure

    def _facts(self) -> dict[str, list[str]]:
        each = " in each of two groups" if self.plan.groups == 2 else ""
        against = "between the two means" if self.plan.groups == 2 else f"from {self.plan.null:.6g}"
        noise = f"{self.mechanism} noise at epsilon {self.epsilon:.4g}" + (
            f", delta {self.plan.delta:.3g}" if self.mechanism == "Gaussian" else ""
        )
        more = self.n / self.n_without_noise
        largest = ", at the largest variance that the bounds allow"
        spread = "" if self.plan.std is not None or (self.plan.low, self.plan.high) == (0, 1) else largest
        return {
            "test": [
                f"a difference of {self.effect:.6g} {against}, values in [{self.plan.low:.6g}, {self.plan.high:.6g}]"
            ],
            "people": [f"{self.n:,}{each}".replace(",", " ")],
            "privacy": [noise],
            "power": [
                f"{100 * self.power:.3g} % to notice it; {100 * self.plan.alpha:.3g} % to claim one where there is none"
            ],
            "rule": [f"call it a difference where the released mean is more than about {self.critical:.4g} away"],
            "error": [f"{self.sampling:.4g} from the choice of people{spread}", f"{self.noise:.4g} from the noise"],
            "price": [
                f"without noise {self.n_without_noise:,} people{each} would do: ".replace(",", " ")
                + (f"privacy takes {more:.3g} times as many" if more > 1.005 else "privacy takes hardly more")
            ],
        }


def power(
    *,
    proportion: Number | None = None,
    mean: Number | None = None,
    low: Number | None = None,
    high: Number | None = None,
    std: Number | None = None,
    effect: Number | None = None,
    n: int | None = None,
    epsilon: Number | None = None,
    power: Number | None = None,
    alpha: Number = 0.05,
    delta: Number = 0,
    groups: int = 1,
) -> Power:
    r"""Plan a test of a private mean or proportion: find the one of ``effect``, ``n``, ``epsilon``, ``power`` left out.

    The test is two-sided and compares one mean with a fixed value, or (``groups=2``) two means with each other. A mean
    is released as two sums, of (v − low) and of (high − v), each with the whole epsilon: their L1 distance is at most
    (high − low) when a person comes or goes. On [0, 1], about the value p, the released mean less p, times the released
    count, is off by :math:`(1-p)X - pY` with X and Y the noise of the two sums, besides the sampling error, which is
    taken as normal. The critical value is that of this very sum: Laplace noise has heavier tails than a normal
    variable of its variance, and a plain z-test would claim too much (6 % in place of 5 where noise prevails).

    Guarantee:
        Public parameters only: no data, no charge.
    Assumes:
        One value for each person, people independent, added or removed; n times epsilon at least 10, else it refuses.
        With two groups nobody is in both.

    Error:
        Of the normal approximation of sampling and, for two groups, of weighing with noisy counts: both vanish as n
        grows. Without ``std`` the largest variance with that mean is taken, (p − low)(high − p): enough people always.
    Reference:
        Kulesza, Suresh, Wang (2024), Mean estimation in the add-remove model of differential privacy;
        Bhatia, Davis (2000), A better bound on the variance.

    Args:
        proportion: the value without an effect, of values 0 and 1.
        mean: the same for values in [``low``, ``high``].
        low: the least value, declared.
        high: the largest value, declared.
        std: standard deviation of one person's value, if something is known about it.
        effect: the difference to notice; may be negative.
        n: people, in each group.
        epsilon: what the release of the mean, or of both means, costs.
        power: the probability to notice the effect.
        alpha: the probability to claim one that is not there.
        delta: above 0, Gaussian noise is used where it is less.
        groups: 1 or 2.

    >>> plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8)
    >>> plan.n, plan.n_without_noise
    (1027, 677)
    """
    plan = Plan.checked(
        proportion=proportion, mean=mean, low=low, high=high, std=std, groups=groups, alpha=alpha, delta=delta
    )
    given = {"effect": effect, "n": n, "epsilon": epsilon, "power": power}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameterError(
            f"Of effect, n, epsilon and power one is found from the others, but {len(missing)} were left out"
            f"{': ' * bool(missing)}{', '.join(missing)}.",
            fix="write for example power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8) to find n.",
        )
    (found,) = missing
    known = plan.solved({name: plan.given(name, value) for name, value in given.items() if value is not None}, found)
    size, loss, shift = int(known["n"]), known["epsilon"], known["effect"]
    design, width = plan.design(size, loss, shift), plan.high - plan.low
    law, bare = design.null_law, design.without_noise.null_law
    return Power(
        found=found,
        n=size,
        epsilon=loss,
        effect=shift,
        power=known["power"],
        plan=plan,
        mechanism="Gaussian" if design.gaussian else "Laplace",
        critical=law.critical(plan.alpha) * width,
        noise=math.sqrt(max(0.0, law.deviation**2 - bare.deviation**2)) * width,
        sampling=bare.deviation * width,
        n_without_noise=min(size, plan.fewest(shift, known["power"])),
    )
