"""Elements of SVG. Colors are CSS classes of the page, names are escaped, and numbers have at most two decimal places, so that the same
drawing gives the same bytes."""

from __future__ import annotations

from markupsafe import Markup, escape


def number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, content: object = "", /, **attributes: object) -> Markup:
    """Return an element. `class_` is the attribute `class`, and `text_anchor` is `text-anchor`."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(v) if isinstance(v, int | float) else v)}"'
        for key, v in attributes.items()
        if v is not None
    )
    return Markup(f"<{name}{pairs}>{escape(content)}</{name}>")  # `Markup.format` takes several times as long


def svg(width: float, height: float, content: Markup, label: str) -> Markup:
    """Return a drawing of this size. Screen readers read its `label`."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", element("title", label) + content, viewBox=box, width=width, height=height, role="img")


def text(x: float, y: float, content: object, class_: str | None = None, anchor: str | None = None) -> Markup:
    return element("text", content, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, title: str = "") -> Markup:
    inside = element("title", title) if title else ""
    return element("line", inside, x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def curve(points: list[tuple[float, float]], class_: str, title: str = "", thing: int | None = None) -> Markup:
    """Return a curve from top to bottom through points, which leaves and reaches each point straight down. `thing` is the number
    of its thing on a page."""
    (x, y), *rest = points
    path = f"M{number(x)} {number(y)}"
    for to_x, to_y in rest:
        middle = number((y + to_y) / 2)
        path += f"C{number(x)} {middle} {number(to_x)} {middle} {number(to_x)} {number(to_y)}"
        x, y = to_x, to_y
    return element("path", element("title", title) if title else "", d=path, class_=class_, data_t=thing)


def shorten(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def shorten_middle(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters. Names of one model differ at their ends, so the middle is left out.

    >>> shorten_middle("decoders.0.attn.query.weight_val", 20)
    'decod…ery.weight_val'
    """
    if len(name) <= letters:
        return name
    head = max(letters // 4, 1)
    return f"{name[:head]}…{name[len(name) - (letters - head - 1) :]}"


__all__ = ["Markup", "curve", "element", "line", "number", "shorten", "shorten_middle", "svg", "text"]
