"""The class of products that something follows, generated: a compiler may compute both at once.

A member is a kind of product, a way to batch it and a place for the batch, what follows it, a type
and a size, on both sides of where a compiler changes its way. XLA:CPU of JAX 0.9.1 to 0.11.2
computed some of them wrongly from a size on (jax #39103, which knows of 0.10.2); these have cases
of their own, whose ids end in ``-reduced`` and ``-squared``. All numbers are whole, and sums of
their magnitudes stay below 2**24, so that results are exact, except for means and softmaxes.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._numerics.expected import COMPOSITE, EXACT
from jitcount._numerics.rounding import Rounded
from jitcount._suite.data import whole
from jitcount._suite.generated import Member, case_of_members
from jitcount._suite.sums import with_x64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jitcount._suite.case import Case

    # Takes the module, jnp or np, and the product.
    Follow = Callable[[Any, Any], Any]


# --- What is multiplied ---------------------------------------------------------------------------

SMALL, EDGE, PAST, LARGE, FAR = "small", "at the edge", "past the edge", "large", "far"

# XLA:CPU of JAX 0.10.2 is right for 32,768 rows of three, wrong for 32,769 to about 43,000 and
# right for more; of float64 it is wrong for half as many. Matrices it gets wrong from about 4,096
# results on, but not 64 by 64.
ROWS = {
    SMALL: {"n": 5_000, "i": 3, "j": 3},
    EDGE: {"n": 32_768, "i": 3, "j": 3},
    PAST: {"n": 32_900, "i": 2, "j": 3},
    LARGE: {"n": 33_000, "i": 3, "j": 3},
    FAR: {"n": 40_000, "i": 3, "j": 3},
}
MATRICES = {
    SMALL: {"n": 3, "i": 16, "j": 8, "k": 32, "l": 2},
    EDGE: {"n": 4, "i": 32, "j": 32, "k": 32, "l": 1},
    PAST: {"n": 2, "i": 100, "j": 8, "k": 44, "l": 1},
    LARGE: {"n": 3, "i": 64, "j": 16, "k": 48, "l": 2},
    FAR: {"n": 2, "i": 128, "j": 64, "k": 128, "l": 1},
}
_ROWS_OF_FLOAT64 = 17_000

PRODUCTS = {
    "matrix-vector": "ij,j->i",
    "vector-matrix": "j,ji->i",
    "vectors": "j,j->",
    "matrices": "ij,jk->ik",
    "right-turned": "ij,kj->ik",
    "left-turned": "ji,jk->ik",
    "two axes": "ijl,jlk->ik",
}

# An operand has a batch of its own, is the same for all of it, or is made as long as the batch.
OWN, SAME, BROADCAST = "own", "same", "broadcast"
BATCHES = {
    "left": (OWN, SAME),
    "right": (SAME, OWN),
    "both": (OWN, OWN),
    "left-broadcast": (BROADCAST, OWN),
    "right-broadcast": (OWN, BROADCAST),
    "both-broadcast": (BROADCAST, BROADCAST),
}
PLACES = ("first", "middle", "last")

# What is multiplied, and in which type it is added up.
DTYPES = {
    "float32": "float32",
    "bfloat16": "float32",
    "float16": "float32",
    "int8": "int32",
    "int32": "int32",
    "float64": "float64",
}


# --- What follows ---------------------------------------------------------------------------------

# The reference computes the whole batch at once, so all axes are counted from the end.


def _signs(xp: Any, y: Any) -> Any:
    return xp.where(y > 0, xp.ones_like(y), -xp.ones_like(y))


def _numbered(found: Any) -> Any:
    """Counts and places in 32 bits, as JAX has them without x64."""
    return found.astype("int32")


AFTER_ROWS: dict[str, Follow] = {
    "nothing": lambda _, y: y,
    "sum": lambda xp, y: xp.sum(y, -1),
    "sum of squares": lambda xp, y: xp.sum(y * y, -1),
    "largest": lambda xp, y: xp.max(y, -1),
    "smallest": lambda xp, y: xp.min(y, -1),
    "sum of positives": lambda xp, y: xp.sum(xp.maximum(y, 0), -1),
    "product of signs": lambda xp, y: xp.prod(_signs(xp, y), -1),
    "place of the largest": lambda xp, y: _numbered(xp.argmax(y, -1)),
    "place of the smallest": lambda xp, y: _numbered(xp.argmin(y, -1)),
    "below the largest": lambda xp, y: y - xp.max(y, -1, keepdims=True),
    "picked": lambda xp, y: xp.take(y, np.array([2, 0]), -1),
    "sum of picked": lambda xp, y: xp.sum(xp.take(y, np.array([2, 0]), -1), -1),
    "count of positives": lambda xp, y: _numbered(xp.sum(_numbered(y > 0), -1)),
    "any above": lambda xp, y: _numbered(xp.any(y > 2, -1)),
    "sorted": lambda xp, y: xp.sort(y, -1),
}
_AFTER_MATRICES: dict[str, Follow] = AFTER_ROWS | {
    "sum of columns": lambda xp, y: xp.sum(y, -2),
    "largest of columns": lambda xp, y: xp.max(y, -2),
    "sum of both axes": lambda xp, y: xp.sum(y, (-2, -1)),
    "largest of both axes": lambda xp, y: xp.max(y, (-2, -1)),
    "picked rows": lambda xp, y: xp.take(y, np.array([2, 0, 2]), -2),
}
_AFTER_NUMBERS: dict[str, Follow] = {
    "nothing": lambda _, y: y,
    "square": lambda _, y: y * y,
    "whether positive": lambda _, y: _numbered(y > 0),
}

# These see the whole batch, which is their first axis.
AFTER_BATCH: dict[str, Follow] = {
    "sum of the batch": lambda xp, y: xp.sum(y, 0),
    "largest of the batch": lambda xp, y: xp.max(y, 0),
    "sum of everything": lambda xp, y: xp.sum(y),
}


def _softmax(x: Rounded, axis: int) -> Rounded:
    raised = (x - x.max(axis, keepdims=True)).exp()
    return raised / raised.sum(axis, keepdims=True)


def _logsumexp(x: Rounded) -> Rounded:
    largest = x.max(-1, keepdims=True)
    return ((x - largest).exp().sum(-1, keepdims=True).log() + largest)[..., 0]


def _masked(xp: Any, y: Any) -> Any:
    return xp.where(np.tri(*y.shape[-2:], dtype=np.bool_), y / 8, np.float32(-1e9))


# What is not exact: in JAX, and with error bounds.
_ROUNDED_ROWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Rounded]]] = {
    "mean": (lambda y: jnp.mean(y, -1), lambda y: _exactly(y).mean(-1)),
    "softmax": (
        lambda y: jax.nn.softmax(y / 8),
        lambda y: _softmax(_exactly(y / 8), -1),
    ),
    "logsumexp": (
        lambda y: jax.nn.logsumexp(y / 8, -1),
        lambda y: _logsumexp(_exactly(y / 8)),
    ),
}
_ROUNDED_MATRICES = _ROUNDED_ROWS | {
    "softmax of columns": (
        lambda y: jax.nn.softmax(y / 8, -2),
        lambda y: _softmax(_exactly(y / 8), -2),
    ),
    "softmax under a mask": (
        lambda y: jax.nn.softmax(_masked(jnp, y)),
        lambda y: _softmax(_exactly(_masked(np, y)), -1),
    ),
}
ROUNDED = tuple(_ROUNDED_MATRICES)


def _exactly(values: np.ndarray) -> Rounded:
    return Rounded.exactly(np.asarray(values, np.float32))


def follows(product: str) -> list[str]:
    """The names of all that may follow a product, at most so many as its result has axes for."""
    rank = len(PRODUCTS[product].split("->")[1])
    return [*_exact(rank), *AFTER_BATCH, *_rounded(rank)]


def _exact(rank: int) -> dict[str, Follow]:
    return (_AFTER_NUMBERS, AFTER_ROWS, _AFTER_MATRICES)[rank]


def _rounded(rank: int) -> Mapping[str, Any]:
    return ({}, _ROUNDED_ROWS, _ROUNDED_MATRICES)[rank]


# --- One member -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A product at a size, batched in a way, and what follows it."""

    product: str
    batch: str
    follow: str
    size: str = LARGE
    place: str = "first"
    dtype: str = "float32"
    has_constant: bool = False
    """Whether an operand that is the same for the whole batch is a constant of the program."""

    seed: int = 1

    def __str__(self) -> str:
        constant = ", a constant" if self.has_constant else ""
        batch = f"batch {self.batch}{constant}, {self.place}"
        return f"{self.size} {self.product}, {self.dtype}, {batch}, then {self.follow}"

    @property
    def rank(self) -> int:
        """How many axes the product has, without the batch."""
        return len(PRODUCTS[self.product].split("->")[1])

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each letter of the subscripts, and of the batch, `n`."""
        sizes = (MATRICES if self.rank == 2 else ROWS)[self.size]
        if self.dtype == "float64" and self.size == LARGE and self.rank < 2:
            return sizes | {"n": _ROWS_OF_FLOAT64}
        return sizes

    @property
    def letters(self) -> list[str]:
        """The subscripts of both operands, with their batch."""
        names = PRODUCTS[self.product].split("->")[0].split(",")
        return [
            self._with_batch(name) if batch == OWN else name
            for name, batch in zip(names, BATCHES[self.batch], strict=True)
        ]

    def _with_batch(self, name: str) -> str:
        place = {"first": 0, "middle": 1, "last": len(name)}[self.place]
        return f"{name[:place]}n{name[place:]}"

    def operands(self) -> list[np.ndarray]:
        """Both operands; with 64 terms of at most 4, all sums stay below 2**24."""
        kind = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        return [
            whole(
                *(self.sizes[one] for one in letters), most=2, seed=2 * self.seed + number
            ).astype(kind)
            for number, letters in enumerate(self.letters)
        ]

    def arguments(self) -> list[np.ndarray | None]:
        """The operands, None for one that is a constant of the program."""
        return [
            None if self.has_constant and batch == SAME else operand
            for operand, batch in zip(self.operands(), BATCHES[self.batch], strict=True)
        ]

    def multiplied(self, left: Any, right: Any, after: Callable[[Any], Any]) -> jax.Array:
        """The product in JAX, and what is done with each of its batch."""
        arrays, axes = [], []
        made = zip((left, right), self.letters, BATCHES[self.batch], strict=True)
        for array, letters, batch in made:
            is_broadcast = batch == BROADCAST
            shape = (self.sizes["n"], *array.shape)
            arrays.append(jnp.broadcast_to(array, shape) if is_broadcast else array)
            axes.append(0 if is_broadcast else letters.find("n") if batch == OWN else None)

        def one(left: Any, right: Any) -> Any:
            kind, subscripts = DTYPES[self.dtype], PRODUCTS[self.product]
            # XLA:CPU cannot add up all products of bfloat16 in float32; up to 128 they are exact.
            wide = None if self.dtype == "bfloat16" else kind
            y = jnp.einsum(subscripts, left, right, preferred_element_type=wide)
            return after(y.astype(kind))

        return jax.vmap(one, axes)(*arrays)

    def compute(self, left: Any, right: Any) -> jax.Array:
        """In JAX: what follows is part of what is done for each of the batch."""
        if self.has_constant:
            made = [np.asarray(each) for each in self.operands()]
            left, right = (
                jnp.asarray(kept) if given is None else given
                for given, kept in zip((left, right), made, strict=True)
            )
        if self.follow in AFTER_BATCH:
            every = self.multiplied(left, right, lambda y: y)
            return AFTER_BATCH[self.follow](jnp, every)
        if self.follow in ROUNDED:
            return self.multiplied(left, right, _rounded(self.rank)[self.follow][0])
        return self.multiplied(left, right, partial(_exact(self.rank)[self.follow], jnp))

    def true_product(self) -> np.ndarray:
        """The product in NumPy, in float64, for the whole batch at once."""
        result = PRODUCTS[self.product].split("->")[1]
        operands = [operand.astype(np.float64) for operand in self.operands()]
        if self.batch == "both-broadcast":
            one = np.einsum(PRODUCTS[self.product], *operands)
            return np.broadcast_to(one, (self.sizes["n"], *np.shape(one)))
        return np.einsum(f"{','.join(self.letters)}->n{result}", *operands)

    def reference(self, *_: Any) -> Any:
        """In NumPy what `compute` returns; a `Rounded` where that is not exact."""
        y = self.true_product()
        if self.follow in ROUNDED:
            return _rounded(self.rank)[self.follow][1](y)
        found = np.asarray((_exact(self.rank) | AFTER_BATCH)[self.follow](np, y))
        return found.astype(DTYPES[self.dtype]) if found.dtype == np.float64 else found

    def member(self) -> Member:
        """The variant as one program of a case."""
        numerics = COMPOSITE if self.follow in ROUNDED else EXACT
        return Member(str(self), self.arguments, self.compute, self.reference, numerics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient(Variant):
    """The gradient of a sum of squares by one of the two operands."""

    by: int = 0
    follow: str = "gradient of squares"

    def __str__(self) -> str:
        return f"{Variant.__str__(self)} by the {('left', 'right')[self.by]}"

    def compute(self, left: Any, right: Any) -> jax.Array:
        """In JAX, of the whole batch at once."""

        def squares(left: Any, right: Any) -> jax.Array:
            y = self.multiplied(left, right, lambda y: y)
            return jnp.sum(y * y)

        return jax.grad(squares, self.by)(left, right)

    def reference(self, *_: Any) -> np.ndarray:
        """The product of twice the product and of the other operand."""
        y, result = 2 * self.true_product(), PRODUCTS[self.product].split("->")[1]
        other = self.operands()[1 - self.by].astype(np.float64)
        mine, its = self.letters[self.by], self.letters[1 - self.by]
        return np.einsum(f"n{result},{its}->{mine}", y, other).astype(DTYPES[self.dtype])


# --- The cases ------------------------------------------------------------------------------------

_NOT_REDUCED = {
    *("nothing", "product of signs", "place of the largest", "place of the smallest", "picked"),
    *("sum of picked", "count of positives", "any above", "sorted", "logsumexp", "picked rows"),
    "softmax under a mask",
}
_NOT_AT_ONCE_AFTER_ROWS = {"below the largest", "softmax", *AFTER_BATCH}


def fused_as(variant: Variant) -> str:
    """Which kind of kernel that a release is wrong in computes it, product and reduction at once.

    Empty if none does. XLA:CPU reduces rows at once and wrongly in JAX 0.9.1 to 0.10.2, what is
    done to each number before that (and float64) in 0.10.2 only, and products with a matrix that is
    broadcast in 0.10.2 to 0.11.2. All others of the releases that were tried are right.
    """
    if variant.size in (SMALL, EDGE) or variant.dtype not in ("float32", "float64"):
        return ""
    is_first = variant.place == "first"
    if variant.product == "right-turned" and BATCHES[variant.batch][1] == BROADCAST:
        return "" if variant.follow in _NOT_REDUCED else "matrices-reduced"
    if variant.product == "matrix-vector" and variant.batch == "right" and is_first:
        if variant.follow in _NOT_REDUCED | _NOT_AT_ONCE_AFTER_ROWS:
            return ""
        is_squared = variant.follow in ("sum of squares", "sum of positives")
        return "rows-squared" if is_squared else "rows-reduced"
    is_there = (variant.product, variant.batch) == ("vectors", "left-broadcast") and is_first
    return "rows-squared" if is_there and variant.follow == "square" else ""


FUSED = ("rows-reduced", "rows-squared", "matrices-reduced")


def every(size: str) -> Iterator[Variant]:
    """Each product batched in each way, and each of the follows after each product.

    Of small ones there is one of each way to batch each product: they are there to compare with.
    """
    ways = list(BATCHES)
    for p, product in enumerate(PRODUCTS):
        after = follows(product)
        for b, batch in enumerate(ways):
            rounds = range(-(-len(after) // len(ways)))
            for t in rounds if size == LARGE else [p % (len(after) // len(ways))]:
                number = len(ways) * t + (b + p) % len(ways)
                if number >= len(after):
                    continue
                place = PLACES[(p + b + t) % len(PLACES)]
                if batch == "left" and "k" in PRODUCTS[product] and place == "last":
                    place = "middle"  # XLA:GPU of JAX 0.10.2 refuses it: it finds no tile sizes
                yield Variant(
                    product=product,
                    batch=batch,
                    follow=after[number],
                    size=size,
                    place=place,
                    has_constant=bool((b + t) % 2),
                    seed=1 + number + 100 * p,
                )


def fused(dtype: str) -> Iterator[Variant]:
    """All large ones that XLA:CPU of JAX 0.10.2 got wrong."""
    all_of_it = combinations(PRODUCTS, BATCHES, PLACES)
    for number, (product, batch, place) in enumerate(all_of_it):
        for f, follow in enumerate(follows(product)):
            variant = Variant(
                product=product,
                batch=batch,
                follow=follow,
                place=place,
                dtype=dtype,
                seed=1 + f + 100 * number,
            )
            # A third of the many that follow matrices, another one for each place of the batch.
            if fused_as(variant) and (variant.rank < 2 or PLACES[f % 3] == place):
                yield variant


def around_the_edge(*sizes: str) -> Iterator[Variant]:
    """What XLA:CPU of JAX 0.10.2 got wrong, by size: some right, some just past that, some far."""
    reduced = ("sum", "sum of squares", "largest", "smallest", "mean")
    more = ("softmax", "sum of the batch")
    where = (
        ("matrix-vector", "right", reduced),
        ("right-turned", "right-broadcast", reduced[:3] + more),
        ("right-turned", "both-broadcast", reduced[3:] + more),
    )
    for number, (size, (product, batch, after)) in enumerate(combinations(sizes, where)):
        for f, follow in enumerate(after):
            seed = 1 + f + 100 * number
            yield Variant(product=product, batch=batch, follow=follow, size=size, seed=seed)


def of_dtype(dtype: str) -> Iterator[Variant]:
    """Products of a type, and what follows them; each in one or two ways."""
    ways = list(BATCHES)
    for p, product in enumerate(PRODUCTS):
        exact = [name for name in follows(product) if name not in ROUNDED]
        for t in range(1 + p % 2):
            yield Variant(
                product=product,
                batch=ways[(p + 2 * t) % len(ways)],
                follow=exact[(3 * p + 7 * t) % len(exact)],
                place=PLACES[(p + t) % len(PLACES)],
                dtype=dtype,
                seed=1 + t + 100 * p,
            )


def gradients() -> Iterator[Gradient]:
    """Gradients of each product by both operands, in half of the ways to batch it."""
    for p, product in enumerate(PRODUCTS):
        for b, batch in enumerate(BATCHES):
            by, place = (b + p) // 2 % 2, PLACES[(p + b) % len(PLACES)]
            if (p + b) % 2:
                yield Gradient(product=product, batch=batch, place=place, by=by, seed=p + b)


def _case(id: str, claim: str, variants: Sequence[Variant], **how: Any) -> Case:  # noqa: A002
    return case_of_members(id, claim, [variant.member() for variant in variants], **how)


def _cases() -> Iterator[Case]:
    ranks = {"rows": (0, 1), "matrices": (2,)}
    for (name, axes), size in combinations(ranks.items(), (SMALL, LARGE)):
        yield _case(
            f"class-product-{name}-{size}",
            f"{size} products, batched in every way, and what follows them",
            [each for each in every(size) if each.rank in axes and not fused_as(each)],
        )
    at_once = {
        str(each): each for each in (*every(LARGE), *fused("float32"), *around_the_edge(PAST, FAR))
    }
    for kind in FUSED:
        yield _case(
            f"class-product-{kind}",
            "large products that are reduced in the same kernel",
            [each for each in at_once.values() if fused_as(each) == kind],
        )
    yield _case(
        "class-product-edge",
        "the largest products that compilers still compute in the ordinary way",
        [*around_the_edge(EDGE)],
    )
    for dtype in DTYPES:
        if dtype != "float32":
            yield _case(
                f"class-product-{dtype}",
                f"large products of {dtype}, and what follows them",
                [each for each in of_dtype(dtype) if not fused_as(each)],
                context=with_x64 if dtype == "float64" else nullcontext,
            )
    yield _case(
        "class-product-float64-reduced",
        "large products of float64 that are reduced in the same kernel",
        [each for each in fused("float64") if each.product == "matrix-vector"],
        context=with_x64,
    )
    yield _case(
        "class-product-gradient", "gradients of products, batched in every way", [*gradients()]
    )


PRODUCT_CLASS_CASES = tuple(_cases())
