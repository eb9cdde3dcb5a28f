"""`python -m matchmill` is the command `matchmill`."""

import sys

from matchmill.cli import main

if __name__ == "__main__":
    sys.exit(main())
