"""The schedule value: canonical, built in three ways, printed and re-read without loss."""

from __future__ import annotations

import string
from dataclasses import fields
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuseflow as ff
from fuseflow.cli.run import run
from fuseflow.compiler import compile
from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError, FuseFlowError, ScheduleError, UsageError
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import Sections
from fuseflow.schedule.section import Word
from fuseflow.schedule.sections import BY_FIELD, SECTIONS
from fuseflow.tensors import Format

names = st.text(string.ascii_letters + string.digits + "._-é", min_size=1, max_size=8).filter(
    lambda s: s not in ("none", "layerwise", "full")
)
indices = st.from_regex(r"[a-z_][a-z0-9_]{0,3}", fullmatch=True)
places = st.from_regex(r"[a-z][a-z0-9_.-]{0,5}", fullmatch=True)
dealt = st.one_of(indices, st.builds("{}.{}".format, places, indices), st.builds("{}/{}.{}".format, places, places, indices))
chains = st.sampled_from(["A X", "A (X layer1.weight)", "(A (B C)) (D E)"])
schedules = st.builds(
    Schedule,
    fuse_regions=st.one_of(
        st.sampled_from([("none",), ("layerwise",), ("full",)]), st.lists(names, min_size=1, max_size=3).map(tuple)
    ),
    regions=st.dictionaries(
        names.filter(lambda s: s[0] not in ".-"), st.lists(names, min_size=1, max_size=3).map(tuple), max_size=3
    ).map(lambda d: tuple(d.items())),
    orders=st.dictionaries(names, st.lists(indices, max_size=4, unique=True).map(tuple), max_size=3).map(
        lambda d: tuple(d.items())
    ),
    formats=st.dictionaries(
        names, st.sampled_from(["csr", "csf", "(dense, compressed) order (1,0)", "(compressed(nonunique),singleton)"]), max_size=3
    ).map(lambda d: tuple(d.items())),
    parallel=st.dictionaries(dealt, st.integers(1, 64), max_size=3).map(lambda d: tuple(d.items())),
    splits=st.dictionaries(st.builds("{}.{}".format, places, indices), st.integers(2, 64), max_size=3).map(
        lambda d: tuple(d.items())
    ),
    buffers=st.dictionaries(names, st.integers(1, 1 << 40) | st.integers(1, 4096).map(lambda n: n << 20), max_size=3).map(
        lambda d: tuple(d.items())
    ),
    preloads=st.dictionaries(names, st.integers(1, 1024), max_size=3).map(lambda d: tuple(d.items())),
    memories=st.dictionaries(names, st.just("scratchpad"), max_size=3).map(lambda d: tuple(d.items())),
    associations=st.dictionaries(names, chains, max_size=3).map(lambda d: tuple(d.items())),
    copies=st.booleans(),
    **{section.key: st.sampled_from(section.words) for section in SECTIONS if isinstance(section, Word)},
    drop_zeros=st.lists(names, max_size=2).map(tuple),
    recomputed=st.lists(names, max_size=2).map(tuple),
    resident=st.lists(names, max_size=2).map(tuple),
)


@given(schedules)
def test_yaml_round_trip(schedule: Schedule) -> None:
    reread = Schedule.from_yaml(schedule.to_yaml())
    assert reread == schedule
    assert str(reread) == str(schedule)
    assert eval(repr(schedule), {"ff": ff}) == schedule


def test_a_schedule_with_a_plan_shows_its_text() -> None:
    schedule = Schedule.from_yaml("fuse: full\nplan:\n  W: [{form: 32x32, weight: 2.5}, {form: elements}]\n")
    assert repr(schedule).startswith("ff.Schedule.from_yaml(") and eval(repr(schedule), {"ff": ff}) == schedule


@given(schedules)
def test_the_file_wins_over_nothing_and_flags_over_the_file(schedule: Schedule) -> None:
    assert Schedule.from_flags(base=schedule) == schedule
    changed = Schedule.from_flags(["none"], ["T=i,k,j"], ["adj=csc"], ["i=3"], base=schedule)
    assert changed.fuse_regions == ("none",)
    assert dict(changed.orders) == dict(schedule.orders) | {"T": ("i", "k", "j")}
    assert dict(changed.formats) == dict(schedule.formats) | {"adj": "csc"}
    assert dict(changed.parallel) == dict(schedule.parallel) | {"i": 3}


def test_three_ways_to_say_it() -> None:
    fluent = Schedule.fuse("layer1").par(i=4).order("layer1", "i,k,j").format("adj", "csr")
    flags = Schedule.from_flags(["layer1"], ["layer1=i,k,j"], ["adj=csr"], ["i=4"])
    text = "par: {i: 4}\nfuse: layer1\norder: {layer1: 'i, k, j'}\nformat:\n  adj: csr\n"
    assert fluent == flags == Schedule.from_yaml(text)
    assert str(fluent) == "fuse: [layer1]\norder:\n  layer1: [i, k, j]\nformat: {adj: csr}\npar: {i: 4}\n"
    split = Schedule.fuse("layer1").split("layer1.lin.i", 16)
    assert split == Schedule.from_flags(["layer1"], splits=["layer1.lin.i=16"]) == Schedule.from_yaml(str(split))
    assert str(split) == "fuse: [layer1]\nsplit: {layer1.lin.i: 16}\n"


def test_canonical() -> None:
    assert Schedule.fuse("b").fuse("a") == Schedule.fuse("a", "b", "a")
    assert Schedule.par(j=2).par(i=4) == Schedule.par(i=4, j=2)
    assert Schedule.fuse("none", "layer1") == Schedule.fuse("layer1")
    assert Schedule.fuse("a").fuse("full") == Schedule.fuse("full")
    assert Schedule.fuse("full").fuse("a") == Schedule.fuse("a")
    assert Schedule.format("A", "(dense,compressed)order(1,0)").formats == (("A", "(dense, compressed) order (1, 0)"),)
    assert Schedule.order("T", "i,k").order("T", ("k", "i")).orders == (("T", ("k", "i")),)
    assert hash(Schedule.fuse("a")) == hash(Schedule.fuse("a"))


def test_empty_file_is_the_default() -> None:
    assert Schedule.from_yaml("") == Schedule() == Schedule.from_yaml("# nothing\n")
    assert str(Schedule()) == "fuse: [best]\n"


def test_named_regions_are_fused_unless_the_file_says_otherwise() -> None:
    assert Schedule.from_yaml("regions: {head: [T1, layer2]}").fuse_regions == ("head",)
    assert Schedule.from_yaml("regions: {head: [T1]}\nfuse: none").fuse_regions == ("none",)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("fuse: a\nordr: {T: i}\n", "s.yaml:2:1", "did you mean `order`?"),
        ("fuse: [a\n", "s.yaml:2:1", "not YAML"),
        ("fuse: a\nfuse: b\n", "s.yaml:2:1", "duplicate key"),
        ("- a\n", "s.yaml:1:1", "is a mapping"),
        ("par:\n  i: many\n", "s.yaml:2:3", "`par.i`: input should be a valid integer, not `many`"),
        ("par:\n  i: 0\n", "s.yaml:2:3", "0 is not a number of lanes"),
        ("par: {i: true}\n", "s.yaml:1:7", "`par.i`"),
        ("split:\n  i: 4\n", "s.yaml:2:3", "write `T1.i` for the index i of the Einsum T1"),
        ("split: {T.i: 1}\n", "s.yaml:1:9", "parts of 1"),
        ("split: {T.i: a}\n", "s.yaml:1:9", "`split.T.i`"),
        ("order:\n  a: [i]\n  b: [i, 3]\n", "s.yaml:3:10", "`order.b.1`"),
        ("order: {b: [i, i]}\n", "s.yaml:1:9", "index `i` stands twice"),
        ("format: {A: crs}\n", "s.yaml:1:10", "did you mean `csr`?"),
        ("format:\n  A: (dense, compresed)\n", "s.yaml:2:3", "did you mean `compressed`?"),
        ("fuse: [full, a]\n", "s.yaml:1:1", "cannot stand beside `a`"),
        ("regions: {full: [a]}\n", "s.yaml:1:11", "cannot be called `full`"),
        ("regions: {r: []}\n", "s.yaml:1:11", "region `r` is empty"),
        ("regions: {../r: [a]}\n", "s.yaml:1:11", "region `../r`: not a name"),
        ("regions: {'a\"b': [a]}\n", "s.yaml:1:11", "not a name"),
        ("order: {1: i}\n", "s.yaml:1:9", "`order.1`: input should be a valid string"),
        ("fuse: a\x00b\n", "s.yaml:1", "not YAML"),
        ("a: &x [*x]\n", "s.yaml:1:4", "refers to itself"),
        ("fuse: !!python/object:os.system x\n", "s.yaml:1", "not YAML"),
    ],
)
def test_a_bad_file_names_the_place(text: str, where: str, what: str) -> None:
    with pytest.raises(ScheduleError) as error:
        Schedule.from_yaml(text, "s.yaml")
    assert str(error.value.span).startswith(where)
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"orders": ["i,k,j"]}, "`--order i,k,j`"),
        ({"orders": ["T="]}, "write `--order T=i,k,j`"),
        ({"formats": ["csr"]}, "`--format csr`"),
        ({"par": ["i"]}, "`--par i`"),
        ({"par": ["i=0"]}, "`0` is not a number of lanes"),
        ({"par": ["i=2.5"]}, "`2.5` is not a number of lanes"),
        ({"par": ["i=2", "i=4"]}, "gives `i` twice"),
        ({"splits": ["T.i=1"]}, "`1` is not a size of parts"),
        ({"splits": ["T.i=4x4"]}, "`4x4` is not a size of parts"),
    ],
)
def test_a_malformed_flag(flags: dict[str, list[str]], what: str) -> None:
    with pytest.raises(UsageError) as error:
        Schedule.from_flags(**flags)
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"fuse": ["layer1,layer2"]}, "repeating the flag"),
        ({"fuse": ["layerwise", "full"]}, "cannot stand beside"),
        ({"fuse": ["none", "full"]}, "`none` says what is fused in the whole model and cannot stand beside `full`"),
        ({"orders": ["T=i,,j"]}, "`` is not an index"),
        ({"orders": ["T=i,j,i"]}, "index `i` stands twice in i, j, i"),
        ({"formats": ["A=cs"]}, "did you mean `csr`?"),
        ({"formats": ["A=bsr(16, 16)"]}, "`--block NAME=16x16`"),
        ({"par": ["4=i"]}, "`i` is not a number of lanes"),
    ],
)
def test_flags_that_say_nothing_possible(flags: dict[str, list[str]], what: str) -> None:
    with pytest.raises(FuseFlowError) as error:
        Schedule.from_flags(**flags)
    assert what in str(error.value)
    assert error.value.exit_status == 2


def test_load(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "s.yaml"
    path.write_text(str(Schedule.fuse("layer1")))
    assert Schedule.load(path) == Schedule.fuse("layer1")
    with pytest.raises(FileError, match=r"cannot read the schedule .*No such file"):
        Schedule.load(tmp_path / "t.yaml")
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(FileError, match="not UTF-8"):
        Schedule.load(path)


def test_how_regions_are_lowered_in_three_ways() -> None:
    fluent = Schedule.fuse("full").lower(iteration="global", copies=False, drop_zeros=["Y"]).lower(locate="never", resident=["W"])
    flags = Schedule.from_flags(["full"], iteration="global", copies=False, locate="never", drop_zeros=["Y"], resident=["W"])
    text = "fuse: [full]\niteration: global\nlocate: never\ncopies: false\ndrop_zeros: [Y]\nresident: [W]\n"
    assert fluent == flags == Schedule.from_yaml(text)
    assert str(fluent) == text


def test_what_is_computed_again_in_three_ways() -> None:
    schedule = Schedule.fuse("full").recompute("relu").recompute("erf", "*.exp")
    assert schedule == Schedule.from_flags(["full"], recompute=["relu", "erf", "*.exp"])
    assert schedule == Schedule.from_yaml("fuse: full\nrecompute: relu, erf, *.exp")
    assert str(schedule) == "fuse: [full]\nrecompute: ['*.exp', erf, relu]\n"


def test_a_policy_stands_beside_orders() -> None:
    flags = Schedule.from_flags(["full"], orders=["first", "layer1=i,k"])
    assert flags == Schedule.fuse("full").order("layer1", "i,k").lower(order_policy="first")
    assert Schedule.from_flags(orders=["best"], base=flags).order_policy == "best"
    assert Schedule.from_flags(orders=["T=i"], base=flags).order_policy == "first"
    with pytest.raises(UsageError, match="`best` and `first`"):
        Schedule.from_flags(orders=["best", "first"])


def test_a_setting_that_does_not_exist_is_refused_in_its_place() -> None:
    with pytest.raises(ScheduleError, match=r"s\.yaml:2:1.*`iteration: gobal` is none of factored, global") as caught:
        Schedule.from_yaml("fuse: full\niteration: gobal\n", "s.yaml")
    assert "did you mean `global`" in str(caught.value)


@pytest.mark.parametrize("rank", range(1, 4))
def test_a_format_of_every_rank_can_be_written(rank: int) -> None:
    levels = ["dense", "compressed", "bitmap"]
    formats = [Format.of(*kinds, order=order) for kinds in product(levels, repeat=rank) for order in permutations(range(rank))]
    formats += [Format.parse("coo", rank)]
    for format in formats:
        assert Schedule.from_flags(formats=[f"c={format}"]).formats == (("c", str(format)),)
        assert Schedule.from_yaml(Schedule.format("c", str(format)).to_yaml()).formats == (("c", str(format)),)


def test_patterns_of_formats_keep_their_order() -> None:
    """The last pattern counts, so that a schedule that is written out and read again gives the same formats; names are sorted."""
    schedule = Schedule.format("w", "csr").format("*.weight", "csr").format("2.*", "csc").format("a", "dense")
    assert schedule.formats == (("*.weight", "csr"), ("2.*", "csc"), ("a", "dense"), ("w", "csr"))
    assert Schedule.from_yaml(schedule.to_yaml()) == schedule
    again = Schedule.from_flags(formats=["*.weight=dcsr", "b=coo"], base=schedule)
    assert again.formats == (("2.*", "csc"), ("*.weight", "dcsr"), ("a", "dense"), ("b", "coo"), ("w", "csr"))
    assert Schedule.from_yaml("format: {'?.bias': dense, '*': csr, x: csr}").formats[:2] == (("?.bias", "dense"), ("*", "csr"))
    with pytest.raises(UsageError, match=r"gives `\*\.weight` twice"):
        Schedule.from_flags(formats=["*.weight=csr", "*.weight=csc"])


def test_a_pattern_of_formats_has_its_place_in_the_file(tmp_path: Path) -> None:
    program = parse("tensor A[8, 8] csr\ntensor x[8]\nT[i] = sum(j) A[i, j] * x[j]\noutput T", "p")
    path = tmp_path / "s.yaml"
    path.write_text("fuse: [none]\nformat:\n  'B*': csr\n")
    with pytest.raises(ScheduleError, match="format of `B\\*`: it matches no tensor") as caught:
        compile(program, schedule=Schedule.load(path))
    assert caught.value.span is not None and (caught.value.span.file, caught.value.span.line) == (str(path), 3)
    compiled = compile(program, schedule=Schedule.format("*", "csc").format("x", "dense"))
    assert dict(compiled.schedule.formats) == {"A": "csc", "x": "dense"}


def test_a_section_is_a_row_and_a_field() -> None:
    """A new section is a row of the table and a field: the key of the file, the flag and the text follow from them."""
    assert set(BY_FIELD) == {field.name for field in fields(Schedule)} - {"places"}
    assert set(Sections.model_fields) == {section.key for section in SECTIONS}
    flags = {option for parameter in run.params for option in parameter.opts}
    for section in SECTIONS:
        prefix = "no-" if section.of is bool else ""
        assert bool(section.help) == (f"--{prefix}{section.key.replace('_', '-')}" in flags), section.key


def test_lowering_has_no_other_settings() -> None:
    with pytest.raises(TypeError, match=r"Schedule\.lower\(\) got an unexpected keyword argument 'format'"):
        Schedule().lower(format={"A": "csr"})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Schedule\.from_flags\(\) got an unexpected keyword argument 'formatz'"):
        Schedule.from_flags(formatz=["A=csr"])
