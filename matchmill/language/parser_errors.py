"""The errors of the parser: what is wrong with a text, where, and the likely fix."""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from itertools import islice
from typing import NoReturn

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import KEYWORDS
from matchmill.language.tokens import (
    COMPARISONS,
    DECIMAL,
    INTEGER,
    NUMBER_STARTS,
    RESERVED,
    TOKEN,
    is_name,
)
from matchmill.settings import Settings

__all__ = ["Complaints"]

# -- what people write, and what they mean --------------------------------------------------------

_NEGATABLE_WORDS = [
    *("in", "between", "like", "ilike", "rlike", "startswith", "endswith", "istartswith"),
    *("iendswith", "iequals", "icontains"),
]
_RULE_WORDS = [*_NEGATABLE_WORDS, "contains", "is"]
_OPERATOR_WORDS = ["and", "or", "not", *_RULE_WORDS]
_OTHER_OPERATORS = {
    "===": "=",
    "=!": "!=",
    "!==": "!=",
    "=>": ">=",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
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
    "starts_with": "startswith",
    "starts": "startswith",
    "ends_with": "endswith",
    "ends": "endswith",
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


class Complaints:
    """A text and its tokens, and a method for each way in which it can be wrong.

    `self.i` is the token that comes next.
    """

    __slots__ = ("i", "settings", "text", "tokens")

    def __init__(self, text: str, tokens: list[str], settings: Settings) -> None:
        self.text = text
        self.tokens = tokens
        self.settings = settings
        self.i = 0

    def _position(self, i: int) -> int:
        match = next(islice(TOKEN.finditer(self.text), i, None), None)
        return len(self.text.rstrip()) if match is None else match.start()

    def _fail(self, message: str, i: int, hint: str = "") -> NoReturn:
        raise ExpressionError(message, text=self.text, position=self._position(i), hint=hint)

    def _fail_with(self, error: ExpressionError, i: int) -> NoReturn:
        """Raise the error of a check at its token, with what it quotes cut."""
        message = error.message
        self._fail(message if len(message) <= 200 else message[:200] + "…", i, error.hint)

    def _shown(self, i: int) -> str:
        """Return a token for an error message."""
        token = self.tokens[i]
        if not token:
            return "the end of the text"
        if token in _OTHER_OPERATORS and not token.isascii():
            return f"`{token}`"
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
        """Fail where a condition should start at self.i and does not."""
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
        if word in RESERVED:
            self._fail(
                f"an attribute is missing before {self._shown(i)}",
                i,
                f'an attribute of that name is quoted: "{token}"',
            )
        if token in COMPARISONS:
            self._fail(f"an attribute is missing before {self._shown(i)}", i)
        self._fail_token(i, f"a condition is expected, not {self._shown(i)}")

    def _fail_after_condition(self, opening: int | None) -> NoReturn:
        """Fail where no `and`, `or` or end follows; opening is the innermost open parenthesis."""
        i = self.i
        token = self.tokens[i]
        if token == "":
            assert opening is not None
            self._fail("the parenthesis is never closed", opening, "add the closing `)`")
        if token == ")":
            self._fail("`)` closes nothing", i, "remove it, or add the opening `(`")
        if token in COMPARISONS:
            self._fail_chain()
        if token[0] == "'" or (is_name(token) and self.tokens[i - 1][:1] == "'"):
            start = self._position(i)
            if self.text[start - 1] == "'":
                self._fail(
                    f"`and` or `or` is expected, not {self._shown(i)}",
                    i,
                    "a single quote inside text is doubled: 'it''s'",
                )
        self._fail_token(i, f"`and` or `or` is expected, not {self._shown(i)}")

    def _fail_token(self, i: int, message: str) -> NoReturn:
        """Fail at a token that is not allowed here, with a hint if it is a familiar mistake."""
        token = self.tokens[i]
        word = token.lower()
        hint = _TOKEN_HINTS.get(token, "")
        if not hint and word in _OTHER_OPERATORS:
            hint = f"write `{_OTHER_OPERATORS[word]}`"
        if not hint and set(token) <= set("=<>!&|~"):
            known = next((s for s in ("&&", "||", "&", "|", "!") if token.startswith(s)), None)
            hint = f"write `{_OTHER_OPERATORS[known]}`" if known else ""
        if not hint and is_name(token) and word not in KEYWORDS:
            close = get_close_matches(word[:20], _OPERATOR_WORDS, n=1, cutoff=0.65)
            hint = f"did you mean `{close[0]}`?" if close else ""
        if not hint and len(token) == 1 and (not token.isprintable() or token.isspace()):
            hint = "outside quotes, only spaces, tabs and line ends may separate words"
        self._fail(message, i, hint)

    def _fail_operator(self, name: str, i: int) -> NoReturn:
        """Fail where what follows an attribute is no operator."""
        token, before = self.tokens[i], self.tokens[i - 1]
        shown = name if len(name) <= 40 else name[:40] + "…"
        if token == "(":
            self._fail(
                f"any({shown}) is not an operator", i, "say what an element is to be: any(name) = 1"
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
        if name.lower() in ("any", "where", "when", "if", "select") and is_name(token):
            word = name.lower()
            self._fail(
                f"an operator is expected after `{shown}`, not {self._shown(i)}",
                i,
                f"write any({token[:40]})" if word == "any" else f"leave `{word}` out",
            )
        kind = "unknown operator" if is_name(token) or token[0] in "=<>!&|~" else "unexpected"
        self._fail_token(i, f"{kind} {self._shown(i)}")

    def _fail_after_not(self, i: int) -> NoReturn:
        word = self.tokens[i].lower()
        if word == "contains":
            hint = "write `contains none (…)`, or put `not` before the attribute"
        elif word == "null":
            hint = "write `is not null`"
        elif self.tokens[i] in COMPARISONS:
            hint = "write `!=`, or put `not` before the attribute"
        else:
            close = get_close_matches(word[:20], _NEGATABLE_WORDS, n=1, cutoff=0.65)
            hint = f"did you mean `not {close[0]}`?" if close else ""
        self._fail(
            f"in, between, like, ilike or rlike is expected after `not`, not {self._shown(i)}",
            i,
            hint,
        )

    def _fail_after_literal(self, start: int) -> NoReturn:
        """Fail where a literal starts a condition and no comparison follows."""
        word = self.tokens[self.i].lower()
        if word == "in" or (word == "not" and self.tokens[self.i + 1].lower() == "in"):
            hint = "a list is asked the other way round: tags contains 'x'"
        elif word in ("", "and", "or", ")"):
            quoted = self.tokens[start][:1] == "'"
            hint = "an attribute of that name takes double quotes" if quoted else ""
        elif word in _RULE_WORDS:
            hint = f"the attribute comes first: name {word} …"
        elif word in _OTHER_OPERATORS:
            hint = f"write `{_OTHER_OPERATORS[word]}`"
        else:
            hint = "an attribute of that name takes double quotes"
        self._fail(f"the literal {self._shown(start)} is not a condition", start, hint)

    def _fail_is(self, i: int, word: str, negated: bool, of_name: bool = True) -> NoReturn:
        if not of_name and word in ("null", "none", "missing", "empty", "nil", "nan", "undefined"):
            hint = f"write `is {'not ' if negated else ''}unknown`; `is null` follows a name"
        elif word in ("none", "missing", "empty", "nil", "nan", "undefined"):
            hint = "write `is not null`" if negated else "write `is null`"
        elif word == "":
            hint = "write `is null` or `is not null`" if of_name else "write `is not true`"
        else:
            hint = "compare with `!=`" if negated else "compare with `=`"
        choices = f"{'null, ' if of_name else ''}true, false or unknown"
        after = "`is not`" if negated else "`is`"
        self._fail(f"{after} takes {choices}, not {self._shown(i)}", i, hint)

    def _fail_no_list(self, i: int, operator: str) -> NoReturn:
        token = self.tokens[i]
        if operator == "in cidr":
            hint = "write in cidr '10.0.0.0/8'"
        elif token[:1] == "'" or token[:1].isdigit():
            hint = f"put the values in parentheses: {operator} ({token[:40]})"
        elif is_name(token) or token[:1] == '"':
            hint = "for a list-valued attribute write `tags contains 'x'`"
        else:
            hint = f"write {operator} ('a', 'b')"
        self._fail(f"`{operator}` takes a list in parentheses, not {self._shown(i)}", i, hint)

    def _fail_in_list(self, start: int, i: int) -> NoReturn:
        token = self.tokens[i]
        if token == "" or token.lower() in ("and", "or"):
            self._fail("the list is never closed", start, "add the closing `)`")
        quoted = token[0] == "'" or self.tokens[i - 1][:1] == "'"
        if quoted and is_name(token):
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
        """Fail where a literal is expected at token i and there is none."""
        token, before = self.tokens[i], self.tokens[i - 1] if i else ""
        word, first = token.lower(), token[:1]
        if word == "null":
            if in_list:
                self._fail("null cannot be in a list", i, "write `name in (…) or name is null`")
            hint = "write `is not null`" if before in ("!=", "<>") else "write `is null`"
            self._fail("a comparison with null is never true", i, hint)
        if first == "?" and len(token) > 1:
            self._fail(
                f"an attribute is compared with a literal, not with {self._shown(i)}",
                i,
                f"an operator can bind it: attribute('name', ?a) and ?a > {token[:40]}",
            )
        if first in NUMBER_STARTS:
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
        if is_name(token) and word not in RESERVED:
            self._fail(
                f"a literal is expected, not the name {self._shown(i)}",
                i,
                f"text takes single quotes: '{token[:40]}'; attributes follow comparisons",
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
        if INTEGER.fullmatch(token):
            self._fail(
                f"the integer {self._shown(i)} is beyond 64 bits",
                i,
                "write it as a decimal (1e20), or as text if it is an identifier",
            )
        if DECIMAL.fullmatch(token):
            self._fail(f"the number {self._shown(i)} is too large for a double", i)
        self._fail(
            f"not a number: {self._shown(i)}",
            i,
            "numbers are written 580, -5, 0.25 or 1e-3; text takes single quotes",
        )
