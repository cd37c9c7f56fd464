"""``cqrf reproduce`` from the outside: what it prints, leaves and refuses."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cqrf.cli.app import app
from cqrf.study.beyond import RATE_OF_SHARE
from cqrf.study.catalog import CATALOG
from cqrf.study.experiment import Folder
from cqrf.study.methods import Study
from cqrf.study.page import write_page

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from cqrf.cli import main; main()", "reproduce"]


def run(*arguments, cwd=None, command=COMMAND):
    return subprocess.run([*command, *arguments], cwd=cwd, capture_output=True, text=True)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Every experiment, in a quick run."""
    out = tmp_path_factory.mktemp("study") / "quick"
    done = run("all", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out, done


def test_without_a_name_it_lists_every_experiment():
    done = run()
    assert done.returncode == 0
    for entry in CATALOG:
        assert entry.name in done.stdout


@pytest.mark.slow
def test_a_quick_run_leaves_numbers_figures_and_a_page(quick):
    out, done = quick
    page = (out / "README.md").read_text()
    for entry in CATALOG:
        assert f"![{entry.title}]({entry.name}.svg)" in page
        assert (out / f"{entry.name}.csv").read_text().count("\n") > 3
        assert (out / f"{entry.name}.svg").read_text().startswith("<?xml")
        assert (out / f"{entry.name}.png").stat().st_size > 10_000
        experiment = entry.load()
        results = Folder(out, Study(quick=True)).results(entry.name)
        claims = experiment.check_claims(results)
        assert claims
        for claim in claims:
            assert f"| {claim.text} | {entry.section or entry.name} | {claim.measured} |" in page
            assert not re.search(r"\bnan\b", claim.measured)
    held, total = map(int, re.match(r"(\d+) of (\d+) claims hold", done.stdout).groups())
    assert page.count("| yes |") == held
    assert page.count("| yes |") + page.count("| **no** |") == total
    assert "A quick run" in page
    assert not list(out.glob("*.part"))


@pytest.mark.slow
def test_nothing_is_run_twice(quick):
    out, _ = quick
    folder = Folder(out, Study(quick=True))
    assert all(folder.missing_cases(entry.load()) == [] for entry in CATALOG)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = run("pbc", "query-time", "--quick", "--out", str(out))
    assert again.returncode == 0, again.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.slow
def test_a_lost_repeat_is_run_again_to_the_same_numbers(quick, tmp_path):
    out = tmp_path / "cut"
    shutil.copytree(quick[0], out)
    path = out / "pbc.csv"
    whole = path.read_text()
    kept = [line for line in whole.splitlines(keepends=True) if line.split(",")[3] != "1"]
    assert 1 < len(kept) < whole.count("\n")
    path.write_text("".join(kept))
    done = run("pbc", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert sorted(path.read_text().splitlines()) == sorted(whole.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["aft-curve"], "there is no experiment 'aft-curve'; did you mean 'aft-curves'?"),
        (["zzz"], "there is no experiment 'zzz'; cqrf reproduce lists them."),
        (["all", "--out", "QUICK"], "holds results of a run with --quick; give another --out."),
        (["pbc", "--quick", "--out", "FILE"], "FILE is a file; give a folder as --out."),
        (["pbc", "--quick", "--jobs", "0"], "--jobs must be a number of threads"),
    ],
)
def test_mistakes_are_one_line_and_code_2(tmp_path, tmp_path_factory, monkeypatch, arguments, said):
    (tmp_path / "FILE").write_text("")
    quick = tmp_path_factory.mktemp("quick")
    (quick / "run.json").write_text(json.dumps({"quick": True, "peers": False, "seconds": {}}))
    arguments = [str(quick) if a == "QUICK" else a for a in arguments]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", *arguments])
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "stopped"
    command = [*COMMAND, "boston-housing", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 240
        while not (out / "run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.strip().endswith("stopped; the same command continues from here")
    cases = Folder(out, Study()).missing_cases(CATALOG[5].load())
    assert 0 < len(cases) < 200


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_typer_it_says_what_to_install(module):
    program = f"import sys; sys.modules[{module!r}] = None; from cqrf.cli import main; main()"
    done = run(command=[sys.executable, "-c", program])
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'cqrf[cli]'")
    assert done.stderr.count("\n") == 1


def test_without_the_peers_their_experiment_says_what_it_needs(tmp_path):
    program = (
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'sksurv' else find(name, *a)\n"
        "from cqrf.cli import main; main()"
    )
    out = tmp_path / "none"
    done = run(
        "reproduce", "python-packages", "--out", str(out), command=[sys.executable, "-c", program]
    )
    assert done.returncode == 2
    assert done.stderr == "cqrf: python-packages needs both packages: pip install 'cqrf[bench]'\n"
    assert not out.exists()


def test_without_the_data_of_the_r_packages_it_says_where_they_are(tmp_path):
    """As in a wheel, which leaves them out."""
    program = (
        "from cqrf.study import catalog\n"
        "catalog.CATALOG = tuple(\n"
        "    e._replace(needs=e.needs._replace(is_met=lambda: False)) if e.name == 'r-packages'\n"
        "    else e for e in catalog.CATALOG\n"
        ")\n"
        "from cqrf.cli import main; main()"
    )
    out = tmp_path / "none"
    command = [sys.executable, "-c", program]
    done = run("reproduce", "r-packages", "--out", str(out), command=command)
    assert done.returncode == 2
    assert done.stderr == (
        "cqrf: r-packages needs data that are not in the wheel: in a checkout or the unpacked "
        "source distribution, use pip install -e '.[cli,plots]'\n"
    )
    assert not out.exists()
    several = ["reproduce", "query-time", "r-packages", "--quick", "--out", str(out)]
    done = run(*several, command=command)
    assert done.returncode == 0, done.stderr
    assert "left out: r-packages needs data" in done.stderr
    assert {path.stem for path in out.glob("*.csv")} == {"query-time"}


def test_help_loads_nothing_heavy():
    program = (
        "import sys, atexit\n"
        "from cqrf.cli import main\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'matplotlib'}\n"
        "atexit.register(lambda: print(*sorted(heavy & set(sys.modules))))\n"
        "sys.argv = ['cqrf', '--help']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    assert "reproduce" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_the_committed_page_says_what_the_committed_numbers_say(tmp_path):
    """The page made anew from the CSV files, but for the line on versions and minutes."""
    out = tmp_path / "results"
    shutil.copytree(ROOT / "results", out)
    record = json.loads((out / "run.json").read_text())
    assert record["quick"] is record["peers"] is False
    assert sum(record["seconds"].values()) < 45 * 60
    folder = Folder(out, Study())
    for entry in CATALOG:
        assert folder.missing_cases(entry.load()) == []
    write_page(folder)
    old, new = ((f / "README.md").read_text() for f in (ROOT / "results", out))
    assert new.split("## How it was made")[0] == old.split("## How it was made")[0]


def test_rates_give_the_shares_they_are_named_by():
    """By quadrature: x1 uniform on [0, 2], log T normal around it, C exponential."""
    x, weight_of_x = np.polynomial.legendre.leggauss(80)
    z, weight_of_z = np.polynomial.hermite_e.hermegauss(60)
    latent = np.exp(x[:, np.newaxis] + 1 + 0.3 * z)
    weight = np.outer(weight_of_x / 2, weight_of_z / weight_of_z.sum())
    for share, rate in RATE_OF_SHARE.items():
        assert (weight * (1 - np.exp(-rate * latent))).sum() == pytest.approx(share, abs=1e-4)
