"""The text of calls and constraints: what follows `name(` and `?name`.

    call        name ( [argument {, argument}] )        argument: a literal or ?variable
    constraint  term comparison term
    term        product {(+ | -) product}
    product     factor {(* | /) factor}
    factor      number | literal | ?variable | - factor | ( term )

Tokens are the parser's; a number includes the minus before it, so `?x -5` is two tokens and means a
difference. Parentheses that are followed by a sign or a comparison hold a term, all others a group
of conditions.
"""

from __future__ import annotations

from typing import NoReturn, cast

from matchmill.language.operator_calls import (
    MOST_SIGNS,
    Arithmetic,
    Call,
    Constraint,
    Sign,
    Term,
    Variable,
)
from matchmill.language.parser_errors import Complaints
from matchmill.language.tokens import COMPARISONS, NUMBER_STARTS, is_name
from matchmill.language.values import Value

__all__ = ["CallRules"]

_SIGNS = frozenset("+-*/")


class CallRules(Complaints):
    """The rules of calls and constraints. `self.i` is the token that comes next."""

    __slots__ = ("_n_listed", "_n_signs")
    _n_listed: int  # literals beyond the first of each condition

    def _literal(self, i: int, in_list: bool = False) -> Value:
        """Return the literal at token i; leave self.i after it."""
        raise NotImplementedError

    # -- calls

    def _call(self, name: str, i: int) -> Call:
        """Read `name(…)`; i is the parenthesis."""
        start = i
        arguments: list[Value | Variable] = []
        while self.tokens[i + 1] != ")" or arguments:
            arguments.append(self._argument(i + 1, name))
            if len(arguments) > self.settings.max_values:
                self._fail_too_many("literals", "max_values", self.settings.max_values)
            i = self.i
            if self.tokens[i] == ")":
                break
            if self.tokens[i] != ",":
                self._fail_in_list(start, i)
        self.i = i + 1 if arguments else i + 2
        self._n_listed += max(0, len(arguments) - 1)
        if self.tokens[self.i] in COMPARISONS:
            self._fail(
                f"`{name[:40]}(…)` is a condition, not a value",
                self.i,
                f"let it bind its value: {name[:40]}(?x) and ?x > 5",
            )
        return Call(name, tuple(arguments))

    def _argument(self, i: int, name: str) -> Value | Variable:
        token = self.tokens[i]
        if token[:1] == "?":
            return self._variable(i)
        if is_name(token) and token.lower() not in ("true", "false", "date", "timestamp"):
            self._fail(
                f"an argument is a literal or a variable, not the name {self._shown(i)}",
                i,
                f"text takes single quotes: '{token[:40]}'; a variable starts with ?:"
                f" ?{token[:40]}; the operator sees the whole event anyway",
            )
        return self._literal(i, in_list=True)

    def _variable(self, i: int) -> Variable:
        name = self.tokens[i][1:]
        if not name.isidentifier():
            self._fail(
                f"a variable is a question mark and a name, not {self._shown(i)}",
                i,
                "write ?people",
            )
        self.i = i + 1
        return Variable(name)

    # -- constraints

    def _is_term(self, i: int) -> bool:
        """Whether the literal before token i belongs to a constraint: `2 * ?z < …`, `2 < ?z`."""
        following = self.tokens[i + 1]
        if self.tokens[i] in COMPARISONS:
            return following[:1] in ("?", "(") or following == "-"
        return self.tokens[i][:1] in _SIGNS

    def _opens_term(self, i: int) -> bool:
        """Whether the parenthesis at token i is arithmetic: `(?x + 1) * 2 > 7`."""
        depth = 0
        for at in range(i, len(self.tokens)):
            token = self.tokens[at]
            depth += (token == "(") - (token == ")")
            if depth == 0:
                following = self.tokens[at + 1]
                return following in COMPARISONS or following[:1] in _SIGNS
        return False

    def _constraint(self, i: int) -> Constraint:
        """Read a comparison of terms that starts at token i."""
        self._n_signs = 0
        left = self._sum(i, 0)
        at = self.i
        op = COMPARISONS.get(self.tokens[at])
        if op is None:
            self._fail(
                f"a comparison is expected after `{str(left)[:40]}`, not {self._shown(at)}",
                at,
                "a variable stands in a call or in a comparison: ?x > 5",
            )
        right = self._sum(at + 1, 0)
        if self.tokens[self.i] in COMPARISONS:
            self._fail_chain()
        self._n_listed += 1
        constraint = Constraint(left, op, right)
        if not constraint.variables:
            self._fail("two literals are compared", i, "one side must have a variable: ?x > 5")
        return constraint

    def _sum(self, i: int, depth: int) -> Term:
        left = self._product(i, depth)
        while True:
            token = self.tokens[self.i]
            if token in ("+", "-"):
                right = self._product(self.i + 1, depth)
            elif token[:1] == "-" and len(token) > 1:  # `?x -5`
                self.tokens[self.i] = token[1:]
                right = self._product(self.i, depth)
                token = "-"
            else:
                return left
            left = self._arithmetic(token, left, right)

    def _product(self, i: int, depth: int) -> Term:
        left = self._factor(i, depth)
        while (token := self.tokens[self.i]) in ("*", "/"):
            left = self._arithmetic(token, left, self._factor(self.i + 1, depth))
        return left

    def _arithmetic(self, sign: str, left: Term, right: Term) -> Arithmetic:
        self._n_signs += 1
        if self._n_signs > MOST_SIGNS:
            self._fail_large_term(self.i - 1)
        return Arithmetic(cast("Sign", sign), left, right)

    def _fail_large_term(self, i: int) -> NoReturn:
        self._fail(
            f"a constraint has more than {MOST_SIGNS} signs or parentheses", i, "simplify it"
        )

    def _factor(self, i: int, depth: int) -> Term:
        if depth > MOST_SIGNS:
            self._fail_large_term(i)
        token = self.tokens[i]
        if token[:1] == "?":
            return self._variable(i)
        if token == "-":
            return self._arithmetic("*", -1, self._factor(i + 1, depth + 1))
        if token == "(":
            inside = self._sum(i + 1, depth + 1)
            if self.tokens[self.i] != ")":
                self._fail(f"`)` is expected, not {self._shown(self.i)}", self.i)
            self.i += 1
            return inside
        word = token.lower()
        is_literal = token[:1] in NUMBER_STARTS or token[:1] == "'"
        if not is_literal and is_name(token) and word not in ("true", "false"):
            if not (word in ("date", "timestamp") and self.tokens[i + 1][:1] == "'"):
                self._fail(
                    f"a constraint compares variables and literals, not the name {self._shown(i)}",
                    i,
                    f"an operator can bind an attribute: attribute('{token[:40]}', ?x)",
                )
        return self._literal(i)
