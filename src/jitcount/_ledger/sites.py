"""Where two runs compiled, side by side: by function, file and line, also where lines have moved.

A site is a line that compiles: one function's programs there, or the operations outside of jit. A
line that was put in above moves all that is below it, and changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from jitcount._observe.call_site import CallSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jitcount._explain.compile import Compile

_LINE = re.compile(r"\d+(?: in .+)?$")


@dataclass(slots=True)
class Site:
    """A line of the user's with what it compiled, or took from the persistent cache."""

    function: str
    """The compiled function; empty for operations outside of jit."""

    call_site: CallSite
    compiles: list[Compile] = field(default_factory=list)

    @property
    def content(self) -> tuple[object, ...]:
        """What was compiled there, whatever the line: equal for sites where nothing changed."""
        programs = sorted((each.call, each.operations) for each in self.compiles)
        return (self.call_site.function, *programs)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that were compiled there, in order."""
        return (self.call_site.function, *(each.function for each in self.compiles))


Pair = tuple[Site, Site]


def sites_of(compiles: Iterable[Compile]) -> list[Site]:
    """The sites of some compiles, in the order of their first compile."""
    found: dict[tuple[str, str], Site] = {}
    for compiled in compiles:
        function = "" if compiled.eager else compiled.function
        site = Site(function, _without_comprehensions(compiled.call_site))
        found.setdefault((function, str(site.call_site)), site).compiles.append(compiled)
    return list(found.values())


_COMPREHENSION = re.compile(r"\.<(list|set|dict)comp>")
_OF_A_MODULE = re.compile(r"<(list|set|dict)comp>$")


def _without_comprehensions(site: CallSite) -> CallSite:
    """A line as Python 3.12 names it, where a comprehension is no function of its own.

    >>> from jitcount._observe.call_site import CallSite
    >>> str(_without_comprehensions(CallSite("train.py:42 in load.<listcomp>")))
    'train.py:42 in load'
    """
    if "comp>" not in site:
        return site
    text, function = (
        _OF_A_MODULE.sub("<module>", _COMPREHENSION.sub("", each)) for each in (site, site.function)
    )
    return CallSite(text, site.file, site.line, function)


def file_of(site: CallSite) -> str:
    """The file of a line as it is shown: the same wherever the project lies.

    >>> from jitcount._observe.call_site import CallSite
    >>> file_of(CallSite("nets/train.py:42 in main")), file_of(CallSite("In [3], line 1"))
    ('nets/train.py', 'In [3], line')
    """
    return _LINE.sub("", site).rstrip(" :")


def _name_of_file(site: CallSite) -> str:
    return file_of(site).replace("\\", "/").rpartition("/")[2]


def side_by_side(
    before: Sequence[Site], after: Sequence[Site]
) -> tuple[list[Pair], list[Site], list[Site]]:
    """The sites that both have, those that only the first has, and those that only the second has.

    A site's file has the same path, or else the same name: the runs may have begun elsewhere.
    """
    pairs: list[Pair] = []
    for key in (file_of, _name_of_file):
        found = list(_in_each_file(before, after, key))
        pairs += found
        done = {id(site) for pair in found for site in pair}
        before = [site for site in before if id(site) not in done]
        after = [site for site in after if id(site) not in done]
    return pairs, list(before), list(after)


def _in_each_file(
    before: Sequence[Site], after: Sequence[Site], file: Callable[[CallSite], str]
) -> Iterator[Pair]:
    groups: dict[tuple[str, str], tuple[list[Site], list[Site]]] = defaultdict(lambda: ([], []))
    for number, sites in enumerate((before, after)):
        for site in sorted(sites, key=lambda each: each.call_site.line):
            groups[site.function, file(site.call_site)][number].append(site)
    for one, other in groups.values():
        yield from _aligned(one, other)


def _aligned(before: list[Site], after: list[Site]) -> Iterator[Pair]:
    """Sites of one function in one file: those that did not change first, then by line, in order.

    Each list is in the order of lines; what is paired is taken out.
    """
    if [site.call_site.line for site in before] != [site.call_site.line for site in after]:
        yield from _taken(before, after, _in_common(before, after, lambda site: site.content))
        if any(site.function == "" for site in before):
            # Of other shapes, but the same operations in the same order.
            yield from _taken(before, after, _in_common(before, after, lambda site: site.names))
    for is_same in (_on_one_line, _in_one_function, _alike):
        for site in list(before):
            partner = next((other for other in after if is_same(site, other)), None)
            if partner is not None:
                yield from _taken(before, after, [(site, partner)])


def _in_common(
    before: list[Site], after: list[Site], content: Callable[[Site], object]
) -> list[Pair]:
    """Pairs of equal content, as a diff finds them."""
    one, other = ([content(site) for site in sites] for sites in (before, after))
    blocks = SequenceMatcher(a=one, b=other, autojunk=False).get_matching_blocks()
    return [
        (before[block.a + offset], after[block.b + offset])
        for block in blocks
        for offset in range(block.size)
    ]


def _taken(before: list[Site], after: list[Site], pairs: list[Pair]) -> list[Pair]:
    for one, other in pairs:
        before.remove(one)
        after.remove(other)
    return pairs


def _on_one_line(one: Site, other: Site) -> bool:
    return one.call_site.line == other.call_site.line


def _in_one_function(one: Site, other: Site) -> bool:
    return one.call_site.function == other.call_site.function and _alike(one, other)


def _alike(one: Site, other: Site) -> bool:
    """Whether a site can be another one, moved: operations outside of jit have one in common."""
    names = ({each.function for each in site.compiles} for site in (one, other))
    return bool(one.function) or not set.isdisjoint(*names)


def programs_in_pairs(before: Site, after: Site) -> list[tuple[Compile, Compile]]:
    """The programs of a site that are one and the same, or became one another.

    Those with the same arguments first, several such in their order; then the others, in theirs.
    Operations outside of jit are compared with the same operation alone.
    """
    rest: dict[str, list[Compile]] = {}
    for compiled in before.compiles:
        rest.setdefault(compiled.call, []).append(compiled)
    pairs, unpaired = [], []
    for compiled in after.compiles:
        if same := rest.get(compiled.call):
            pairs.append((same.pop(0), compiled))
        else:
            unpaired.append(compiled)
    if before.function:
        left = [compiled for several in rest.values() for compiled in several]
        pairs += zip(left, unpaired, strict=False)
    return pairs


def surplus(fewer: Site, more: Site) -> list[Compile]:
    """The programs that the one site has beyond the other, as far as arguments tell them apart."""
    count = len(more.compiles) - len(fewer.compiles)
    known = Counter(compiled.call for compiled in fewer.compiles)
    beyond = []
    for compiled in more.compiles:
        known[compiled.call] -= 1
        if known[compiled.call] < 0:
            beyond.append(compiled)
    return beyond[-count:] if count else []
