r"""Noise of training: drawn from one key of the run, and bound to the sum that it is added to.

Secret streams of one run: every draw of a run follows from one key, so that a run can go on where it stopped.

Gaussian noise on the sum of a step.

Guarantee:
    *Which bits.* By default on a CPU, and by choice everywhere, noise comes from AES-256 in counter mode, under a
    secret that follows from the key of the run, the number of the step and the sum that the noise is added to. Two
    sums that differ in any bit get noise from independent streams, so that a run that is resumed twice, with other
    data, another learning rate or other code in between, never adds the same noise to different sums, whose difference
    would be bare. The same sum gets the same noise, so a run that is repeated after a crash repeats itself and tells
    nothing new. *Which law.* Box and Muller's: the radius :math:`\sqrt{-2\ln u}` of a uniform number of 31 bits, to
    which 53 are added where u is within :math:`2^{-10}` of zero or one, and the angle of one of 32 bits.
    Tails end at 10.8 standard deviations, beyond which a Gaussian falls with probability 4e-27. The noisy sum is
    rounded to a multiple h of :math:`2^{-7}` to :math:`2^{-8}` standard deviations (a coarser one where it is 32 000 of
    them long), the same for all neighbouring data. Rounding is post-processing, and adds a variance of 5e-6 at most.
    *How near.* Two numbers share a radius, so what can be seen of their law is the mass of rectangles with sides of at
    least h. The uniform number takes steps of a mass s of at most :math:`2^{-25}` where it is above one half, and of
    the larger of :math:`2^{-24} u` and :math:`2^{-31}` below (floats have 24 bits), but for what is drawn further,
    whose steps are :math:`2^{-24}` of its distance from the end. Let f be the part of the circle of radius r that lies
    in a square: it rises and falls at most twice and does not exceed one or about :math:`\sqrt2 h/(2\pi r)`, so steps
    misplace a mass of at most 4 s max f, of one of about :math:`h^2 e^{-r^2/2}/2\pi`, and finite angles four of
    :math:`2^{32}` for each radius. So

    - the square around the sum itself has its mass up to a relative :math:`2^{-20}`: no value is an atom;
    - every other square within 10 standard deviations has it up to :math:`2^{-10}`, and up to
      :math:`2^{-12}/r + 2^{-18} r` for r from one half to three.

    The tests count the masses of squares over all radii, as floats make them: they are off by a fifth of this at most,
    on the axes, where circles run along the sides of squares, and elsewhere by less than a thousandth. Over d numbers,
    the loss of privacy is moved by a sum of d/2 independent terms; if every square were as far off as the bound, and
    its neighbours the other way, this sum would have a standard deviation of :math:`4\cdot10^{-4}\sqrt d`.
What floats do not promise:
    Sums of gradients, sines and logarithms are rounded to 24 bits, so neither the sensitivity nor the law holds to the
    last digit: an example may move the rounding of the others', and a number is made up to :math:`2^{-22}` of itself,
    a ten-thousandth of the step it is rounded to. Rounding the noisy sum hides which floats are reachable (Mironov
    2012) but is no proof. Where a proof down to the last bit is needed, use mechanisms on integers.
    A torch generator (the default on a GPU, where it costs little) is Philox with a 64-bit seed: not cryptographic. Its
    normals have tails that end at 6.7 standard deviations, and a radius of exactly zero with probability 3e-8, so two
    of them are added for each number: an exact zero then takes two at once (1e-15, a billionth of the square around the
    sum), and tails end at 9.5, with densities .5 % too small at 6.7. There its seed is bound to the *lengths* of the
    sums only, one for each tensor: sums that differ and are equally long (rearranged, or with other signs) get the same
    noise, and their difference is bare. With ``randomness="cryptographic"`` sums are brought to the CPU and bound to in
    every bit, on every device. On a CPU a generator would be slower than the cipher, so there both are the cipher.
Reference:
    Mironov (2012), On significance of the least significant bits; Jin et al. (2022), Are we there yet? Timing and
    floating-point attacks on differential privacy systems; RFC 6979 (randomness that follows from what it protects).
"""

import contextlib
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, final

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.poly1305 import Poly1305
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.learning.noise_schedule import BufferedStrategy, Strategy
from defocus.ledger.entries import canonical
from defocus.noise.bits import Bits, Words

__all__ = [
    "KEY_BYTES",
    "Correlated",
    "Cryptographic",
    "Generated",
    "Noise",
    "Stream",
    "bound_to",
    "by_length",
    "derive",
    "new_key",
    "noise_of",
    "secret_of",
    "seeded",
]


KEY_BYTES = 32
_PERSON = b"defocus learning"


def new_key(bits: Bits) -> bytes:
    """A fresh secret for one run."""
    return bits.words(KEY_BYTES // 8).astype("<u8").tobytes()


def derive(key: bytes, *labels: str | int, size: int = 48) -> bytes:
    """A secret for one purpose, named by its labels: secrets of different labels are independent.

    Assumes:
        Keyed BLAKE2b is a pseudorandom function.

    >>> derive(bytes(32), "noise", 1) != derive(bytes(32), "noise", 2)
    True
    """
    text = canonical(list(labels)).encode()
    return hashlib.blake2b(text, key=key, digest_size=size, person=_PERSON).digest()


@final
class Stream(Bits):
    """Bits that follow from a key and labels: AES-256 in counter mode.

    The same key and labels give the same bits, so that a run that is resumed draws what it would have drawn. They are
    as secret as the key.
    """

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes, *labels: str | int) -> None:
        secret = derive(key, *labels)
        self._cipher = Cipher(algorithms.AES(secret[:32]), modes.CTR(secret[32:])).encryptor()

    def words(self, n: int) -> Words:
        """See the base class."""
        out = np.empty(n, np.uint64)
        self.fill(out.view(np.uint8).data)
        return out

    def fill(self, view: memoryview) -> None:
        """Overwrite ``view`` with fresh bytes."""
        for start in range(0, len(view), len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)


_ZEROS = memoryview(bytes(1 << 20))


_Floats: TypeAlias = NDArray[np.float32]
_PAIRS = 1 << 16
_DIRECT = 1 << 15
"""Tensors with so many numbers get their noise where they are, and smaller ones together."""
_FEW = 1 << 21
"""Words of 31 bits that are so near to zero, or to their end, are drawn further: one in 512."""
_TURN = np.float32(math.pi * 2.0**-31)
_GRID = 7
"""Steps of the grid are at most this power of a half of the noise."""
_NARROW = frozenset({torch.bfloat16, torch.float16})
_RANDOMNESS = ("cryptographic", "generator")


class Noise(ABC):
    """Where the noise of a step comes from."""

    __slots__ = ()

    @abstractmethod
    def add(
        self, sums: Sequence[torch.Tensor], scales: Sequence[float], secret: bytes, *, rounded: bool = True
    ) -> None:
        """Add independent Gaussian noise to each entry, with the standard deviation of its tensor.

        What is shown is ``rounded``. Noise by itself, to be added later, is not: a sum plus noise on a grid would keep
        what the sum has between the lines of the grid.
        """


def noise_of(randomness: object, device: torch.device) -> Noise:
    """The noise called "cryptographic" or "generator"; for None the first on a CPU, the second elsewhere."""
    if randomness is None:
        return Cryptographic() if device.type == "cpu" else Generated()
    if randomness not in _RANDOMNESS:
        raise InvalidParameterError(
            f"There is no randomness called {randomness!r:.60}.", fix=f"choose one of {', '.join(_RANDOMNESS)}."
        )
    return Cryptographic() if randomness == "cryptographic" else Generated()


@final
class Cryptographic(Noise):
    """Noise from a stream cipher, computed on the CPU: about 2.5 ns for each parameter."""

    __slots__ = ("_angle", "_bytes", "_cosine", "_radius")

    def __init__(self) -> None:
        self._bytes = np.empty(8 * _PAIRS, np.uint8)
        self._radius, self._angle, self._cosine = (np.empty(_PAIRS, np.float32) for _ in range(3))

    def add(
        self, sums: Sequence[torch.Tensor], scales: Sequence[float], secret: bytes, *, rounded: bool = True
    ) -> None:
        """See the base class."""
        stream = Stream(secret, "gaussian")
        with _widened(sums) as wide:
            self._add(wide, scales, stream, rounded=rounded)

    def _add(self, sums: Sequence[torch.Tensor], scales: Sequence[float], stream: Stream, *, rounded: bool) -> None:
        rest: list[torch.Tensor] = []
        scaled: list[float] = []
        for total, scale in zip(sums, scales, strict=True):
            direct = total.device.type == "cpu" and total.dtype == torch.float32 and total.is_contiguous()
            if direct and total.numel() >= _DIRECT and 1e-12 < scale < 1e12:  # whose squares are floats
                self._fill(total.detach().view(-1).numpy(), scale, stream, step=_step(scale) if rounded else None)
            elif total.numel():
                rest.append(total)
                scaled.append(scale)
        if rest:
            noise = np.zeros(sum(total.numel() for total in rest), np.float32)
            self._fill(noise, 1.0, stream)
            _spread(torch.from_numpy(noise), rest, scaled)
            if rounded:
                _round(rest, scaled)

    def _fill(self, flat: _Floats, scale: float, stream: Stream, *, step: float | None = None) -> None:
        """Add noise, and round to a step: a number is rounded when one of 24 bits is added and taken away again."""
        square, rounder = np.float32(-2 * scale * scale), np.float32(1.5 * 2.0**23 * (step or 0.0))
        for start in range(0, len(flat), 2 * _PAIRS):
            part = flat[start : start + 2 * _PAIRS]
            pairs = -(-len(part) // 2)
            radius, angle, cosine = self._radius[:pairs], self._angle[:pairs], self._cosine[:pairs]
            few, finer = self._draw(radius, angle, stream)
            np.log(radius, out=radius)
            radius[few] = finer
            np.sqrt(np.multiply(radius, square, out=radius), out=radius)
            np.multiply(np.cos(angle, out=cosine), radius, out=cosine)
            np.multiply(np.sin(angle, out=angle), radius, out=angle)
            part[:pairs] += cosine
            part[pairs:] += angle[: len(part) - pairs]
            if step is not None:
                part += rounder
                part -= rounder

    def _draw(self, uniform: _Floats, angle: _Floats, stream: Stream) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Uniform numbers above zero, and angles between minus and plus pi; the logarithms of the few near the ends."""
        drawn = self._bytes[: 8 * len(uniform)]
        stream.fill(drawn.data)
        words = drawn[: 4 * len(uniform)].view(np.uint32)
        words >>= np.uint32(1)
        uniform[:] = words.view(np.int32)  # signed numbers become floats thrice as fast
        uniform *= np.float32(2.0**-31)
        angle[:] = drawn[4 * len(uniform) :].view(np.int32)
        angle *= _TURN
        words += np.uint32(_FEW)  # those near the end become negative
        few = (words.view(np.int32) < np.int32(2 * _FEW)).nonzero()[0]
        uniform[few] = 1.0
        return few, _logarithms(words[few].astype(np.int64) - _FEW, stream.words(len(few)))


def _logarithms(words: NDArray[np.int64], more: Words) -> NDArray[np.float64]:
    """Logarithms of uniform numbers of 31 bits and 53 more, exact at both ends."""
    further = ((more >> np.uint64(11)) + np.uint64(1)) * 2.0**-53
    upper = words >= 1 << 30
    near = (np.where(upper, (1 << 31) - 1 - words, words) + further) * 2.0**-31
    logarithms: NDArray[np.float64] = np.where(upper, np.log1p(-near), np.log(near))
    return logarithms


@final
class Generated(Noise):
    """Noise from torch's own generator, seeded by 64 secret bits for each step: quick on a GPU, not cryptographic.

    On a CPU, where the cipher is quicker, it is the cipher.
    """

    __slots__ = ("_here",)

    def __init__(self) -> None:
        self._here = Cryptographic()

    def add(
        self, sums: Sequence[torch.Tensor], scales: Sequence[float], secret: bytes, *, rounded: bool = True
    ) -> None:
        """See the base class."""
        drawn: dict[torch.device, torch.Generator] = {}
        alike: dict[tuple[torch.device, torch.dtype, float], list[torch.Tensor]] = {}
        here: list[tuple[torch.Tensor, float]] = []
        with _widened(sums) as wide:
            for total, scale in zip(wide, scales, strict=True):
                if total.device.type == "cpu":
                    here.append((total, scale))
                else:
                    alike.setdefault((total.device, total.dtype, scale), []).append(total)
            if here:
                self._here.add([total for total, _ in here], [scale for _, scale in here], secret, rounded=rounded)
            for (device, dtype, scale), totals in alike.items():
                if device not in drawn:
                    seed = int.from_bytes(derive(secret, "generator", str(device), size=8), "little")
                    drawn[device] = torch.Generator(device).manual_seed(seed)
                sizes = [total.numel() for total in totals]
                noise = _two_normals(sum(sizes), drawn[device], dtype).split(sizes)
                parts = [part.view(total.shape) for part, total in zip(noise, totals, strict=True)]
                torch._foreach_add_(totals, parts, alpha=scale * math.sqrt(0.5))  # few kernels for many tensors
                if rounded:
                    _round(totals, [scale] * len(totals))


def _two_normals(size: int, generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """Sums of two standard normals each: what one draw has of atoms and ends, the other smooths."""
    first = torch.randn(size, generator=generator, device=generator.device, dtype=dtype)
    return first.add_(torch.randn(size, generator=generator, device=generator.device, dtype=dtype))


@final
class Correlated:
    """Noise that later steps take back: the solution n of C n = z for a strategy C and independent noise z.

    What later steps need is kept by the numbers of steps: of a band, the noises; of buffers, what they hold after a
    step. A step that is repeated after a failure makes its noise anew from those before it, and one that was passed
    over has none: then C without its row and column is what is solved, whose columns are no longer, and overlap no
    more, than those of C.
    """

    __slots__ = ("_strategy", "past", "source")

    def __init__(self, noise: Noise, strategy: Strategy | BufferedStrategy) -> None:
        self.source, self._strategy = noise, strategy
        self.past: dict[int, list[torch.Tensor]] = {}
        """Noises, or buffers, of the latest steps by their numbers: as secret as the data."""

    def add(self, sums: Sequence[torch.Tensor], scales: Sequence[float], secret: bytes, *, step: int) -> None:
        """Add the noise of a step; ``scales`` are for a column of norm one."""
        longer = [scale * self._strategy.norm for scale in scales]
        noise = [torch.zeros_like(total, memory_format=torch.contiguous_format) for total in sums]
        self.source.add(noise, longer, secret, rounded=False)
        if isinstance(self._strategy, Strategy):
            self._take_back(self._strategy.column, noise, step)
        else:
            self._take_back_from_buffers(self._strategy, noise, step)
        for total, new in zip(sums, noise, strict=True):
            total.add_(new)
        _round(list(sums), longer)

    def _take_back(self, column: Sequence[float], noise: list[torch.Tensor], step: int) -> None:
        """Subtract earlier noises, each times its entry of the column."""
        for back, coefficient in enumerate(column[1:], 1):
            if step - back in self.past:
                for new, old in zip(noise, self.past[step - back], strict=True):
                    new.sub_(old, alpha=coefficient)
        if len(column) > 1:
            oldest = step - len(column) + 1  # this step, repeated, needs it again
            self.past = {at: old for at, old in self.past.items() if oldest <= at < step} | {step: noise}

    def _take_back_from_buffers(self, strategy: BufferedStrategy, noise: list[torch.Tensor], step: int) -> None:
        r"""Subtract :math:`\sum_i w_i s_i`, with buffers :math:`s_i = \sum_{j<t} \lambda_i^{t-1-j} n_j` of noises."""
        latest = max((at for at in self.past if at < step), default=None)
        held = self.past.get(-1 if latest is None else latest)
        size, kept = len(noise), []
        before = [torch.zeros_like(each) for each in noise * len(strategy.weights)] if held is None else held
        for place, (weight, decay) in enumerate(zip(strategy.weights, strategy.decays, strict=True)):
            passed = decay ** (step - 1 - latest) if latest is not None else 1.0  # over steps without noise
            kept.append([old * passed for old in before[place * size : (place + 1) * size]])
            for new, buffer in zip(noise, kept[-1], strict=True):
                new.sub_(buffer, alpha=weight)
        for decay, buffers in zip(strategy.decays, kept, strict=True):
            for buffer, new in zip(buffers, noise, strict=True):
                buffer.mul_(decay).add_(new)
        after = {step: [buffer for buffers in kept for buffer in buffers]}
        self.past = after if latest is None or held is None else {latest: held} | after  # this step may be repeated


def secret_of(noise: Noise | Correlated, key: bytes, step: int, sums: Sequence[torch.Tensor]) -> bytes:
    """The secret of the noise of a step: bound to every bit of the sums, but for a generator on another device."""
    source = noise.source if isinstance(noise, Correlated) else noise
    if isinstance(source, Generated) and any(total.device.type != "cpu" for total in sums):
        return by_length(key, step, sums)
    return bound_to(key, step, sums)


def bound_to(key: bytes, step: int, sums: Sequence[torch.Tensor]) -> bytes:
    r"""The secret of the noise of a step, bound to the sums it is added to: others get an independent one.

    Guarantee:
        Sums of L bytes that differ collide with probability at most :math:`8\lceil L/16\rceil\,2^{-106}` (Poly1305
        under a secret key of this step, never shown): below :math:`2^{-80}` up to 33 million parameters, below
        :math:`2^{-70}` up to 34 billion. They are hashed on the CPU, wherever they are.
    """
    hashed = Poly1305(derive(key, "binding", step, size=32))
    for total in sums:
        hashed.update(total.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return derive(key, "noise", step, hashed.finalize().hex())


def by_length(key: bytes, step: int, sums: Sequence[torch.Tensor]) -> bytes:
    """The secret of the noise of a step, bound to the lengths of its sums: one pass over them where they are.

    Sums that differ and are equally long get the same secret, so this tells changed sums apart by chance only.
    """
    lengths = torch._foreach_norm([total.detach() for total in sums])  # noqa: SLF001 -- as torch's own clipping does
    return derive(
        key, "noise", step, *(number.hex() for number in torch.stack([length.float() for length in lengths]).tolist())
    )


@contextmanager
def _widened(sums: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Sums of few bits with more of them while noise is added: noise of few bits would show on the grid."""
    wide = [total.float() if total.dtype in _NARROW else total for total in sums]
    yield wide
    for total, sum_ in zip(sums, wide, strict=True):
        if total is not sum_:
            total.copy_(sum_)


def _spread(noise: torch.Tensor, totals: list[torch.Tensor], scales: list[float]) -> None:
    """Add standard noise to tensors, each its part of it, scaled, in few kernels."""
    parts = noise.split([total.numel() for total in totals])
    shaped = [part.view(total.shape).to(total) for part, total in zip(parts, totals, strict=True)]
    torch._foreach_mul_(shaped, scales)
    torch._foreach_add_(totals, shaped)


def _round(totals: list[torch.Tensor], scales: list[float]) -> None:
    """Round every sum to the grid of its noise: a power of two."""
    steps = [_step(scale) for scale in scales]
    if len(set(steps)) == 1:
        torch._foreach_mul_(totals, 1 / steps[0])
        torch._foreach_round_(totals)
        torch._foreach_mul_(totals, steps[0])
    else:
        torch._foreach_mul_(totals, [1 / step for step in steps])
        torch._foreach_round_(totals)
        torch._foreach_mul_(totals, steps)


def _step(scale: float) -> float:
    return float(2.0 ** (math.floor(math.log2(scale)) - _GRID))


@contextlib.contextmanager
def seeded(key: bytes, step: int, rank: int, device: torch.device) -> Iterator[None]:
    """Let torch's generators start from a seed of the run, the step and the process, and be as they were afterwards.

    So a step that is taken again, in whichever process and after whatever was drawn elsewhere, drops what it dropped.
    """
    seed = int.from_bytes(derive(key, "random", step, rank, size=8), "little")
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
