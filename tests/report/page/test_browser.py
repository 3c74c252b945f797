"""Pages in a real browser: every link leads somewhere, what is asked is found by few clicks, names are no markup, and panning is cheap."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sweeps
from browser import browser, opened, when
from hostile_names import HOSTILE, OBEYED, renamed
from sweeps import InProcessRunner, write_program

import fuseflow as ff
from fuseflow.explain.cycles import explain_cycles
from fuseflow.filesystem import json_text
from fuseflow.report.cycle_tables import cycles_json
from fuseflow.report.page.comparison import comparison_page
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import StoredRun, read_run
from fuseflow.report.page.sweep_page import sweep_page
from fuseflow.samml import text as samml_text
from fuseflow.schedule import Schedule

MODELS = Path(__file__).parents[3] / "models"

WALK = """async () => {
  const bad = [], links = [...document.querySelectorAll("a[href]")].map(link => link.getAttribute("href"));
  const hrefs = [...new Set(links)];
  for (const href of hrefs) {
    const moved = new Promise(done => addEventListener("hashchange", done, { once: true }));
    if (location.hash !== href) { location.hash = href; await moved; }
    const view = document.querySelector("[data-view]:not([hidden])");
    const chosen = [...document.querySelectorAll(".chosen")];
    const inspected = document.querySelector("#inspector h2");
    const stands = chosen.some(element => view.contains(element) || element.closest("#tabs"));
    if (href === "#overview" ? view.id !== "overview" : !inspected || !stands) bad.push(href);
  }
  return [hrefs.length, bad];
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def gcn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of the GCN with its first layer fused, explained, and with the page in it."""
    folder = tmp_path_factory.mktemp("gcn") / "run"
    compiled = ff.compile(MODELS / "gcn.py", schedule=Schedule.fuse("layer1"))
    report = explain_cycles(compiled, with_stalls=True)
    compiled.save(folder, compiled.run(), {"cycles.json": json_text(cycles_json(report))})
    (folder / "report.html").write_text(page(read_run(folder)), encoding="utf-8")
    return folder


def walk(chromium: Any, file: Path, least: int = 20) -> None:
    with opened(chromium, file) as shown:
        count, bad = shown.evaluate(WALK)
    assert count > least and not bad


def test_every_link_of_a_page_leads_somewhere(chromium: Any, gcn: Path):
    walk(chromium, gcn / "report.html")


@pytest.mark.parametrize(
    "model",
    [
        "graphsage",
        pytest.param("sae", marks=pytest.mark.slow),
        pytest.param("gpt_bigbird", marks=pytest.mark.slow),
    ],
)
def test_every_link_of_the_pages_of_models_leads_somewhere(model: str, chromium: Any, tmp_path: Path):
    compiled = ff.compile(MODELS / f"{model}.py", schedule=Schedule.fuse("full"), options={"small": True})
    compiled.save(tmp_path / "run", compiled.run(check=False))
    (tmp_path / "page.html").write_text(page(read_run(tmp_path / "run")), encoding="utf-8")
    walk(chromium, tmp_path / "page.html")


def test_three_clicks_say_what_limits_a_layer_and_what_would_help(chromium: Any, gcn: Path):
    with opened(chromium, gcn / "report.html") as shown:
        shown.click(".time-bar a:has-text('layer1')")
        section = shown.locator("section:not([hidden])")
        when(section.get_by_role("link", name="acc_l", exact=True).first).to_be_visible()
        assert "Limited by the work of acc_l" in section.inner_text()
        section.get_by_role("link", name="acc_l", exact=True).first.click()
        when(section.locator(".node.chosen")).to_have_count(1)
        told = shown.locator("#inspector").inner_text()
        assert all(name in told for name in ("x_l", "layer1.weight_j", "mul", "models/gcn.py:21", "--par layer1.k=4"))
        assert section.locator("a.line.near").inner_text().lstrip().startswith("21")
        assert shown.url.endswith("#node/layer1/acc_l")
        shown.click("#inspector a:has-text('models/gcn.py:21')")
        when(section.locator("a.line.chosen")).to_contain_text("torch.sparse.mm(x, self.weight)")


def test_a_name_is_one_thing_everywhere(chromium: Any, gcn: Path):
    with opened(chromium, gcn / "report.html", "#region/layer1") as shown:
        section = shown.locator("section:not([hidden])")
        stream = section.locator(".fusion .stream:has-text('acc_l.crd')").first
        stream.hover()
        when(section.locator(".node.hovered")).to_have_count(1)
        assert section.locator("tr.hovered").count() >= 1
        stream.click()
        when(section.locator(".node.chosen")).to_have_count(1)
        assert shown.url.endswith("#node/layer1/acc_l") and section.locator("tr.chosen").count() >= 1
        shown.keyboard.press("Escape")
        when(section.locator(".node.chosen")).to_have_count(0)
        assert shown.url.endswith("#region/layer1")


def test_keys_and_search(chromium: Any, gcn: Path):
    with opened(chromium, gcn / "report.html") as shown:
        shown.keyboard.press("/")
        shown.keyboard.type("weight_val")
        when(shown.locator("#results a").nth(1)).to_be_visible()
        shown.keyboard.press("Enter")
        when(shown.locator("#inspector h2")).to_contain_text("weight_val")
        assert "weight_val" in shown.url
        shown.keyboard.press("o")
        when(shown.locator("#overview")).to_be_visible()
        shown.keyboard.press("?")
        when(shown.locator("#legend")).to_contain_text("starved, %")
        shown.keyboard.press("Escape")
        shown.locator("#overview th button:has-text('cycles')").first.click()
        shown.keyboard.press("t")
        assert shown.evaluate("document.documentElement.dataset.theme") in ("light", "dark")


def test_two_runs_are_compared(chromium: Any, gcn: Path, tmp_path: Path):
    compiled = ff.compile(MODELS / "gcn.py", schedule=Schedule.fuse("none"))
    compiled.save(tmp_path / "none", compiled.run(check=False))
    before, after = read_run(tmp_path / "none"), read_run(gcn)
    (tmp_path / "page.html").write_text(comparison_page(before, after, ("none", "layer1")), encoding="utf-8")
    walk(chromium, tmp_path / "page.html")


def test_a_run_is_compared_with_its_baseline_on_its_page(chromium: Any, gcn: Path, tmp_path: Path):
    compiled = ff.compile(MODELS / "gcn.py", schedule=Schedule.fuse("none"))
    compiled.save(tmp_path / "none", compiled.run(check=False))
    before, after = read_run(tmp_path / "none"), read_run(gcn)
    (tmp_path / "page.html").write_text(page(after, ("none", before)), encoding="utf-8")
    walk(chromium, tmp_path / "page.html")
    with opened(chromium, tmp_path / "page.html") as shown:
        table = shown.locator(".pane", has_text="Speed-up over the baseline, none").locator("table")
        layer1 = table.locator("tr", has_text="layer1").first.locator("td").all_inner_texts()
        cycles = {
            side: sum(r["cycles"] * r["times"] for r in run.result["regions"]) for side, run in (("A", before), ("B", after))
        }
        assert layer1[0] == "layer1" and layer1[1] == "layer1.matmul, layer1.matmul_2, layer1.add, relu"
        last = table.locator("tr").last.locator("td").all_inner_texts()
        assert last[2:5] == [f"{cycles['A']:,}", f"{cycles['B']:,}", f"{cycles['A'] / cycles['B']:.2f}"]
        assert table.locator(".fill-good").count() and not table.locator(".fill-bad").count()
        table.locator("a", has_text="layer1").first.click()
        when(shown.locator("section:not([hidden]) h2")).to_have_text("Region layer1")


@pytest.mark.parametrize("width", [1440, 1024])
def test_no_page_scrolls_sideways(width: int, chromium: Any, gcn: Path, sweep: Path, tmp_path: Path):
    stored = read_run(gcn)
    (tmp_path / "page.html").write_text(comparison_page(stored, stored, ("one", "other")), encoding="utf-8")
    for file, hash in (
        (gcn / "report.html", ""),
        (gcn / "report.html", "#region/layer1"),
        (sweep, ""),
        (tmp_path / "page.html", ""),
    ):
        with opened(chromium, file, hash) as shown:
            shown.set_viewport_size({"width": width, "height": 900})
            shown.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5000)


WIDE = "[...document.querySelectorAll('#overview .scrolls.wide')].map(box => [box.scrollWidth, box.clientWidth])"


def test_the_table_of_regions_fits_a_usual_window(chromium: Any, gcn: Path):
    with opened(chromium, gcn / "report.html") as shown:
        shown.set_viewport_size({"width": 1280, "height": 900})
        sizes = shown.evaluate(WIDE)
        assert all(table <= box for table, box in sizes), sizes
        shown.set_viewport_size({"width": 500, "height": 900})
        assert any(table > box for table, box in shown.evaluate(WIDE))
        assert "local" in shown.evaluate("getComputedStyle(document.querySelector('.scrolls.wide')).backgroundAttachment")


SWEEP = """\
model: p.ein
tensors: t.yaml
machine: [ideal, rda]
mode: simulate
vary:
  fuse: [none, full]
  par: [{}, {i: 2}]
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a sweep of eight points that were simulated."""
    folder = tmp_path_factory.mktemp("sweep")
    write_program(folder)
    simulated = sweeps.opened(folder, SWEEP)
    simulated.run(InProcessRunner())
    (folder / "sweep.html").write_text(sweep_page(simulated), encoding="utf-8")
    return folder / "sweep.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_point_of_a_sweep_opens_its_run_in_a_tab(scheme: str, chromium: Any, sweep: Path):
    walk(chromium, sweep, least=8)
    with opened(chromium, sweep, color_scheme=scheme) as shown:
        assert shown.locator("svg .points circle").count() >= 8
        heads = shown.locator("#overview thead th").all_inner_texts()
        rows = shown.locator("#overview tbody tr")
        told = [dict(zip(heads, row.locator("td").all_inner_texts(), strict=True)) for row in rows.all()]
        for k, row in enumerate(told):
            shown.evaluate("location.hash = '#overview'")
            when(shown.locator("#overview")).to_be_visible()
            shown.locator("#overview tbody td a").nth(k).click()
            link = shown.locator("section:not([hidden]) a.run").first
            when(link).to_have_attribute("href", re.compile("^blob:"))
            with shown.context.expect_page() as tab:
                link.click()
            run = tab.value
            when(run.locator("header h1")).to_have_text("p")
            when(run.locator(".cards .card").first).to_contain_text(f"{row['cycles']} cycles")
            when(run.locator(".cards .card").first).to_contain_text(f"on {row['machine']}")
            run.close()


def test_the_run_of_a_point_is_a_page_to_work_in(chromium: Any, sweep: Path, tmp_path: Path):
    with opened(chromium, sweep) as shown:
        shown.locator("svg .points a").first.click()
        assert shown.locator("iframe").count() == 0
        with shown.expect_download() as download:
            shown.locator("section:not([hidden]) a.save").click()
        download.value.save_as(tmp_path / "run.html")
    walk(chromium, tmp_path / "run.html")


def test_a_page_of_a_sweep_says_why_a_point_opens_no_run(tmp_path: Path):
    write_program(tmp_path)
    estimated = sweeps.opened(tmp_path, SWEEP.replace("mode: simulate\n", ""))
    assert sweep_page(estimated).count("has not run yet") == 8
    estimated.run(InProcessRunner())
    assert sweep_page(estimated).count("was estimated, and has no run") == 8
    simulated = sweeps.opened(tmp_path, SWEEP)
    simulated.run(InProcessRunner())
    assert sweep_page(estimated).count('<script type="text/plain" class="packed">') == 8
    assert sweep_page(simulated, with_runs=False).count("is not in the page") == 8


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_graph_are_text(name: str, chromium: Any, gcn: Path, tmp_path: Path):
    stored = read_run(gcn)
    names = {"acc_l": name, "adj": f"adj{name}", "layer1": f"layer1{name}", "k": f"k{name}", "models/gcn.py": f"models/{name}.py"}
    spoiled = StoredRun(*(renamed(getattr(stored, field.name), names) for field in dataclasses.fields(stored)))
    (tmp_path / "page.html").write_text(page(spoiled), encoding="utf-8")
    with opened(chromium, tmp_path / "page.html") as shown:
        count, bad = shown.evaluate(WALK)
        assert bad == [] and count > 100
        assert shown.locator(".canvas .node").count() == sum(
            len(graph.nodes) for _, graph in stored.compiled.values()
        )  # all were walked
        assert shown.evaluate("window.hurt") is None and shown.locator("img").count() == 0
        text = shown.content()
        told = json.dumps(shown.evaluate("JSON.parse(document.getElementById('data').textContent)"), ensure_ascii=False)
        assert not any(letter in text or letter in told for letter in OBEYED)
        assert "\\u00" not in told.replace("\\\\", "")
        assert not name.startswith("{{") or "{{ 7 * 7 }}" in text
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_comparison_and_in_a_sweep_are_text(name: str, chromium: Any, gcn: Path, tmp_path: Path):
    stored = read_run(gcn)
    spoiled = StoredRun(*(renamed(getattr(stored, field.name), {"acc_l": name}) for field in dataclasses.fields(stored)))
    (tmp_path / "page.html").write_text(comparison_page(stored, spoiled, (name, f"b{name}")), encoding="utf-8")
    walk(chromium, tmp_path / "page.html")
    write_program(tmp_path)
    named = SWEEP.replace("machine: [ideal, rda]", f"schedules: [{{name: {json.dumps(name)}}}]")
    swept = sweeps.opened(tmp_path, named)
    swept.run(InProcessRunner())
    (tmp_path / "sweep.html").write_text(sweep_page(swept), encoding="utf-8")
    with opened(chromium, tmp_path / "sweep.html") as shown:
        assert shown.evaluate(WALK)[1] == [] and shown.evaluate("window.hurt") is None
        assert not any(letter in shown.content() for letter in OBEYED)


def chain(count: int) -> StoredRun:
    """A run of a graph of so many nodes, which nothing has run: its statistics are made up."""
    lines = [
        "graph wide",
        "tensor A[8]  dense",
        "",
        "root = root()",
        "A_i = scan(root) A.0 sequential",
        "v0 = load(A_i.ref) A sequential",
    ]
    lines += [f"v{k} = alu(v{k - 1}, v{max(k - 7, 0)}) add N->0,N->0" for k in range(1, count - 2)]
    graph = samml_text.parse("\n".join(lines) + "\n", "wide")
    node = {"firings": 9, "starved": 1, "blocked": 1, "waited": 1, "occupied": 9, "first": 0, "last": 9}
    nodes = [{"name": n.name, "op": n.op, **node} for n in graph.nodes]
    none: dict[str, Any] = {"edges": [], "lanes": {}, "flops": {}, "traffic": [], "memory": None}
    region = {
        "name": "wide", "einsums": [], "times": 1, "repeats": [], "engine": "fast", "cycles": 20, "nodes": count, "firings": 9,
        "tokens": 9, "roofline": {"compute": 9, "memory": 0, "bound": 9}, "depths": {}, "statistics": {"nodes": nodes, **none},
    }  # fmt: skip
    result = {
        "model": "wide", "data": None, "options": {}, "schedule": "", "machine": "ideal", "machine_settings": {}, "engine": "fast",
        "seed": 0, "cycles": 20, "regions": [region], "flops": 0, "bytes": {"read": 0, "write": 0, "by_tensor": {}}, "check": None,
        "notices": [], "versions": {},
    }  # fmt: skip
    compiled = {"order": [], "loops": [], "constraints": [], "table": {"rows": [], "columns": []}, "places": {}}
    return StoredRun(result, {"wide": (compiled, graph)})


PAN = """async () => {
  const canvas = document.querySelector(".canvas");
  for (let k = 0; k < 12; k++) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: k % 2 ? "ArrowRight" : "ArrowDown", bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
}"""


@pytest.mark.parametrize("count", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_a_frame_of_panning_takes_at_most_16_milliseconds_of_script_and_layout(count: int, chromium: Any, tmp_path: Path):
    (tmp_path / "page.html").write_text(page(chain(count)), encoding="utf-8")
    with opened(chromium, tmp_path / "page.html", "#region/wide") as shown:
        when(shown.locator(".canvas .node")).to_have_count(count, timeout=120_000)
        session = shown.context.new_cdp_session(shown)
        session.send("Performance.enable")

        def spent() -> float:
            metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
            return sum(metrics[name] for name in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration"))

        before = spent()
        shown.evaluate(PAN)
        frame = 1000 * (spent() - before) / 12
        print(f"{count} nodes: {frame:.2f} ms a frame")
        assert frame <= 16
