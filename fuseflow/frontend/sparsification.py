"""Models that are made sparse on their way in: `--sparsify`, `--sparsity` and the argument `sparsity` of `fuseflow.compile`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.errors import FrontendError, SparsityError
from fuseflow.frontend.model_spec import ModelSpec

if TYPE_CHECKING:
    from fuseflow.sparsity.spec import SparseSpec


def as_sparsity(value: SparseSpec | str | Path | None) -> SparseSpec | Path | None:
    """Return the value of `ModelSpec.sparsity`: a spec as it is, the spec in a YAML file, or the path of a directory."""
    if not isinstance(value, str | Path):
        return value
    from fuseflow.sparsity.spec import read_spec

    path = Path(value)
    return path if path.is_dir() else read_spec(path)


@contextmanager
def sparsified(model: Any, spec: ModelSpec, *, owned: bool) -> Iterator[Any]:
    """Yield a model that is sparse as its spec says, or the model itself without such a spec. Inside the block, random numbers
    follow the seed of the spec. A model that is not `owned` is the user's, and is copied.

    Raise `SparsityError` for a spec that does not fit the model, and `FrontendError` for a model that has no weights to be named.
    """
    if not spec.sparsity:
        yield model
        return
    import torch

    if not isinstance(model, torch.nn.Module):
        raise FrontendError(
            f"a {type(model).__name__} cannot be made sparse", hint="a `torch.nn.Module` has weights and intermediates with names"
        )
    from fuseflow.sparsity.weights import replica

    sparse = model if owned else replica(model)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(spec.seed)
        _make_sparse(sparse, spec)
        yield sparse


def _make_sparse(model: Any, spec: ModelSpec) -> None:
    from fuseflow.sparsity.application import sparsify
    from fuseflow.sparsity.saved import load_sparsity
    from fuseflow.sparsity.spec import SparseSpec

    match spec.sparsity:
        case SparseSpec():
            sparsify(model, spec.sparsity)
        case Path():
            load_sparsity(model, spec.sparsity)
        case unknown:
            raise SparsityError(
                f"`{unknown!r}` does not say what is sparse", hint="give a `SparseSpec`, or the path of a directory"
            )
