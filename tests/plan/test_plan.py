"""Plans: their YAML, what is refused in it, and plans applied to programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import arrays_of, packed, random_case

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import TENSOR_NAME
from fuseflow.errors import FileError, PlanError
from fuseflow.plan.partition import Form, PlannedPart
from fuseflow.plan.plan import Plan, read_plan
from fuseflow.tensors import DTYPES

TEXT = """\
operands:
  layer1.weight:
  - {form: 32x32, weight: 1027.8}
  - {form: elements, weight: 8.04}
  layer2.weight:
  - {form: nm(2:4), dtype: i8}
  - {form: elements}
"""
PRODUCT = "tensor A[4, 8] dense\ntensor B[8, 6] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"

SIZES = st.integers(1, 1024)
DTYPE = st.sampled_from(["", *DTYPES])
BLOCKS = st.builds(Form, st.tuples(SIZES, SIZES), dtype=DTYPE)
GROUPS = st.tuples(st.integers(1, 9), st.integers(0, 9), DTYPE).map(lambda p: Form.parse(f"nm({p[0]}:{p[0] + p[1]})", p[2]))
WEIGHTS = st.none() | st.floats(min_value=0, exclude_min=True, allow_infinity=False)


def planned(forms: list[Form], weights: list[float | None]) -> tuple[PlannedPart, ...]:
    ordered = sorted(forms, key=lambda form: form.nm is None)
    return tuple(PlannedPart(form, weight) for form, weight in zip(ordered, weights, strict=False))


PARTS = st.builds(
    planned, st.lists(BLOCKS | GROUPS, min_size=1, max_size=5, unique=True), st.lists(WEIGHTS, min_size=5, max_size=5)
)
NAMES = st.from_regex(TENSOR_NAME, fullmatch=True) | st.sampled_from(["1", "1e5", "null", "true", "y", "0x1", "1.5", "2001.01"])
PLANS = st.dictionaries(NAMES, PARTS, max_size=4).map(lambda operands: Plan(tuple(operands.items())))


def test_a_plan_as_text():
    plan = Plan.from_yaml(TEXT)
    assert plan.operands[1][1] == (PlannedPart(Form.parse("nm(2:4)", "i8")), PlannedPart(Form()))
    assert str(plan) == plan.to_yaml() == TEXT


@settings(deadline=None)
@given(PLANS)
def test_a_printed_plan_is_read_as_the_same(plan: Plan):
    assert Plan.from_yaml(plan.to_yaml()) == plan


@pytest.mark.parametrize("text", ["", "operands: {}", "# nothing\n"])
def test_a_plan_may_be_empty(text: str):
    assert Plan.from_yaml(text) == Plan() and not Plan() and Plan().to_yaml() == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operands: [", r"p\.yaml:1:12: error\[plan\]: not YAML"),
        ("[1, 2]", r"p\.yaml:1:1: .*a plan is a mapping"),
        ("operand: {}", r"p\.yaml:1:1: .*unknown key `operand`\n  hint: did you mean `operands`"),
        ("operands: {}\n? [1, 2]\n: 3", r"p\.yaml:1:1: .*unknown key `\.\.\.`"),
        ("operands: 3", r"p\.yaml:1:1: .*is a mapping from names of tensors to parts"),
        ("operands: {3: [{form: 4x4}]}", r"p\.yaml:1:1: .*is a mapping from names of tensors to parts"),
        ("operands:\n  W: 4x4", r"p\.yaml:2:3: .*the parts of `W` are a list"),
        ("operands:\n  W: []", r"p\.yaml:2:3: .*`W` has no parts"),
        ("operands:\n  W: [4x4]", r"p\.yaml:2:7: .*a part is a mapping\n  hint: its keys are form, dtype, weight"),
        ("operands:\n  W: [{}]", r"p\.yaml:2:7: .*a part needs the key `form`"),
        ("operands:\n  W:\n  - form: 4x4\n    size: 3", r"p\.yaml:4:5: .*unknown key `size`"),
        ("operands:\n  W:\n  - form: 4", r"p\.yaml:3:5: .*`form` is a text"),
        ("operands:\n  W:\n  - form: 4y4", r"p\.yaml:3:5: .*cannot read the block `4y4`"),
        ("operands:\n  W:\n  - form: 4x4\n    dtype: i9", r"p\.yaml:4:5: .*unknown dtype `i9`"),
        ("operands:\n  W:\n  - form: 4x4\n    dtype: ''", r"p\.yaml:4:5: .*`dtype` is a text"),
        ("operands:\n  W:\n  - form: 4x4\n    weight: 0", r"p\.yaml:4:5: .*a weight of 0 for `4x4`"),
        ("operands:\n  W:\n  - form: 4x4\n    weight: .nan", r"p\.yaml:4:5: .*a weight of nan for `4x4`"),
        ("operands:\n  W:\n  - form: 4x4\n    weight: -.inf", r"p\.yaml:4:5: .*a weight of -inf for `4x4`"),
        ("operands:\n  W:\n  - form: 4x4\n    weight: yes", r"p\.yaml:4:5: .*`weight` is a number"),
        ("operands:\n  W:\n  - form: 4x4\n    weight: true", r"p\.yaml:4:5: .*`weight` is a number"),
        (f"operands:\n  W:\n  - form: 4x4\n    weight: 1{'0' * 400}", r"p\.yaml:4:13: .*is a whole number of more than 64 bits"),
        ("operands:\n  W: [{form: 4x4}, {form: 4x4}]", r"p\.yaml:2:3: .*`W` has two parts `4x4`"),
        ("operands:\n  W: [{form: elements}, {form: 1x1}]", r"p\.yaml:2:3: .*`W` has two parts `elements`"),
        ("operands:\n  W: [{form: 4x4}, {form: nm(2:4)}]", r"p\.yaml:2:3: .*`nm\(2:4\)` of `W` stands behind `4x4`"),
        ("operands:\n  W: [{form: 4x4}]\n  W: []", r"p\.yaml:3:3: .*not YAML: found duplicate key"),
        ("operands: &a\n  W: *a", r"p\.yaml:1:11: .*a value refers to itself"),
        ("operands:\n  W: &a [*a]", r"p\.yaml:2:6: .*a value refers to itself"),
        ("operands: !!python/object:os.system {}", r"p\.yaml:1:11: .*not YAML"),
        ("operands: !!bool word", r"p\.yaml:1:11: .*`word` cannot be read"),
        ("operands: {a b: []}", r"p\.yaml:1:12: .*`a b` cannot name a tensor"),
        ("operands: \x00", r"p\.yaml:1: .*not YAML"),
        ("a: 1\n---\nb: 2", r"p\.yaml:2:1: .*not YAML"),
        ("[" * 102, r"p\.yaml:1:102: .*nested too deep"),
    ],
)
def test_what_is_wrong_in_a_plan_has_a_place(text: str, message: str):
    with pytest.raises(PlanError, match=message):
        Plan.from_yaml(text, "p.yaml")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_spoiled_plan_is_read_or_refused(data: st.DataObject):
    place = data.draw(st.integers(0, len(TEXT)))
    junk = data.draw(
        st.text("[]{}:-!&*?|>%@`'\"#,\n\t 01xn~<=", max_size=4) | st.sampled_from(["!!bool ", "!!set ", "!!float ", "<<: "])
    )
    spoiled = TEXT[:place] + junk + TEXT[place + data.draw(st.integers(0, 5)) :]
    try:
        Plan.from_yaml(spoiled)
        placed = True
    except PlanError as error:
        placed = error.span is not None
    assert placed


def test_a_plan_in_a_file(tmp_path: Path):
    file = tmp_path / "plan.yaml"
    file.write_text(TEXT, encoding="utf-8")
    assert read_plan(file) == Plan.from_yaml(TEXT)
    with pytest.raises(FileError, match="the plan"):
        read_plan(tmp_path / "other.yaml")


def test_an_operand_has_one_entry():
    part = (PlannedPart(Form()),)
    with pytest.raises(PlanError, match="`W` has two entries"):
        Plan((("W", part), ("W", part)))


def test_weights_are_filled_in_where_they_are_needed():
    asked: list[str] = []

    def weigh(form: Form) -> float:
        asked.append(str(form))
        return 2.0

    text = "operands: {A: [{form: 4x4}], B: [{form: nm(1:2)}, {form: 4x4}, {form: elements, weight: 8}], C: [{form: nm(1:2)}]}"
    weighed = dict(Plan.from_yaml(text).weighed(weigh).operands)
    assert asked == ["4x4"]
    assert [part.weight for part in weighed["B"]] == [None, 2.0, 8.0]
    assert weighed["A"] == (PlannedPart(Form((4, 4))),)


def example() -> tuple[Any, Any]:
    program = parse(PRODUCT)
    return program, packed(program, {"A": np.ones((4, 8)), "B": np.pad(np.ones((4, 4)), ((0, 4), (0, 2)))})


def test_a_plan_applied():
    plan = Plan.from_yaml("operands: {B: [{form: 4x4, weight: 16}, {form: elements, weight: 8}]}")
    program, tensors = plan.apply(*example())
    assert show(program).splitlines()[-2] == "Y[i, j] = sum(k) A[i, k] * B[k, j]"  # all is in one block
    assert tensors["B"].to_dense().sum() == 16 and program.declared["B"].block == (4, 4)
    needed = np.ones((8, 6), dtype=bool)
    needed[0] = False
    assert plan.apply(*example(), {"B": needed})[1]["B"].to_dense().sum() == 12


def test_the_empty_plan_changes_nothing():
    program, tensors = example()
    assert Plan().apply(program, tensors) == (program, tensors)


def test_plans_of_two_operands_mean_the_same():
    for seed in range(200):
        case = random_case(seed)
        other = (("C", (PlannedPart(Form((2, 1)), 2.0), PlannedPart(Form(), 1.5))),) if "C" in case.arrays else ()
        plan = Plan((("B", case.planned), *other))
        program, tensors = Plan.from_yaml(plan.to_yaml()).apply(case.program, case.given.tensors)
        wanted = evaluate(case.program, case.arrays, outputs_only=True)["Y"]
        found = evaluate(program, arrays_of(tensors), outputs_only=True)["Y"]
        assert np.abs(found - wanted).max(initial=0) <= 1e-6 * max(1, np.abs(wanted).max(initial=0)), seed


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("BB: [{form: 4x4}]", r"the program has no tensor `BB`\n  hint: did you mean `B`"),
        ("Y: [{form: 4x4}]", r"`Y` is computed\n  hint: only constants are decomposed"),
        ("B: [{form: 4x4}, {form: elements}]", r"`B`: nothing says what blocks of `4x4` cost"),
        ("A: [{form: 4x1}], B: [{form: 4x4}]", r"`A` and `B` are factors of one product\n  hint: decompose one of them"),
        ("B: [{form: nm(1:2)}]", r"no part of `B` holds the entry \(0, 1\), which is 1"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(entry: str, message: str):
    with pytest.raises(PlanError, match=message):
        Plan.from_yaml(f"operands: {{{entry}}}").apply(*example())


def test_analyses_plans_and_narrower_types_load_no_pytorch():
    script = r"""
import sys
import numpy as np
import fuseflow as ff
from fuseflow.einsum.parse import parse

program = parse("tensor X[4, 4]\ntensor W[4, 4] csr\nY[i, j] = sum(k) X[i, k] * W[k, j]\noutput Y")
ff.attributes.analyse(program, {"W": ff.attributes.pruned(np.eye(4, dtype=bool))})
tensors = {"X": np.ones((4, 4)), "W": np.eye(4)}
schedule = ff.Schedule.from_yaml("plan: {W: [{form: 2x2}, {form: elements}]}")
compiled = ff.compile(program, tensors=tensors, schedule=schedule, propagate=True, machine="ideal")
assert ff.quantize(compiled, 1e-2).scales
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
