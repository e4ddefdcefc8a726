"""``python -m fastrbhc`` is the command ``fastrbhc``."""

import sys

from fastrbhc.cli import main

if __name__ == "__main__":
    sys.exit(main())
