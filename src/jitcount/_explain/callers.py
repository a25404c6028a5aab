"""The lines that led to a compile: what each of them calls, and whether that can be jitted.

An operation outside of jit is compiled by itself. What helps is a jit around a call further out,
if that call can be jitted at all: it takes arrays and returns arrays, and nothing in it needs a
value while it is traced. Nobody can be sure of that without trying, so what speaks against it in
the source, or in what the call was given, is kept as the reason why not.
"""

from __future__ import annotations

import ast
import functools
import itertools
import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from jitcount._explain.caller import NEEDS_VALUES, Caller
from jitcount._explain.jittable import (
    SHAPED_BY_VALUES,
    function_of,
    is_pytree,
    is_size_given,
    own_nodes,
    source_of,
    tree_of,
    why_not_jit,
)
from jitcount._observe.call_site import owner_of, package_of
from jitcount._observe.callers import ARRAY, LINEN, NNX, OTHER, STATIC, TREE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from types import CodeType

    from jitcount._explain.jittable import AnyFunction
    from jitcount._observe.callers import Callee, CallerFrame

_logger = logging.getLogger("jitcount")

# A longer text of a call is of no help in a sentence.
_LONGEST_CALL = 60
_LONGEST_JITTED = 100

# A loop over so many written-out elements is as good as none.
_FEW = 16


def written_callers(frames: tuple[CallerFrame, ...]) -> tuple[Caller, ...]:
    """The lines of a stack with what their source says; each is read once.

    A library may call a function of the user's that calls the library again: a model that flax
    initialises or numpyro samples from. Such a call is not jitted by itself, as the library keeps
    account meanwhile of what happens in it.
    """
    written: list[Caller] = []
    calling: set[str] = set()
    for caller in map(_written, frames):
        is_within = bool(caller.jitted) and caller.library in calling
        why_not = f"{caller.library} calls the function around it"
        written.append(replace(caller, jitted="", why_not=why_not) if is_within else caller)
        calling |= {caller.library} - {""}
    return tuple(written)


@functools.lru_cache(maxsize=4096)
def _written(frame: CallerFrame) -> Caller:
    library = package_of(frame.inside[-1].co_filename) if frame.inside else ""
    try:
        caller = _read(frame)
    except Exception:  # whatever the user's objects do when they are looked at
        _logger.debug("could not read what %s calls", frame.site, exc_info=True)
        caller = Caller(site=frame.site, why_not="its source could not be read")
    return replace(caller, library=library)


def _read(frame: CallerFrame) -> Caller:
    """A line with what its source says."""
    if frame.is_import and frame.callee is not None:
        return Caller(site=frame.site, why_not="it is an import", imports=frame.callee.module)
    call = _call_at(frame.code, frame.instruction)
    if call is None:
        return Caller(site=frame.site, why_not=_needs_values(frame) or "it is no call")
    calls = _one_line(ast.unparse(call.func))
    if frame.callee is None:
        why_not = _needs_values(frame) or "it is JAX's own"
        return Caller(site=frame.site, calls=calls, why_not=why_not)
    why_not = _why_not(call, frame.callee, frame.inside)
    if why_not:
        return Caller(site=frame.site, calls=calls, why_not=why_not)
    jitted, in_loop = _jitted(call, calls, frame.callee), _is_in_a_loop(call, frame.code)
    return Caller(site=frame.site, calls=calls, jitted=jitted, in_loop=in_loop)


def _needs_values(frame: CallerFrame) -> str:
    return why_not_line(source_of(frame.code.co_filename), frame.site.line)


def _one_line(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _LONGEST_CALL else f"{shown[: _LONGEST_CALL - 1]}…"


# --- The source -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _calls(source: str) -> Mapping[tuple[int, int], ast.Call]:
    """The calls in a source by the line and column at which they end: no two end at the same."""
    tree = tree_of(source)
    nodes = ast.walk(tree) if tree is not None else iter(())
    return {
        (node.end_lineno or 0, node.end_col_offset or 0): node
        for node in nodes
        if isinstance(node, ast.Call)
    }


def _call_at(code: CodeType, instruction: int) -> ast.Call | None:
    """The call that an instruction makes; None for an operator, and without the source."""
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if positions is None:
        return None
    line, end_line, column, end_column = positions
    call = _calls(source_of(code.co_filename)).get((end_line or 0, end_column or 0))
    if call is None or line is None or column is None:
        return call
    # An operator may end where the call on its right does, but begins before it. The instruction
    # of a method's call begins at the method's name where the call takes several lines.
    return call if (line, column) >= (call.lineno, call.col_offset) else None


_LOOPS = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp


def _is_in_a_loop(call: ast.Call, code: CodeType) -> bool:
    """Whether a call stands in a loop of the function that makes it."""
    around = function_of(code) or tree_of(source_of(code.co_filename))
    loops = (n for n in own_nodes(around) if isinstance(n, _LOOPS)) if around is not None else ()
    return any(node is call for loop in loops for node in ast.walk(loop))


# --- What speaks against a jit --------------------------------------------------------------------

# What needs a value, or does something beside computing, by the last name of what is called.
_NEEDS_A_VALUE = {
    "item": "it reads a value",
    "tolist": "it reads a value",
    "float": "it reads a value",
    "asarray": "it makes a NumPy array",
    "device_get": "it reads a value",
    "block_until_ready": "it waits for a value",
    "open": "it reads or writes a file",
    "save": "it reads or writes a file",
    "savez": "it reads or writes a file",
}

_ACTS = {
    "print": "it prints",
    "input": "it asks the user",
    "next": "it takes data from an iterator",
    "jit": "it makes a jitted function",
    "pmap": "it makes a jitted function",
    "perf_counter": "it takes the time",
    "time": "it takes the time",
}

# Libraries of arrays whose functions and methods of the same name compute, and need no value.
_TRACED = ("jnp.", "jax.numpy.", "jax.lax.", "lax.")


def _why_not(call: ast.Call, callee: Callee, inside: tuple[CodeType, ...]) -> str:
    """What speaks against a jit of a call; empty where nothing does."""
    function = function_of(callee.code)
    if callee.code.co_name == "<module>":
        reason = "it runs a module"
    elif callee.module.partition(".")[0] == "numpy":
        reason = "it is NumPy's"
    elif callee.makes_object:
        reason = (
            _why_not_these_arguments(call, callee) if _flavour(callee) else "it makes an object"
        )
    elif _is_of_jax(call.func):
        reason = "it is JAX's own"
    elif function is None:
        reason = "its source is not to be had"
    elif owner_of(callee.code.co_filename) == "user":
        reason = _why_not_these_arguments(call, callee) or why_not_jit(
            callee.code, callee.module, dict(callee.arguments)
        )
    else:
        reason = _why_not_these_arguments(call, callee) or _why_not_this_body(
            function, callee.module, _left_out(call, function)
        )
        if not reason and _passes_on_an_object(function, inside):
            reason = _AN_OBJECT
    return reason or next(filter(None, map(_needs_a_value, inside)), "")


def _passes_on_an_object(function: AnyFunction, inside: tuple[CodeType, ...]) -> bool:
    """Whether a library's function returns what another one does, and that returns an object."""
    called = {
        _name(node.value.func)
        for node in own_nodes(function)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)
    }
    for code in inside:
        inner = function_of(code) if code.co_name in called else None
        if inner is None or inner is function:
            continue
        rest = tuple(other for other in inside if other is not code)
        makes = any(_reason_at(node, "", set()) == _AN_OBJECT for node in own_nodes(inner))
        if makes or _passes_on_an_object(inner, rest):
            return True
    return False


_AN_OBJECT = "it returns an object"


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_of_jax(func: ast.expr) -> bool:
    """Whether a function of JAX's is called, which calls one of the user's: ``jax.tree.map``."""
    return isinstance(func, ast.Attribute) and ast.unparse(func).startswith(_OF_JAX)


_OF_JAX = ("jax.", "jnp.", "lax.", "jtu.")


def _needs_a_value(code: CodeType) -> str:
    """Why a function further in cannot be traced; empty where nothing tells that it cannot."""
    function = function_of(code)
    calls = (n for n in own_nodes(function) if isinstance(n, ast.Call)) if function else ()
    return next(filter(None, (_reason_in(call, _NEEDS_A_VALUE) for call in calls)), "")


def _why_not_these_arguments(call: ast.Call, callee: Callee) -> str:
    """Names an argument that no jit takes; what is written out in the call is none."""
    if not _flavour(callee) and _is_open(call):
        kinds = {kind for name, kind in callee.arguments if name not in _OBJECTS}
        return "an argument is no array" if kinds - {ARRAY, TREE} else ""
    return next(
        (
            f"{each.name} is no array"
            for each in _given(call, callee)
            if each.kind == OTHER and not isinstance(each.value, _WRITTEN_OUT)
        ),
        "",
    )


# What a method is called on.
_OBJECTS = {"self", "cls"}

_WRITTEN_OUT = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set)


class _Given(NamedTuple):
    """An argument as it stands in a call."""

    name: str
    """What the function calls it; ``"*0"`` for the first that ``*args`` takes."""

    kind: str
    value: ast.expr
    keyword: ast.keyword | None


def _is_open(call: ast.Call) -> bool:
    """Whether a call unpacks arguments, so that nobody can say which it gives."""
    is_starred = any(isinstance(each, ast.Starred) for each in call.args)
    return is_starred or any(keyword.arg is None for keyword in call.keywords)


def _bound(call: ast.Call, callee: Callee, count: int) -> int:
    """How many of a function's arguments a partial has, so that the call does not give them."""
    function = function_of(callee.code)
    if function is None:
        return 0
    needed = count - len(function.args.defaults)
    named = {keyword.arg for keyword in call.keywords}
    given = len(call.args) + sum(argument.arg in named for argument in function.args.args[:needed])
    return max(0, needed - given)


def _given(call: ast.Call, callee: Callee) -> list[_Given]:
    """The arguments that a call gives, each with its kind; not what is left at its default."""
    if _is_open(call):
        return []
    code, kinds = callee.code, dict(callee.arguments)
    positional = list(code.co_varnames[: code.co_argcount])
    if positional and (positional[0] in _OBJECTS or callee.makes_object):
        del positional[0]
    del positional[: _bound(call, callee, len(positional))]
    found = []
    for number, value in enumerate(call.args):
        beyond = number - len(positional)
        name = positional[number] if beyond < 0 else f"*{beyond}"
        found.append(_Given(name, kinds.get(name, ARRAY), value, None))
    for keyword in call.keywords:
        name = keyword.arg or ""
        found.append(_Given(name, kinds.get(name, ARRAY), keyword.value, keyword))
    return found


def _left_out(call: ast.Call, function: AnyFunction) -> set[str]:
    """The arguments that a call leaves at None, their default."""
    given = {keyword.arg for keyword in call.keywords}
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        *zip(positional[::-1], arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {
        argument.arg
        for argument, default in defaults
        if isinstance(default, ast.Constant) and default.value is None
    } - given


def _why_not_this_body(function: AnyFunction, module: str, left_out: set[str]) -> str:
    """What a library's function does that cannot be traced, or would not be worth it."""
    if isinstance(function, ast.AsyncFunctionDef):
        return "it is a coroutine"
    returns = isinstance(function, ast.Lambda)
    for node in own_nodes(function):
        if reason := _reason_at(node, module, left_out):
            return reason
        returns = returns or (isinstance(node, ast.Return) and node.value is not None)
    return "" if returns else "it returns nothing"


def _reason_at(node: ast.AST, module: str, left_out: set[str]) -> str:
    """Why a piece of source cannot be traced; empty where it can."""
    reason = ""
    match node:
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            reason = "it is a generator"
        case ast.While() | ast.AsyncFor():
            reason = "it loops"
        case ast.For(iter=over) if not _is_short(over):
            reason = "it loops"
        case ast.Global() | ast.Nonlocal():
            reason = "it changes a global variable"
        case ast.Assign(targets=targets) if any(map(_is_of_self, targets)):
            reason = "it changes its object"
        case ast.AugAssign(target=target) if _is_of_self(target):
            reason = "it changes its object"
        case ast.If(test=test) | ast.Assert(test=test) | ast.IfExp(test=test) if _asks(test):
            reason = "it branches on a value"
        case ast.Return(value=ast.Call(func=func)) if _is_class(func, module):
            reason = _AN_OBJECT
        case ast.Call():
            reason = _reason_in(node, _NEEDS_A_VALUE | _ACTS, left_out)
    return reason


def _reason_in(call: ast.Call, reasons: Mapping[str, str], left_out: Collection[str] = ()) -> str:
    func, name = call.func, _name(call.func)
    is_size_known = is_size_given(call, name, _is_written_out, left_out)
    is_of_one = name == "where" and len(call.args) == 1
    is_shaped_by_values = (name in SHAPED_BY_VALUES or is_of_one) and not is_size_known
    if is_shaped_by_values or (name == "split" and _is_split_by_values(call)):
        return "its shapes depend on values"
    if name not in reasons or (isinstance(func, ast.Attribute) and name in {"float", "next"}):
        return ""
    return "" if ast.unparse(func).startswith(_TRACED) else reasons[name]


def _is_written_out(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant)


def _is_split_by_values(call: ast.Call) -> bool:
    """Whether an array is split at places that are not written out; keys are split by a number."""
    is_of_keys = "random" in ast.unparse(call.func) or "jr." in ast.unparse(call.func)
    by = call.args[1:2]
    return not is_of_keys and bool(by) and not isinstance(by[0], ast.Constant | ast.List)


def _is_short(over: ast.expr) -> bool:
    """Whether a loop goes over a few elements: written out there, or parts of its object."""
    if isinstance(over, ast.Tuple | ast.List):
        return len(over.elts) <= _FEW
    if any(isinstance(node, ast.Attribute) and _is_of_self(node) for node in ast.walk(over)):
        return True  # an object's layers, most likely
    if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "range":
        lengths = [each.value if isinstance(each, ast.Constant) else None for each in over.args]
        return all(isinstance(length, int) and length <= _FEW for length in lengths)
    return False


def _is_of_self(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self"


def _asks(test: ast.expr) -> bool:
    """Whether a condition computes with arrays."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    named = (ast.unparse(call.func) for call in calls)
    return any(
        name.startswith(_TRACED) or name.endswith((".any", ".all", ".max", ".min", ".sum"))
        for name in named
    )


def _is_class(func: ast.expr, module: str) -> bool:
    """Whether what is called is named as classes are, and is none of those that a jit returns."""
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name[:1].isupper() and name != "TrainState" and not _is_pytree(func, module)


def _is_pytree(func: ast.expr, module: str) -> bool:
    """Whether what is called is a class whose objects a jit takes and returns."""
    names = ast.unparse(func).split(".")
    found: object = sys.modules.get(module)
    for name in names:
        found = vars(found).get(name) if isinstance(found, ModuleType) else None
    return is_pytree(found)


# --- A line that calls JAX itself -----------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def why_not_line(source: str, line: int) -> str:
    """Why what stands at a line needs values, in the words of `NEEDS_VALUES`; empty if it does not.

    It is asked of lines that call JAX themselves, so a condition there computes with arrays.
    """
    tree = tree_of(source)
    if tree is None:
        return ""
    around: list[ast.FunctionDef | ast.Module] = [tree]
    around += [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _at(n, line)]
    body = max(around, key=lambda node: getattr(node, "lineno", 0))
    statements = [node for node in own_nodes(body) if isinstance(node, ast.stmt)]
    masks = {
        name
        for each in statements
        if isinstance(each, ast.Assign) and _is_mask(each.value, set())
        for name in _names(each.targets)
    }
    shaped = {
        name
        for each in statements
        if isinstance(each, ast.Assign) and _shape_depends(each.value, masks)
        for name in _names(each.targets)
    }
    found = {
        reason
        for each in statements
        for part in _own_parts(each)
        if _at(part, line)
        for reason in _needs_of(each, part, masks, shaped)
    }
    return min(found & NEEDS_VALUES, default="")


def _at(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _names(nodes: Sequence[ast.AST]) -> set[str]:
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def _own_parts(statement: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    return [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]


def _needs_of(
    statement: ast.stmt, part: ast.expr, masks: set[str], shaped: set[str]
) -> Iterator[str]:
    """What an expression of a statement needs values for."""
    is_condition = isinstance(statement, ast.If | ast.While | ast.Assert)
    if is_condition and not _is_of_shapes(part):
        yield "it branches on a value"
    if _shape_depends(part, masks) or (shaped & _names([part]) and not is_condition):
        yield _BY_VALUES
    for node in ast.walk(part):
        yield _reason_at(node, "", set())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_read = node.func.id in {"bool", "complex", "int"}
            if is_read and any(map(_asks, node.args)):
                yield "it reads a value"


def _is_of_shapes(test: ast.expr) -> bool:
    """Whether a condition asks for shapes, which a jit knows."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _SHAPES) or _name(node) == "len"
        for node in ast.walk(test)
        if isinstance(node, ast.expr)
    )


_SHAPES = {"dtype", "ndim", "shape", "size"}


def _is_mask(value: ast.expr, masks: set[str]) -> bool:
    """Whether an expression compares arrays, or is made of what does."""
    match value:
        case ast.Compare(ops=ops):
            return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_mask(operand, masks)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_mask(left, masks) or _is_mask(right, masks)
        case ast.Name(id=name):
            return name in masks
    return False


def _shape_depends(value: ast.expr, masks: set[str]) -> bool:
    """Whether the shape of something in an expression depends on values: ``x[x > 0]``.

    ``x.at[x > 0].set(0)`` has the shape of x.
    """
    for node in ast.walk(value):
        match node:
            case ast.Subscript(value=ast.Attribute(attr="at")):
                continue
            case ast.Subscript(slice=index, ctx=ast.Load()) if _is_mask(index, masks):
                return True
            case ast.Call() if _reason_in(node, {}) == _BY_VALUES:
                return True
    return False


_BY_VALUES = "its shapes depend on values"


# --- How it is jitted -----------------------------------------------------------------------------


_NO_ARRAYS = {STATIC, LINEN, OTHER}


def _flavour(callee: Callee) -> str:
    """The library whose jit takes what the call was given: ``"nnx"``, ``"equinox"`` or none."""
    kinds = {kind for _, kind in callee.arguments}
    return next((library for library in ("nnx", "equinox") if library in kinds), "")


def _jitted(call: ast.Call, calls: str, callee: Callee) -> str:
    """The call under the jit that takes its arguments."""
    flavour = _flavour(callee)
    if flavour == "equinox":
        return f"eqx.filter_jit({calls})(...)"
    given = _given(call, callee)
    static = [each for each in given if each.kind in _NO_ARRAYS]
    unnamed = callee.code.co_varnames[: callee.code.co_posonlyargcount]
    is_named = all(
        each.keyword or not (each.name.startswith("*") or each.name in unnamed) for each in static
    )
    is_hashable = all(each.kind != OTHER for each in static)
    has_object = flavour == "nnx" and (
        callee.makes_object or dict(callee.arguments).get("self") == NNX
    )
    wrapper = "nnx.jit" if flavour == "nnx" else "jax.jit"
    if has_object or not (is_named and is_hashable):
        return _jitted_lambda(wrapper, call, given, with_object=not callee.makes_object)
    names = tuple(each.name for each in static)
    named = f", static_argnames={names!r}" if names else ""
    return f"{wrapper}({calls}{named})(...)"


def _jitted_lambda(
    wrapper: str, call: ast.Call, given: Sequence[_Given], *, with_object: bool
) -> str:
    """A call as a jitted lambda of its arrays; what is no array stays inside."""
    parameters: dict[str, ast.expr] = {}

    def parameter(value: ast.expr, name: str) -> ast.expr:
        if isinstance(value, ast.Name | ast.Attribute):
            name = value.id if isinstance(value, ast.Name) else value.attr
        name = name.lstrip("*")
        while not name.isidentifier() or name in parameters:
            name = f"x{name}" if not name.isidentifier() else f"{name}_"
        parameters[name] = value
        return ast.Name(name)

    func = call.func
    if with_object and wrapper == "nnx.jit":
        if isinstance(func, ast.Attribute) and not _is_of_self(func):
            func = ast.Attribute(parameter(func.value, "model"), func.attr)
        else:
            func = parameter(func, "model")
    inside: list[ast.expr] = []
    keywords: list[ast.keyword] = []
    for each in given:
        stays = each.kind in _NO_ARRAYS
        value = each.value if stays else parameter(each.value, each.name)
        if each.keyword is None:
            inside.append(value)
        else:
            keywords.append(ast.keyword(each.keyword.arg, value))
    written = ast.unparse(ast.Call(func, inside, keywords))
    passed = ", ".join(map(ast.unparse, parameters.values()))
    jitted = f"{wrapper}(lambda {', '.join(parameters)}: {written})".replace("lambda :", "lambda:")
    if len(jitted) > _LONGEST_JITTED:
        written = f"{_one_line(ast.unparse(func))}(...)"
        jitted = f"{wrapper}(lambda {', '.join(parameters)}: {written})"
    whole = f"{jitted}({passed})"
    return whole if len(whole) <= _LONGEST_JITTED else f"{jitted}(...)"
