"""Page: the README.md of a folder of results, in Markdown."""

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
    """Write the folder's README.md; return how many claims hold, and how many there are."""
    entries = [entry for entry in CATALOG if folder.holds(entry.name)]
    claims = {
        entry.name: entry.load().check_claims(folder.results(entry.name)) for entry in entries
    }
    all_claims = [claim for found in claims.values() for claim in found]
    lines = [
        *_introduce(folder),
        *_list_claims(entries, claims),
        *_explain(all_claims),
        "## All methods in all experiments",
        "",
        "Means over levels, settings and repeats. The first method is the default.",
        "",
        *_compare(folder, entries),
        "",
        "## The experiments",
        "",
    ]
    for entry in entries:
        lines += _describe(folder, entry)
    lines += _describe_run(folder)
    folder.write_page("\n".join(lines))
    return sum(claim.holds for claim in all_claims), len(all_claims)


def _introduce(folder: Folder) -> list[str]:
    lines = [
        "# Reproduction of the paper",
        "",
        "All experiments of Li and Bradic, Censored Quantile Regression Forest (AISTATS 2020), "
        f"run again by `{_command(folder)}`. Each row below has a claim, its place in the paper, "
        "what was measured, and whether the claim holds.",
        "",
        "The methods: *censored-quantile* is the default of this library; *crf-generalized* and "
        "*crf-quantile* are the methods of the paper; *grf* and *qrf* have the same trees but "
        "treat censored times as event times; *rsf* is a random survival forest; an *oracle* is "
        "fitted to the latent times.",
        "",
    ]
    if folder.study.quick:
        lines += ["**A quick run: it has too few trees and rows to check the claims.**", ""]
    if folder.study.with_peers:
        lines += [
            "qrf and qrf-oracle are from quantile-forest and rsf is from scikit-survival, except "
            "out of bag, where they are ours.",
            "",
        ]
    return lines


def _list_claims(entries: list[Entry], claims: dict[str, list[Claim]]) -> list[str]:
    lines = []
    of_paper = [entry for entry in entries if entry.section]
    beyond = [entry for entry in entries if not entry.section]
    if of_paper:
        lines += ["## Claims of the paper", "", *_tabulate(of_paper, claims, "in the paper"), ""]
    if beyond:
        lines += ["## Beyond the paper", "", *_tabulate(beyond, claims, "experiment"), ""]
    return lines


def _explain(claims: list[Claim]) -> list[str]:
    failed = [claim for claim in claims if claim.reason and not claim.holds]
    if not failed:
        return []
    reasons = [f"- *{claim.text}* {claim.reason}" for claim in failed]
    return ["## Why some claims do not hold", "", *reasons, ""]


def _describe(folder: Folder, entry: Entry) -> list[str]:
    section = f" ({entry.section})" if entry.section else ""
    lines = [
        f"### {entry.title}{section}",
        "",
        f"![{entry.title}]({entry.name}.svg)",
        "",
        f"All numbers: [{entry.name}.csv]({entry.name}.csv).",
        "",
    ]
    tabulate = entry.load().tabulate
    if tabulate is not None:
        lines += [tabulate(folder.results(entry.name)), ""]
    return lines


def _describe_run(folder: Folder) -> list[str]:
    seconds = sum(folder.record["seconds"].values())
    return [
        "## How it was made",
        "",
        f"{', '.join(f'{name} {version(name)}' for name in PACKAGES)}, Python "
        f"{platform.python_version()}, {cpu_count()} cores: {seconds / 60:.0f} minutes. Seeds are "
        "fixed: the same command gives the same numbers, except for query times.",
        "",
    ]


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


def _tabulate(entries: list[Entry], claims: dict[str, list[Claim]], place: str) -> list[str]:
    lines = [f"| claim | {place} | measured | holds |", "|---|---|---|---|"]
    for entry in entries:
        for claim in claims[entry.name]:
            verdict = "yes" if claim.holds else "**no**"
            section = entry.section or entry.name
            lines.append(f"| {claim.text} | {section} | {claim.measured} | {verdict} |")
    return lines
