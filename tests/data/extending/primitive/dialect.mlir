  // Every value times a constant.
  irdl.operation @scale {
    %depth = irdl.any
    %val = irdl.parametric @samml::@val<%depth>
    irdl.operands(stream: %val)
    irdl.results(val: %val)
    %node = irdl.base "#builtin.string"
    %factor = irdl.base "#builtin.float"
    irdl.attributes {"node" = %node, "factor" = %factor}
  }
