"""CSV files: what quotes mean, and how many columns they may have."""

import pytest

from cqrf.cli import text_files
from cqrf.cli.notation import Notation
from cqrf.cli.text_files import read_csv


def read(path, notation):
    return [row for piece in read_csv(str(path), ",", notation) for row in piece.to_pylist()]


def test_quoted_texts_are_missing_only_if_they_are_named_as_such(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n"NA",1\nNA,2\n')
    assert [row["a"] for row in read(path, Notation())] == ["NA", None]
    assert [row["a"] for row in read(path, Notation(na=("NA",)))] == [None, None]


def test_too_many_columns_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "wide.csv"
    path.write_text("a,b,c,d\n1,2,3,4\n")
    monkeypatch.setattr(text_files, "MOST_COLUMNS", 4)
    assert len(read(path, Notation())) == 1
    monkeypatch.setattr(text_files, "MOST_COLUMNS", 3)
    with pytest.raises(ValueError, match=r"wide.csv has 4 columns; .* at most 3 .* Parquet"):
        read(path, Notation())
