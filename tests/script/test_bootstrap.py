"""How `script/bootstrap browser` gets a Chromium, with an apt that only notes what it is asked."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOLS = ("bash", "cat", "dirname", "env", "flock", "grep", "paste", "rm", "sort", "touch")


class Machine:
    """A copy of the script beside an environment that is up to date, with a PATH of its own."""

    def __init__(self, folder: Path, user: int) -> None:
        self.root = folder / "repository"
        self.programs = folder / "bin"
        self.calls = folder / "calls"
        self.programs.mkdir()
        for name in TOOLS:
            if found := shutil.which(name):
                (self.programs / name).symlink_to(found)
        self.program("id", f"echo {user}")
        (self.root / "script").mkdir(parents=True)
        shutil.copy(REPOSITORY / "script" / "bootstrap", self.root / "script")
        pyproject = b"[project.optional-dependencies]\nspark = []\n"
        (self.root / "pyproject.toml").write_bytes(pyproject)
        python = self.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        text = pyproject + platform.python_version().encode()
        stamp = [hashlib.sha256(text).hexdigest(), "dev", str(self.root.resolve())]
        (self.root / ".venv" / "bootstrap.stamp").write_text("\n".join(stamp) + "\n")

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def bootstrap(self) -> str:
        done = subprocess.run(
            [self.root / "script" / "bootstrap", "browser"],
            env={"PATH": str(self.programs), "HOME": str(self.root)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "up to date (dev)" in done.stdout
        return done.stdout

    def apt_calls(self) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.partition("Timeout=300 ")[2] for line in lines]


@pytest.mark.parametrize("name", ["chromium", "chromium-browser"])
def test_a_chromium_on_the_path_is_enough(tmp_path: Path, name: str) -> None:
    machine = Machine(tmp_path, user=0)
    machine.program("apt-get", f'echo "$@" >>{machine.calls}')
    machine.program(name, "true")
    assert "Chromium" not in machine.bootstrap()
    assert machine.apt_calls() == []


def test_root_gets_it_from_apt(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=0)
    installed = machine.programs / "chromium"
    machine.program(
        "apt-get",
        f'echo "$@" >>{machine.calls}\n'
        f'if [[ "$*" == *update* ]]; then touch {tmp_path}/lists; exit; fi\n'
        f"[[ -e {tmp_path}/lists ]] && cat {machine.programs}/id >{installed}"
        f" && {shutil.which('chmod')} +x {installed}",
    )
    assert "Chromium" not in machine.bootstrap()
    install = "install -y --no-install-recommends chromium"
    assert machine.apt_calls() == [install, "update", install]


def test_an_apt_that_fails_is_asked_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=0)
    machine.program("apt-get", f'echo "$@" >>{machine.calls}; exit 100')
    for _ in range(2):
        assert "apt install chromium" in machine.bootstrap()
    assert len(machine.apt_calls()) == 2  # to install, and to fetch the lists


def test_others_are_told_what_to_install(tmp_path: Path) -> None:
    machine = Machine(tmp_path, user=1000)
    machine.program("apt-get", f'echo "$@" >>{machine.calls}')
    assert "the tests of the page are skipped" in machine.bootstrap()
    assert machine.apt_calls() == []
