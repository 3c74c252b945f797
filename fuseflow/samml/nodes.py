"""A single module from which the graph and every primitive can be imported.

`node` has the facts that a primitive declares, and `primitives` defines the classes.
"""

from fuseflow.samml.graph import Edge as Edge
from fuseflow.samml.graph import Graph as Graph
from fuseflow.samml.hops import Hops as Hops
from fuseflow.samml.hops import NodeHops as NodeHops
from fuseflow.samml.hops import Turn as Turn
from fuseflow.samml.node import Attribute as Attribute
from fuseflow.samml.node import Node as Node
from fuseflow.samml.node import Pointwise as Pointwise
from fuseflow.samml.node import TensorReader as TensorReader
from fuseflow.samml.node import TensorUser as TensorUser
from fuseflow.samml.node import TensorWriter as TensorWriter
from fuseflow.samml.node import Workspace as Workspace
from fuseflow.samml.node import require_entry as require_entry
from fuseflow.samml.node import stream_name as stream_name
from fuseflow.samml.node import upstream as upstream
from fuseflow.samml.primitives import *  # noqa: F403  (all of them, so that a new one is listed once)
from fuseflow.samml.stream_tensor_types import TRANSFERS as TRANSFERS
from fuseflow.samml.stream_tensor_types import Kind as Kind
from fuseflow.samml.stream_tensor_types import Port as Port
from fuseflow.samml.stream_tensor_types import StreamType as StreamType
from fuseflow.samml.stream_tensor_types import TensorDecl as TensorDecl
from fuseflow.samml.stream_tensor_types import Transfer as Transfer
from fuseflow.samml.stream_tensor_types import show_tile as show_tile
from fuseflow.samml.stream_tensor_types import transfer as transfer
