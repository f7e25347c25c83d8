"""Frequent strings among very many: grow prefixes, and keep those that are frequent."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.clients import Client, PrefixClient
from defocus.local.clients.messages import END, checked_question, padded
from defocus.local.domains import Categories, listed
from defocus.local.estimates import Collected, Estimate, estimated, scaled_up
from defocus.local.levels import checked_epsilon
from defocus.local.oracles import Oracle, best
from defocus.local.reports import Reports
from defocus.noise import Bits, uniform
from defocus.noise.bits import source
from defocus.privacy import events

__all__ = ["HeavyHitters", "heavy_hitters", "usual_step"]


_QUESTION = 1 << 15
"""So many prefixes may be asked about by default: what a device reads is then some hundreds of kilobytes."""
_ROOM = 4
"""Before the last group, up to so many times as many prefixes are kept as strings at the end."""
_LOW = 1.5
"""A prefix is gone on with from so many standard deviations of noise on: a wrong one costs room only."""


def usual_step(letters: int, length: int, keep: int) -> int:
    r"""By how many characters prefixes grow, from public facts alone: so devices and the server have the same.

    With g groups of about n/g people each, the noise of a count, scaled up to all, has a standard deviation of
    :math:`\sqrt{gnV}`, and a string must stand out of it g times; V hardly depends on how many prefixes are asked
    about, and what passes by chance grows with the root of their logarithm only. So there are as few groups as short
    questions allow, and of the steps with as few the shortest is taken.

    >>> usual_step(26, 6, 16), usual_step(2, 16, 16), usual_step(200, 4, 16)
    (2, 6, 1)
    """
    step = 1
    while step < length and keep * (letters + 1) ** (step + 1) <= _QUESTION:
        step += 1
    groups = -(-length // step)
    return -(-length // groups)


@final
@dataclass(frozen=True, slots=True)
class HeavyHitters:
    r"""Prefix extending: people are dealt into one group for each prefix length, and each group is asked once.

    Groups are as large as their prefixes are long: a short prefix stands for many strings and is easily seen, and on
    the last group all depends. Group i is asked for the first :math:`\ell_i` characters. The frequent prefixes that
    group i - 1 showed, each with every possible continuation, are the public domain of the question to group i; whoever
    has none of them answers "other". So no one is asked about all strings, only about those that are still possible.

    Guarantee:
        Every person makes one report, in one group, under an epsilon-LDP oracle whose domain is public when it is made:
        it depends on other people's reports only. So a person pays epsilon in all. Devices check that: a question that
        costs more, or is none of the protocol's, is refused, and so is a second one (:meth:`device`).
    Assumes:
        Reports of a group come in before the next group is asked. Which group one is in is drawn by :meth:`deal`.

    Error:
        A string is found if all its prefixes, and it itself, stand out; with m people in the last group a count must be
        some multiple of :math:`n/m\cdot\sqrt{\mathrm{variance}\cdot m}`. The variance of its count is
        :math:`(n/m)^2` that of the last group's estimate, and what who is in that group adds.
    Reference:
        Wang, Li, Jha (2021), Locally differentially private heavy hitter identification (prefix extending).

    >>> HeavyHitters("ab", length=3, epsilon=2).keep
    16
    """

    alphabet: str
    length: int
    epsilon: Number
    step: int = None  # type: ignore[assignment]  # chosen from the other four where it is left out
    """By how many characters prefixes grow from group to group; by default :func:`usual_step`."""
    keep: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        letters: Any = self.alphabet
        if not isinstance(letters, str) or len(set(letters)) != len(letters) or not letters:
            raise InvalidParameterError("An alphabet is a text of different characters.", fix="pass for example 'abc'.")
        if END in self.alphabet:
            raise InvalidParameterError("The zero character marks ends.", fix="leave it out of the alphabet.")
        given: int | None = self.step
        for name in ("length", "keep", *(() if given is None else ("step",))):
            object.__setattr__(self, name, whole(name, getattr(self, name), at_least=1))
        if given is None:
            object.__setattr__(self, "step", usual_step(len(self.alphabet), self.length, self.keep))
        if self.keep * self.branches > 1 << 20:
            raise InvalidParameterError(
                f"{self.keep} prefixes with {self.branches} continuations each are too many to ask about.",
                fix="take smaller steps, or keep fewer prefixes.",
            )

    @property
    def branches(self) -> int:
        """How many continuations a prefix has in one step."""
        return int((len(self.alphabet) + 1) ** self.step)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return -(-self.length // self.step)

    @property
    def event(self) -> events.Event:
        """What a person pays in all."""
        return events.Pure(self.epsilon)

    def oracle(self, group: int, prefixes: Sequence[str]) -> Oracle:
        """The question to a group: which of these prefixes, one step longer. The last category is everything else."""
        chosen = list(dict.fromkeys(prefixes)) if group else [""]
        if not chosen:
            chosen = [self.alphabet[0] * (group * self.step)]  # nothing stood out; ask on, so that everyone reports
        continued = [prefix + tail for prefix in chosen for tail in self._tails(group)]
        # After the end of a string there is nothing but the end.
        possible = [text for text in continued if END not in text.rstrip(END)]
        return best(Categories(len(possible) + 1, tuple(possible), "other"), self.epsilon)

    def device(self, value: Any) -> PrefixClient:
        """One person's device, which answers one question and no second."""
        return PrefixClient(value, alphabet=self.alphabet, length=self.length, epsilon=self.epsilon, step=self.step)

    def client(self, group: int, oracle: Oracle, values: Sequence[Any], bits: Bits | None = None) -> Reports:
        """Reports of the people of one group at once, for simulations; what is no string of the alphabet is "other"."""
        reach = self._reach(group)
        design = checked_question(oracle.design, alphabet=self.alphabet, reach=reach, epsilon=self.epsilon)
        return Client(design).encode([padded(value, self.alphabet, self.length)[:reach] for value in values], bits)

    def deal(self, people: int, bits: Bits | None = None) -> NDArray[np.int64]:
        """The group of each of so many people, drawn at random: as likely as its prefixes are long.

        >>> HeavyHitters("ab", length=3, epsilon=2, step=1).deal(6000).max()
        np.int64(2)
        """
        reaches = [self._reach(group) for group in range(self.groups)]
        drawn = uniform(sum(reaches), people, source(bits))
        return np.searchsorted(np.cumsum(reaches), drawn, side="right")

    def kept(self, estimate: Estimate) -> list[str]:
        """The prefixes to go on with, as many as the next question has room for; of the last group, the strings found.

        Strings are found above a limit that noise passes about once a question, prefixes above a lower one.
        """
        labels, keep, limit = estimate.labels or (), self.keep, NormalDist().inv_cdf(1 - 1 / len(estimate))
        if labels and len(labels[0]) < self.length:
            room = _QUESTION // (len(self.alphabet) + 1) ** min(self.step, self.length - len(labels[0]))
            keep, limit = max(keep, min(_ROOM * keep, room)), min(limit, _LOW)
        bound = limit * float(np.median(estimate.errors))
        order = np.argsort(-estimate.counts[: len(labels)], kind="stable")[:keep]
        return [labels[i] for i in order.tolist() if estimate.counts[i] > bound]

    def _reach(self, group: int) -> int:
        return min((group + 1) * self.step, self.length)

    def _tails(self, group: int) -> list[str]:
        tails = [""]
        for _ in range(self._reach(group) - group * self.step):
            tails = [tail + letter for tail in tails for letter in self.alphabet + END]
        return tails


def heavy_hitters(
    values: Sequence[str],
    *,
    alphabet: str,
    length: int,
    epsilon: Number,
    step: int | None = None,
    keep: int = 16,
    bits: Bits | None = None,
) -> Collected:
    """Run the whole protocol on one machine: the frequent strings with their counts, the most frequent first.

    Prefixes grow by ``step`` characters at a time, by default as :func:`usual_step` says. Counts come from the last
    group alone and are scaled up to all people. The same reports decide which strings are
    kept, so counts near the limit are a little too high.

    >>> people = ["ja"] * 30_000 + ["nein"] * 20_000
    >>> heavy_hitters(people, alphabet="aeijn", length=4, epsilon=4).keys["value"][:2]
    ['ja', 'nein']
    """
    grown = {} if step is None else {"step": step}
    protocol, draw = HeavyHitters(alphabet, length, epsilon, keep=keep, **grown), source(bits)
    everyone = listed(values)
    group_of = protocol.deal(len(everyone), draw)
    prefixes, rounds = [""], list[Estimate]()
    for group in range(protocol.groups):
        people = [everyone[i] for i in np.flatnonzero(group_of == group).tolist()]
        oracle = protocol.oracle(group, prefixes)
        rounds.append(oracle.estimate(protocol.client(group, oracle, people, draw)))
        prefixes = protocol.kept(rounds[-1])
    return _scaled(rounds[-1], prefixes, len(everyone))


def _scaled(estimate: Estimate, texts: Sequence[str], everyone: int) -> Collected:
    """Counts of a group, as counts of all people."""
    counts, variances = scaled_up(estimate.counts, estimate.variances, estimate.reports, everyone)
    place = {label: i for i, label in enumerate(estimate.labels or ())}
    at = [place[text] for text in texts]
    how = f"from {estimate.reports} reports, scaled up to {everyone} people; a little too high near the limit"
    return Collected(
        {"value": [text.rstrip(END) for text in texts]},
        estimated("count", counts[at], np.sqrt(variances[at]), how),
        "which strings are frequent, and how many people have each",
        ("string", "strings"),
        estimate.reports,
        estimate.rejected,
        estimate.collected,
    )
