"""``defocus shuffler``: a shuffler with a key of its own, until it is interrupted or has done its batches."""

import contextlib
import threading
from pathlib import Path

from defocus.cli.estimating import described as description_in
from defocus.cli.terminal import console
from defocus.errors import DefocusError, InvalidParameterError
from defocus.local.designs import Design
from defocus.local.shuffling import Key, Round, Service, Shuffler

__all__ = ["run"]

_KEY = 32
"""Bytes of a public key."""


def run(oracle: Path, *, users: int, analyser: str, out: Path, port: int, batches: int | None) -> None:
    """Make the round, write it, and serve. The private key exists in this process only, and ends with it."""
    key, reader, design = Key.generate(), *_given(oracle, analyser)
    described = Round(design, users, key.public, reader)
    service = Service(Shuffler(described, key), port=port, batches=batches)
    out.write_text(described.to_json(), encoding="utf-8")
    screen = console()
    screen.print(f"Shuffling at {service.address} (the round is in {out})", soft_wrap=True)
    serving = threading.Thread(target=service.run, daemon=True)
    serving.start()
    try:
        service.finished.wait()
    except KeyboardInterrupt:
        pass
    finally:
        service.stop()
    rejected = sum(service.shuffler.rejected.values())
    screen.print(f"Stopped after {service.made} batches; {rejected} envelopes were rejected.")


def _given(oracle: Path, analyser: str) -> tuple[bytes, Design]:
    """The analyser's key and the design; where both are wrong, both are told."""
    key, design, faults = b"", None, list[DefocusError]()
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(analyser)
    if len(key) != _KEY:
        wrong = f"The analyser's public key has {2 * _KEY} hexadecimal digits, but this is none."
        faults.append(InvalidParameterError(wrong, fix="pass Key.public.hex() of the analyser."))
    try:
        design = description_in(oracle)
    except DefocusError as error:
        faults.append(error)
    if design is not None and not faults:
        return key, design
    if len(faults) == 1:
        raise faults[0]
    raise InvalidParameterError(
        "\n".join(fault.what for fault in faults), fix=" And ".join(fault.fix for fault in faults)
    )
