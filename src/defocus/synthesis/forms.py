"""Forms of examples that are no rows of a table: images and sequences, declared and never read off private ones.

An example is encoded by itself, into numbers of a declared shape, with a flag that says whether it has the declared
form. Whatever an example is, it has an encoding: one that does not fit is zeros and a flag, and no error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, UnfitDataError, count, finite
from defocus.errors.checks import guarded

__all__ = [
    "Coded",
    "Decoder",
    "Form",
    "Images",
    "Sequences",
    "form_of",
    "nearest",
    "placed",
    "places_drawn",
    "places_of",
]

_FINEST = 16
"""Images are modelled on a grid of at most so many rows and columns, of cells that are all alike."""
_LARGEST, _MOST_NUMBERS = 1 << 24, 1 << 20
"""How many pixels an image may have, and how many numbers an encoded example."""
_LONGEST = 4096
_BLOCK = 4096
_BEFORE = 4
"""So many symbols before are seen by the next one, beside what the latent numbers say about the whole sequence; and it
sees if it is one of so many last ones."""
_KINDS = 32
"""Lengths are counted in at most so many ranges."""
_FARTHEST = 1e30
_COLOURS = 4

Coded: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
"""Encoded examples, and which of them have the declared form."""
_Floats: TypeAlias = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """Two linear maps with a rectifier between them: what is released of an autoencoder.

    >>> Decoder(np.eye(2), np.zeros(2), np.ones((1, 2)), np.zeros(1))(np.array([[3.0, -1.0]])).tolist()
    [[3.0]]
    """

    first: NDArray[Any]
    first_bias: NDArray[Any]
    second: NDArray[Any]
    second_bias: NDArray[Any]

    def __call__(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """What comes out, for one row of inputs each."""
        made: NDArray[Any] = np.maximum(inputs @ self.first.T + self.first_bias, 0)
        return np.asarray(made @ self.second.T + self.second_bias)


@final
@dataclass(frozen=True, slots=True)
class Images:
    """Images of one size: ``shape`` is (height, width) or (channels, height, width), ``bounds`` are those of a pixel.

    Bounds with a step, ``(0, 255, 1)``, give synthetic pixels that are multiples of it apart. Pixels beyond the bounds
    count as the nearest one. An image of another shape, or with a pixel that is no number, counts as nothing.

    Images larger than 16 by 16 are modelled on a coarser grid, by averages over its cells, and drawn smoothly between
    them: noise grows with the number of weights.

    >>> Images((28, 28), (0, 255, 1)).grid
    (1, 14, 14)
    """

    shape: Sequence[int]
    bounds: Sequence[float] = (0, 1)

    def __post_init__(self) -> None:
        shape = tuple(count("a size of shape", size) for size in _listed("shape", self.shape))
        bounds = tuple(float(finite("a bound", bound)) for bound in _listed("bounds", self.bounds))
        if len(shape) not in {2, 3} or math.prod(shape) > _LARGEST:
            raise InvalidParameterError(
                f"Images of shape {str(shape)[:60]} cannot be synthesised.",
                fix=f"declare (height, width) or (channels, height, width), of at most {_LARGEST} numbers.",
            )
        if len(shape) == 3 and shape[2] <= _COLOURS < min(shape[:2]):
            raise InvalidParameterError(
                f"Images of shape {shape} would have {shape[0]} channels of {shape[1]} × {shape[2]} pixels.",
                fix=f"declare ({shape[2]}, {shape[0]}, {shape[1]}) and pass the channels first:"
                " np.moveaxis(images, -1, 1).",
            )
        step = bounds[2] if len(bounds) == 3 else 1.0
        if len(bounds) not in {2, 3} or not -_FARTHEST < bounds[0] < bounds[1] < _FARTHEST or step <= 0:
            raise InvalidParameterError(
                "The bounds of pixels are a lower and a higher number, and a step above zero.",
                fix="declare bounds=(0, 255, 1) for whole numbers, or bounds=(0, 1).",
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "bounds", bounds)
        _bounded(self.size)

    def __str__(self) -> str:
        return f"images of {' × '.join(map(str, self.shape))} pixels from {self.bounds[0]:g} to {self.bounds[1]:g}"

    @property
    def grid(self) -> tuple[int, int, int]:
        """Channels, rows and columns of the grid on which images are modelled."""
        channels, *sides = self.shape if len(self.shape) > 2 else (1, *self.shape)
        times = 2 ** max(0, math.ceil(math.log2(max(sides) / _FINEST)))
        return (channels, *(-(-side // times) for side in sides))

    @property
    def size(self) -> int:
        """How many numbers an encoded image has."""
        return math.prod(self.grid)

    def inputs(self, conditions: int) -> int:
        """How many numbers the decoder takes, beside so many conditions."""
        return conditions

    @property
    def outputs(self) -> int:
        """How many numbers the decoder makes."""
        return self.size

    @property
    def kinds(self) -> int:
        """How many kinds of images are counted: all are alike."""
        return 1

    def kind(self, made: NDArray[Any]) -> NDArray[np.int64]:
        """Of which kind encoded images are."""
        return np.zeros(len(made), np.int64)

    def encode(self, data: Any) -> Coded:
        """Averages over the cells of the grid, from 0 to 1."""
        data = _opened(data)
        array = _array(data)
        if array is not None and array.dtype.kind not in _NUMBERS:
            raise _unfit("examples", array.dtype)
        if array is None:
            rows = [guarded(self._one, one, None) for one in _items(data)]
            fits = np.array([row is not None for row in rows], np.bool_)
            made = np.zeros((len(rows), self.size), np.float32)
            for i, row in enumerate(rows):
                if row is not None:
                    made[i] = row
            return self._finite(made, fits)
        if array.shape[1:] != self.shape:
            raise UnfitDataError(
                f"The images are an array of shape {str(array.shape[1:])[:60]} each, and {self.shape} is declared.",
                fix=f"pass images.reshape({', '.join(map(str, (-1, *self.shape)))}) where they lie in a row, or"
                " np.moveaxis(images, -1, 1) where channels are the last axis.",
            )
        parts = [self._coarse(array[i : i + _BLOCK]) for i in range(0, len(array), _BLOCK)]
        made = np.concatenate([np.zeros((0, self.size), np.float32), *parts])
        return self._finite(made, np.ones(len(made), np.bool_))

    def draw(
        self, decoder: Decoder, conditions: NDArray[Any], kinds: NDArray[np.int64], random: np.random.Generator
    ) -> _Floats:
        """Images for these conditions: the expected value of every pixel, which are smooth."""
        del kinds, random
        rows, columns = (_between(fine, coarse) for fine, coarse in zip(self.shape[-2:], self.grid[1:], strict=True))
        low, high, *step = self.bounds
        found = np.zeros((len(conditions), *self.shape), np.float32)
        for start in range(0, len(conditions), _BLOCK):
            part = decoder(conditions[start : start + _BLOCK])
            shares = 1 / (1 + np.exp(-np.clip(part, -60, 60)))
            fine = rows @ shares.reshape(-1, *self.grid) @ columns.T
            values = low + (high - low) * fine.reshape(-1, *self.shape)
            if step:
                values = np.clip(low + np.rint((values - low) / step[0]) * step[0], low, high)
            found[start : start + _BLOCK] = values
        return found

    def to_json(self) -> dict[str, Any]:
        """The form, with JSON types only."""
        return {"form": "images", "shape": list(self.shape), "bounds": list(self.bounds)}

    def _one(self, image: Any) -> _Floats | None:
        array = _array(image)
        array = np.asarray(image) if array is None else array
        if array.shape != self.shape or array.dtype.kind not in _NUMBERS:
            return None
        return np.asarray(self._coarse(array[None])[0])

    def _coarse(self, images: NDArray[Any]) -> _Floats:
        """Cells of images, each of which moves its own alone."""
        low, high, *_ = self.bounds
        pixels = np.clip(images.astype(np.float64), low, high).reshape(len(images), *self.grid[:1], *self.shape[-2:])
        rows, columns = (_mean(fine, own) for fine, own in zip(self.shape[-2:], self.grid[1:], strict=True))
        cells = rows @ ((pixels - low) / (high - low)) @ columns.T
        return np.asarray(cells.reshape(len(images), -1), np.float32)

    def _finite(self, made: _Floats, fits: NDArray[np.bool_]) -> Coded:
        fits = fits & np.isfinite(made).all(axis=1)
        made[~fits] = 0
        return made, fits


@final
@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences of at most ``length`` symbols of a public alphabet: a text of its letters, or a list of its symbols.

    A longer sequence, or one with a symbol that is not in the alphabet, counts as nothing. Synthetic sequences are
    texts where the alphabet is one, and lists otherwise.

    >>> Sequences("ACGT", length=20).symbols
    ('A', 'C', 'G', 'T')
    """

    alphabet: Any
    length: int

    def __post_init__(self) -> None:
        symbols, length = self.symbols, count("length", self.length)
        if not symbols or len(set(symbols)) < len(symbols):
            raise InvalidParameterError(
                "The alphabet has no symbols, or one twice.", fix='declare each symbol once: alphabet="ACGT".'
            )
        _bounded(length * len(symbols))
        if length > _LONGEST:
            raise InvalidParameterError(
                f"Sequences of up to {length} symbols are too long.", fix=f"declare at most {_LONGEST}."
            )

    def __str__(self) -> str:
        return f"sequences of at most {self.length} of {len(self.symbols)} symbols"

    @property
    def symbols(self) -> tuple[str | int, ...]:
        """The symbols of the alphabet, in its order."""
        return _named("alphabet", tuple(self.alphabet) if isinstance(self.alphabet, str) else self.alphabet)

    @property
    def size(self) -> int:
        """How many numbers an encoded sequence has."""
        return self.length * self.outputs

    def inputs(self, conditions: int) -> int:
        """How many numbers the decoder takes for one place, beside so many conditions."""
        return conditions + _BEFORE * self.outputs + self.length + _BEFORE

    @property
    def outputs(self) -> int:
        """How many symbols there are."""
        return len(self.symbols)

    @property
    def kinds(self) -> int:
        """In how many ranges lengths are counted."""
        return min(self.length + 1, _KINDS)

    def kind(self, made: NDArray[Any]) -> NDArray[np.int64]:
        """In which range the length of encoded sequences is."""
        return np.asarray(made.sum(axis=(1, 2)).astype(np.int64) * self.kinds // (self.length + 1))

    @property
    def before(self) -> int:
        """How many symbols before are seen by the next one, and how many of the last ones are told apart."""
        return _BEFORE

    def encode(self, data: Any) -> Coded:
        """For each place which symbol is there, as zeros and a one; zeros after the end."""
        data = _opened(data)
        array = _array(data)
        if array is not None and (array.ndim, array.dtype.kind) not in {(2, "i"), (2, "u"), (1, "U")}:
            raise UnfitDataError(
                "Sequences in an array are texts, or whole numbers with one sequence in each row.",
                fix="pass an array of shape (n, length), or a list of texts or of lists.",
            )
        known = {symbol: place for place, symbol in enumerate(self.symbols)}
        read = partial(self._one, known=known)
        listed = [guarded(read, one, None) for one in _items(data if array is None else array)]
        made = np.zeros((len(listed), self.length, self.outputs), np.bool_)
        for i, own in enumerate(listed):
            if own is not None:
                made[i, np.arange(len(own)), own] = True
        return made, np.array([own is not None for own in listed], np.bool_)

    def draw(
        self, decoder: Decoder, conditions: NDArray[Any], kinds: NDArray[np.int64], random: np.random.Generator
    ) -> list[Any]:
        """Sequences for these conditions and with lengths in these ranges, symbol after symbol."""
        number = len(conditions)
        first, after = (-(-(kinds + one) * (self.length + 1) // self.kinds) for one in (0, 1))
        lengths = random.integers(first, after)
        made = np.zeros((number, self.length), np.int64)
        seen = np.zeros((number, _BEFORE, self.outputs), np.float32)
        for place in range(int(lengths.max(initial=0))):
            where = np.zeros((number, self.length), np.float32)
            where[:, place] = 1
            last = (lengths[:, None] - 1 - place == np.arange(_BEFORE)).astype(np.float32)
            scores = decoder(np.concatenate([conditions, seen.reshape(number, -1), where, last], 1)).astype(np.float64)
            chances = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
            drawn = (random.random((number, 1)) * chances[:, -1:] >= chances[:, :-1]).sum(axis=1)
            made[:, place] = drawn
            seen = np.concatenate([np.eye(self.outputs, dtype=np.float32)[drawn][:, None], seen[:, :-1]], 1)
        symbols = self.symbols
        rows = [[symbols[i] for i in row[:length]] for row, length in zip(made.tolist(), lengths, strict=True)]
        return ["".join(map(str, row)) for row in rows] if isinstance(self.alphabet, str) else list(rows)

    def to_json(self) -> dict[str, Any]:
        """The form, with JSON types only."""
        alphabet = self.alphabet if isinstance(self.alphabet, str) else list(self.symbols)
        return {"form": "sequences", "alphabet": alphabet, "length": self.length}

    def _one(self, sequence: Any, known: Mapping[str | int, int]) -> NDArray[np.int64] | None:
        """The places of its symbols in the alphabet."""
        if isinstance(sequence, bytes):
            sequence = sequence.decode("ascii")
        if not isinstance(sequence, str | list | tuple):
            sequence = _array(sequence)
        if sequence is None:
            return None
        some = list(islice(iter(sequence), self.length + 1))
        own = [known[symbol] for symbol in some]
        if len(own) > self.length:
            return None
        return np.array(own, np.int64)


Form: TypeAlias = Images | Sequences


def form_of(written: Mapping[str, Any]) -> Form:
    """The form that ``to_json`` wrote.

    >>> form_of(Images((2, 3)).to_json())
    Images(shape=(2, 3), bounds=(0.0, 1.0))
    """
    if written["form"] == "images":
        return Images(written["shape"], written["bounds"])
    if written["form"] == "sequences":
        return Sequences(written["alphabet"], written["length"])
    raise ValueError("a form that is not known")


def places_of(classes: Any) -> tuple[str | int, ...]:
    """The declared classes: texts or whole numbers, each once.

    >>> places_of(range(3))
    (0, 1, 2)
    """
    named = _named("classes", classes)
    if len(set(named)) < len(named) or not 1 <= len(named) <= _BLOCK:
        raise InvalidParameterError(
            f"The classes are none, more than {_BLOCK}, or one twice.",
            fix="declare each class once: classes=range(10).",
        )
    return named


def placed(labels: Any, classes: Sequence[str | int], number: int) -> NDArray[np.int64]:
    """The place of each label among the classes; -1 for one that is none of them.

    >>> placed([3, "b", None, [1]], (3, "b"), 4).tolist()
    [0, 1, -1, -1]
    """
    labels = _opened(labels)
    array, known = _array(labels, "labels"), {own: place for place, own in enumerate(classes)}
    if array is not None and array.ndim != 1:
        raise UnfitDataError(
            "labels= must name one class for each example.", fix="pass a list or an array of one axis."
        )
    listed = labels if array is None else array.tolist()
    if not isinstance(listed, list | tuple | range) or len(listed) != number:
        raise UnfitDataError("labels= must name one class for each example.", fix="pass a list as long as the data.")
    return np.array([guarded(known.__getitem__, label, -1) for label in listed], np.int64)


def nearest(found: NDArray[Any]) -> NDArray[Any]:
    """The shares, none of which is below zero and which come to one, that are nearest to noisy ones.

    >>> nearest(np.array([0.9, 0.3, -0.4])).round(6).tolist()
    [0.8, 0.2, 0.0]
    """
    falling = np.sort(found)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(found - over[np.flatnonzero(falling > over)[-1]], 0))


def places_drawn(random: np.random.Generator, shares: NDArray[Any], number: int) -> NDArray[np.int64]:
    """So many places, each as often as its share says; equally often where there is none.

    >>> places_drawn(np.random.default_rng(0), np.array([0.0, 0.3]), 3).tolist()
    [1, 1, 1]
    """
    even = np.full(len(shares), 1 / len(shares))
    return random.choice(len(shares), number, p=shares / shares.sum() if shares.sum() > 0 else even)


def _bounded(size: int) -> None:
    if size > _MOST_NUMBERS:
        raise InvalidParameterError(
            f"An example would be {size} numbers, which are too many.", fix=f"declare at most {_MOST_NUMBERS}."
        )


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidParameterError(f"{name} is not a list of numbers.", fix=f"write for example {name}=(28, 28).")
    return tuple(value)


def _named(name: str, value: Any) -> tuple[str | int, ...]:
    """Texts and whole numbers of a list, as Python has them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    plain = isinstance(value, list | tuple | range) and len(value) <= _MOST_NUMBERS
    if not plain or not all(type(own) in {str, int} for own in value):
        raise InvalidParameterError(
            f"{name} is not a list of texts and whole numbers.", fix=f"write a list, such as {name}=[0, 1]."
        )
    return tuple(value)


_NUMBERS = "fiub"
"""Kinds of numpy's types of numbers."""


def _opened(data: Any) -> Any:
    """A list of what is in a column of a frame or in an array of objects: each example is then read by itself."""
    if isinstance(data, np.ndarray):
        return data.tolist() if data.dtype.kind == "O" and data.ndim else data
    return data.to_list() if callable(getattr(type(data), "to_list", None)) else data


def _array(data: Any, what: str = "examples") -> NDArray[Any] | None:
    """An array or a tensor as an array, by its declared type; None for anything else."""
    if hasattr(data, "detach") and hasattr(data, "is_floating_point"):
        data = data.detach().cpu()
        data = (data.float() if data.is_floating_point() else data).numpy()
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind in _NUMBERS:
        data = np.ma.filled(data.astype(np.float64), np.nan)
    if not isinstance(data, np.ndarray):
        return None
    if data.dtype.kind not in f"{_NUMBERS}U" or data.ndim < 1:
        raise _unfit(what, data.dtype)
    return data


def _unfit(what: str, dtype: Any) -> UnfitDataError:
    return UnfitDataError(
        f"The {what} are an array of type {str(dtype)[:40]}.",
        fix=f"pass an array of numbers, or a list of {what}.",
    )


def _items(data: Any) -> Sequence[Any]:
    if isinstance(data, np.ndarray):
        return data.tolist()  # type: ignore[no-any-return]
    if not isinstance(data, list | tuple):
        raise UnfitDataError(
            f"The examples are of type {type(data).__name__}.",
            fix="pass an array or a tensor with one example in each row, or a list of examples.",
        )
    return data


def _mean(fine: int, coarse: int) -> NDArray[np.float64]:
    """Averages of so many neighbours over cells that are alike, as far as they come out even."""
    edges = np.arange(coarse + 1) * fine / coarse
    reach = np.minimum(edges[1:, None], np.arange(1, fine + 1)) - np.maximum(edges[:-1, None], np.arange(fine))
    shares = np.maximum(reach, 0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _between(fine: int, coarse: int) -> NDArray[np.float64]:
    """Straight lines between the middles of cells."""
    at = (np.arange(fine) + 0.5) * coarse / fine - 0.5
    return np.array([np.interp(at, np.arange(coarse), own) for own in np.eye(coarse)]).T
