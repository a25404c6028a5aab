"""``python -m jitcount``."""

import sys

from jitcount.cli import main

if __name__ == "__main__":
    sys.exit(main())
