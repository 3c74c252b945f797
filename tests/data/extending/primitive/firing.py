def scale(node: n.Scale, context: RuleContext, m: Module) -> None:
    x, (out,) = context.input(m, 0), context.outputs(m)
    product = context.apply("mul", x.payload, context.number(node.factor))
    m.rule("control", x.control, [x], gives={out: x.token}, closes=True)
    m.rule("value", ~x.control, [x], gives={out: m.value(out, product)})
