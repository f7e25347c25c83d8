"""Choosing a budget: from a risk that may be taken, from an error or a power that is needed, or from both.

The risk is that of :class:`defocus.privacy.risk.Risk`. What is needed says how much noise there may be, as tables add
it, and that gives the least budget under which a ledger admits so many releases, however they are chosen.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from defocus.answers import plots
from defocus.answers.tables import text_facts
from defocus.errors import InvalidParameterError, LedgerMismatchError, Number, count, finite, positive
from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_delta
from defocus.privacy.events import DiscreteLaplace, Event
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.html import html_facts
from defocus.privacy.numbers import at_least, at_most, bisect, least_allowed, roughly
from defocus.privacy.risk import Risk, budget_of, checked_kind, kind_of, size
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Adjacency
from defocus.tables.noise import gaussian_event
from defocus.tables.power import Power

__all__ = ["Choice", "Need", "choose_budget"]

_GRID = 2**24
"""Steps for one person, as fine as tables count: so noise errs as continuous noise does."""
_CROWD = 10
"""So many times the noise there must be people: with fewer, the law of a released mean is another one."""
_MOST = 10**12
_ROOM = 1 + 2e-5
"""More than what limits are rounded by, so that what is said to help does."""
_MEAN_SIZE = {"Laplace": 1.0, "Gaussian": math.sqrt(2 / math.pi)}
"""The expected absolute value of noise of scale, or standard deviation, one."""


@final
@dataclass(frozen=True, slots=True)
class Need:
    """What each of so many releases must be good for: a small error of a count or a mean, or the power of a test.

    Noise is measured in people: by its scale (Laplace) or its standard deviation (Gaussian).

    >>> Need(error=10, people=2000, bounds=(0, 100)).noise("Laplace")
    200.0
    """

    error: float | None = None
    people: int | None = None
    bounds: tuple[float, float] | None = None
    power: Power | None = None
    releases: int = 1

    def __str__(self) -> str:
        if self.power is not None:
            each = " in each of two groups" if self.power.plan.groups == 2 else ""
            said = f"a test of {_spaced(self.power.n)} people{each} notices an effect of {self.power.effect:.6g}"
            said += f" with a power of {self.power.power:.4g}"
        else:
            what = "a count"
            if self.bounds is not None:
                low, high = self.bounds
                what = f"a mean of {_spaced(self.people or 0)} values in [{low:.6g}, {high:.6g}]"
            said = f"{what} is off by at most {self.error:.6g} on average"
        return said + (f", in each of {_spaced(self.releases)} releases" if self.releases > 1 else "")

    @property
    def crowd(self) -> int | None:
        """How many people are asked, where that matters."""
        return self.people if self.power is None else self.power.n

    def of(self, people: int) -> "Need":
        """The same for another number of people."""
        if self.power is None:
            return replace(self, people=people)
        return replace(self, power=replace(self.power, n=people))

    def at(self, law: str, noise: float) -> float:
        """The expected absolute error, or the power, with so much noise."""
        if self.power is None:
            low, high = self.bounds or (0.0, 1.0)
            return (high - low) / (self.crowd or 1) * _MEAN_SIZE[law] * noise
        plan = self.power.plan
        bare = plan.design(self.power.n, math.inf, self.power.effect)
        noisy = replace(bare, laplace=noise) if law == "Laplace" else replace(bare, gaussian=noise)
        return noisy.power(plan.alpha)

    def met(self, law: str, noise: float) -> bool:
        """Whether so much noise is little enough."""
        if self.crowd is not None and noise * _CROWD > self.crowd * (1 + 1e-9):
            return False
        if self.power is not None:
            return self.at(law, noise) >= self.power.power
        return self.at(law, noise) <= (self.error or 0.0) * (1 + 1e-12)

    def noise(self, law: str) -> float:
        """The most noise with which it is met."""
        most = math.inf if self.crowd is None else self.crowd / _CROWD
        if self.power is None:
            return min(most, (self.error or 0.0) / self.at(law, 1.0))
        return most if self.met(law, most) else bisect(lambda x: self.met(law, x), most, 0.0, relative=1e-9).yes

    def event(self, law: str, noise: float) -> Event:
        """What all releases owe together, as tables add noise."""
        if law == "Laplace":
            return self.releases * DiscreteLaplace(noise * _GRID, _GRID)
        return self.releases * gaussian_event(Sensitivity(_GRID, _GRID), noise)

    def least(self, kind: str, delta: Number) -> tuple[Budget, str]:
        """The least budget under which a new ledger admits all releases with so much noise, and which noise that is."""
        found = []
        for law in _laws(kind):
            noise = self.noise(law)
            if not 1e-4 <= noise <= 1e9:
                few = noise < 1
                raise InvalidParameterError(
                    f"What is needed leaves room for noise of {noise:.3g} people: too {'little' if few else 'much'} for"
                    " a budget that means anything.",
                    fix="accept a larger error." if few else "ask for a smaller error.",
                )
            event = self.event(law, noise)

            def admits(amount: float, event: Event = event) -> bool:
                rule = filter_for(budget_of(kind, amount, delta))
                return rule.admits(rule.start, event)

            amount = least_allowed(admits, low=1e-12, high=1e12, precision=1e-6, what=str(self))
            short = float(at_least(amount))
            found.append((short if admits(short) else amount, law))
        amount, law = min(found)
        return budget_of(kind, amount, delta), law

    def best(self, budget: Budget) -> tuple[str, float]:
        """The noise that does best among those that a ledger with this budget admits, and how much of it."""
        rule = filter_for(budget)
        every = [(law, rule.calibrate(partial(self.event, law))) for law in _laws(kind_of(budget))]
        return min(every, key=lambda one: (1 if self.power is None else -1) * self.at(*one))


def _laws(kind: str) -> tuple[str, ...]:
    """The noise that tables may add. The filter of a budget in mu does not know discrete Gaussian noise."""
    return ("Laplace", "Gaussian") if kind == "approximate" else ("Laplace",)


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """Which budget to choose: between the least that is needed and the most that the risk allows.

    ``budget`` is the one to take: the least that is needed, or the most that is allowed where nothing is needed; None
    where the two do not meet. :meth:`take` takes another one between them.
    """

    kind: str
    budget: Budget | None
    needed: Budget | None
    allowed: Budget | None
    noise: str | None
    risk: Risk | None
    need: Need | None

    @property
    def meets(self) -> bool:
        """Whether there is a budget that keeps the risk and does what is needed."""
        return self.needed is None or self.allowed is None or size(self.needed) <= size(self.allowed)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is this budget, in plain words, one sentence each."""
        said = []
        if self.risk is not None and self.allowed is not None:
            said.append(f"the risk allows at most {_told(self.allowed)}: {_risk_words(self.risk)}")
        if self.need is not None and self.needed is not None:
            said.append(f"what is needed takes at least {_told(self.needed)}, with {self.noise} noise: {self.need}")
        return tuple(said)

    @property
    def remedies(self) -> dict[str, float]:
        """Where the two do not meet: numbers that would each make them meet, by the name of the parameter.

        ``posterior`` and ``attack`` are the largest belief and the largest true-positive rate: where both are limits,
        both must be raised. Empty where they meet.
        """
        if self.meets or self.risk is None or self.need is None or self.allowed is None or self.needed is None:
            return {}
        need, risk, law_noise = self.need, self.risk, self.need.best(self.allowed)
        more = budget_of(self.kind, size(self.needed) * _ROOM, self.needed.delta)
        found: dict[str, float] = {}
        best = need.at(*law_noise)
        if need.crowd is None or law_noise[1] * _CROWD <= need.crowd:
            if need.power is None:
                found["error"] = float(at_least(best * _ROOM, 4))
            elif best > need.power.plan.alpha * _ROOM:
                found["power"] = float(at_most(best / _ROOM, 4))
        if need.crowd is not None and (people := _fewest(need, *law_noise)) is not None:
            found["people"] = people
        if (releases := _admitted(need, self.allowed)) > 0:
            found["releases"] = releases
        for name, limit, at in (
            ("posterior", risk.posterior, risk.posterior_at),
            ("attack", risk.attack, risk.attack_at),
        ):
            if limit is not None and limit[1] < (raised := float(at_least(at(more), 4))) < 1:
                found[name] = raised
        return found

    def take(self, budget: Budget) -> "Choice":
        """The same choice with another budget, between the least that is needed and the most that is allowed.

        >>> choose_budget(posterior=(0.5, 0.75)).take(Budget(1)).budget
        Budget(epsilon=1)
        """
        given: Any = budget
        if not isinstance(given, Budget) or kind_of(budget) != self.kind or not self._between(budget):
            raise InvalidParameterError(
                f"{budget!r:.100} is not within this choice: {self._range()}.",
                fix="take a budget within it, or choose again with another risk or need.",
            )
        return replace(self, budget=budget)

    def sign(self, ledger: Ledger, *, who: str | None = None) -> Ledger:
        """Write the choice and its reasons into a ledger with this very budget, as an entry with who and why.

        Returns the ledger.
        """
        if not isinstance(ledger, Ledger):
            raise InvalidParameterError(
                f"A choice is written into a ledger, but got {type(ledger).__name__}.", fix="pass Ledger.open(…)."
            )
        if self.budget is None:
            raise InvalidParameterError(
                "There is no budget to sign: what is needed takes more than the risk allows.",
                fix="choose again; print the choice to see what would make them meet.",
            )
        if ledger.budget != self.budget:
            raise LedgerMismatchError(
                f"The ledger has {ledger.budget}, but {self.budget} was chosen.",
                fix=f"make a ledger with budget={self.budget!r}, or take the ledger's: choice.take(ledger.budget).",
            )
        if self.need is not None and ledger.person.adjacency is not Adjacency.ADD_REMOVE:
            raise LedgerMismatchError(
                "What is needed was planned for people who are added or removed, and here they are replaced.",
                fix="choose by a risk alone, or make a ledger whose unit is added or removed.",
            )
        return ledger.declare(why=f"budget chosen: {_told(self.budget)}; {'; '.join(self.reasons)}", who=who)

    def explain(self) -> str:
        """The choice for whoever answers for it: what each number promises, and what it does not."""
        return text_facts(self._facts() | {name: said for name, said in self._notes().items() if said})

    def to_dict(self) -> dict[str, Any]:
        """The choice with JSON types only."""
        risk, need = self.risk, self.need
        return {
            "kind": self.kind,
            "budget": _plain(self.budget),
            "needed": _plain(self.needed),
            "allowed": _plain(self.allowed),
            "meets": self.meets,
            "noise": self.noise,
            "reasons": list(self.reasons),
            "remedies": self.remedies,
            "posterior": None if risk is None or risk.posterior is None else [float(x) for x in risk.posterior],
            "attack": None if risk is None or risk.attack is None else [float(x) for x in risk.attack],
            "exception": 0.0 if risk is None else float(risk.exception),
            "error": None if need is None else need.error,
            "people": None if need is None else need.crowd,
            "bounds": None if need is None or need.bounds is None else list(need.bounds),
            "power": None if need is None or need.power is None else need.power.to_dict(),
            "releases": 1 if need is None else need.releases,
        }

    def frontier(self) -> list[dict[str, float]]:
        """What can be had as epsilon or mu grows from too little to too much.

        Each point has ``amount`` and, as far as they were asked about, ``posterior``, ``attack``, and ``error`` or
        ``power``.
        """
        ends = [size(limit) for limit in (self.needed, self.allowed) if limit is not None]
        low, high = min(ends) / 4, max(ends) * 4
        points = []
        for i in range(25):
            budget = budget_of(
                self.kind, low * (high / low) ** (i / 24), (self.allowed or self.needed or Budget(1)).delta
            )
            points.append({"amount": size(budget)} | self._at(budget))
        return points

    def plot(self) -> Any:
        """A matplotlib figure: risk against error or power as the budget varies, both limits marked (extra ``plot``).

        Where only one of them was asked about, it is drawn against epsilon or mu.
        """
        points = self.frontier()
        name = "mu" if self.kind == "gaussian" else "epsilon"
        risk = self._binding()
        use = None if self.need is None else "error" if self.need.power is None else "power"
        x, y = (risk, use) if risk and use else ("amount", risk or use or "amount")
        labels = {"amount": name, "posterior": "largest belief", "attack": "largest true-positive rate"}
        labels |= {"error": "expected absolute error", "power": "power"}
        figure = plots.blank(6, 3.8)
        axes = figure.add_subplot()
        axes.plot([point[x] for point in points], [point[y] for point in points], color=plots.TEAL)
        if risk is not None:
            self._mark(
                axes, self._limit(risk), f"risk allows {name} ≤ {size(self.allowed or Budget(1)):.4g}", x == risk
            )
        if use is not None:
            self._mark(axes, self._limit(use), f"needed {name} ≥ {size(self.needed or Budget(1)):.4g}", x == use)
        if self.budget is not None:
            chosen = {"amount": size(self.budget)} | self._at(self.budget)
            axes.plot([chosen[x]], [chosen[y]], "o", color=plots.TEAL, label=f"{name} {size(self.budget):.4g}")
        axes.set(xlabel=labels[x], ylabel=labels[y])
        if y == "error":
            axes.set_yscale("log")
        for point in points[3::6] if x != "amount" else ():
            axes.annotate(f"{point['amount']:.2g}", (point[x], point[y]), textcoords="offset points", xytext=(4, 4))
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        return figure

    def __str__(self) -> str:
        return text_facts(self._facts())

    def _repr_html_(self) -> str:
        return html_facts(self._facts())

    def _between(self, budget: Budget) -> bool:
        limits = [limit for limit in (self.needed, self.allowed) if limit is not None]
        low = 0.0 if self.needed is None else size(self.needed)
        high = math.inf if self.allowed is None else size(self.allowed)
        composes = self.need is None or all(budget.direct <= limit.direct for limit in limits)
        return low <= size(budget) <= high and composes and all(limit.delta == budget.delta for limit in limits)

    def _range(self) -> str:
        if not self.meets:
            return "no budget is"
        least, most = (None if x is None else _told(x) for x in (self.needed, self.allowed))
        return f"{least} to {most}" if least and most else f"at least {least}" if least else f"at most {most}"

    def _at(self, budget: Budget) -> dict[str, float]:
        """What a budget means, by the names of what was asked about."""
        found = {}
        if self.risk is not None and self.risk.posterior is not None:
            found["posterior"] = self.risk.posterior_at(budget)
        if self.risk is not None and self.risk.attack is not None:
            found["attack"] = self.risk.attack_at(budget)
        if self.need is not None:
            found["error" if self.need.power is None else "power"] = self.need.at(*self.need.best(budget))
        return found

    def _binding(self) -> str | None:
        """The risk that limits the budget."""
        if self.risk is None or self.allowed is None:
            return None
        limits = self.risk.limits(self.kind, self.allowed.delta)
        return min(limits, key=limits.__getitem__)

    def _limit(self, name: str) -> float:
        if name in {"posterior", "attack"}:
            return float(getattr(self.risk, name)[1])
        need = self.need or Need()
        return float(need.error or 0.0) if need.power is None else need.power.power

    def _mark(self, axes: Any, at: float, label: str, upright: bool) -> None:
        style = {"color": plots.COLOURS[0 if label.startswith("risk") else 1], "linestyle": "--", "label": label}
        (axes.axvline if upright else axes.axhline)(at, **style)

    def _facts(self) -> dict[str, list[str]]:
        facts = {
            "budget": [
                _told(self.budget)
                if self.budget is not None
                else "none: what is needed takes more than the risk allows"
            ]
        }
        if self.risk is not None and self.allowed is not None:
            facts["risk"] = [_risk_words(self.risk), f"allows at most {_told(self.allowed)}"]
        if self.need is not None and self.needed is not None:
            facts["need"] = [str(self.need), f"takes at least {_told(self.needed)}, with {self.noise} noise"]
        if not self.meets:
            facts["to meet"] = self._ways_out()
        elif self.needed is not None and self.allowed is not None:
            facts["range"] = [self._range()]
        if self.budget is not None and (means := self._meaning()):
            facts["meaning"] = means
        return facts

    def _meaning(self) -> list[str]:
        """What the chosen budget means."""
        if self.budget is None:
            return []
        at, said = self._at(self.budget), []
        if self.risk is not None and self.risk.posterior is not None:
            rare = f", except with probability {float(self.risk.exception):g}" if self.risk.exception else ""
            said.append(
                f"who was {_percent(self.risk.posterior[0])} sure that somebody is in the data is at most"
                f" {_percent(at['posterior'], up=True)} sure afterwards{rare}"
            )
        if self.risk is not None and self.risk.attack is not None:
            said.append(
                f"who accuses {_percent(self.risk.attack[0])} of those who are not in the data finds at most"
                f" {_percent(at['attack'], up=True)} of those who are"
            )
        if self.need is not None:
            said.append(
                f"a power of {at_most(at['power'], 4)}"
                if self.need.power is not None
                else f"off by {roughly(at['error'])} on average"
            )
        return said

    def _ways_out(self) -> list[str]:
        ways = self.remedies
        words = {
            "error": "accept an error of {}",
            "power": "accept a power of {}",
            "people": "ask {} people",
            "releases": "make {} of the releases only",
        }
        said = [form.format(_spaced(ways[name])) for name, form in words.items() if name in ways]
        risks = {"posterior": "a largest belief of {}", "attack": "a largest true-positive rate of {}"}
        if raised := [form.format(f"{ways[name]:.4g}") for name, form in risks.items() if name in ways]:
            said.append(f"accept {' and '.join(raised)}")
        return [f"either {said[0]}", *(f"or {way}" for way in said[1:])] if len(said) > 1 else said

    def _notes(self) -> dict[str, list[str]]:
        notes = {}
        if self.risk is not None:
            notes["holds for"] = ["all that is released within the budget, together, whatever anybody knows beside it"]
            notes["about"] = ["whether one unit of the ledger, such as a person with all rows, is in the data"]
            notes["about"] += ["where units are replaced: which of two values it has"]
        if self.need is not None:
            notes["counts on"] = ["each person once in every release, and a new ledger, which admits them in any order"]
        return notes


def choose_budget(
    *,
    posterior: tuple[Number, Number] | None = None,
    attack: tuple[Number, Number] | None = None,
    error: Number | None = None,
    power: Power | None = None,
    kind: str = "pure",
    delta: Number | None = None,
    exception: Number | None = None,
    bounds: tuple[Number, Number] | None = None,
    people: int | None = None,
    releases: int = 1,
) -> Choice:
    """Choose a budget by the risk that one person may run, by what releases must be good for, or by both.

    Guarantee:
        Public parameters only: no data, no charge. All that is released within ``allowed`` keeps the risk, exactly as
        derived in :mod:`defocus.privacy.risk`; one part in 10⁴ more does not. A new ledger with the budget ``needed``
        admits all releases with the noise that was counted on, whatever their order.
    Assumes:
        The risk is about whether one unit of the ledger is in the data. Needs are about people who are added or removed
        and counted once in every release.

    Error:
        Of a mean, to first order in the noise over the number of people, which must be ten times the noise at least;
        at the bound where it is largest. Of a count as tables release it, exact to a millionth.

    Args:
        posterior: a prior belief that one person is in the data, and the largest that it may become.
        attack: the false-positive rate of a test for one person, and the largest true-positive rate it may have.
        error: the largest expected absolute error of a count; with ``bounds`` and ``people``, of a mean.
        power: a test planned by :func:`defocus.power`, in place of an error.
        kind: "pure" for a budget in epsilon alone, "approximate" for epsilon and ``delta``, "gaussian" for mu.
        delta: the delta of an approximate budget.
        exception: the probability with which a belief may be above the largest one; needed with ``posterior`` unless
            the budget is pure.
        bounds: the least and the largest value of a mean.
        people: how many people a mean is about; public, so round it if it is not.
        releases: how many such releases the budget must allow.

    >>> print(choose_budget(posterior=(0.5, 0.75), error=20, releases=10))
    budget:  epsilon 0.5
    risk:    a belief of 0.5 that somebody is in the data rises to at most 0.75
             allows at most epsilon 1.09861
    need:    a count is off by at most 20 on average, in each of 10 releases
             takes at least epsilon 0.5, with Laplace noise
    range:   epsilon 0.5 to epsilon 1.09861
    meaning: who was 50 % sure that somebody is in the data is at most 62.25 % sure afterwards
             off by 20 on average
    """
    need = _need(error, power, bounds, people, releases)
    risk = None
    if posterior is not None or attack is not None:
        risk = Risk(posterior, attack, 0 if exception is None else exception)
    elif exception is not None:
        raise InvalidParameterError("An exception belongs to a posterior.", fix="pass posterior=(0.5, 0.75) as well.")
    if risk is None and need is None:
        raise InvalidParameterError(
            "Neither a risk nor a need was given.", fix="pass posterior=(0.5, 0.75), attack=(0.01, 0.05), or error=10."
        )
    name, part = checked_kind(kind, 0 if delta is None else delta)
    if people is not None and part:
        check_delta(part, people)
    elif people is not None and bounds is None:
        raise InvalidParameterError(
            "People belong to a mean or to a delta.", fix="pass bounds=(0, 100), or leave people out."
        )
    allowed = None if risk is None else risk.largest(name, part)
    needed, noise = (None, None) if need is None else need.least(name, part)
    made = Choice(name, None, needed, allowed, noise, risk, need)
    return replace(made, budget=needed or allowed) if made.meets else made


def _need(
    error: Number | None, power: Power | None, bounds: tuple[Number, Number] | None, people: int | None, releases: int
) -> Need | None:
    """What is needed, checked."""
    times = count("releases", releases)
    if power is not None and not isinstance(power, Power):
        raise InvalidParameterError(
            f"power must be a test that was planned, but it is {type(power).__name__}.",
            fix="pass power=dp.power(proportion=0.3, effect=0.05, n=1000, power=0.8).",
        )
    if error is not None and power is not None:
        raise InvalidParameterError("Both an error and a power were given.", fix="choose one of them.")
    if power is not None and (bounds is not None or people is not None):
        raise InvalidParameterError(
            "A planned test has bounds and people of its own.", fix="leave bounds and people out."
        )
    if power is not None:
        return Need(power=power, releases=times)
    if error is None:
        if bounds is None and times == 1:
            return None
        raise InvalidParameterError("No error was given that releases may have.", fix="pass error=10.")
    most, ends = float(positive("error", error)), _ends(bounds)
    if ends is None:
        return Need(error=most, releases=times)
    if people is None:
        raise InvalidParameterError("The error of a mean depends on the number of people.", fix="pass people=1000.")
    return Need(error=most, people=count("people", people), bounds=ends, releases=times)


def _ends(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidParameterError("bounds must be two numbers.", fix="pass bounds=(0, 100).") from None
    least, most = float(finite("the lower bound", low)), float(finite("the upper bound", high))
    if not least < most:
        raise InvalidParameterError(
            f"The bounds {least:.6g} and {most:.6g} hold no interval.",
            fix="choose the lower bound below the upper one.",
        )
    return least, most


def _fewest(need: Need, law: str, noise: float) -> int | None:
    """How many people would do with so much noise; None if not even very many."""
    low = high = need.crowd or 1
    while not need.of(high).met(law, noise):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if need.of(middle).met(law, noise) else (middle, high)
    return high


def _admitted(need: Need, budget: Budget) -> int:
    """How many of the releases a budget allows."""
    rule, most = filter_for(budget), 0
    for law in _laws(kind_of(budget)):
        low, high, noise = 0, need.releases, need.noise(law)
        while high - low > 1:
            middle = (low + high) // 2
            fits = rule.admits(rule.start, replace(need, releases=middle).event(law, noise))
            low, high = (middle, high) if fits else (low, middle)
        most = max(most, low)
    return most


def _risk_words(risk: Risk) -> str:
    said = []
    if risk.posterior is not None:
        prior, most = map(float, risk.posterior)
        rare = f", except with probability {float(risk.exception):g}" if risk.exception else ""
        said.append(f"a belief of {prior:g} that somebody is in the data rises to at most {most:g}{rare}")
    if risk.attack is not None:
        alpha, most = map(float, risk.attack)
        said.append(f"a test for somebody with a false-positive rate of {alpha:g} finds at most {most:g}")
    return ", and ".join(said)


def _told(budget: Budget) -> str:
    """A budget in words, with the digits it has."""
    if budget.mu is not None:
        return f"mu {float(budget.mu):.7g}"
    return f"epsilon {float(budget.epsilon or 0):.7g}" + (f", delta {float(budget.delta):g}" if budget.delta else "")


def _plain(budget: Budget | None) -> dict[str, float] | None:
    if budget is None:
        return None
    if budget.mu is not None:
        return {"mu": float(budget.mu)}
    return {"epsilon": float(budget.epsilon or 0), "delta": float(budget.delta)}


def _percent(part: Number, *, up: bool = False) -> str:
    return f"{at_least(100 * float(part), 4) if up else roughly(100 * float(part))} %"


def _spaced(number: float) -> str:
    """A number with its thousands apart."""
    return f"{number:,.10g}".replace(",", " ")
