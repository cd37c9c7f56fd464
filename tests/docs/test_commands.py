"""The commands of the pages on the command line run, and print what the pages say."""

import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest

from support.commands import call
from support.pages import says_the_same

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how_to"
BLOCK = re.compile(r"```sh\n(.*?)```(?:\n\n[^`]*?it prints\n\n```text\n(.*?)```)?", re.S)
TABLES = ("patients.csv", "pbc.csv", "new.csv", "test.csv")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["command_line", "report"])
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    for name in TABLES:
        (tmp_path / name).write_bytes(files("cqrf.datasets").joinpath("pbc.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    n_commands = 0
    for block, printed in BLOCK.findall(text):
        for command in block.replace("\\\n", " ").strip().splitlines():
            words = shlex.split(command, comments=True)
            assert words[0] == "cqrf"
            done = call(*words[1:])
            n_commands += 1
        if printed:
            shown = "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"
            assert says_the_same(shown, printed, most=1), shown
    assert n_commands > 2
