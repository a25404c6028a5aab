"""What the command can be asked is said at once, without JAX, and whole."""

import pytest

import jitcount as package
from jitcount._cli.main import main
from tests.expected import expect_file
from tests.helpers import jitcount, python

TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1"}
COMMANDS = ("run", "suite", "compare", "plan", "targets", "init")

# Prints at the end how it ended, and which of these were imported.
LOADED = """
import sys
from jitcount._cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(code, *(name for name in ("jax", "numpy") if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        *((f"{command} --help", 0) for command in COMMANDS),
        ("", 2),
        ("nothing", 2),
        ("run", 2),
        ("run nowhere.py", 2),
        ("run --max -1 x.py", 2),
        ("suite --nothing", 2),
        ("compare one.json", 2),
        ("targets", 0),
    ],
)
def test_what_needs_no_program_imports_no_jax(words: str, code: int) -> None:
    done = python("-c", LOADED, *words.split())
    assert done.stdout.splitlines()[-1] == str(code)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sute", "jitcount: error: no command is called 'sute'; did you mean suite?"),
        ("Compare a b", "jitcount: error: no command is called 'Compare'; did you mean compare?"),
        (
            "zzz",
            (
                "jitcount: error: no command is called 'zzz'; "
                "there are run, suite, compare, plan, targets, init"
            ),
        ),
        ("--verison", "jitcount: error: no option is called --verison; did you mean --version?"),
        ("", "jitcount: error: which COMMAND? There are run, suite, compare, plan, targets, init"),
        (
            "run --lvie x.py",
            "jitcount run: error: no option is called --lvie; did you mean --live?",
        ),
        (
            "suite --leger=x sum-10",
            "jitcount suite: error: no option is called --leger; did you mean --ledger?",
        ),
        (
            "suite --zzz",
            "jitcount suite: error: no option is called --zzz; jitcount suite --help lists them",
        ),
        ("targets tpu", "jitcount targets: error: one argument too many: tpu"),
        (
            "run --live=1 x.py",
            "jitcount run: error: no option is called --live=1; jitcount run --help lists them",
        ),
        (
            "run --what-if=x x.py",
            "jitcount run: error: no option is called --what-if=x; jitcount run --help lists them",
        ),
        (
            "run --max -1 x.py",
            "jitcount run: error: argument --max: '-1' is not a count of 0 or more",
        ),
        (
            "run --max ² x.py",
            "jitcount run: error: argument --max: '²' is not a count of 0 or more",
        ),
        (
            "run --max 1e9 x.py",
            "jitcount run: error: argument --max: '1e9' is not a count of 0 or more",
        ),
    ],
)
def test_what_is_mistyped_is_one_line_with_what_may_have_been_meant(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words.split())
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == message


def test_the_help_is_this_page() -> None:
    page = ""
    for words in "--help", *(f"{command} --help" for command in COMMANDS):
        page += f"$ jitcount {words}\n{jitcount(*words.split(), env=TERMINAL).stdout}\n"
    expect_file(page, "help.txt")


def test_the_version_is_one_line() -> None:
    done = jitcount("--version")
    assert (done.returncode, done.stdout) == (0, f"jitcount {package.__version__}\n")
