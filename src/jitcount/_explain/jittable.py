"""Whether a function of the user's could run under a jit as it does without, by its source.

A jit runs the Python of a function once, and with tracers in place of arrays. So a function that
looks at a value fails under it, and one that prints, changes what it was given, or reads what
others change does so once and never again: that is worse. Nobody can be sure of it without trying;
what is not known to be harmless counts as a reason not to.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import sys
import types
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from jitcount._jax.origin import is_module_of_jax
from jitcount._observe.call_site import owner_of
from jitcount._observe.callers import EQUINOX, LINEN, NNX, OTHER, STATIC, TREE, kind_of_class

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import CodeType

AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# A loop over so many written-out elements is as good as none.
_FEW = 16

# Functions of the user's that call each other are followed so far.
_DEEPEST = 5

_MODULES_OF_LIBRARIES = {LINEN, NNX, EQUINOX}
_KNOWN_TO_A_JIT = {STATIC, OTHER, *_MODULES_OF_LIBRARIES}


# --- Sources --------------------------------------------------------------------------------------


def source_of(filename: str) -> str:
    """The source of a file, or of what stands for one in a notebook; empty where there is none."""
    return "".join(linecache.getlines(filename))


@functools.lru_cache(maxsize=64)
def tree_of(source: str) -> ast.Module | None:
    """A source, parsed; None where it is no Python of this release."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def _functions(source: str) -> Mapping[tuple[int, str], list[AnyFunction]]:
    """The functions of a source, by the line at which their code begins and their name."""
    found: dict[tuple[int, str], list[AnyFunction]] = {}
    for node in ast.walk(tree_of(source) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault((line, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found


def function_of(code: CodeType) -> AnyFunction | None:
    """The source of a function; None where it is not to be had, or two stand in one line."""
    functions = _functions(source_of(code.co_filename))
    found = functions.get((code.co_firstlineno, code.co_name), [])
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _changing_names(source: str) -> frozenset[str]:
    """The names of a module that are bound again, or whose value is changed in place."""
    tree = tree_of(source) or ast.Module([], [])
    bound = Counter(
        node.id for node in own_nodes(tree) if isinstance(node, ast.Name) and not _is_read(node)
    )
    changing = {name for name, times in bound.items() if times > 1}
    modules = _modules(tree)
    for node in own_nodes(tree):
        if isinstance(node, ast.For | ast.While):
            changing |= set(_stored(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            changing |= set(node.names)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not _is_read(node):
            changing.add(_root(node))
        elif isinstance(node, ast.Call) and _last_name(node.func) in _CHANGES_OR_DOES_MORE:
            changing |= {_root(node.func)} - modules  # jnp.log and nnx.update change none
    return frozenset(changing)


def _modules(tree: ast.Module) -> set[str]:
    """The names under which a source imports modules."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {
                each.asname or each.name
                for each in node.names
                if f"{node.module}.{each.name}" in sys.modules
            }
    return found


def _is_read(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _root(node: ast.AST) -> str:
    """The name that an attribute or an element is of; empty where it is of none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- What is known of names -----------------------------------------------------------------------

_CHANGES_ITS_OBJECT = {
    "add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "pop", "popitem",
    "popleft", "put", "remove", "resize", "reverse", "setdefault", "sort", "update",
}  # fmt: skip

_DOES_MORE = {
    "critical", "debug", "error", "exception", "flush", "get_nowait", "info", "log", "read",
    "readline", "readlines", "recv", "send", "warn", "warning", "write", "writelines",
}  # fmt: skip

_CHANGES_OR_DOES_MORE = _CHANGES_ITS_OBJECT | _DOES_MORE

_READS_A_VALUE = {
    "addressable_data", "block_until_ready", "copy_to_host_async", "devices", "item", "numpy",
    "to_py", "tolist",
}  # fmt: skip

SHAPED_BY_VALUES = {"argwhere", "flatnonzero", "nonzero", "repeat", "unique"}
_TAKES_SHAPES = {"arange", "empty", "eye", "identity", "ones", "tri", "zeros"}

_HARMLESS_BUILTINS = {
    "callable", "dict", "enumerate", "getattr", "hasattr", "isinstance", "issubclass", "len",
    "list", "map", "range", "reversed", "slice", "sum", "super", "tuple", "type", "zip",
}  # fmt: skip
_BUILTINS_OF_VALUES = {
    "abs", "all", "any", "bool", "complex", "divmod", "float", "int", "max", "min", "pow", "round",
    "set", "sorted", "str", "repr",
}  # fmt: skip
_BUILTINS_THAT_ACT = {
    "input": "it asks the user",
    "next": "it takes data from an iterator",
    "open": "it reads or writes a file",
    "print": "it prints",
}
# Computed on arrays, too, by methods of theirs.
_WORK_ON_TRACERS = {"abs", "pow", "round", "divmod"}

_HARMLESS_MODULES = {
    "collections", "copy", "dataclasses", "enum", "functools", "itertools", "operator", "typing",
}  # fmt: skip

_SHAPE_ATTRIBUTES = {"dtype", "itemsize", "ndim", "shape", "size"}


class _Doubt(Exception):  # noqa: N818 (no error: it ends a search)
    """What speaks against a jit, in a few words."""


def why_not_jit(code: CodeType, module: str, kinds: Mapping[str, str]) -> str:
    """What speaks against a jit of a function; empty where nothing is found.

    Args:
        code: the function's.
        module: the name of its module.
        kinds: the kind of each argument that it was given, as `kind_of` says.
    """
    function = function_of(code)
    if function is None:
        return "its source is not to be had"
    try:
        _Body(function, module, code.co_filename, kinds, set()).check()
    except _Doubt as doubt:
        return str(doubt)
    return ""


class _Body:
    """The source of one function, with what is known of the names in it."""

    def __init__(
        self,
        function: AnyFunction,
        module: str,
        filename: str,
        kinds: Mapping[str, str],
        seen: set[ast.AST],
    ) -> None:
        self._function = function
        self._module = module
        self._filename = filename
        self._kinds = kinds
        self._seen = seen
        self._globals: Mapping[str, Any] = (
            vars(sys.modules[module]) if module in sys.modules else {}
        )
        body = function.body if isinstance(function.body, list) else [function.body]
        self._nodes = [node for each in body for node in ast.walk(each)]
        self._parameters = _parameters(function)
        inner = [n for n in self._nodes if isinstance(n, ast.FunctionDef | ast.Lambda)]
        self._inner = {name for each in inner for name in _parameters(each)}
        self._values = self._assigned()
        self._local = self._parameters | self._inner | set(self._values)
        self._local |= {n.name for n in self._nodes if isinstance(n, ast.FunctionDef)}
        self._object = next((n for n in ("self", "cls") if n in self._parameters), "")

    def check(self) -> None:
        """Look at all of it.

        Raises:
            _Doubt: something speaks against a jit.
        """
        function = self._function
        results = [function.body] if isinstance(function, ast.Lambda) else []
        results += [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value]
        if isinstance(function, ast.AsyncFunctionDef):
            raise _Doubt("it is a coroutine")
        if not results:
            raise _Doubt("it returns nothing")
        if self._object == "cls":
            raise _Doubt("it makes an object")
        if self._object and self._kinds.get("self") not in _MODULES_OF_LIBRARIES:
            raise _Doubt("it is a method, which may read what changes")
        decorators = [] if isinstance(function, ast.Lambda) else function.decorator_list
        if not all(map(self._is_harmless_decorator, decorators)):
            raise _Doubt("it is decorated")
        for node in self._nodes:
            self._check(node)
        for result in results:
            self._check_result(result)

    # --- Names ------------------------------------------------------------------------------------

    def _assigned(self) -> dict[str, list[ast.expr | None]]:
        """What each local name is assigned; None for what is not one expression."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in self._nodes:
            for target, value in _bindings(node):
                simple = value if isinstance(target, ast.Name) else None
                for name in _stored(target):
                    found.setdefault(name, []).append(simple)
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    name = (alias.asname or alias.name).partition(".")[0]
                    found.setdefault(name, []).append(None)
        return found

    def _is_fresh(self, name: str) -> bool:
        """Whether a name is an object that the function has made itself."""
        made = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)
        values = self._values.get(name, ())
        return bool(values) and all(isinstance(value, made) for value in values)

    def _is_static(self, node: ast.AST | None, depth: int = 0) -> bool:  # noqa: C901, PLR0911, PLR0912 (a case for each kind of expression)
        """Whether a jit knows the value of an expression while it traces."""
        if node is None or depth > 2 * _DEEPEST:
            return False
        deeper = functools.partial(self._is_static, depth=depth + 1)
        match node:
            case ast.Constant() | ast.Lambda() | ast.JoinedStr():
                return True
            case ast.Name(id=name):
                is_known = all(map(deeper, self._values.get(name, ())))
                if name in self._parameters | self._inner:
                    return is_known and self._kinds.get(name) in _KNOWN_TO_A_JIT
                if name in self._local:
                    return is_known and name in self._values
                return not self._is_array(self._globals.get(name))
            case ast.Attribute(value=value, attr=attribute):
                return attribute in _SHAPE_ATTRIBUTES or deeper(value)
            case ast.Subscript(value=value, slice=index):
                return deeper(value) and deeper(index)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if all(isinstance(each, ast.Is | ast.IsNot) for each in ops):
                    return True
                if all(isinstance(each, ast.In | ast.NotIn) for each in ops):
                    return deeper(left)
                return deeper(left) and all(map(deeper, others))
            case ast.Call(func=ast.Name(id=name), args=args) if name not in self._local:
                if name in {"len", "isinstance", "issubclass", "hasattr", "type", "callable"}:
                    return True
                return all(map(deeper, args))
            case ast.Call(func=func, args=args):
                if isinstance(func, ast.Attribute) and func.attr in {"ndim", "issubdtype"}:
                    return True
                is_module = isinstance(func, ast.Attribute) and not self._is_array_call(func)
                return is_module and all(map(deeper, args))
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.IfExp() | ast.Tuple():
                return all(map(deeper, _expressions(node)))
            case ast.List() | ast.Slice() | ast.Starred():
                return all(map(deeper, _expressions(node)))
        return False

    def _is_array_call(self, func: ast.Attribute) -> bool:
        """Whether a method, or a function of JAX's, is called."""
        found = self._global_at(func)
        return found is None or is_module_of_jax(_package(found))

    def _is_array(self, value: Any) -> bool:
        return hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type)

    def _global_at(self, node: ast.expr) -> Any:
        """What an expression such as ``jnp.linalg.norm`` is, of modules alone; None if unknown."""
        if isinstance(node, ast.Name):
            if node.id in self._local:
                return None
            return self._globals.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self._global_at(node.value)
            if isinstance(owner, types.ModuleType):
                known = vars(owner)
                return known[node.attr] if node.attr in known else getattr(owner, node.attr, None)
        return None

    # --- One piece of source ----------------------------------------------------------------------

    def _check(self, node: ast.AST) -> None:  # noqa: C901, PLR0912 (a case for each kind of piece)
        match node:
            case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                raise _Doubt("it is a generator")
            case ast.Global() | ast.Nonlocal():
                raise _Doubt("it changes a global variable")
            case ast.Try() | ast.TryStar():
                raise _Doubt("it handles errors")
            case ast.Delete(targets=targets) if not all(isinstance(t, ast.Name) for t in targets):
                raise _Doubt("it changes what it was given")
            case ast.While():
                raise _Doubt("it loops")
            case ast.For(iter=over) | ast.comprehension(iter=over) if not self._is_short(over):
                raise _Doubt("it loops")
            case ast.With(items=items):
                for item in items:
                    expression = item.context_expr
                    called = expression.func if isinstance(expression, ast.Call) else expression
                    if _package(self._global_at(called)) != "jax":
                        raise _Doubt("it opens a context")
            case ast.If(test=test) | ast.Assert(test=test) | ast.IfExp(test=test):
                self._check_condition(test)
            case ast.comprehension(ifs=tests) if tests:
                for test in tests:
                    self._check_condition(test)
            case ast.BoolOp(values=[*first, _]):
                for test in first:
                    self._check_condition(test)
            case ast.UnaryOp(op=ast.Not(), operand=test):
                self._check_condition(test)
            case ast.Compare(ops=[_, _, *_]) if not self._is_static(node):
                raise _Doubt("it branches on a value")
            case ast.Subscript(slice=ast.Compare()):
                raise _Doubt("its shapes depend on values")
            case ast.AugAssign(target=ast.Name(id=name)) if name in self._parameters:
                raise _Doubt(f"it changes {name}")
            case ast.Call():
                self._check_call(node)
            case ast.Name(id=name, ctx=ast.Load()):
                self._check_name(name)
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            self._check_change(node)

    def _check_condition(self, test: ast.expr) -> None:
        if not self._is_static(test):
            raise _Doubt("it branches on a value")

    def _check_change(self, target: ast.AST) -> None:
        root = _root(target)
        if self._is_fresh(root) or (root == "self" and self._kinds.get("self") == NNX):
            return
        if root == "self":
            raise _Doubt("it changes its object")
        raise _Doubt(f"it changes {root}" if root else "it changes what it was given")

    def _check_name(self, name: str) -> None:
        if name in self._local or (name not in self._globals and hasattr(builtins, name)):
            return
        if name in _changing_names(source_of(self._filename)):
            raise _Doubt(f"it reads {name}, which changes")
        if name not in self._globals:  # of a function around it
            raise _Doubt(f"it reads {name} of the function around it")

    def _is_short(self, over: ast.expr) -> bool:  # noqa: PLR0911 (the same)
        """Whether a loop goes over a few elements, or over the parts of an argument."""
        match over:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return len(elements) <= _FEW
            case ast.Call(func=ast.Name(id="range"), args=args):
                lengths = [n.value if isinstance(n, ast.Constant) else None for n in args]
                return all(isinstance(length, int) and length <= _FEW for length in lengths)
            case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "tuple"), args=args):
                return any(map(self._is_short, args))
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values" | "keys")):
                return self._is_short(value)
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self._is_short(value)
            case ast.Call(func=func):  # jax.random.split(key, 3)
                package = _package(self._global_at(func))
                counts = [n for n in over.args[1:] if isinstance(n, ast.Constant)]
                return package == "jax" and any(n.value in range(_FEW) for n in counts)
            case ast.Attribute():
                is_of_object = _root(over) == self._object != ""
                return is_of_object and self._kinds.get("self") in _MODULES_OF_LIBRARIES
            case ast.Name(id=name):
                if name in self._values:
                    return all(v is not None and self._is_short(v) for v in self._values[name])
                return self._kinds.get(name) in {TREE, STATIC, OTHER}
        return False

    def _check_result(self, value: ast.expr) -> None:  # noqa: C901 (the same)
        """What a jit cannot return: texts, shapes, objects; a dict comes back sorted."""
        match value:
            case ast.Constant(value=constant) if not isinstance(constant, int | float | complex):
                if constant is not None:
                    raise _Doubt("it returns no array")
            case ast.Constant(value=bool()):
                raise _Doubt("it returns no array")
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for each in elements:
                    self._check_result(each)
            case ast.Dict(keys=keys, values=values):
                names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
                if None in names or names != sorted(names, key=str):
                    raise _Doubt("it returns a dict, which a jit sorts")
                for each in values:
                    self._check_result(each)
            case ast.Call(func=func) if _last_name(func)[:1].isupper():
                if not is_pytree(self._global_at(func)):
                    raise _Doubt("it returns an object")
            case ast.Attribute(attr=name) if name in _SHAPE_ATTRIBUTES:
                raise _Doubt("it returns no array")
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                raise _Doubt("it returns no array")

    # --- A call -----------------------------------------------------------------------------------

    def _check_call(self, call: ast.Call) -> None:
        func = call.func
        name = _last_name(func)
        if isinstance(func, ast.Name):
            if func.id in self._local:
                return
            if func.id not in self._globals and hasattr(builtins, func.id):
                self._check_builtin(call, func.id)
                return
        elif isinstance(func, ast.Attribute) and not self._is_of_modules(func):
            self._check_method(call, func)
            return
        elif not isinstance(func, ast.Attribute):
            return  # what another call returns; that is looked at by itself
        found = self._global_at(func)
        if found is None:
            raise _Doubt(f"it calls {name}, which is not known")
        self._check_called(call, found, name)

    def _is_of_modules(self, func: ast.Attribute) -> bool:
        return isinstance(self._global_at(func.value), types.ModuleType)

    def _check_builtin(self, call: ast.Call, name: str) -> None:
        if name in _BUILTINS_THAT_ACT:
            raise _Doubt(_BUILTINS_THAT_ACT[name])
        if name in _BUILTINS_OF_VALUES:
            if name not in _WORK_ON_TRACERS and not all(map(self._is_static, call.args)):
                raise _Doubt("it reads a value")
        elif name not in _HARMLESS_BUILTINS and not name.endswith(("Error", "Exception")):
            raise _Doubt(f"it calls {name}")

    def _check_method(self, call: ast.Call, func: ast.Attribute) -> None:
        name, root = func.attr, _root(func)
        if name in _READS_A_VALUE:
            raise _Doubt("it reads a value")
        if name in _DOES_MORE or (name == "get" and not call.args):
            raise _Doubt(f"it calls {name}, which does more than compute")
        if name in SHAPED_BY_VALUES and not is_size_given(call, name, self._is_static):
            raise _Doubt("its shapes depend on values")
        is_at = any(isinstance(n, ast.Attribute) and n.attr == "at" for n in ast.walk(func.value))
        if name in _CHANGES_ITS_OBJECT and not is_at and not self._is_fresh(root):
            is_function = self._kinds.get(root) == STATIC or isinstance(func.value, ast.Call)
            if not (name == "update" and (is_function or self._is_tuple(root))):  # optax's
                raise _Doubt(f"it changes {root}" if root else "it changes what it was given")
        owner = self._global_at(func.value) if root not in self._local else None
        if type(owner).__module__.startswith(("numpy.random", "random")):
            raise _Doubt("it draws random numbers on the host")

    def _is_tuple(self, name: str) -> bool:
        return name not in self._local and isinstance(self._globals.get(name), tuple)

    def _check_called(self, call: ast.Call, found: Any, name: str) -> None:  # noqa: C901, PLR0912
        """Look at what is called, by the package that it is from."""
        package, module = _package(found), str(getattr(found, "__module__", "") or "")
        if is_module_of_jax(package):
            self._check_jax(call, name)
        elif package == "numpy":
            if ".random" in module or module.endswith("mtrand") or (type(found).__name__ in {
                "builtin_function_or_method", "method"
            } and "random" in ast.unparse(call.func)):  # fmt: skip
                raise _Doubt("it draws random numbers on the host")
            if not all(map(self._is_static, call.args)):
                raise _Doubt("it makes a NumPy array")
        elif package == "math":
            if not all(map(self._is_static, call.args)):
                raise _Doubt("it reads a value")
        elif package == "random" or type(getattr(found, "__self__", None)).__module__ == "random":
            raise _Doubt("it draws random numbers on the host")
        elif package == "time":
            raise _Doubt("it takes the time")
        elif package in sys.stdlib_module_names and package not in _HARMLESS_MODULES | {
            "builtins", "__main__"
        }:  # fmt: skip
            raise _Doubt(f"it calls {name}, which does more than compute")
        elif isinstance(found, types.FunctionType):
            self._check_function(found, name)
        elif isinstance(found, functools.partial):
            self._check_called(call, found.func, name)
        elif type(found).__name__ == "_lru_cache_wrapper":
            raise _Doubt(f"{name} keeps what it returned")
        elif type(found).__module__.startswith("jax"):  # a jit of the user's
            raise _Doubt("it runs a jitted function")

    def _check_jax(self, call: ast.Call, name: str) -> None:
        if name in {"jit", "pmap"}:
            raise _Doubt("it makes a jitted function")
        if name in {"device_get", "block_until_ready"}:
            raise _Doubt("it reads a value")
        is_of_one = name == "where" and len(call.args) == 1
        if (name in SHAPED_BY_VALUES or is_of_one) and not is_size_given(
            call, name, self._is_static
        ):
            raise _Doubt("its shapes depend on values")
        if name in _TAKES_SHAPES and not all(map(self._is_static, call.args)):
            raise _Doubt("its shapes depend on values")
        is_of_keys = "random" in ast.unparse(call.func) or "jr." in ast.unparse(call.func)
        if name == "split" and not is_of_keys and not all(map(self._is_static, call.args[1:])):
            raise _Doubt("its shapes depend on values")

    def _check_function(self, function: types.FunctionType, name: str) -> None:
        """Look at a function that is called, if it is the user's."""
        code = function.__code__
        if owner_of(code.co_filename) != "user":
            return
        node = function_of(code)
        if node is None or len(self._seen) > _DEEPEST * _FEW:
            raise _Doubt(f"it calls {name}, whose source is not to be had")
        if node in self._seen:
            return
        self._seen.add(node)
        kinds = {
            parameter.name: STATIC
            for parameter in inspect.signature(function).parameters.values()
            if isinstance(parameter.default, bool | int | str | None)
        }
        body = _Body(node, function.__module__, code.co_filename, kinds, self._seen)
        for each in body._nodes:
            body._check(each)

    def _is_harmless_decorator(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) else node
        found = self._global_at(called)
        package = _package(found)
        return package in {"jax", "flax", "equinox", "haiku", "jaxtyping", "beartype", "chex"} or (
            found in {staticmethod, functools.partial}
        )


def is_size_given(
    call: ast.Call,
    name: str,
    is_known: Callable[[ast.expr], bool],
    left_out: Collection[str] = (),
) -> bool:
    """Whether the shape of a result is known without values: by a size, or one count of repeats.

    A size that is passed on from an argument, and was left out there, is none.
    """
    sizes = {k.value for k in call.keywords if k.arg in {"size", "total_repeat_length"}}
    if any(getattr(size, "id", "") not in left_out for size in sizes):
        return True
    repeats = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "repeats")]
    return name == "repeat" and any(map(is_known, repeats))


def own_nodes(function: AnyFunction | ast.Module) -> Iterator[ast.AST]:
    """All that a function does itself, without what the functions and classes in it do."""
    body = function.body if isinstance(function.body, list) else [function.body]
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _bindings(node: ast.AST) -> list[tuple[ast.expr, ast.expr | None]]:
    """What a statement binds, and to what; a loop binds its names to what it goes over."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            return [(target, value)]
        case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
            return [(target, over)]
        case ast.AugAssign(target=target) | ast.withitem(optional_vars=ast.expr() as target):
            return [(target, None)]
    return []


def _parameters(function: AnyFunction) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return {each.arg for each in every}


def _stored(target: ast.AST) -> Iterable[str]:
    """The names that are bound somewhere in a piece of source."""
    return (
        node.id for node in ast.walk(target) if isinstance(node, ast.Name) and not _is_read(node)
    )


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


def is_pytree(found: Any) -> bool:
    """Whether a jit can return the objects of a class: named tuples, modules, flax' dataclasses."""
    if not isinstance(found, type):
        return False
    is_named_tuple = issubclass(found, tuple) and hasattr(found, "_fields")
    return is_named_tuple or hasattr(found, "_flax_dataclass") or kind_of_class(found) in {
        EQUINOX, NNX
    }  # fmt: skip


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == name


def _last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _package(found: Any) -> str:
    """The package that a function or a module comes from."""
    if isinstance(found, types.ModuleType):
        return found.__name__.partition(".")[0]
    module = getattr(found, "__module__", None)
    if module is None:
        owner = getattr(found, "__self__", None)
        module = type(owner).__module__ if owner is not None else type(found).__module__
    return str(module).partition(".")[0]
