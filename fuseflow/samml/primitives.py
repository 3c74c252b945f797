"""The primitives: all node types, whose classes stand in files by their purpose (`node` lists the facts of a class).

The meaning of every primitive is in the project's stream contract (docs/reference/streams.md), its time in `fuseflow.sim.reference`;
`fuseflow.sim.engine` does the same faster. docs/develop/extending.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, get_args

from fuseflow.samml.compute import *  # noqa: F403  (all names of a file, so that a new primitive stands in that file alone)
from fuseflow.samml.compute import ComputePrimitive
from fuseflow.samml.joins import *  # noqa: F403
from fuseflow.samml.joins import JoinPrimitive
from fuseflow.samml.levels import *  # noqa: F403
from fuseflow.samml.levels import LevelPrimitive
from fuseflow.samml.moves import *  # noqa: F403
from fuseflow.samml.moves import MovePrimitive
from fuseflow.samml.node import Attribute, Node, attributes_of
from fuseflow.samml.writers import *  # noqa: F403  # noqa: F403
from fuseflow.samml.writers import LaneWriter, WritePrimitive

Primitive: TypeAlias = LevelPrimitive | JoinPrimitive | MovePrimitive | ComputePrimitive | WritePrimitive | LaneWriter
"""The union of all primitives: a `match` over it that ends in `assert_never` is complete."""

NODE_TYPES: tuple[type[Primitive], ...] = get_args(Primitive)

ATTRIBUTES: Mapping[type[Node], tuple[Attribute, ...]] = {kind: attributes_of(kind) for kind in NODE_TYPES}
"""The attributes of each primitive, in the order in which the written forms show them."""
