// The `table` dialect: a fusion table, that is, the rows, columns and cells of a fused region, and what its cells name.
//
// A module holds one `table`. The primitives that cells name, and the tensors that they read, stand beside it as operations of the `samml`
// dialect. The operations here refer to a primitive by its name: `node` is the name, `output` one of the streams that it makes.
// That these names, the rows and the streams in the text of a cell exist is checked by `fuseflow.table.mlir.from_mlir`.

irdl.dialect @table {

  // A step of the algorithm that fills the table.
  irdl.type @step {
  }

  // A node of the fused tree.
  irdl.type @tree {
  }

  // The region and its loops, outermost first. The rows of the table are these loops, then `val`.
  irdl.operation @table {
    %region = irdl.base "#builtin.string"
    %order = irdl.base "#builtin.array"
    irdl.attributes {"region" = %region, "order" = %order}
  }

  // The start of a step. Steps stand in the order in which they fill the table.
  irdl.operation @begin_step {
    %step = irdl.base @table::@step
    irdl.results(step: %step)
    %title = irdl.base "#builtin.string"
    irdl.attributes {"title" = %title}
  }

  // What a step adds to the cell at a row and a column. `text` names a primitive, with the streams that it refers to in angle brackets.
  irdl.operation @cell {
    %step = irdl.base @table::@step
    irdl.operands(step: %step)
    %column = irdl.base "#builtin.string"
    %row = irdl.base "#builtin.string"
    %text = irdl.base "#builtin.string"
    irdl.attributes {"column" = %column, "row" = %row, "text" = %text}
  }

  // A stored tensor read at an index tuple.
  irdl.operation @view {
    %tree = irdl.base @table::@tree
    irdl.results(tree: %tree)
    %tensor = irdl.base "#builtin.string"
    %indices = irdl.base "#builtin.array"
    irdl.attributes {"tensor" = %tensor, "indices" = %indices}
  }

  // A number.
  irdl.operation @number {
    %tree = irdl.base @table::@tree
    irdl.results(tree: %tree)
    %value = irdl.base "#builtin.float"
    irdl.attributes {"value" = %value}
  }

  // A pointwise operator.
  irdl.operation @op {
    %arguments = irdl.base @table::@tree
    irdl.operands(arguments: variadic %arguments)
    %tree = irdl.base @table::@tree
    irdl.results(tree: %tree)
    %operator = irdl.base "#builtin.string"
    irdl.attributes {"operator" = %operator}
  }

  // What a `rule` keeps of its operand, compared along the indices `over`. It is a view of the Einsum `label` at the indices `free`.
  irdl.operation @selection {
    %body = irdl.base @table::@tree
    irdl.operands(body: %body)
    %tree = irdl.base @table::@tree
    irdl.results(tree: %tree)
    %rule = irdl.base "#builtin.string"
    %over = irdl.base "#builtin.array"
    %free = irdl.base "#builtin.array"
    %label = irdl.base "#builtin.string"
    irdl.attributes {"rule" = %rule, "over" = %over, "free" = %free, "label" = %label}
  }

  // A reduction of its operand over the indices `over`. It is a view of (part of) the Einsum `label` at the indices `free`.
  irdl.operation @reduction {
    %body = irdl.base @table::@tree
    irdl.operands(body: %body)
    %tree = irdl.base @table::@tree
    irdl.results(tree: %tree)
    %reduction = irdl.base "#builtin.string"
    %over = irdl.base "#builtin.array"
    %free = irdl.base "#builtin.array"
    %label = irdl.base "#builtin.string"
    irdl.attributes {"reduction" = %reduction, "over" = %over, "free" = %free, "label" = %label}
  }

  // A place where the table computes a node of the tree, once for every element of a stream, inside the loops `around`.
  irdl.operation @evaluation {
    %tree = irdl.base @table::@tree
    irdl.operands(tree: %tree)
    %node = irdl.base "#builtin.string"
    %output = irdl.base "#builtin.integer"
    %around = irdl.base "#builtin.array"
    irdl.attributes {"node" = %node, "output" = %output, "around" = %around}
  }

  // The indices of the level that a scan or range makes.
  irdl.operation @loop {
    %node = irdl.base "#builtin.string"
    %indices = irdl.base "#builtin.array"
    irdl.attributes {"node" = %node, "indices" = %indices}
  }

  // The nodes that stand in the nest of the producer `label`.
  irdl.operation @stage {
    %label = irdl.base "#builtin.string"
    %nodes = irdl.base "#builtin.array"
    irdl.attributes {"label" = %label, "nodes" = %nodes}
  }
}
