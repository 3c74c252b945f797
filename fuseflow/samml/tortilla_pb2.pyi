# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamID(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class RefStream(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: StreamID
    name: str
    def __init__(self, id: _Optional[_Union[StreamID, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class CrdStream(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: StreamID
    name: str
    def __init__(self, id: _Optional[_Union[StreamID, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class ValStream(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: StreamID
    name: str
    def __init__(self, id: _Optional[_Union[StreamID, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class RepSigStream(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: StreamID
    name: str
    def __init__(self, id: _Optional[_Union[StreamID, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class ComalGraph(_message.Message):
    __slots__ = ("name", "channel_size", "graph", "tensors", "outputs", "fiber_fifos", "depths")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_SIZE_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    FIBER_FIFOS_FIELD_NUMBER: _ClassVar[int]
    DEPTHS_FIELD_NUMBER: _ClassVar[int]
    name: str
    channel_size: int
    graph: ProgramGraph
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    outputs: _containers.RepeatedScalarFieldContainer[str]
    fiber_fifos: _containers.RepeatedCompositeFieldContainer[Edge]
    depths: _containers.RepeatedCompositeFieldContainer[Depth]
    def __init__(self, name: _Optional[str] = ..., channel_size: _Optional[int] = ..., graph: _Optional[_Union[ProgramGraph, _Mapping]] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., outputs: _Optional[_Iterable[str]] = ..., fiber_fifos: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ..., depths: _Optional[_Iterable[_Union[Depth, _Mapping]]] = ...) -> None: ...

class ProgramGraph(_message.Message):
    __slots__ = ("name", "operators")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    operators: _containers.RepeatedCompositeFieldContainer[Operation]
    def __init__(self, name: _Optional[str] = ..., operators: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("name", "id", "root", "joiner", "fiber_lookup", "fiber_write", "repeat", "repeatsig", "alu", "reduce", "coord_hold", "coord_mask", "coord_drop", "array", "spacc", "val_write", "func", "broadcast", "fork", "join", "gen_ref", "locate", "concat", "joiner_ext", "fiber_lookup_ext", "alu_ext", "reduce_ext", "spacc_ext", "join_ext", "range", "align", "drop", "flatten", "split", "permute", "primitive", "select")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    JOINER_FIELD_NUMBER: _ClassVar[int]
    FIBER_LOOKUP_FIELD_NUMBER: _ClassVar[int]
    FIBER_WRITE_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    REPEATSIG_FIELD_NUMBER: _ClassVar[int]
    ALU_FIELD_NUMBER: _ClassVar[int]
    REDUCE_FIELD_NUMBER: _ClassVar[int]
    COORD_HOLD_FIELD_NUMBER: _ClassVar[int]
    COORD_MASK_FIELD_NUMBER: _ClassVar[int]
    COORD_DROP_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    SPACC_FIELD_NUMBER: _ClassVar[int]
    VAL_WRITE_FIELD_NUMBER: _ClassVar[int]
    FUNC_FIELD_NUMBER: _ClassVar[int]
    BROADCAST_FIELD_NUMBER: _ClassVar[int]
    FORK_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    GEN_REF_FIELD_NUMBER: _ClassVar[int]
    LOCATE_FIELD_NUMBER: _ClassVar[int]
    CONCAT_FIELD_NUMBER: _ClassVar[int]
    JOINER_EXT_FIELD_NUMBER: _ClassVar[int]
    FIBER_LOOKUP_EXT_FIELD_NUMBER: _ClassVar[int]
    ALU_EXT_FIELD_NUMBER: _ClassVar[int]
    REDUCE_EXT_FIELD_NUMBER: _ClassVar[int]
    SPACC_EXT_FIELD_NUMBER: _ClassVar[int]
    JOIN_EXT_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    ALIGN_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    FLATTEN_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    PERMUTE_FIELD_NUMBER: _ClassVar[int]
    PRIMITIVE_FIELD_NUMBER: _ClassVar[int]
    SELECT_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: int
    root: Generator
    joiner: Joiner
    fiber_lookup: FiberLookup
    fiber_write: FiberWrite
    repeat: Repeat
    repeatsig: RepeatSig
    alu: ALU
    reduce: Reduce
    coord_hold: CoordHold
    coord_mask: CoordMask
    coord_drop: CoordDrop
    array: ArrayVals
    spacc: SparseAccumulator
    val_write: ValWrite
    func: Intrinsic
    broadcast: Broadcast
    fork: Fork
    join: Join
    gen_ref: GenRef
    locate: Locate
    concat: Concat
    joiner_ext: Joiner
    fiber_lookup_ext: FiberLookup
    alu_ext: ALU
    reduce_ext: Reduce
    spacc_ext: SparseAccumulator
    join_ext: Join
    range: Range
    align: Align
    drop: Drop
    flatten: Flatten
    split: Split
    permute: Permute
    primitive: Primitive
    select: Select
    def __init__(self, name: _Optional[str] = ..., id: _Optional[int] = ..., root: _Optional[_Union[Generator, _Mapping]] = ..., joiner: _Optional[_Union[Joiner, _Mapping]] = ..., fiber_lookup: _Optional[_Union[FiberLookup, _Mapping]] = ..., fiber_write: _Optional[_Union[FiberWrite, _Mapping]] = ..., repeat: _Optional[_Union[Repeat, _Mapping]] = ..., repeatsig: _Optional[_Union[RepeatSig, _Mapping]] = ..., alu: _Optional[_Union[ALU, _Mapping]] = ..., reduce: _Optional[_Union[Reduce, _Mapping]] = ..., coord_hold: _Optional[_Union[CoordHold, _Mapping]] = ..., coord_mask: _Optional[_Union[CoordMask, _Mapping]] = ..., coord_drop: _Optional[_Union[CoordDrop, _Mapping]] = ..., array: _Optional[_Union[ArrayVals, _Mapping]] = ..., spacc: _Optional[_Union[SparseAccumulator, _Mapping]] = ..., val_write: _Optional[_Union[ValWrite, _Mapping]] = ..., func: _Optional[_Union[Intrinsic, _Mapping]] = ..., broadcast: _Optional[_Union[Broadcast, _Mapping]] = ..., fork: _Optional[_Union[Fork, _Mapping]] = ..., join: _Optional[_Union[Join, _Mapping]] = ..., gen_ref: _Optional[_Union[GenRef, _Mapping]] = ..., locate: _Optional[_Union[Locate, _Mapping]] = ..., concat: _Optional[_Union[Concat, _Mapping]] = ..., joiner_ext: _Optional[_Union[Joiner, _Mapping]] = ..., fiber_lookup_ext: _Optional[_Union[FiberLookup, _Mapping]] = ..., alu_ext: _Optional[_Union[ALU, _Mapping]] = ..., reduce_ext: _Optional[_Union[Reduce, _Mapping]] = ..., spacc_ext: _Optional[_Union[SparseAccumulator, _Mapping]] = ..., join_ext: _Optional[_Union[Join, _Mapping]] = ..., range: _Optional[_Union[Range, _Mapping]] = ..., align: _Optional[_Union[Align, _Mapping]] = ..., drop: _Optional[_Union[Drop, _Mapping]] = ..., flatten: _Optional[_Union[Flatten, _Mapping]] = ..., split: _Optional[_Union[Split, _Mapping]] = ..., permute: _Optional[_Union[Permute, _Mapping]] = ..., primitive: _Optional[_Union[Primitive, _Mapping]] = ..., select: _Optional[_Union[Select, _Mapping]] = ...) -> None: ...

class Generator(_message.Message):
    __slots__ = ("label", "tensor", "output_ref")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF_FIELD_NUMBER: _ClassVar[int]
    label: str
    tensor: str
    output_ref: RefStream
    def __init__(self, label: _Optional[str] = ..., tensor: _Optional[str] = ..., output_ref: _Optional[_Union[RefStream, _Mapping]] = ...) -> None: ...

class FiberLookup(_message.Message):
    __slots__ = ("input_ref", "output_ref", "output_crd", "index", "tensor", "mode", "format", "src", "root", "label", "sequential")
    INPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SRC_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SEQUENTIAL_FIELD_NUMBER: _ClassVar[int]
    input_ref: RefStream
    output_ref: RefStream
    output_crd: CrdStream
    index: str
    tensor: str
    mode: int
    format: str
    src: bool
    root: bool
    label: str
    sequential: bool
    def __init__(self, input_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., index: _Optional[str] = ..., tensor: _Optional[str] = ..., mode: _Optional[int] = ..., format: _Optional[str] = ..., src: bool = ..., root: bool = ..., label: _Optional[str] = ..., sequential: bool = ...) -> None: ...

class FiberWrite(_message.Message):
    __slots__ = ("ref", "input_crd", "index", "tensor", "mode_val", "format", "segsize", "crdsize", "size", "sink", "label")
    REF_FIELD_NUMBER: _ClassVar[int]
    INPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    MODE_VAL_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SEGSIZE_FIELD_NUMBER: _ClassVar[int]
    CRDSIZE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ref: bool
    input_crd: CrdStream
    index: str
    tensor: str
    mode_val: str
    format: str
    segsize: str
    crdsize: str
    size: str
    sink: bool
    label: str
    def __init__(self, ref: bool = ..., input_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., index: _Optional[str] = ..., tensor: _Optional[str] = ..., mode_val: _Optional[str] = ..., format: _Optional[str] = ..., segsize: _Optional[str] = ..., crdsize: _Optional[str] = ..., size: _Optional[str] = ..., sink: bool = ..., label: _Optional[str] = ...) -> None: ...

class ValWrite(_message.Message):
    __slots__ = ("input_val", "label", "crdsize", "segsize", "tensor", "sink")
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CRDSIZE_FIELD_NUMBER: _ClassVar[int]
    SEGSIZE_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    SINK_FIELD_NUMBER: _ClassVar[int]
    input_val: ValStream
    label: str
    crdsize: str
    segsize: str
    tensor: str
    sink: bool
    def __init__(self, input_val: _Optional[_Union[ValStream, _Mapping]] = ..., label: _Optional[str] = ..., crdsize: _Optional[str] = ..., segsize: _Optional[str] = ..., tensor: _Optional[str] = ..., sink: bool = ...) -> None: ...

class Joiner(_message.Message):
    __slots__ = ("join_type", "input_pairs", "index", "label", "output_refs", "output_crd", "payloads", "kind")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        INTERSECT: _ClassVar[Joiner.Type]
        UNION: _ClassVar[Joiner.Type]
    INTERSECT: Joiner.Type
    UNION: Joiner.Type
    class Payload(_message.Message):
        __slots__ = ("ref_stream", "val_stream")
        REF_STREAM_FIELD_NUMBER: _ClassVar[int]
        VAL_STREAM_FIELD_NUMBER: _ClassVar[int]
        ref_stream: RefStream
        val_stream: ValStream
        def __init__(self, ref_stream: _Optional[_Union[RefStream, _Mapping]] = ..., val_stream: _Optional[_Union[ValStream, _Mapping]] = ...) -> None: ...
    class JoinBundle(_message.Message):
        __slots__ = ("crd", "in_ref")
        CRD_FIELD_NUMBER: _ClassVar[int]
        IN_REF_FIELD_NUMBER: _ClassVar[int]
        crd: CrdStream
        in_ref: Joiner.Payload
        def __init__(self, crd: _Optional[_Union[CrdStream, _Mapping]] = ..., in_ref: _Optional[_Union[Joiner.Payload, _Mapping]] = ...) -> None: ...
    JOIN_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_PAIRS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REFS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    join_type: Joiner.Type
    input_pairs: _containers.RepeatedCompositeFieldContainer[Joiner.JoinBundle]
    index: str
    label: str
    output_refs: _containers.RepeatedCompositeFieldContainer[Joiner.Payload]
    output_crd: CrdStream
    payloads: _containers.RepeatedScalarFieldContainer[int]
    kind: str
    def __init__(self, join_type: _Optional[_Union[Joiner.Type, str]] = ..., input_pairs: _Optional[_Iterable[_Union[Joiner.JoinBundle, _Mapping]]] = ..., index: _Optional[str] = ..., label: _Optional[str] = ..., output_refs: _Optional[_Iterable[_Union[Joiner.Payload, _Mapping]]] = ..., output_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., payloads: _Optional[_Iterable[int]] = ..., kind: _Optional[str] = ...) -> None: ...

class Repeat(_message.Message):
    __slots__ = ("in_ref", "in_val", "out_ref", "out_val", "rep_ref", "rep_val", "label", "index", "root", "tensor", "signal")
    IN_REF_FIELD_NUMBER: _ClassVar[int]
    IN_VAL_FIELD_NUMBER: _ClassVar[int]
    OUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUT_VAL_FIELD_NUMBER: _ClassVar[int]
    REP_REF_FIELD_NUMBER: _ClassVar[int]
    REP_VAL_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    in_ref: RefStream
    in_val: ValStream
    out_ref: RefStream
    out_val: ValStream
    rep_ref: RefStream
    rep_val: ValStream
    label: str
    index: str
    root: bool
    tensor: str
    signal: Port
    def __init__(self, in_ref: _Optional[_Union[RefStream, _Mapping]] = ..., in_val: _Optional[_Union[ValStream, _Mapping]] = ..., out_ref: _Optional[_Union[RefStream, _Mapping]] = ..., out_val: _Optional[_Union[ValStream, _Mapping]] = ..., rep_ref: _Optional[_Union[RefStream, _Mapping]] = ..., rep_val: _Optional[_Union[ValStream, _Mapping]] = ..., label: _Optional[str] = ..., index: _Optional[str] = ..., root: bool = ..., tensor: _Optional[str] = ..., signal: _Optional[_Union[Port, _Mapping]] = ...) -> None: ...

class RepeatSig(_message.Message):
    __slots__ = ("input_crd", "output_rep_sig", "label", "index")
    INPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REP_SIG_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    input_crd: CrdStream
    output_rep_sig: RepSigStream
    label: str
    index: str
    def __init__(self, input_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_rep_sig: _Optional[_Union[RepSigStream, _Mapping]] = ..., label: _Optional[str] = ..., index: _Optional[str] = ...) -> None: ...

class ALU(_message.Message):
    __slots__ = ("vals", "crds", "stages", "output_val", "label", "stream_shape", "blocked", "scalar", "function", "operands")
    class AluOp(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ADD: _ClassVar[ALU.AluOp]
        SUB: _ClassVar[ALU.AluOp]
        MUL: _ClassVar[ALU.AluOp]
        DIV: _ClassVar[ALU.AluOp]
        EXP: _ClassVar[ALU.AluOp]
        SIN: _ClassVar[ALU.AluOp]
        COS: _ClassVar[ALU.AluOp]
        MAX: _ClassVar[ALU.AluOp]
        SCALARADD: _ClassVar[ALU.AluOp]
        SCALARMUL: _ClassVar[ALU.AluOp]
        SCALARDIV: _ClassVar[ALU.AluOp]
        RSQRT: _ClassVar[ALU.AluOp]
        SIGMOID: _ClassVar[ALU.AluOp]
        ELEMMUL: _ClassVar[ALU.AluOp]
    ADD: ALU.AluOp
    SUB: ALU.AluOp
    MUL: ALU.AluOp
    DIV: ALU.AluOp
    EXP: ALU.AluOp
    SIN: ALU.AluOp
    COS: ALU.AluOp
    MAX: ALU.AluOp
    SCALARADD: ALU.AluOp
    SCALARMUL: ALU.AluOp
    SCALARDIV: ALU.AluOp
    RSQRT: ALU.AluOp
    SIGMOID: ALU.AluOp
    ELEMMUL: ALU.AluOp
    class Vals(_message.Message):
        __slots__ = ("inputs", "output")
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        inputs: _containers.RepeatedCompositeFieldContainer[ValStream]
        output: ValStream
        def __init__(self, inputs: _Optional[_Iterable[_Union[ValStream, _Mapping]]] = ..., output: _Optional[_Union[ValStream, _Mapping]] = ...) -> None: ...
    class Crds(_message.Message):
        __slots__ = ("inputs", "output")
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        inputs: _containers.RepeatedCompositeFieldContainer[CrdStream]
        output: CrdStream
        def __init__(self, inputs: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., output: _Optional[_Union[CrdStream, _Mapping]] = ...) -> None: ...
    class Stage(_message.Message):
        __slots__ = ("inputs", "output", "op")
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        OP_FIELD_NUMBER: _ClassVar[int]
        inputs: _containers.RepeatedScalarFieldContainer[int]
        output: int
        op: ALU.AluOp
        def __init__(self, inputs: _Optional[_Iterable[int]] = ..., output: _Optional[int] = ..., op: _Optional[_Union[ALU.AluOp, str]] = ...) -> None: ...
    VALS_FIELD_NUMBER: _ClassVar[int]
    CRDS_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STREAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    SCALAR_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    vals: ALU.Vals
    crds: ALU.Crds
    stages: _containers.RepeatedCompositeFieldContainer[ALU.Stage]
    output_val: int
    label: str
    stream_shape: int
    blocked: bool
    scalar: float
    function: str
    operands: _containers.RepeatedCompositeFieldContainer[Operand]
    def __init__(self, vals: _Optional[_Union[ALU.Vals, _Mapping]] = ..., crds: _Optional[_Union[ALU.Crds, _Mapping]] = ..., stages: _Optional[_Iterable[_Union[ALU.Stage, _Mapping]]] = ..., output_val: _Optional[int] = ..., label: _Optional[str] = ..., stream_shape: _Optional[int] = ..., blocked: bool = ..., scalar: _Optional[float] = ..., function: _Optional[str] = ..., operands: _Optional[_Iterable[_Union[Operand, _Mapping]]] = ...) -> None: ...

class Reduce(_message.Message):
    __slots__ = ("input_val", "output_val", "label", "stream_shape", "blocked", "reduce_type", "function")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ADD: _ClassVar[Reduce.Type]
        MAX: _ClassVar[Reduce.Type]
        ADDSUM: _ClassVar[Reduce.Type]
    ADD: Reduce.Type
    MAX: Reduce.Type
    ADDSUM: Reduce.Type
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STREAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    REDUCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    input_val: ValStream
    output_val: ValStream
    label: str
    stream_shape: int
    blocked: bool
    reduce_type: Reduce.Type
    function: str
    def __init__(self, input_val: _Optional[_Union[ValStream, _Mapping]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., label: _Optional[str] = ..., stream_shape: _Optional[int] = ..., blocked: bool = ..., reduce_type: _Optional[_Union[Reduce.Type, str]] = ..., function: _Optional[str] = ...) -> None: ...

class SparseAccumulator(_message.Message):
    __slots__ = ("input_inner_crd", "output_inner_crd", "input_outer_crds", "input_val", "output_val", "order", "inner_crd", "outer_crds", "label", "output_outer_crds", "stream_shape", "blocked", "function")
    INPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_OUTER_CRDS_FIELD_NUMBER: _ClassVar[int]
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTER_CRDS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OUTER_CRDS_FIELD_NUMBER: _ClassVar[int]
    STREAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    input_inner_crd: CrdStream
    output_inner_crd: CrdStream
    input_outer_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    input_val: ValStream
    output_val: ValStream
    order: int
    inner_crd: str
    outer_crds: _containers.RepeatedScalarFieldContainer[str]
    label: str
    output_outer_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    stream_shape: int
    blocked: bool
    function: str
    def __init__(self, input_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_outer_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., input_val: _Optional[_Union[ValStream, _Mapping]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., order: _Optional[int] = ..., inner_crd: _Optional[str] = ..., outer_crds: _Optional[_Iterable[str]] = ..., label: _Optional[str] = ..., output_outer_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., stream_shape: _Optional[int] = ..., blocked: bool = ..., function: _Optional[str] = ...) -> None: ...

class ArrayVals(_message.Message):
    __slots__ = ("tensor", "input_ref", "output_val", "label", "stream_shape", "blocked", "sequential")
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    INPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STREAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    SEQUENTIAL_FIELD_NUMBER: _ClassVar[int]
    tensor: str
    input_ref: RefStream
    output_val: ValStream
    label: str
    stream_shape: int
    blocked: bool
    sequential: bool
    def __init__(self, tensor: _Optional[str] = ..., input_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., label: _Optional[str] = ..., stream_shape: _Optional[int] = ..., blocked: bool = ..., sequential: bool = ...) -> None: ...

class CoordHold(_message.Message):
    __slots__ = ("input_inner_crd", "input_outer_crd", "output_inner_crd", "output_outer_crd", "inner_crd", "outer_crd", "label")
    INPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    input_inner_crd: CrdStream
    input_outer_crd: CrdStream
    output_inner_crd: CrdStream
    output_outer_crd: CrdStream
    inner_crd: str
    outer_crd: str
    label: str
    def __init__(self, input_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., inner_crd: _Optional[str] = ..., outer_crd: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class CoordDrop(_message.Message):
    __slots__ = ("input_inner_crd", "input_outer_crd", "output_inner_crd", "output_outer_crd", "inner_crd", "outer_crd", "label")
    INPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    input_inner_crd: CrdStream
    input_outer_crd: CrdStream
    output_inner_crd: CrdStream
    output_outer_crd: CrdStream
    inner_crd: str
    outer_crd: str
    label: str
    def __init__(self, input_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., inner_crd: _Optional[str] = ..., outer_crd: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class CoordMask(_message.Message):
    __slots__ = ("input_inner_crd", "input_outer_crd", "input_ref", "output_inner_crd", "output_outer_crd", "output_ref")
    INPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF_FIELD_NUMBER: _ClassVar[int]
    input_inner_crd: CrdStream
    input_outer_crd: CrdStream
    input_ref: RefStream
    output_inner_crd: CrdStream
    output_outer_crd: CrdStream
    output_ref: RefStream
    def __init__(self, input_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_ref: _Optional[_Union[RefStream, _Mapping]] = ...) -> None: ...

class Locate(_message.Message):
    __slots__ = ("input_crd", "input_ref", "output_ref1", "output_ref2", "output_crd", "label", "parent_ref", "tensor", "level", "outermost")
    INPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF1_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF2_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PARENT_REF_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    OUTERMOST_FIELD_NUMBER: _ClassVar[int]
    input_crd: CrdStream
    input_ref: RefStream
    output_ref1: RefStream
    output_ref2: RefStream
    output_crd: CrdStream
    label: str
    parent_ref: RefStream
    tensor: str
    level: int
    outermost: bool
    def __init__(self, input_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_ref1: _Optional[_Union[RefStream, _Mapping]] = ..., output_ref2: _Optional[_Union[RefStream, _Mapping]] = ..., output_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., label: _Optional[str] = ..., parent_ref: _Optional[_Union[RefStream, _Mapping]] = ..., tensor: _Optional[str] = ..., level: _Optional[int] = ..., outermost: bool = ...) -> None: ...

class CrdBundle(_message.Message):
    __slots__ = ("input", "outputs")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    input: CrdStream
    outputs: _containers.RepeatedCompositeFieldContainer[CrdStream]
    def __init__(self, input: _Optional[_Union[CrdStream, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ...) -> None: ...

class RefBundle(_message.Message):
    __slots__ = ("input", "outputs")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    input: RefStream
    outputs: _containers.RepeatedCompositeFieldContainer[RefStream]
    def __init__(self, input: _Optional[_Union[RefStream, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[RefStream, _Mapping]]] = ...) -> None: ...

class ValBundle(_message.Message):
    __slots__ = ("input", "outputs")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    input: ValStream
    outputs: _containers.RepeatedCompositeFieldContainer[ValStream]
    def __init__(self, input: _Optional[_Union[ValStream, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[ValStream, _Mapping]]] = ...) -> None: ...

class RepSigBundle(_message.Message):
    __slots__ = ("input", "outputs")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    input: RepSigStream
    outputs: _containers.RepeatedCompositeFieldContainer[RepSigStream]
    def __init__(self, input: _Optional[_Union[RepSigStream, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[RepSigStream, _Mapping]]] = ...) -> None: ...

class Broadcast(_message.Message):
    __slots__ = ("label", "crd", "ref", "val", "repsig")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CRD_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    REPSIG_FIELD_NUMBER: _ClassVar[int]
    label: str
    crd: CrdBundle
    ref: RefBundle
    val: ValBundle
    repsig: RepSigBundle
    def __init__(self, label: _Optional[str] = ..., crd: _Optional[_Union[CrdBundle, _Mapping]] = ..., ref: _Optional[_Union[RefBundle, _Mapping]] = ..., val: _Optional[_Union[ValBundle, _Mapping]] = ..., repsig: _Optional[_Union[RepSigBundle, _Mapping]] = ...) -> None: ...

class Fork(_message.Message):
    __slots__ = ("label", "crd", "ref", "val", "repsig")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CRD_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    REPSIG_FIELD_NUMBER: _ClassVar[int]
    label: str
    crd: CrdBundle
    ref: RefBundle
    val: ValBundle
    repsig: RepSigBundle
    def __init__(self, label: _Optional[str] = ..., crd: _Optional[_Union[CrdBundle, _Mapping]] = ..., ref: _Optional[_Union[RefBundle, _Mapping]] = ..., val: _Optional[_Union[ValBundle, _Mapping]] = ..., repsig: _Optional[_Union[RepSigBundle, _Mapping]] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("label", "crd", "ref", "val", "repsig", "levels")
    class CrdBundle(_message.Message):
        __slots__ = ("output", "inputs")
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        output: CrdStream
        inputs: _containers.RepeatedCompositeFieldContainer[CrdStream]
        def __init__(self, output: _Optional[_Union[CrdStream, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ...) -> None: ...
    class RefBundle(_message.Message):
        __slots__ = ("output", "inputs")
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        output: RefStream
        inputs: _containers.RepeatedCompositeFieldContainer[RefStream]
        def __init__(self, output: _Optional[_Union[RefStream, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[RefStream, _Mapping]]] = ...) -> None: ...
    class ValBundle(_message.Message):
        __slots__ = ("output", "inputs")
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        output: ValStream
        inputs: _containers.RepeatedCompositeFieldContainer[ValStream]
        def __init__(self, output: _Optional[_Union[ValStream, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[ValStream, _Mapping]]] = ...) -> None: ...
    class RepSigBundle(_message.Message):
        __slots__ = ("output", "inputs")
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        output: RepSigStream
        inputs: _containers.RepeatedCompositeFieldContainer[RepSigStream]
        def __init__(self, output: _Optional[_Union[RepSigStream, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[RepSigStream, _Mapping]]] = ...) -> None: ...
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CRD_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    REPSIG_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    label: str
    crd: Join.CrdBundle
    ref: Join.RefBundle
    val: Join.ValBundle
    repsig: Join.RepSigBundle
    levels: int
    def __init__(self, label: _Optional[str] = ..., crd: _Optional[_Union[Join.CrdBundle, _Mapping]] = ..., ref: _Optional[_Union[Join.RefBundle, _Mapping]] = ..., val: _Optional[_Union[Join.ValBundle, _Mapping]] = ..., repsig: _Optional[_Union[Join.RepSigBundle, _Mapping]] = ..., levels: _Optional[int] = ...) -> None: ...

class GenRef(_message.Message):
    __slots__ = ("input_crd", "output_ref", "label")
    INPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_REF_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    input_crd: ValStream
    output_ref: ValStream
    label: str
    def __init__(self, input_crd: _Optional[_Union[ValStream, _Mapping]] = ..., output_ref: _Optional[_Union[ValStream, _Mapping]] = ..., label: _Optional[str] = ...) -> None: ...

class Intrinsic(_message.Message):
    __slots__ = ("name", "input_val", "inputs", "output_val", "outputs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    input_val: ValStream
    inputs: _containers.RepeatedCompositeFieldContainer[CrdStream]
    output_val: ValStream
    outputs: _containers.RepeatedCompositeFieldContainer[CrdStream]
    def __init__(self, name: _Optional[str] = ..., input_val: _Optional[_Union[ValStream, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ...) -> None: ...

class Concat(_message.Message):
    __slots__ = ("in_crds", "axis", "rank", "out_crds", "label", "dim_len", "in_refs", "in_vals", "out_refs", "out_val")
    IN_CRDS_FIELD_NUMBER: _ClassVar[int]
    AXIS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    OUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DIM_LEN_FIELD_NUMBER: _ClassVar[int]
    IN_REFS_FIELD_NUMBER: _ClassVar[int]
    IN_VALS_FIELD_NUMBER: _ClassVar[int]
    OUT_REFS_FIELD_NUMBER: _ClassVar[int]
    OUT_VAL_FIELD_NUMBER: _ClassVar[int]
    in_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    axis: int
    rank: int
    out_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    label: str
    dim_len: int
    in_refs: _containers.RepeatedCompositeFieldContainer[RefStream]
    in_vals: _containers.RepeatedCompositeFieldContainer[ValStream]
    out_refs: _containers.RepeatedCompositeFieldContainer[RefStream]
    out_val: ValStream
    def __init__(self, in_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., axis: _Optional[int] = ..., rank: _Optional[int] = ..., out_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., label: _Optional[str] = ..., dim_len: _Optional[int] = ..., in_refs: _Optional[_Iterable[_Union[RefStream, _Mapping]]] = ..., in_vals: _Optional[_Iterable[_Union[ValStream, _Mapping]]] = ..., out_refs: _Optional[_Iterable[_Union[RefStream, _Mapping]]] = ..., out_val: _Optional[_Union[ValStream, _Mapping]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("name", "shape", "levels", "order", "dtype", "fill", "tile", "resident", "buffer", "preload")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    TILE_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    PRELOAD_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    levels: _containers.RepeatedScalarFieldContainer[str]
    order: _containers.RepeatedScalarFieldContainer[int]
    dtype: str
    fill: float
    tile: _containers.RepeatedScalarFieldContainer[int]
    resident: bool
    buffer: int
    preload: int
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., levels: _Optional[_Iterable[str]] = ..., order: _Optional[_Iterable[int]] = ..., dtype: _Optional[str] = ..., fill: _Optional[float] = ..., tile: _Optional[_Iterable[int]] = ..., resident: bool = ..., buffer: _Optional[int] = ..., preload: _Optional[int] = ...) -> None: ...

class Port(_message.Message):
    __slots__ = ("node", "output")
    NODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    node: str
    output: int
    def __init__(self, node: _Optional[str] = ..., output: _Optional[int] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("node", "input")
    NODE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    node: str
    input: int
    def __init__(self, node: _Optional[str] = ..., input: _Optional[int] = ...) -> None: ...

class Depth(_message.Message):
    __slots__ = ("edge", "depth")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    edge: Edge
    depth: int
    def __init__(self, edge: _Optional[_Union[Edge, _Mapping]] = ..., depth: _Optional[int] = ...) -> None: ...

class Operand(_message.Message):
    __slots__ = ("value", "constant")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_FIELD_NUMBER: _ClassVar[int]
    value: float
    constant: bool
    def __init__(self, value: _Optional[float] = ..., constant: bool = ...) -> None: ...

class AnyStream(_message.Message):
    __slots__ = ("crd", "ref", "val")
    CRD_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    crd: CrdStream
    ref: RefStream
    val: ValStream
    def __init__(self, crd: _Optional[_Union[CrdStream, _Mapping]] = ..., ref: _Optional[_Union[RefStream, _Mapping]] = ..., val: _Optional[_Union[ValStream, _Mapping]] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("input_ref", "output_crd", "size")
    INPUT_REF_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    input_ref: RefStream
    output_crd: CrdStream
    size: int
    def __init__(self, input_ref: _Optional[_Union[RefStream, _Mapping]] = ..., output_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., size: _Optional[int] = ...) -> None: ...

class Align(_message.Message):
    __slots__ = ("old_crd", "new_crd", "input", "output")
    OLD_CRD_FIELD_NUMBER: _ClassVar[int]
    NEW_CRD_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    old_crd: CrdStream
    new_crd: CrdStream
    input: AnyStream
    output: AnyStream
    def __init__(self, old_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., new_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., input: _Optional[_Union[AnyStream, _Mapping]] = ..., output: _Optional[_Union[AnyStream, _Mapping]] = ...) -> None: ...

class Drop(_message.Message):
    __slots__ = ("input_crds", "input", "output_crds", "output", "value")
    INPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    input_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    input: AnyStream
    output_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    output: AnyStream
    value: float
    def __init__(self, input_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., input: _Optional[_Union[AnyStream, _Mapping]] = ..., output_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., output: _Optional[_Union[AnyStream, _Mapping]] = ..., value: _Optional[float] = ...) -> None: ...

class Permute(_message.Message):
    __slots__ = ("input_crds", "input_val", "output_crds", "output_val", "order")
    INPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    input_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    input_val: ValStream
    output_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    output_val: ValStream
    order: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, input_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., input_val: _Optional[_Union[ValStream, _Mapping]] = ..., output_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., order: _Optional[_Iterable[int]] = ...) -> None: ...

class Select(_message.Message):
    __slots__ = ("input_crds", "input_val", "output_crds", "output_val", "keep", "every", "levels")
    INPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    INPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_VAL_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    input_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    input_val: ValStream
    output_crds: _containers.RepeatedCompositeFieldContainer[CrdStream]
    output_val: ValStream
    keep: int
    every: int
    levels: int
    def __init__(self, input_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., input_val: _Optional[_Union[ValStream, _Mapping]] = ..., output_crds: _Optional[_Iterable[_Union[CrdStream, _Mapping]]] = ..., output_val: _Optional[_Union[ValStream, _Mapping]] = ..., keep: _Optional[int] = ..., every: _Optional[int] = ..., levels: _Optional[int] = ...) -> None: ...

class Flatten(_message.Message):
    __slots__ = ("outer_crd", "inner_crd", "output_crd", "size")
    OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    outer_crd: CrdStream
    inner_crd: CrdStream
    output_crd: CrdStream
    size: int
    def __init__(self, outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., output_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., size: _Optional[int] = ...) -> None: ...

class Split(_message.Message):
    __slots__ = ("input_crd", "outer_crd", "inner_crd", "size")
    INPUT_CRD_FIELD_NUMBER: _ClassVar[int]
    OUTER_CRD_FIELD_NUMBER: _ClassVar[int]
    INNER_CRD_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    input_crd: CrdStream
    outer_crd: CrdStream
    inner_crd: CrdStream
    size: int
    def __init__(self, input_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., outer_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., inner_crd: _Optional[_Union[CrdStream, _Mapping]] = ..., size: _Optional[int] = ...) -> None: ...

class Primitive(_message.Message):
    __slots__ = ("op", "attributes", "inputs", "outputs")
    OP_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    op: str
    attributes: str
    inputs: _containers.RepeatedCompositeFieldContainer[AnyStream]
    outputs: _containers.RepeatedCompositeFieldContainer[AnyStream]
    def __init__(self, op: _Optional[str] = ..., attributes: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[AnyStream, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[AnyStream, _Mapping]]] = ...) -> None: ...
