"""Help, usage errors, documentation, progress; commands as real processes."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from matchmill.cli import parse
from matchmill.cli.commands import COMMANDS
from matchmill.cli.documentation import documentation
from matchmill.cli.progress import Progress

Run = Callable[..., Any]

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("numpy", "pyarrow", "numba", "pyspark", "starlette", "httpx2", "rich")


def test_the_documentation_is_up_to_date() -> None:
    page = (REPOSITORY / "docs" / "CLI.md").read_text(encoding="utf-8")
    assert page == documentation(), "run: python -m matchmill.cli.documentation > docs/CLI.md"


def test_every_command_has_a_module() -> None:
    for command in COMMANDS:
        module = import_module(command.module)
        assert callable(module.add_arguments)
        assert callable(module.run)


@pytest.mark.parametrize("name", ["", *(command.name for command in COMMANDS)])
def test_help(name: str, run: Run) -> None:
    result = run(*[name] * bool(name), "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"usage: matchmill {name}".rstrip())
    assert all(len(line) <= 88 for line in result.out.splitlines())
    assert ("exit codes:\n" in result.out) == (not name)  # they stand once


def test_no_old_names() -> None:
    page = documentation()
    for old in ("--id-column", "--refused", "matchmill client", "valid-seconds", "set aside"):
        assert old not in page


@pytest.mark.parametrize(
    "arguments", [("--help",), ("match", "--help"), ("serve", "--help"), ("pipeline", "--help")]
)
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys; from matchmill.cli import main; code = main(sys.argv[1:]);"
        f" print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "usage", "message"),
    [
        (("nonsense",), "usage: matchmill [", "there is no command 'nonsense'"),
        (("mtach", "a", "b"), "usage: matchmill [", "did you mean 'match'?"),
        ((), "usage: matchmill [", "required: COMMAND"),
        (("match", "subs.csv"), "usage: matchmill match ", "required: EVENTS"),
        (("match", "a", "b", "--nonsense"), "usage: matchmill match ", "--nonsense"),
        (("keys", "add", "x"), "usage: matchmill keys add ", "required: --tenant"),
        (("keys",), "usage: matchmill keys ", "required: ACTION"),
        (("pipeline", "run", "c", "--from", "x"), "usage: matchmill pipeline run ", "invalid"),
    ],
)
def test_a_usage_error_shows_the_usage_of_its_command(
    arguments: tuple[str, ...], usage: str, message: str, run: Run
) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(usage)
    assert message in result.err


def test_examples_in_the_help_are_commands() -> None:
    """Every example parses; what they do is tested elsewhere."""
    lines = documentation().splitlines()
    examples = []
    for number, line in enumerate(lines):
        if line in ("example:", "examples:"):
            for following in lines[number + 1 :]:
                if not following.startswith("  "):
                    break
                examples.append(following.strip())
    assert len(examples) > 30
    for example in examples:
        words = shlex.split(example.partition("| ")[2] or example)
        words = words[: next((k for k, word in enumerate(words) if word in "<>"), None)]
        assert words[0] == "matchmill"
        parse(words[1:])


def test_commands_in_documents_parse() -> None:
    """Those of README, docs and guides, in blocks of shell."""
    n_found = 0
    documents = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    for path in documents:
        if path.name in ("CLI.md", "CHANGELOG.md"):
            continue
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for block in re.findall(r"```(?:bash|sh|console)\n(.*?)```", text, re.DOTALL):
            for line in re.findall(r"^(?:[^#\n]*[ |])?(matchmill [a-z].*)$", block, re.MULTILINE):
                words = shlex.split(line, comments=True)
                ends = (k for k, word in enumerate(words) if word in ("<", ">", "|", "&", "2>"))
                parse(words[1 : next(ends, None)])
                n_found += 1
    assert n_found > 20


# -- progress -------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_and_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(quiet=False) as progress:
        progress.stage("reading")
        progress.update(10)
        assert terminal.getvalue() == ""
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 5)
        progress.update(1234)
        progress.stage("matching")
        progress.update(5678, 9999)
    shown = terminal.getvalue()
    assert "matching" in shown
    assert "5,678 of 9,999" in shown
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(quiet=False) as progress:
        progress.update(10)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


# -- real processes -------------------------------------------------------------------------------


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "matchmill", *arguments]


@pytest.mark.slow
def test_version_of_the_module_and_the_script() -> None:
    done = subprocess.run(command("--version"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("matchmill ")
    script = Path(sys.executable).with_name("matchmill")
    if script.exists():
        again = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert again.stdout == done.stdout


@pytest.mark.slow
def test_match_in_a_process(run: Run) -> None:
    done = subprocess.run(
        command("match", "subs.csv", "events.csv"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8
    missing = subprocess.run(
        command("match", "no.csv", "events.csv"), capture_output=True, text=True, check=False
    )
    assert missing.returncode == 2
    assert missing.stderr == "matchmill: error: no.csv: there is no such file\n"


@pytest.mark.slow
def test_the_reader_goes_away(run: Run) -> None:
    rows = "".join(f"u{i},true\n" for i in range(300))
    Path("subs.csv").write_text("subscription_id,expression\n" + rows)
    Path("events.csv").write_text("x\n" + "1\n" * 2000)
    process = subprocess.Popen(
        command("match", "subs.csv", "events.csv"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"event_id,subscription_id\n"
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors == ""


def open_when_read(fifo: str) -> int:
    """Return the writing end of a pipe, as soon as somebody reads it."""
    for _ in range(600):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(fifo)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_output(number: signal.Signals, code: int, run: Run) -> None:
    """The events come from a pipe that nobody writes to, so the process waits."""
    os.mkfifo("events.jsonl")
    process = subprocess.Popen(
        command("match", "subs.csv", "events.jsonl", "--out", "m.csv"),
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = open_when_read("events.jsonl")
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert sorted(os.listdir()) == ["events.csv", "events.jsonl", "subs.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 0.1, 0.3, 1.0, 3.0])
def test_an_interrupt_is_no_traceback(delay: float, run: Run, tmp_path: Path) -> None:
    """While modules are imported, and while kernels are compiled."""
    program = "from matchmill.__main__ import main; print(flush=True); raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "match", "subs.csv", "events.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MATCHMILL_CACHE_DIR": str(tmp_path / "kernels")},
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    frames = [line for line in errors.splitlines() if line.lstrip().startswith("File ")]
    # The program above may be interrupted before it has called `main`.
    assert [frame for frame in frames if 'File "<string>"' not in frame] == []
    assert "Exception ignored" not in errors
    assert process.returncode in (130, 0, -signal.SIGINT)  # or it was ready before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("subscribe", "nowhere", "u1", "x = 1"), "nowhere does not exist; a TARGET is a folder"),
        (("subscribe", "empty", "u1", "x = 1"), "`matchmill build SUBSCRIPTIONS FOLDER` makes one"),
        (("list", "subs.csv"), "subs.csv is a file; a TARGET is a folder made by build"),
        (("keys", "list", "nowhere"), "there is no folder nowhere; `matchmill keys add` makes one"),
        (("explain", "price < 3", "events.csv"), "an EVENT is a JSON object such as"),
        (("match", "price < 3", "events.csv"), "`matchmill backtest EXPRESSION EVENTS` tries one"),
        (("backtest", "events.csv", "price < 3"), "`matchmill backtest EXPRESSION EVENTS`"),
    ],
)
def test_mistakes_name_what_helps(arguments: tuple[str, ...], message: str, run: Run) -> None:
    Path("empty").mkdir()
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "create=True" not in result.err
    assert not Path("nowhere").exists()


def test_a_key_of_json_lines_that_is_not_there_names_the_option(run: Run) -> None:
    Path("subs.jsonl").write_text('{"id": "u1", "expression": "price < 3"}\n')
    assert "--subscription-id" in run("match", "subs.jsonl", "events.csv").err
    Path("subs.jsonl").write_text('{"subscription_id": "u1", "rule": "price < 3"}\n')
    assert "--expression" in run("match", "subs.jsonl", "events.csv").err


def test_nothing_matches(run: Run) -> None:
    Path("one.csv").write_text("subscription_id,expression\nu1,prize < 20\n")
    assert (
        "`matchmill check SUBSCRIPTIONS --events EVENTS`"
        in run("match", "one.csv", "events.csv").err
    )
    result = run("backtest", "prize < 20", "events.csv")
    assert result.out == "0 of 3 events match\n"
    assert result.err == "why: the events have no column prize; did you mean 'price'?\n"
    assert run("backtest", "prize < 20", "events.csv", "--quiet").err == ""


@pytest.mark.slow
def test_help_into_a_pipe_that_is_closed() -> None:
    process = subprocess.Popen(
        command("match", "--help"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in (0, 141)
    assert errors == b""


@pytest.mark.slow
def test_a_terminal_that_knows_no_check_marks(run: Run) -> None:
    done = subprocess.run(
        command("explain", "größe > 5", '{"größe": 6}'),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"\\u2713 gr\\xf6\\xdfe > 5")
