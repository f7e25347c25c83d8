"""Several owners of one example: who they are, and which examples are used, so that nobody has more than so many.

A photo shows several people, a message has a sender and receivers. Whoever is in an example is protected in it, so one
person may be in any number of them, and together with any others. :func:`bounded` leaves examples out until nobody is
in more than ``most``: what is left is data of the unit ``rows(per_person=most)``.

Which are left out depends on who owns what, and one person decides there about others: without her, her photo goes, and
so somebody else in it has room for another one, which takes the room of a third. How many examples come and go has no
bound. So *who owns what is public*, and what is protected is what the examples are and whether they count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import UnfitDataError
from defocus.errors.checks import guarded
from defocus.learning.examples import named
from defocus.noise.ranges import Integers

__all__ = ["Owned", "bounded", "owned"]

_PLAIN = (int, str)
_MANY = (list, tuple, set, frozenset, range, np.ndarray)


@final
@dataclass(frozen=True, slots=True)
class Owned:
    """The owners of each example, as numbers from zero, each once."""

    owners: tuple[tuple[int, ...], ...]
    persons: int

    @property
    def nobody(self) -> int:
        """How many examples have no owner."""
        return sum(not each for each in self.owners)


def owned(users: Any, length: int) -> Owned:
    """The owners of each example: a list, tuple, set or array of names for each, or one name.

    Missing ones (None, NaN, what a mask hides) fill the rows of an array up, and name nobody. Names are told apart as
    :func:`~.examples.owners` does; what is no name is refused, since who owns what is public.

    >>> owned([["a", "b"], "b", {"c"}, ["b", None, "b"], []], 5).owners
    ((0, 1), (1,), (2,), (1,), ())
    >>> owned(np.array([[7, 8], [8, np.nan]]), 2).owners
    ((0, 1), (1,))
    """
    listed = _listed(users)
    if not isinstance(listed, list | tuple | range) or len(listed) != length:
        raise UnfitDataError(
            "users= must say for each example whose it is.",
            fix='pass a list as long as the data, of lists of names, such as [["ann", "bob"], ["bob"]]; or an array'
            " with a row for each example.",
        )
    places: dict[Any, int] = {}
    found = []
    for cell in listed:
        names: Any = cell if type(cell) is list else _listed(cell) if isinstance(cell, _MANY) else [cell]
        keys = dict.fromkeys(name if type(name) in _PLAIN else guarded(named, name, None) for name in names)
        if None in keys:
            _check_missing(names)
            del keys[None]
        found.append(tuple(places.setdefault(key, len(places)) for key in keys))
    return Owned(tuple(found), len(places))


def bounded(found: Owned, most: int, order: Sequence[int]) -> Integers:
    """The numbers of the examples that are used, so that nobody has more than ``most`` of them.

    One after the other in the given ``order``, an example is used if each of its owners has room for it. An example
    without an owner is left out, since nothing is known of whom it is about.

    Guarantee:
        Each person owns at most ``most`` of them, whatever the order. No other example could be added.
    Reference:
        Ganesh, McKenna, McMahan, Smith, Wu (2025), It's my data too: private ML for datasets with multi-user training
        examples, whose greedy baseline it is, with their definition of neighbours (fixed-graph DP).

    >>> bounded(owned([["a", "b"], ["b", "c"], ["a"], []], 4), 1, range(4))
    array([0])
    >>> bounded(owned([["a", "b"], ["b", "c"], ["a"], []], 4), 1, [1, 0, 2, 3])
    array([1, 2])
    """
    room = [most] * found.persons
    used = []
    for number in order:
        mine = found.owners[number]
        if mine and all(room[person] for person in mine):
            used.append(number)
            for person in mine:
                room[person] -= 1
    return np.array(sorted(used), np.int64)


def _listed(values: Any) -> Any:
    """Columns and arrays as lists, with None for what is missing."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            return getattr(values, name)()
    return list(values) if isinstance(values, set | frozenset) else values


def _check_missing(names: Sequence[Any]) -> None:
    """Refuse what is neither a name nor missing."""
    for name in names:
        if not _is_missing(name) and guarded(named, name, None) is None:
            raise UnfitDataError(
                f"An owner in users= is of type {type(name).__name__}, which names nobody.",
                fix="name persons by numbers or texts, in one list for each example.",
            )


def _is_missing(name: Any) -> bool:
    """None, NaN, NaT, and what pandas has for them."""
    return name is None or type(name).__name__ == "NAType" or guarded(_is_nan, name, otherwise=False)


def _is_nan(name: Any) -> bool:
    return bool(name != name)  # noqa: PLR0124 # NaN
