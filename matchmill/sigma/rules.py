"""`load`: files of Sigma rules become subscriptions, with what is known of each rule beside them.

    rules/*.yml ─► pySigma: parse, pipelines ─► backend.py ─► subscription_id, expression, title, …
                                                       └────► rejected, with the reason

A rule is converted exactly or not at all. Its id is the subscription's; a rule without an id has
the name of its file, and a rule with several conditions becomes one subscription.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml
from sigma.exceptions import SigmaError
from sigma.rule import SigmaRule
from sigma.rule.base import check_alias_expansion

from matchmill.errors import ExpressionError, FileFormatError, InputError, MatchmillError
from matchmill.io.reports import Rejected
from matchmill.language.expression import Expression, Or
from matchmill.language.parser import parse_text
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.sigma.backend import MatchmillBackend
from matchmill.sigma.pipelines import pipeline_of

__all__ = ["ConvertedRule", "SigmaRules", "convert", "load"]

_SUFFIXES = (".yml", ".yaml")
SCHEMA = pa.schema(
    [
        ("subscription_id", pa.string()),
        ("expression", pa.string()),
        ("title", pa.string()),
        ("level", pa.string()),
        ("status", pa.string()),
        ("author", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("logsource", pa.string()),
        ("file", pa.string()),
    ]
)


class ConvertedRule(NamedTuple):
    """One rule as a subscription, with what is known of it.

    Examples
    --------
    >>> rules = mm.sigma.load("rules")  # doctest: +SKIP
    >>> rules[0].title, rules[0].level  # doctest: +SKIP
    ('Suspicious Command', 'high')
    """

    subscription_id: str
    expression: str
    title: str
    level: str | None
    status: str | None
    author: str | None
    tags: list[str]
    logsource: str
    file: str | None


class SigmaRules(Sequence[ConvertedRule]):
    """Converted rules: a source of subscriptions for `subscribe_many` and `mm.match`.

    Attributes
    ----------
    rejected : list of Rejected
        The rules that were not converted, each with the reason.

    Examples
    --------
    >>> rules = mm.sigma.load("rules")  # doctest: +SKIP
    >>> engine = mm.Engine(rules)  # doctest: +SKIP
    >>> rules.hits(engine.match_many("events.jsonl")).to_pylist()  # doctest: +SKIP
    """

    def __init__(self, rules: Sequence[ConvertedRule], rejected: Sequence[Rejected] = ()) -> None:
        self._rules = list(rules)
        self._by_id = {rule.subscription_id: rule for rule in self._rules}
        self.rejected = list(rejected)

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, place: Any) -> Any:
        found = self._rules[place]
        return SigmaRules(found) if isinstance(place, slice) else found

    def __iter__(self) -> Iterator[ConvertedRule]:
        return iter(self._rules)

    def rule(self, subscription_id: str) -> ConvertedRule:
        """Return a rule by its id.

        Examples
        --------
        >>> rules.rule("5f3d…").title  # doctest: +SKIP
        """
        return self._by_id[subscription_id]

    def to_arrow(self) -> pa.Table:
        """Return the rules as a table, one row per rule.

        Examples
        --------
        >>> rules.to_arrow().column_names[:3]  # doctest: +SKIP
        ['subscription_id', 'expression', 'title']
        """
        return pa.Table.from_pylist([rule._asdict() for rule in self._rules], SCHEMA)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        names = ["subscription_id", "expression"]
        return self.to_arrow().select(names).__arrow_c_stream__(requested_schema)

    def hits(self, matches: Any) -> pa.Table:
        """Put title, level, tags and the rest of each rule beside the matches.

        Parameters
        ----------
        matches
            What `match_many` returned, or any table with a column `subscription_id`.

        Examples
        --------
        >>> rules.hits(engine.match_many(events)).column_names[:3]  # doctest: +SKIP
        ['event_id', 'subscription_id', 'title']
        """
        table = pa.table(matches)
        place = {rule.subscription_id: i for i, rule in enumerate(self._rules)}
        ids = table.column("subscription_id").combine_chunks().dictionary_encode()
        known = pa.array([place.get(id) for id in ids.dictionary.to_pylist()], pa.int64())
        rows = known.take(ids.indices)
        about = self.to_arrow().drop_columns(["subscription_id", "expression"])
        for name in about.column_names:
            table = table.append_column(name, about.column(name).take(rows))
        return table

    def summary(self, matches: Any) -> pa.Table:
        """Count the matches of each rule: its id, title, level and `n_matches`, most first.

        Parameters
        ----------
        matches
            As for `hits`.

        Examples
        --------
        >>> rules.summary(engine.match_many(events))  # doctest: +SKIP
        """
        counts = self.hits(matches).group_by(["level", "title", "subscription_id"])
        counted = counts.aggregate([("subscription_id", "count")])
        counted = counted.rename_columns({"subscription_id_count": "n_matches"})
        return counted.sort_by([("n_matches", "descending"), ("title", "ascending")])

    def __repr__(self) -> str:
        rejected = f", {len(self.rejected):,} rejected" if self.rejected else ""
        return f"<SigmaRules: {len(self):,} rules{rejected}>"


# -- reading --------------------------------------------------------------------------------------


def load(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    pipelines: Any = (),
    settings: Settings = DEFAULT_SETTINGS,
) -> SigmaRules:
    """Read Sigma rules from files and folders.

    Parameters
    ----------
    paths
        A folder, which is searched at any depth, a file, or several of them.
    pipelines
        What pySigma is to do with the rules before: names (`"windows"` makes conditions on
        `Channel` and `EventID` of logsources; others come with packages of pySigma's), paths of
        YAML files, or objects.
    settings
        Limits of expressions.

    Returns
    -------
    SigmaRules
        The subscriptions; `rejected` has the rules that cannot be converted.

    Examples
    --------
    >>> rules = mm.sigma.load("rules", pipelines=["windows"])  # doctest: +SKIP
    >>> mm.Engine(rules)  # doctest: +SKIP
    """
    converter = _Converter(pipelines, settings)
    for file in _files([paths] if isinstance(paths, (str, os.PathLike)) else paths):
        converter.read_file(file)
    return converter.result()


def convert(text: str, *, pipelines: Any = (), settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Return the expression of one rule, given as YAML.

    Parameters
    ----------
    text
        One rule.
    pipelines, settings
        As for `load`.

    Examples
    --------
    >>> mm.sigma.convert(open("rule.yml").read())  # doctest: +SKIP
    """
    converter = _Converter(pipelines, settings)
    try:
        documents = converter.documents(text)
        if len(documents) != 1:
            raise ExpressionError(f"one Sigma rule is expected, not {len(documents)} documents")
        return converter.expression(converter.parse(documents[0]))
    except SigmaError as error:
        raise ExpressionError(f"the Sigma rule cannot be converted: {_plain(error)}") from error


def _files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
            if not found:
                raise FileFormatError(f"{path}: there are no Sigma rules (*.yml) in it")
            yield from found
        elif path.is_file():
            yield path
        else:
            raise FileFormatError(f"{path}: there is no such file or folder")


class _Converter:
    def __init__(self, pipelines: Any, settings: Settings) -> None:
        self._settings = settings
        self._backend = MatchmillBackend(processing_pipeline=pipeline_of(pipelines))
        self._backend.init_processing_pipeline()
        self._rules: dict[str, ConvertedRule] = {}
        self._rejected: list[Rejected] = []

    def read_file(self, file: Path) -> None:
        """Convert all rules of a file, or reject them."""
        try:
            documents = self.documents(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, MatchmillError) as error:
            self._reject(file, 0, file.stem, str(error))
            return
        for row, document in enumerate(documents):
            name = str(document.get("id") or file.stem)
            try:
                parsed = self.parse(document)
                self._add(file, parsed, name, self.expression(parsed))
            except (SigmaError, MatchmillError) as error:
                self._reject(file, row, name, _plain(error))

    def documents(self, text: str) -> list[dict[str, Any]]:
        """Read YAML; parts of a rule with `action` are not joined."""
        try:
            found = [d for d in yaml.load_all(text, _Loader) if d is not None]
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ExpressionError(f"not valid YAML: {_first_line(error)}") from error
        for document in found:
            if not isinstance(document, dict):
                raise ExpressionError("a Sigma rule is a mapping with title, logsource, detection")
        return found

    def parse(self, document: dict[str, Any]) -> SigmaRule:
        """Return the rule of a document."""
        check_alias_expansion(document)  # a few lines can stand for billions
        if "correlation" in document:
            raise InputError("a correlation of several events is no condition on one event")
        if "detection" not in document:
            raise InputError("it has no `detection`")
        if "action" in document:
            raise InputError("collections with `action` are not read: write each rule in full")
        return SigmaRule.from_dict(document)

    def expression(self, rule: SigmaRule) -> Expression:
        """Convert a rule; check the result as text, which is what is stored."""
        found = self._backend.convert_rule(rule)
        if not found:
            raise InputError("it has no condition, or a pipeline left it out")
        joined = found[0] if len(found) == 1 else Or(tuple(found))
        return parse_text(str(joined), self._settings)

    def _add(self, file: Path, rule: SigmaRule, name: str, expression: Expression) -> None:
        if name in self._rules:
            raise InputError(f"the id {name} occurs twice; also in {self._rules[name].file}")
        source = rule.logsource
        parts = (source.product, source.category, source.service)
        self._rules[name] = ConvertedRule(
            name,
            str(expression),
            rule.title,
            rule.level.name.lower() if rule.level is not None else None,
            rule.status.name.lower() if rule.status is not None else None,
            rule.author,
            [str(tag) for tag in rule.tags],
            "/".join(part for part in parts if part),
            str(file),
        )

    def _reject(self, file: Path, row: int, name: str, reason: str) -> None:
        self._rejected.append(Rejected("subscription", row, None, str(file), name, reason))

    def result(self) -> SigmaRules:
        return SigmaRules(list(self._rules.values()), self._rejected)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe loader that rejects keys given twice: the last one would win in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice!r} is given twice", node.start_mark
            )
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _plain(error: Exception) -> str:
    if isinstance(error, MatchmillError):
        return error.summary
    return _first_line(error)
