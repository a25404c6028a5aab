"""What is installed here becomes requirements: each package as it was installed."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

from jitcount._releases.requirements import files_of_jitcount, installed


def package(folder: Path, name: str, version: str, **origin: Any) -> None:
    about = folder / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "RECORD").write_text(f"{about.name}/METADATA,,\n")
    if origin:
        (about / "direct_url.json").write_text(json.dumps(origin))


def test_each_package_is_asked_for_as_it_was_installed(tmp_path: Path) -> None:
    source = (tmp_path / "my project").as_uri()
    (tmp_path / "my project").mkdir()
    site = tmp_path / "site"
    package(site, "Opt_Einsum", "3.4.0")
    package(site, "rough", "1.0rc1")
    package(site, "mine", "0.1", url=source, dir_info={"editable": True})
    package(site, "built", "0.1", url=source, dir_info={}, subdirectory="part")
    package(site, "conda", "2.0", url="file:///nowhere/feedstock", dir_info={})
    package(
        site, "forked", "5", url="https://host/fork", vcs_info={"vcs": "git", "commit_id": "abc"}
    )
    found = installed(metadata.distributions(path=[str(site)]))
    assert found.lines == (
        f"-e {source}",
        f"built @ {source}#subdirectory=part",
        "conda",
        "forked @ git+https://host/fork@abc",
        "opt-einsum",
        "rough>=1.0rc1",
    )
    assert found.versions["opt-einsum"] == "3.4.0"
    assert found.built_here == ("built",)


def test_what_has_one_release_with_jax_is_left_free_and_plugins_become_extras(
    tmp_path: Path,
) -> None:
    for name in ("jax", "jaxlib", "jax_cuda12_plugin", "jax_cuda12_pjrt"):
        package(tmp_path, name, "0.10.2")
    package(tmp_path, "libtpu", "0.0.42")
    package(tmp_path, "jaxtyping", "0.3.11")
    found = installed(metadata.distributions(path=[str(tmp_path)]))
    assert found.lines == ("jaxtyping",)
    assert found.extras == "[cuda12-local,tpu]"


def test_jitcount_itself_is_no_requirement_and_where_it_came_from_is_kept(tmp_path: Path) -> None:
    package(tmp_path, "jitcount", "0.2.0", url=tmp_path.as_uri(), dir_info={"editable": True})
    found = installed(metadata.distributions(path=[str(tmp_path)]))
    assert found.lines == ()
    assert found.jitcount == f"jitcount @ {tmp_path.as_uri()}"


def test_a_folder_that_is_no_package_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "broken-1.dist-info").mkdir()
    package(tmp_path, "sound", "1")
    assert installed(metadata.distributions(path=[str(tmp_path)])).lines == ("sound",)


def test_the_jitcount_that_runs_is_its_package_its_plugin_and_what_says_that_it_is_there() -> None:
    package, plugin, about = files_of_jitcount()
    assert (package / "__main__.py").exists()
    assert plugin.name == "jitcount_pytest.py"
    assert (about / "METADATA").exists()
