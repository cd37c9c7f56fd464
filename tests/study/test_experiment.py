"""A run resumes where it stopped, and never mixes with another kind of run."""

import json

import pytest

from cqrf.study.experiment import Experiment, Folder
from cqrf.study.methods import Study


class Counting:
    """An experiment of four cases that records its runs, and may stop at one of them."""

    def __init__(self, stop_at=None):
        self.ran = []
        self.stop_at = stop_at

    def run(self, study, case):
        if len(self.ran) == self.stop_at:
            raise KeyboardInterrupt
        self.ran.append((case["repeat"], case["node_size"]))
        return [{"method": m, **case, "loss": 0.5} for m in ("a", "b")]

    @property
    def experiment(self):
        def draw(results):
            import matplotlib.pyplot as plt

            figure, axes = plt.subplots()
            axes.plot(results.column("loss"))
            return figure

        cases = [{"repeat": r, "node_size": s} for r in range(2) for s in (5, 10)]
        return Experiment("counting", lambda study: cases, self.run, draw, lambda results: [])


def test_an_interrupted_run_resumes(tmp_path):
    stopped = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        list(Folder(tmp_path, Study()).run(stopped.experiment))
    assert len(Folder(tmp_path, Study()).results("counting")) == 6
    after = Counting()
    folder = Folder(tmp_path, Study())
    assert folder.missing_cases(after.experiment) == [{"repeat": 1, "node_size": 10}]
    list(folder.run(after.experiment))
    assert stopped.ran + after.ran == [(0, 5), (0, 10), (1, 5), (1, 10)]
    assert len(folder.results("counting")) == 8
    again = Counting()
    assert list(Folder(tmp_path, Study()).run(again.experiment)) == []
    assert again.ran == []


def test_the_record_adds_up_seconds(tmp_path):
    list(Folder(tmp_path, Study()).run(Counting().experiment))
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["quick"] is False
    assert record["seconds"]["counting"] >= 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["counting.csv", "run.json"]

    record["seconds"]["counting"] = 1000.0
    (tmp_path / "run.json").write_text(json.dumps(record))
    list(Folder(tmp_path, Study()).run(Counting().experiment))  # nothing is missing
    assert json.loads((tmp_path / "run.json").read_text())["seconds"]["counting"] == 1000.0
    (tmp_path / "counting.csv").unlink()
    list(Folder(tmp_path, Study()).run(Counting().experiment))
    assert json.loads((tmp_path / "run.json").read_text())["seconds"]["counting"] < 1000.0


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (Study(quick=True), Study(), "with --quick"),
        (Study(), Study(quick=True), "without --quick"),
        (Study(with_peers=True), Study(), "with --peers"),
    ],
)
def test_a_folder_holds_one_kind_of_run(tmp_path, first, second, said):
    list(Folder(tmp_path, first).run(Counting().experiment))
    with pytest.raises(ValueError, match=f"holds results of a run {said}; give another --out"):
        Folder(tmp_path, second)


@pytest.mark.parametrize("text", ["", "[]", '{"quick": false}', "{"])
def test_an_invalid_record_raises_an_error(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="not the record of a run"):
        Folder(tmp_path, Study())


def test_a_file_without_the_columns_of_a_case_raises_an_error(tmp_path):
    (tmp_path / "counting.csv").write_text("method,repeat\na,0\n")
    with pytest.raises(ValueError, match="no column 'node_size'"):
        Folder(tmp_path, Study()).missing_cases(Counting().experiment)


def test_figures_are_svg_and_png_and_reproducible(tmp_path):
    folder = Folder(tmp_path, Study())
    list(folder.run(Counting().experiment))
    folder.draw(Counting().experiment)
    first = (tmp_path / "counting.svg").read_bytes()
    folder.draw(Counting().experiment)
    assert (tmp_path / "counting.svg").read_bytes() == first
    assert (tmp_path / "counting.png").read_bytes().startswith(b"\x89PNG")
