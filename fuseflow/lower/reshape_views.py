"""Views: a stored tensor in other dimensions, which is a reshape between regions. A view takes no graph, no cycles and no
traffic, since the memory is the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fuseflow.costs import TensorStatistics
from fuseflow.costs.statistics import view_statistics
from fuseflow.einsum.format_inference import TypedProgram
from fuseflow.einsum.nodes import Access, Einsum, Index, TensorType, index_names
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import FusionError
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.restriction import regroup_format, regroup_tensor


@dataclass(frozen=True, slots=True)
class TensorView:
    """A view of the tensor `source`. `type` has its name, its format and its dimensions, and `statistics` are those expected of
    its levels."""

    source: str
    type: TensorType
    statistics: TensorStatistics

    @property
    def name(self) -> str:
        """The name of the view."""
        return self.type.name

    def of(self, tensor: Tensor) -> Tensor:
        """Return the stored tensor in the dimensions and format of the view."""
        assert self.type.format is not None
        return regroup_tensor(tensor, self.type.format, self.type.stored_shape)


def add_views(memory: dict[str, Tensor], views: Iterable[TensorView]) -> None:
    """Add views to `memory`, which has the tensors that they show; a view may show an earlier one."""
    for view in views:
        memory[view.name] = view.of(memory[view.source])


def view_tensor(source: TensorType, format: Format, source_statistics: TensorStatistics, type: TensorType) -> TensorView:
    """Return the view of `source` in this format and the dimensions of `type`; sparse levels stay, and dense ones are full."""
    assert source.format is not None
    statistics = view_statistics(source_statistics, source.format, format, type.stored_shape)
    return TensorView(source.name, replace(type, format=format, dtype=source.dtype, fill=source.fill), statistics)


def source_of(view: Einsum) -> Access:
    """Return the access to the tensor that a view (an Einsum in `einsum.reshapes.ReshapeElimination.views`) shows."""
    assert isinstance(view.body, Access)
    return view.body


def view_format(view: Einsum, source: TensorType) -> Format | None:
    """Return the format that a view of `source` has, None if the dimensions cannot be regrouped in the format of `source`."""
    assert source.format is not None
    return regroup_format(source.format, _groups(source_of(view).indices), _groups(view.indices))


def with_dense_sources(typed: TypedProgram, views: frozenset[str]) -> TypedProgram:
    """Return the program with results dense of which a view cannot be made, or in one order of their levels alone. Declarations stay.

    The gradient of `x[rows]`, for example, stores no row that is not among them, and has the dimensions of x only when it is dense.
    """
    while True:
        types, source = typed.program.declared, typed.source
        fixed = views | {t.name for t in source.tensors if t.format is not None}
        shown = [(e, types[source_of(e).tensor]) for e in source.einsums if e.name in views]
        results = [(view, type) for view, type in shown if type.name in source.defined.keys() - fixed]
        sparse = next((type for view, type in results if _needs_order(view, type)), None)
        if sparse is None:
            return typed
        others = tuple(t for t in source.tensors if t.name != sparse.name)
        dense = replace(sparse, format=Format.dense(len(sparse.shape)))
        typed = typed.rewritten(replace(source, tensors=(*others, dense)))


def _needs_order(view: Einsum, source: TensorType) -> bool:
    """Return whether a view of a tensor cannot be made, or only if a sparse level of it is stored before the regrouped dimensions."""
    assert source.format is not None
    if view_format(view, source) is None:
        return not source.format.all_dense
    groups = _groups(source_of(view).indices)
    regrouped = {name for group in (*groups, *_groups(view.indices)) if len(group) > 1 for name in group}
    places = [place for place, d in enumerate(source.format.order) if not regrouped.isdisjoint(groups[d])]
    return any(not level.full for level in source.format.levels[: max(places, default=0)])


def required_order(view: Einsum, format: Format | None) -> tuple[int, ...]:
    """Return the order of the dense dimensions of the source that a view needs; a view in `format`, if it is not None."""
    groups = _groups(view.indices)
    stored = [part for d in (format.order if format is not None else range(len(groups))) for part in groups[d]]
    return tuple(d for d, _ in sorted(enumerate(_groups(source_of(view).indices)), key=lambda pair: stored.index(pair[1][0])))


def view_refusal(view: Einsum, source: TensorType, user_name: str) -> FusionError:
    """Return the error for a view of a tensor that cannot be regrouped. `user_name` is the user's name of the tensor."""
    assert source.format is not None
    return FusionError(
        f"`{user_name}` is stored {source.format.short()}: it cannot be reshaped as in `{show_einsum(view)}`, "
        "since only dense levels come apart or together",
        hint=f"store it dense (`--format {user_name}=dense`), or reshape it before it enters the model",
        span=view.location.span,
    )


def _groups(indices: tuple[Index, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(index_names((index,)) for index in indices)
