"""Sparsity specs: their YAML, in and out, hostile texts, and the short form of the command line."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.errors import FileError, SparsityError
from fuseflow.sparsity.layouts.layout import Dense, Masked
from fuseflow.sparsity.layouts.n_of_m import NMLayout
from fuseflow.sparsity.layouts.sparse import BCSR, COO, CSC, CSR
from fuseflow.sparsity.sparsifiers.built_in import NM, BlockMagnitude, KeepAll, Magnitude, RandomFraction, Threshold, TopK
from fuseflow.sparsity.spec import (
    IntermediateEntry,
    OutputFormat,
    SparseSpec,
    WeightEntry,
    last_match,
    parse_sparsify,
    read_spec,
    require_matches,
)
from fuseflow.yaml_text import write_yaml

SPARSIFIERS = st.sampled_from(
    (KeepAll(), Magnitude(0.9), Magnitude(1e-300, "model"), NM(2, 4, 0), RandomFraction(0.5, 3), BlockMagnitude(0.5, (4, 4)))
)
LAYOUTS = st.sampled_from([Dense(), Masked(), COO(), CSR(), CSC(), BCSR((4, 4)), NMLayout(2, 4, 0)])
OUTPUTS = st.builds(OutputFormat, SPARSIFIERS, LAYOUTS, SPARSIFIERS, LAYOUTS)
PATTERNS = st.one_of(
    st.text(max_size=8),
    st.text(" \t\n\r\x00\x85\u2028'\"\\:#{}[],&*!|>%@`-?=~.ä", max_size=6),
    st.sampled_from(
        ["*", "layer*.weight", "[ab].weight", "1", "1.5", "null", "true", "yes", "2001-01-01", "<<", "=", "~", "1:20", ""]
    ),
)


def entries(entry):
    return st.dictionaries(PATTERNS, entry, max_size=4).map(lambda mapping: tuple(mapping.items()))


SPECS = st.builds(
    SparseSpec,
    entries(st.builds(WeightEntry, SPARSIFIERS, OUTPUTS, st.none() | OUTPUTS)),
    entries(st.builds(IntermediateEntry, OUTPUTS, st.none() | OUTPUTS)),
)


@settings(max_examples=60)
@given(SPECS)
def test_yaml_says_the_spec(spec):
    text = spec.to_yaml()
    assert SparseSpec.from_yaml(text) == spec and SparseSpec.from_yaml(text).to_yaml() == text and bool(text) == bool(spec)


def test_only_what_is_unusual_is_written():
    spec = SparseSpec(
        (
            ("a", WeightEntry(Magnitude(0.9), OutputFormat(layout=CSR()))),
            ("b", WeightEntry(NM(2, 4), OutputFormat(layout=NMLayout(2, 4)))),
            ("c", WeightEntry()),
            ("d", WeightEntry(Magnitude(0.9))),
            ("e", WeightEntry(update=OutputFormat(external=TopK(2), layout=CSR()), grad=OutputFormat())),
        ),
        (
            ("f", IntermediateEntry(OutputFormat(Threshold(0.1), COO()), OutputFormat(external=TopK(3)))),
            ("g", IntermediateEntry()),
        ),
    )
    assert spec.to_yaml() == (
        "weights:\n"
        "  a: {sparsifier: magnitude:0.9}\n"
        "  b: {sparsifier: nm:2:4}\n"
        "  c: {}\n"
        "  d: {sparsifier: magnitude:0.9, layout: masked}\n"
        "  e:\n    external: topk:2\n    layout: csr\n    grad: {}\n"
        "intermediates:\n"
        "  f:\n    inline: threshold:0.1\n    tmp: coo\n    grad: {external: topk:3}\n"
        "  g: {}\n"
    )


def test_a_weight_has_the_layout_of_its_sparsifier_unless_it_says_another():
    text = "weights:\n  a: {sparsifier: nm:2:4}\n  b: {sparsifier: nm:2:4, layout: csr}\n  c: {}\n  d: {sparsifier: keepall}\n"
    layouts = [entry.layout for _, entry in SparseSpec.from_yaml(text).weights]
    assert layouts == [NMLayout(2, 4), CSR(), Masked(), Dense()]


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing\n", "null", "---\n", "{}", "weights: {}", "intermediates: {}\nweights: {}", "\ufeff"]
)
def test_a_text_may_say_nothing(text):
    spec = SparseSpec.from_yaml(text)
    assert spec == SparseSpec() and not spec and spec.to_yaml() == ""


def test_aliases_and_merges_are_read():
    text = "weights:\n  a: &x {sparsifier: topk:8}\n  b: *x\n  c: {<<: *x, layout: coo}\n"
    a, b, c = (entry for _, entry in SparseSpec.from_yaml(text).weights)
    assert a == b == WeightEntry(TopK(8), OutputFormat(layout=CSR())) and c.layout == COO()


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("- a", "1:1", "a sparsity spec is a mapping", "its keys are weights, intermediates"),
        ("3", "1:1", "a sparsity spec is a mapping", "its keys are weights, intermediates"),
        ("a\n", "1:1", "a sparsity spec is a mapping", "its keys are weights, intermediates"),
        ("wieghts: {}", "1:1", "unknown key `wieghts`", "did you mean `weights`?"),
        ("weights: {}\n1: {}", "2:1", "unknown key `1`", "known: `intermediates`, `weights`"),
        ("\nweights: [a]", "2:1", "`weights` is a mapping from names to entries", "as in `layer1.weight: {sparsifier:"),
        ("weights:", "1:1", "`weights` is a mapping from names to entries", "as in `layer1.weight: {sparsifier:"),
        ("intermediates: csr", "1:1", "`intermediates` is a mapping from names to entries", "as in `relu: {layout: csr}`"),
        ("weights:\n  a: {}\n  1: {}", "3:3", "the name `1` in `weights` is no text", 'write it as `"1"`'),
        ("intermediates:\n  1.5: {}", "2:3", "the name `1.5` in `intermediates` is no text", 'write it as `"1.5"`'),
        ("weights:\n  a: csr", "2:3", "the entry `weights.a` is a mapping", "its keys are sparsifier, inline, tmp, external,"),
        ("weights:\n  a:", "2:3", "the entry `weights.a` is a mapping", "its keys are sparsifier, inline, tmp, external,"),
        ("intermediates: {a: []}", "1:17", "the entry `intermediates.a` is a mapping", "its keys are inline, tmp, external,"),
        ("weights:\n  a: {layuot: csr}", "2:7", "unknown key `layuot`", "did you mean `layout`?"),
        ("intermediates:\n  a: {sparsifier: topk:8}", "2:7", "unknown key `sparsifier`", "known: `external`, `grad`"),
        ("weights:\n  a: {grad: csr}", "2:7", "the entry `weights.a.grad` is a mapping", "its keys are inline, tmp"),
        ("weights:\n  a:\n    grad: {grad: {}}", "3:12", "unknown key `grad`", "known: `external`, `inline`"),
        ("weights:\n  a: {sparsifier: 3}", "2:7", "`sparsifier` of `a` is a text", "as in `magnitude:0.9` or `csr`"),
        ("weights:\n  a: {layout: [csr]}", "2:7", "`layout` of `a` is a text", "as in `magnitude:0.9` or `csr`"),
        ("weights:\n  a: {layout: }", "2:7", "`layout` of `a` is a text", "as in `magnitude:0.9` or `csr`"),
        ("weights:\n  a: {sparsifier: magnitud:0.9}", "2:7", "there is no sparsifier `magnitud`", "did you mean `magnitude`?"),
        ("weights:\n  a: {sparsifier: magnitude:2}", "2:7", "`magnitude` cannot leave out a fraction of 2.0", "from 0 to 1"),
        ("weights:\n  a: {layout: scr}", "2:7", "there is no layout `scr`", "did you mean `csr`?"),
        ("weights:\n  a:\n    tmp: bcsr", "3:5", "`bcsr` lacks block", "write it as `bcsr:BLOCK`"),
        ("weights:\n  a:\n    grad:\n      external: topk", "4:7", "`topk` lacks k", "write it as `topk:K[:dim=-1]`"),
        ("weights:\n  a: {}\n  a: {}", "3:3", 'not YAML: found duplicate key "a"', ""),
        ("weights: {}\nweights: {}", "2:1", 'not YAML: found duplicate key "weights"', ""),
        ("weights: *x", "1:10", "not YAML: found undefined alias 'x'", ""),
        ("weights:\n\ta: {}", "2:1", "not YAML: found character '\\t'", ""),
        ("weights: {}\n---\nweights: {}", "2:1", "not YAML: but found another document", ""),
        ("weights: {a: 'x", "1:16", "not YAML: found unexpected end of stream", ""),
        ("weights: !!python/object/apply:os.system ['false']", "1:10", "not YAML: could not determine a constructor", ""),
        ("weights: {a: {layout: 2001-13-01}}", "1:23", "not YAML: `2001-13-01` cannot be read: month must be in 1..12", ""),
        ("weights: {a: {layout: !!int x}}", "1:23", "not YAML: `x` cannot be read", ""),
        ("weights:\n  2001-02-30: {}", "2:3", "not YAML: `2001-02-30` cannot be read", ""),
        ("weights: &a {a: *a}", "1:10", "a value refers to itself", ""),
        ("&a weights: *a", "1:1", "`weights` is a mapping from names to entries", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_text_is_said_with_its_place(text, place, message, hint):
    with pytest.raises(SparsityError) as error:
        SparseSpec.from_yaml(text, "spec.yaml")
    assert str(error.value.span) == f"spec.yaml:{place}" and message in error.value.message and hint in error.value.hint


MANY = f"a: &a [{', '.join('x' * 1001)}]\nb: &b [{', '.join(['*a'] * 1000)}]\n"
"""A text that makes 1,001,000 values, where 1,000,000 are read."""


@pytest.mark.parametrize(
    "text",
    [
        *("weights: " + "[" * 102, "{a: " * 102 + "}" * 102),
        *("".join(" " * k + "a:\n" for k in range(102)), MANY, MANY + "? *b\n: 1\n", "weights:\n  a: {layout: *z}\n"),
        *("weights: \0", "\x01", "weights: \ud800", '{"\\xZZ": 1}', '{"\\UFFFFFFFF": 1}', "\u2028: \x7f", "weights: \x1b[31m"),
        *("!foo {weights: {}}", "weights: !!set {a}", "weights: !!binary '*'", "!!binary é", "!!timestamp x", "!!bool x: 1"),
        *(
            "!!float x",
            "weights: !!omap {a: 1}",
            "weights: {a: {layout: !!bool x}}",
            "{[a, {b: c}]: {}}",
            "weights: {{a: b}: {}}",
        ),
        *("%YAML 9.9\n---\n{}", "%YAML x\n---\n{}", "%TAG ! \n---\n{}", "weights: {a: {layout: " + "9" * 5000 + "}}"),
        *(
            "0x_",
            "0b_: 1",
            "weights: {a: {layout: -_}}",
            "._",
            "weights: {=: =}",
            "weights: {<<: 3}",
            "&a {*a : 1}",
            "? [a]\n: b",
        ),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_hostile_texts_are_refused(text):
    with pytest.raises(SparsityError) as error:
        SparseSpec.from_yaml(text)
    assert error.value.span is not None


@given(st.text() | st.text("{}[]:,&*!|>%@`-?=~#'\" \n\tab01._<weights", max_size=30))
def test_any_text_is_a_spec_or_refused(text):
    try:
        spec = SparseSpec.from_yaml(text)
    except SparsityError:
        return
    assert SparseSpec.from_yaml(spec.to_yaml()) == spec


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["csr", "topk:8", "magnitude:0.9"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["layout", "grad", "tmp", "sparsifier", "a"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["weights", "intermediates"]), st.dictionaries(st.sampled_from("ab"), JUNK) | JUNK))
def test_any_content_is_a_spec_or_refused(content):
    try:
        spec = SparseSpec.from_yaml(write_yaml(content))
    except SparsityError:
        return
    assert SparseSpec.from_yaml(spec.to_yaml()) == spec


def test_a_spec_is_read_from_a_file(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("weights:\n  a: {layout: scr}\n")
    with pytest.raises(SparsityError) as error:
        read_spec(path)
    assert str(error.value.span) == f"{path}:2:7"
    path.write_text("weights:\n  ä*: {layout: csr}\n", encoding="utf-8")
    assert read_spec(path) == SparseSpec((("ä*", WeightEntry(update=OutputFormat(layout=CSR()))),))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"weights: \x80", bytes(range(256))])
def test_a_file_that_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"cannot read the sparsity spec .* it is not UTF-8 text"):
        read_spec(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"cannot read the sparsity spec .*: No such file"):
        read_spec(tmp_path / "spec.yaml")
    with pytest.raises(FileError, match=r"cannot read the sparsity spec .*: Is a directory"):
        read_spec(tmp_path)


@pytest.mark.parametrize(
    ("text", "pattern", "sparsifier", "layout"),
    [
        ("*.weight=magnitude:0.9", "*.weight", Magnitude(0.9), CSR()),
        ("*.weight=magnitude:0.9:coo", "*.weight", Magnitude(0.9), COO()),
        ("a=magnitude:0.9:scope=model:csc", "a", Magnitude(0.9, "model"), CSC()),
        ("a=magnitude:fraction=0.9:scope=model", "a", Magnitude(0.9, "model"), CSR()),
        ("a=nm:2:4", "a", NM(2, 4), NMLayout(2, 4)),
        ("a=nm:2:4:nm", "a", NM(2, 4), NMLayout(2, 4)),
        ("a=nm:2:4:dim=0:nm", "a", NM(2, 4, 0), NMLayout(2, 4, 0)),
        ("a=nm:2:4:nm:3:8:dim=0", "a", NM(2, 4), NMLayout(3, 8, 0)),
        ("a=block:0.5:4x4", "a", BlockMagnitude(0.5, (4, 4)), BCSR((4, 4))),
        ("a=block:0.5:4x4:bcsr", "a", BlockMagnitude(0.5, (4, 4)), BCSR((4, 4))),
        ("a=topk:8:bcsr:2x2", "a", TopK(8), BCSR((2, 2))),
        ("a=keepall", "a", KeepAll(), Dense()),
        ("a=keepall:masked", "a", KeepAll(), Masked()),
        ("[ab]:c=random:0.5:3:csr", "[ab]:c", RandomFraction(0.5, 3), CSR()),
    ],
)
def test_the_short_form_of_a_weight(text, pattern, sparsifier, layout):
    spec = parse_sparsify(text)
    assert spec == SparseSpec(((pattern, WeightEntry(sparsifier, OutputFormat(layout=layout))),))
    assert SparseSpec.from_yaml(spec.to_yaml()) == spec


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        *(
            (text, f"`{text}` is not PATTERN=SPARSIFIER", "as in `*.weight=magnitude:0.9:csr`")
            for text in ("", "a", "a=", "=x", "=")
        ),
        ("a=:csr", "there is no sparsifier ``", "known: "),
        ("a=csr", "there is no sparsifier `csr`", "known: "),
        ("a=magnitud:0.9", "there is no sparsifier `magnitud`", "did you mean `magnitude`?"),
        ("a=magnitude", "`magnitude` lacks fraction", "magnitude:FRACTION"),
        ("a=magnitude:csr", "`magnitude` lacks fraction", "magnitude:FRACTION"),
        ("a=magnitude:1.01:csr", "`magnitude` cannot leave out a fraction of 1.01", "from 0 to 1"),
        ("a=magnitude:-0.1", "`magnitude` cannot leave out a fraction of -0.1", "from 0 to 1"),
        ("a=nm:4:2", "`nm:4:2`: 4 entries cannot be kept of every 2", "between 1 and 2"),
        ("a=nm:2:4:nm:4:2", "`nm:4:2`: 4 entries cannot be kept of every 2", "between 1 and 2"),
        ("a=block:0.5:0x4", "a block has at least one row", "block:0.5:4x4"),
        ("a=topk:8:bcsr", "`bcsr` lacks block", "bcsr:BLOCK"),
        ("a=topk:8:bcsr:4", "`block` cannot be `4`", "4x4"),
        ("a=magnitude:0.9:csr:coo", "`csr:coo` says too much: `coo`", "write it as `csr`"),
        ("a=magnitude:0.9:layout=csr", "there is no `layout`", "known: `fraction`, `scope`"),
    ],
)
def test_other_short_forms_are_refused_in_words(text, message, hint):
    with pytest.raises(SparsityError) as error:
        parse_sparsify(text)
    assert message in error.value.message and hint in error.value.hint


def test_the_last_pattern_that_matches_counts():
    rows = (("*", 1), ("layer?.weight", 2), ("layer[12].*", 3), ("layer1.weight", 4), ("LAYER*", 5))
    names = ("bias", "layer3.weight", "layer2.weight", "layer1.bias", "layer1.weight", "layer12.weight")
    assert [last_match(rows, name) for name in names] == [1, 2, 3, 3, 4, 1]
    assert last_match(rows[1:], "bias") is None and last_match((), "bias") is None
    assert last_match(iter(rows), "layer3.weight") == 2


def weights(*pairs):
    return SparseSpec(tuple((name, WeightEntry(TopK(k))) for name, k in pairs))


def test_of_two_specs_the_later_counts_more():
    assert weights(("a", 1), ("b", 2)) + weights(("a", 3), ("c", 4)) == weights(("b", 2), ("a", 3), ("c", 4))
    assert weights(("a", 1)) + SparseSpec() == SparseSpec() + weights(("a", 1)) == weights(("a", 1))
    assert last_match((weights(("a.*", 1)) + weights(("*", 2))).weights, "a.weight").sparsifier == TopK(2)


@given(SPECS, SPECS, SPECS)
def test_specs_add_up_as_dictionaries_do_with_later_keys_last(a, b, c):
    assert (a + b) + c == a + (b + c)
    for section in ("weights", "intermediates"):
        joined = OrderedDict(getattr(a, section))
        for name, entry in getattr(b, section):
            joined[name] = entry
            joined.move_to_end(name)
        assert getattr(a + b, section) == tuple(joined.items())


def test_a_pattern_has_one_entry():
    with pytest.raises(SparsityError, match="`a` has two entries") as error:
        weights(("a", 1), ("b", 1), ("a", 2))
    assert error.value.hint == "keep one of them"
    with pytest.raises(SparsityError, match="`x` has two entries"):
        SparseSpec(intermediates=(("x", IntermediateEntry()), ("x", IntermediateEntry())))


def test_a_pattern_matches_something():
    rows = (("layer*.weight", 1), ("lyaer1.weight", 2))
    require_matches(rows[:1], iter(["layer1.weight"]), "weight")
    with pytest.raises(SparsityError, match=r"no weight is called `lyaer1\.weight`") as error:
        require_matches(rows, ["layer1.weight", "layer2.bias"], "weight")
    assert error.value.hint == "did you mean `layer1.weight`? (`sp.names(model, *inputs)` lists all)"
    with pytest.raises(SparsityError) as error:
        require_matches(rows, [], "weight")
    assert error.value.hint.startswith("the model has no weight (")


def test_what_keeps_all_is_told_apart():
    assert OutputFormat().keeps_all and OutputFormat(layout=CSR(), tmp=COO()).keeps_all
    assert not OutputFormat(inline=TopK(1)).keeps_all and not OutputFormat(external=TopK(1)).keeps_all


def test_references_that_multiply_are_not_followed():
    """Each line means eight times the one before; written out they would be 8 ** 20 values."""
    lines = ["weights: &a0 {w: {sparsifier: keepall}}"]
    lines += [f"k{i}: &a{i} {{{', '.join(f'x{i}{j}: *a{i - 1}' for j in range(8))}}}" for i in range(1, 21)]
    with pytest.raises(SparsityError, match="more than 1,000,000 values"):
        SparseSpec.from_yaml("\n".join(lines))
