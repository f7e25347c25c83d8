"""``defocus shuffler``: a shuffler with a key of its own, until it is interrupted or has done its batches."""

import threading
from pathlib import Path

from defocus.cli.terminal import console
from defocus.errors import InvalidParameterError
from defocus.local.designs import from_json
from defocus.local.shuffling import Key, Round, Service, Shuffler

__all__ = ["run"]

_LARGEST = 1 << 26


def run(oracle: Path, *, users: int, analyser: str, out: Path, port: int, batches: int | None) -> None:
    """Make the round, write it, and serve. The private key exists in this process only, and ends with it."""
    try:
        reader = bytes.fromhex(analyser)
    except ValueError:
        raise InvalidParameterError(
            "The analyser's public key is not hexadecimal.", fix="pass Key.public.hex() of the analyser."
        ) from None
    key = Key.generate()
    with oracle.open("rb") as file:
        described = Round(from_json(file.read(_LARGEST)), users, key.public, reader)
    service = Service(Shuffler(described, key), port=port, batches=batches)
    out.write_text(described.to_json(), encoding="utf-8")
    screen = console()
    screen.print(f"Shuffling at {service.address}; the round is in {out}.", soft_wrap=True)
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
