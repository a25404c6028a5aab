"""``python -m jitcount``."""

import sys

from jitcount._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
