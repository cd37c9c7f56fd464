"""Result files are written atomically and read back unchanged."""

import pytest

from cqrf.study.results import Results, read_results, write_results

ROWS = [
    {"method": "a", "tau": 0.5, "repeat": 0, "loss": 1.0},
    {"method": "a", "tau": 0.5, "repeat": 1, "loss": 3.0},
    {"method": "b, root", "tau": 0.5, "repeat": 0, "loss": 1 / 3},
    {"method": "a", "tau": 0.9, "repeat": 0, "loss": 7.0},
]


def test_a_file_reads_back(tmp_path):
    path = tmp_path / "some.csv"
    write_results(path, Results(ROWS))
    back = read_results(path).rows
    assert [row["method"] for row in back] == ["a", "a", "b, root", "a"]
    assert [row["repeat"] for row in back] == [0, 1, 0, 0]
    assert back[2]["loss"] == pytest.approx(1 / 3, rel=1e-4)
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_is_no_rows(tmp_path):
    assert len(read_results(tmp_path / "none.csv")) == 0


def test_an_error_in_a_truncated_file_names_its_line(tmp_path):
    path = tmp_path / "some.csv"
    write_results(path, Results(ROWS))
    path.write_text(path.read_text()[:-8])
    with pytest.raises(ValueError, match=r"some\.csv, line 5"):
        read_results(path)


def test_queries():
    results = Results(ROWS)
    assert results.distinct("method") == ["a", "b, root"]
    assert results.where(method="a", tau=0.5).mean("loss") == 2.0
    assert len(results.where(method=("a", "b, root"))) == 4
    assert len(results.where(method=())) == 0
    assert results.where(method="a", tau=0.5).spread("loss") == pytest.approx(2**0.5)
    assert results.where(tau=0.9).spread("loss") == 0.0
    assert [(tau, len(group)) for tau, group in results.groups("tau")] == [(0.5, 3), (0.9, 1)]
