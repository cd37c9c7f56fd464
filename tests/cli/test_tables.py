"""Tables as people have them: encodings, missing texts, notations, formats, invalid rows."""

import json
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest
from support.commands import FAST, ROLES, call, make_table, refused

FIT = [*ROLES, *FAST, "-o", "m.cqrf"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_table()


def fit(name, *options):
    """What fit says, and the model."""
    said = call("fit", name, *FIT, "--force", *options).stderr
    return said, CensoredQuantileForest.load("m.cqrf")


def kinds(forest):
    return dict(zip(forest.feature_names_in_, forest.model_.columns.kinds, strict=True))


def write_text(frame, name, encoding="utf-8", **options):
    Path(name).write_bytes(frame.to_csv(index=False, **options).encode(encoding))


# Encodings


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_that_marks_its_files_is_recognised(table, encoding):
    write_text(table, "plain.csv")
    write_text(table, "marked.csv", encoding)
    _, forest = fit("plain.csv")
    expected = call("predict", "m.cqrf", "plain.csv").stdout
    _, again = fit("marked.csv")
    assert again.model_.columns == forest.model_.columns
    assert again.model_.columns.levels[1] == ("a", "c", "é")
    assert call("predict", "m.cqrf", "marked.csv").stdout == expected


def test_an_encoding_without_a_mark_is_named_by_the_user(table):
    write_text(table, "latin.csv", "cp1252")
    line = 2 + int(np.flatnonzero(table["group"] == "é")[0])
    said = refused("fit", "latin.csv", *FIT)
    assert said.startswith(f"latin.csv: line {line} is not text in UTF-8 (byte 0xe9).")
    assert "--encoding cp1252" in said
    for command in (["predict", "m.cqrf", "latin.csv"], ["evaluate", "m.cqrf", "latin.csv"]):
        fit("latin.csv", "--encoding", "latin-1")
        assert "line" in refused(*command)
        call(*command, "--encoding", "cp1252")
    assert CensoredQuantileForest.load("m.cqrf").model_.columns.levels[1] == ("a", "c", "é")
    assert "--encoding klingon is unknown" in refused(
        "fit", "latin.csv", *FIT, "--force", "--encoding", "klingon"
    )
    write_text(table, "wide.csv", "utf-16-le")
    assert "--encoding utf-16-le" in refused("fit", "wide.csv", *FIT, "--force")
    fit("wide.csv", "--encoding", "utf-16-le")


def test_a_bad_byte_far_into_a_file_is_named_by_its_line(table):
    long = pd.concat([table.assign(group="b")] * 1500)  # more than a piece
    text = long.to_csv(index=False).encode() + "20,é,1.5,1\n".encode("latin-1")
    Path("long.csv").write_bytes(text)
    assert f"line {len(long) + 2} is not text" in refused("fit", "long.csv", *FIT)


# Missing


def test_missing_is_what_the_user_says(table):
    table["group"] = np.where(np.arange(60) % 2, "NA", "EU")  # regions
    table["age"] = table["age"].mask(np.arange(60) % 3 == 0, -9)
    write_text(table, "t.csv")
    said, forest = fit("t.csv")
    assert forest.model_.columns.levels[1] == ("EU",)
    assert "group 50%" in said
    said, forest = fit("t.csv", "--na", "")
    assert forest.model_.columns.levels[1] == ("EU", "NA")
    assert said.splitlines()[-4].startswith("Missing nothing")
    said, forest = fit("t.csv", "--na", "-9", "--na", "?")
    assert forest.model_.columns.levels[1] == ("EU", "NA")
    assert "Missing age 33%" in said
    assert json.loads(forest.notes_["na"]) == ["-9", "?"]
    expected = call("predict", "m.cqrf", "t.csv").stdout
    write_text(table.assign(age=table["age"].replace(-9, np.nan)), "empty.csv")
    assert call("predict", "m.cqrf", "empty.csv").stdout == expected
    table.to_parquet("t.parquet")
    said, _ = fit("t.parquet", "--na", "-9", "--na", "EU")
    assert "Missing age 33%, group 50%" in said


# Invalid rows


def test_rows_without_a_valid_target_are_named_or_left_out(table):
    table = table.astype(object)
    table.loc[[3, 7], "days"] = ["soon", None]
    table.loc[9, "status"] = "?"
    write_text(table, "t.csv")
    said = refused("fit", "t.csv", *FIT)
    assert "column 'days' is missing in 1 of 60 rows (the first is line 9)" in said
    assert "--drop-invalid" in said
    said, forest = fit("t.csv", "--drop-invalid")
    assert (
        "3 of 60 rows are left out: column 'days' is missing (1); column 'days' holds 'soon', "
        in said
    )
    assert "column 'status' holds '?', which is not a whole number (1)" in said
    assert len(forest.model_.order) == 57
    write_text(table.drop(index=[3, 7, 9]), "valid.csv")
    expected = call("predict", "m.cqrf", "valid.csv").stdout
    fit("valid.csv")
    assert call("predict", "m.cqrf", "valid.csv").stdout == expected
    scores = call("evaluate", "m.cqrf", "t.csv", "--drop-invalid", "--json")
    assert scores.stdout == call("evaluate", "m.cqrf", "valid.csv", "--json").stdout
    assert "line 9" in refused("evaluate", "m.cqrf", "t.csv")


def test_the_line_of_a_row_counts_breaks_and_empty_lines(table):
    table = table.assign(group=["two\nlines", *table["group"][1:]]).astype(object)
    table.loc[2, "days"] = "soon"
    text = table.to_csv(index=False).splitlines()
    Path("t.csv").write_text("\n".join([*text[:3], "", *text[3:]]) + "\n")
    place = 1 + next(
        i for i, line in enumerate(Path("t.csv").read_text().splitlines()) if "soon" in line
    )
    assert f"'soon', which is not a number, in 1 of 60 rows (the first is line {place})" in refused(
        "fit", "t.csv", *FIT
    )
    with open("t.csv") as file:
        assert "row 2 (the first row is 0)" in refused("fit", "-", *FIT, input=file.read())
    table.to_json("t.jsonl", orient="records", lines=True)
    assert "line 3" in refused("fit", "t.jsonl", *FIT)
    table["days"] = pd.to_numeric(table["days"], errors="coerce")
    table.astype({"age": int, "status": int}).to_parquet("t.parquet")
    assert "row 2 (the first row is 0)" in refused("fit", "t.parquet", *FIT)


def test_an_entry_after_its_time_is_an_invalid_row(table):
    table["start"] = 0.5
    table.loc[4, "start"] = 1e6
    write_text(table, "t.csv")
    entry = ["--entry", "start"]
    assert "column 'start' is not before 'days' in 1 of 60 rows (the first is line 6)" in refused(
        "fit", "t.csv", *FIT, *entry
    )
    assert "1 of 60 rows is left out" in fit("t.csv", *entry, "--drop-invalid")[0]


def test_a_status_code_is_no_invalid_row(table):
    write_text(table.assign(status=np.arange(60) % 3 + 1), "t.csv")
    assert "--event-value" in refused("fit", "t.csv", *FIT, "--drop-invalid")


def test_dates_are_no_times(table):
    write_text(table.assign(days="2020-01-01"), "t.csv")
    assert "column 'days' is dates: it must hold numbers" in refused("fit", "t.csv", *FIT)


def test_a_negative_time_is_asked_about_once(table):
    table.loc[3, "days"] = -4.0
    write_text(table, "t.csv")
    said, _ = fit("t.csv")
    assert said.count("below 0") == 1
    assert "Note    1 time is below 0 (line 5): does an end lie before its start?" in said
    table.loc[[1, 9], "days"] = [np.nan, -2.0]
    write_text(table, "t.csv")
    said, _ = fit("t.csv", "--drop-invalid")
    assert "Note    2 times are below 0 (the first is line 5): does an end" in said
    write_text(table.drop(index=1).assign(start=-9.0), "entered.csv")
    assert "below 0" not in fit("entered.csv", "--entry", "start")[0]


# Notation of dates and numbers

DAYS = [datetime(2020, 1, 1) + timedelta(days=11 * i) for i in range(60)]
NOTATIONS = {
    "%d/%m/%Y": "dmy",
    "%m/%d/%Y": "mdy",
    "%m-%d-%Y": "mdy",
    "%d.%m.%Y": "dmy",
    "%d/%m/%Y %H:%M": "dmy",
}


@pytest.mark.parametrize("written", NOTATIONS)
def test_dates_are_read_in_their_order_and_so_is_a_later_table(table, written):
    write_text(table.assign(seen=DAYS), "iso.csv")
    write_text(table.assign(seen=[f"{day:{written}}" for day in DAYS]), "t.csv")
    said, forest = fit("iso.csv")
    assert kinds(forest)["seen"] == "date"
    assert "read as" not in said
    expected = call("predict", "m.cqrf", "iso.csv").stdout
    said, forest = fit("t.csv")
    order = "day/month/year" if NOTATIONS[written] == "dmy" else "month/day/year"
    assert f"Note    read as dates: seen ({order})" in said
    assert json.loads(forest.notes_["dates"]) == {"seen": NOTATIONS[written]}
    assert call("predict", "m.cqrf", "t.csv").stdout == expected
    assert call("evaluate", "m.cqrf", "t.csv").stdout
    # An early part alone does not tell the order: the model does.
    write_text(table.assign(seen=[f"{DAYS[0]:{written}}"] * 60).head(3), "early.csv")
    write_text(table.assign(seen=[DAYS[0]] * 60).head(3), "early_iso.csv")
    early = call("predict", "m.cqrf", "early.csv").stdout
    assert call("predict", "m.cqrf", "early_iso.csv").stdout == early
    fit("iso.csv")
    assert call("predict", "m.cqrf", "early_iso.csv").stdout == early


def test_the_user_decides_where_day_and_month_are_ambiguous(table):
    early = [f"{1 + i % 12:02}/{1 + i % 11:02}/2021" for i in range(60)]
    write_text(table.assign(seen=early), "t.csv")
    said, forest = fit("t.csv")
    assert "seen stays text, but looks like dates, day or month first: --dates seen=dmy" in said
    assert kinds(forest)["seen"] == "category"
    said, forest = fit("t.csv", "--dates", "seen=mdy")
    assert kinds(forest)["seen"] == "date"
    assert "cannot be told from its values: give --dates seen=dmy" in refused(
        "fit", "t.csv", *FIT, "--force", "--dates", "seen"
    )
    assert "the order is one of iso, dmy, mdy" in refused(
        "fit", "t.csv", *FIT, "--force", "--dates", "seen=ydm"
    )
    assert "no column 'sen'" in refused("fit", "t.csv", *FIT, "--force", "--dates", "sen=dmy")
    write_text(table.assign(seen=["31/01/2021", "01/31/2021"] * 30), "both.csv")
    assert "holds '01/31/2021', which is not a date as day/month/year" in refused(
        "fit", "both.csv", *FIT, "--force", "--dates", "seen=dmy"
    )
    assert kinds(fit("both.csv")[1])["seen"] == "category"


WRITTEN = {
    "$": lambda x: f"${x:,.2f}",
    "euro": lambda x: f"{x:,.2f} €".translate(str.maketrans(",.", ".,")),
    "percent": lambda x: f"{x:.2f} %",
    "swiss": lambda x: f"{x:,.2f}".replace(",", "'"),
    "space": lambda x: f"{x:,.2f}".replace(",", "\u202f").replace(".", ","),
    "negative": lambda x: f"{-x:,.2f}",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_numbers_are_numbers_and_so_are_later_ones(table, name):
    cost = np.linspace(1, 98765.25, 60).round(2)
    sign = -1 if name == "negative" else 1
    write_text(table.assign(cost=sign * cost), "plain.csv")
    write_text(table.assign(cost=[WRITTEN[name](x) for x in cost]), "t.csv")
    fit("plain.csv")
    expected = call("predict", "m.cqrf", "plain.csv").stdout
    said, forest = fit("t.csv")
    assert kinds(forest)["cost"] == "number"
    assert call("predict", "m.cqrf", "t.csv").stdout == expected
    assert "Note    read as numbers: cost" in said or name == "percent"
    # 1.500 or 1,500: the model knows which.
    write_text(table.assign(cost=WRITTEN[name](1500)).head(2), "few.csv")
    write_text(table.assign(cost=sign * 1500).head(2), "few_plain.csv")
    answer = call("predict", "m.cqrf", "few.csv").stdout
    fit("plain.csv")
    assert call("predict", "m.cqrf", "few_plain.csv").stdout == answer


def test_the_user_decides_whether_a_comma_stands_for_thousands(table):
    write_text(table.assign(cost=[f"{1 + i % 7},{100 + i}" for i in range(60)]), "t.csv")
    said, forest = fit("t.csv")
    assert (
        "cost stays text, but looks like numbers with thousands or decimals: --decimal . or ,"
        in said
    )
    assert kinds(forest)["cost"] == "category"
    edges = [fit("t.csv", "--decimal", sign)[1].model_.edges[-1] for sign in ".,"]
    np.testing.assert_allclose(edges[0], 1000 * edges[1])
    assert "--decimal ;" in refused("fit", "t.csv", *FIT, "--force", "--decimal", ";")


def test_written_times_are_times_in_every_command(table):
    table["days"] = (100 * table["days"]).round()
    write_text(table, "plain.csv")
    write_text(table.assign(days=[f"{x:,.2f}" for x in table["days"]]), "t.csv")
    asked = [["predict", "m.cqrf", "--given", "days"], ["evaluate", "m.cqrf"]]
    fit("plain.csv")
    expected = [call(*each, "plain.csv").stdout for each in asked]
    fit("t.csv")
    assert [call(*each, "t.csv").stdout for each in asked] == [
        each.replace("plain.csv", "t.csv") for each in expected
    ]


def test_labels_stay_labels(table):
    table["code"] = [f"{i // 10}-{i % 10}" for i in range(60)]
    table["mixed"] = np.where(np.arange(60) % 2, "5 %", "0.5")
    table["money"] = np.where(np.arange(60) % 2, "5 €", "$5")
    table["version"] = [f"1.{i}.0" for i in range(60)]
    write_text(table, "t.csv")
    said, forest = fit("t.csv")
    assert set(kinds(forest).values()) == {"number", "category"}
    assert [name for name, kind in kinds(forest).items() if kind == "number"] == ["age"]
    assert "read as" not in said


def test_texts_that_look_like_dates_but_are_not_read_are_named(table):
    write_text(table.assign(seen=[f"{day:%d/%m/%y}" for day in DAYS]), "t.csv")
    said, _ = fit("t.csv")
    assert said.count("seen stays text, but looks like dates: write them as in 2024-12-31\n") == 1
    write_text(table.assign(seen=[f"{day:%d %B %Y}" for day in DAYS]), "t.csv")
    assert "seen stays text, but looks like dates" in fit("t.csv")[0]
    long = pd.concat([table] * 6)
    many = [f"{datetime(2020, 1, 1) + timedelta(days=i):%d/%m/%y}" for i in range(len(long))]
    write_text(long.assign(seen=many), "many.csv")
    assert "column 'seen' looks like dates, but cannot be read" in refused(
        "fit", "many.csv", *FIT, "--force"
    )


def test_all_texts_with_too_many_values_are_named_with_the_way_out(table):
    long = pd.concat([table] * 5, ignore_index=True)
    long["who"], long["last name"] = [f"a{i}" for i in range(300)], [f"b{i}" for i in range(300)]
    write_text(long, "t.csv")
    said = refused("fit", "t.csv", *FIT)
    assert "more than 254 different values" in said
    assert (
        "'who' (300), 'last name' (300). Leave it out with --ignore who --ignore 'last name'"
        in said
    )
    fit("t.csv", "--ignore", "who", "--ignore", "last name")


# Durations


def as_durations(days):
    return pd.to_timedelta((days * 86400).round(), unit="s")


def predict_given_days(path):
    return pd.read_csv(StringIO(call("predict", "m.cqrf", path, "--given", "days").stdout))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_durations_are_times_in_days_and_features(table, kind):
    table["wait"] = np.linspace(-3, 40, 60).round(1)
    write_text(table, "plain.csv")
    _, forest = fit("plain.csv")
    assert forest.time_unit is None
    expected = predict_given_days("plain.csv")
    table["days"], table["wait"] = as_durations(table["days"]), as_durations(table["wait"])
    if kind == "csv":
        write_text(table, "t.csv")
        assert "days +" in Path("t.csv").read_text()  # of negative ones
    else:
        table.to_parquet("t.parquet")
    said, forest = fit(f"t.{kind}")
    assert "Note    days holds durations, which are read in days" in said
    assert ("read as durations: days, wait" in said) == (kind == "csv")
    assert forest.time_unit == "days"
    assert kinds(forest)["wait"] == "duration"
    # the working model standardises waits: seconds here and days above round differently
    pd.testing.assert_frame_equal(predict_given_days(f"t.{kind}"), expected, rtol=1e-9, atol=0)
    assert fit(f"t.{kind}", "--unit", "Tage")[1].time_unit == "Tage"
    write_text(table.assign(wait="long"), "bad.csv")
    assert "column 'wait' must hold durations, written as in 3 days" in refused(
        "predict", "m.cqrf", "bad.csv"
    )


# Formats


def test_json_lines_keep_their_types(table):
    table["zip"] = [f"{1000 + i % 9}" for i in range(60)]
    table["seen"] = [f"{day:%Y-%m-%d}" for day in DAYS]
    table["new"] = np.arange(60) % 2 == 0
    table.to_parquet("t.parquet")
    table.loc[3, "age"] = None
    table.to_json("t.jsonl", orient="records", lines=True, force_ascii=False)
    said, forest = fit("t.jsonl")
    assert kinds(forest) == {
        "age": "number",
        "group": "category",
        "zip": "category",
        "seen": "date",
        "new": "number",
    }
    assert "Missing age 2%" in said
    done = call("predict", "m.cqrf", "t.jsonl", "--id", "zip", "--id", "age")
    assert done.stdout.splitlines()[1].startswith("1000,")
    table.to_parquet("t.parquet")
    assert (
        call("predict", "m.cqrf", "t.parquet").stdout == call("predict", "m.cqrf", "t.jsonl").stdout
    )


def test_pieces_of_json_lines_may_have_other_types(table, monkeypatch):
    from cqrf.cli import cells

    monkeypatch.setattr(cells, "PIECE_ROWS", 7)
    table["age"] = [float(x) if i < 20 else int(x) for i, x in enumerate(table["age"])]
    table["code"] = pd.Series([i % 3 if i < 30 else "x" for i in range(60)], dtype=object)
    table["id"] = pd.Series([i if i < 30 else f"p{i}" for i in range(60)], dtype=object)
    table.to_json("t.ndjson", orient="records", lines=True)
    _, forest = fit("t.ndjson", "--ignore", "id")
    assert forest.model_.columns.levels[-1] == ("0", "1", "2", "x")
    ids = call("predict", "m.cqrf", "t.ndjson", "--id", "id").stdout.splitlines()
    assert [line.split(",")[0] for line in (ids[1], ids[-1])] == ["0", "p59"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 must be an object"),
        ('{"age": [1, 2]}', "'age' in line 2 holds several values"),
    ],
)
def test_json_that_is_no_row_is_named_by_its_line(table, line, message):
    Path("t.jsonl").write_text('{"age": 1}\n' + line + "\n")
    assert message in refused("fit", "t.jsonl", *FIT)


def test_excel_workbooks_are_read(table):
    openpyxl = pytest.importorskip("openpyxl")
    table["seen"] = DAYS
    table["cost"] = [f"${x}.50" for x in range(60)]
    table.loc[5, "group"] = "NA"
    write_text(table, "t.csv")
    fit("t.csv")
    expected = call("predict", "m.cqrf", "t.csv").stdout
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(list(table.columns))
    for row in table.itertuples(index=False):
        sheet.append([x.to_pydatetime() if isinstance(x, pd.Timestamp) else x for x in row])
    sheet.append([None] * 6)
    sheet.cell(row=80, column=9).value = None
    book.create_sheet("Notes")
    book.save("t.xlsx")
    said, forest = fit("t.xlsx")
    assert "t.xlsx has 2 sheets; 'Sheet' is read" in said
    assert kinds(forest)["seen"] == "date"
    assert call("predict", "m.cqrf", "t.xlsx").stdout == expected
    Path("fake.xlsx").write_text("no such thing")
    assert "cannot be read as an Excel workbook" in refused("fit", "fake.xlsx", *FIT, "--force")


def test_without_openpyxl_the_extra_is_named(table, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    Path("t.xlsx").write_bytes(b"")
    assert refused("fit", "t.xlsx", *FIT) == "this needs openpyxl: pip install 'cqrf[excel]'"
