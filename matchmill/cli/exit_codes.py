"""What the exit codes mean."""

from __future__ import annotations

__all__ = [
    "ALL_GOOD",
    "BROKEN_PIPE",
    "BUG",
    "EXIT_CODES",
    "INTERRUPTED",
    "NO",
    "SOME_REJECTED",
    "TERMINATED",
    "USER_ERROR",
]

ALL_GOOD = 0
NO = 1
USER_ERROR = 2
SOME_REJECTED = 3
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

EXIT_CODES = """\
exit codes:
  0    success; for explain: it matches
  1    check: rejected rows, unknown attributes or wrong types; pipeline check: there
       are mistakes; explain: it does not match; bench: a contender failed or was
       wrong, or something got slower and --fail-on-slower was given
  2    a mistake in the command line, a file or an expression, or an error of a service;
       nothing was written
  3    done, but some rows or events were rejected
  70   a bug in matchmill, with a traceback
  130  interrupted (Ctrl-C); 141 the reader of the output went away; 143 terminated"""
