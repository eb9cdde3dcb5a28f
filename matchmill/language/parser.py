"""Text to expressions.

    text ── one findall ──► ["origin", "=", "'JFK'", "and", …, "", "", ""] ──► Expression

Loading millions of subscriptions is mostly the work of this file, so it is written for speed.
Tokens are plain strings: the first character or a dictionary tells what a token is. Positions are
not kept: an error finds the position of its token by tokenising again. The nesting of `or`, `and`,
`not` and parentheses is kept on an explicit stack, so that no text can exhaust Python's.

The empty strings at the end stand for the end of the text; every rule stops there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.comments import may_have_comments, without_comments
from matchmill.language.dialects.registry import DIALECTS, MATCHMILL, dialect_reader
from matchmill.language.expression import (
    ANY_ATTRIBUTE,
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
    TruthTest,
    check_limits,
    network,
)
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.operator_calls import TESTED
from matchmill.language.parser_calls import CallRules
from matchmill.language.patterns import check_regex
from matchmill.language.text_forms import TEXT_FORMS, TextForm
from matchmill.language.tokens import (
    COMPARISONS,
    LETTERS,
    NUMBER_STARTS,
    RESERVED,
    SPECIAL_STARTS,
    TOKEN,
    TRUTHS,
    is_name,
    plain_literal,
)
from matchmill.language.values import (
    Value,
    read_date,
    read_timestamp,
    region_of,
)
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["check_bounds", "check_like_pattern", "is_pattern_text", "parse", "parse_text"]

_FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


def parse(expression: str | Mapping[str, Any], settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Read an expression.

    Parameters
    ----------
    expression : str or mapping
        Text in the language of expressions; or a JSON pattern, as a mapping or as JSON text (which
        begins with a brace).
    settings : Settings, optional
        The limits of an expression.

    Returns
    -------
    Expression
        Its `str()` is text again.

    Raises
    ------
    ExpressionError
        If it cannot be read. The error shows the place and how to correct it.
    LimitError
        If it is larger than the settings allow.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.parse("origin = 'JFK' and dep_delay > 60")
    Expression("origin = 'JFK' and dep_delay > 60")
    >>> mm.parse({"origin": ["JFK"]})
    Expression("origin = 'JFK' or origin contains 'JFK'")
    """
    if isinstance(expression, str) and not is_pattern_text(expression):
        return parse_text(expression, settings)
    if isinstance(expression, (str, Mapping)):
        return parse_json_pattern(expression, settings)
    raise ExpressionError(
        f"an expression is text or a JSON pattern, not {type(expression).__name__}",
        hint="bytes are decoded first: data.decode()" if isinstance(expression, bytes) else "",
    )


def is_pattern_text(text: str) -> bool:
    """Whether text is a JSON pattern and not an expression, which never begins with a brace."""
    return text[:1] == "{" or (text[:1].isspace() and text.lstrip()[:1] == "{")


def parse_text(text: str, settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Return the expression of a text."""
    if len(text) > settings.max_expression_length:
        raise LimitError(
            f"the text has {len(text)} characters, more than {settings.max_expression_length}",
            hint="shorten it, or raise the setting max_expression_length",
        )
    if not text.isascii():
        _check_unicode(text)
    if may_have_comments(text):
        text = without_comments(text)
    tokens = TOKEN.findall(text)
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


_CALCULATING = frozenset("+-*/%")


class _Parser(CallRules):
    """One text. `self.i` is the token that comes next."""

    __slots__ = ("_has_terms",)

    def __init__(self, text: str, tokens: list[str], settings: Settings) -> None:
        super().__init__(text, tokens, settings)
        self._n_listed = 0  # literals beyond the first of each condition
        self._has_variables = "?" in text
        self._has_terms = self._has_variables or not _CALCULATING.isdisjoint(tokens)
        self._closings = None
        last = tokens[-1]
        tokens += ("", "", "")
        if last[0] in "'\"" and last.count(last[0]) % 2:
            self._fail_open_quote(last)

    # -- and, or, not, parentheses

    def expression(self) -> Expression:
        tokens, settings = self.tokens, self.settings
        outer: list[tuple[list[Expression], list[Expression], int, int]] = []
        alternatives: list[Expression] = []  # finished operands of the innermost `or`
        conjuncts: list[Expression] = []  # finished operands of its last `and`
        n_nots = depth = deepest = n_conditions = 0
        has_terms = self._has_terms
        while True:
            token = tokens[self.i]
            word = token.lower()
            if (word == "(" or word == "not") and not (
                has_terms and word == "(" and self._opens_term(self.i)
            ):
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
            n_conditions += 1
            if n_conditions > settings.max_conditions:
                self._fail_too_many("conditions", "max_conditions", settings.max_conditions)
            while True:
                word = tokens[self.i].lower()
                if word == "is":
                    node = self._truth_test(node)
                    word = tokens[self.i].lower()
                while n_nots:
                    node = Not(node)
                    n_nots -= 1
                    depth -= 1
                conjuncts.append(node)
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
                    return self._finished(node, deepest, n_conditions)
                else:
                    self._fail_after_condition(outer[-1][3] if outer else None)

    def _finished(self, node: Expression, deepest: int, n_conditions: int) -> Expression:
        if n_conditions + self._n_listed > self.settings.max_values:
            self._fail_too_many("literals", "max_values", self.settings.max_values)
        # One parenthesis may hold an `or` of `and`s of tests of lists: four levels of the tree.
        if 4 * deepest + 5 > self.settings.max_depth:
            try:
                check_limits(node, self.settings)
            except LimitError as error:
                raise LimitError(
                    error.message, text=self.text, position=0, hint=error.hint
                ) from None
        return node

    def _truth_test(self, operand: Expression) -> Expression:
        """Read `is not true` behind an expression; self.i is `is`."""
        i = self.i + 1
        negated = self.tokens[i].lower() == "not"
        i += negated
        word = self.tokens[i].lower()
        if word not in TRUTHS:
            self._fail_is(i, word, negated, of_name=False)
        self.i = i + 1
        if self.tokens[i + 1].lower() == "is":
            self._fail("a test of a test takes parentheses", i + 1, "write (x is true) is not true")
        return TruthTest(operand, TRUTHS[word], negated)

    # -- conditions

    def _condition(self, token: str, word: str) -> Expression:
        """Read a condition or a constant, starting at self.i."""
        i = self.i
        if self._has_variables and self._is_constraint(i):
            return self._constraint(i)
        if word in SPECIAL_STARTS:
            return self._special_condition(word)
        first = word[:1]
        if first in LETTERS:
            return self._predicate(token, i + 1)
        if first == '"':
            return self._predicate(self._quoted_name(i), i + 1)
        if first == "'" or first in NUMBER_STARTS:
            if token == "-" or self._continues_term(i + 1):
                return self._constraint(i)
            return self._flipped_comparison()
        if is_name(token):
            return self._predicate(token, i + 1)
        if first == "(":
            return self._constraint(i)  # which says what is missing
        self._fail_at_condition()

    def _special_condition(self, word: str) -> Expression:
        i = self.i
        following = self.tokens[i + 1]
        if word == "any" and following.lower() == "attribute" and self._says_what(i + 2):
            return self._predicate(ANY_ATTRIBUTE, i + 2, True)
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
            if following in COMPARISONS:
                return self._flipped_comparison()
            self.i = i + 1
            return Constant(word == "true")
        if word in RESERVED:
            self._fail_at_condition()
        return self._predicate(self.tokens[i], i + 1)

    def _says_what(self, i: int) -> bool:
        """Whether a condition can go on with token i."""
        word = self.tokens[i].lower()
        return word in COMPARISONS or word in _RULES or word == "not"

    def _predicate(self, name: str, i: int, any_element: bool = False) -> Expression:
        """Read what follows an attribute; i is the token after it."""
        tokens = self.tokens
        token = tokens[i]
        op = COMPARISONS.get(token)
        if op is not None:
            value: Value | None = plain_literal(tokens[i + 1])
            if (value is None or tokens[i + 2][:1] in _CALCULATING) and not any_element:
                if self._is_term(i + 1):
                    return self._constraint(i - 1)
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
        if word == "(" and not any_element:
            if self._compares_result(i):
                return self._constraint(i - 1)
            return self._call(name, i)
        if self._continues_term(i) and not any_element and self.tokens[i + 1]:
            return self._constraint(i - 1)
        if word not in ("", "and", "or", ")"):
            if token[:1] == "'" and name in DIALECTS and name != MATCHMILL:
                return self._in_dialect(name, i)
            self._fail_operator(name, i)
        if any_element:
            self._fail(
                "any() takes a comparison", i, "say what an element is to be: any(name) = true"
            )
        self.i = i
        return IsTrue(name)

    def _in_dialect(self, dialect: str, i: int) -> Expression:
        """Read `eventbridge '{"origin": ["JFK"]}'`; i is the token after the name."""
        text = self._literal(i)
        try:
            return dialect_reader(dialect)(text, self.settings)
        except LimitError as error:
            raise LimitError(
                f"{dialect}: {error.message}",
                text=self.text,
                position=self._position(i),
                hint=error.hint,
            ) from None
        except ExpressionError as error:
            self._fail(f"{dialect}: {error.message}", i, error.hint)

    def _flipped_comparison(self) -> Expression:
        """Read `580 >= price`, where a literal comes first."""
        start = self.i
        value = self._literal(start)
        i = self.i
        op = COMPARISONS.get(self.tokens[i])
        if op is None:
            self._fail_after_literal(start)
        any_element = self.tokens[i + 1].lower() == "any" and self.tokens[i + 2] == "("
        at = i + 3 if any_element else i + 1
        first, word = self.tokens[at][:1], self.tokens[at].lower()
        if first == "'" or first in NUMBER_STARTS or word in ("true", "false"):
            self._fail("two literals are compared", start, "one side must be an attribute")
        is_result = self.tokens[at + 1] == "(" or self._continues_term(at + 1)
        if not any_element and (is_result or self.tokens[at] in ("(", "-")):
            return self._constraint(start)
        name = self._name(at)
        if any_element and self.tokens[at + 1] != ")":
            self._fail(f"any takes one attribute, then `)`, not {self._shown(at + 1)}", at + 1)
        self.i = at + 2 if any_element else at + 1
        if self.tokens[self.i] in COMPARISONS:
            self._fail_chain()
        return Compare(name, _FLIPPED[op], value, any_element)

    def _name(self, i: int) -> str:
        token = self.tokens[i]
        if token[:1] == '"':
            return self._quoted_name(i)
        if not is_name(token):
            self._fail(f"an attribute's name is expected, not {self._shown(i)}", i)
        if token.lower() in RESERVED:
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
        if name == ANY_ATTRIBUTE:
            self._fail("no attribute has this name", i, "write any attribute, without quotes")
        return name

    # -- conditions other than comparisons: (name, token after the keyword, negated, any_element)

    def _in(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if self.tokens[i].lower() == "cidr":
            return self._in_network(name, i + 1, negated, any_element)
        if not any_element and self.tokens[i] == "(" and self._lists_terms(i):
            return self._constraint(i - 2 - negated)
        return In(name, self._list(i, "in"), negated, any_element)

    def _lists_terms(self, i: int) -> bool:
        """Whether the list that opens at token i has attributes, or what is calculated."""
        if self._plain_list(i) is not None:
            return False
        places = range(i + 1, self._closing(i))
        return any(self.tokens[k] != "," and self._is_term(k) for k in places)

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
        may_calculate = not any_element and name != TESTED
        if may_calculate and self._is_term(i):
            return self._constraint(i - 2 - negated)
        low = self._literal(i)
        if may_calculate and self.tokens[self.i].lower() == "and" and self._is_term(self.i + 1):
            return self._constraint(i - 2 - negated)
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
        return self._text(TextForm("like"), name, i, negated, any_element)

    def _text(
        self, form: TextForm, name: str, i: int, negated: bool, any_element: bool
    ) -> Expression:
        """Read a pattern or a text after `like`, `startswith` and so on, or several of them."""
        word = self.tokens[i].lower()
        if word not in ("any", "all"):
            pattern = self._pattern(i, self._check_like, form)
            return Like(name, pattern, negated, form.ignore_case, any_element)
        if negated or (any_element and word == "all"):
            hint = "put `not` before the attribute" if negated else "write conditions with `and`"
            self._fail(f"`{word}` with several texts cannot stand here", i, hint)
        texts = self._list(i + 1, f"{form.words} {word}")
        end = self.i
        conditions: list[Expression] = []
        for k in range(len(texts)):
            pattern = self._pattern(i + 2 + 2 * k, self._check_like, form)
            conditions.append(Like(name, pattern, False, form.ignore_case, any_element))
        self.i = end
        if len(conditions) == 1:
            return conditions[0]
        return Or(tuple(conditions)) if word == "any" else And(tuple(conditions))

    def _rlike(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        return RLike(name, self._pattern(i, self._check_regex), negated, any_element)

    def _text_test(self, word: str, i: int, negated: bool) -> Like | RLike | InNetwork:
        if word == "cidr":
            test = self._in_network(TESTED, i, negated, False)
        else:
            test = _NEGATABLE_RULES[word](self, TESTED, i, negated, False)
        if isinstance(test, (And, Or)):
            self._fail("a term takes one pattern", i, "write conditions with `or`")
        assert isinstance(test, (Like, RLike, InNetwork))
        return test

    def _check_like(self, pattern: str) -> None:
        if len(pattern) > self.settings.max_pattern_length:
            raise LimitError(
                f"a pattern is longer than {self.settings.max_pattern_length} characters",
                hint="shorten it, or raise the setting max_pattern_length",
            )
        check_like_pattern(pattern)

    def _check_regex(self, pattern: str) -> None:
        check_regex(pattern, self.settings.max_pattern_program)

    def _pattern(self, i: int, check: Callable[[str], object], form: TextForm | None = None) -> str:
        pattern = self._literal(i)
        if not isinstance(pattern, str):
            word = form.words if form else "rlike"
            what = "a text" if form and form.is_literal else "a pattern"
            example = "'^ab'" if word == "rlike" else "'ab%'" if word.endswith("like") else "'ab'"
            self._fail(
                f"`{word}` takes {what} in single quotes, not {self._shown(i)}",
                i,
                f"write it as text: {word} {example}",
            )
        if form is not None:
            pattern = form.pattern(pattern)
        try:
            check(pattern)
        except LimitError as error:
            raise LimitError(
                error.message, text=self.text, position=self._position(i), hint=error.hint
            ) from None
        except ExpressionError as error:
            self._fail_with(error, i)
        return pattern

    def _contains(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if self.tokens[i].lower() == "text" and (negated or self._is_text_form(i + 1)):
            return self._text(TextForm("contains text"), name, i + 1, negated, any_element)
        if negated:
            self._fail_after_not(i - 1)
        if any_element:
            self._fail(
                "`contains` takes a list, any() looks at its elements",
                i - 1,
                "write any(name) = 'x', name contains 'x', or any(name) contains text 'x'",
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

    def _is_text_form(self, i: int) -> bool:
        return self.tokens[i][:1] == "'" or self.tokens[i].lower() in ("any", "all")

    def _icontains(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        if self.tokens[i].lower() != "text":
            self._fail("`icontains` is followed by `text`", i, "write icontains text 'x'")
        return self._text(TextForm("icontains text"), name, i + 1, negated, any_element)

    def _is(self, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        word = self.tokens[i].lower()
        if word == "not":
            i, word, negated = i + 1, self.tokens[i + 1].lower(), True
        if word != "null" and word not in TRUTHS:
            self._fail_is(i, word, negated)
        if any_element:
            self._fail(
                f"any() takes a comparison, not `is {word}`",
                i,
                "a list holds no nulls; name is null asks whether the list itself is missing"
                if word == "null"
                else "write any(name) = true, or (any(name) = true) is not true",
            )
        self.i = i + 1
        if word == "null":
            return IsNull(name, negated)
        return TruthTest(IsTrue(name), TRUTHS[word], negated)

    # -- literals

    def _list(self, i: int, operator: str) -> tuple[Value, ...]:
        """Read a list in parentheses, starting at token i."""
        tokens = self.tokens
        if tokens[i] != "(":
            self._fail_no_list(i, operator)
        values = self._plain_list(i)
        if values is None:
            values = self._any_list(i, operator)
        self._n_listed += len(values) - 1
        return tuple(values)

    def _plain_list(self, i: int) -> list[Value] | None:
        """Return the values of a list of strings and numbers; None if it holds anything else."""
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
            value = plain_literal(token)
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
        """Return the literal at token i; leave self.i after it."""
        token = self.tokens[i]
        value = plain_literal(token)
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


def _rule_of(form: TextForm) -> _Rule:
    def read(parser: _Parser, name: str, i: int, negated: bool, any_element: bool) -> Expression:
        return parser._text(form, name, i, negated, any_element)

    return read


_Rule: TypeAlias = Callable[[_Parser, str, int, bool, bool], Expression]
_NEGATABLE_RULES: dict[str, _Rule] = {
    "in": _Parser._in,
    "between": _Parser._between,
    "like": _Parser._like,
    "rlike": _Parser._rlike,
    "contains": _Parser._contains,
    "icontains": _Parser._icontains,
    **{form.words: _rule_of(form) for form in TEXT_FORMS},
}
_RULES: dict[str, _Rule] = _NEGATABLE_RULES | {"is": _Parser._is}
