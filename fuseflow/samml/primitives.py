"""The primitives: all node types, whose classes stand in files by their purpose (`node` lists the facts of a class).

The meaning of every primitive is in the project's stream contract (docs/streams.md), its time in `fuseflow.sim.reference`;
`fuseflow.sim.engine` does the same faster. docs/extending.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, get_args

from fuseflow.samml.compute import Accumulate as Accumulate
from fuseflow.samml.compute import Alu as Alu
from fuseflow.samml.compute import Load as Load
from fuseflow.samml.compute import Operand as Operand
from fuseflow.samml.compute import Reduce as Reduce
from fuseflow.samml.joins import Align as Align
from fuseflow.samml.joins import Drop as Drop
from fuseflow.samml.joins import Flatten as Flatten
from fuseflow.samml.joins import Join as Join
from fuseflow.samml.joins import Select as Select
from fuseflow.samml.joins import SplitLevel as SplitLevel
from fuseflow.samml.lane_writers import WriteLaneLevel as WriteLaneLevel
from fuseflow.samml.lane_writers import WriteLaneValues as WriteLaneValues
from fuseflow.samml.levels import Locate as Locate
from fuseflow.samml.levels import Range as Range
from fuseflow.samml.levels import Root as Root
from fuseflow.samml.levels import Scan as Scan
from fuseflow.samml.moves import Fork as Fork
from fuseflow.samml.moves import Merge as Merge
from fuseflow.samml.moves import Permute as Permute
from fuseflow.samml.moves import Repeat as Repeat
from fuseflow.samml.node import Attribute, Node, attributes_of
from fuseflow.samml.writers import WriteLevel as WriteLevel
from fuseflow.samml.writers import WriteValues as WriteValues

Primitive: TypeAlias = (
    Root | Scan | Range | Locate | Join | Align | Repeat | Load | Alu | Reduce | Accumulate | Permute | Drop | Select
    | Flatten | SplitLevel | Fork | Merge | WriteLevel | WriteValues | WriteLaneLevel | WriteLaneValues
)  # fmt: skip
"""The union of all primitives: a `match` over it that ends in `assert_never` is complete."""

NODE_TYPES: tuple[type[Primitive], ...] = get_args(Primitive)

ATTRIBUTES: Mapping[type[Node], tuple[Attribute, ...]] = {kind: attributes_of(kind) for kind in NODE_TYPES}
"""The attributes of each primitive, in the order in which the written forms show them."""
