"""What is installed here, as requirements of an environment with another JAX.

Whatever a project's requirements are kept in (pyproject.toml, requirements.txt, a lock file, or
nothing at all), what its programs run with is what is installed. So that is what another release
is tried with: every package that is here, at its version where that release allows it.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

if TYPE_CHECKING:
    from collections.abc import Iterable

# What has one release with JAX; a plugin comes with the extra of JAX that is named beside it.
_OF_JAX = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d+-(plugin|pjrt)")
_EXTRAS = ((re.compile(r"libtpu"), "tpu"), (re.compile(r"jax-((?:cuda|rocm)\d+)-plugin"), "local"))

_IS_PRERELEASE = re.compile(r"\d(a|b|rc|\.dev)\d")


@dataclass(frozen=True, slots=True)
class Requirements:
    """What an environment with another JAX is to have."""

    lines: tuple[str, ...]
    """A requirement for each package that is installed here, without a version where it has one."""

    versions: dict[str, str]
    """By package, its version here: kept unless the other JAX, or its Python, does not allow it."""

    extras: str
    """The extras of JAX whose plugins are installed here: ``[cuda12-local,tpu]``."""

    jitcount: str
    """Where jitcount itself came from, if that was no index: for packages that require it."""

    built_here: tuple[str, ...]
    """Packages that are built from a folder, which may have changed since uv built them last."""

    state: tuple[str, ...]
    """What changes when one of these is installed anew."""


def installed(distributions: Iterable[metadata.Distribution] | None = None) -> Requirements:
    """Read what is installed here."""
    lines, versions, state = [], {}, []
    extras, jitcount, built_here = set(), "", []
    for distribution in distributions or metadata.distributions():
        name = _name(distribution)
        if name is None or name in versions:  # the first one in the path is the one that is used
            continue
        origin = origin_of(distribution)
        if name == "jitcount":
            jitcount = f"jitcount @ {origin.url}" if origin.url else ""
        elif _OF_JAX.fullmatch(name):
            extras |= _extra(name)
        else:
            versions[name] = distribution.version
            lines.append(_requirement(name, distribution.version, origin))
            if origin.is_folder and not origin.is_editable:
                built_here.append(name)
                state.append(f"{name} installed at {_installed_at(distribution)}")
    return Requirements(
        lines=tuple(sorted(lines)),
        versions=versions,
        extras=f"[{','.join(sorted(extras))}]" if extras else "",
        jitcount=jitcount,
        built_here=tuple(sorted(built_here)),
        state=tuple(sorted(state)),
    )


def canonical(name: str) -> str:
    """A package's name as indexes compare it.

    >>> canonical("Opt_Einsum")
    'opt-einsum'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _name(distribution: metadata.Distribution) -> str | None:
    try:
        name: str | None = distribution.metadata["Name"]
    except (OSError, KeyError):  # a folder whose files are gone
        return None
    return canonical(name) if name and distribution.version else None


def _extra(name: str) -> set[str]:
    for plugin, extra in _EXTRAS:
        if found := plugin.fullmatch(name):
            return {"-".join([*found.groups(), extra])}
    return set()


def _requirement(name: str, version: str, origin: Origin) -> str:
    if origin.is_editable:
        return f"-e {origin.url}"
    if origin.url:
        return f"{name} @ {origin.url}"
    # One that is not published as final must be asked for.
    return f"{name}>={version}" if _IS_PRERELEASE.search(version) else name


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a package was installed from; without a URL, from an index."""

    url: str = ""
    is_folder: bool = False
    is_editable: bool = False


def origin_of(distribution: metadata.Distribution) -> Origin:
    """Where a package was installed from, as its installer wrote it down."""
    try:
        about: dict[str, Any] = json.loads(distribution.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):
        about = {}
    url = about.get("url", "")
    if url.startswith("file:") and not _exists(url):  # such as conda writes
        return Origin()
    if vcs := about.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    if folder := about.get("subdirectory"):
        url = f"{url}#subdirectory={folder}"
    return Origin(url, "dir_info" in about, bool(about.get("dir_info", {}).get("editable")))


def _exists(url: str) -> bool:
    return Path(url2pathname(urlsplit(url).path)).exists()


def _installed_at(distribution: metadata.Distribution) -> float:
    about = _about(distribution)
    return about.stat().st_mtime if about else 0.0


def _about(distribution: metadata.Distribution) -> Path | None:
    """The folder that says what a distribution is."""
    for file in distribution.files or ():
        if file.name == "METADATA":
            return Path(str(distribution.locate_file(file))).parent
    return None


# --- jitcount itself ------------------------------------------------------------------------------


def files_of_jitcount() -> list[Path]:
    """What makes the jitcount that is running importable, and known to pytest, elsewhere."""
    import jitcount  # noqa: PLC0415 (whose folder is looked up)

    package = Path(jitcount.__file__).parent
    found = [package, package.parent / "jitcount_pytest.py"]
    with contextlib.suppress(metadata.PackageNotFoundError):
        about = _about(metadata.distribution("jitcount"))
        found += [about] if about else []
    return [path for path in found if path.exists()]
