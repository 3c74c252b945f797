"""When each primitive fires, and that its gates are tight: tiny streams, cycles worked out from the contract by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from driving import Driven, drive, inputs_of

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.dense import DenseFibers

ANY = Format.of("compressed")


def stored(pos: list[int], crd: list[int]) -> dict[str, Tensor]:
    fibers = CompressedFibers(9, np.array(pos), np.array(crd, dtype=np.int64))
    return {"A": Tensor((9,), ANY, (fibers,), np.arange(10.0, 10.0 + len(crd)))}


def one(driven: Driven) -> str:
    (fired,) = driven.fired
    return fired


def test_root_fires_in_cycles_0_and_1() -> None:
    assert one(drive(n.Root("r", ()))) == "0@0 D@1"


class TestScan:
    def scan(self, refs: str, pos: list[int], crd: list[int], **timing: int) -> list[str]:
        return drive(n.Scan("s", inputs_of(1), "A", 0), refs, tensors=stored(pos, crd), **timing).fired

    def test_an_element_a_cycle_then_the_closing_firing(self) -> None:
        crd, ref = self.scan("0 D", [0, 3], [1, 4, 7])
        assert crd == "1@0 4@1 7@2 S0@3 D@4"
        assert ref == "0@0 1@1 2@2 S0@3 D@4"

    def test_the_closing_firing_looks_at_the_next_reference(self) -> None:
        assert self.scan("0 1@10 S0@13 D", [0, 1, 2], [1, 4])[0] == "1@0 S0@10 4@11 S1@13 D@14"

    def test_an_empty_segment_costs_a_firing_that_emits_nothing(self) -> None:
        assert self.scan("0 1 2 S0 D", [0, 2, 2, 3], [1, 4, 0])[0] == "1@0 4@1 S0@2 S0@4 0@5 S1@6 D@7"

    def test_n_is_an_empty_segment(self) -> None:
        assert self.scan("N 0 S0 D", [0, 1], [5])[0] == "S0@1 5@2 S1@3 D@4"

    def test_a_bare_stop_is_raised_in_one_firing(self) -> None:
        assert self.scan("S0@3 S1-1@4 D", [0], [])[0] == "S1-1@3 S2-2@4 D@5"

    def test_the_interval_separates_values_not_what_follows_a_stop(self) -> None:
        assert self.scan("0 0 S0 D", [0, 2], [1, 4], interval=3)[0] == "1@0 4@3 S0@6 1@7 4@10 S1@13 D@14"

    def test_a_dense_level_and_a_range(self) -> None:
        tensors = {"A": Tensor((2,), Format.dense(1), (DenseFibers(2, 3),), np.zeros(6))}
        assert drive(n.Scan("s", inputs_of(1), "A", 0), "2 D", tensors=tensors).fired == ["0@0 1@1 S0@2 D@3", "4@0 5@1 S0@2 D@3"]
        assert one(drive(n.Range("r", inputs_of(1), 2), "N 7 S0 D")) == "0@0 1@1 S0@2 0@3 1@4 S1@5 D@6"
        assert one(drive(n.Range("r", inputs_of(1), 0), "0 D")) == "S0@1 D@2"


class TestPointwise:
    def test_locate_and_load_wait_for_each_token(self) -> None:
        decl = n.TensorDecl("A", (4, 5), Format.dense(2))
        driven = drive(n.Locate("l", inputs_of(2), "A", 1), "2@0 3@1 S0@5 D", "1@4 N@5 S0 D", declared=(decl,))
        assert one(driven) == "7@4 N@5 S0@6 D@7"
        assert one(drive(n.Locate("l", inputs_of(1), "A", 0), "2@3 S0 D", declared=(decl,))) == "2@3 S0@4 D@5"
        decl = n.TensorDecl("A", (9,), ANY, fill=-1.0)
        driven = drive(n.Load("l", inputs_of(1), "A"), "1@2 N@3 S0 D", tensors=stored([0, 2], [1, 4]), declared=(decl,))
        assert one(driven) == "11@2 -1@3 S0@4 D@5"

    def test_a_locate_keeps_a_compressed_level_before_it_takes_a_token(self) -> None:
        decl, tensors = n.TensorDecl("A", (9,), ANY), stored([0, 3], [1, 4, 7])
        driven = drive(n.Locate("l", inputs_of(1), "A", 0), "4 5 S0@9 7 N S0 D", declared=(decl,), tensors=tensors)
        assert one(driven) == "1@3 N@4 S0@9 2@10 N@11 S0@12 D@13"
        assert driven.firings == 3 + 7
        slow = drive(n.Locate("l", inputs_of(1), "A", 0), "1 S0 D", declared=(decl,), tensors=tensors, interval=2)
        assert one(slow) == "0@6 S0@8 D@9"
        assert (
            one(drive(n.Locate("l", inputs_of(1), "A", 0), "1 S0 D", declared=(decl,), tensors=stored([0, 0], [])))
            == "N@0 S0@1 D@2"
        )

    def test_alu_fires_when_the_later_operand_is_there(self) -> None:
        node = n.Alu("a", inputs_of(2), "add", (n.Operand(0.0), n.Operand(5.0)))
        assert one(drive(node, "1.5@0 2@1 S0 D", "1@7 N@8 S0 D")) == "2.5@7 7@8 S0@9 D@10"

    def test_constants_and_three_operands(self) -> None:
        node = n.Alu("a", inputs_of(1), "sub", (n.Operand(10.0, constant=True), n.Operand(0.0)))
        assert one(drive(node, "1 N S0 D")) == "9@0 10@1 S0@2 D@3"
        node = n.Alu("a", inputs_of(3), "where", (n.Operand(0.0), n.Operand(0.0), n.Operand(-inf)))
        assert one(drive(node, "1 0 N S0 D", "2 2 2 S0 D", "3 3 N S0 D")) == "2@0 3@1 -inf@2 S0@3 D@4"
        node = n.Alu("a", inputs_of(1), "where", (n.Operand(0.0), n.Operand(4.0, constant=True), n.Operand(5.0, constant=True)))
        assert one(drive(node, "1 N S0 D")) == "4@0 5@1 S0@2 D@3"


class TestRepeat:
    def repeat(self, x: str, signal: str, **timing: int) -> str:
        return one(drive(n.Repeat("r", inputs_of(2)), x, signal, **timing))

    def test_the_first_value_of_a_fiber_takes_x(self) -> None:
        assert self.repeat("7@5 8@6 S0@9 D", "0 1 S0 2 S1 D") == "7@5 7@6 S0@7 8@8 S1@9 D@10"

    def test_a_fiber_that_ends_no_list_of_x_does_not_wait_for_the_next_x(self) -> None:
        assert self.repeat("7 8@20 S0 D", "0 S0 1 S1 D") == "7@0 S0@1 8@20 S1@21 D@22"

    def test_an_empty_fiber_takes_x_in_a_firing_of_its_own(self) -> None:
        assert self.repeat("7 8 S0 D", "S0 1 S1 D") == "S0@1 8@2 S1@3 D@4"

    def test_a_bare_higher_stop_takes_both(self) -> None:
        assert self.repeat("S0@4 S1-1@5 D", "S1-1 S2-2 D") == "S1-1@4 S2-2@5 D@6"

    def test_the_root_by_a_signal_with_n(self) -> None:
        assert self.repeat("0 D", "3 N S0 D") == "0@0 0@1 S0@2 D@3"


class TestJoin:
    def join(self, kind: str, *streams: str) -> list[str]:
        return drive(n.Join("j", inputs_of(len(streams)), kind, (1,) * (len(streams) // 2)), *streams).fired

    def test_one_firing_a_comparison(self) -> None:
        found = self.join("intersect", "0 2 4 S0 D", "10 11 12 S0 D", "1 2 S0 D", "20 21 S0 D")
        assert found == ["2@2 S0@4 D@5", "11@2 S0@4 D@5", "21@2 S0@4 D@5"]

    def test_union_and_left(self) -> None:
        streams = "0 2 S0 D", "10 11 S0 D", "1 2 3 S0 D", "20 21 22 S0 D"
        assert self.join("union", *streams) == [
            "0@0 1@1 2@2 3@3 S0@4 D@5", "10@0 N@1 11@2 N@3 S0@4 D@5", "N@0 20@1 21@2 22@3 S0@4 D@5",
        ]  # fmt: skip
        assert self.join("left", *streams) == ["0@0 2@2 S0@4 D@5", "10@0 11@2 S0@4 D@5", "N@0 21@2 S0@4 D@5"]

    def test_all_heads_must_be_visible_also_of_sides_that_wait(self) -> None:
        assert self.join("union", "0 S0 D", "10 S0@6 D", "1@3 S0 D", "20@4 S0 D")[0] == "0@4 1@6 S0@7 D@8"

    def test_three_sides_are_taken_together(self) -> None:
        found = self.join("intersect", "1 3 S0 D", "0 1 S0 D", "2 3 S0 D", "0 1 S0 D", "3 S0 D", "0 S0 D")
        assert found[0] == "3@2 S0@3 D@4"


class TestAlign:
    def align(self, old: str, new: str, x: str) -> str:
        return one(drive(n.Align("a", inputs_of(3)), old, new, x))

    def test_a_subtree_is_carried_and_its_stop_held(self) -> None:
        # compare 0; 5, 6, S0 (held); compare 2 (emits S0); 7, S1 (held); both stops
        assert self.align("0 2 S0 D", "0 2 S0 D", "5 6 S0 7 S1 D") == "5@1 6@2 S0@4 7@5 S1@7 D@8"

    def test_the_next_coordinate_of_new_releases_the_stop(self) -> None:
        assert self.align("0 2 S0 D", "0 2@30 S0 D", "5 6 S0 7 S1 D") == "5@1 6@2 S0@30 7@31 S1@33 D@34"

    def test_a_lost_subtree_is_read_and_an_added_one_is_empty(self) -> None:
        assert self.align("0 S0 D", "1 S0 D", "5 S1 D") == "S1@4 D@5"
        assert self.align("S0 D", "0 1 S0 D", "S1-1 D") == "S0@1 S1@2 D@3"
        assert self.align("0 S0 D", "S0 D", "5 S1 D") == "S1-1@3 D@4"


class TestReduce:
    def reduce(self, val: str, **timing: int) -> str:
        return one(drive(n.Reduce("r", inputs_of(1), "sum"), val, **timing))

    def test_the_outgoing_stop_has_a_firing_of_its_own(self) -> None:
        assert self.reduce("1 2 S0 S1 D") == "3@2 0@3 S0@4 D@5"
        assert self.reduce("1 2 S0 3@3 S1 S2-2 D") == "3@2 3@4 S0@5 S1-1@6 D@7"

    def test_a_higher_stop_alone_makes_no_value(self) -> None:
        assert self.reduce("S1-1 D") == "S0@0 D@1"

    def test_other_folds(self) -> None:
        assert one(drive(n.Reduce("r", inputs_of(1), "max"), "1 3 2 S0 S1 D")) == "3@3 -inf@4 S0@5 D@6"


class TestAccumulate:
    def accumulate(self, order: int, *streams: str, latency: int = 1) -> Driven:
        return drive(n.Accumulate("a", inputs_of(order + 2), "sum", order), *streams, latency=latency)

    def test_emit_starts_l_after_the_last_fill(self) -> None:
        streams = "0 1 S0 D", "2 5 S0 2 S1 D", "1 2 S0 4 S1 D"
        assert self.accumulate(1, *streams).fired == ["2@5 5@6 S0@7 D@8", "5@5 2@6 S0@7 D@8"]
        driven = self.accumulate(1, *streams, latency=4)
        assert driven.fired == ["2@8 5@9 S0@10 D@11", "5@8 2@9 S0@10 D@11"]
        assert driven.firings == 6 + 4

    def test_the_third_workspace_waits_for_the_first_to_be_emitted(self) -> None:
        # workspaces of 3, 1, 2 entries: the first is filled by 3 and emitted in 4..7, the third is filled in 8..10
        crd_0, crd_1 = "0 S0 0 S0 0 S1 D", "1 2 3 S1 1 S1 1 2 S2 D"
        assert self.accumulate(1, crd_0, crd_1, crd_1).fired[0] == "1@4 2@5 3@6 S0@7 1@8 S0@9 1@11 2@12 S1@13 D@14"

    def test_an_empty_workspace_is_its_stop_alone(self) -> None:
        assert self.accumulate(1, "S0 D", "S1-1 D", "S1-1 D").fired == ["S0@1 D@2", "S0@1 D@2"]
        assert self.accumulate(2, "S0 D", "S1-1 D", "S2-2 D", "S2-2 D").fired == ["S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2"]

    def test_a_coordinate_with_nothing_below_costs_a_firing_and_leaves_no_entry(self) -> None:
        driven = self.accumulate(1, "3 S0 D", "S1 D", "S1 D")
        assert driven.fired == ["S0@2 D@3", "S0@2 D@3"]
        assert driven.firings == 3 + 2

    def test_an_outer_coordinate_goes_with_its_first_entry(self) -> None:
        crd_1, crd_2, val = "7 8 S0 7 S1 D", "1 S0 2 S1 0 S2 D", "1 S0 2 S1 3 S2 D"
        driven = self.accumulate(2, "0 1 S0 D", crd_1, crd_2, val)
        assert driven.fired == ["7@6 8@9 S0@10 D@11", "0@6 1@7 S0@8 2@9 S1@10 D@11", "3@6 1@7 S0@8 2@9 S1@10 D@11"]

    def test_late_outer_tokens_are_waited_for_where_they_are_due(self) -> None:
        # the value is taken in 10, the stop in 20: emit follows in 21, and `D` comes in 30
        driven = self.accumulate(1, "0@10 S0@20 D@30", "4 S1 D", "1 S1 D")
        assert driven.fired == ["4@21 S0@22 D@31", "1@21 S0@22 D@31"]
        assert (
            drive(n.Accumulate("a", inputs_of(3), "sum", 1), "0@10 S0@10 D", "4 S1@20 D", "1 S1 D").fired[0] == "4@21 S0@22 D@23"
        )

    def test_an_end_above_the_reduced_fiber_has_no_workspace(self) -> None:
        assert self.accumulate(1, "S1-1 D", "S2-2 D", "S2-2 D").fired[0] == "S1-1@1 D@2"


class TestPermute:
    def permute(self, order: tuple[int, ...], *streams: str, latency: int = 1) -> Driven:
        return drive(n.Permute("p", inputs_of(len(order) + 1), order), *streams, latency=latency)

    def test_emit_starts_l_after_the_last_fill(self) -> None:
        streams = "0 1 S0 D", "2 5 S0 2 S1 D", "1 2 S0 4 S1 D"
        assert self.permute((1, 0), *streams).fired == [
            "2@5 5@8 S0@9 D@10",
            "0@5 1@6 S0@7 0@8 S1@9 D@10",
            "1@5 4@6 S0@7 2@8 S1@9 D@10",
        ]
        driven = self.permute((1, 0), *streams, latency=4)
        assert driven.fired[0] == "2@8 5@11 S0@12 D@13"
        assert driven.firings == 6 + 6

    def test_the_order_of_the_input_passes_too(self) -> None:
        streams = "0 1 S0 D", "2 5 S0 2 S1 D", "1 2 S0 4 S1 D"
        assert self.permute((0, 1), *streams).fired == [
            "0@5 1@8 S0@9 D@10",
            "2@5 5@6 S0@7 2@8 S1@9 D@10",
            "1@5 2@6 S0@7 4@8 S1@9 D@10",
        ]

    def test_the_third_workspace_waits_for_the_first_to_be_emitted(self) -> None:
        # workspaces of 3, 1, 1 entries: the first is filled by 3 and emitted in 4..9, the third is filled from 10 on
        crd_0, crd_1 = "0 S0 0 S0 0 S1 D", "1 2 3 S1 1 S1 1 S2 D"
        fired = self.permute((1, 0), crd_0, crd_1, crd_1).fired
        assert fired[0] == "1@4 2@6 3@8 S0@9 1@10 S0@11 1@12 S1@13 D@14"
        assert fired[1] == "0@4 S0@5 0@6 S0@7 0@8 S1@9 0@10 S1@11 0@12 S2@13 D@14"

    def test_an_empty_workspace_is_its_stop_alone(self) -> None:
        assert self.permute((1, 0), "S0 D", "S1-1 D", "S1-1 D").fired == ["S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2"]

    def test_a_coordinate_with_nothing_below_costs_a_firing_and_leaves_no_entry(self) -> None:
        driven = self.permute((1, 0), "3 S0 D", "S1 D", "S1 D")
        assert driven.fired == ["S0@2 D@3", "S1-1@2 D@3", "S1-1@2 D@3"]
        assert driven.firings == 3 + 2

    def test_an_end_above_the_outermost_fiber_has_no_workspace(self) -> None:
        assert self.permute((1, 0), "S1-1 D", "S2-2 D", "S2-2 D").fired == ["S1-1@1 D@2", "S2-2@1 D@2", "S2-2@1 D@2"]

    def test_two_values_at_the_same_coordinates_are_refused(self) -> None:
        with pytest.raises(SimulationError, match=r"node `p` \(permute\): got two values at the same coordinates"):
            self.permute((1, 0), "0 S0 D", "1 1 S1 D", "1 2 S1 D")

    def test_n_is_refused(self) -> None:
        with pytest.raises(SimulationError, match="refuses"):
            self.permute((1, 0), "0 S0 D", "1 S1 D", "N S1 D")


class TestSelect:
    def select(self, keep: int, every: int, *streams: str, latency: int = 1) -> Driven:
        levels = len(streams) - 1
        return drive(n.Select("s", inputs_of(levels + 1), keep, every, levels), *streams, latency=latency)

    def test_emit_starts_l_after_the_last_fill(self) -> None:
        streams = "0 2 3 7 S0 D", "1 -5 2 4 S0 D"
        driven = self.select(2, 0, *streams)
        assert driven.fired == ["2@5 7@6 S0@7 D@8", "-5@5 4@6 S0@7 D@8"]
        assert driven.firings == 6 + 4
        assert self.select(2, 0, *streams, latency=3).fired[0] == "2@7 7@8 S0@9 D@10"

    def test_a_group_ends_when_the_next_one_is_seen(self) -> None:
        # the last coordinate of the first group comes in cycle 1, the first one of the second in cycle 9
        assert self.select(1, 4, "0 3 4@9 5 S0@20 D", "1 2 4@9 3 S0@20 D").fired == [
            "3@10 4@21 S0@22 D@23",
            "2@10 4@21 S0@22 D@23",
        ]

    def test_a_group_ends_with_the_stop_of_its_fiber(self) -> None:
        assert self.select(1, 4, "0 3 S0@9 1 S1@20 D", "1 2 S0@9 4 S1@20 D").fired[0] == "3@10 S0@11 1@21 S1@22 D@23"

    def test_a_group_without_entries_costs_nothing(self) -> None:
        assert self.select(1, 2, "0 1 8 S0 D", "1 2 3 S0 D").fired[0] == "1@3 8@4 S0@5 D@6"

    def test_the_third_group_waits_for_the_first_to_be_emitted(self) -> None:
        # L = 9, groups of one coordinate each: the first ends in 1, with the first firing for the second, and is emitted in 10. In 11 the
        # third one begins, which ends the second; that is emitted in 20, and so on; the stop behind the fifth takes no workspace
        driven = self.select(1, 1, "0 1 2 3 4 S0 D", "1 1 1 1 1 S0 D", latency=9)
        assert driven.fired[0] == "0@10 1@20 2@30 3@40 4@41 S0@42 D@43"

    def test_the_third_fiber_waits_for_the_first_to_be_emitted(self) -> None:
        # fibers of 3, 1, 1 entries: the first is filled by 3 and emitted in 4..7, the third is filled from 8 on
        fired = self.select(3, 0, "0 1 2 S0 1 S0 1 S1 D", "1 2 3 S0 1 S0 1 S1 D").fired
        assert fired[0] == "0@4 1@5 2@6 S0@7 1@8 S0@9 1@10 S1@11 D@12"

    def test_an_outer_coordinate_goes_with_its_first_entry_and_leaves_with_its_last(self) -> None:
        streams = "0 1 2 S0 D", "2 5 S0 2 S0 4 S1 D", "3 5 S0 1 S0 -4 S1 D"
        assert self.select(2, 0, *streams).fired == [
            "0@7 2@9 S0@10 D@11",
            "5@7 S0@8 4@9 S1@10 D@11",
            "5@7 S0@8 -4@9 S1@10 D@11",
        ]

    def test_an_empty_fiber_is_its_stop_alone(self) -> None:
        assert self.select(1, 0, "S0 D", "S0 D").fired == ["S0@1 D@2"] * 2
        assert self.select(1, 2, "S0 D", "S0 D").fired == ["S0@1 D@2"] * 2
        assert self.select(1, 0, "S0 D", "S1-1 D", "S1-1 D").fired == ["S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2"]

    def test_a_coordinate_with_nothing_below_costs_a_firing_and_leaves_no_entry(self) -> None:
        driven = self.select(1, 0, "3 S0 D", "S1 D", "S1 D")
        assert driven.fired == ["S0@2 D@3", "S1-1@2 D@3", "S1-1@2 D@3"]
        assert driven.firings == 3 + 2

    def test_a_coordinate_below_one_whose_first_list_is_empty(self) -> None:
        # below 5 there are 7, with nothing, and 8: 5 goes out with the entry of 8
        fired = self.select(1, 0, "4 5 S0 D", "1 S0 7 8 S1 D", "2 S1 S0 6 S2 D", "1 S1 S0 9 S2 D").fired
        assert [stream.replace("@", " ").split()[0] for stream in fired] == ["5", "8", "6", "9"]

    def test_an_end_above_the_fiber_has_no_workspace(self) -> None:
        assert self.select(1, 0, "S1-1 D", "S1-1 D").fired == ["S1-1@1 D@2"] * 2

    def test_n_is_refused(self) -> None:
        with pytest.raises(SimulationError, match="refuses"):
            self.select(1, 0, "1 S0 D", "N S0 D")


class TestDrop:
    def test_one_firing_a_token_at_one_level(self) -> None:
        driven = drive(n.Drop("d", inputs_of(2), 0.0), "0 1 2 S0 S1 D", "5 0 N S0 S1 D")
        assert driven.fired == ["0@0 S0@3 S1@4 D@5", "5@0 S0@3 S1@4 D@5"]

    def test_a_held_stop_goes_before_the_next_kept_value(self) -> None:
        # 1, S0 (held); N, S0; the held S0, 2, S1
        driven = drive(n.Drop("d", inputs_of(3)), "0 1 2 S0 D", "4 S0 5 S0 6 S1 D", "1 S0 N S0 2 S1 D")
        assert driven.fired == ["0@0 2@5 S0@6 D@7", "4@0 S0@4 6@5 S1@6 D@7", "1@0 S0@4 2@5 S1@6 D@7"]

    def test_a_list_with_nothing_left_is_closed_by_its_stop(self) -> None:
        driven = drive(n.Drop("d", inputs_of(3)), "0 S0 D", "4 S1 D", "N S1 D")
        assert driven.fired == ["S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2"]

    def test_a_coordinate_with_nothing_below_costs_a_firing(self) -> None:
        driven = drive(n.Drop("d", inputs_of(3)), "0 S0 D", "S1 D", "S1 D")
        assert driven.fired == ["S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2"]

    def test_late_outer_tokens_are_waited_for_where_they_are_due(self) -> None:
        driven = drive(n.Drop("d", inputs_of(3)), "0@10 S0@20 D@30", "4 S1 D", "1 S1 D")
        assert driven.fired == ["0@10 S0@20 D@30", "4@10 S1@20 D@30", "1@10 S1@20 D@30"]


class TestLevels:
    def test_late_outer_tokens_are_waited_for_where_they_are_due(self) -> None:
        assert one(drive(n.Flatten("f", inputs_of(2), 4), "1@10 S0@20 D@30", "0 S1 D")) == "4@10 S0@20 D@30"

    def test_flatten_fires_once_a_token_of_the_inner_stream(self) -> None:
        assert one(drive(n.Flatten("f", inputs_of(2), 4), "0 2 S0 D", "0 3 S0 1 S1 D")) == "0@0 3@1 9@3 S0@4 D@5"
        assert one(drive(n.Flatten("f", inputs_of(2), 4), "0 S0 D", "S1 D")) == "S0@1 D@2"

    def test_split_ends_an_inner_fiber_before_a_new_outer_coordinate(self) -> None:
        outer, inner = drive(n.SplitLevel("s", inputs_of(1), 4), "0 3 9@9 S0 D").fired
        assert (outer, inner) == ("0@0 2@10 S0@11 D@12", "0@0 3@1 S0@9 1@10 S1@11 D@12")
        assert drive(n.SplitLevel("s", inputs_of(1), 4), "S0 D").fired == ["S0@0 D@1", "S1-1@0 D@1"]


def test_writers_take_a_token_a_cycle() -> None:
    decl = n.TensorDecl("Y", (9,), ANY)
    driven = drive(n.WriteLevel("w", inputs_of(1), "Y", 0), "1@4 5 S0@9 S1 D", declared=(decl,))
    assert (driven.firings, driven.last) == (5, 11)
    assert driven.written["Y"].crd[0].tolist() == [1, 5]
    assert driven.written["Y"].pos[0].tolist() == [0, 2, 2]


@pytest.mark.parametrize("late", range(6))
def test_every_gate_is_tight(late: int) -> None:
    """A token that comes one cycle after the node could have used it delays the firing by one cycle, no more and no less."""
    words = ["1", "2", "S0", "3", "S1", "D"]
    on_time = [f"{word}@{k}" for k, word in enumerate(words)]
    on_time[late:] = [f"{word}@{k + late + 1}" for k, word in enumerate(words[late:])]
    node = n.Alu("a", inputs_of(1), "copy", (n.Operand(0.0),))
    assert one(drive(node, " ".join(on_time))) == " ".join(on_time)


@pytest.mark.parametrize(("latency", "interval"), [(1, 1), (4, 1), (4, 3)])
def test_latency_delays_what_is_seen_and_the_interval_what_is_done(latency: int, interval: int) -> None:
    node = n.Alu("a", inputs_of(1), "copy", (n.Operand(0.0),))
    driven = drive(node, "1@0 2@0 S0@0 3@0 S1@0 D@0", latency=latency, interval=interval)
    values = [0, interval, 2 * interval, 2 * interval + 1, 3 * interval + 1, 3 * interval + 2]
    assert [cycle - latency for _, cycle in driven.outputs[0]] == values


def test_a_scalar_is_loaded_by_the_root_reference() -> None:
    decl = n.TensorDecl("A", (), Format.dense(0))
    driven = drive(n.Load("l", inputs_of(1), "A"), "0 D", tensors={"A": pack(3.0, Format.dense(0))}, declared=(decl,))
    assert one(driven) == "3@0 D@1"
