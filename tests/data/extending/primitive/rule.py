def _scale(c: RuleContext, node: n.Scale, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    c.solid(node, inputs, 0)
    if inputs[0].type.tile:
        c.refuse(node, f"{c.stream(node, 0)} is {inputs[0].type}; this node takes scalars there")
    return [OutputFacts(inputs[0].shape)]
