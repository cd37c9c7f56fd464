"""Page: what a folder of results shows, as one Markdown text."""

from __future__ import annotations

import platform
from importlib.metadata import version
from os import cpu_count

from cqrf.study.catalog import CATALOG, Entry
from cqrf.study.experiment import Claim, Folder
from cqrf.study.methods import CENSORED, DEFAULT, ORACLES

MEASURES = ("loss", "error", "concordance", "coverage")
PACKAGES = ("cqrf", "numpy", "numba", "scikit-learn")


def write_page(folder: Folder) -> tuple[int, int]:
    """Write the folder's README.md; how many claims hold, and of how many."""
    shown = [entry for entry in CATALOG if folder.holds(entry.name)]
    judged = {}
    tables = {}
    for entry in shown:
        experiment = entry.load()
        results = folder.results(entry.name)
        judged[entry.name] = experiment.judge(results)
        if experiment.tabulate is not None:
            tables[entry.name] = experiment.tabulate(results)
    claims = [claim for found in judged.values() for claim in found]
    lines = ["# The paper, reproduced", ""]
    lines += [
        "Li and Bradic's Censored Quantile Regression Forest (AISTATS 2020), every experiment run "
        f"again by `{_command(folder)}`. Each line below is a claim, where the paper makes it, "
        "what was measured, and whether it holds.",
        "",
        "The methods: *censored-quantile* is this library's default; *crf-generalized* and "
        "*crf-quantile* are the paper's; *grf* and *qrf* are the same trees without a correction, "
        "which take censored times for event times; *rsf* is a random survival forest; an *oracle* "
        "is told the times that nobody sees.",
        "",
    ]
    if folder.study.quick:
        lines += ["**A quick run: too few trees and rows to judge the claims by.**", ""]
    if folder.study.with_peers:
        lines += [
            "qrf and qrf-oracle are quantile-forest's, rsf is scikit-survival's (out of bag, "
            "where they cannot follow, they are ours).",
            "",
        ]
    of_paper = [entry for entry in shown if entry.where]
    beyond = [entry for entry in shown if not entry.where]
    if of_paper:
        lines += ["## The paper's claims", "", *_tabulate(of_paper, judged, "in the paper"), ""]
    if beyond:
        lines += ["## Beyond the paper", "", *_tabulate(beyond, judged, "experiment"), ""]
    failed = [claim for claim in claims if claim.why and not claim.holds]
    if failed:
        lines += ["## Why some do not hold", ""]
        lines += [f"- *{claim.text}* {claim.why}" for claim in failed]
        lines += [""]
    lines += ["## Every method in every experiment", ""]
    lines += ["Means over levels, settings and repeats; the default is the first.", ""]
    lines += [*_compare(folder, shown), ""]
    lines += ["## The experiments", ""]
    for entry in shown:
        place = f" ({entry.where})" if entry.where else ""
        lines += [f"### {entry.title}{place}", ""]
        lines += [f"![{entry.title}]({entry.name}.svg)", ""]
        lines += [f"Every number: [{entry.name}.csv]({entry.name}.csv).", ""]
        if entry.name in tables:
            lines += [tables[entry.name], ""]
    seconds = sum(folder.record["seconds"].values())
    lines += [
        "## How it was made",
        "",
        f"{', '.join(f'{name} {version(name)}' for name in PACKAGES)}, Python "
        f"{platform.python_version()}, {cpu_count()} cores: {seconds / 60:.0f} minutes. Seeds are "
        "fixed: the same command gives the same numbers, but for the times of queries.",
        "",
    ]
    folder.write_page("\n".join(lines))
    return sum(claim.holds for claim in claims), len(claims)


def _command(folder: Folder) -> str:
    flags = (" --quick" if folder.study.quick else "") + (
        " --peers" if folder.study.with_peers else ""
    )
    return f"cqrf reproduce all{flags} --out {folder.path.name}"


def _compare(folder: Folder, entries: list[Entry]) -> list[str]:
    methods = (*CENSORED, *ORACLES)
    lines = ["| experiment | measure | " + " | ".join(methods) + " |"]
    lines += ["|---|---|" + "---|" * len(methods)]
    for entry in entries:
        results = folder.results(entry.name)
        if DEFAULT not in results.rows[0].values():
            continue
        for measure in MEASURES:
            if measure not in results.rows[0]:
                continue
            cells = (results.where(method=method) for method in methods)
            texts = (f"{cell.mean(measure):.3f}" if len(cell) else "" for cell in cells)
            lines.append(f"| {entry.name} | {measure} | " + " | ".join(texts) + " |")
    return lines


def _tabulate(entries: list[Entry], judged: dict[str, list[Claim]], place: str) -> list[str]:
    lines = [f"| claim | {place} | measured | holds |", "|---|---|---|---|"]
    for entry in entries:
        for claim in judged[entry.name]:
            verdict = "yes" if claim.holds else "**no**"
            where = entry.where or entry.name
            lines.append(f"| {claim.text} | {where} | {claim.measured} | {verdict} |")
    return lines
