"""Blocks rendered three ways; nothing of a user's text becomes markup."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.report import (
    Code,
    Details,
    Facts,
    Figure,
    Interval,
    Note,
    Report,
    Row,
    Section,
    Table,
    Text,
    new_figure,
    plain,
    scatter,
)
from equipoise.report.as_json import to_plain

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def everything(text: str) -> Report:
    figure = {"data": [{"x": [1], "y": [2], "name": plain(text)}], "layout": {"title": {"text": plain(text)}}}
    blocks = [
        Text(text), Note(text, "warning", text), Facts([(text, text, text)]), Code(text),
        Table([text, "value"], [[text, Interval(0.5, 0.4, 0.6)]], caption=text, emphasis=[0]),
        Row([Text(text), Figure(figure, caption=text, alt=text)]), Details(text, [Text(text)]),
    ]  # fmt: skip
    return Report(text, [Section(text, blocks), Section("Second", [Text(text)])], subtitle=text, footer=text)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.tags: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_user_text_never_becomes_markup():
    page = everything(EVIL).to_html()
    parser = Tags()
    parser.feed(page)
    assert parser.scripts == 3  # figures, plotly, page
    assert "img" not in parser.tags
    assert parser.handlers == []
    assert "&lt;script&gt;" in page


def test_no_text_commands_a_terminal_that_shows_the_page():
    report = everything("a\x1b[2J\x1b]0;title\x07\x9b31m\u202eb")
    page, text = report.to_html().split("<script")[0], report.to_markdown()
    assert "a31mb" in page
    assert "a31mb" in text
    for shown in (page, text, report.to_json()):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)


def test_the_policy_admits_only_the_pages_own_scripts():
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', everything("x").to_html())
    policy = html.unescape(found.group(1))
    assert "default-src 'none'" in policy
    script = re.search(r"script-src ([^;]*)", policy).group(1)
    assert "unsafe" not in script
    assert script.count("sha256-") == 2


def test_the_page_is_self_contained():
    page = everything("x").to_html()
    head = page.split('<script type="application/json"')[0]
    assert not re.search(r'(src|href)="(?!data:|#)', head)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=60))
def test_any_text_survives_the_way_to_json(text):
    blocks = [Text(text), Table([text], [[text]])]
    content = json.loads(Report(text, [Section(text, blocks)]).to_json())
    assert content["title"] == text
    assert content["sections"][0]["blocks"][0]["text"] == text


def test_markdown_escapes_and_shows_numbers():
    table = Table(["a|b", "score"], [["x", Interval(0.51234, 0.4, 0.6)]], formats={"score": ".2f"})
    text = Report("R", [Section("S", [table, Note("n", "warning")])]).to_markdown()
    assert "a\\|b" in text
    assert "0.51 (0.40 to 0.60)" in text
    assert "<script" not in everything(EVIL).to_markdown().replace("```\n" + EVIL, "").replace(
        "\\<script", ""
    )


def test_json_is_strict_and_knows_numpy():
    values = to_plain({"a": np.array([1.0, np.nan]), "b": np.int64(3), 4: Interval(1, 0, np.inf)})
    assert values == {"a": [1.0, None], "b": 3, "4": {"value": 1, "low": 0, "high": None}}


def test_a_table_from_a_frame():
    table = Table.from_frame(pd.DataFrame({"n": [1, 2], "s": ["a", "b"]}))
    assert table.columns == ["n", "s"]
    assert table.rows == [[1, "a"], [2, "b"]]


def test_bad_blocks_are_named():
    with pytest.raises(ValueError, match="rows must have 2 cells, got 1"):
        Table(["a", "b"], [[1]])
    with pytest.raises(ValueError, match="level must be one of"):
        Note("x", "loud")


def test_write_is_whole(tmp_path):
    paths = everything("x").write(tmp_path / "deep" / "out")
    assert sorted(p.name for p in paths.values()) == ["report.html", "report.json", "report.md"]
    assert sorted(p.name for p in (tmp_path / "deep" / "out").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]


def test_a_plotly_figure_becomes_plain_values():
    figure = Figure(new_figure(scatter(x=np.arange(2), y=[0.5, 1.0]), x="a", y="b"))
    payload = figure.payload()
    assert payload["layout"]["xaxis"]["title"]["text"] == "a"
    json.dumps(payload)


def test_no_plotly_where_there_is_no_figure():
    assert len(Report("R", [Section("S", [Text("t")])]).to_html()) < 50_000
