"""A uv without network: its environments have the packages of this one, and so the same JAX.

``FAKE_UV`` in the environment says what it is like: the ``releases`` of JAX that there are, each
with its Pythons; the ``pythons`` that can be had; what is ``moved`` to another version; a
``conflict``, a package that is ``unknown``. Each call is a line of the file ``FAKE_UV_CALLS``.
"""

import json
import os
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
LIKE: dict[str, Any] = {
    "releases": {release: [HERE] for release in ("0.1.2", "0.9.2", "0.12.0.1", "7.8.9")},
    "pythons": [],
    "moved": {},
    "conflict": "",
    "unknown": "",
    "has_python": True,
} | json.loads(os.environ.get("FAKE_UV", "{}"))

# A console script, as an installer writes it.
SCRIPT = """#!{python}
import runpy
runpy.run_module("{name}", run_name="__main__", alter_sys=True)
"""


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def fail(text: str) -> None:
    sys.exit(f"warning: something else\nerror: {text}\n\nhint: try something else")


def resolve(jax: str, version: str) -> None:
    release = jax.partition("==")[2].strip()
    if release not in LIKE["releases"]:
        fail(f"No solution found\n  cause: there is no version of jax=={release}")
    if version not in LIKE["releases"][release]:
        fail(f"No solution found\n  cause: jax=={release} depends on another Python.")


def lock(wanted: Path, override: Path, locked: Path) -> None:
    if (unknown := LIKE["unknown"]) and unknown in wanted.read_text().split():
        fail(f"No solution found\n  cause: {unknown} was not found in the package registry")
    if LIKE["conflict"] and "jax" not in override.read_text():
        fail(f"No solution found\n  cause: {LIKE['conflict']}")
    pins = dict(line.split("==") for line in locked.read_text().split()) | LIKE["moved"]
    locked.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))


def make(folder: Path) -> None:
    if not LIKE["has_python"]:
        fail("No interpreter found")
    venv.create(folder, symlinks=True)
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    here = [f"import site; site.addsitedir({folder!r})" for folder in folders]
    (folder / "lib" / f"python{HERE}" / "site-packages" / "here.pth").write_text("\n".join(here))
    for name in "pytest", "jitcount":
        script = folder / "bin" / name
        script.write_text(SCRIPT.format(python=folder / "bin" / "python", name=name))
        script.chmod(0o755)


def listed(version: str, path: str | None, implementation: str, variant: str) -> dict[str, Any]:
    major, minor = map(int, version.split(".")[:2])
    parts = {"major": major, "minor": minor}
    about = {"version": version, "version_parts": parts, "path": path}
    return {**about, "implementation": implementation, "variant": variant}


if calls := os.environ.get("FAKE_UV_CALLS"):
    with Path(calls).open("a") as file:
        file.write(f"{' '.join(sys.argv[1:])}\n")
match sys.argv[1:]:
    case ["python", "list", *_]:
        json.dump([listed(*each) for each in LIKE["pythons"]], sys.stdout)
    case ["pip", "compile", "-", *_]:
        resolve(sys.stdin.read(), option("--python-version"))
    case ["pip", "compile", *_]:
        lock(Path(sys.argv[3]), Path(option("--override")), Path(option("--output-file")))
    case ["venv", *_]:
        make(Path(next(word for word in reversed(sys.argv) if not word.startswith("-"))))
    case ["version", *_] | ["self", "version", *_]:  # which nox asks for
        json.dump({"version": "0.9.0"}, sys.stdout)
