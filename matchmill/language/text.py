"""Text to expressions.

    text ── one findall ──► ["origin", "=", "'JFK'", "and", …, "", "", ""] ──► Expression

Loading millions of subscriptions is mostly this file, hence its three habits. Tokens are plain
strings: the first character or a dictionary tells what a token is. Positions are not kept: an
error finds the place of its token by tokenising again. And the nesting of `or`, `and`, `not` and
parentheses lives on an explicit stack, so that no text can exhaust Python's.

The empty strings at the end stand for the end of the text; every rule stops there.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from difflib import get_close_matches
from itertools import islice
from typing import Literal, NoReturn

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import (
    KEYWORDS,
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Operator,
    Or,
    RLike,
    check_limits,
    network,
)
from matchmill.language.patterns import compile_regex
from matchmill.language.values import (
    INT64_MAX,
    INT64_MIN,
    Value,
    read_date,
    read_timestamp,
    region_of,
)
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["check_bounds", "check_like_pattern", "parse"]

# The look ahead skips white space faster than trying every alternative on it does. A quoted token
# without its closing quote can only be the last one: it runs to the end. The possessive
# quantifiers keep a million quotes linear. A number takes every letter that follows, so that
# `5and` and `1_000` are wrong numbers and not two tokens.
_TOKEN = re.compile(
    r"(?=[^ \t\r\n])(?:"
    r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+"
    r"|'[^']*+(?:''[^']*+)*+'?"
    r"|[(),]"
    r"|[=<>!&|~]++"
    r"|-?\.?[0-9][\w.]*+(?:(?<=[eE])[+-][\w.]*+)?"
    r'|"[^"]*+(?:""[^"]*+)*+"?'
    r"|."
    r")",
    re.DOTALL,
)
_NAME_START = re.compile(r"[^\W\d]")
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz_")
_NUMBER_STARTS = frozenset("0123456789-.")
_COMPARISONS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
# The other keywords are names wherever no keyword can stand.
_RESERVED = KEYWORDS - {"contains", "any", "all", "none", "cidr", "date", "timestamp"}
_SPECIAL_STARTS = _RESERVED | {"any", "date", "timestamp"}


def parse(text: str, settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """The expression that a text says. Raises ExpressionError, or LimitError if it is too large."""
    if not isinstance(text, str):
        raise ExpressionError(
            f"an expression is text, not {type(text).__name__}",
            hint="bytes are decoded first: data.decode()" if isinstance(text, bytes) else "",
        )
    if len(text) > settings.max_text_length:
        raise LimitError(
            f"the text has {len(text)} characters, more than {settings.max_text_length}",
            hint="shorten it, or raise the setting max_text_length",
        )
    if not text.isascii():
        _check_unicode(text)
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise ExpressionError(
            "the expression is empty", text=text, position=0, hint="`true` matches every event"
        )
    return _Parser(text, tokens, settings).expression()


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(
            "a lone surrogate is not valid Unicode",
            text=text,
            position=error.start,
            hint="the text was decoded wrongly: decode it as UTF-8",
        ) from None


# -- checks shared with the builder ---------------------------------------------------------------


def check_like_pattern(pattern: str) -> None:
    """Raise ExpressionError for a like pattern that ends inside an escape."""
    if pattern.endswith("\\") and (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise ExpressionError(
            "a like pattern cannot end in a single backslash",
            hint="write two of them to mean a backslash",
        )


def check_bounds(low: Value, high: Value) -> None:
    """Raise ExpressionError for the bounds of a between that are of different types."""
    if type(low) is not type(high) and region_of(low) != region_of(high):
        raise ExpressionError(
            f"the bounds of between are of different types:"
            f" {region_of(low).name.lower()} and {region_of(high).name.lower()}",
            hint="no value lies between them; give both the same type",
        )


# -- the parser -----------------------------------------------------------------------------------


def _plain_literal(token: str) -> str | int | float | None:
    """The value of a string or a number; None for every other token and for bad numbers."""
    first = token[:1]
    if first == "'":
        text = token[1:-1]
        return text.replace("''", "'") if "''" in text else text
    if first not in _NUMBER_STARTS:
        return None
    if len(token) < 19 and token.isdecimal() and token.isascii():
        return int(token)
    if _INTEGER.fullmatch(token):
        if len(token.lstrip("-0")) > 19:  # int() refuses thousands of digits, zeros included
            return None
        number = int(token.lstrip("-0") or "0") * (-1 if first == "-" else 1)
        return number if INT64_MIN <= number <= INT64_MAX else None
    if _DECIMAL.fullmatch(token):
        decimal = float(token)
        return decimal if math.isfinite(decimal) else None
    return None


def _is_name(token: str) -> bool:
    """Whether a token is a name or a keyword, not quoted."""
    return _NAME_START.match(token) is not None


class _Parser:
    """One text. `self.i` is the token that comes next."""

    __slots__ = ("_n_listed", "i", "settings", "text", "tokens")

    def __init__(self, text: str, tokens: list[str], settings: Settings) -> None:
        self.text = text
        self.tokens = tokens
        self.settings = settings
        self.i = 0
        self._n_listed = 0  # literals beyond the first of each predicate
        last = tokens[-1]
        tokens += ("", "", "")
        if last[0] in "'\"" and last.count(last[0]) % 2:
            self._fail_open_quote(last)

    # -- and, or, not, parentheses

    def expression(self) -> Expression:
        tokens, settings = self.tokens, self.settings
        outer: list[tuple[list[Expression], list[Expression], int, int]] = []
        alternatives: list[Expression] = []  # done parts of the innermost `or`
        conjuncts: list[Expression] = []  # done parts of its last `and`
        n_nots = depth = deepest = n_predicates = 0
        while True:
            token = tokens[self.i]
            word = token.lower()
            if word == "(" or word == "not":
                if word == "(":
                    outer.append((alternatives, conjuncts, n_nots, self.i))
                    alternatives, conjuncts, n_nots = [], [], 0
                else:
                    n_nots += 1
                depth += 1
                if depth > deepest:
                    deepest = depth
                    if depth > settings.max_depth:
                        self._fail_too_deep()
                self.i += 1
                continue
            node = self._condition(token, word)
            n_predicates += 1
            if n_predicates > settings.max_predicates:
                self._fail_too_many("predicates", "max_predicates", settings.max_predicates)
            while True:
                while n_nots:
                    node = Not(node)
                    n_nots -= 1
                    depth -= 1
                conjuncts.append(node)
                word = tokens[self.i].lower()
                if word == "and":
                    self.i += 1
                    break
                node = And(tuple(conjuncts)) if len(conjuncts) > 1 else conjuncts[0]
                alternatives.append(node)
                if word == "or":
                    conjuncts = []
                    self.i += 1
                    break
                node = Or(tuple(alternatives)) if len(alternatives) > 1 else alternatives[0]
                if word == ")" and outer:
                    alternatives, conjuncts, n_nots, _ = outer.pop()
                    depth -= 1
                    self.i += 1
                elif word == "" and not outer:
                    return self._finished(node, deepest, n_predicates)
                else:
                    self._fail_after_condition(outer[-1][3] if outer else None)

    def _finished(self, node: Expression, deepest: int, n_predicates: int) -> Expression:
        if n_predicates + self._n_listed > self.settings.max_values:
            self._fail_too_many("literals", "max_values", self.settings.max_values)
        # One parenthesis may hold an `or` of `and`s: two levels of the tree.
        if 2 * deepest + 3 > self.settings.max_depth:
            try:
                check_limits(node, self.settings)
            except LimitError as error:
                raise LimitError(
                    error.message, text=self.text, position=0, hint=error.hint
                ) from None
        return node

    # -- conditions

    def _condition(self, token: str, word: str) -> Expression:
        """A predicate or a constant, starting at self.i."""
        i = self.i
        if word in _SPECIAL_STARTS:
            return self._special_condition(word)
        first = word[:1]
        if first in _LETTERS:
            return self._predicate(token, i + 1)
        if first == '"':
            return self._predicate(self._quoted_name(i), i + 1)
        if first == "'" or first in _NUMBER_STARTS:
            return self._flipped_comparison()
        if _is_name(token):
            return self._predicate(token, i + 1)
        self._fail_at_condition()

    def _special_condition(self, word: str) -> Expression:
        i = self.i
        following = self.tokens[i + 1]
        if word == "any" and following == "(":
            name = self._name(i + 2)
            if self.tokens[i + 3] != ")":
                self._fail(
                    f"any takes one attribute, then `)`, not {self._shown(i + 3)}",
                    i + 3,
                    "write any(name) = 'x'",
                )
            return self._predicate(name, i + 4, True)
        if word in ("date", "timestamp") and following[:1] == "'":
            return self._flipped_comparison()
        if word in ("true", "false"):
            if following in _COMPARISONS:
                return self._flipped_comparison()
            self.i = i + 1
            return Constant(word == "true")
        if word in _RESERVED:
            self._fail_at_condition()
        return self._predicate(self.tokens[i], i + 1)

    def _predicate(self, name: str, i: int, any_element: bool = False) -> Expression:
        """What follows an attribute; i is the token after it."""
        tokens = self.tokens
        token = tokens[i]
        op = _COMPARISONS.get(token)
        if op is not None:
            value: Value | None = _plain_literal(tokens[i + 1])
            if value is None:
                value = self._literal(i + 1)
            else:
                self.i = i + 2
            return Compare(name, op, value, any_element)
        word = token.lower()
        rule = _RULES.get(word)
        if rule is not None:
            return rule(self, name, i + 1, False, any_element)
        if word == "not":
            rule = _NEGATABLE_RULES.get(tokens[i + 1].lower())
            if rule is None:
                self._fail_after_not(i + 1)
            return rule(self, name, i + 2, True, any_element)
        if word not in ("", "and", "or", ")"):
            self._fail_operator(name, i)
        if any_element:
            self._fail(
                "any() takes a comparison", i, "say what an element is to be: any(name) = true"
            )
        self.i = i
        return IsTrue(name)

    def _flipped_comparison(self) -> Expression:
        """`580 >= price`: a literal comes first."""
        start = self.i
        value = self._literal(start)
        i = self.i
        op = _COMPARISONS.get(self.tokens[i])
        if op is None:
            self._fail_after_literal(start)
        any_element = self.tokens[i + 1].lower() == "any" and self.tokens[i + 2] == "("
        at = i + 3 if any_element else i + 1
        first, word = self.tokens[at][:1], self.tokens[at].lower()
        if first == "'" or first in _NUMBER_STARTS or word in ("true", "false"):
            self._fail("two literals are compared", start, "one side must be an attribute")
        name = self._name(at)
        if any_element and self.tokens[at + 1] != ")":
            self._fail(f"any takes one attribute, then `)`, not {self._shown(at + 1)}", at + 1)
        self.i = at + 2 if any_element else at + 1
        if self.tokens[self.i] in _COMPARISONS:
            self._fail_chain()
        return Compare(name, _FLIPPED[op], value, any_element)

    def _name(self, i: int) -> str:
        token = self.tokens[i]
        if token[:1] == '"':
            return self._quoted_name(i)
        if not _is_name(token):
            self._fail(f"an attribute's name is expected, not {self._shown(i)}", i)
        if token.lower() in _RESERVED:
            self._fail(
                f"an attribute's name is expected, not the keyword {self._shown(i)}",
                i,
                f'an attribute of that name is quoted: "{token}"',
            )
        return token

    def _quoted_name(self, i: int) -> str:
        name = self.tokens[i][1:-1].replace('""', '"')
        if not name:
            self._fail("a name must not be empty", i, "text takes single quotes: ''")
        return name

    # -- predicates other than comparisons: (name, token after the keyword, negated, any_element)

    def _in(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if self.tokens[i].lower() == "cidr":
            return self._in_network(name, i + 1, negated, any_element)
        return In(name, self._list(i, "in"), negated, any_element)

    def _in_network(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if self.tokens[i][:1] == "'":
            texts: tuple[Value, ...] = (self._literal(i),)
            first = i
        else:
            texts = self._list(i, "in cidr")
            first = i + 1
        networks: list[str] = []
        for k, text in enumerate(texts):
            if not isinstance(text, str):
                self._fail("a network is text", first + 2 * k, "write '10.0.0.0/8'")
            try:
                network(text)
            except ExpressionError as error:
                self._fail_with(error, first + 2 * k)
            networks.append(text)
        return InNetwork(name, tuple(networks), negated, any_element)

    def _between(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        low = self._literal(i)
        if self.tokens[self.i].lower() != "and":
            self._fail(
                f"between takes two values: `and` is expected, not {self._shown(self.i)}",
                self.i,
                "write between 1 and 10",
            )
        high = self._literal(self.i + 1)
        try:
            check_bounds(low, high)
        except ExpressionError as error:
            self._fail_with(error, i)
        self._n_listed += 1
        return Between(name, low, high, negated, any_element)

    def _like(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        return Like(name, self._pattern(i, check_like_pattern), negated, False, any_element)

    def _ilike(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        return Like(name, self._pattern(i, check_like_pattern), negated, True, any_element)

    def _rlike(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        return RLike(name, self._pattern(i, compile_regex), negated, any_element)

    def _pattern(self, i: int, check: Callable[[str], object]) -> str:
        pattern = self._literal(i)
        if not isinstance(pattern, str):
            self._fail(
                f"`{self.tokens[i - 1].lower()}` takes a pattern in single quotes, not"
                f" {self._shown(i)}",
                i,
                "write the pattern as text: 'ab%' for like, '^ab' for rlike",
            )
        if len(pattern) > self.settings.max_pattern_length:
            raise LimitError(
                f"a pattern is longer than {self.settings.max_pattern_length} characters",
                text=self.text,
                position=self._position(i),
                hint="shorten it, or raise the setting max_pattern_length",
            )
        try:
            check(pattern)
        except ExpressionError as error:
            self._fail_with(error, i)
        return pattern

    def _contains(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if any_element:
            self._fail(
                "`contains` takes a list, any() looks at its elements",
                i - 1,
                "write any(name) = 'x', or name contains 'x'",
            )
        word = self.tokens[i].lower()
        if word in ("any", "all", "none"):
            mode: Literal["any", "all", "none"] = word  # type: ignore[assignment]
            return Contains(name, mode, self._list(i + 1, f"contains {word}"))
        if word == "(":
            self._fail(
                "`contains` takes one value, or says how many of several it wants",
                i,
                "write contains any (…), contains all (…) or contains none (…)",
            )
        return Contains(name, "any", (self._literal(i),))

    def _is(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        word = self.tokens[i].lower()
        if word == "not":
            i, word, negated = i + 1, self.tokens[i + 1].lower(), True
        if word != "null":
            self._fail_is(i, word, negated)
        if any_element:
            self._fail(
                "any() takes a comparison, not `is null`",
                i,
                "a list holds no nulls; name is null asks whether the list itself is missing",
            )
        self.i = i + 1
        return IsNull(name, negated)

    # -- literals

    def _list(self, i: int, operator: str) -> tuple[Value, ...]:
        """A list in parentheses, starting at token i."""
        tokens = self.tokens
        if tokens[i] != "(":
            self._fail_no_list(i, operator)
        values = self._plain_list(i)
        if values is None:
            values = self._any_list(i, operator)
        self._n_listed += len(values) - 1
        return tuple(values)

    def _plain_list(self, i: int) -> list[Value] | None:
        """The values of a list of strings and numbers, at once; None if it holds anything else."""
        tokens = self.tokens
        try:
            end = tokens.index(")", i)
        except ValueError:
            return None
        n_commas = (end - i - 2) // 2
        if end - i < 2 or tokens[i + 2 : end : 2] != [","] * n_commas or (end - i) % 2:
            return None
        if n_commas >= self.settings.max_values:
            self.i = i + 2 * self.settings.max_values + 2
            self._fail_too_many("literals", "max_values", self.settings.max_values)
        values: list[Value] = []
        for token in tokens[i + 1 : end : 2]:
            value = _plain_literal(token)
            if value is None:
                return None
            values.append(value)
        self.i = end + 1
        return values

    def _any_list(self, i: int, operator: str) -> list[Value]:
        if self.tokens[i + 1] == ")":
            self._fail(
                "the list is empty", i, f"give `{operator}` at least one value, or write `false`"
            )
        values: list[Value] = []
        start = i
        while True:
            values.append(self._literal(i + 1, in_list=True))
            if len(values) > self.settings.max_values:
                self._fail_too_many("literals", "max_values", self.settings.max_values)
            i = self.i
            if self.tokens[i] == ")":
                self.i = i + 1
                return values
            if self.tokens[i] != ",":
                self._fail_in_list(start, i)

    def _literal(self, i: int, in_list: bool = False) -> Value:
        """The literal at token i; self.i is left after it."""
        token = self.tokens[i]
        value = _plain_literal(token)
        self.i = i + 1
        if value is not None:
            return value
        word = token.lower()
        if word == "true" or word == "false":
            return word == "true"
        following = self.tokens[i + 1]
        if following[:1] == "'" and word in ("date", "timestamp"):
            text = following[1:-1]
            self.i = i + 2
            try:
                return read_date(text) if word == "date" else read_timestamp(text)
            except (ValueError, OverflowError):
                self._fail_time(i + 1, word)
        self._fail_literal(i, in_list)

    # -- errors: what is wrong, where, and the likely fix

    def _position(self, i: int) -> int:
        match = next(islice(_TOKEN.finditer(self.text), i, None), None)
        return len(self.text.rstrip()) if match is None else match.start()

    def _fail(self, message: str, i: int, hint: str = "") -> NoReturn:
        raise ExpressionError(message, text=self.text, position=self._position(i), hint=hint)

    def _fail_with(self, error: ExpressionError, i: int) -> NoReturn:
        """The error of a check, at its token; what the check quotes may be long."""
        message = error.message
        self._fail(message if len(message) <= 200 else message[:200] + "…", i, error.hint)

    def _shown(self, i: int) -> str:
        """A token in an error message."""
        token = self.tokens[i]
        if not token:
            return "the end of the text"
        if len(token) == 1 and not (token.isprintable() and token.isascii()):
            return f"U+{ord(token):04X} {unicodedata.name(token, 'CONTROL CHARACTER')}"
        return f"`{token}`" if len(token) <= 40 else f"`{token[:40]}…`"

    def _fail_open_quote(self, token: str) -> NoReturn:
        i = len(self.tokens) - 4
        if token[0] == "'":
            self._fail(
                "the text in single quotes is never closed",
                i,
                "add the closing '; a single quote inside text is doubled: 'it''s'",
            )
        self._fail(
            "the name in double quotes is never closed",
            i,
            'add the closing "; text, unlike a name, takes single quotes',
        )

    def _fail_too_deep(self) -> NoReturn:
        raise LimitError(
            f"the expression is nested more than {self.settings.max_depth} deep",
            text=self.text,
            position=self._position(self.i),
            hint="simplify it, or raise the setting max_depth",
        )

    def _fail_too_many(self, what: str, setting: str, limit: int) -> NoReturn:
        raise LimitError(
            f"the expression has more than {limit} {what}",
            text=self.text,
            position=self._position(self.i - 1),
            hint=f"split it, or raise the setting {setting}",
        )

    def _fail_chain(self) -> NoReturn:
        self._fail(
            "comparisons cannot be chained",
            self.i,
            "write `x > 10 and x < 20`, or `x between 10 and 20` with both ends included",
        )

    def _fail_at_condition(self) -> NoReturn:
        """A condition should start at self.i and does not."""
        i = self.i
        token, before = self.tokens[i], self.tokens[i - 1] if i else ""
        word = token.lower()
        if token == "":
            if before == "(":
                self._fail("the parenthesis is never closed", i - 1, "add the closing `)`")
            self._fail(f"a condition is missing after `{before}`", i)
        if token == ")":
            if before == "(":
                self._fail("the parentheses are empty", i - 1)
            if not before:
                self._fail("`)` closes nothing", i, "remove it, or add the opening `(`")
            self._fail(f"a condition is missing after `{before}`", i)
        if word in ("and", "or"):
            self._fail(f"a condition is missing before {self._shown(i)}", i)
        if word == "null":
            self._fail("null is not an attribute", i, "write `name is null`")
        if word in _RESERVED:
            self._fail(
                f"an attribute is missing before {self._shown(i)}",
                i,
                f'an attribute of that name is quoted: "{token}"',
            )
        if token in _COMPARISONS:
            self._fail(f"an attribute is missing before {self._shown(i)}", i)
        self._fail_token(i, f"a condition is expected, not {self._shown(i)}")

    def _fail_after_condition(self, opening: int | None) -> NoReturn:
        """Neither `and` nor `or` nor the end follows; opening is the innermost open parenthesis."""
        i = self.i
        token = self.tokens[i]
        if token == "":
            assert opening is not None
            self._fail("the parenthesis is never closed", opening, "add the closing `)`")
        if token == ")":
            self._fail("`)` closes nothing", i, "remove it, or add the opening `(`")
        if token in _COMPARISONS:
            self._fail_chain()
        if token[0] == "'" or (_is_name(token) and self.tokens[i - 1][:1] == "'"):
            start = self._position(i)
            if self.text[start - 1] == "'":
                self._fail(
                    f"`and` or `or` is expected, not {self._shown(i)}",
                    i,
                    "a single quote inside text is doubled: 'it''s'",
                )
        self._fail_token(i, f"`and` or `or` is expected, not {self._shown(i)}")

    def _fail_token(self, i: int, message: str) -> NoReturn:
        """A token that cannot stand here, with a hint if it is a familiar mistake."""
        token = self.tokens[i]
        word = token.lower()
        hint = _TOKEN_HINTS.get(token, "")
        if not hint and word in _OTHER_OPERATORS:
            hint = f"write `{_OTHER_OPERATORS[word]}`"
        if not hint and set(token) <= set("=<>!&|~"):
            known = next((s for s in ("&&", "||", "&", "|", "!") if token.startswith(s)), None)
            hint = f"write `{_OTHER_OPERATORS[known]}`" if known else ""
        if not hint and _is_name(token) and word not in KEYWORDS:
            close = get_close_matches(word[:20], _OPERATOR_WORDS, n=1, cutoff=0.65)
            hint = f"did you mean `{close[0]}`?" if close else ""
        if not hint and len(token) == 1 and (not token.isprintable() or token.isspace()):
            hint = "outside quotes, only spaces, tabs and line ends may separate words"
        self._fail(message, i, hint)

    def _fail_operator(self, name: str, i: int) -> NoReturn:
        """What follows an attribute is no operator."""
        token, before = self.tokens[i], self.tokens[i - 1]
        shown = name if len(name) <= 40 else name[:40] + "…"
        if token == "(":
            self._fail(
                f"`{shown}` is not a function",
                i - 1,
                "the only one is any(name), for the elements of a list",
            )
        if token == "[":
            self._fail(
                f"the elements of `{shown}` have no numbers",
                i,
                "write `any(name) = 'x'` or `name contains 'x'` for the elements of a list",
            )
        if token[0] in "-.:@#$/" and before[0] != '"':
            self._fail(
                f"an operator is expected after `{shown}`, not {self._shown(i)}",
                i,
                "a name with other characters than letters, digits, _ and . is quoted:"
                ' "first-name"; there is no arithmetic',
            )
        if token[0] in "'\"" or token[0].isdigit():
            self._fail(
                f"an operator is missing between `{shown}` and {self._shown(i)}",
                i,
                "compare with =, !=, <, <=, >, >=, in, like, …",
            )
        if name.lower() in ("any", "where", "when", "if", "select") and _is_name(token):
            word = name.lower()
            self._fail(
                f"an operator is expected after `{shown}`, not {self._shown(i)}",
                i,
                f"write any({token[:40]})" if word == "any" else f"leave `{word}` out",
            )
        kind = "unknown operator" if _is_name(token) or token[0] in "=<>!&|~" else "unexpected"
        self._fail_token(i, f"{kind} {self._shown(i)}")

    def _fail_after_not(self, i: int) -> NoReturn:
        word = self.tokens[i].lower()
        if word == "contains":
            hint = "write `contains none (…)`, or put `not` before the attribute"
        elif word == "null":
            hint = "write `is not null`"
        elif self.tokens[i] in _COMPARISONS:
            hint = "write `!=`, or put `not` before the attribute"
        else:
            close = get_close_matches(word[:20], list(_NEGATABLE_RULES), n=1, cutoff=0.65)
            hint = f"did you mean `not {close[0]}`?" if close else ""
        self._fail(
            f"in, between, like, ilike or rlike is expected after `not`, not {self._shown(i)}",
            i,
            hint,
        )

    def _fail_after_literal(self, start: int) -> NoReturn:
        """A literal starts a condition, and no comparison follows."""
        word = self.tokens[self.i].lower()
        if word == "in" or (word == "not" and self.tokens[self.i + 1].lower() == "in"):
            hint = "a list is asked the other way round: tags contains 'x'"
        elif word in ("", "and", "or", ")"):
            quoted = self.tokens[start][:1] == "'"
            hint = "an attribute of that name takes double quotes" if quoted else ""
        elif word in _RULES:
            hint = f"the attribute comes first: name {word} …"
        elif word in _OTHER_OPERATORS:
            hint = f"write `{_OTHER_OPERATORS[word]}`"
        else:
            hint = "an attribute of that name takes double quotes"
        self._fail(f"the literal {self._shown(start)} is not a condition", start, hint)

    def _fail_is(self, i: int, word: str, negated: bool) -> NoReturn:
        if word in ("true", "false"):
            wanted = (word == "true") != negated
            hint = "write the attribute alone" if wanted else "write `not` and the attribute"
        elif word in ("none", "missing", "empty", "nil", "nan", "unknown", "undefined"):
            hint = "write `is not null`" if negated else "write `is null`"
        elif word == "":
            hint = "write `is null` or `is not null`"
        else:
            hint = "compare with `!=`" if negated else "compare with `=`"
        self._fail(f"`is` takes `null` or `not null`, not {self._shown(i)}", i, hint)

    def _fail_no_list(self, i: int, operator: str) -> NoReturn:
        token = self.tokens[i]
        if operator == "in cidr":
            hint = "write in cidr '10.0.0.0/8'"
        elif token[:1] == "'" or token[:1].isdigit():
            hint = f"put the values in parentheses: {operator} ({token[:40]})"
        elif _is_name(token) or token[:1] == '"':
            hint = "for a list-valued attribute write `tags contains 'x'`"
        else:
            hint = f"write {operator} ('a', 'b')"
        self._fail(f"`{operator}` takes a list in parentheses, not {self._shown(i)}", i, hint)

    def _fail_in_list(self, start: int, i: int) -> NoReturn:
        token = self.tokens[i]
        if token == "" or token.lower() in ("and", "or"):
            self._fail("the list is never closed", start, "add the closing `)`")
        quoted = token[0] == "'" or self.tokens[i - 1][:1] == "'"
        if quoted and _is_name(token):
            hint = "a single quote inside text is doubled: 'it''s'"
        else:
            hint = "put a comma between the values"
        self._fail(f"`,` or `)` is expected in the list, not {self._shown(i)}", i, hint)

    def _fail_time(self, i: int, word: str) -> NoReturn:
        if word == "date":
            self._fail(
                f"not a date: {self._shown(i)}", i, "write year, month and day: date '2013-01-31'"
            )
        self._fail(
            f"not a timestamp: {self._shown(i)}",
            i,
            "write timestamp '2013-01-31 10:00:00', with at most six digits after the second"
            " and an offset such as +02:00 if wanted",
        )

    def _fail_literal(self, i: int, in_list: bool) -> NoReturn:
        """A literal is expected at token i, and there is none."""
        token, before = self.tokens[i], self.tokens[i - 1] if i else ""
        word, first = token.lower(), token[:1]
        if word == "null":
            if in_list:
                self._fail("null cannot be in a list", i, "write `name in (…) or name is null`")
            hint = "write `is not null`" if before in ("!=", "<>") else "write `is null`"
            self._fail("a comparison with null is never true", i, hint)
        if first in _NUMBER_STARTS:
            self._fail_number(i)
        if word in ("nan", "inf", "infinity"):
            self._fail(f"{self._shown(i)} cannot be compared", i, "a missing value is `is null`")
        if first == '"':
            inner = token[1:-1].replace('""', '"').replace("'", "''")
            self._fail(
                f"a literal is expected, not the name {self._shown(i)}",
                i,
                f"text takes single quotes: '{inner[:40]}'",
            )
        if word in ("date", "timestamp"):
            self._fail(
                f"a literal is expected, not the name {self._shown(i)}",
                i,
                f"its text takes single quotes: {word} '2013-01-31'",
            )
        if _is_name(token) and word not in _RESERVED:
            self._fail(
                f"a literal is expected, not the name {self._shown(i)}",
                i,
                f"text takes single quotes: '{token[:40]}'; two attributes cannot be compared",
            )
        after = f" after `{before}`" if before and len(before) <= 40 else ""
        if token in ("", ",", ")"):
            self._fail(f"a literal is missing{after}", i)
        if first in ("[", "{", "("):
            self._fail(
                f"a literal is expected{after}, not {self._shown(i)}",
                i,
                "a list takes parentheses and `in` or `contains any`: in ('a', 'b')",
            )
        self._fail_token(i, f"a literal is expected{after}, not {self._shown(i)}")

    def _fail_number(self, i: int) -> NoReturn:
        token = self.tokens[i]
        if token == "-":
            self._fail(
                "`-` stands alone",
                i,
                "write -5 without a space; there is no arithmetic on attributes",
            )
        if _INTEGER.fullmatch(token):
            self._fail(
                f"the integer {self._shown(i)} is beyond 64 bits",
                i,
                "write it as a decimal (1e20), or as text if it is an identifier",
            )
        if _DECIMAL.fullmatch(token):
            self._fail(f"the number {self._shown(i)} is too large for a double", i)
        self._fail(
            f"not a number: {self._shown(i)}",
            i,
            "numbers are written 580, -5, 0.25 or 1e-3; text takes single quotes",
        )


_Rule = Callable[[_Parser, str, int, bool, bool], Expression]
_NEGATABLE_RULES: dict[str, _Rule] = {
    "in": _Parser._in,
    "between": _Parser._between,
    "like": _Parser._like,
    "ilike": _Parser._ilike,
    "rlike": _Parser._rlike,
}
_RULES: dict[str, _Rule] = _NEGATABLE_RULES | {"contains": _Parser._contains, "is": _Parser._is}

# -- what people write, and what they mean --------------------------------------------------------

_OPERATOR_WORDS = ["and", "or", "not", *_RULES]
_OTHER_OPERATORS = {
    "===": "=",
    "=!": "!=",
    "!==": "!=",
    "=>": ">=",
    "=<": "<=",
    "><": "!=",
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "~": "rlike",
    "=~": "rlike",
    "~=": "rlike",
    "!~": "not rlike",
    "eq": "=",
    "equal": "=",
    "equals": "=",
    "ne": "!=",
    "neq": "!=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "isnull": "is null",
    "notnull": "is not null",
    "exists": "is not null",
    "nin": "not in",
    "within": "in",
    "matches": "rlike",
    "match": "rlike",
    "regex": "rlike",
    "regexp": "rlike",
    "similar": "rlike",
    "glob": "like",
    "has": "contains",
    "includes": "contains",
    "startswith": "like 'text%'",
    "starts_with": "like 'text%'",
    "starts": "like 'text%'",
    "endswith": "like '%text'",
    "ends_with": "like '%text'",
    "ends": "like '%text'",
    "xor": "(a and not b) or (b and not a)",
}
_TOKEN_HINTS = {
    ";": "one expression at a time; leave the semicolon out",
    ",": "combine conditions with `and` or `or`",
    "[": "a list takes parentheses: in ('a', 'b')",
    "{": "a list takes parentheses: in ('a', 'b')",
    "\\": "backslashes stand in text only",
    "\ufeff": "the text begins with a byte order mark: decode it as utf-8-sig",
} | dict.fromkeys("‘’‚‛“”„‟«»`´", "quotes must be straight: 'text' or \"name\"")
