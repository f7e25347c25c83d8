"""Models by other people: what a private step costs beside a plain one, by which way, and how long the set-up takes.

    python benchmarks/models.py [MODEL ...] [--device=cuda] [--batch=64] [--tiny] [--rounds=5] [--profile]

Models of transformers, and of torchvision where it is installed, with random weights, at their usual sizes, or tiny
ones. In one process, taking turns: the plain step is zero_grad, forward, backward and optimizer.step (SGD); the
private one clips, and adds noise drawn by torch. The least time of all rounds counts: processor time on a CPU, time
between synchronisations on a GPU. The set-up is what finds and checks the way, on made-up examples. Gradients are
compared with the loop over examples on a batch of four, without TF32. Memory is the peak of the first steps, with
measuring and recording, above model and batch; --profile prints the kernels of a private step that take most time
beside those of a plain one. Results go into results/models.json.
"""

import copy
import gc
import json
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
from torch.utils import _pytree as trees

from defocus.learning.gradients import Gradients
from defocus.learning.gradients.losses import Losses
from defocus.learning.gradients.reference import Looped

DEVICE = next((a[9:] for a in sys.argv if a.startswith("--device=")), "cpu")
TINY = "--tiny" in sys.argv
BATCH = next((int(a[8:]) for a in sys.argv if a.startswith("--batch=")), 4 if TINY else 64)
ROUNDS = next((int(a[9:]) for a in sys.argv if a.startswith("--rounds=")), 2 if TINY else 5)
LENGTH, WORDS = (8, 50) if TINY else (128, 8000)
RESULTS = Path(__file__).parent / "results" / "models.json"


def classes(output: Any, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output.logits, target)


def scores(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output, target)


def words(output: Any, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output.logits[:, :-1].flatten(0, 1), target[:, 1:].flatten())


def text(*, masked: bool = False) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    ids = torch.randint(1, WORDS, (BATCH, LENGTH), device=DEVICE)
    inputs = {"input_ids": ids}
    if masked:
        lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1), device=DEVICE)
        inputs["attention_mask"] = (torch.arange(LENGTH, device=DEVICE) < lengths).long()
    return inputs, torch.randint(0, 2, (BATCH,), device=DEVICE)


def images() -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    side = 32 if TINY else 224
    pixels = torch.randn(BATCH, 3, side, side, device=DEVICE)
    return {"pixel_values": pixels}, torch.randint(0, 2, (BATCH,), device=DEVICE)


def pictures() -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    inputs, target = images()
    return {"x": inputs["pixel_values"]}, target


def same(inputs: dict[str, torch.Tensor], _: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    return inputs, inputs["input_ids"]


def adapted(model: nn.Module) -> nn.Module:
    """Low-rank adapters of rank 8 on queries and values, everything else frozen; what peft would make."""

    class Adapted(nn.Module):
        def __init__(self, base: nn.Linear) -> None:
            super().__init__()
            self.base = base
            self.a = nn.Linear(base.in_features, 8, bias=False)
            self.b = nn.Linear(8, base.out_features, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + 2 * self.b(self.a(x))

    model.requires_grad_(False)
    for module in list(model.modules()):
        for name in ("q_proj", "v_proj"):
            if isinstance(getattr(module, name, None), nn.Linear):
                setattr(module, name, Adapted(getattr(module, name)))
    return model


def residual() -> dict[str, tuple[Callable[[], nn.Module], Any, Callable[[], Any]]]:
    """The residual networks of torchvision with group norm, since batch norm mixes examples."""
    try:
        from torchvision.models import resnet
    except ImportError:
        return {}

    def groups(channels: int) -> nn.Module:
        return nn.GroupNorm(32, channels)

    return {
        "resnet18": (lambda: resnet.resnet18(norm_layer=groups), scores, pictures),
        "resnet50": (lambda: resnet.resnet50(norm_layer=groups), scores, pictures),
    }


def makers() -> dict[str, tuple[Callable[[], nn.Module], Any, Callable[[], Any]]]:
    import transformers as t

    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    usual = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
    width = {"vocab_size": WORDS, **(shape if TINY else usual)}
    llama = {**width, "num_key_value_heads": 1 if TINY else 4, "intermediate_size": 32 if TINY else 2048}
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    gpt = {"n_embd": 16, "n_layer": 2, "n_head": 2} if TINY else {}
    small = {"image_size": 32, "patch_size": 8, **shape} if TINY else {}
    stages = {"depths": [1, 1, 1, 1], "hidden_sizes": [4, 8, 8, 8]} if TINY else {}
    windows = {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    }
    dry = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}

    def make_llama() -> nn.Module:
        return t.LlamaForCausalLM(t.LlamaConfig(**llama))

    return {
        "bert": (lambda: t.BertForSequenceClassification(t.BertConfig(**width, **quiet)), classes, text),
        "bert, masked": (
            lambda: t.BertForSequenceClassification(t.BertConfig(**width, **quiet)),
            classes,
            lambda: text(masked=True),
        ),
        "gpt2": (
            lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=WORDS, **gpt, **dry)),
            words,
            lambda: same(*text()),
        ),
        "llama": (make_llama, words, lambda: same(*text())),
        "llama, lora": (lambda: adapted(make_llama()), words, lambda: same(*text())),
        "qwen2": (lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**llama)), words, lambda: same(*text())),
        "vit": (lambda: t.ViTForImageClassification(t.ViTConfig(**small)), classes, images),
        "convnext": (lambda: t.ConvNextForImageClassification(t.ConvNextConfig(**stages)), classes, images),
        "swin": (
            lambda: t.SwinForImageClassification(t.SwinConfig(**(windows if TINY else {}), drop_path_rate=0.0)),
            classes,
            images,
        ),
        **residual(),
    }


def now() -> float:
    if DEVICE == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def gaps(model: nn.Module, loss: Any, batch: Any, gradients: Gradients) -> dict[str, Any]:
    """The largest relative gaps to the loop: of a parameter's sum, unless that is rounding alone, and of a norm."""
    few = trees.tree_map(lambda leaf: leaf[:4], batch)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found, norms = [], []
    rule = lambda norms: (1 / norms).clamp(max=1)  # noqa: E731 -- one use
    for way in (
        lambda: gradients.clipped_sum(few, rule).norms,
        lambda: Looped(model, Losses(loss), (trained,)).add(few, rule)[1][0],
    ):
        model.zero_grad()
        norms.append(way())
        found.append({name: p.grad.clone() for name, p in trained.items()})
    model.zero_grad()
    whole = torch.stack([each.norm() for each in found[1].values()]).norm()
    each = {
        name: float((found[0][name] - each).norm() / each.norm())
        for name, each in found[1].items()
        if each.norm() > 1e-5 * whole
    }
    where = max(each, key=lambda name: each[name])
    return {"worst_gap": each[where], "worst_at": where, "norm_gap": float((norms[0] / norms[1] - 1).abs().max())}


def warmed(step: Callable[[], None]) -> int:
    """The most bytes that the first steps of a tool allocate on a GPU, measuring and recording included."""
    if DEVICE == "cpu":
        return [step() for _ in range(4)].count(0)
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def profile(*steps: Callable[[], None]) -> None:
    """The kernels of each step by their time, and how long a step is launched."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if DEVICE != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    for step in steps:
        start = now()
        begun = time.perf_counter()
        step()
        launched, whole = time.perf_counter() - begun, now() - start
        with torch.profiler.profile(activities=activities) as seen:
            step()
            now()
        events = [each for each in seen.key_averages() if DEVICE == "cpu" or each.self_device_time_total]
        spent = (lambda e: e.self_cpu_time_total) if DEVICE == "cpu" else (lambda e: e.self_device_time_total)
        kernels = [each for each in events if DEVICE == "cpu" or each.self_cpu_time_total == 0]
        total, many = sum(map(spent, kernels)), sum(each.count for each in kernels)
        print(f"  launched {launched * 1e3:.1f} of {whole * 1e3:.1f} ms; {many} kernels take {total / 1e3:.1f} ms")
        for each in sorted(kernels, key=spent, reverse=True)[:22]:
            print(f"  {spent(each) / 1e3:8.2f} ms {each.count:5d} {each.key[:110]}")


def measured(name: str, make: Callable[[], nn.Module], loss: Any, batch: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = make().to(DEVICE).train()
    plain = copy.deepcopy(model)
    gradients = Gradients(model, loss)
    start = now()
    gradients.check(trees.tree_map(lambda leaf: leaf[:2], batch))
    build = now() - start
    gap = gaps(model, loss, batch, gradients)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    ours, theirs = (
        torch.optim.SGD([p for p in each.parameters() if p.requires_grad], lr=1e-3) for each in (model, plain)
    )

    def private() -> None:
        ours.zero_grad()
        gradients.clipped_sum(batch, lambda norms: (1 / norms).clamp(max=1))
        sums = [p.grad for p in model.parameters() if p.requires_grad]
        noise = torch.randn(sum(each.numel() for each in sums), device=DEVICE)
        parts = noise.split([each.numel() for each in sums])
        torch._foreach_add_(sums, [part.view_as(each) for part, each in zip(parts, sums, strict=True)])
        torch._foreach_div_(sums, BATCH)
        ours.step()

    def without() -> None:
        theirs.zero_grad()
        loss(plain(**batch[0]), batch[1]).backward()
        theirs.step()

    times: dict[str, list[float]] = {"plain": [], "private": []}
    memory = [warmed(step) for step in (without, private)]
    for _ in range(ROUNDS):
        for tool, step in (("plain", without), ("private", private)):
            start = now()
            for _ in range(1 if DEVICE == "cpu" else 5):
                step()
            times[tool].append((now() - start) / (1 if DEVICE == "cpu" else 5))
    base, mine = min(times["plain"]), min(times["private"])
    if "--profile" in sys.argv:
        profile(without, private)
    found = {
        "way": gradients.explain().splitlines()[0],
        "build_seconds": build,
        **gap,
        "plain_ms": base * 1e3,
        "private_ms": mine * 1e3,
        "ratio": mine / base,
        **({"memory": memory[1] / memory[0]} if DEVICE != "cpu" else {}),
    }
    print(
        name, {key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}, flush=True
    )
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    if DEVICE == "cpu":
        torch.set_num_threads(1)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    here = known.setdefault(f"{DEVICE}{', tiny' if TINY else ''}", {})
    here["about"] = {"torch": torch.__version__, "python": platform.python_version(), "batch": BATCH}
    asked = [a for a in sys.argv[1:] if not a.startswith("--")]
    for name, (make, loss, batch) in makers().items():
        if asked and name not in asked:
            continue
        try:
            here[name] = measured(name, make, loss, batch())
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(name, f"takes no part: {error!r:.300}", flush=True)
        gc.collect()
        if DEVICE != "cpu":
            torch.cuda.empty_cache()
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
