"""Files of placements: read back equal, the same bytes for the same input, and refused after any single edit."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from arrays import recorded_graph

from fuseflow.array.artifact import content_digest, load_placement, placement_text, save_placement
from fuseflow.array.placed_region import PlacedRegion, PlacementSearch, place_region
from fuseflow.array.settings import ArraySettings, load_array
from fuseflow.errors import ArrayError, FuseFlowError

ONYX = load_array("onyx")
GRAPH = recorded_graph("sae", 1)


@cache
def placed() -> PlacedRegion:
    return place_region(GRAPH, ONYX, None, PlacementSearch(effort=1.0, seeds=1))


def changed(**keys: Any) -> ArraySettings:
    """Onyx with other keys."""
    return ArraySettings.model_validate({**ONYX.model_dump(), **keys})


def refused(text: str, path: Path, array: ArraySettings = ONYX) -> str:
    """The message of the error that a text is refused with, which names the file; empty if there is none."""
    path.write_text(text)
    try:
        load_placement(path, GRAPH, array)
    except FuseFlowError as error:
        return error.message if str(path) in error.message else ""
    return ""


def test_it_is_read_back_equal_and_with_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sae.place.json"
    save_placement(placed(), path)
    again = load_placement(path, GRAPH, ONYX)
    assert again == placed() and placement_text(again) == path.read_text()
    assert placement_text(place_region(GRAPH, ONYX, None, PlacementSearch(effort=1.0, seeds=1))) == path.read_text()
    assert (
        load_placement(path, GRAPH, changed(delays_ps={}, name="other", load={"drain": 1})).loading_cycles != again.loading_cycles
    )


def single_edit(text: str, rng: random.Random) -> str:
    """A text with one character, number or key that is another."""
    while True:
        at = rng.randrange(len(text))
        match rng.randrange(3):
            case 0:
                new = text[:at] + rng.choice('0123456789abcXM[]{},:" ') + text[at + 1 :]
            case 1:
                new = text[:at] + text[at + 1 :]
            case _:
                new = text[:at] + rng.choice('0123456789abc[]{},"') + text[at:]
        if meaning(new) != meaning(text):
            return new


def meaning(text: str) -> Any:
    """The values of a text; the text itself if it has none. A number with a point is none without."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


def test_single_edits_are_refused(tmp_path: Path) -> None:
    text, rng = placement_text(placed()), random.Random(5)
    edits = [single_edit(text, rng) for _ in range(200)]
    readable = sum(meaning(edit) != edit for edit in edits)
    assert readable > 60, "many edits are still JSON, so that more than its reader is tested"
    assert [edit for edit in edits if not refused(edit, tmp_path / "x.json")] == []


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all numbers, words and hashes in a value."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [inner for key, each in pairs for inner in numbers(each, (*path, key))]
    return [path]


def test_edits_are_refused_without_the_digest_too(tmp_path: Path) -> None:
    """The digest is that of the edited file; what cannot be computed again (seeds, effort, a lower bound) is left out."""
    rng, values = random.Random(6), json.loads(placement_text(placed()))
    places = [path for path in numbers(values) if path[0] not in ("seeds", "effort", "bound", "digest")]
    for _ in range(200):
        new = json.loads(placement_text(placed()))
        *outer, last = rng.choice(places)
        inside = new
        for key in outer:
            inside = inside[key]
        inside[last] = other(inside[last], rng)
        assert refused(signed(new), tmp_path / "x.json"), (outer, last)


def other(value: Any, rng: random.Random) -> Any:
    """A value of the same type that differs."""
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return not value if isinstance(value, bool) else value + rng.choice((-1, 1, 2))


def signed(values: dict[str, Any]) -> str:
    """A file with the digest of its content."""
    content = {key: value for key, value in values.items() if key != "digest"}
    return json.dumps({**content, "digest": content_digest(content)})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("bound", 10**6, "bound of 1,000,000 is above its wirelength"),
        ("bound", -1, "`bound`: "),
        ("proven", True, "it is proven to be shortest"),
        ("version", 2, "its version is 2"),
        ("wirelength", 7, "its wirelength is 7"),
        ("effort", "10", "`effort`"),
        ("effort", 0, "`effort`"),
        ("more", 1, "`more`"),
    ],
)
def test_what_cannot_be_is_named(key: str, value: object, said: str, tmp_path: Path) -> None:
    values = json.loads(placement_text(placed()))
    assert said in refused(signed({**values, key: value}), tmp_path / "x.json")


def test_another_array_and_another_graph_are_named(tmp_path: Path) -> None:
    path, text = tmp_path / "sae.place.json", placement_text(placed())
    assert "for another array than `onyx`: `grid` differs" in refused(text, path, changed(grid={"columns": 32, "rows": 17}))
    assert "`ports`, `footprint` differ" in refused(text, path, changed(ports={"side": "south"}, footprint="simple"))
    with pytest.raises(ArrayError, match=r"of another graph than `.*`: it lacks the cell `.*`, and it has the cell `.*`"):
        load_placement(path, recorded_graph("attention", 1), ONYX)
    assert "its version is inf" in refused('{"version": 1e999}', path) and "`version`" in refused('{"version": true}', path)
    assert "no object of JSON" in refused("[]", path) and "not JSON" in refused("{", path)
    assert "nets, and the array has 1 tracks" in refused(text, path, changed(tracks=1))
