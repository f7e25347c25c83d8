"""Settings of precision are found by their old names and by the new ones."""

import subprocess
import sys

import pytest
from tests.waiting import HANGS

SETTINGS = {
    "": 0.0,
    "torch.set_float32_matmul_precision('high')": 2**-10,
    "torch.set_float32_matmul_precision('medium')": 2**-8,
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'": 2**-8,
    "torch.backends.fp32_precision = 'tf32'": 2**-10,
}


@pytest.mark.slow
def test_precisions_are_found_however_they_were_set() -> None:
    """In a process of their own, since PyTorch cannot take a setting by the new names back."""
    lines = [f"check({setting!r}, {wanted})" for setting, wanted in SETTINGS.items()]
    program = f"""
import os, torch
from defocus.learning.gradients.pieces.multipliers import total_rounding
def check(setting, wanted):
    if os.fork() == 0:
        exec(setting)
        os._exit(total_rounding(torch.zeros(1)) != wanted)
    assert os.wait()[1] == 0, setting
{chr(10).join(lines)}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANGS)  # noqa: S603 -- our own words
