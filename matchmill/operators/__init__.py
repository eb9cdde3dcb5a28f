"""Operators: functions of the user that expressions call, with a cost and variables to bind.

Importing any module of this package registers the operators that come with matchmill.
"""

from matchmill.operators import builtin as builtin
