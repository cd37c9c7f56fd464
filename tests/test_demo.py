"""The demo prints its table and writes its report, figure, data and model."""

import re
import subprocess
import sys

from cqrf import CensoredQuantileForest


def test_the_demo_prints_a_table_and_leaves_a_report(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "cqrf.demo"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "418 patients, 161 deaths, 61% censored" in run.stdout
    assert len(re.findall(r"(died|alive) at", run.stdout)) == 8
    skill = re.search(r"quantile loss (\d+)% below", run.stdout)
    assert skill is not None
    assert int(skill.group(1)) > 10
    left = {path.name: path for path in (tmp_path / "demo").iterdir()}
    assert set(left) == {"pbc_survival.png", "pbc.csv", "pbc.cqrf", "pbc_report.html"}
    assert str(left["pbc_survival.png"]) in run.stdout
    assert left["pbc_survival.png"].read_bytes().startswith(b"\x89PNG")
    assert f"The report, for a browser: {left['pbc_report.html']}" in run.stdout
    assert left["pbc_report.html"].stat().st_size > 100_000
    assert CensoredQuantileForest.load(left["pbc.cqrf"]).n_features_in_ == 17
    predict, serve = run.stdout.rstrip().splitlines()[-2:]
    assert "cqrf predict demo/pbc.cqrf" in predict
    assert serve.startswith("Try next: ")
    assert serve.endswith("cqrf serve demo/pbc.cqrf --data demo/pbc.csv --id id")
