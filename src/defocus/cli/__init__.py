"""Floor 9: how people reach Defocus from a terminal.

Exit codes: 0 done, 1 refused or a violation found, 2 the command was not understood.
"""

from defocus.cli.app import main

__all__ = ["main"]
