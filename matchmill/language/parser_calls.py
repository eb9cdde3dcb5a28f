"""The text of calls and constraints: what follows `name(` and `?name`.

    call        name ( [argument {, argument}] )        argument: a literal or ?variable
    constraint  term comparison term
              | term [not] in ( term {, term} )         | term [not] between term and term
              | term [not] (like | ilike | rlike) text  | term [not] in cidr networks
              | term is [not] null
    term        product {(+ | -) product}
    product     factor {(* | / | %) factor}
    factor      literal | ?variable | attribute | name ( [term {, term}] ) | - factor | ( term )

A condition with a variable is a constraint, unless it is only `name(…)`: that is a call. So is one
that compares attributes with each other, or calculates: `a <= b`, `price + tax > 5`, `abs(a) < 1`.

Tokens are the parser's; a number includes the minus before it, so `?x -5` is two tokens and means a
difference. Parentheses that are followed by a sign, a comparison or a word such as `in` hold a
term, all others a group of conditions.
"""

from __future__ import annotations

import datetime as dt
from typing import NoReturn, cast

from matchmill.language.expression import InNetwork, Like, RLike, literal_text, name_text
from matchmill.language.operator_calls import (
    MOST_SIGNS,
    Applied,
    Arithmetic,
    Call,
    Constraint,
    EventAttribute,
    Membership,
    NullTest,
    Range,
    Restriction,
    Sign,
    Term,
    TextTest,
    Variable,
)
from matchmill.language.parser_errors import Complaints
from matchmill.language.text_forms import TEXT_FORMS
from matchmill.language.tokens import COMPARISONS, RESERVED, TRUTHS, is_name
from matchmill.language.values import Value

__all__ = ["CallRules"]

_SIGNS = frozenset("+-*/%")
_TEXT_WORDS = frozenset(("rlike", "icontains", *(form.words for form in TEXT_FORMS)))
_AFTER_TERMS = _TEXT_WORDS | {"in", "between", "contains", "is", "not"}
_ENDS = frozenset(("", "and", "or", ")"))  # of a condition


class CallRules(Complaints):
    """The rules of calls and constraints. `self.i` is the token that comes next."""

    __slots__ = ("_closings", "_has_variables", "_n_listed", "_n_signs")
    _closings: dict[int, int] | None
    _n_listed: int  # literals beyond the first of each condition

    def _literal(self, i: int, in_list: bool = False) -> Value:
        """Return the literal at token i; leave self.i after it."""
        raise NotImplementedError

    def _quoted_name(self, i: int) -> str:
        """Return the name in double quotes at token i."""
        raise NotImplementedError

    def _text_test(self, word: str, i: int, negated: bool) -> Like | RLike | InNetwork:
        """Read what follows `like`, `ilike`, `rlike` or `cidr` at token i."""
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
            self._fail_condition_as_value(name, self.i)
        return Call(name, tuple(arguments))

    def _fail_condition_as_value(self, name: str, i: int) -> NoReturn:
        self._fail(
            f"`{name[:40]}(…)` is a condition, not a value",
            i,
            f"let it bind its value: {name[:40]}(?x) and ?x > 5; a function is for attributes and"
            " variables",
        )

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

    def _is_constraint(self, i: int) -> bool:
        """Whether the condition that starts at token i has a variable and is no call."""
        tokens = self.tokens
        if tokens[i + 1] == "(" and (is_name(tokens[i]) or tokens[i][:1] == '"'):
            if tokens[i].lower() == "any" or self._ends_condition(self._closing(i + 1) + 1):
                return False
        depth = n_betweens = 0
        while True:
            token = tokens[i]
            word = token.lower()
            if token[:1] == "?":
                return True
            if token == "(":
                depth += 1
            elif depth and token == ")":
                depth -= 1
            elif word == "between":
                n_betweens += 1
            elif word == "and" and n_betweens:
                n_betweens -= 1
            elif word == "" or (word in _ENDS and not depth):
                return False
            i += 1

    def _ends_condition(self, i: int) -> bool:
        """Whether a condition is over before token i: a term `is null`, a condition `is true`."""
        word = self.tokens[i].lower()
        if word != "is":
            return word in _ENDS
        at = i + 2 if self.tokens[i + 1].lower() == "not" else i + 1
        return self.tokens[at].lower() in TRUTHS

    def _closing(self, i: int) -> int:
        """Return the token that closes the parenthesis at token i, or the last one of all."""
        if self._closings is None:
            self._closings = {}
            opened: list[int] = []
            for at, token in enumerate(self.tokens):
                if token == "(":
                    opened.append(at)
                elif token == ")" and opened:
                    self._closings[opened.pop()] = at
        return self._closings.get(i, len(self.tokens) - 4)

    def _continues_term(self, i: int) -> bool:
        """Whether token i calculates with what is before it: a sign, or a negative number."""
        return self.tokens[i][:1] in _SIGNS and self.tokens[i] != ""

    def _is_term(self, i: int) -> bool:
        """Whether token i begins a term, where a literal could stand, that is none."""
        token = self.tokens[i]
        if token in ("(", "-") or self._continues_term(i + 1):
            return True
        if token[:1] == '"':
            return self._needs_quotes(i)
        return is_name(token) and not self._is_word_of_literal(i)

    def _needs_quotes(self, i: int) -> bool:
        """Whether what is quoted can only be a name: text in double quotes is a common mistake."""
        return name_text(self._quoted_name(i))[:1] == '"'

    def _compares_result(self, i: int) -> bool:
        """Whether `name(…)`, whose parenthesis is token i, is a function in a comparison."""
        after = self._closing(i) + 1
        word = self.tokens[after].lower()
        if word in _AFTER_TERMS and not self._ends_condition(after):
            return True
        return self.tokens[after] in COMPARISONS or self._continues_term(after)

    def _opens_term(self, i: int) -> bool:
        """Whether the parenthesis at token i is arithmetic: `(?x + 1) * 2 > 7`."""
        at = self._closing(i) + 1
        following = self.tokens[at]
        if self._ends_condition(at):
            return False
        is_sign = following[:1] in _SIGNS and following != ""
        return following in COMPARISONS or is_sign or following.lower() in _AFTER_TERMS

    def _constraint(self, i: int) -> Restriction:
        """Read a condition on terms that starts at token i."""
        self._n_signs = 0
        term = self._sum(i, 0)
        at = self.i
        constraint = self._comparison(term, at)
        if constraint is None:
            constraint = self._test(term, at)
        if constraint is None:
            self._fail(
                f"a comparison is expected after `{str(term)[:40]}`, not {self._shown(at)}",
                at,
                "a variable stands in a call or in a comparison: ?x > 5",
            )
        if not constraint.variables and not constraint.event_attributes:
            if isinstance(term, Applied):
                self._fail_condition_as_value(term.function, at)
            self._fail(
                f"`{str(constraint)[:40]}` compares literals only",
                i,
                "name an attribute, or a variable: price > 2 * cost",
            )
        return constraint

    def _comparison(self, left: Term, at: int) -> Restriction | None:
        op = COMPARISONS.get(self.tokens[at])
        if op is None:
            return None
        right = self._sum(at + 1, 0)
        if self.tokens[self.i] in COMPARISONS:
            self._fail_chain()
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Arithmetic) and isinstance(other, (str, bool, dt.date)):
                literal = literal_text(other)[:40]
                self._fail(
                    f"`{str(one)[:40]}` is a number, and is compared with {literal}",
                    at,
                    'a name with other characters than letters, digits, _ and . is quoted: "a-b"',
                )
        self._n_listed += 1
        return Constraint(left, op, right)

    def _test(self, term: Term, at: int) -> Restriction | None:
        """Read `in`, `between`, `like`, `is null` and so on, at token `at`."""
        word = self.tokens[at].lower()
        if word == "is":
            negated = self.tokens[at + 1].lower() == "not"
            if self.tokens[at + 1 + negated].lower() != "null":
                return None
            self.i = at + 2 + negated
            return NullTest(term, negated)
        negated = word == "not"
        at += negated
        word = self.tokens[at].lower()
        if word == "in" and self.tokens[at + 1].lower() == "cidr":
            return TextTest(term, self._text_test("cidr", at + 2, negated))
        if word in _TEXT_WORDS or (word == "contains" and self.tokens[at + 1].lower() == "text"):
            return TextTest(term, self._text_test(word, at + 1, negated))
        if word == "in":
            if self.tokens[at + 1] != "(":
                self._fail(f"`in` takes a list, not {self._shown(at + 1)}", at + 1, "in (1, ?y)")
            values = self._terms(at + 1, 0)
            if not values:
                self._fail("the list is empty", at + 1, "give `in` at least one value")
            return Membership(term, values, negated)
        if word != "between":
            return None
        low = self._sum(at + 1, 0)
        if self.tokens[self.i].lower() != "and":
            self._fail(
                f"between takes two values: `and` is expected, not {self._shown(self.i)}",
                self.i,
                "write between 1 and ?y",
            )
        self._n_listed += 2
        return Range(term, low, self._sum(self.i + 1, 0), negated)

    def _terms(self, start: int, depth: int) -> tuple[Term, ...]:
        """Read terms in parentheses, which open at token `start`; leave self.i after them."""
        terms: list[Term] = []
        i = start
        self.i = i + 1
        while self.tokens[i + 1] != ")" or terms:
            terms.append(self._sum(i + 1, depth))
            if len(terms) > self.settings.max_values:
                self._fail_too_many("literals", "max_values", self.settings.max_values)
            i = self.i
            if self.tokens[i] == ")":
                break
            if self.tokens[i] != ",":
                self._fail_in_list(start, i)
        self._n_listed += len(terms)
        self.i = i + 1 if terms else i + 2
        return tuple(terms)

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
        while (token := self.tokens[self.i]) in ("*", "/", "%"):
            left = self._arithmetic(token, left, self._factor(self.i + 1, depth))
        return left

    def _arithmetic(self, sign: str, left: Term, right: Term) -> Arithmetic:
        self._count_sign()
        return Arithmetic(cast("Sign", sign), left, right)

    def _count_sign(self) -> None:
        self._n_signs += 1
        if self._n_signs > MOST_SIGNS:
            self._fail_large_term(self.i - 1)

    def _fail_large_term(self, i: int) -> NoReturn:
        self._fail(
            f"a constraint has more than {MOST_SIGNS} signs, functions or parentheses",
            i,
            "simplify it",
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
        is_quoted = token[:1] == '"'
        if is_quoted or (is_name(token) and not self._is_word_of_literal(i)):
            return self._named(self._quoted_name(i) if is_quoted else token, i, depth)
        return self._literal(i)

    def _is_word_of_literal(self, i: int) -> bool:
        word = self.tokens[i].lower()
        if word in ("date", "timestamp"):
            return self.tokens[i + 1][:1] == "'" or self.tokens[i + 1][:1].isdigit()
        return word in RESERVED  # true, false; `_literal` complains about the others

    def _named(self, name: str, i: int, depth: int) -> Term:
        """Read an attribute of the event, or a function of terms."""
        if self.tokens[i + 1] != "(":
            self.i = i + 1
            return EventAttribute(name)
        arguments = self._terms(i + 1, depth + 1)
        self._count_sign()
        return Applied(name, arguments)
