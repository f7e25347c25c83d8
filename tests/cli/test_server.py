"""``defocus serve`` as a command."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_port_in_use_is_refused_before_anything_is_made(defocus: Callable[..., Any], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = defocus("serve", "--demo", "--home", str(tmp_path / "home"), "--port", str(port))
    assert ran.code == 2
    assert f"cannot listen on port {port} of 127.0.0.1" in ran.err
    assert "another --port" in ran.err
    assert "invitation" not in ran.out
    assert not (tmp_path / "home").exists()
