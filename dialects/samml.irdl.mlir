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

  // One reference to the whole of every tensor.
  irdl.operation @root {
    %depth = irdl.is 0 : i64
    %ref = irdl.parametric @samml::@ref<%depth>
    irdl.results(ref: %ref)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The fiber of a tensor at a storage level, for every reference. `sequential`: the references come straight from the scan of the level above.
  irdl.operation @scan {
    %parent = irdl.base @samml::@ref
    irdl.operands(parent: %parent)
    %below = irdl.any
    %crd = irdl.parametric @samml::@crd<%below>
    %ref = irdl.parametric @samml::@ref<%below>
    irdl.results(crd: %crd, ref: %ref)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    %sequential0 = irdl.is true
    %sequential1 = irdl.is false
    %sequential = irdl.any_of(%sequential0, %sequential1)
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level, "sequential" = %sequential}
  }

  // All coordinates from 0 to `size` - 1, for every reference.
  irdl.operation @range {
    %parent = irdl.base @samml::@ref
    irdl.operands(parent: %parent)
    %crd = irdl.base @samml::@crd
    irdl.results(crd: %crd)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // The reference of a coordinate in a level that stores every coordinate, or in a bitmap. Without `parent`, in the outermost level, which may
  // also be compressed: then its coordinates are read once and kept.
  irdl.operation @locate {
    %depth = irdl.any
    %coordinate = irdl.parametric @samml::@crd<%depth>
    %position = irdl.parametric @samml::@ref<%depth>
    %crd = irdl.any_of(%coordinate, %position)
    %parent = irdl.parametric @samml::@ref<%depth>
    irdl.operands(crd: %crd, parent: optional %parent)
    %ref = irdl.parametric @samml::@ref<%depth>
    irdl.results(ref: %ref)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level}
  }

  // The sorted merge of several sides at one loop. Operands are the coordinates of every side, then the references, then the values that the
  // sides carry. `payloads` says what each side carries, in order: `[["ref"], ["ref", "val"]]`. Results are grouped in the same way.
  irdl.operation @join {
    %depth = irdl.any
    %crd = irdl.parametric @samml::@crd<%depth>
    %ref = irdl.parametric @samml::@ref<%depth>
    %val = irdl.parametric @samml::@val<%depth>
    irdl.operands(crds: variadic %crd, refs: variadic %ref, vals: variadic %val)
    irdl.results(crd: %crd, out_refs: variadic %ref, out_vals: variadic %val)
    %node = irdl.base "#builtin.string"
    %kind0 = irdl.is "intersect"
    %kind1 = irdl.is "union"
    %kind2 = irdl.is "left"
    %kind = irdl.any_of(%kind0, %kind1, %kind2)
    %payloads = irdl.base "#builtin.array"
    irdl.attributes {"node" = %node, "kind" = %kind, "payloads" = %payloads}
  }

  // The subtree of `stream` below each coordinate of `old`, carried to the same coordinate of `new`.
  irdl.operation @align {
    %depth = irdl.any
    %old = irdl.parametric @samml::@crd<%depth>
    %new = irdl.parametric @samml::@crd<%depth>
    %crd = irdl.base @samml::@crd
    %ref = irdl.base @samml::@ref
    %val = irdl.base @samml::@val
    %stream = irdl.any_of(%crd, %ref, %val)
    irdl.operands(old: %old, new: %new, stream: %stream)
    irdl.results(out: %stream)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // Each element of `stream` once for every element of the fiber of `signal`. A repeated coordinate is a reference.
  irdl.operation @repeat {
    %crd = irdl.base @samml::@crd
    %ref = irdl.base @samml::@ref
    %val = irdl.base @samml::@val
    %stream = irdl.any_of(%crd, %ref, %val)
    %depth = irdl.any
    %by_crd = irdl.parametric @samml::@crd<%depth>
    %by_ref = irdl.parametric @samml::@ref<%depth>
    %by_val = irdl.parametric @samml::@val<%depth>
    %signal = irdl.any_of(%by_crd, %by_ref, %by_val)
    irdl.operands(stream: %stream, signal: %signal)
    %out_ref = irdl.parametric @samml::@ref<%depth>
    %out_val = irdl.parametric @samml::@val<%depth>
    %out = irdl.any_of(%out_ref, %out_val)
    irdl.results(out: %out)
    %node = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node}
  }

  // The value of a tensor at every reference.
  irdl.operation @load {
    %depth = irdl.any
    %ref = irdl.parametric @samml::@ref<%depth>
    irdl.operands(ref: %ref)
    %val = irdl.parametric @samml::@val<%depth>
    irdl.results(val: %val)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %sequential0 = irdl.is true
    %sequential1 = irdl.is false
    %sequential = irdl.any_of(%sequential0, %sequential1)
    irdl.attributes {"node" = %node, "tensor" = %tensor, "sequential" = %sequential}
  }

  // A pointwise operator, or one on tiles. For each of its operands, `constants` says whether it is a constant or the next stream, and
  // `values` is the constant, or the implicit value of the stream.
  irdl.operation @alu {
    %depth = irdl.any
    %val = irdl.parametric @samml::@val<%depth>
    irdl.operands(streams: variadic %val)
    irdl.results(val: %val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    %values = irdl.base "#builtin.dense_array"
    %constants = irdl.base "#builtin.dense_array"
    irdl.attributes {"node" = %node, "function" = %function, "values" = %values, "constants" = %constants}
  }

  // The fold of each innermost fiber of values.
  irdl.operation @reduce {
    %stream = irdl.base @samml::@val
    irdl.operands(stream: %stream)
    %val = irdl.base @samml::@val
    irdl.results(val: %val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node, "function" = %function}
  }

  // The reduction over the outermost of several levels of coordinates, one workspace for each of its fibers. `order` is the number of
  // levels that are left. Levels are operands of their own, outermost first, because they differ in depth.
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
    %out0 = irdl.base @samml::@crd
    %out1 = irdl.base @samml::@crd
    %out2 = irdl.base @samml::@crd
    %out3 = irdl.base @samml::@crd
    %out4 = irdl.base @samml::@crd
    %out5 = irdl.base @samml::@crd
    %out6 = irdl.base @samml::@crd
    %out7 = irdl.base @samml::@crd
    %val = irdl.base @samml::@val
    irdl.results(out0: %out0, out1: optional %out1, out2: optional %out2, out3: optional %out3, out4: optional %out4, out5: optional %out5, out6: optional %out6, out7: optional %out7, val: %val)
    %node = irdl.base "#builtin.string"
    %function = irdl.base "#builtin.string"
    %order = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "function" = %function, "order" = %order}
  }

  // The same entries with their levels of coordinates in another order: level p of the result is level `order[p]` of the operands.
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

  // The same entries without those that have no value, or the value `value` unless that is `unit`.
  irdl.operation @drop {
    %crd0 = irdl.base @samml::@crd
    %crd1 = irdl.base @samml::@crd
    %crd2 = irdl.base @samml::@crd
    %crd3 = irdl.base @samml::@crd
    %crd4 = irdl.base @samml::@crd
    %crd5 = irdl.base @samml::@crd
    %crd6 = irdl.base @samml::@crd
    %crd7 = irdl.base @samml::@crd
    %crd = irdl.base @samml::@crd
    %ref = irdl.base @samml::@ref
    %val = irdl.base @samml::@val
    %stream = irdl.any_of(%crd, %ref, %val)
    irdl.operands(crd0: %crd0, crd1: optional %crd1, crd2: optional %crd2, crd3: optional %crd3, crd4: optional %crd4, crd5: optional %crd5, crd6: optional %crd6, crd7: optional %crd7, stream: %stream)
    irdl.results(out0: %crd0, out1: optional %crd1, out2: optional %crd2, out3: optional %crd3, out4: optional %crd4, out5: optional %crd5, out6: optional %crd6, out7: optional %crd7, out: %stream)
    %node = irdl.base "#builtin.string"
    %value0 = irdl.is unit
    %value1 = irdl.base "#builtin.float"
    %value = irdl.any_of(%value0, %value1)
    irdl.attributes {"node" = %node, "value" = %value}
  }

  // The `keep` entries of largest magnitude of every fiber of the outermost of `levels` levels, or of every `every` of its coordinates.
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
    irdl.attributes {"node" = %node, "keep" = %keep, "every" = %every, "levels" = %levels}
  }

  // Two levels of coordinates as one: outer * `size` + inner.
  irdl.operation @flatten {
    %depth = irdl.any
    %outer = irdl.parametric @samml::@crd<%depth>
    %inner = irdl.base @samml::@crd
    irdl.operands(outer: %outer, inner: %inner)
    %crd = irdl.parametric @samml::@crd<%depth>
    irdl.results(crd: %crd)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // One level of coordinates as two: coordinate / `size`, and the rest.
  irdl.operation @split {
    %depth = irdl.any
    %crd = irdl.parametric @samml::@crd<%depth>
    irdl.operands(crd: %crd)
    %outer = irdl.parametric @samml::@crd<%depth>
    %inner = irdl.base @samml::@crd
    irdl.results(outer: %outer, inner: %inner)
    %node = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "size" = %size}
  }

  // The elements of a stream dealt to `lanes` lanes in turn.
  irdl.operation @fork {
    %crd = irdl.base @samml::@crd
    %ref = irdl.base @samml::@ref
    %val = irdl.base @samml::@val
    %stream = irdl.any_of(%crd, %ref, %val)
    irdl.operands(stream: %stream)
    irdl.results(outs: variadic %stream)
    %node = irdl.base "#builtin.string"
    %lanes = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "lanes" = %lanes}
  }

  // One stream of all lanes: the inverse of the fork that dealt what stands `levels` levels above the values.
  irdl.operation @merge {
    %crd = irdl.base @samml::@crd
    %ref = irdl.base @samml::@ref
    %val = irdl.base @samml::@val
    %stream = irdl.any_of(%crd, %ref, %val)
    irdl.operands(lanes: variadic %stream)
    irdl.results(out: %stream)
    %node = irdl.base "#builtin.string"
    %levels = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "levels" = %levels}
  }

  // The coordinates of level `level` of a tensor, to memory.
  irdl.operation @write {
    %crd = irdl.base @samml::@crd
    irdl.operands(crd: %crd)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    %level = irdl.base "#builtin.integer"
    irdl.attributes {"node" = %node, "tensor" = %tensor, "level" = %level}
  }

  // The values of a tensor, to memory.
  irdl.operation @write_values {
    %val = irdl.base @samml::@val
    irdl.operands(val: %val)
    %node = irdl.base "#builtin.string"
    %tensor = irdl.base "#builtin.string"
    irdl.attributes {"node" = %node, "tensor" = %tensor}
  }

  // What one lane has of a level of a dense tensor, to memory.
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

  // What one lane has of the values of a dense tensor, to memory.
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
