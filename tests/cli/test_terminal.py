"""Texts of a table cannot control the terminal, whatever command prints them."""

import io

import pyarrow as pa
import pytest

from cqrf.cli.writers import open_writer
from support.commands import call, make_table, refused

# Sets the title, clears the screen, turns writing around.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
FAST = ("--trees", "9", "--jobs", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose columns, levels and causes are hostile, and a forest fitted to it."""
    folder = tmp_path_factory.mktemp("terminal")
    table = make_table(n=120)
    table["cause"] = ["none", f"{HOSTILE}death", f"relapse{HOSTILE}"] * 40
    table = table.drop(columns="status").rename(columns={"age": HOSTILE})
    table["group"] += HOSTILE
    table.to_csv(folder / "rows.csv", index=False)
    table.assign(group=f"new{HOSTILE}").to_csv(folder / "new.csv", index=False)
    table.drop(columns=HOSTILE).to_csv(folder / "less.csv", index=False)
    event = ("--time", "days", "--event", "cause", "--censored", "none")
    fitted = call("fit", folder / "rows.csv", *event, *FAST, "-o", folder / "m.cqrf")
    assert_harmless(fitted.output)
    return folder


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def assert_harmless(text):
    assert not set(text) & set(HOSTILE) & set("\x1b\x07\u202e\x9b")


@pytest.mark.parametrize(
    "command",
    [
        ("info", "m.cqrf"),
        ("evaluate", "m.cqrf"),
        ("evaluate", "m.cqrf", "rows.csv"),
        ("evaluate", "m.cqrf", "--json"),
        ("predict", "m.cqrf", "new.csv", "-o", "p.csv"),
        ("report", "m.cqrf", "rows.csv", "-o", f"r{HOSTILE}.html"),
    ],
)
@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
def test_what_is_printed(command):
    done = call(*command)
    assert_harmless(done.output)
    assert command[0] == "report" or "\\x1b" in done.output or "\\u001b" in done.output


def test_what_is_refused():
    message = refused("predict", "m.cqrf", "rows.csv", "--cause", HOSTILE)
    assert_harmless(message)
    assert "\\x1b" in message
    for command in ("predict", "evaluate"):
        message = refused(command, "m.cqrf", "less.csv")
        assert_harmless(message)
        assert "\\x1b" in message


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_table_is_escaped_only_for_a_terminal(monkeypatch, is_terminal):
    class Output:
        buffer = io.BytesIO()

        def isatty(self):
            return is_terminal

    monkeypatch.setattr("sys.stdout", Output())
    with open_writer(None) as write:
        write(pa.table({f"id{HOSTILE}": [HOSTILE, None, "a,b"], "time": [1.5, 2.5, 3.5]}))
    text = Output.buffer.getvalue().decode()
    shown = HOSTILE.encode("unicode_escape").decode() if is_terminal else HOSTILE
    assert text == f'id{shown},time\n{shown},1.5\n,2.5\n"a,b",3.5\n'
