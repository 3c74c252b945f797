def scale(node: n.Scale, place: Place) -> Sequence[Process]:
    return place.process(_one, lambda value: value * node.factor)
