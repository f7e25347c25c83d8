"""Public hashes of categories, and the finite fields that some designs compute in.

A filter has ones where SHA-256 of cohort and label, cut into pieces of 4 bytes, each modulo the width, points. What is
hashed is ``cohort/label``, the number being the label where there are none, and ``cohort`` for the bucket of
others: so no label can be mistaken for that bucket.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.local.domains import Categories

__all__ = [
    "Columns",
    "Elements",
    "Field",
    "bloom_bits",
    "bloom_matrix",
    "bloom_positions",
    "coordinates",
    "field",
    "points",
    "prime_power",
    "rank",
    "sketch_hashes",
    "vectors",
]


def bloom_bits(
    domain: Categories, cohorts: NDArray[np.int64], codes: NDArray[np.int64], width: int, hashes: int
) -> NDArray[np.int64]:
    """Where the ones of each person's filter are, by hash function; some may coincide. Only these are hashed."""
    pairs, place = np.unique(cohorts * domain.size + codes, return_inverse=True)
    cut = [_digest(domain, *divmod(pair, domain.size))[: 4 * hashes] for pair in pairs.tolist()]
    bits = np.frombuffer(b"".join(cut), "<u4").astype(np.int64).reshape(-1, hashes) % width
    return np.asarray(bits[place.ravel()], np.int64)


@lru_cache(maxsize=8)
def bloom_positions(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.int64]:
    """The same for every cohort and category."""
    everyone = np.arange(cohorts * domain.size)
    positions = bloom_bits(domain, everyone // domain.size, everyone % domain.size, width, hashes)
    return positions.reshape(cohorts, domain.size, hashes)


@lru_cache(maxsize=4)
def bloom_matrix(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.float64]:
    """One row for each cohort and bit, one column for each category: whether its filter has a one there."""
    positions = bloom_positions(domain, cohorts, width, hashes)
    out = np.zeros((cohorts, width, domain.size))
    cohort, category = np.ix_(np.arange(cohorts), np.arange(domain.size))
    for i in range(hashes):
        out[cohort, positions[:, :, i], category] = 1.0
    return out.reshape(cohorts * width, domain.size)


def _digest(domain: Categories, cohort: int, code: int) -> bytes:
    other = domain.outside == "other" and code == domain.size - 1
    name = str(code) if domain.labels is None or other else domain.labels[code]
    return hashlib.sha256((f"{cohort}" if other else f"{cohort}/{name}").encode("utf-8", "surrogatepass")).digest()


_PRIME = (1 << 31) - 1
"""A Mersenne prime above the largest domain; products of two residues fit into 64 bits."""


@lru_cache(maxsize=16)
def _coefficients(seed: int, rows: int) -> NDArray[np.int64]:
    """Three residues modulo 2**31 - 1 for each row, from SHA-256: 64 bits are drawn for each, so none is preferred."""
    stream = hashlib.shake_256(f"defocus.local.sketch/{seed}".encode()).digest(24 * rows)
    return (np.frombuffer(stream, "<u8").reshape(rows, 3) % np.uint64(_PRIME)).astype(np.int64)


def sketch_hashes(
    seed: int, rows: int, width: int, row: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.int64]:
    r"""The column of each category in each given row: a random polynomial of degree 2 modulo a prime, modulo the width.

    Over the choice of coefficients, the columns of three different categories are independent, and each is uniform up
    to :math:`width / 2^{31}`.
    """
    a = _coefficients(seed, rows)[row]
    x = codes % _PRIME
    value = (a[..., 0] * x + a[..., 1]) % _PRIME
    value = (value * x + a[..., 2]) % _PRIME
    hashes: NDArray[np.int64] = value % width
    return hashes


Elements: TypeAlias = NDArray[np.integer[Any]]

_TABLED = 512
"""Fields that are not of prime order work with tables of sums and products, so they stay small."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Field:
    r"""The field of q = p**m elements, numbered from 0: the digits of a number in base p are its coordinates.

    ``waves`` turns a field element into the frequency that stands for it: the character that belongs to c maps x to
    :math:`e^{2\pi i\,\mathrm{Tr}(cx)/p}`, and Tr(cx) is the inner product modulo p of the digits of ``waves[c]``
    with those of x.
    """

    p: int
    m: int
    sums: NDArray[np.int16] | None
    products: NDArray[np.int16] | None
    inverses: NDArray[np.int16]
    waves: NDArray[np.int16]

    @property
    def q(self) -> int:
        """How many elements there are."""
        return int(self.p**self.m)

    def add(self, a: Elements, b: Elements) -> Elements:
        """Sums."""
        if self.p == 2:
            mixed: Elements = np.bitwise_xor(a, b)
            return mixed
        if self.sums is None:
            total: Elements = (a + b) % self.p
            return total
        sums: Elements = self.sums[a.astype(np.int32) * self.q + b]
        return sums

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Products."""
        if self.products is None:
            return (a.astype(np.int32) * b % self.p).astype(np.int16)
        product: Elements = self.products[a.astype(np.int32) * self.q + b]
        return product

    def negative(self, a: Elements) -> Elements:
        """What gives 0 when added."""
        if self.p == 2:
            return a
        minus = np.array([self.p - 1], np.int16)  # -1 has the same number in every extension
        return self.multiply(a, minus)


def prime_power(q: int) -> tuple[int, int] | None:
    """(p, m) with q = p**m and p prime, or None.

    >>> prime_power(27), prime_power(12)
    ((3, 3), None)
    """
    if q < 2:
        return None
    p = next((k for k in range(2, int(q**0.5) + 1) if q % k == 0), q)
    m, rest = 0, q
    while rest % p == 0:
        rest, m = rest // p, m + 1
    return (p, m) if rest == 1 else None


@lru_cache(maxsize=64)
def field(q: int) -> Field:
    """The field of q elements.

    >>> four = field(4)
    >>> four.multiply(np.array([2, 3]), np.array([2, 2])).tolist()
    [3, 1]
    """
    parts = prime_power(q) if q < 1 << 15 else None
    if parts is None or (parts[1] > 1 and q > _TABLED):
        raise InvalidParameterError(
            f"There is no field of {q if q < 1 << 63 else 'so many'} elements here.",
            fix=f"choose a prime below 2**15, or a power of a prime up to {_TABLED}.",
        )
    p, m = parts
    if m == 1:
        inverses = np.array([0, *(pow(a, -1, p) for a in range(1, p))], np.int16)
        table = np.array([[a * b % p for b in range(p)] for a in range(p)], np.int16).ravel() if p <= 64 else None
        return Field(p, 1, None, table, inverses, np.arange(p, dtype=np.int16))
    return _extension(p, m)


def _extension(p: int, m: int) -> Field:
    """Polynomials modulo an irreducible one."""
    q = p**m
    digits = np.array([[a // p**i % p for i in range(m)] for a in range(q)])
    weights = p ** np.arange(m)
    sums = ((digits[:, None] + digits[None]) % p) @ weights
    table = _products(digits, np.array(_irreducible(p, m)), p) @ weights
    inverses = np.concatenate([[0], 1 + np.argmax(table[1:, 1:] == 1, axis=1)])
    trace = np.arange(q)
    power = np.arange(q)
    for _ in range(m - 1):  # a + a^p + a^(p²) + …
        raised = power
        for _ in range(p - 1):
            raised = table[raised, power]
        power = raised
        trace = sums[trace, power]
    form = trace[table[np.ix_(weights, weights)]]  # Tr(x^i x^j), elements of the prime field
    waves = (digits @ form % p) @ weights
    return Field(
        p,
        m,
        None if p == 2 else sums.ravel().astype(np.int16),
        table.ravel().astype(np.int16),
        inverses.astype(np.int16),
        waves.astype(np.int16),
    )


def _irreducible(p: int, m: int) -> tuple[int, ...]:
    """Lower coefficients, constant first, of a monic polynomial of degree m that none of half the degree divides."""
    divisors = [(*low, 1) for degree in range(1, m // 2 + 1) for low in product(range(p), repeat=degree)]
    for low in product(range(p), repeat=m):
        if all(any(_remainder((*low, 1), divisor, p)) for divisor in divisors):
            return low
    raise AssertionError(p, m)  # pragma: no cover: there is one of every degree


def _remainder(polynomial: tuple[int, ...], monic: tuple[int, ...], p: int) -> list[int]:
    rest = list(polynomial)
    for top in range(len(rest) - 1, len(monic) - 2, -1):
        factor = rest[top]
        for i, coefficient in enumerate(monic):
            at = top - len(monic) + 1 + i
            rest[at] = (rest[at] - factor * coefficient) % p
    return rest[: len(monic) - 1]


def _products(digits: NDArray[np.int64], low: NDArray[np.int64], p: int) -> NDArray[np.int64]:
    """Digits of all products modulo x**m + low(x)."""
    m = digits.shape[1]
    out = np.zeros((len(digits), len(digits), m), np.int64)
    power = digits.copy()  # b times x^i
    for i in range(m):
        out += digits[:, None, i, None] * power[None]
        top = power[:, -1:]
        power = (np.concatenate([np.zeros_like(top), power[:, :-1]], axis=1) - top * low) % p
    return out % p


Columns: TypeAlias = list[Elements]
"""Vectors, one array for each coordinate."""


def points(q: int, t: int) -> int:
    """How many points there are: directions of t coordinates.

    >>> points(4, 6)
    1365
    """
    return int((q**t - 1) // (q - 1))


def coordinates(numbers: NDArray[np.int64], q: int, t: int) -> Columns:
    """The digits of each number in base q, t of them, the highest first."""
    if q & (q - 1) == 0:
        bits = q.bit_length() - 1
        return [((numbers >> (bits * (t - 1 - i))) & (q - 1)).astype(np.int16) for i in range(t)]
    out, rest = list[Elements](), numbers
    for _ in range(t):
        upper = rest // q
        out.append((rest - upper * q).astype(np.int16))
        rest = upper
    return out[::-1]


def vectors(numbers: NDArray[np.int64], q: int, t: int) -> Columns:
    """The vector of each point whose first coordinate other than 0 is 1.

    Points with r coordinates after that 1 are numbered from (q**r - 1)/(q - 1) on, in the order of those coordinates,
    so that the number of a point and its vector, read in base q, differ by a constant for each r.
    """
    whole = numbers.copy()
    for r in range(t - 1, -1, -1):
        whole[(numbers >= points(q, r)) & (numbers < points(q, r + 1))] += q**r - points(q, r)
    return coordinates(whole, q, t)


def rank(field: Field, y: Columns) -> NDArray[np.int64]:
    """The number of the point in the direction of each vector; none is 0."""
    q, t = field.q, len(y)
    lead = y[0].copy()
    shift = np.full(len(lead), q ** (t - 1) - points(q, t - 1), np.int64)
    for i in range(1, t):
        none = lead == 0  # all coordinates so far
        np.copyto(lead, y[i], where=none)
        np.copyto(shift, q ** (t - 1 - i) - points(q, t - 1 - i), where=none)
    scale = field.inverses[lead]
    number = np.zeros(len(lead), np.int64)
    for coordinate in y:
        number *= q
        number += field.multiply(coordinate, scale)
    number -= shift
    return number
