"""A program that jaxlib 0.10.2 computes wrongly on a CPU: `jitcount run --check` says so."""

import jax
import jax.numpy as jnp


@jax.jit
@jax.vmap
def norm(row: jax.Array) -> jax.Array:
    """The squared norm of a row, after a product that does not change it."""
    return jnp.sum((jnp.eye(3) @ row) ** 2)


def main() -> None:
    """Print the norm of the last of 33,000 rows."""
    rows = jnp.arange(99_000.0).reshape(-1, 3)
    print(f"norm of the last row {norm(rows)[-1]:.4e}")


if __name__ == "__main__":
    main()
