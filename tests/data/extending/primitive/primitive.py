@dataclass(frozen=True, slots=True)
class Scale(Pointwise):
    """Every value times `factor`."""

    op: ClassVar[str] = "scale"
    streams: ClassVar[str] = "stream: val(d) -> val: val(d)"
    role: ClassVar[Role] = "compute"
    area: ClassVar[Area] = Area(202)

    factor: float = field(metadata=attribute("number"))

    def check(self, c: NodeCheck) -> Sequence[OutputFacts]:
        c.kinds(self.takes())
        c.solid(0)
        if c.inputs[0].type.tile:
            c.refuse(f"{c.stream(0)} is {c.inputs[0].type}; this node takes scalars there")
        return [OutputFacts(c.inputs[0].shape)]

    def outputs(self, inputs: Sequence[StreamType]) -> tuple[StreamType, ...]:
        return (StreamType("val", inputs[0].depth),)

    def unit(self, tensors: Mapping[str, TensorDecl]) -> Unit:
        return Unit(ALU_FUNCTIONS["mul"].unit)

    @property
    def operator(self) -> str:
        return "mul"
