"""Views: a stored tensor that is seen in other dimensions, a reshape between regions. It takes no graph, no cycles and no traffic, since
the memory is the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuseflow.einsum.nodes import Access, Einsum, Index, TensorType, index_names
from fuseflow.einsum.text import show_einsum
from fuseflow.errors import FusionError
from fuseflow.estimate import TensorStatistics
from fuseflow.estimate.statistics import view_statistics
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.view import regroup_format, regroup_tensor


@dataclass(frozen=True, slots=True)
class TensorView:
    """The tensor `source` under the name, in the format and with the dimensions of `type`; and what is expected of its levels."""

    source: str
    type: TensorType
    statistics: TensorStatistics

    @property
    def name(self) -> str:
        return self.type.name

    def of(self, tensor: Tensor) -> Tensor:
        """The stored tensor, seen so."""
        assert self.type.format is not None
        return regroup_tensor(tensor, self.type.format, self.type.stored_shape)


def view_tensor(source: TensorType, format: Format, known: TensorStatistics, type: TensorType) -> TensorView:
    """The view of `source` as `type` says, in this format. Its sparse levels are those of the source, dense ones are full."""
    assert source.format is not None
    statistics = view_statistics(known, source.format, format, type.stored_shape)
    return TensorView(source.name, replace(type, format=format, dtype=source.dtype, fill=source.fill), statistics)


def source_of(view: Einsum) -> Access:
    """What a view (`einsum.splits.is_view`) sees."""
    assert isinstance(view.body, Access)
    return view.body


def view_format(view: Einsum, source: TensorType) -> Format | None:
    """The format in which `source` is seen, None if it cannot be seen so."""
    assert source.format is not None
    return regroup_format(source.format, _groups(source_of(view).indices), _groups(view.indices))


def needed_order(view: Einsum, format: Format | None) -> tuple[int, ...]:
    """The order in which dense dimensions of the source must be stored for it to be seen, in `format` if one is asked for."""
    groups = _groups(view.indices)
    stored = [part for d in (format.order if format is not None else range(len(groups))) for part in groups[d]]
    return tuple(d for d, _ in sorted(enumerate(_groups(source_of(view).indices)), key=lambda pair: stored.index(pair[1][0])))


def refuse_view(view: Einsum, source: TensorType, called: str) -> FusionError:
    """Why a tensor that is not dense cannot be seen so; `called` by the user."""
    assert source.format is not None
    return FusionError(
        f"`{called}` is stored {source.format.short()}: it cannot be reshaped as in `{show_einsum(view)}`, "
        "since only dense levels come apart or together",
        hint=f"store it dense (`--format {called}=dense`), or reshape it before it enters the model",
        span=view.location.span,
    )


def _groups(indices: tuple[Index, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(index_names((index,)) for index in indices)
