def scale(node: n.Scale, context: NodeContext) -> Sequence[Process]:
    multiply = scalar_function(operator("mul"), context.arithmetic)
    return context.process(elementwise, lambda value: multiply(value, node.factor))
