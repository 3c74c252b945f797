def scale(node: n.Scale, context: NodeContext, m: Module) -> None:
    x, arithmetic = context.input(m, 0), context.arithmetic
    (out,) = context.outputs(m)
    factor = const(arithmetic.word(node.factor), arithmetic.width)
    m.rule("control", x.control, [x], gives={out: x.token}, closes=True)
    m.rule("value", ~x.control, [x], gives={out: m.value(out, arithmetic.apply("mul", x.payload, factor))})
