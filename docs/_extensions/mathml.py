"""Formulas as MathML, which browsers draw themselves: no script and no font from a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def write_inline(writer: Any, node: nodes.Element) -> None:
    """A formula in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def write_display(writer: Any, node: nodes.Element) -> None:
    """A formula on a line of its own, which scrolls if the screen is narrower, by keys as well."""
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Make MathML the way in which formulas are written."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(write_inline, None), block_renderers=(write_display, None)
    )
    app.connect("config-inited", choose)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def choose(app: Any, config: Any) -> None:
    """Choose this renderer."""
    config.html_math_renderer = "mathml"
