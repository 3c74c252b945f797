class Scale(Primitive, name="scale", traits=[Pure]):
    stream: Operand[Val]
    val: Result[Val]
    factor: ir.FloatAttr = attribute(kw_only=True)
