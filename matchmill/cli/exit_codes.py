"""What the exit codes mean; the help of every command lists them."""

from __future__ import annotations

ALL_GOOD = 0
NO = 1  # check: there are bad rows; explain: it does not match
USER_ERROR = 2
SET_ASIDE = 3
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143
