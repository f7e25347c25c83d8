"""The shuffler as a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.waiting import HANGS

from defocus.local import oracle
from defocus.local.shuffling import Analyser, Key, Round, acknowledge, fetch, send


def test_a_round_with_a_shuffler_in_another_process(tmp_path: Path) -> None:
    asked, reader = oracle("k-rr", 4, 3), Key.generate()
    description, where = tmp_path / "oracle.json", tmp_path / "round.json"
    description.write_text(asked.to_json())
    words = ("shuffler", description, "--users", 40, "--analyser", reader.public.hex(), "--out", where, "--batches", 1)
    running = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "defocus", *map(str, words)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert running.stdout is not None
        address = running.stdout.readline().split()[2]
        described = Round.from_json(where.read_text())
        reports = asked.encode([2] * 40)
        assert send(address, described.envelopes(reports)) == {"accepted": 40, "rejected": 0}
        batch = fetch(address)
        assert batch is not None
        analyser = Analyser(described, reader)
        counted = asked.estimate(analyser.count(batch))
        assert running.poll() is None
        assert acknowledge(address, analyser.receipt())
        assert counted.counts.tolist() == asked.estimate(reports).counts.tolist()
        assert running.wait(timeout=HANGS) == 0
        assert "Stopped after 1 batches; 0 envelopes were rejected." in running.stdout.read()
    finally:
        running.kill()
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


def test_bad_words_are_refused_before_anything_listens(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description = tmp_path / "oracle.json"
    description.write_text(oracle("k-rr", 4, 3).to_json())
    good = Key.generate().public.hex()
    bad = ((0, good, description), (9, "zz", description), (9, "00", description), (9, good, tmp_path))
    for users, key, file in bad:
        ran = defocus("shuffler", file, "--users", users, "--analyser", key, "--out", tmp_path / "round.json")
        assert ran.code != 0
        assert "To fix" in ran.err
    assert not (tmp_path / "round.json").exists()


def test_a_bad_description_and_a_bad_key_are_both_told(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description = tmp_path / "bad.json"
    description.write_text("{}")
    words = ("--users", 9, "--out", tmp_path / "round.json")
    both = defocus("shuffler", description, "--analyser", "zz", *words).err
    assert "64 hexadecimal digits" in both
    assert "Key.public.hex()" in both
    assert "description of an oracle could not be read" in both
    one = defocus("shuffler", description, "--analyser", Key.generate().public.hex(), *words).err
    assert "hexadecimal" not in one
