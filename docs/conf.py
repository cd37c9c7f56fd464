"""Settings of the manual. ``make docs`` builds it, offline, with warnings as errors."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from importlib.metadata import version as read_version
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_extensions"))

project = "cqrf"
author = "The cqrf developers"
copyright = "the cqrf developers"
release = version = read_version("cqrf")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "accessible",
    "mathml",
    "word_breaks",
]
exclude_patterns = ["_build", "_extensions", "examples/README.md", "gallery/backreferences"]
templates_path = ["_templates"]
# A page of the gallery is downloaded as the example itself; notebooks would only repeat it.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# The API reference: names are listed in api/*.md, texts come from the docstrings.
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"


def list_by_task() -> dict[str, list[str]]:
    """Methods of a class in the order in which the tables of api/*.md link to them."""
    found: dict[str, list[str]] = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for name, member in re.findall(r"\{(?:meth|attr)\}`[^`]*<([\w.]+)\.(\w+)>`", text):
            found.setdefault(name, []).append(member)
    return found


autosummary_context = {"members_by_task": list_by_task()}
numpydoc_show_class_members = False
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("cqrf",),
    "image_srcset": ["2x"],
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "notebook_extensions": set(),
    "copyfile_regex": r"^$",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = "cqrf"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = ["search.js"]
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars: dict[str, list[str]] = {
    "index": [],
    "glossary": [],
    "which_model": [],
    "tutorial/*": [],
}
html_theme_options = {
    "logo": {"text": "cqrf", "image_light": "_static/icon.svg", "image_dark": "_static/icon.svg"},
    "navbar_align": "left",
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search the manual",
}

# Pages of measurements live beside what measures them. They are copied, so that the manual has
# them, too, and links to them are rewritten.
MEASUREMENTS = DOCS / "measurements"
ZIP = re.compile(
    r"\n *\.\. container:: sphx-glr-download sphx-glr-download-zip\n\n *:download:.*\n"
)
LINK = re.compile(r"\((?:\.\./)+(benchmarks/results|results)/(\w+)\.md(#[\w-]+)?\)")


def copy_measurements() -> None:
    """Copy results/ and benchmarks/results/ to measurements/."""
    MEASUREMENTS.mkdir(exist_ok=True)
    shutil.copy(ROOT / "results" / "README.md", MEASUREMENTS / "paper.md")
    results = [path for path in (ROOT / "results").iterdir() if path.suffix in (".csv", ".svg")]
    for file in [*results, *(ROOT / "benchmarks" / "results").iterdir()]:
        shutil.copy(file, MEASUREMENTS / file.name)


def remove_stale() -> None:
    """Remove written pages of names and examples that may be there no more."""
    shutil.rmtree(DOCS / "api" / "generated", ignore_errors=True)
    examples = {path.stem for path in (DOCS / "examples").glob("plot_*.py")}
    for page in (DOCS / "gallery").glob("plot_*"):
        if page.name.split(".")[0] not in examples:
            page.unlink()


def rewrite_links(app: Any, docname: str, source: list[str]) -> None:
    """Links that leave docs/ for a page of measurements lead to its copy."""

    def rewrite(link: re.Match[str]) -> str:
        name = "paper" if link[1] == "results" else link[2]
        up = "../" * docname.count("/")
        return f"({up}measurements/{name}.md{link[3] or ''})"

    source[0] = re.sub(r"examples/(plot_\w+)\.py\)", r"gallery/\1.rst)", source[0])
    if docname.startswith("gallery/"):
        source[0] = ZIP.sub("\n", source[0])  # it would hold the example and nothing else
    if docname.startswith("measurements/"):
        text = re.sub(r"\]\((?:\.\./)+docs/", "](../", source[0])
        source[0] = f"---\norphan: true\n---\n\n{text}"
    else:
        source[0] = LINK.sub(rewrite, source[0])


def skip_foreign(app: Any, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what classes inherit from scikit-learn, tuple or Exception, and field aliases."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    text = getattr(member, "__doc__", None) or ""
    if text.startswith("Alias for field number"):
        return True
    function = getattr(member, "__func__", getattr(member, "fget", member))
    module = getattr(function, "__module__", None)
    foreign = module is not None and not module.startswith("cqrf")
    return True if foreign or type(member).__name__ == "method_descriptor" else skip


def setup(app: Any) -> None:
    """Register the hooks above."""
    remove_stale()
    copy_measurements()
    app.connect("source-read", rewrite_links)
    app.connect("autodoc-skip-member", skip_foreign)
