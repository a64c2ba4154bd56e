"""Files of text, as spreadsheets and databases export them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpbandits.errors import ArgumentError
from dpbandits.tables import read_numbers, read_text_table

DIALECTS = [
    {"separator": ",", "decimal": ".", "thousands": ""},
    {"separator": ";", "decimal": ",", "thousands": "."},
    {"separator": "\t", "decimal": ".", "thousands": ","},
    {"separator": ",", "decimal": ",", "thousands": " "},
    {"separator": "|", "decimal": ".", "thousands": "'"},
]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16"]


def written(path: Path, content: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(content.encode(encoding))
    return path


def as_text(value: float, decimal: str, thousands: str) -> str:
    text = f"{value:,.3f}"
    swapped = {",": thousands, ".": decimal}
    return "".join(swapped.get(sign, sign) for sign in text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(-1e9, 1e9), st.text(st.characters(codec="utf-8"), max_size=8)),
        min_size=1,
        max_size=6,
    ),
    dialect=st.sampled_from(DIALECTS),
    encoding=st.sampled_from(ENCODINGS),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_in_any_dialect_is_read_again(tmp_path, rows, dialect, encoding, ending):
    rows = [(round(number, 3), text.replace("\r", "").replace("\0", "")) for number, text in rows]
    path = tmp_path / "table.csv"
    marks = dialect["decimal"], dialect["thousands"]
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=dialect["separator"], lineterminator=ending)
        writer.writerow(["number", "text"])
        writer.writerows([as_text(number, *marks), f"t{text}"] for number, text in rows)
    found = read_text_table("TABLE", path, **dialect)
    assert found.entries("number").values.tolist() == [number for number, _ in rows]
    assert found.texts("text") == [f"t{text}".strip() for _, text in rows]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n.1,1,\n.2,0,\n", "line 2 of .* has 3"),
        ("a,y\n1,2\n3\n4,5\n", "line 3 of .* has 1"),
        ('a,y\n1,"2\n3"\n4,5,6\n', "line 4 of .* has 3"),
        ("a;y\n1;2,5\n", r"line 2 of .* has 2; is ';' the separator\?"),
        ("a,a\n1,2\n", "two columns called 'a'"),
        ("", "got an empty file"),
        ("\n\n", "got an empty file"),
        ("a,y\n", "rows below its header"),
        ('a,y\n1,"2\n', "broken quotation.* line 2"),
        ("a,y\n1," + 140_000 * "x", "a cell of more than 131,072 characters.* line 2"),
        (",\n1,2\n", "a header that names columns"),
    ],
)
def test_a_malformed_table_is_refused_by_line(tmp_path, content, words):
    with pytest.raises(ArgumentError, match=f"^TABLE must .*{words}"):
        read_text_table("TABLE", written(tmp_path / "table.csv", content))


def test_bytes_of_another_encoding_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,y\n1,2\n".encode("cp1252"))
    with pytest.raises(ArgumentError, match=r"in UTF-8, got .*export a spreadsheet as 'CSV UTF-8'"):
        read_text_table("TABLE", path)
    path.write_bytes(b"a,y\n1,\x00\n")
    with pytest.raises(ArgumentError, match="got a NUL character on line 2 of"):
        read_text_table("TABLE", path)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1e5", 1e5), ("+.5", 0.5), ("5.", 5.0), ("-1.5E-3", -0.0015), ("TRUE", 1.0), ("false", 0.0),
        ("", None), ("NA", None), ("#N/A", None), ("NULL", None), ("\\N", None), ("nan", None),
        ("1_000", "text"), ("0x10", "text"), ("5 %", "text"), ("$5", "text"), ("\uff11\uff12", "text"),
        ("Infinity", "text"), ("1,000", "text"), ("2020-01-01", "text"), ("1 2", "text"),
        ("--1", "text"), ("yes", "text"),
    ],
)  # fmt: skip
def test_a_cell_is_a_number_nothing_or_text(tmp_path, cell, value):
    path = written(tmp_path / "table.csv", f'x,y\n"{cell}",1\n')
    found = read_text_table("TABLE", path).entries("x")
    assert found.wrong[0] == (value == "text")
    assert found.missing[0] == (value is None)
    if isinstance(value, float):
        assert found.values[0] == value


@pytest.mark.parametrize("cell", ["12,34", "1,2345", "1234,567", ",123", "1,,234"])
def test_thousands_marks_stand_between_groups_of_three(tmp_path, cell):
    path = written(tmp_path / "table.csv", f"x\ty\n{cell}\t1\n8,981\t1\n")
    found = read_text_table("TABLE", path, separator="tab", thousands=",").entries("x")
    assert found.wrong.tolist() == [True, False]
    assert found.values[1] == 8981.0


@pytest.mark.parametrize(
    "first",
    [
        *("7919,male,1", "male,79.19,1", "a,7919e-3,b", "a,+.7919,b", "a,TRUE,b", "7919,,"),
        *('a,"7,919",b', "a,79.19 %,b", "a,2019-07-19,b", "a,$7919,b"),
    ],
)
def test_a_first_line_that_may_be_a_record_is_refused_and_not_quoted(tmp_path, first):
    path = written(tmp_path / "table.csv", f"{first}\n1,2,3\n")
    with pytest.raises(ArgumentError, match="got a number in the first line") as caught:
        read_text_table("TABLE", path)
    assert "--no-header" in str(caught.value)
    assert not re.search("79|male|TRUE", str(caught.value).replace(str(path), ""))
    assert read_text_table("TABLE", path, header=False).names == ("0", "1", "2")


def test_names_may_hold_digits_and_be_numbers_where_that_is_said(tmp_path):
    path = written(tmp_path / "table.csv", "x1,2nd dose,NA\n1,2,3\n")
    assert read_text_table("TABLE", path).names == ("x1", "2nd dose", "NA")
    path = written(tmp_path / "table.csv", "2019,2020,y\n1,2,3\n")
    assert read_text_table("TABLE", path, header=True).names == ("2019", "2020", "y")


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "Sep=; "])
def test_the_separator_may_stand_in_the_first_line(tmp_path, first):
    path = written(tmp_path / "table.csv", f"{first}\na;y\n1;2\n")
    assert read_text_table("TABLE", path).names == ("a", "y")


def test_what_spreadsheets_add_is_understood(tmp_path):
    content = "\ufeffsep=;\r\n a ; y ;\r\n1,5;NULL;\r\n\r\n2,5;1;\r\n"
    path = written(tmp_path / "table.csv", content)
    found = read_text_table("TABLE", path, decimal=",")
    assert found.names == ("a", "y")
    assert found.nameless == 1
    assert found.entries("a").values.tolist() == [1.5, 2.5]
    assert found.lines == [3, 5]


def test_a_table_of_public_numbers_has_a_header_or_not(tmp_path):
    path = written(tmp_path / "table.csv", "\ufeff1,2\n3,4\n")
    assert read_numbers("--features", path).tolist() == [[1, 2], [3, 4]]
    named = written(tmp_path / "named.csv", "a,b\n3,4\n")
    assert read_numbers("--features", named).tolist() == [[3, 4]]
    for content, line in (("1,2\n3,x7919\n", 2), ("1,2\n3,\n", 2), ("1,x7919\n3,4\n", 1)):
        words = rf"^--features must hold .* line {line} of .*'1'"
        with pytest.raises(ArgumentError, match=words) as got:
            read_numbers("--features", written(tmp_path / "bad.csv", content))
        assert "7919" not in str(got.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("NA,NA\n1,2\n", "nothing on line 1"),
        (",\n1,2\n", "nothing on line 1"),
        ("x\n1\n\n3\n", "nothing on line 3"),
        ('x\n""\n3\n', "nothing on line 2"),
        ('""\n1\n3\n', "nothing on line 1"),
        ("1,2\n1e400,3\n", "an infinite number on line 2"),
    ],
)
def test_no_row_of_a_public_table_is_dropped(tmp_path, content, words):
    with pytest.raises(ArgumentError, match=f"^--features must hold numbers, got {words}"):
        read_numbers("--features", written(tmp_path / "table.csv", content))


def test_empty_lines_around_and_between_rows_of_cells_are_none(tmp_path):
    for content in ("\n1,2\n\n  \n3,4\n\n", "\n\nx\n1\n3\n\n\n"):
        assert len(read_numbers("--features", written(tmp_path / "table.csv", content))) == 2


def test_of_a_column_without_a_name_python_warns(tmp_path):
    path = written(tmp_path / "table.csv", ",a\n0,3\n")
    with pytest.warns(UserWarning, match="--features: 1 column without a name was left out"):
        assert read_numbers("--features", path).tolist() == [[3]]


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ({"separator": ";;"}, "separator must be one character"),
        ({"decimal": "x"}, "decimal must be"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"thousands": "."}, "thousands must differ from decimal"),
    ],
)
def test_marks_are_checked(tmp_path, marks, words):
    path = written(tmp_path / "table.csv", "a,b\n1,2\n")
    with pytest.raises(ArgumentError, match=words):
        read_text_table("TABLE", path, **marks)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"readable file, got .*nobody.csv: No such file"):
        read_text_table("TABLE", tmp_path / "nobody.csv")
