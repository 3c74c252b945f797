"""Pictures read without their text: every axis says what it counts, and no series looks like another or hides it."""

from __future__ import annotations

from typing import Any

import figures
import pictures
import pytest

DRAWN = [figure for figure in figures.FIGURES.values() if figure.draw]


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    drawn = dict[str, Any]()
    for figure in DRAWN:
        assert figure.draw is not None
        drawn[figure.name] = pictures.blank_figure(*figure.size)
        figure.draw(figure.collect(), drawn[figure.name])
    return drawn


def names_of_ticks(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.parametrize("name", [figure.name for figure in DRAWN])
def test_every_axis_says_what_it_counts(name: str, shown: dict[str, Any]):
    for axes in shown[name].axes:
        for axis in (axes.xaxis, axes.yaxis):
            named = any(any(letter.isalpha() for letter in text.replace("mathdefault", "")) for text in names_of_ticks(axis))
            shared = axis.axis_name == "x" and axes.get_shared_x_axes().get_siblings(axes) != [axes]
            assert axis.get_label_text() or named or shared, f"{axes.get_title()}: {axis.axis_name}"


@pytest.mark.parametrize("name", [figure.name for figure in DRAWN])
def test_no_two_series_look_alike(name: str, shown: dict[str, Any]):
    for axes in shown[name].axes:
        looks = dict[tuple[str, ...], str]()
        for line in axes.get_lines():
            if line.get_label().startswith("_"):
                continue
            look = (line.get_color(), line.get_linestyle(), str(line.get_marker()))
            assert looks.setdefault(look, line.get_label()) == line.get_label()


@pytest.mark.parametrize("name", [figure.name for figure in DRAWN])
def test_no_series_hides_another(name: str, shown: dict[str, Any]):
    """Of two lines through the same points, the one that is drawn first is wider or has larger marks."""
    for axes in shown[name].axes:
        lines = [line for line in axes.get_lines() if line.get_marker() not in (None, "None", "")]
        for n, below in enumerate(lines):
            for above in lines[n + 1 :]:
                if below.get_xydata().tolist() == above.get_xydata().tolist():
                    assert below.get_markersize() > above.get_markersize(), f"{above.get_label()} hides {below.get_label()}"


def test_a_bar_that_ends_where_it_begins_is_a_stroke():
    axes = pictures.blank_figure(4, 3).subplots()
    pictures.bars(axes, ["a", "b"], {"ours": [1.0, 2.0]}, base=1)
    (stroke,) = axes.get_lines()
    assert list(stroke.get_ydata()) == [1, 1]
