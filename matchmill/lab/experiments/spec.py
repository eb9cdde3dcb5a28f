"""An experiment is data: one TOML file, `matchmill/lab/experiments/specs/<paper>/<name>.toml`.

    title = "Matching time against the number of subscriptions"
    paper = "BE-Tree"              # see PAPERS
    shows = "Figure 5"             # the figure or table that it repeats
    claim = "one line in our own words: what the paper says is to be seen here"
    measures = ["match"]           # of MEASURES; says what a reader should look at. With
                                   # "predicate" contenders are predicate indexes, of
                                   # papers/predicate_index/registry.py, and clauses one predicate
    indexes = ["be_tree", "k_index", "scan", "mill"]   # the contenders, by name in the registry
    statistics = true              # optional: give indexes statistics of training events (default)

    [workload]                     # what every point has in common
    generator = "be_gen"           # by name in matchmill.lab.workloads.GENERATORS
    n_subscriptions = 1000000
    n_events = 1000
    seed = 1                       # optional; so is n_training_events
    n_dimensions = 400             # anything else is a parameter of the generator: a number,
                                   # a text or a boolean

    [grid]                         # optional; every combination is one point, the first key
    zipf = [0.0, 1.0]              # changes slowest
    n_subscriptions = [100000, 300000, 1000000]

    [[cases]]                      # optional; things that change together. Every case is crossed
    name = "skewed"                # with the grid; the label of a case is `case`
    zipf = 1.5
    small = { n_events = 16 }      # optional: what is different about it in small runs

    [contenders.be_tree_wide]      # optional; an index with options of its `build`. It joins the
    index = "be_tree"              # list of indexes by the name in the header
    statistics = false             # optional: it gets no statistics, whatever others get
    max_capacity = 20

    [small]                        # runs of a few seconds: changes of [workload], and
    n_events = 64
    [small.grid]                   # other values for keys of [grid]; those not named stay
    n_subscriptions = [200, 500]

    [full]                         # the same for full runs, and
    paper_subscriptions = [1000000]    # the paper's numbers of subscriptions; none if it has none
    note = "the exponent is ours: the paper does not name it"

    [plot]                         # optional; several plots are [[plot]]
    x = "n_subscriptions"          # a key of the grid, `case` or `index`
    y = "us_per_event"             # of MEASUREMENTS
    series = "index"               # one line each (default: index); a key of the grid, or `case`
    panels = "zipf"                # one picture each: a key or a list of keys. Keys of the grid
    log_x = true                   # that are used nowhere are added here
    log_y = true

An option of a contender may vary too: in [workload], [grid], [[cases]] and [small], a key with a
dot is `"<contender>.<option>"`, as in `"be_tree.max_capacity" = [5, 10, 20]`.

What comes later wins: [workload], then [small] or [full], the case, the case's `small`, the grid.
Indexes that the registry does not have (yet) are no mistake: results record them as not there.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from matchmill.errors import InputError
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec

__all__ = [
    "MEASUREMENTS",
    "MEASURES",
    "PAPERS",
    "SCALES",
    "Case",
    "Contender",
    "Experiment",
    "Plot",
    "Point",
    "Scale",
    "experiments",
    "find_experiments",
    "load_experiment",
    "parse_experiment",
    "points",
]

PAPERS = ("BE-Tree", "PS-Tree", "OpIndex", "Two-stage", "Expensive operators", "matchmill")
MEASURES = ("match", "build", "memory", "predicate")

# The columns of a summary that can be plotted, and the words at the axis.
MEASUREMENTS: dict[str, str] = {
    "us_per_event": "µs per event",
    "ns_per_match": "ns per match",
    "build_seconds": "seconds to build",
    "index_bytes": "bytes of the index",
    "bytes_per_subscription": "bytes per subscription",
    "peak_bytes": "peak memory, bytes",
    "candidates_per_event": "candidates per event",
    "matches_per_event": "matches per event",
}

Scale: TypeAlias = Literal["small", "full"]
SCALES: tuple[Scale, ...] = ("small", "full")
SPECS = Path(__file__).parent / "specs"


@dataclass(frozen=True, slots=True)
class Contender:
    """An index, or a predicate index, with options of its `build`, under a name of its own."""

    name: str
    index: str
    options: Mapping[str, Parameter]
    statistics: bool = True  # whether it gets those that the experiment has
    is_predicate_index: bool = False  # a name in the registry of predicate indexes


class Case(NamedTuple):
    """Things that change together."""

    name: str
    changes: Mapping[str, Parameter]
    small: Mapping[str, Parameter]


class Override(NamedTuple):
    """What one scale changes."""

    changes: Mapping[str, Parameter]
    grid: Mapping[str, Sequence[Parameter]]
    note: str
    paper_subscriptions: tuple[int, ...]


class Plot(NamedTuple):
    """One picture that a report draws."""

    x: str
    y: str
    series: str
    panels: tuple[str, ...]
    log_x: bool
    log_y: bool


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment, as its file has it."""

    name: str  # "<paper>/<file>", without the suffix
    title: str
    paper: str
    shows: str
    claim: str
    measures: tuple[str, ...]
    contenders: tuple[Contender, ...]
    statistics: bool
    workload: Mapping[str, Parameter]
    grid: Mapping[str, Sequence[Parameter]]
    cases: tuple[Case, ...]
    scales: Mapping[Scale, Override]
    plots: tuple[Plot, ...]
    text: str = field(repr=False)  # of the file
    changes: Mapping[str, Parameter] = field(default_factory=dict)  # what a user set; wins

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of what changes from point to point."""
        return (*(("case",) if self.cases else ()), *self.grid)

    @property
    def paper_subscriptions(self) -> tuple[int, ...]:
        """The numbers of subscriptions that the paper has; empty if it names none."""
        return self.scales["full"].paper_subscriptions

    def note(self, scale: Scale) -> str:
        """Return the note on sizes of a scale."""
        return self.scales[scale].note


class Point(NamedTuple):
    """One place of the grid: a workload, what makes it differ, and options of contenders."""

    workload: WorkloadSpec
    labels: Mapping[str, Parameter]
    options: Mapping[str, Mapping[str, Parameter]]

    def options_of(self, contender: Contender) -> dict[str, Parameter]:
        """Return the options of a contender at this point."""
        return {**contender.options, **self.options.get(contender.name, {})}


# -- finding --------------------------------------------------------------------------------------


def experiments(folder: Path | None = None) -> list[Experiment]:
    """All experiments that come with the package, by name."""
    return [load_experiment(path) for path in _spec_files(SPECS if folder is None else folder)]


def _spec_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.toml"))


def find_experiments(names: Sequence[str]) -> list[Experiment]:
    """Experiments by path or name; a folder's name stands for all in it, `all` for every one."""
    found: dict[str, Experiment] = {}
    for name in names:
        folder = [p for p in _spec_files(SPECS) if name in ("all", p.parent.name)]
        for experiment in [load_experiment(p) for p in folder] or [load_experiment(name)]:
            if found.setdefault(experiment.name, experiment).text != experiment.text:
                raise InputError(f"two different experiments are called {experiment.name}")
    return list(found.values())


def load_experiment(path_or_name: str | Path) -> Experiment:
    """Load an experiment from a file, or by its name: `be_tree/subscriptions`, or its last part."""
    text = str(path_or_name)
    if isinstance(path_or_name, Path) or text.endswith(".toml"):
        return _load_file(Path(path_or_name))
    files = {f"{p.parent.name}/{p.stem}": p for p in _spec_files(SPECS)}
    found = [name for name in files if name == text or name.rpartition("/")[2] == text]
    if len(found) == 1:
        return _load_file(files[found[0]])
    if found:
        raise InputError(f"several experiments are called {text!r}: {', '.join(found)}; name one")
    raise InputError(
        f"there is no experiment {text!r}; `matchmill bench list` shows all, and the path of a "
        "file ends in .toml"
    )


def _load_file(path: Path) -> Experiment:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    return parse_experiment(text, f"{path.resolve().parent.name}/{path.stem}", str(path))


# -- points ---------------------------------------------------------------------------------------


def points(experiment: Experiment, scale: Scale, *, sparse: bool = False) -> list[Point]:
    """Every case and every combination of the grid, always in the same order.

    If sparse, of each line of the grid only the first value, the last and one between.
    """
    override = experiment.scales[scale]
    grid = {**experiment.grid, **override.grid}
    if sparse:
        grid = {
            name: tuple(dict.fromkeys(values[i] for i in (0, (len(values) - 1) // 2, -1)))
            for name, values in grid.items()
        }
    found = []
    for case in experiment.cases or (None,):
        base = {**experiment.workload, **override.changes}
        labels: dict[str, Parameter] = {}
        if case is not None:
            base |= {**case.changes, **(case.small if scale == "small" else {})}
            labels["case"] = case.name
        for combination in itertools.product(*grid.values()):
            values = dict(zip(grid, combination, strict=True))
            chosen = {**base, **values, **experiment.changes}
            found.append(_point(experiment.name, chosen, {**labels, **values}))
    return found


def _point(name: str, values: dict[str, Parameter], labels: dict[str, Parameter]) -> Point:
    options: dict[str, dict[str, Parameter]] = {}
    for key in [key for key in values if "." in key]:
        contender, _, option = key.partition(".")
        options.setdefault(contender, {})[option] = values.pop(key)
    own: dict[str, Any] = {k: values.pop(k) for k in _WORKLOAD_FIELDS if k in values}
    try:
        return Point(WorkloadSpec(**own, parameters=values), labels, options)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


_WORKLOAD_FIELDS = ("generator", "n_subscriptions", "n_events", "n_training_events", "seed")


# -- reading --------------------------------------------------------------------------------------


def parse_experiment(text: str, name: str = "unnamed/unnamed", source: str = "") -> Experiment:
    """Read an experiment from the text of its file; `source` is what errors call it."""
    source = source or name
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not TOML: {error}") from None
    top = _Table(source, "", data)
    title, shows, claim = (top.text(key) for key in ("title", "shows", "claim"))
    paper = top.one_of("paper", PAPERS)
    measures = top.texts("measures", MEASURES)
    statistics = top.boolean("statistics", True)
    workload = top.table("workload")
    workload.text("generator", keep=True)
    grid = _grid(top.table("grid", optional=True))
    contenders = _contenders(top, is_predicate_index="predicate" in measures)
    cases = tuple(_cases(top))
    scales = {scale: _override(top.table(scale, optional=True), grid) for scale in SCALES}
    labels = (*(("case",) if cases else ()), *grid)
    plots = tuple(_plots(top, labels))
    top.done("the format is described in matchmill/lab/experiments/spec.py")
    experiment = Experiment(
        name, title, paper, shows, claim, measures, contenders, statistics,
        workload.parameters(), grid, cases, scales, plots, text,
    )  # fmt: skip
    _check_whole(experiment, source)
    return experiment


class _Table:
    """A table of the file that is emptied key by key, so that what is left over is a mistake."""

    def __init__(self, source: str, name: str, data: dict[str, Any]) -> None:
        self.source = source
        self.name = name
        self.data = dict(data)

    def fail(self, key: str, problem: str) -> InputError:
        where = f"{self.name}.{key}" if self.name and key else self.name or key
        return InputError(f"{self.source}: {where}: {problem}")

    def _take(self, key: str, keep: bool = False) -> Any:
        if key not in self.data:
            raise self.fail(key, "is missing; add it")
        return self.data[key] if keep else self.data.pop(key)

    def text(self, key: str, default: str | None = None, keep: bool = False) -> str:
        if key not in self.data and default is not None:
            return default
        value = self._take(key, keep)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, f"must be a text, not {value!r}")
        return value

    def one_of(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in choices:
            raise self.fail(key, f"must be one of {', '.join(choices)}; not {value!r}")
        return value

    def texts(self, key: str, choices: Sequence[str] = ()) -> tuple[str, ...]:
        values = self._take(key)
        if not isinstance(values, list) or not values:
            raise self.fail(key, f'must be a list of texts such as ["a", "b"], not {values!r}')
        for value in values:
            if not isinstance(value, str):
                raise self.fail(key, f"must hold texts, not {value!r}")
            if choices and value not in choices:
                raise self.fail(key, f"must hold some of {', '.join(choices)}; not {value!r}")
        if len(set(values)) < len(values):
            raise self.fail(key, f"names something twice: {values!r}")
        return tuple(values)

    def numbers(self, key: str) -> tuple[int, ...]:
        values = self.data.pop(key, [])
        if not isinstance(values, list) or not all(type(v) is int and v > 0 for v in values):
            raise self.fail(key, f"must be a list of numbers above 0, not {values!r}")
        return tuple(values)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.data.pop(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, f"must be true or false, not {value!r}")
        return value

    def table(self, key: str, optional: bool = False) -> _Table:
        value = self.data.pop(key, {}) if optional else self._take(key)
        if not isinstance(value, dict):
            raise self.fail(key, f"must be a table, [{key}], not {value!r}")
        return _Table(self.source, f"{self.name}.{key}" if self.name else key, value)

    def tables(self, key: str) -> Iterator[_Table]:
        value = self.data.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise self.fail(key, f"must be written as [[{key}]], once or several times")
        for i, part in enumerate(value):
            yield _Table(self.source, f"{key}[{i}]", part)

    def parameters(self) -> dict[str, Parameter]:
        """All that is left, as parameters."""
        return {key: self.parameter(key, value) for key, value in self.data.items()}

    def parameter(self, key: str, value: Any) -> Parameter:
        if isinstance(value, dict):
            inner = next(iter(value), "option")
            raise self.fail(key, f'must not be a table; write the key in quotes: "{key}.{inner}"')
        if not isinstance(value, bool | int | float | str):
            raise self.fail(key, f"must be a number, a text or a boolean, not {value!r}")
        return value

    def done(self, hint: str) -> None:
        for key in self.data:
            raise self.fail(key, f"is unknown; {hint}")


def _grid(table: _Table) -> dict[str, tuple[Parameter, ...]]:
    found = {}
    for key, values in table.data.items():
        if not isinstance(values, list) or not values:
            raise table.fail(key, f"must be a list of values such as [1, 2, 3], not {values!r}")
        if len({(type(v), str(v)) for v in values}) < len(values):
            raise table.fail(key, f"has a value twice: {values!r}")
        if key in ("case", "index", "generator"):
            raise table.fail(key, "cannot be in the grid; use [[cases]] or `indexes`")
        found[key] = tuple(table.parameter(key, value) for value in values)
    return found


def _contenders(top: _Table, is_predicate_index: bool) -> tuple[Contender, ...]:
    names = top.texts("indexes")
    found = {
        name: Contender(name, name, {}, is_predicate_index=is_predicate_index) for name in names
    }
    special = top.table("contenders", optional=True)
    for name in list(special.data):
        table = special.table(name)
        index = table.text("index")
        statistics = table.boolean("statistics", True)
        found[name] = Contender(name, index, table.parameters(), statistics, is_predicate_index)
    for name in found:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise top.fail("indexes", f"{name!r} is no name: small letters, digits, underscores")
    return tuple(found.values())


def _cases(top: _Table) -> Iterator[Case]:
    names = set()
    for table in top.tables("cases"):
        name = table.text("name")
        if name in names:
            raise table.fail("name", f"occurs twice: {name!r}")
        names.add(name)
        small = table.table("small", optional=True).parameters()
        yield Case(name, table.parameters(), small)


def _override(table: _Table, grid: Mapping[str, Sequence[Parameter]]) -> Override:
    note = table.text("note", "")
    sizes = table.numbers("paper_subscriptions")
    changed = _grid(inner := table.table("grid", optional=True))
    for key in changed:
        if key not in grid:
            raise inner.fail(key, f"is not in [grid]; there are: {', '.join(grid) or 'none'}")
    return Override(table.parameters(), changed, note, sizes)


def _plots(top: _Table, labels: tuple[str, ...]) -> Iterator[Plot]:
    if isinstance(top.data.get("plot"), dict):
        top.data["plot"] = [top.data["plot"]]
    for table in top.tables("plot"):
        x = table.one_of("x", (*labels, "index"))
        y = table.one_of("y", tuple(MEASUREMENTS))
        series = table.one_of("series", ("index", *labels), "index")
        if isinstance(table.data.get("panels"), str):
            table.data["panels"] = [table.data["panels"]]
        named = table.texts("panels", labels) if table.data.get("panels") else ()
        table.data.pop("panels", None)
        used = {x, series, *named}
        rest = tuple(key for key in (*labels, "index") if key not in used)
        if len({x, series, *named}) < 2 + len(named):
            raise table.fail("x", "x, series and panels must differ from each other")
        plot = Plot(
            x, y, series, (*named, *rest), table.boolean("log_x", False),
            table.boolean("log_y", False),
        )  # fmt: skip
        table.done("a plot has x, y, series, panels, log_x and log_y")
        yield plot


def _check_whole(experiment: Experiment, source: str) -> None:
    """Mistakes that show only when all is put together."""
    known = {c.name for c in experiment.contenders}
    for scale in SCALES:
        override = experiment.scales[scale]
        for case in experiment.cases or (Case("", {}, {}),):
            keys = {*experiment.workload, *override.changes, *case.changes, *experiment.grid}
            for key in ("n_subscriptions", "n_events"):
                if key not in keys:
                    raise InputError(f"{source}: workload.{key}: is missing; add it")
            for key in sorted({*keys, *case.small}):
                if "." in key and key.partition(".")[0] not in known:
                    raise InputError(
                        f"{source}: {key}: a key with a dot is <contender>.<option>, and there is "
                        f"no contender {key.partition('.')[0]!r}; add it to `indexes`"
                    )
        try:
            points(experiment, scale)
        except InputError as error:
            raise InputError(f"{source}: {str(error).partition(': ')[2]}") from None
