"""Noise has the declared law, follows from what it is added to, and solves its strategy."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.learning.making import model, parameters, trainer
from torch import nn

from defocus.errors import InvalidParameterError, StepFailedError
from defocus.learning.noise import (
    KEY_BYTES,
    Correlated,
    Cryptographic,
    Generated,
    Noise,
    Stream,
    _logarithms,
    _two_normals,
    bound_to,
    by_length,
    derive,
    new_key,
    noise_of,
    secret_of,
    seeded,
)
from defocus.learning.noise_schedule import Banded, BufferedToeplitz, strategy
from defocus.noise.testing import seeded as repeated

KEY = bytes(range(32))
NOISES = [Cryptographic(), Generated()]


def drawn(noise: Noise, n: int, scale: float, secret: bytes = KEY) -> torch.Tensor:
    total = torch.zeros(n)
    noise.add([total], [scale], secret)
    return total


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_noise_has_the_declared_scale_and_no_other(noise: Noise) -> None:
    found = drawn(noise, 200_001, 3.0).double().numpy()
    assert stats.kstest(found, "norm", args=(0, 3.0)).pvalue > 1e-6
    assert stats.kstest(found, "norm", args=(0, 3.3)).pvalue < 1e-6
    assert stats.kstest(found, "norm", args=(0, 2.7)).pvalue < 1e-6
    assert abs(found.std() - 3) < 5 * 3 / math.sqrt(2 * len(found))
    assert abs(found.mean()) < 5 * 3 / math.sqrt(len(found))


@pytest.mark.statistical
def test_tails_and_neighbours_are_those_of_independent_gaussians() -> None:
    found = drawn(Cryptographic(), 400_000, 1.0).double().numpy()
    beyond = int((np.abs(found) > 4).sum())
    assert stats.binomtest(beyond, len(found), 2 * stats.norm.sf(4)).pvalue > 1e-6
    half = 1 << 16  # numbers that share a radius are so far apart
    for lag in (1, half, 2 * half):
        assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 5 / math.sqrt(len(found) - lag)
        squares = np.corrcoef(found[:-lag] ** 2, found[lag:] ** 2)[0, 1]
        assert abs(squares) < 5 / math.sqrt(len(found) - lag)


Numbers = np.ndarray[tuple[int], np.dtype[Any]]


def radii_of(words: Numbers) -> Numbers:
    """The radii that noise makes of words of 31 bits, with the middle of what is drawn further for those it is."""
    made, noising = [], Cryptographic()
    for part in np.split(words, range(1 << 16, len(words), 1 << 16)):
        stream = Given(np.concatenate([part << 1, 0 * part]), [1 << 63] * len(part))
        noise = np.zeros(2 * len(part), np.float32)
        noising._fill(noise, 1.0, stream)  # type: ignore[arg-type]  # not the stream of a key
        made.append(noise[: len(part)])  # at the angle zero, it is the radius itself
    return np.concatenate(made).astype(float)


def test_no_value_near_the_sum_is_an_atom() -> None:
    """Radii of all words near the end, counted: each disc has the mass that the Gaussian gives it."""
    radii = np.sort(radii_of(np.arange(2**31 - 2**19, 2**31)))
    for radius in 2.0**-9 * np.array([0.5, 1, 2**0.5, 3, 5, 8]):  # discs in and around the square around the sum
        counted = np.searchsorted(radii, radius) / 2**31
        assert counted == pytest.approx(-math.expm1(-(radius**2) / 2), rel=2.0**-9)
    assert max(radii[0], np.diff(radii).max()) < 2.0**-15  # of a hundredth of the grid, and there are 53 bits more:
    ends = _logarithms(np.array([2**31 - 1] * 3), np.array([0, 2**40, 2**64 - 1], np.uint64))
    assert (-ends).tolist() == pytest.approx([2.0**-84, 2.0**-55 + 2.0**-84, 2.0**-31])


def arcs(radii: Numbers, x: float, y: float, half: float) -> Numbers:
    """Which part of each circle lies in a square around (x, y) above the first axis, or around zero."""
    if x == y == 0:
        return 1 - 4 * np.arccos(np.minimum(1, half / radii)) / np.pi
    low, high = (np.arccos(np.clip((x + a) / radii, -1, 1)) for a in (half, -half))
    inside = np.zeros_like(radii)
    for sign, edge in ((1, y - half), (-1, y + half)):
        start = np.arcsin(np.minimum(1, edge / radii))
        inside += sign * np.maximum(0, np.minimum(high, np.pi - start) - np.maximum(low, start))
    return inside / (2 * np.pi)


@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (0.0, 0.0125), (0.03, 0.044), (0.0, 0.5), (1.7, 1.1), (0.0, 3.6)])
def test_squares_of_the_grid_have_the_mass_of_the_rounded_gaussian(x: float, y: float) -> None:
    """Counted over all radii that meet a square, for the finest step that the grid can have."""
    half = 2.0**-9
    near, far = math.hypot(max(0, x - half), max(0, y - half)), math.hypot(x + half, y + half)
    first, last = (int(2**31 * math.exp(-r * r / 2)) for r in (far, near))
    radii = radii_of(np.arange(max(0, first - 300), min(2**31, last + 300)))
    mass = math.prod(stats.norm.cdf(centre + half) - stats.norm.cdf(centre - half) for centre in (x, y))
    assert np.maximum(0, arcs(radii, x, y, half)).sum() / 2**31 == pytest.approx(
        mass, rel=2.0**-20 if x == y == 0 else 2.0**-12 / max(0.5, y)
    )


class Given:
    """A stream that gives what it was given, and zeros afterwards."""

    def __init__(self, words: list[int] | Numbers, more: list[int]) -> None:
        self._words, self.more = words, more

    def fill(self, view: memoryview) -> None:
        np.frombuffer(view, np.uint32)[:] = self._words

    def words(self, n: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        drawn, self.more = self.more[:n], self.more[n:]
        return np.array(drawn, np.uint64)


def test_noise_is_the_transform_of_its_bits_and_small_numbers_are_drawn_further() -> None:
    """The law that is stated, number by number, down to the end of the tails."""
    words = [2**31, 2**22, 2**22 - 2, 12_344, 0, 0, 2**32 - 2]
    more = [2**63, 0, 2**64 - 1, 0, 2**62]
    turns = [0, 1 << 29, 1 << 30, 5 << 29, 3 << 28, 0, 1 << 31]
    extra = iter((draw // 2**11 + 1) / 2**53 for draw in more)
    uniform = [(word / 2 + (next(extra) if word < 2**22 else 0)) / 2**31 for word in words]
    logarithms = [*np.log(uniform[:-1]), math.log1p(-next(extra) / 2**31)]
    radius = np.sqrt(-2 * np.array(logarithms))
    angle = np.array([turn - (turn >= 2**31) * 2**32 for turn in turns]) * math.pi / 2**31
    made, stream = np.zeros(13, np.float32), Given(words + turns, more)
    Cryptographic()._fill(made, 3.0, stream)  # type: ignore[arg-type]  # not the stream of a key
    expected = 3 * np.concatenate([radius * np.cos(angle), (radius * np.sin(angle))[:6]])
    assert np.allclose(made, expected, rtol=1e-5, atol=1e-6)
    assert radius.max() == pytest.approx(math.sqrt(2 * 84 * math.log(2)))
    assert not stream.more


def test_two_normals_of_a_generator_make_one() -> None:
    """The law of noise on other devices; on a CPU a generator is the cipher."""
    found = _two_normals(200_000, torch.Generator().manual_seed(1), torch.float32).double().numpy()
    assert stats.kstest(found, "norm", args=(0, math.sqrt(2))).pvalue > 1e-6
    assert stats.kstest(found, "norm", args=(0, 1.1 * math.sqrt(2))).pvalue < 1e-6
    assert torch.equal(drawn(Generated(), 1000, 3.0), drawn(Cryptographic(), 1000, 3.0))


def test_noise_on_sums_of_few_bits_has_all_of_its_own() -> None:
    """Noise that is rounded to eight bits before it is added would have holes as wide as the grid."""
    for noise in NOISES:
        total = torch.full((1 << 16,), 1.0, dtype=torch.bfloat16)
        noise.add([total], [1.0], KEY)
        wide = torch.full((1 << 16,), 1.0)
        noise.add([wide], [1.0], KEY)
        assert torch.equal(total, wide.bfloat16())


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e15])
def test_scales_of_any_size(scale: float) -> None:
    found = drawn(Cryptographic(), 1 << 16, scale).double()
    assert float(found.std()) == pytest.approx(scale, rel=0.02)
    assert bool(torch.isfinite(found).all())


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_noisy_sums_lie_on_a_grid_that_depends_on_the_noise_alone(noise: Noise) -> None:
    for start, size in itertools.product((0.0, 0.3), (1000, 1 << 15)):
        total = torch.full((size,), start)
        noise.add([total], [3.0], KEY)
        assert ((total * 2**6) % 1 == 0).all()
        assert ((total * 2**5) % 1 != 0).any()


def test_nothing_of_a_sum_stands_between_the_lines_of_the_grid_of_correlated_noise() -> None:
    """Noise on a grid, added to a sum that is not, would show the low bits of the sum."""
    how = strategy(Banded(4, 8), steps=20, groups=8)
    for noise, size in itertools.product(NOISES, (1000, 1 << 15)):
        correlated, scale = Correlated(noise, how), 3.0 / how.norm
        for step in range(6):
            total = torch.rand(size)
            correlated.add([total], [scale], KEY[:-1] + bytes([step]), step=step)
            assert ((total * 2**6) % 1 == 0).all()
        assert all(((kept * 2**6) % 1 != 0).any() for (kept,) in correlated.past.values())


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_every_layout_gets_noise_everywhere(noise: Noise) -> None:
    shapes = [
        torch.zeros(3, 7).t(),
        torch.zeros(()),
        torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
    ]
    shapes += [torch.zeros(5, dtype=torch.float64), torch.zeros(0), torch.zeros((1 << 16) + 3)]
    noise.add(shapes, [1.0] * len(shapes), KEY)
    assert all((each != 0).double().mean() > 0.99 for each in shapes if each.numel())


def test_tensors_of_one_step_share_no_noise() -> None:
    sums = [torch.zeros(100), torch.zeros(100)]
    Cryptographic().add(sums, [1.0, 1.0], KEY)
    assert not (sums[0] == sums[1]).any()


def test_equal_sums_get_equal_noise_and_others_independent_noise() -> None:
    """Otherwise a run resumed twice, with something changed, would show the difference of its sums bare."""
    here, same, other = torch.ones(50_000), torch.ones(50_000), torch.ones(50_000)
    other[7] += 2.0**-20
    secrets = [bound_to(KEY, 3, [each]) for each in (here, same, other)]
    assert secrets[0] == secrets[1] != secrets[2]
    assert bound_to(KEY, 4, [here]) != secrets[0] != bound_to(bytes(32), 3, [here])
    for total, secret in zip((here, same, other), secrets, strict=True):
        Cryptographic().add([total], [1.0], secret)
    assert torch.equal(here, same)
    assert abs(float((here - other).std()) - math.sqrt(2)) < 0.03


def test_binding_sees_every_tensor_and_type() -> None:
    sums = [torch.zeros(3), torch.zeros((), dtype=torch.float64), torch.zeros(2, 2).t()]
    before = bound_to(KEY, 0, sums)
    for each in sums:
        each.add_(1)
        assert bound_to(KEY, 0, sums) != before
        each.sub_(1)


def test_elsewhere_the_lengths_of_sums_tell_them_apart() -> None:
    device = torch.device("meta")
    assert noise_of(None, device).__class__ is Generated
    sums = [torch.ones(1000), torch.ones(10)]
    before = by_length(KEY, 3, sums)
    assert by_length(KEY, 3, [each.clone() for each in sums]) == before
    sums[1][4] += 1e-3
    assert by_length(KEY, 3, sums) != before
    assert by_length(KEY, 4, sums) != by_length(KEY, 3, sums)


class Elsewhere(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    device = property(lambda _: torch.device("cuda"))


def test_cryptographic_noise_is_bound_to_every_bit_of_sums_on_any_device() -> None:
    """Sums that are equally long, such as rearranged ones, would otherwise get the same noise."""
    sums = torch.arange(10.0).as_subclass(Elsewhere)
    turned = torch.arange(10.0).flip(0).as_subclass(Elsewhere)
    how = strategy(Banded(4, 8), steps=20, groups=8)
    for noise in (Cryptographic(), Correlated(Cryptographic(), how)):
        assert secret_of(noise, KEY, 3, [sums]) != secret_of(noise, KEY, 3, [turned])
        assert secret_of(noise, KEY, 3, [sums]) == bound_to(KEY, 3, [torch.arange(10.0)])
    for quick in (Generated(), Correlated(Generated(), how)):
        assert secret_of(quick, KEY, 3, [sums]) == by_length(KEY, 3, [sums])
        assert secret_of(quick, KEY, 3, [torch.arange(10.0)]) == bound_to(KEY, 3, [sums])


def test_correlated_noise_solves_its_strategy() -> None:
    how = strategy(Banded(4, 8), steps=20, groups=8)
    correlated, plain = Correlated(Cryptographic(), how), Cryptographic()
    matrix = np.zeros((20, 20))
    for t in range(20):
        matrix[t : t + 4, t] = how.column[: 20 - t]
    noises, independent = [], []
    for step in range(20):
        secret = KEY[:-1] + bytes([step])
        total, bare = torch.zeros(6), torch.zeros(6)
        correlated.add([total], [2.0], secret, step=step)
        plain.add([bare], [2.0 * how.norm], secret, rounded=False)
        noises.append(total.double().numpy())
        independent.append(bare.double().numpy())
    line = 2.0 ** (math.floor(math.log2(2.0 * how.norm)) - 7)
    assert np.abs(matrix @ np.array(noises) - np.array(independent)).max() < line / 2 * sum(map(abs, how.column)) + 1e-5
    assert sorted(correlated.past) == [16, 17, 18, 19]


def test_noise_from_buffers_solves_its_strategy_without_the_steps_that_were_passed_over() -> None:
    how = strategy(BufferedToeplitz(3), steps=20, groups=8)
    correlated, plain = Correlated(Cryptographic(), how), Cryptographic()
    taken = [step for step in range(20) if step not in {4, 9, 10, 11}]

    def entry(row: int, column: int) -> float:
        past = row - column
        if past <= 0:
            return float(past == 0)
        return sum(w * d ** (past - 1) for w, d in zip(how.weights, how.decays, strict=True))

    noises, independent = [], []
    for step in taken:
        secret = KEY[:-1] + bytes([step])
        sums = [torch.zeros(6), torch.zeros(2, 2)]
        for _ in range(1 + step % 2):  # some are repeated
            for total in sums:
                total.zero_()
            correlated.add(sums, [2.0, 2.0], secret, step=step)
        bare = [torch.zeros(6), torch.zeros(2, 2)]
        plain.add(bare, [2.0 * how.norm] * 2, secret, rounded=False)
        noises.append(np.concatenate([total.double().numpy().ravel() for total in sums]))
        independent.append(np.concatenate([total.double().numpy().ravel() for total in bare]))
    matrix = np.array([[entry(row, column) for column in taken] for row in taken])
    line = 2.0 ** (math.floor(math.log2(2.0 * how.norm)) - 7)
    rounding = line / 2 * matrix.sum(axis=1).max() + 1e-5
    assert np.abs(matrix @ np.array(noises) - np.array(independent)).max() < rounding
    assert sorted(correlated.past) == [18, 19]
    assert all(len(kept) == 3 * 2 for kept in correlated.past.values())


@pytest.mark.parametrize("made", [Banded(4, 8), BufferedToeplitz(3)], ids=["banded", "buffered"])
def test_correlated_noise_of_a_step_that_is_repeated_is_the_same(made: Any) -> None:
    """A step that failed after its noise was made must not be taken back by its own repetition."""
    how = strategy(made, steps=20, groups=8)
    plain, repeated = Correlated(Cryptographic(), how), Correlated(Cryptographic(), how)
    for step in range(6):
        secret, here, there = KEY[:-1] + bytes([step]), torch.zeros(50), torch.zeros(50)
        plain.add([here], [1.0], secret, step=step)
        for _ in range(1 + step % 3):
            repeated.add([there.zero_()], [1.0], secret, step=step)
        assert torch.equal(here, there)


def test_correlated_noise_of_a_step_that_is_passed_over_is_left_out_of_the_strategy() -> None:
    how = strategy(Banded(4, 8), steps=20, groups=8)
    correlated, first, later = Correlated(Cryptographic(), how), torch.zeros(50), torch.zeros(50)
    correlated.add([first], [1.0], KEY, step=0)
    bare = drawn(Cryptographic(), 50, how.norm, bytes(32))
    correlated.add([later], [1.0], bytes(32), step=3)
    assert torch.allclose(later, bare - how.column[3] * first, atol=2.0**-6)
    gone = torch.zeros(50)
    correlated.add([gone], [1.0], bytes(32), step=7)
    assert torch.equal(gone, bare)


def test_the_default_is_cryptographic_on_a_cpu_and_a_generator_elsewhere() -> None:
    assert isinstance(noise_of(None, torch.device("cpu")), Cryptographic)
    assert isinstance(noise_of(None, torch.device("cuda")), Generated)
    assert isinstance(noise_of("cryptographic", torch.device("cuda")), Cryptographic)
    assert isinstance(noise_of("generator", torch.device("cpu")), Generated)
    with pytest.raises(InvalidParameterError, match="no randomness called 'numpy'"):
        noise_of("numpy", torch.device("cpu"))


ZEROS = bytes(32)


CPU = torch.device("cpu")


def by_torch(key: bytes, step: int, rank: int) -> list[float]:
    with seeded(key, step, rank, CPU):
        return list(torch.rand(4).tolist())


def test_draws_follow_from_key_step_and_process() -> None:
    torch.manual_seed(1)
    first = by_torch(ZEROS, 3, 0)
    torch.manual_seed(2)
    assert by_torch(ZEROS, 3, 0) == first
    assert first not in (by_torch(ZEROS, 3, 1), by_torch(ZEROS, 4, 0), by_torch(bytes([1]) * 32, 3, 0))


def test_the_users_generator_is_as_it_was_also_after_a_failure() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    by_torch(ZEROS, 0, 0)
    with pytest.raises(ZeroDivisionError), seeded(ZEROS, 0, 0, CPU):
        _ = torch.rand(1) / 0, 1 // 0
    assert torch.equal(torch.get_rng_state(), before)


def test_a_step_that_failed_is_taken_again_with_the_same_dropout(tmp_path: Path) -> None:
    nets = [model(5, 0, nn.Dropout(0.5)) for _ in range(2)]
    trainer(tmp_path, model=nets[0], ledger=tmp_path / "a.ledger").fit(progress=False)
    run = trainer(tmp_path, model=nets[1])
    before = torch.get_rng_state()
    batch = next(run.batches())
    noise = run._stepper.noise
    run._stepper.noise = None  # type: ignore[assignment]  # so that it fails once its sum is there
    with pytest.raises(StepFailedError):
        run.step(batch)
    run._stepper.noise = noise
    torch.rand(3)
    run.fit(progress=False)
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))
    assert not torch.equal(torch.get_rng_state(), before)  # by our own draw alone


@given(step=st.integers(0, 10**6))
def test_a_stream_repeats_itself_and_no_other(step: int) -> None:
    first = Stream(KEY, "noise", step).words(8)
    assert (first == Stream(KEY, "noise", step).words(8)).all()
    for other in (Stream(KEY, "noise", step + 1), Stream(KEY, "sample", step), Stream(bytes(32), "noise", step)):
        assert not (first == other.words(8)).any()


def test_labels_are_not_run_together() -> None:
    assert len({derive(KEY, "a", "b"), derive(KEY, "ab"), derive(KEY, "a", 1), derive(KEY, "a", "1"), derive(KEY)}) == 5


def test_words_and_integers_go_on_in_one_stream() -> None:
    stream, again = Stream(KEY, "x"), Stream(KEY, "x")
    words = again.words(4)
    assert stream.integer(64) == int(words[0])
    assert stream.integer(128) == int(words[1]) << 64 | int(words[2])
    assert stream.integer(3) == int(words[3]) >> 61


def test_bits_are_even() -> None:
    words = Stream(KEY, "even").words(200_000)
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * len(words))


def test_a_key_is_drawn_from_bits() -> None:
    assert len(new_key(repeated(1))) == KEY_BYTES
    assert new_key(repeated(1)) == new_key(repeated(1)) != new_key(repeated(2))
