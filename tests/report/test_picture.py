"""Still pictures: inside the page, beside the Markdown."""

from __future__ import annotations

import base64

import pytest

from equipoise.report import Details, Picture, Report, Section


def drawn():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [0, 1])
    return figure


def test_a_picture_is_in_the_page_and_beside_the_markdown(tmp_path):
    picture = Picture.from_matplotlib(drawn(), "study-line", caption="A <line>", alt="rising")
    report = Report("Study", [Section("One", [Details("more", [picture])])])
    paths = report.write(tmp_path, "study", kinds=("html", "md"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study-line.svg", "study.html", "study.md"]
    page = paths["html"].read_text()
    assert base64.b64encode(picture.svg.encode()).decode() in page
    assert 'alt="rising"' in page
    assert "<line>" not in page
    assert "![rising](study-line.svg)" in paths["md"].read_text()
    assert (tmp_path / "study-line.svg").read_text() == picture.svg
    assert '"picture"' in report.to_json()
    assert picture.svg[:40] not in report.to_json()


def test_the_same_figure_gives_the_same_text():
    assert Picture.from_matplotlib(drawn(), "x").svg == Picture.from_matplotlib(drawn(), "x").svg


@pytest.mark.parametrize("name", ["../x", "a b", "", "a/b"])
def test_a_name_that_is_no_file_name(name):
    with pytest.raises(ValueError, match="name must be letters"):
        Picture("<svg/>", name)
