"""Environments with another JAX: made by uv, kept in the user's cache, used again the next time.

uv decides what fits together. It is handed all that is installed here as an earlier answer, whose
versions it keeps where it can, so that the other JAX is what differs, and as little else as
possible. Which Python a release needs, uv says too: this one is tried first, then the others that
are here, then those that uv can fetch.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitcount._ledger.files import LedgerError, one_at_a_time
from jitcount._releases.requirements import canonical, files_of_jitcount, installed
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_OLDEST_PYTHON = (3, 11)
"""The oldest that jitcount runs on."""

# What uv says of a package that no index has.
_NOT_FOUND = re.compile(r"(\S+) was not found in the package registry")

_IS_FINAL = re.compile(r"[\d.]+").fullmatch


class NoEnvironmentError(Exception):
    """An environment cannot be made; the text says why, in a line."""


@dataclass(frozen=True, slots=True)
class ReleaseEnvironment:
    """An environment with another JAX."""

    release: str
    folder: str
    """Where it is, and what is kept beside it."""

    python: str
    """Its interpreter."""

    command: str
    """The file that is the ``jitcount`` command there."""

    others: tuple[str, ...]
    """What is another version than here, besides JAX: ``"flax 0.12.8 → 0.12.6"``."""

    forced: str = ""
    """What does not allow this release, which is installed all the same; empty if all do."""

    lacking: tuple[str, ...] = ()
    """Packages that are here, and that uv does not find."""

    def variables(self) -> dict[str, str]:
        """The variables of an environment that is activated."""
        scripts = str(Path(self.python).parent)
        path = os.pathsep.join(filter(None, [scripts, os.environ.get("PATH")]))
        return {"VIRTUAL_ENV": str(Path(self.folder, "venv")), "PATH": path}


class Maker:
    """Makes environments, or finds those that it made before."""

    def __init__(self) -> None:
        self._requirements = installed()
        self._kept = kept_in()
        self._uv = ""

    def folder(self, release: str) -> Path:
        """Where the environment of a release is: one for each environment that asks."""
        here = hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]
        return self._kept / f"jax-{release}-{here}"

    def is_made(self, release: str) -> bool:
        """Whether it need not be made: nothing has been installed here since."""
        return self._found(release) is not None

    def environment(self, release: str) -> ReleaseEnvironment:
        """Find or make the environment of a release.

        Raises:
            NoEnvironmentError: there is no uv, no such release, no Python for it, or no network.
        """
        folder = self.folder(release)
        try:
            _make_private(self._kept)
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                with one_at_a_time(folder / "environment.json"):
                    return self._found(release) or self._made(release, folder)
            finally:
                with contextlib.suppress(OSError):  # nothing is in it if there is no such release
                    folder.rmdir()
        except LedgerError as error:
            raise NoEnvironmentError(str(error)) from None
        except OSError as error:
            why = error.strerror or one_line(error)
            raise NoEnvironmentError(f"{folder}: cannot be written: {why}") from None

    def _asked(self, release: str) -> dict[str, Any]:
        """What an environment is made of; another one is made when any of it is another."""
        asked = {
            "release": release,
            "here": sys.prefix,
            "python": _own_version(),
            "files of jitcount": [str(path) for path in files_of_jitcount()],
            **asdict(self._requirements),
        }
        plain: dict[str, Any] = json.loads(json.dumps(asked))  # as it is read again
        return plain

    def _found(self, release: str) -> ReleaseEnvironment | None:
        try:
            kept = json.loads((self.folder(release) / "environment.json").read_text("utf-8"))
            if kept["asked"] != self._asked(release) or not Path(kept["made"]["python"]).exists():
                return None
            made = kept["made"]
            several = {name: tuple(made[name]) for name in ("others", "lacking")}
            return ReleaseEnvironment(**made | several)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _made(self, release: str, folder: Path) -> ReleaseEnvironment:
        uv = self._uv = self._uv or find_uv()
        stamp, venv = folder / "environment.json", folder / "venv"
        stamp.unlink(missing_ok=True)
        for old in venv, folder / "jitcount":
            shutil.rmtree(old, ignore_errors=True)
        jax = f"jax{self._requirements.extras}=={release}"
        python = _python_for(uv, jax)
        _run(uv, "venv", "--python", python, str(venv))
        executable = _executable(venv)
        forced, lacking = self._resolve(jax, folder, executable)
        again = [f"--reinstall-package={name}" for name in self._requirements.built_here]
        locked = str(folder / "locked.txt")
        _run(uv, "pip", "install", "--no-deps", "--python", executable, *again, "-r", locked)
        version, packages = _ask(executable)
        _link_jitcount(folder / "jitcount", Path(packages))
        others = tuple(self._others(folder / "locked.txt", version))
        command = str(folder / "jitcount" / "jitcount" / "__main__.py")
        made = ReleaseEnvironment(
            release, str(folder), executable, command, others, forced, lacking
        )
        kept = {"asked": self._asked(release), "made": asdict(made)}
        stamp.write_text(json.dumps(kept, indent=1), "utf-8")
        return made

    def _resolve(self, jax: str, folder: Path, executable: str) -> tuple[str, tuple[str, ...]]:
        """Write down what is to be installed.

        Returns:
            What does not allow this release, and the packages that uv does not find.
        """
        wanted, override, locked = (
            folder / name for name in ("wanted.txt", "override.txt", "locked.txt")
        )
        lines, lacking = [*self._requirements.lines], list[str]()
        overrides, forced = [""], ""
        # uv keeps the versions of an earlier answer where it can.
        before = [f"{name}=={_public(v)}" for name, v in self._requirements.versions.items()]
        while True:
            wanted.write_text("\n".join([*lines, jax, ""]), "utf-8")
            locked.write_text("\n".join([*before, ""]), "utf-8")
            override.write_text("\n".join([self._requirements.jitcount, *overrides]), "utf-8")
            try:
                _run(
                    self._uv, "pip", "compile", str(wanted), "--output-file", str(locked),
                    "--override", str(override), "--python", executable,
                    "--no-header", "--no-annotate", "--quiet",
                )  # fmt: skip
            except NoEnvironmentError as error:
                unknown = {line for line in lines if _name(line) in _NOT_FOUND.findall(str(error))}
                if unknown:
                    lines = [line for line in lines if line not in unknown]
                    lacking += map(_name, unknown)
                elif "No solution" in str(error) and not forced:
                    forced, overrides = str(error), [jax, ""]
                else:
                    raise
            else:
                return forced, tuple(sorted(lacking))

    def _others(self, locked: Path, python: str) -> Iterator[str]:
        """What is another version than here, besides JAX."""
        if python != _own_version():
            yield f"Python {_own_version()} → {python}"
        for line in locked.read_text("utf-8").splitlines():
            name, _, version = line.partition("==")
            version = version.partition(" ")[0]
            was = self._requirements.versions.get(canonical(name.strip()))
            if version and was and _public(was) != _public(version):
                yield f"{name} {was} → {version}"


def _name(line: str) -> str:
    """The package of a requirement without a place."""
    return line.partition(">=")[0]


def _own_version() -> str:
    return sys.version.partition(" ")[0]


def _public(version: str) -> str:
    """A version without the part that only one index knows: ``2.5.1`` of ``2.5.1+cpu``."""
    return version.partition("+")[0]


# --- Where they are -------------------------------------------------------------------------------


def kept_in() -> Path:
    """The folder of all environments, in the user's cache.

    Raises:
        NoEnvironmentError: the user has no home.
    """
    asked = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if asked and Path(asked).is_absolute():
        return Path(asked) / "jitcount"
    try:
        return Path.home() / ".cache" / "jitcount"
    except RuntimeError:
        raise NoEnvironmentError(
            "there is no home directory to keep environments in: set XDG_CACHE_HOME"
        ) from None


def _make_private(folder: Path) -> None:
    """Make a folder that its owner alone can use; code is run from there."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if sys.platform == "win32":
        return
    about = folder.stat()
    if about.st_uid != os.getuid():
        raise NoEnvironmentError(f"{folder}: belongs to another user; set XDG_CACHE_HOME")
    if stat.S_IMODE(about.st_mode) & 0o022:
        raise NoEnvironmentError(f"{folder}: others can write there: chmod 700 {folder}")


# --- uv -------------------------------------------------------------------------------------------


def find_uv() -> str:
    """Find uv: in the path, or beside this Python.

    Raises:
        NoEnvironmentError: it is in neither.
    """
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        raise NoEnvironmentError(
            "uv, which makes the environments, is not installed: python -m pip install uv"
        )
    return found


def _run(uv: str, *arguments: str, stdin: str = "") -> str:
    """Run uv, and return what it printed.

    Raises:
        NoEnvironmentError: it failed; the text is what it said.
    """
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(  # noqa: S603
        [uv, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=kept | {"NO_COLOR": "1"},
        check=False,
    )
    if done.returncode:
        raise NoEnvironmentError(_said(done.stderr) or f"uv ended with {done.returncode}")
    return done.stdout


def _said(stderr: str) -> str:
    """What uv said, in a line, from its error on: without warnings and drawings."""
    lines = [line.strip(" \t×╰─▶├│") for line in stderr.splitlines()]
    begins = [number for number, line in enumerate(lines) if line.startswith(("error", "No sol"))]
    text = one_line(" ".join(lines[begins[0] :] if begins else lines))
    text = text.partition(" hint: ")[0].removeprefix("error: ")
    return f"uv: {text.replace(' cause: ', ': ')}"


def _python_for(uv: str, jax: str) -> str:
    """The Python that an environment gets: the nearest to this one that has the release.

    Raises:
        NoEnvironmentError: there is none, or no such release.
    """
    problem = ""
    for version, place in _pythons(uv):
        asked = ("--python", sys.executable, "--python-version", version)
        try:
            _run(uv, "pip", "compile", "-", *asked, "--quiet", "--no-header", stdin=f"{jax}\n")
        except NoEnvironmentError as error:
            problem = problem or str(error)
            if "Python" not in str(error):  # another one would not help
                break
        else:
            return place
    if "Python" in problem:
        problem = f"{problem} No other Python that is here, or that uv may fetch, has it."
    raise NoEnvironmentError(problem)


def _pythons(uv: str) -> Iterator[tuple[str, str]]:
    """Versions of Python, each with how uv knows it: this one, those here, those it can fetch."""
    mine = sys.version_info[:2]
    yield f"{mine[0]}.{mine[1]}", sys.executable
    found: dict[tuple[int, int], tuple[bool, str]] = {}
    for each in json.loads(_run(uv, "python", "list", "--output-format", "json")):
        is_usual = each.get("implementation") == "cpython" and _IS_FINAL(each["version"])
        major, minor = map(int, each["version"].split(".")[:2]) if is_usual else mine
        version = major, minor
        is_other = version != mine and version >= _OLDEST_PYTHON
        if is_other and each.get("variant", "default") == "default":
            place = each["path"] or f"{version[0]}.{version[1]}"
            candidate = (not each["path"], place)
            found[version] = min(found.get(version, candidate), candidate)
    nearest = sorted(found, key=lambda each: (found[each][0], abs(each[1] - mine[1]), -each[1]))
    for version in nearest:
        yield f"{version[0]}.{version[1]}", found[version][1]


# --- What is inside -------------------------------------------------------------------------------


def _executable(venv: Path) -> str:
    names = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return str(venv.joinpath(*names))


def _ask(executable: str) -> tuple[str, str]:
    """The version of a Python, and its folder of packages."""
    asks = "import sys, sysconfig; print(sys.version.split()[0], sysconfig.get_path('purelib'))"
    done = subprocess.run(  # noqa: S603
        [executable, "-c", asks], capture_output=True, encoding="utf-8", check=False
    )
    version, _, folder = done.stdout.strip().partition(" ")
    if done.returncode or not folder:
        raise NoEnvironmentError(f"{executable} does not run: {one_line(done.stderr)}")
    return version, folder


def _link_jitcount(folder: Path, packages: Path) -> None:
    """Let an environment import the jitcount that is running, whatever becomes of its files.

    The links stand in a folder of their own: whoever removes a package follows no link from there.
    """
    folder.mkdir(mode=0o700)
    for path in files_of_jitcount():
        link = folder / path.name
        try:
            link.symlink_to(path, target_is_directory=path.is_dir())
        except OSError:  # on Windows, not everybody may
            shutil.copytree(path, link) if path.is_dir() else shutil.copy(path, link)
    (packages / "jitcount_that_runs.pth").write_text(f"{folder}\n", "utf-8")
