def scale(node: n.Scale, context: NodeContext) -> Sequence[Process]:
    return context.process(_unary, lambda value: value * node.factor)
