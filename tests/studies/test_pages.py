"""Pages: who is best, who ties, what failed, with the paper's number beside ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import study_cells
from equipoise.cli import main
from equipoise.report import Headline, Section, Text
from equipoise.studies import Spec, Store, run_study
from equipoise.studies.pages import _first_screen, study_report, write_index, write_pages
from equipoise.studies.scores import format_score, read_layout, score


def frame_of(values: dict[str, list[float]], repeat: str = "seed", datasets=("one",)) -> pd.DataFrame:
    rows = [
        {"method": method, "dataset": dataset, repeat: i, "auc": value, "cell_seconds": 1.0}
        for dataset in datasets
        for method, column in values.items()
        for i, value in enumerate(column)
    ]
    return pd.DataFrame(rows)


def scores_of(frame: pd.DataFrame, repeat: str = "seed"):
    return score(frame, read_layout(frame, ["method", "dataset", repeat]), "auc")


@pytest.mark.parametrize("repeat", ["seed", "fold"])
def test_the_best_is_marked_and_a_close_second_ties(repeat):
    base = np.random.default_rng(0).normal(0.8, 0.02, size=10)
    values = {"good": base + 0.001, "same": base + 0.01 * (-1) ** np.arange(10), "poor": base - 0.2}
    found = scores_of(frame_of(values, repeat), repeat)
    marks = {method: format_score(found, "one", method)[-1] for method in values}
    assert (marks["good"], marks["same"]) == ("★", "≈")
    assert marks["poor"].isdigit()
    np.testing.assert_allclose(found.mean.loc["one", "poor"], values["poor"].mean())
    np.testing.assert_allclose(found.spread.loc["one", "poor"], values["poor"].std(ddof=1))


def test_folds_share_training_data_so_their_test_is_the_more_careful():
    gap = np.array([0.02, 0.03, 0.00, 0.01, 0.015, 0.005, 0.02, 0.01, 0.00, 0.004])
    values = {"first": 0.8 + gap, "second": np.full(10, 0.8 + 0.45 * gap.mean())}
    assert format_score(scores_of(frame_of(values)), "one", "second")[-1] != "≈"
    assert format_score(scores_of(frame_of(values, "fold"), "fold"), "one", "second")[-1] == "≈"


def test_one_repeat_tells_no_ties_and_shows_no_spread():
    found = scores_of(frame_of({"a": [0.9], "b": [0.89]}))
    assert format_score(found, "one", "a") == "0.900 ★"
    assert format_score(found, "one", "b") == "0.890"


def test_small_is_better_for_losses():
    frame = frame_of({"a": [0.9, 0.8], "b": [0.1, 0.2]}).rename(columns={"auc": "log_loss"})
    found = score(frame, read_layout(frame, ["method", "dataset", "seed"]), "log_loss")
    assert found.best.loc["one"].tolist() == [False, True]


def test_nobody_is_best_where_the_name_does_not_tell_what_is_better():
    frame = frame_of({"a": [0.9, 0.8], "b": [0.1, 0.2]}).rename(columns={"auc": "overlap"})
    found = score(frame, read_layout(frame, ["method", "dataset", "seed"]), "overlap")
    assert not found.best.to_numpy().any()
    assert not found.tied.to_numpy().any()
    assert format_score(found, "one", "a") == "0.850 ± 0.071"


def test_layout_without_methods_takes_the_first_axis_that_varies():
    frame = pd.DataFrame(
        {
            "ratio": [1, 1, 10, 10],
            "epochs": [5, 5, 5, 5],
            "seed": [0, 1, 0, 1],
            "auc": [0.1, 0.2, 0.3, 0.4],
            "fit_seconds": [1.0, 2.0, 3.0, 4.0],
            "loss_curve": [[1.0, 0.5]] * 4,
        }
    )
    layout = read_layout(frame, ["ratio", "epochs", "seed"])
    assert layout.method.tolist() == ["ratio 1", "ratio 1", "ratio 10", "ratio 10"]
    assert layout.metrics == ("auc",)
    assert layout.curves == ("loss_curve",)
    assert layout.folds == 0


def study(**more):
    grid = {"method": ["a", "b", "c"], "dataset": ["x", "y", "<z>"], "seed": [0, 1, 2]}
    return Spec(name="paged", title="Paged <study>", run_cell=study_cells.judged, grid=grid, **more)


def test_a_page_has_tables_ranks_curves_and_failures(tmp_path):
    spec = study(metrics=["auc"])
    path = tmp_path / "s.sqlite"
    run_study(spec, path, jobs=1)
    assert main(["bench", "report", str(path), "--out", str(tmp_path / "out")]) == 0
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["paged-auc-ranks.svg", "paged-curve.svg", "paged-time.svg", "paged.html", "paged.md"]
    text = (tmp_path / "out" / "paged.md").read_text()
    assert "★" in text
    assert "Friedman" in text
    assert "cell b on y fails" in text
    assert "UserWarning: cell a warns" in text
    page = (tmp_path / "out" / "paged.html").read_text()
    assert "Paged &lt;study&gt;" in page
    assert "<z>" not in page
    assert "Traceback" in page


def test_the_papers_number_stands_beside_ours(tmp_path):
    spec = study(metrics=["auc"], reference="001 Table 1", differs="Smaller.")
    spec = replace(spec, paper={"auc": {"x": {"a": 0.99, "gone": 0.5}}})
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        text = study_report(store, store.studies()[0], spec).to_markdown()
    assert "What differs from the paper.** Smaller." in text
    assert "| x | a | 0.99 | 0.9" in text
    assert "| x | gone | 0.5 | not run |" in text


def test_a_study_may_bring_its_own_sections(tmp_path):
    from equipoise.report import Section, Text

    spec = study(page=lambda frame, spec: [Section("Mine", [Text(f"{len(frame)} cells of {spec.name}")])])
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        assert "24 cells of paged" in study_report(store, store.studies()[0], spec).to_markdown()


def test_an_unfinished_study_has_a_page_that_says_so(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.register(study(), study().cells())
    write_pages(tmp_path / "s.sqlite", tmp_path)
    assert "27 cells are not finished" in (tmp_path / "paged.md").read_text()


def test_a_part_of_a_study_says_that_it_is_one(tmp_path):
    run_study(study(), tmp_path / "s.sqlite", jobs=1, only={"dataset": ["x"]})
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        text = study_report(store, store.studies()[0], study()).to_markdown()
    assert "Only 9 of the 27 cells" in text
    assert "equipoise bench run paged --only dataset=x --store s.sqlite" in text


def test_the_command_on_a_page_can_be_pasted(tmp_path):
    import shlex

    from equipoise.cli.bench import _selection

    spec = Spec(
        "paged", "Paged", study_cells.judged, {"method": ["a, b = 1", 'c "d"', "e f", "g"], "seed": [0]}
    )
    with Store(tmp_path / "s.sqlite") as store:
        store.register(spec, spec.cells()[:3], "small")
        text = study_report(store, store.studies()[0], spec).to_markdown()
    command = next(line for line in text.splitlines() if line.startswith("equipoise bench run"))
    words = shlex.split(command)
    assert _selection([words[words.index("--only") + 1]]) == {"method": ["a, b = 1", 'c "d"', "e f"]}


def test_results_come_first_with_what_to_know_before_them(tmp_path):
    spec = study(metrics=["auc"], differs="Smaller.", reference="Table 1")
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        text = study_report(store, store.studies()[0], spec).to_markdown()
    places = [
        text.index(part)
        for part in ("## auc", "Smaller.", "| a |", "## How it was run", "equipoise bench run")
    ]
    assert places == sorted(places)


@pytest.mark.slow
def test_many_data_sets_are_folded_under_their_summary(tmp_path):
    spec = study(metrics=["auc"])
    spec = replace(spec, grid={**spec.grid, "dataset": [f"set {i}" for i in range(16)]})
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        text = study_report(store, store.studies()[0]).to_markdown()
    assert text.index("Friedman") < text.index("All 16 rows") < text.index("set 15")


def test_no_store_or_an_empty_one(tmp_path, capsys):
    assert main(["bench", "report", str(tmp_path / "none.sqlite"), "--out", str(tmp_path / "out")]) == 2
    assert "there is no store at" in capsys.readouterr().err
    Store(tmp_path / "empty.sqlite").close()
    assert main(["bench", "report", str(tmp_path / "empty.sqlite"), "--out", str(tmp_path / "out")]) == 2
    assert "holds no study" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def headline(values, datasets=("one",)):
    frame = frame_of(values, datasets=datasets)
    records = [{"status": "done"}] * len(frame)
    return _first_screen("Who is best?", "Them (2020)", scores_of(frame), records)


def test_the_first_screen_says_who_is_best_and_who_ties():
    base = np.random.default_rng(0).normal(0.8, 0.02, size=10)
    values = {"good": base + 0.001, "same": base + 0.01 * (-1) ** np.arange(10), "poor": base - 0.2}
    block = headline(values)
    assert block.claim == "“good” has the best mean auc; 1 of the 2 others can be told from it."
    assert [label for label, _ in block.parts] == ["What was asked", "What came out", "How sure"]
    assert "Them (2020)" in block.parts[0][1]
    assert block.parts[2][1].startswith("30 cells, 10 repeats of each.")
    poor = headline({"good": base, "poor": base - 0.2}, datasets=[f"set {i}" for i in range(8)])
    assert (
        poor.claim == "“good” has the best mean rank in auc over 8 settings; the other can be told from it."
    )


def test_a_study_without_a_best_method_says_what_came_out_in_its_own_words(tmp_path):
    def page(results, spec):
        return [Section("Own", [Headline("The gap closes in 3 of 4 cells."), Text("More.")])]

    spec = study(metrics=[], page=page)
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        first, *others = study_report(store, store.studies()[0], spec).sections[0].blocks
    assert first.claim == "The gap closes in 3 of 4 cells."
    assert [label for label, _ in first.parts] == ["What was asked", "What came out", "How sure"]
    assert not any(isinstance(block, Headline) for block in others)


def test_one_run_claims_no_more_than_it_tells():
    assert headline({"a": [0.9], "b": [0.8]}).claim == "“a” has the best mean auc."


def test_seeds_that_are_still_to_be_run_do_not_count():
    records = [
        {"status": status, "settings": {"seed": seed}}
        for seed, status in enumerate(["done"] * 2 + ["pending"])
    ]
    assert _first_screen("Title", "", None, records).parts[-1] == ("How sure", "2 cells with 2 seeds in all.")


def test_the_index_leads_to_every_page_there_is(tmp_path):
    specs = [Spec(name, f"About {name}", study_cells.draw, {"index": [1]}) for name in ("one", "two")]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "one.html").write_text("page")
    page = write_index(specs, tmp_path).read_text()
    assert 'href="one/one.html"' in page
    assert "About two" not in page
