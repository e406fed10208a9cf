"""Versions: run the fast tests on every Python from 3.11, and on every major version of PostgreSQL, that is installed.

Each Python has an environment of its own in build/versions. `python -m tests.versions TESTS...`; missing versions are
named and skipped.
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.servers import installed_versions

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / "build" / "versions"
WANTED = ("3.11", "3.12", "3.13", "3.14")
_USABLE = "import sys, venv, ensurepip, sqlite3; print('%d.%d' % sys.version_info[:2])"


def find_python(version: str) -> str | None:
    """Find an interpreter: on the PATH, or among those of pyenv. A name on the PATH may be an empty launcher."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (f"python{version}", *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True)):
        try:
            tried = subprocess.run([candidate, "-c", _USABLE], capture_output=True, text=True)
        except OSError:
            continue
        if tried.returncode == 0 and tried.stdout.strip() == version:
            return candidate
    return None


def environment(version: str, python: str) -> str:
    """Make an environment with our pins; gives its interpreter. One that is up to date is kept."""
    folder = ENVIRONMENTS / version
    inside = str(folder / "bin" / "python")
    pins = (ROOT / "pyproject.toml").read_bytes() + (ROOT / "constraints.txt").read_bytes()
    ready, digest = folder / "ready", hashlib.sha256(pins).hexdigest()
    if not ready.exists() or ready.read_text() != digest:
        install = [inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-c", "constraints.txt"]
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*install, "hatchling", "editables"], cwd=ROOT, check=True)
        subprocess.run([*install, "--no-build-isolation", "-e", ".[dev]"], cwd=ROOT, check=True)
        ready.write_text(digest)
    return inside


def main(tests: list[str]) -> int:
    """Try each Python with the newest PostgreSQL, and the oldest Python with each other PostgreSQL."""
    pythons = {version: found for version in WANTED if (found := find_python(version))}
    if not pythons:
        sys.exit(f"no Python of {', '.join(WANTED)} was found; install one, or set PYENV_ROOT")
    for version in WANTED:
        if version not in pythons:
            print(f"skipped: Python {version} is not installed", flush=True)
    newest, *others = sorted(installed_versions(), key=int, reverse=True)
    oldest = next(iter(pythons))
    failed = 0
    for version, server in [*((version, newest) for version in pythons), *((oldest, server) for server in others)]:
        python = environment(version, pythons[version])
        full = subprocess.run(
            [python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True
        )
        begun = time.monotonic()
        env = {**os.environ, "WATCHBILL_TEST_POSTGRES_VERSION": server}
        done = subprocess.run([python, "-m", "pytest", "-q", "-n", "2", *tests], cwd=ROOT, env=env)
        failed += done.returncode != 0
        said = "passed" if done.returncode == 0 else "failed"
        took = time.monotonic() - begun
        print(f"versions: Python {full.stdout.strip()} with PostgreSQL {server}: {said}, {took:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
