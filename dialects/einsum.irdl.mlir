// The `einsum` dialect: an Einsum program, that is, declared tensors, Einsums in order, and the results that leave.
//
// A module holds one `program`. An expression is a tree of operations that ends in a `define`; every `!einsum.element` has one reader.
// A tensor has a builtin tensor type. Its encoding is `#einsum.format`, or nothing where the format is left to inference.
// That names are unique, that operators and reductions exist and that indices and sizes fit is checked by `fuseflow.einsum.mlir.from_mlir`.

irdl.dialect @einsum {

  // The value of an expression at one point of its indices.
  irdl.type @element {
  }

  // How a tensor is stored: `levels` are its level formats, outermost first, and `all` behind them if zeros are stored too, or `unit` where
  // they are left to inference; `order` is the dimension that each level stores; `block` are the sizes of its blocks along each dimension,
  // none for single elements.
  irdl.attribute @format {
    %inferred = irdl.is unit
    %named = irdl.base "#builtin.array"
    %levels = irdl.any_of(%inferred, %named)
    %order = irdl.base "#builtin.dense_array"
    %block = irdl.base "#builtin.dense_array"
    irdl.parameters(levels: %levels, order: %order, block: %block)
  }

  // An index list entry that sees one dimension as two indices: its coordinate is outer * `size` + inner.
  irdl.attribute @split {
    %outer = irdl.base "#builtin.string"
    %inner = irdl.base "#builtin.string"
    %size = irdl.base "#builtin.integer"
    irdl.parameters(outer: %outer, inner: %inner, size: %size)
  }

  // An index list entry with an offset or with factors: its coordinate is the sum of each of `names` times its factor, plus `offset`.
  irdl.attribute @affine {
    %names = irdl.base "#builtin.array"
    %factors = irdl.base "#builtin.dense_array"
    %offset = irdl.base "#builtin.integer"
    irdl.parameters(names: %names, factors: %factors, offset: %offset)
  }

  // A place in a file: line and column are counted from 1, and the column may be `unit`.
  irdl.attribute @span {
    %file = irdl.base "#builtin.string"
    %line = irdl.base "#builtin.integer"
    %unknown = irdl.is unit
    %known = irdl.base "#builtin.integer"
    %column = irdl.any_of(%unknown, %known)
    irdl.parameters(file: %file, line: %line, column: %column)
  }

  // The name of the program that the module holds.
  irdl.operation @program {
    %name = irdl.base "#builtin.string"
    irdl.attributes {"name" = %name}
  }

  // A tensor that comes from outside. `fill` is its implicit value.
  irdl.operation @input {
    %tensor = irdl.base "!builtin.tensor"
    irdl.results(tensor: %tensor)
    %name = irdl.base "#builtin.string"
    %fill = irdl.base "#builtin.float"
    %nowhere = irdl.is unit
    %place = irdl.base @einsum::@span
    %span = irdl.any_of(%nowhere, %place)
    irdl.attributes {"name" = %name, "fill" = %fill, "span" = %span}
  }

  // The declaration of a tensor that a later `define` computes.
  irdl.operation @declare {
    %name = irdl.base "#builtin.string"
    %type = irdl.base "!builtin.tensor"
    %fill = irdl.base "#builtin.float"
    %nowhere = irdl.is unit
    %place = irdl.base @einsum::@span
    %span = irdl.any_of(%nowhere, %place)
    irdl.attributes {"name" = %name, "type" = %type, "fill" = %fill, "span" = %span}
  }

  // A declared tensor shares its positions and coordinates with the input that `structure` names: only the values are its own.
  irdl.operation @like {
    %tensor = irdl.base "#builtin.string"
    %structure = irdl.base "#builtin.string"
    irdl.attributes {"tensor" = %tensor, "structure" = %structure}
  }

  // An element of a tensor. An index is a string, a `#einsum.split` or an `#einsum.affine`.
  irdl.operation @access {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(tensor: %tensor)
    %element = irdl.base @einsum::@element
    irdl.results(element: %element)
    %indices = irdl.base "#builtin.array"
    irdl.attributes {"indices" = %indices}
  }

  // A number.
  irdl.operation @constant {
    %element = irdl.base @einsum::@element
    irdl.results(element: %element)
    %value = irdl.base "#builtin.float"
    irdl.attributes {"value" = %value}
  }

  // A pointwise operator on its operands.
  irdl.operation @apply {
    %arguments = irdl.base @einsum::@element
    irdl.operands(arguments: variadic %arguments)
    %element = irdl.base @einsum::@element
    irdl.results(element: %element)
    %operator = irdl.base "#builtin.string"
    irdl.attributes {"operator" = %operator}
  }

  // A reduction of its operand over indices.
  irdl.operation @reduce {
    %body = irdl.base @einsum::@element
    irdl.operands(body: %body)
    %element = irdl.base @einsum::@element
    irdl.results(element: %element)
    %reduction = irdl.base "#builtin.string"
    %over = irdl.base "#builtin.array"
    irdl.attributes {"reduction" = %reduction, "over" = %over}
  }

  // What a rule keeps of its operand: `threshold 0.1`, `8` or `2 of 4`, compared over indices. It ends in a `define`.
  irdl.operation @keep {
    %body = irdl.base @einsum::@element
    irdl.operands(body: %body)
    %element = irdl.base @einsum::@element
    irdl.results(element: %element)
    %rule = irdl.base "#builtin.string"
    %over = irdl.base "#builtin.array"
    irdl.attributes {"rule" = %rule, "over" = %over}
  }

  // An Einsum: the tensor `name` at `indices` is the operand. `path` is the module of the user's model that it comes from, and `span` its
  // place in a file. The result is of the declared type, or has the inferred shape and no format.
  irdl.operation @define {
    %body = irdl.base @einsum::@element
    irdl.operands(body: %body)
    %tensor = irdl.base "!builtin.tensor"
    irdl.results(tensor: %tensor)
    %name = irdl.base "#builtin.string"
    %indices = irdl.base "#builtin.array"
    %path = irdl.base "#builtin.string"
    %nowhere = irdl.is unit
    %place = irdl.base @einsum::@span
    %span = irdl.any_of(%nowhere, %place)
    irdl.attributes {"name" = %name, "indices" = %indices, "path" = %path, "span" = %span}
  }

  // A result that leaves the program.
  irdl.operation @output {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(tensor: %tensor)
  }
}
