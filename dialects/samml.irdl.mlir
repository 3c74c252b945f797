// The `samml` dialect: a SAMML graph, that is, the dataflow nodes of one fused region joined by streams.
//
// A module holds one `graph`, its `tensor` and `output` declarations, one operation for each node, and what is said of single FIFOs.
// `node` is the name of a node. Operands and results stand in the order of its inputs and outputs, but for `join`.
// Two streams with the same depth in an operation share a constraint here. That a depth is one more than another, that tensors and levels
// exist and that streams are aligned is checked by `fuseflow.samml.mlir.from_mlir`.

irdl.dialect @samml {

  // A stream of coordinates. `depth` says how deep its lists are nested.
  irdl.type @crd {
    %depth = irdl.base "#builtin.integer"
    irdl.parameters(depth: %depth)
  }

  // A stream of references: positions of fibers or values in a tensor.
  irdl.type @ref {
    %depth = irdl.base "#builtin.integer"
    irdl.parameters(depth: %depth)
  }

  // A stream of values.
  irdl.type @val {
    %depth = irdl.base "#builtin.integer"
    irdl.parameters(depth: %depth)
  }

  // The name of the graph that the module holds.
  irdl.operation @graph {
    %name = irdl.base "#builtin.string"
    irdl.attributes {"name" = %name}
  }

  // A tensor that the graph reads or writes. `levels` are its level formats, outermost first, with `all` behind them if zeros are stored too, and `order` is the dimension that each stores.
  // `fill` is the implicit value. Where values are tiles, `tile` is their shape, and `shape` counts tiles.
  irdl.operation @tensor {
    %name = irdl.base "#builtin.string"
    %shape = irdl.base "#builtin.dense_array"
    %levels = irdl.base "#builtin.array"
    %order = irdl.base "#builtin.dense_array"
    %dtype = irdl.base "#builtin.string"
    %fill = irdl.base "#builtin.float"
    %tile = irdl.base "#builtin.dense_array"
    irdl.attributes {"name" = %name, "shape" = %shape, "levels" = %levels, "order" = %order, "dtype" = %dtype, "fill" = %fill, "tile" = %tile}
  }

  // A tensor that the graph writes.
  irdl.operation @output {
    %tensor = irdl.base "#builtin.string"
    irdl.attributes {"tensor" = %tensor}
  }

  // A tensor that lies in the configuration of the accelerator, where it is read without a request to the memory.
  irdl.operation @resident {
    %tensor = irdl.base "#builtin.string"
    irdl.attributes {"tensor" = %tensor}
  }

  // A tensor each of whose reading ports has a reuse buffer of at most so many bytes.
  irdl.operation @buffer {
    %tensor = irdl.base "#builtin.string"
    %bytes = irdl.base "#builtin.integer"
    irdl.attributes {"tensor" = %tensor, "bytes" = %bytes}
  }

  // A tensor that so many ports read once, in order, for all nodes that read it.
  irdl.operation @preload {
    %tensor = irdl.base "#builtin.string"
    %ports = irdl.base "#builtin.integer"
    irdl.attributes {"tensor" = %tensor, "ports" = %ports}
  }

  // A tensor that lies in the scratchpad: `moved` between it and the memory, or `kept` there.
  irdl.operation @scratchpad {
    %tensor = irdl.base "#builtin.string"
    %transfer = irdl.base "#builtin.string"
    irdl.attributes {"tensor" = %tensor, "transfer" = %transfer}
  }

  // A tensor that has all levels of another one: its values alone are read and written.
  irdl.operation @like {
    %tensor = irdl.base "#builtin.string"
    %structure = irdl.base "#builtin.string"
    irdl.attributes {"tensor" = %tensor, "structure" = %structure}
  }

  // An edge that must hold a whole fiber: input `input` of node `node`.
  irdl.operation @fiber_fifo {
    %node = irdl.base "#builtin.string"
    %input = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "input" = %input}
  }

  // The depth of the FIFO at input `input` of node `node`, where it is not that of the machine.
  irdl.operation @fifo_depth {
    %node = irdl.base "#builtin.string"
    %input = irdl.base "#builtin.integer"
    %depth = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "input" = %input, "depth" = %depth}
  }

  // The hops of the edge to input `input` of node `node`, and the slots of each: 2, or 0 if it is a plain register.
  irdl.operation @hops {
    %node = irdl.base "#builtin.string"
    %input = irdl.base "#builtin.integer"
    %count = irdl.base "#builtin.integer"
    %slots = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "input" = %input, "count" = %count, "slots" = %slots}
  }

  // The turn of node `node` at a port to the memory that `of` nodes share: it is number `number`, from 0 on.
  irdl.operation @turn {
    %node = irdl.base "#builtin.string"
    %number = irdl.base "#builtin.integer"
    %of = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "number" = %number, "of" = %of}
  }

  // The hops between the tiles of node `node` (`inner`), once round them where they fold (`loop`), and to its port.
  irdl.operation @node_hops {
    %node = irdl.base "#builtin.string"
    %inner = irdl.base "#builtin.integer"
    %loop = irdl.base "#builtin.integer"
    %port = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "inner" = %inner, "loop" = %loop, "port" = %port}
  }

  // The operations of primitives: `python tools/dialects.py` writes them from the classes in fuseflow/samml.

  // One reference to the whole of every tensor: `0 D`.
  irdl.operation @root {
    %depth0 = irdl.is 0 : i64
    %result_ref = irdl.parametric @samml::@ref<%depth0>
    irdl.results(ref: %result_ref)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The fiber of `tensor` at storage level `level` for every reference. `sequential`: the references come straight from this tensor's own
  // parent scan, so a memory may prefetch.
  irdl.operation @scan {
    %depth1 = irdl.any
    %parent = irdl.base @samml::@ref
    irdl.operands(parent: %parent)
    %result_crd = irdl.parametric @samml::@crd<%depth1>
    %result_ref = irdl.parametric @samml::@ref<%depth1>
    irdl.results(crd: %result_crd, ref: %result_ref)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    %sequential0 = irdl.is true
    %sequential1 = irdl.is false
    %sequential = irdl.any_of(%sequential0, %sequential1)
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level, "sequential" = %sequential}
  }

  // All coordinates from 0 to `size` - 1 for every reference (`N` included); no tensor, no memory.
  irdl.operation @range {
    %parent = irdl.base @samml::@ref
    irdl.operands(parent: %parent)
    %result_crd = irdl.base @samml::@crd
    irdl.results(crd: %result_crd)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // Random access into a level, token by token: in a dense one parent * size + coordinate; `N` where either is. Without its second input
  // it locates the outermost level, whose only parent is reference 0. If that is compressed, the node reads its coordinates once, before
  // the first token, and keeps them.
  irdl.operation @locate {
    %depth0 = irdl.any
    %crd_crd = irdl.parametric @samml::@crd<%depth0>
    %crd_ref = irdl.parametric @samml::@ref<%depth0>
    %crd = irdl.any_of(%crd_crd, %crd_ref)
    %parent = irdl.parametric @samml::@ref<%depth0>
    irdl.operands(crd: %crd, parent: optional %parent)
    %result_ref = irdl.parametric @samml::@ref<%depth0>
    irdl.results(ref: %result_ref)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level}
  }

  // The sorted merge of several sides at one loop. `intersect`: coordinates on all sides; `union`: on any; `left`: those of side 0.
  // Absent payloads are `N`. Operands are the coordinates of every side, then the references, then the values that the sides carry.
  // `payloads` says what each side carries, in order: `[["ref"], ["ref", "val"]]`. Results are grouped in the same way.
  irdl.operation @join {
    %depth0 = irdl.any
    %crds = irdl.parametric @samml::@crd<%depth0>
    %refs = irdl.parametric @samml::@ref<%depth0>
    %vals = irdl.parametric @samml::@val<%depth0>
    irdl.operands(crds: variadic %crds, refs: variadic %refs, vals: variadic %vals)
    %result_crd = irdl.parametric @samml::@crd<%depth0>
    %result_out_refs = irdl.parametric @samml::@ref<%depth0>
    %result_out_vals = irdl.parametric @samml::@val<%depth0>
    irdl.results(crd: %result_crd, out_refs: variadic %result_out_refs, out_vals: variadic %result_out_vals)
    %node = irdl.base "#builtin.string"
    %kind0 = irdl.is "intersect"
    %kind1 = irdl.is "union"
    %kind2 = irdl.is "left"
    %kind = irdl.any_of(%kind0, %kind1, %kind2)
    %payloads = irdl.base "#builtin.array"
    irdl.attributes {"node" = %node, "kind" = %kind, "payloads" = %payloads}
  }

  // The subtree of `stream` below each coordinate of `old`, carried to the same coordinate of `new`. A coordinate only in `old` loses its
  // subtree, one only in `new` gets an empty one.
  irdl.operation @align {
    %depth0 = irdl.any
    %old = irdl.parametric @samml::@crd<%depth0>
    %new = irdl.parametric @samml::@crd<%depth0>
    %stream_crd = irdl.base @samml::@crd
    %stream_ref = irdl.base @samml::@ref
    %stream_val = irdl.base @samml::@val
    %stream = irdl.any_of(%stream_crd, %stream_ref, %stream_val)
    irdl.operands(old: %old, new: %new, stream: %stream)
    irdl.results(out: %stream)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The same entries without some of them. `value` None: `N` values leave, else entries equal to it too. A coordinate below which nothing
  // is left leaves with it, all levels at once. The last stream may be of any kind, aligned with the innermost coordinates. A `value`
  // that is `unit` is None.
  irdl.operation @drop {
    %crd0 = irdl.base @samml::@crd
    %crd1 = irdl.base @samml::@crd
    %crd2 = irdl.base @samml::@crd
    %crd3 = irdl.base @samml::@crd
    %crd4 = irdl.base @samml::@crd
    %crd5 = irdl.base @samml::@crd
    %crd6 = irdl.base @samml::@crd
    %crd7 = irdl.base @samml::@crd
    %stream_crd = irdl.base @samml::@crd
    %stream_ref = irdl.base @samml::@ref
    %stream_val = irdl.base @samml::@val
    %stream = irdl.any_of(%stream_crd, %stream_ref, %stream_val)
    irdl.operands(crd0: %crd0, crd1: optional %crd1, crd2: optional %crd2, crd3: optional %crd3, crd4: optional %crd4, crd5: optional %crd5, crd6: optional %crd6, crd7: optional %crd7, stream: %stream)
    irdl.results(out0: %crd0, out1: optional %crd1, out2: optional %crd2, out3: optional %crd3, out4: optional %crd4, out5: optional %crd5, out6: optional %crd6, out7: optional %crd7, out: %stream)
    %node = irdl.base "#builtin.string"
    %value0 = irdl.is unit
    %value1 = irdl.base "#builtin.float"
    %value = irdl.any_of(%value0, %value1)
    irdl.attributes {"node" = %node, "value" = %value}
  }

  // Of each fiber of the outermost of `levels` levels with everything below it, or of every so many of its coordinates, the `keep`
  // entries of largest magnitude, or the `greatest` or the `least` numbers, in order. A coordinate below which nothing is left leaves. If
  // it `marks`, it emits 1 for each entry.
  irdl.operation @select {
    %crd0 = irdl.base @samml::@crd
    %crd1 = irdl.base @samml::@crd
    %crd2 = irdl.base @samml::@crd
    %crd3 = irdl.base @samml::@crd
    %crd4 = irdl.base @samml::@crd
    %crd5 = irdl.base @samml::@crd
    %crd6 = irdl.base @samml::@crd
    %crd7 = irdl.base @samml::@crd
    %stream = irdl.base @samml::@val
    irdl.operands(crd0: %crd0, crd1: optional %crd1, crd2: optional %crd2, crd3: optional %crd3, crd4: optional %crd4, crd5: optional %crd5, crd6: optional %crd6, crd7: optional %crd7, stream: %stream)
    irdl.results(out0: %crd0, out1: optional %crd1, out2: optional %crd2, out3: optional %crd3, out4: optional %crd4, out5: optional %crd5, out6: optional %crd6, out7: optional %crd7, out: %stream)
    %node = irdl.base "#builtin.string"
    %keep = irdl.base "#builtin.integer"
    %every = irdl.base "#builtin.integer"
    %levels = irdl.base "#builtin.integer"
    %greatest0 = irdl.is true
    %greatest1 = irdl.is false
    %greatest = irdl.any_of(%greatest0, %greatest1)
    %least0 = irdl.is true
    %least1 = irdl.is false
    %least = irdl.any_of(%least0, %least1)
    %marks0 = irdl.is true
    %marks1 = irdl.is false
    %marks = irdl.any_of(%marks0, %marks1)
    irdl.attributes {"node" = %node, "keep" = %keep, "every" = %every, "levels" = %levels, "greatest" = %greatest, "least" = %least, "marks" = %marks}
  }

  // Two levels as one, coordinate outer * size + inner.
  irdl.operation @flatten {
    %depth0 = irdl.any
    %outer = irdl.parametric @samml::@crd<%depth0>
    %inner = irdl.base @samml::@crd
    irdl.operands(outer: %outer, inner: %inner)
    %result_crd = irdl.parametric @samml::@crd<%depth0>
    irdl.results(crd: %result_crd)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // One level as two, outer = coordinate // size, inner = coordinate % size.
  irdl.operation @split {
    %depth0 = irdl.any
    %crd = irdl.parametric @samml::@crd<%depth0>
    irdl.operands(crd: %crd)
    %result_outer = irdl.parametric @samml::@crd<%depth0>
    %result_inner = irdl.base @samml::@crd
    irdl.results(outer: %result_outer, inner: %result_inner)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // Each element of `stream` once for every value of the fiber of `signal`; the stops are the signal's. A repeated coordinate is a
  // reference.
  irdl.operation @repeat {
    %depth1 = irdl.any
    %stream_crd = irdl.base @samml::@crd
    %stream_ref = irdl.base @samml::@ref
    %stream_val = irdl.base @samml::@val
    %stream = irdl.any_of(%stream_crd, %stream_ref, %stream_val)
    %signal_crd = irdl.parametric @samml::@crd<%depth1>
    %signal_ref = irdl.parametric @samml::@ref<%depth1>
    %signal_val = irdl.parametric @samml::@val<%depth1>
    %signal = irdl.any_of(%signal_crd, %signal_ref, %signal_val)
    irdl.operands(stream: %stream, signal: %signal)
    %result_out_ref = irdl.parametric @samml::@ref<%depth1>
    %result_out_val = irdl.parametric @samml::@val<%depth1>
    %result_out = irdl.any_of(%result_out_ref, %result_out_val)
    irdl.results(out: %result_out)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The same entries with their m levels of coordinates, m >= 2, in another order. Level p of the output is level `order[p]` of the
  // input, 0 being the outermost of the m. One workspace for each fiber of the outermost level (so for each element of the level around
  // it), keyed by all m coordinates, emitted in sorted order when that fiber ends.
  irdl.operation @permute {
    %crd0 = irdl.base @samml::@crd
    %crd1 = irdl.base @samml::@crd
    %crd2 = irdl.base @samml::@crd
    %crd3 = irdl.base @samml::@crd
    %crd4 = irdl.base @samml::@crd
    %crd5 = irdl.base @samml::@crd
    %crd6 = irdl.base @samml::@crd
    %crd7 = irdl.base @samml::@crd
    %stream = irdl.base @samml::@val
    irdl.operands(crd0: %crd0, crd1: optional %crd1, crd2: optional %crd2, crd3: optional %crd3, crd4: optional %crd4, crd5: optional %crd5, crd6: optional %crd6, crd7: optional %crd7, stream: %stream)
    irdl.results(out0: %crd0, out1: optional %crd1, out2: optional %crd2, out3: optional %crd3, out4: optional %crd4, out5: optional %crd5, out6: optional %crd6, out7: optional %crd7, out: %stream)
    %node = irdl.base "#builtin.string"
    %order = irdl.base "#builtin.dense_array"
    irdl.attributes {"node" = %node, "order" = %order}
  }

  // One stream for each lane: the values go to the lanes in turn, the turn running on across fibers; stops go to all.
  irdl.operation @fork {
    %stream_crd = irdl.base @samml::@crd
    %stream_ref = irdl.base @samml::@ref
    %stream_val = irdl.base @samml::@val
    %stream = irdl.any_of(%stream_crd, %stream_ref, %stream_val)
    irdl.operands(stream: %stream)
    irdl.results(outs: variadic %stream)
    %node = irdl.base "#builtin.string"
    %lanes = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "lanes" = %lanes}
  }

  // One stream of all lanes: the inverse of the fork that dealt the elements `levels` levels above the values, in its turn. An element is
  // a value (0), or a list of that many levels.
  irdl.operation @merge {
    %lanes_crd = irdl.base @samml::@crd
    %lanes_ref = irdl.base @samml::@ref
    %lanes_val = irdl.base @samml::@val
    %lanes = irdl.any_of(%lanes_crd, %lanes_ref, %lanes_val)
    irdl.operands(lanes: variadic %lanes)
    irdl.results(out: %lanes)
    %node = irdl.base "#builtin.string"
    %levels = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "levels" = %levels}
  }

  // The same stream a cycle later: a hop of an array at which the route of a stream divides, or passes a reader. It has two slots, and
  // gives each token to all its readers at once.
  irdl.operation @link {
    %stream_crd = irdl.base @samml::@crd
    %stream_ref = irdl.base @samml::@ref
    %stream_val = irdl.base @samml::@val
    %stream = irdl.any_of(%stream_crd, %stream_ref, %stream_val)
    irdl.operands(stream: %stream)
    irdl.results(out: %stream)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The value array of `tensor` at every reference; `N` gives its implicit value.
  irdl.operation @load {
    %depth0 = irdl.any
    %ref = irdl.parametric @samml::@ref<%depth0>
    irdl.operands(ref: %ref)
    %result_val = irdl.parametric @samml::@val<%depth0>
    irdl.results(val: %result_val)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %sequential0 = irdl.is true
    %sequential1 = irdl.is false
    %sequential = irdl.any_of(%sequential0, %sequential1)
    irdl.attributes {"node" = %node, "tensor" = %tensor, "sequential" = %sequential}
  }

  // A pointwise operator, or one on tiles; inputs are aligned token by token. For each of its operands, `constants` says whether it is a
  // constant or the next stream, and `values` is the constant, or the implicit value of the stream.
  irdl.operation @alu {
    %depth0 = irdl.any
    %streams = irdl.parametric @samml::@val<%depth0>
    irdl.operands(streams: variadic %streams)
    %result_val = irdl.parametric @samml::@val<%depth0>
    irdl.results(val: %result_val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    %values = irdl.base "#builtin.dense_array"
    %constants = irdl.base "#builtin.dense_array"
    irdl.attributes {"node" = %node, "function" = %function, "values" = %values, "constants" = %constants}
  }

  // The fold of each innermost fiber in token order; an empty one gives the identity.
  irdl.operation @reduce {
    %stream = irdl.base @samml::@val
    irdl.operands(stream: %stream)
    %result_val = irdl.base @samml::@val
    irdl.results(val: %result_val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node, "function" = %function}
  }

  // The reduction over the outermost of `order` + 1 levels of coordinates: one workspace for each of its fibers, keyed by the other
  // coordinates and emitted in sorted order when that fiber ends.
  irdl.operation @accumulate {
    %crd0 = irdl.base @samml::@crd
    %crd1 = irdl.base @samml::@crd
    %crd2 = irdl.base @samml::@crd
    %crd3 = irdl.base @samml::@crd
    %crd4 = irdl.base @samml::@crd
    %crd5 = irdl.base @samml::@crd
    %crd6 = irdl.base @samml::@crd
    %crd7 = irdl.base @samml::@crd
    %stream = irdl.base @samml::@val
    irdl.operands(crd0: %crd0, crd1: optional %crd1, crd2: optional %crd2, crd3: optional %crd3, crd4: optional %crd4, crd5: optional %crd5, crd6: optional %crd6, crd7: optional %crd7, stream: %stream)
    %result_out0 = irdl.base @samml::@crd
    %result_out1 = irdl.base @samml::@crd
    %result_out2 = irdl.base @samml::@crd
    %result_out3 = irdl.base @samml::@crd
    %result_out4 = irdl.base @samml::@crd
    %result_out5 = irdl.base @samml::@crd
    %result_out6 = irdl.base @samml::@crd
    %result_out7 = irdl.base @samml::@crd
    %result_val = irdl.base @samml::@val
    irdl.results(out0: %result_out0, out1: optional %result_out1, out2: optional %result_out2, out3: optional %result_out3, out4: optional %result_out4, out5: optional %result_out5, out6: optional %result_out6, out7: optional %result_out7, val: %result_val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    %order = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "function" = %function, "order" = %order}
  }

  // Level `level` of `tensor`, to memory. Compressed levels append; dense ones address parent * size + coordinate; at the end of a fiber,
  // n:m levels add the entries that it lacks.
  irdl.operation @write {
    %crd = irdl.base @samml::@crd
    irdl.operands(crd: %crd)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level}
  }

  // The values of `tensor`, to memory, where its level writers address them.
  irdl.operation @write_values {
    %val = irdl.base @samml::@val
    irdl.operands(val: %val)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node, "tensor" = %tensor}
  }

  // What lane `lane` of `lanes` has of a level of a dense tensor, to memory. The coordinates were dealt `levels` levels above these.
  // Together the writers of all lanes write what one writer of the merged lanes would.
  irdl.operation @write_lane {
    %crd = irdl.base @samml::@crd
    irdl.operands(crd: %crd)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    %levels = irdl.base "#builtin.integer"
    %lane = irdl.base "#builtin.integer"
    %lanes = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level, "levels" = %levels, "lane" = %lane, "lanes" = %lanes}
  }

  // What lane `lane` of `lanes` has of the values of a dense tensor, to memory. The coordinates were dealt `levels` levels above the
  // innermost one.
  irdl.operation @write_lane_values {
    %val = irdl.base @samml::@val
    irdl.operands(val: %val)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %levels = irdl.base "#builtin.integer"
    %lane = irdl.base "#builtin.integer"
    %lanes = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "levels" = %levels, "lane" = %lane, "lanes" = %lanes}
  }
}
