"""The public names of matchmill.spark: one list, documented, and hidden by no module."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from matchmill import spark as ms

FOLDER = Path(ms.__file__).parent
MATCHED = ("match", "explain", "near_misses", "statistics", "quarantine", "ingest_events", "stream")


def test_all_names_are_there_and_documented() -> None:
    assert ms.__all__ == sorted(ms.__all__)
    assert set(ms.__all__) == set(ms._MODULES)
    for name in ms.__all__:
        text = inspect.getdoc(getattr(ms, name)) or ""
        assert "Examples\n--------" in text, name
        if inspect.isfunction(getattr(ms, name)) and name != "plain_errors":
            assert "Parameters\n----------" in text, name
    with pytest.raises(AttributeError, match="no attribute 'match_column'"):
        ms.match_column  # noqa: B018


def test_no_module_hides_a_public_name() -> None:
    """Importing `matchmill.spark.x` sets the attribute `x` of the package."""
    modules = {path.stem if path.is_file() else path.name for path in FOLDER.iterdir()}
    assert not modules & set(ms.__all__)


@pytest.mark.parametrize("name", MATCHED)
def test_events_are_described_by_the_same_keywords(name: str) -> None:
    parameters = inspect.signature(getattr(ms, name)).parameters
    defaults = {"layout": "wide", "event_id": "event_id", "attributes": None}
    for keyword, default in defaults.items():
        assert parameters[keyword].default == default
        assert parameters[keyword].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", ["build", "match", "explain", "near_misses", "stream"])
def test_subscriptions_come_first(name: str) -> None:
    assert next(iter(inspect.signature(getattr(ms, name)).parameters)) == "subscriptions"


def test_options_are_keywords() -> None:
    """And none is swallowed: a mistyped option is an error."""
    for name in ms.__all__:
        found = getattr(ms, name)
        if not inspect.isfunction(found) or name == "session":  # it takes Spark's own settings
            continue
        for parameter in inspect.signature(found).parameters.values():
            assert parameter.kind is not inspect.Parameter.VAR_KEYWORD, (name, parameter)


def test_a_config_is_read_without_spark() -> None:
    program = (
        "import sys; from matchmill.spark.pipeline import config;sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_pyspark_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from matchmill import spark as ms\n"
        "from matchmill.errors import MissingDependencyError\n"
        "try:\n    ms.match\n"
        "except MissingDependencyError as error:\n    assert 'matchmill[spark]' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_steps_of_a_pipeline_have_the_names_that_the_command_line_knows() -> None:
    from matchmill.spark.pipeline.config_keys import STEP_NAMES
    from matchmill.spark.pipeline.steps import STEPS

    assert tuple(dict.fromkeys(step.public_name for step in STEPS)) == STEP_NAMES
