def scale(node: n.Scale, place: NodeContext) -> Sequence[Process]:
    return place.process(_one, lambda value: value * node.factor)
