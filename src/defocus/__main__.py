"""``python -m defocus`` is the command ``defocus``."""

import sys

from defocus.cli import main

if __name__ == "__main__":
    sys.exit(main())
