"""One step: everything that it releases, taken together, has the noise that was charged."""

import math
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.making import data, model, named, trainer
from torch.utils.data import Dataset

from defocus import user
from defocus.errors import BranchedRunError, ChangedModelError, StepFailedError
from defocus.learning import AdaptiveClipping, AutomaticClipping, Metrics, PerLayerClipping, Schedule
from defocus.learning import step as steps
from defocus.learning.gradients.pieces.norm_bounds import _USED, TOLD
from defocus.learning.metrics import GRID
from defocus.learning.noise import seeded
from defocus.learning.step import _TF32, _parts


@pytest.mark.parametrize(
    "more",
    [
        {"metrics": "nothing"},
        {"metrics": Metrics(precision=0.2)},
        {"max_grad_norm": AdaptiveClipping(initial=0.3, precision=0.1)},
        {"max_grad_norm": AdaptiveClipping(initial=0.3, precision=0.1), "metrics": Metrics(precision=0.2)},
        {"max_grad_norm": PerLayerClipping({"0": 3.0, "2": 0.1}), "metrics": Metrics(precision=0.2)},
        {"max_grad_norm": PerLayerClipping(1.0), "metrics": "nothing"},
        {"max_grad_norm": AutomaticClipping(0.5)},
    ],
    ids=named,
)
@pytest.mark.parametrize("step", [0, 1])
def test_one_unit_moves_all_that_is_released_by_as_much_as_was_charged(tmp_path: Path, more: Any, step: int) -> None:
    """Per-example sums over the noise of each: the worst case is the inverse of the ratio, never more."""
    net = model()
    run = trainer(tmp_path, model=net, epsilon=50, delta=1e-5, steps=2, noise=Schedule([3, 1]), **more)
    stepper, plan = run._stepper, run.plan
    scales = stepper._scales(step, list(stepper.parameters))
    assert len(scales) == len(stepper.parameters) + (stepper._width > 0)
    groups = stepper.clipping.names if isinstance(stepper.clipping, PerLayerClipping) else (tuple(stepper.parameters),)
    of = dict(zip(stepper.parameters, scales, strict=False))
    moved = sum(
        (TOLD * clip / of[group[0]]) ** 2 for clip, group in zip(stepper.clips, groups, strict=True)
    )  # a group has one scale
    assert all(len({of[name] for name in group}) == 1 for group in groups)
    if stepper._width:
        furthest = 0.0
        for loss in (0.0, 1.0, 5.0, math.inf, math.nan):
            for norm in (0.0, 0.3, 2.0, math.inf):
                beside = stepper._scaled(stepper._beside(torch.tensor([loss]), torch.tensor([norm]), 1.0))
                furthest = max(furthest, float(beside.norm()))
        assert furthest <= 1 + 1e-6
        moved += (TOLD / scales[-1]) ** 2
        many = torch.full((stepper._width,), 2**28 * GRID)
        assert float((stepper._scaled(many + GRID) - stepper._scaled(many)).max()) <= TOLD, "however large the sums are"
    assert math.sqrt(moved) == pytest.approx(1 / (plan.ratio * (3, 1)[step]))


def test_layers_have_less_noise_in_all_than_one_scale_would_give(tmp_path: Path) -> None:
    run = trainer(tmp_path, max_grad_norm=PerLayerClipping({"0": 3.0, "2": 0.1}), metrics="nothing")
    stepper = run._stepper
    names = list(stepper.parameters)
    sizes = [stepper.parameters[name].numel() for name in names]
    found = sum(size * scale**2 for size, scale in zip(sizes, stepper._scales(0, names), strict=True))
    assert found < sum(sizes) * (run.plan.ratio * run.max_grad_norm) ** 2


def test_the_realised_number_is_used_for_nothing(tmp_path: Path) -> None:
    """The same example alone or beside others of zero gradient gives the same mean: the divisor is the expected one."""
    means = []
    for n in (1, 40):
        x, y = torch.zeros(n, 5), torch.zeros(n, dtype=torch.long)
        x[0] = 1.0
        net = torch.nn.Linear(5, 2, bias=False)
        torch.nn.init.ones_(net.weight)
        run = trainer(
            tmp_path, model=net, data=(x, y), size=40, batch_size=40, steps=1, noise_multiplier=1e-3, epsilon=10**8,
            delta=0.01, ledger=tmp_path / f"{n}.ledger", metrics="nothing",
        )  # fmt: skip
        run.fit(progress=False)
        means.append(net.weight.grad.clone())
    assert torch.allclose(means[0], means[1], atol=1e-3)


def test_parts_of_a_batch_have_one_weight_each_and_hold_everyone_once() -> None:
    weights = np.array([1.0, 0.5, 0.5, 0.25, 1.0, 1.0])
    parts = list(_parts(weights, 2))
    assert sorted(np.concatenate([part for part, _ in parts]).tolist()) == list(range(6))
    assert all((weights[part] == weight).all() and len(part) <= 2 for part, weight in parts)
    assert [len(part) for part, _ in _parts(np.zeros(0), 2)] == [0]


def test_a_user_counts_once_however_many_examples(tmp_path: Path) -> None:
    users = np.array([0] * 60 + [1, 2, 3, 4])
    run = trainer(
        tmp_path, unit=user("id"), users=users, batch_size=2, max_grad_norm=AdaptiveClipping(), metrics=Metrics()
    )
    stepper = run._stepper
    numbers, weights = stepper.units.examples_of(np.array([0]))
    assert len(numbers) == 60
    sums = stepper._sum(list(stepper.parameters.values()), numbers, weights)
    length = math.sqrt(sum(float(p.grad.square().sum()) for p in stepper.model.parameters() if p.grad is not None))
    assert length <= 1 + 1e-5
    assert float(sums.norm()) <= 1 + 1e-5


def test_noise_is_made_for_norms_that_are_told_too_small() -> None:
    assert _USED * (1 + 1e-4) < TOLD


def test_noise_elsewhere_is_made_for_factors_of_eleven_bits(tmp_path: Path) -> None:
    """A GPU may round both factors of a product to 11 bits, each by at most one part in 2 ** 11."""
    run = trainer(tmp_path, metrics="nothing")
    here = run._stepper._scales(0, list(run._stepper.parameters))
    run._stepper.model.to("meta")
    there = run._stepper._scales(0, list(run._stepper.parameters))
    assert there == pytest.approx([_TF32 * scale for scale in here])
    assert _TF32 > (1 + 2.0**-11) ** 2


def test_a_batch_that_does_not_fit_in_memory_is_cut_until_it_does(tmp_path: Path) -> None:
    """And the sums are those of the whole: nothing of the attempt that failed is left in them."""
    run = trainer(tmp_path, metrics=Metrics(precision=0.2))
    stepper, parameters, numbers = run._stepper, list(run._stepper.parameters.values()), np.arange(40)
    beside = stepper._sum(parameters, numbers, np.ones(40))
    whole, given = [parameter.grad for parameter in parameters], stepper.gradients
    stepper.gradients = small(given, 10)
    again = stepper._sum(parameters, numbers, np.ones(40))
    assert stepper.chunk == 10
    assert torch.allclose(beside, again, rtol=1e-5)
    for parameter, expected in zip(parameters, whole, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-6)
    stepper.gradients = small(given, 0)
    stepper._sum(parameters, numbers, np.ones(40))  # no example fits: each counts as nothing, and none ends the run
    assert all(float(parameter.grad.abs().sum()) == 0 for parameter in parameters)


def small(*given: Any) -> Any:
    """In the place of gradients."""
    return Small(*given)


class Small:
    """Gradients that fail for more than so many examples, after the fact; for want of memory unless told."""

    def __init__(self, gradients: Any, most: int, error: Exception | None = None) -> None:
        self._gradients, self._most, self._error = gradients, most, error or torch.OutOfMemoryError()

    def kept(self) -> Any:
        return self._gradients.kept()

    def clipped_sum(self, batch: Any, rule: Any) -> Any:
        found = self._gradients.clipped_sum(batch, rule)
        if len(batch[0]) > self._most:
            raise self._error
        return found


class Talking(torch.nn.Linear):
    """A model that warns of what it sees."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) and float(x.detach().max()) > 1e6:
            warnings.warn("a value is very large", stacklevel=1)
        return super().forward(x)


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
def test_a_warning_about_private_examples_is_not_shown(tmp_path: Path) -> None:
    x = torch.full((40, 6), 1e7)
    run = trainer(tmp_path, model=Talking(6, 3), data=(x, torch.zeros(40, dtype=torch.long)))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run.fit(progress=False)
    assert not seen


def test_what_is_noted_of_a_step_changes_with_sums_scales_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, other = bytes(48), bytes([1]) * 48
    noted = steps._digest(secret, [1.0, 2.0])
    others = [steps._digest(other, [1.0, 2.0]), steps._digest(secret, [1.0, 2.5])]
    assert noted == steps._digest(secret, [1.0, 2.0])
    assert noted not in others
    monkeypatch.setattr(steps, "_made_by", lambda: b"another version")
    assert noted != steps._digest(secret, [1.0, 2.0])


@pytest.mark.parametrize("watch", ["paid", "private"])
def test_an_example_on_which_the_loss_fails_counts_as_nothing(tmp_path: Path, watch: str) -> None:
    """Labels beyond the classes make the loss of a whole batch fail, and its error quotes one of them."""
    x, y = data()
    odd = y.clone()
    odd[[3, 17, 40]] = 7
    run = trainer(tmp_path, data=(x, odd), metrics=watch)
    stepper, parameters = run._stepper, list(run._stepper.parameters.values())
    beside = stepper._sum(parameters, np.arange(64), np.ones(64))
    found = [parameter.grad for parameter in parameters]
    others = np.setdiff1d(np.arange(64), [3, 17, 40])
    without = stepper._sum(parameters, others, np.ones(61))
    worst = torch.tensor([torch.inf])
    assert torch.allclose(beside, without + 3 * stepper._scaled(stepper._beside(worst, worst, 1.0)))
    for parameter, sum_ in zip(parameters, found, strict=True):
        assert torch.allclose(parameter.grad, sum_, atol=1e-6)
    assert run.private is None or run.private.unusable == 3
    assert run.fit(progress=False).steps == 8


def test_what_fails_together_only_is_added_up_in_parts(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    stepper, parameters, numbers = run._stepper, list(run._stepper.parameters.values()), np.arange(40)
    beside = stepper._sum(parameters, numbers, np.ones(40))
    whole = [parameter.grad.clone() for parameter in parameters]
    stepper.gradients = small(stepper.gradients, 5, ValueError("1.25 is too much"))
    assert torch.allclose(stepper._sum(parameters, numbers, np.ones(40)), beside, rtol=1e-5)
    for parameter, expected in zip(parameters, whole, strict=True):
        assert torch.allclose(parameter.grad, expected, atol=1e-6)


class Odd(Dataset[Any]):
    """Examples of which some are something else."""

    def __init__(self, odd: dict[int, Any]) -> None:
        self.odd, (self.x, self.y) = odd, data()

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> Any:
        if isinstance(self.odd.get(i), Exception):
            raise self.odd[i]
        return self.odd[i] if i in self.odd else (self.x[i], self.y[i])


@pytest.mark.slow
@pytest.mark.parametrize("odd", [(torch.zeros(6), 0), None, ValueError("secret"), (torch.zeros(5), 7), "secret"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_example_that_does_not_fit_counts_as_nothing_and_ends_no_run(tmp_path: Path, odd: Any, first: int) -> None:
    given = Odd({first: odd, 17: odd, 40: odd})
    run = trainer(
        tmp_path, data=given, example=(torch.zeros(5), 0), max_grad_norm=AdaptiveClipping(), metrics=Metrics(), chunk=10
    )
    stepper, parameters = run._stepper, list(run._stepper.parameters.values())
    beside = stepper._sum(parameters, np.arange(64), np.ones(64))
    found = [parameter.grad.clone() for parameter in parameters]
    without = stepper._sum(parameters, np.setdiff1d(np.arange(64), [first, 17, 40]), np.ones(61))
    worst = torch.tensor([torch.inf])
    assert torch.allclose(beside, without + 3 * stepper._scaled(stepper._beside(worst, worst, 1.0)), rtol=1e-5)
    for parameter, sum_ in zip(parameters, found, strict=True):
        assert torch.allclose(parameter.grad, sum_, atol=1e-6)
    assert run.fit(progress=False, checkpoint=tmp_path / "c").steps == 8


class Writing(torch.nn.Linear):
    """Writes to its own weights for values that nobody makes up."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x.detach() == 4321).any()):
            with torch.no_grad():
                self.weight[0] *= 0.5
        return super().forward(x)


def _fails_in_noise(run: Any, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(type(run._stepper.noise), "add", lambda *_: torch.tensor([4321.0]).view(7))


def _writes_weights(run: Any, patch: pytest.MonkeyPatch) -> None:
    del run, patch


def _fails_in_log(run: Any, patch: pytest.MonkeyPatch) -> None:
    def note(step: int, digest: bytes) -> None:
        raise BranchedRunError("Another sum.", fix="none.") from ValueError(digest, step)

    patch.setattr(type(run._paid), "note", lambda _, *given: note(*given))


def _is_interrupted(run: Any, patch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt(given)

    patch.setattr(type(run._stepper.data), "take", stopped)


def _changes(run: Any, patch: pytest.MonkeyPatch) -> None:
    del patch
    run._stepper.model.eval()


@pytest.mark.filterwarnings("ignore::defocus.learning.gradients.SlowGradientsWarning")
@pytest.mark.parametrize(
    ("fail", "kind"),
    [
        (_fails_in_noise, StepFailedError),
        (_writes_weights, StepFailedError),
        (_fails_in_log, BranchedRunError),
        (_is_interrupted, KeyboardInterrupt),
        (_changes, ChangedModelError),
    ],
)
@pytest.mark.parametrize("watch", ["paid", "private"])
def test_an_error_after_the_charge_carries_nothing_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Any, kind: type[BaseException], watch: str
) -> None:
    """No cause, no context, and no frame in which an example, who was drawn, a gradient or the key is at hand."""
    x, y = torch.full((64, 5), 4321.0), torch.zeros(64, dtype=torch.long)
    kind_of_model = Writing if fail is _writes_weights else torch.nn.Linear
    run = trainer(tmp_path, model=kind_of_model(5, 2), data=(x, y), metrics=watch)
    batch = next(run.batches())
    fail(run, monkeypatch)
    with pytest.raises(kind) as caught:
        run.step(batch)
    problem = caught.value
    assert problem.__cause__ is None
    assert problem.__context__ is None
    assert "4321" not in "".join(traceback.format_exception(problem))
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)][1:]  # the first is this test
    assert len(frames) <= 2
    for frame in frames:
        for value in frame.f_locals.values():
            assert value is run or value is batch or value is problem  # what the user holds already
            assert repr(run._paid.key) not in repr(value)
    assert all(parameter.grad is None for parameter in run._stepper.parameters.values())


def test_the_draws_for_others_are_those_without_an_example_that_fails(tmp_path: Path) -> None:
    """Halves that start from one seed would drop the same of both, and the sum of the others would spread further."""
    net = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.Dropout(0.5))
    x, y = torch.ones(64, 5), torch.zeros(64, dtype=torch.long)
    odd = y.clone()
    odd[-1] = 2  # no class of the model: the loss fails
    run = trainer(tmp_path, model=net, data=(x, y), metrics="nothing")
    stepper, sums = run._stepper, []
    before = stepper.gradients.explain()
    for labels in (y, odd):
        stepper.data._tensors = (x, labels)
        alike = partial(seeded, bytes(32), 0, 0, torch.device("cpu"))
        stepper._added(list(stepper.parameters.values()), np.arange(64), alike)
        sums.append(torch.cat([each.grad.flatten().clone() for each in stepper.parameters.values()]))
    assert float((sums[0] - sums[1]).norm()) <= stepper.clips[0] * TOLD
    assert stepper.gradients.explain() == before


class _Reused(Dataset[Any]):
    """Each item is read into the memory of the one before."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows, self.memory = rows, torch.zeros(rows.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        return self.memory.copy_(self.rows[i]), 1


def test_items_that_share_their_memory_are_still_items_of_their_own(tmp_path: Path) -> None:
    rows = torch.arange(320.0).reshape(64, 5)
    run = trainer(tmp_path, data=_Reused(rows), example=(torch.zeros(5), 0))
    assert torch.equal(run._stepper.data.take(np.arange(64))[0], rows)
