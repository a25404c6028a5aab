"""``--jax RELEASE`` of ``jitcount run`` and ``jitcount suite``: the same elsewhere, and compared.

The environments are made first, so that whatever cannot be had is said before anything runs. Then
the command runs here, as it would have without ``--jax``, and under each release with a ledger of
its own. This process itself runs nothing of the user's, and imports no JAX.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._cli.streams import UsageError, show
from jitcount._ledger import files
from jitcount._ledger.files import LedgerError, require_replaceable
from jitcount._ledger.ledger import read_ledger
from jitcount._releases.environments import Maker, NoEnvironmentError
from jitcount._releases.runs import Runs, output_of
from jitcount._show.progress import under_way
from jitcount._show.releases_table import UnderRelease, heading_of, releases_parts
from jitcount._show.stderr import StderrWriter
from jitcount._text import escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jitcount._cli import run, suite
    from jitcount._ledger.ledger import Ledger
    from jitcount._releases.environments import ReleaseEnvironment
    from jitcount._releases.runs import Ended
    from jitcount._show.parts import Part

_BAD_USAGE = 2

# How a run is told that it is one of several.
_HERE, _ELSEWHERE = "here", "elsewhere"


def run_in_releases(options: run.Options) -> int:
    """Run a program here and under each release, and report on stderr.

    Returns:
        The program's own exit code; if that is 0, 1 for a difference.
    """
    from jitcount._ledger import releases

    stderr = StderrWriter()
    with _together(options.releases, options.ledger) as both:
        here = both.here(lambda ledger: _words(options, ledger, _HERE))
        if here.ledger is None:
            stderr.write(f"jitcount: the run here {here.ended} and left no ledger to compare")
            return _shell_code(here.ended) or 1
        elsewhere = both.elsewhere(lambda ledger: _words(options, ledger, _ELSEWHERE))
    ledgers = {here.name: here.ledger} | {
        each.name: each.ledger for each in elsewhere if each.ledger is not None
    }
    changed = releases.changes(here.name, ledgers)
    under = []
    for each in elsewhere:
        problems = each.problems(here.ended.code)
        # Of a program that failed, what it did not come to is no change of its own.
        changes = changed.get(each.name, ()) if each.is_whole or not problems else ()
        under.append(UnderRelease(each.name, each.about, problems, changes))
    parts = releases_parts(here.name, under, releases.functions(here.name, ledgers))
    stderr.write(f"\n{stderr.rendered(parts)}")
    return _shell_code(here.ended) or int(any(each.differences for each in under))


def suite_in_releases(options: suite.Options) -> int:
    """Run the suite's cases here and under each release, and compare on stdout.

    Returns:
        1 for a difference, or for a case that does not hold; 2 for cases that cannot be had.
    """
    from jitcount._ledger.compare import compare_ledgers
    from jitcount._show.comparison_table import comparison_tables
    from jitcount._show.terminal import has_colour, render

    def words(ledger: str) -> list[str]:
        processes = ["--processes", str(options.processes)]
        return ["suite", *processes, *replace(options, ledger=Path(ledger)).words()]

    with _together(options.releases, options.ledger) as both:
        here = both.here(words)
        if here.ended.code == _BAD_USAGE and here.ledger is None:
            return _BAD_USAGE  # it has said why
        if here.ledger is None:
            raise UsageError(f"the suite here {here.ended} and left no ledger to compare")
        elsewhere = both.elsewhere(words)
    parts: list[Part] = []
    ledgers = {here.name: here.ledger}
    missing = 0
    for each in elsewhere:
        problems = each.problems()
        missing += bool(problems)
        if problems or each.about:
            parts += heading_of(UnderRelease(each.name, each.about, problems))
        if each.ledger is not None and not problems:
            ledgers[each.name] = each.ledger
    compared = compare_ledgers(ledgers)
    parts += comparison_tables(compared)
    show(f"\n{render(parts, colour=has_colour())}")
    return int(bool(here.ended.code or missing or compared.differences))


# --- Here and elsewhere ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, here or under a release, and what it left."""

    name: str
    ended: Ended
    ledger: Ledger | None
    made: ReleaseEnvironment | None = None

    @property
    def about(self) -> list[str]:
        """What is other there than here, besides JAX."""
        if self.made is None:
            return []
        lines = [f"besides JAX: {', '.join(self.made.others)}"] if self.made.others else []
        if self.made.lacking:
            lines.append(f"without {', '.join(self.made.lacking)}, which uv does not find")
        if self.made.forced:
            lines.insert(0, f"what is installed here does not allow it: {self.made.forced}")
        return lines

    @property
    def is_whole(self) -> bool:
        """Whether the program ended well, and the code is jitcount's own: of ``--max``, say."""
        return self.ended.said.startswith("jitcount: ")

    def problems(self, code_here: int | None = None) -> list[str]:
        """What went wrong there, and not here; without a code, whatever the run ended with."""
        if self.made is None:
            return []
        if self.ledger and not self.ledger.environment.jax.startswith(self.made.release):
            found = self.ledger.environment.jax
            return [
                f"it ran with jax {found}: something else comes first in its path (PYTHONPATH?)"
            ]
        is_good = code_here is None or self.ended.code == code_here
        if is_good and self.ledger is not None and not self.ended.is_late:
            return []
        left = "" if self.ledger else ", and left no ledger"
        seen = f"what it printed is in {output_of(self.made)}"
        return [f"it {self.ended}{left}", seen]


class _Together:
    """The environments, and the runs in them; each leaves a ledger."""

    def __init__(
        self, made: Sequence[ReleaseEnvironment], folder: Path, asked_for: Path | None
    ) -> None:
        self._runs = Runs()
        self._made = made
        self._folder = folder
        self._asked_for = asked_for

    def here(self, words: Callable[[str], Sequence[str]]) -> _Run:
        """Run here; the words are those of a command that writes this ledger."""
        path = self._folder / "here.json"
        ended = self._runs.here(words(str(path)))
        ledger = self._ledger(path, self._asked_for)
        return _Run(f"jax {ledger.environment.jax} (here)" if ledger else "here", ended, ledger)

    def elsewhere(self, words: Callable[[str], Sequence[str]]) -> list[_Run]:
        """Run under one release after the other."""
        found = []
        with under_way(len(self._made)) as begin:
            for made in self._made:
                begin(f"running under jax {made.release}")
                path = self._folder / f"{made.release}.json"
                ended = self._runs.under(made, words(str(path)))
                kept = self._asked_for and _beside(self._asked_for, made.release)
                found.append(_Run(f"jax {made.release}", ended, self._ledger(path, kept), made))
        return found

    def _ledger(self, path: Path, asked_for: Path | None) -> Ledger | None:
        """Read what a run has left, and keep it where the user wants it."""
        try:
            ledger = read_ledger(path)
        except LedgerError:
            return None
        if asked_for:
            try:
                files.write_whole(asked_for, path.read_bytes())
            except LedgerError as error:
                raise UsageError(str(error)) from None
        return ledger


@contextlib.contextmanager
def _together(releases: Sequence[str], ledger: Path | None) -> Iterator[_Together]:
    """Make the environments, and a folder for the ledgers."""
    try:
        for path in [ledger, *(_beside(ledger, each) for each in releases)] if ledger else ():
            require_replaceable(path, files.LEDGER)
        made = _environments(releases)
    except (LedgerError, NoEnvironmentError) as error:
        raise UsageError(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="jitcount-") as folder:
        yield _Together(made, Path(folder), ledger)


def _environments(releases: Sequence[str]) -> list[ReleaseEnvironment]:
    maker = Maker()
    new = [release for release in releases if not maker.is_made(release)]
    made = []
    with under_way(len(new)) as begin:
        for release in releases:
            try:
                if release in new:
                    begin(f"making an environment with jax {release}")
                made.append(maker.environment(release))
            except NoEnvironmentError as error:
                raise NoEnvironmentError(f"no environment with jax {release}: {error}") from None
    for each in made:
        if each.release in new:
            _say(f"jitcount: jax {each.release} is in {each.folder}, for the next time too")
    return made


def _beside(ledger: Path, release: str) -> Path:
    """Where a release's ledger is: ``run-jax-0.9.2.json`` beside ``run.json``."""
    return ledger.with_name(f"{ledger.stem}-jax-{release}{ledger.suffix}")


def _words(options: run.Options, ledger: str, where: str) -> list[str]:
    """The options on the command line of a run; those that only show something are for here."""
    words = ["run", "--compared", where, "--ledger", ledger]
    words += [word for target in options.targets for word in ("--target", target)]
    words += ["--as-if", options.as_if] if options.as_if else []
    words += ["--max", str(options.max)] if options.max is not None else []
    flags = {
        "--fail-on-refusal": options.fail_on_refusal,
        "--check": options.check,
        "--redact": options.redact,
    }
    if where == _HERE:
        flags |= {
            "--profile": options.profile,
            "--live": options.live,
            "--all": options.all,
            "--what-if": options.what_if,
        }
        words += ["--profile-trace", str(options.profile_trace)] if options.profile_trace else []
    words += [flag for flag, is_set in flags.items() if is_set]
    return [*words, *(["-m"] if options.module else []), "--", *options.program]


def _shell_code(ended: Ended) -> int:
    """An exit code as a shell has it: that of a signal is 128 and its number."""
    return ended.code if ended.code >= 0 else 128 - ended.code


def _say(text: str) -> None:
    StderrWriter().write(escape_control_chars(text))
