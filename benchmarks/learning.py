"""Private learning: what a step of DP-SGD costs, as a ratio to the step without privacy.

    python benchmarks/learning.py [MODEL:BATCH ...] [--device=cuda] [--rounds=7] [--quick] ["--skip=TOOL;TOOL"]

Every tool takes the same model, batch, clipping norm, noise and optimizer (SGD), in one process, taking turns; a step
is zero_grad, forward, backward, clipping, noise and optimizer.step. The least time over all rounds counts: processor
time of one thread on a CPU, time between synchronisations on a GPU, where memory is noted as well: the peak of what a
tool allocates from its start on, model, measuring and recording included. Noise is what the trainer would add by
default: from a stream cipher on a CPU, from torch's generator on a GPU. Networks of images are faster with channels
last in memory, which Defocus finds out by itself; like is compared with like where the plain step has them so too.

Opacus takes part where it is installed: benchmarks/setup.sh makes an environment for it, in which this script runs with
`PYTHONPATH=src .bench/opacus/bin/python benchmarks/learning.py`. Results go into results/learning.json.
"""

import copy
import gc
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "learning_parts")]

from models import make  # noqa: E402 -- beside this file

from defocus.learning.gradients import Gradients  # noqa: E402
from defocus.learning.gradients.onepass import channels_last  # noqa: E402

DEVICE = next((a[9:] for a in sys.argv if a.startswith("--device=")), "cpu")
QUICK = "--quick" in sys.argv
ROUNDS = 2 if QUICK else next((int(a[9:]) for a in sys.argv if a.startswith("--rounds=")), 7)
RESULTS = HERE / "results" / "learning.json"
ON_CPU = ("mlp:1024", "small_cnn:1024", "encoder:64")
ON_GPU = ("small_cnn:1024", "cnn:1024", "mlp:4096", "encoder:256", "large_encoder:32")
CASES = [a for a in sys.argv[1:] if not a.startswith("--")] or (ON_CPU if DEVICE == "cpu" else ON_GPU)
SKIP = next((a[7:].split(";") for a in sys.argv if a.startswith("--skip=")), [])
Step = Callable[[], Any]


def without_privacy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def without_privacy_channels_last(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
    if x.dim() != 4:
        raise ValueError("no images")
    return without_privacy(model, channels_last(x), y)


def noise_on(device: str, randomness: str) -> Callable[[list[torch.Tensor]], None]:
    """The trainer's own noise on a CPU; on a GPU the like of it, since its packages may be missing there."""
    if device == "cpu":
        from defocus.learning.noise import noise_of

        noise, turn = noise_of(randomness, torch.device(device)), iter(range(10**9))
        return lambda sums: noise.add(sums, [1.0] * len(sums), next(turn).to_bytes(32, "little"))

    def add(sums: list[torch.Tensor]) -> None:
        made = torch.randn(sum(each.numel() for each in sums), device=device)
        parts = made.split([each.numel() for each in sums])
        torch._foreach_add_(sums, [part.view_as(each) for part, each in zip(parts, sums, strict=True)])

    return add


def with_defocus(randomness: str, *, as_given: bool = False) -> Callable[[nn.Module, torch.Tensor, torch.Tensor], Step]:
    def build(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        if as_given and x.dim() != 4:
            raise ValueError("no images")
        settled = f"format {len(x).bit_length()} {[tuple(x.shape[1:])]}"
        gradients = Gradients(model, nn.CrossEntropyLoss(), tuning={settled: "as given"} if as_given else None)
        add_noise = noise_on(DEVICE, randomness)

        def step() -> str:
            optimizer.zero_grad(set_to_none=True)
            gradients.clipped_sum((x, y), lambda norms: (1 / norms).clamp(max=1))
            sums = [p.grad for p in model.parameters()]
            add_noise(sums)
            torch._foreach_div_(sums, len(x))
            optimizer.step()
            ways = sorted(set(gradients.tuning.values()))
            return f"{gradients.explain().splitlines()[0]} {', '.join(ways)}"

        return step

    return build


def with_opacus(mode: str) -> Callable[[nn.Module, torch.Tensor, torch.Tensor], Step]:
    def build(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
        from opacus import PrivacyEngine

        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        settings: dict[str, Any] = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": False}
        loss: Any = nn.CrossEntropyLoss()
        if mode == "ghost":
            settings |= {"criterion": loss, "grad_sample_mode": "ghost"}
            model, optimizer, loss, _ = PrivacyEngine().make_private(
                module=model, optimizer=optimizer, data_loader=data, **settings
            )
        else:
            model, optimizer, _ = PrivacyEngine().make_private(
                module=model, optimizer=optimizer, data_loader=data, **settings
            )

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss(model(x), y).backward()
            optimizer.step()

        return step

    return build


TOOLS: dict[str, Callable[[nn.Module, torch.Tensor, torch.Tensor], Step]] = {
    "without privacy": without_privacy,
    "without privacy, channels last": without_privacy_channels_last,
    "defocus": with_defocus("cryptographic"),
    "defocus, torch's noise": with_defocus("generator"),
    "defocus, order as given": with_defocus("cryptographic", as_given=True),
    "opacus hooks": with_opacus("hooks"),
    "opacus ghost": with_opacus("ghost"),
}


def seconds(step: Step, steps: int) -> float:
    if DEVICE == "cpu":
        start = time.process_time()
        for _ in range(steps):
            step()
        return (time.process_time() - start) / steps
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def ready(tool: str, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[Step, float] | None:
    """A tool after its first steps, and what it needed on a GPU, in MB; None where it cannot take part."""
    before = 0
    if DEVICE != "cpu":
        gc.collect()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    try:
        step = TOOLS[tool](copy.deepcopy(model), x, y)
        for _ in range(5 if DEVICE != "cpu" else 2):
            step()
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"  {tool} takes no part: {error!r:.80}", flush=True)
        return None
    if DEVICE == "cpu":
        return step, 0.0
    torch.cuda.synchronize()
    return step, float(torch.cuda.max_memory_allocated() - before) / 1e6


def compare(case: str) -> dict[str, Any]:
    name, batch = case.split(":")
    model, x, y = make(name, int(batch), DEVICE)
    steps = 1 if DEVICE == "cpu" else 20
    times: dict[str, list[float]] = {}
    memory: dict[str, float] = {}
    taking: dict[str, Step] = {}
    for tool in TOOLS:
        if tool in SKIP or (DEVICE != "cpu" and tool == "defocus, torch's noise"):
            continue
        found = ready(tool, model, x, y)
        if found is not None:
            taking[tool], needed = found
            times[tool] = []
            if DEVICE != "cpu":
                memory[tool] = needed
    for _ in range(ROUNDS):
        for tool, step in taking.items():
            times[tool].append(seconds(step, steps))
    best = {tool: min(all_of) for tool, all_of in times.items()}
    base = best["without privacy"]
    told = str(taking["defocus"]())
    print(case, told, flush=True)
    result: dict[str, Any] = {"way": told}
    for tool, least in best.items():
        result[tool] = {"milliseconds": least * 1e3, "ratio": least / base}
        line = f"  {tool:30} {least * 1e3:9.2f} ms  {least / base:6.3f}"
        if memory:
            result[tool] |= {"peak_mb": memory[tool], "memory_ratio": memory[tool] / memory["without privacy"]}
            line += f"  {memory[tool]:8.0f} MB {memory[tool] / memory['without privacy']:6.3f}"
        print(line, flush=True)
    return result


def main() -> None:
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    warnings.simplefilter("ignore")
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    here = known.setdefault(DEVICE, {})
    here["about"] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": torch.cuda.get_device_name() if DEVICE != "cpu" else platform.processor() or platform.machine(),
        "load": os.getloadavg()[0],
        "rounds": ROUNDS,
    }
    for case in CASES:
        here[case] = here.get(case, {}) | compare(case)
        gc.collect()
        if not QUICK:
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
