"""Faults that pages once had, each looked for in a real browser: sizes, overlaps, what fits, and contrast, in light and dark, wide and
narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sweeps
from browser import browser, opened, when
from sweeps import InProcessRunner, write_program

import fuseflow as ff
from fuseflow.explain.cycles import explain_cycles
from fuseflow.filesystem import json_text
from fuseflow.report.cycle_tables import bottleneck_sentence, cycles_json
from fuseflow.report.page.comparison import comparison_page
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import StoredRun, read_run
from fuseflow.report.page.sweep_page import sweep_page
from fuseflow.schedule import Schedule

MODELS = Path(__file__).parents[3] / "models"
WIDTHS = (1400, 1920, 420)
COMMAND = ["fuseflow", "run", "models/gcn.py", "--fuse", "layer1"]
SEARCH = {
    "budget": "small",
    "command": ["fuseflow", "schedule", "models/gcn.py", "--budget", "small", "-o", "best.yaml"],
    "then": ["fuseflow", "run", "models/gcn.py", "--schedule", "best.yaml"],
    "cycles": 2032,
}
SWEEP = """\
model: p.ein
tensors: t.yaml
machine: [ideal, rda, comal]
mode: prune
top: 1
vary:
  fuse: [none, full]
  par: [{}, {i: 2}, {i: 4}]
  order: [first, best]
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


def stored(folder: Path, schedule: Schedule) -> StoredRun:
    """A run of the GCN that was explained."""
    compiled = ff.compile(MODELS / "gcn.py", schedule=schedule)
    report = explain_cycles(compiled, with_stalls=True)
    explained = cycles_json(report) | {"command": COMMAND, "search": SEARCH}
    compiled.save(folder, compiled.run(), {"cycles.json": json_text(explained)})
    return read_run(folder)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of a run, of one in lanes, of two runs, and of a sweep, by name."""
    folder = tmp_path_factory.mktemp("pages")
    one = stored(folder / "run", Schedule.fuse("layer1"))
    lanes = stored(folder / "lanes", Schedule.fuse("full").par(i=4))
    write_program(folder)
    swept = sweeps.opened(folder, SWEEP)
    swept.run(InProcessRunner())
    texts = {"run": page(one), "lanes": page(lanes), "two": comparison_page(lanes, one, ("A", "B")), "sweep": sweep_page(swept)}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


VIEWS = (("run", ""), ("run", "#region/layer1"), ("lanes", "#region/full"), ("two", ""), ("sweep", ""))

CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const rgba = colour => {
    if (!colours.has(colour)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; colours.set(colour, [r, g, b, a / 255]);
    }
    return colours.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map(k => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const box = e.matches("g.node") ? e.querySelector("rect") : null;
      const colour = rgba(box ? getComputedStyle(box).fill : e instanceof SVGElement ? "transparent" : getComputedStyle(e).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const bad = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const word = texts.currentNode.data.trim();
    if (!word || element.closest("script, title, style, template, noscript") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), back = behind(element);
    const front = over(rgba(element instanceof SVGElement ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), contrast = (a + 0.05) / (b + 0.05);
    count++;
    if (contrast < 4.5) bad.push([word.slice(0, 30), element.getAttribute("class"), contrast.toFixed(2)]);
  }
  return [count, bad];
}"""
"""Returns the number of texts that can be seen, and those whose contrast with what is behind them is less than 4.5."""

CUT = """() => [...document.querySelectorAll("section:not([hidden]) .scrolls")]
  .filter(box => box.clientWidth && box.scrollWidth > box.clientWidth)
  .map(box => [box.closest(".pane").querySelector("h3").textContent, box.scrollWidth, box.clientWidth])"""
"""Returns the tables that are wider than their boxes."""

OVERLAPS = """() => {
  const bad = [];
  for (const svg of document.querySelectorAll("section:not([hidden]) .figure:not(.graph) > svg, section:not([hidden]) .axis")) {
    const all = [...svg.querySelectorAll("text")].filter(text => text.textContent && text.checkVisibility());
    const boxes = all.map(text => [text.getBoundingClientRect(), text.textContent]), whole = svg.getBoundingClientRect();
    for (const [k, [a, text]] of boxes.entries()) {
      if (a.left < whole.left - 2 || a.right > whole.right + 2) bad.push([text, "cut"]);
      for (const [b, other] of boxes.slice(0, k)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 4) bad.push([text, other]);
      }
    }
  }
  return bad;
}"""
"""Returns words of charts that overlap others, or are cut off."""


@pytest.mark.parametrize(("name", "place"), VIEWS)
def test_all_words_can_be_read_at_every_width(name: str, place: str, chromium: Any, pages: dict[str, Path]):
    for scheme in ("light", "dark"):
        with opened(chromium, pages[name], place, color_scheme=scheme) as shown:
            for width in WIDTHS:
                shown.set_viewport_size({"width": width, "height": 1000})
                shown.wait_for_timeout(300)
                count, bad = shown.evaluate(CONTRAST)
                assert count > 50 and bad == [], (scheme, width)
                assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth"), (scheme, width)
                assert shown.evaluate(OVERLAPS) == [], (scheme, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_on_coloured_and_on_chosen_nodes_can_be_read(scheme: str, chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["lanes"], "#region/full", color_scheme=scheme) as shown:
        for state in ("busy", "starved", "memory", "blocked", "path"):
            shown.locator("section:not([hidden]) select.colour").select_option(state)
            assert shown.evaluate(CONTRAST)[1] == [], state
        shown.locator("section:not([hidden]) .canvas .node").nth(9).click()
        when(shown.locator("section:not([hidden]) .node.chosen")).to_have_count(1)
        shown.mouse.move(0, 0)
        assert shown.evaluate(CONTRAST)[1] == []


@pytest.mark.parametrize(("name", "place"), VIEWS[:4])
def test_tables_show_all_their_numbers(name: str, place: str, chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages[name], place) as shown:
        for width in (1400, 1920):
            shown.set_viewport_size({"width": width, "height": 1000})
            shown.wait_for_timeout(300)  # the page follows the size of the window
            cut = [title for title, *_ in shown.evaluate(CUT)]
            assert set(cut) <= {"Fusion table", "Lines of the model"}, (width, shown.evaluate(CUT))
            if place:
                panes = shown.locator("section:not([hidden]) .pane", has=shown.locator("h3", has_text="Critical path"))
                assert "Critical path" not in cut and panes.locator("tbody tr").count() > 3


def test_fifos_have_their_capacity(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["run"], "#region/layer1") as shown:
        table = shown.locator("section:not([hidden]) .pane", has=shown.locator("h3", has_text="Fullest FIFOs")).locator("table")
        assert table.locator("th").all_inner_texts() == ["FIFO", "tokens", "most held", "capacity", "full, %"]
        for row in table.locator("tbody tr").all():
            _, _, held, capacity, full = row.locator("td").all_inner_texts()
            assert int(held.replace(",", "")) <= int(capacity.replace(",", "")) and 0 < float(full) <= 100


def test_one_sentence_says_what_limits_a_region(chromium: Any, pages: dict[str, Path]):
    compiled = ff.compile(MODELS / "gcn.py", schedule=Schedule.fuse("layer1"))
    region = explain_cycles(compiled, with_changes=False).regions[0]
    said = bottleneck_sentence(region).replace("`", "")  # on the console
    with opened(chromium, pages["run"]) as shown:
        assert said in shown.locator("#overview .lead").inner_text()
        shown.evaluate("location.hash = '#region/layer1'")
        section = shown.locator("section:not([hidden])")
        when(section.locator("h2")).to_have_text("Region layer1")
        text, told = section.inner_text(), shown.locator("#inspector").inner_text()
        assert said[1:] in text and said in told
        assert "Bound by" not in text + told and text.lower().count("limited by") == 1


def test_the_first_screen_says_what_would_help_and_copies_the_command(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["run"]) as shown:
        lead = shown.locator("#overview .lead")
        cards = shown.locator("#overview .cards").bounding_box()
        assert lead.bounding_box()["y"] < cards["y"] + cards["height"] + 30
        text = lead.inner_text()
        assert "3.86 times as fast" in text and "within the budget small" in text and "1.48 times as fast" in text
        commands = lead.locator("pre.command code").all_inner_texts()
        assert (
            commands[0]
            == "fuseflow schedule models/gcn.py --budget small -o best.yaml\nfuseflow run models/gcn.py --schedule best.yaml"
        )
        assert commands[1] == "fuseflow run models/gcn.py --fuse layer1 --par layer1.k=4"
        shown.evaluate("document.execCommand = () => { window.copied = document.activeElement.value; return true; }")
        shown.evaluate("Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject() } })")
        lead.locator("button.copy").nth(1).click()
        when(lead.locator("button.copy").nth(1)).to_have_text("copied")
        assert shown.evaluate("window.copied") == commands[1]


GRAPH = """() => {
  const canvas = document.querySelector("section:not([hidden]) .canvas"), around = canvas.getBoundingClientRect();
  const svg = canvas.querySelector("svg").getBoundingClientRect();
  const across = svg.left >= around.left - 1 && svg.right <= around.right + 1;
  const inside = across && svg.top >= around.top - 1 && svg.bottom <= around.bottom + 1;
  const scale = svg.width / Number(canvas.querySelector("svg").getAttribute("width"));
  const texts = [...canvas.querySelectorAll("text")].filter(text => text.checkVisibility());
  const sizes = texts.map(text => scale * parseFloat(getComputedStyle(text).fontSize));
  const box = element => element.getBoundingClientRect();
  const wide = texts.some(text => box(text).width > box(text.parentNode.querySelector("rect")).width + 1);
  return { inside, labels: sizes.length, least: Math.min(...sizes), wide, nodes: canvas.querySelectorAll(".node").length };
}"""


@pytest.mark.parametrize(("name", "place"), [("run", "#region/layer1"), ("lanes", "#region/full")])
@pytest.mark.parametrize("width", [1400, 1920])
def test_a_graph_opens_whole_and_with_labels_that_can_be_read(
    name: str, place: str, width: int, chromium: Any, pages: dict[str, Path]
):
    shown = chromium.new_page(viewport={"width": width, "height": 1000})
    shown.goto(pages[name].as_uri() + place)
    seen = shown.evaluate(GRAPH)
    shown.close()
    assert seen["inside"] and not seen["wide"] and seen["labels"] == 2 * seen["nodes"] > 20 and seen["least"] >= 11


def test_no_label_of_a_graph_is_too_small_on_a_narrow_screen(chromium: Any, pages: dict[str, Path]):
    shown = chromium.new_page(viewport={"width": 420, "height": 900})
    shown.goto(pages["run"].as_uri() + "#region/layer1")
    seen = shown.evaluate(GRAPH)
    assert seen["inside"] and seen["labels"] == 0  # zooming in shows them
    shown.locator("section:not([hidden]) .canvas").focus()
    for _ in range(8):
        shown.keyboard.press("+")
    assert shown.evaluate(GRAPH)["least"] >= 11
    shown.keyboard.press("0")
    assert shown.evaluate(GRAPH)["inside"]
    shown.close()


def test_lanes_are_folded_in_words_and_unfolded_by_a_button(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["lanes"], "#region/full") as shown:
        section = shown.locator("section:not([hidden])")
        assert "4 lanes of i, one shown: 55 of 208 nodes" in section.inner_text()
        assert section.locator(".canvas .node").count() == 55
        section.locator("button", has_text="show all 208").click()
        when(section.locator(".canvas .node")).to_have_count(208)
        assert section.locator(".canvas .node[data-t]").count() == 208
        section.locator("button", has_text="show one lane").click()
        when(section.locator(".canvas .node")).to_have_count(55)
        section.locator("p.limit a").click()  # the limiting node is in another lane
        when(section.locator(".canvas .node.chosen")).to_have_count(1)


def test_search_lists_the_copies_of_a_node_once(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["lanes"]) as shown:
        shown.keyboard.press("/")
        shown.keyboard.type("acc_n")
        found = shown.locator("#results li").all_inner_texts()
        assert sum(text.startswith("acc_n node") for text in found) == 1 and "acc_n node in 4 lanes, full" in found
        assert not any("/i" in text for text in found)
        shown.locator("#search").fill("acc_n/i")
        assert sum(" node" in text for text in shown.locator("#results li").all_inner_texts()) == 4


def test_a_roofline_has_its_roofs(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["run"]) as shown:
        chart = shown.locator("#overview .roofline > svg")
        for roof, name in (("memory-roof", "256 bytes/cycle"), ("compute-roof", "6 FLOPs/cycle")):
            box = chart.locator(f".{roof} path").bounding_box()
            assert box is not None and box["width"] > 40 and name in chart.locator(".roof-name").all_text_contents().__str__()
        slope = chart.locator(".memory-roof path").bounding_box()
        assert slope["height"] > 20 and chart.locator(".compute-roof path").bounding_box()["height"] < 4
        ridge = slope["y"]
        points = [circle.bounding_box() for circle in chart.locator(".points circle").all()]
        assert len(points) == 5 and all(point["y"] > ridge for point in points)
        assert all(link.get_attribute("aria-label") for link in chart.locator(".points a").all())


def test_no_label_of_a_loss_is_cut(chromium: Any, tmp_path: Path):
    compiled = ff.training_step(MODELS / "gcn.py")
    compiled.save(tmp_path / "run", compiled.run(steps=1))
    (tmp_path / "page.html").write_text(page(read_run(tmp_path / "run")), encoding="utf-8")
    with opened(chromium, tmp_path / "page.html") as shown:
        labels = shown.locator(".figure.losses svg [aria-label='y-axis tick label'] text")
        when(labels.first).to_be_visible()
        left = shown.locator(".figure.losses svg").bounding_box()["x"]
        assert all(label.bounding_box()["x"] >= left for label in labels.all())


def test_schedules_are_blocks_of_code(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["two"]) as shown:
        codes = shown.locator("#overview .differences pre code").all_inner_texts()
        assert codes == ["fuse: [full]\npar: {i: 4}\n", "fuse: [layer1]\n"]
        assert shown.locator("#overview .differences pre").first.evaluate("e => getComputedStyle(e).whiteSpace").startswith("pre")
    with opened(chromium, pages["run"]) as shown:
        assert shown.locator("details pre code").first.inner_text().strip() == "fuse: [layer1]"
        assert "\nmemory:\n  line: 64" in shown.locator("details pre code").nth(1).text_content()


def test_a_sweep_shows_all_points_and_begins_with_what_it_was_made_for(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["sweep"]) as shown:
        heads = shown.locator("#overview thead th").all_inner_texts()
        assert heads[:4] == ["point", "cycles", "speed-up", "how known"]
        assert not any("_" in head or head.startswith("estimated") for head in heads)
        count = shown.locator("#overview tbody tr").count()
        charts = shown.locator("#overview .pareto").all()
        assert count > 20 and charts
        shown_points = [chart.locator("circle").count() for chart in charts]
        assert shown_points[:-1] == [count] * (len(charts) - 1)  # FIFOs of two machines are unbounded, which the last one says
        assert "others have no such number, as where FIFOs are unbounded" in shown.locator("#overview").inner_text()
        for row in shown.locator("#overview tbody tr").all():
            assert all(row.locator("td").all_inner_texts()[:4])
        assert f"{count} of {count} points" in shown.locator("#overview").inner_text()


def test_no_page_stands_inside_another(pages: dict[str, Path]):
    for file in pages.values():
        assert "<iframe" not in file.read_text(encoding="utf-8") and "<frame " not in file.read_text(encoding="utf-8")


def test_a_mark_means_something(chromium: Any, pages: dict[str, Path]):
    """Of no table every row is marked, whatever is chosen."""
    with opened(chromium, pages["run"], "#region/layer1") as shown:
        section = shown.locator("section:not([hidden])")
        assert section.locator("tr.near, tr.chosen").count() == 0
        for key in ("#einsum/relu", "#node/layer1/acc_l", "#einsum/layer1.matmul"):
            shown.evaluate(f"location.hash = '{key}'")
            shown.wait_for_timeout(100)
            marked = shown.evaluate(
                "[...document.querySelectorAll('tbody')].filter(b => b.rows.length > 1).map(b => "
                "[b.rows.length, [...b.rows].filter(r => r.matches('.near, .chosen')).length])"
            )
            assert any(some for _, some in marked) and all(some < rows for rows, some in marked)


def test_time_lines_are_zoomed_by_keys_buttons_and_the_wheel(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["run"], "#region/layer1") as shown:
        box = shown.locator("section:not([hidden]) .timeline")
        strip, lens = box.locator(".strip").first, box.locator(".lens")

        def wide() -> float:
            return strip.bounding_box()["width"]

        whole = wide()
        lens.focus()
        shown.keyboard.press("+")
        shown.keyboard.press("+")
        assert wide() > 2 * whole
        left = strip.bounding_box()["x"]
        shown.keyboard.press("ArrowRight")
        assert strip.bounding_box()["x"] < left
        shown.keyboard.press("0")
        assert wide() == pytest.approx(whole, abs=1)
        box.locator("button[data-time='+']").click()
        assert wide() > 1.4 * whole
        box.locator("button[data-time='0']").click()
        assert wide() == pytest.approx(whole, abs=1)
        lens.focus()
        place = box.locator(".over-time").first.bounding_box()
        shown.mouse.move(place["x"] + place["width"] / 2, place["y"] + 4)
        shown.mouse.wheel(0, -300)
        when(box).to_have_class("timeline zoomed")
        left = strip.bounding_box()["x"]
        shown.mouse.down()
        shown.mouse.move(place["x"] + place["width"] / 2 - 60, place["y"] + 4, steps=4)
        shown.mouse.up()
        assert strip.bounding_box()["x"] == pytest.approx(left - 60, abs=3)
        ticks = box.locator(".axis .tick").all_inner_texts()
        assert len(ticks) >= 2 and ticks[0] != "0"
        shown.evaluate("location.hash = '#overview'")
        bar = shown.locator("#overview .timeline")
        bar.locator("button[data-time='+']").click()
        assert bar.locator(".time-bar").bounding_box()["width"] > 1.4 * bar.locator(".over-time").bounding_box()["width"]


def test_a_page_prints_without_its_tools(chromium: Any, pages: dict[str, Path]):
    with opened(chromium, pages["run"], "#region/layer1") as shown:
        shown.emulate_media(media="print")
        assert not shown.locator("section:not([hidden]) .canvas").evaluate("e => e.scrollWidth > e.clientWidth + 1")
        assert not any(button.is_visible() for button in shown.locator("section:not([hidden]) .tools button").all())
        assert len(shown.pdf()) > 20_000
