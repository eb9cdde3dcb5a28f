"""`python -m matchmill` is the command `matchmill`.

Little is imported here, so that an interrupt while the rest is loaded is no traceback either.
"""

import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line."""
    try:
        from matchmill.cli import main as run

        code = run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stderr.write("matchmill: interrupted\n")
        return 130
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to be cleaned up
    return code


if __name__ == "__main__":
    sys.exit(main())
