def scale(node: n.Scale, context: NodeContext) -> Sequence[Process]:
    multiply = scalar_function(operator("mul"), context.arithmetic)
    return context.process(_unary, lambda value: multiply(value, node.factor))
