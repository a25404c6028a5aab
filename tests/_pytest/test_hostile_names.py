"""What pytest shows of names that would move the cursor, and on terminals that have few letters."""

from pathlib import Path

from tests.helpers import Project, python


def test_names_forge_no_line_and_a_poor_terminal_gets_ascii(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(
        "test_it.py",
        r"""
def hostile(x):
    return 3 * x

hostile.__name__ = "a\x1b[2J\nFORGED\u202e[red]"
hostile = jax.jit(hostile)

@pytest.mark.no_compiles
def test_it():
    step(arr(3)); step(arr(4)); hostile(arr(3))
""",
    )
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "100", "NO_COLOR": "1"}
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--compiles=5")
    finished = python(*command, cwd=project.root, env=env)
    assert finished.returncode == 1
    shown = finished.stdout.splitlines()
    assert "test_it must compile nothing, and compiled 3" in shown
    assert "  because: axis 0 of x: 3 -> 4 [JC101]" in shown
    assert (
        "  -> pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding"
        in shown
    )
    assert any(line.startswith("a\\x1b[2J\\nFORGED\\u202e[red](float32[3]) at ") for line in shown)
    assert sum("a\\x1b[2J" in line for line in shown) >= 3
    assert all(line.isprintable() and not line.startswith("FORGED") for line in shown)
