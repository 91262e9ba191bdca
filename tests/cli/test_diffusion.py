"""``equipoise diffusion``: train, kill, resume, monitor, report, and what is refused."""

from __future__ import annotations

import functools
import json
import shutil

import numpy as np
import pytest

from equipoise.cli import main

EVIL = "<script>alert(1)</script>"
QUICK = ["--preset", "tiny", "--batch-size", "20", "--steps", "30", "--looks-per-decade", "3", "--samples", "16",
         "--reverse-steps", "4"]  # fmt: skip


def write_images(path, names=("busy", EVIL), n=20, size=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(names, n)
    spread = np.where(y == names[0], 1.0, 0.3)[:, None, None]
    np.savez(path, X=rng.normal(size=(len(y), size, size)) * spread, y=y)
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def quick_theory():
    """The theory's bootstrap is tested in its own room, and takes seconds."""
    from equipoise.generative import run_summary

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_summary, "predict", functools.partial(_predict_quickly, run_summary.predict))
        yield


def _predict_quickly(predict, *args, **options):
    return predict(*args, **{**options, "n_bootstrap": 0, "dimension": 16})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One finished run for all that only reads."""
    base = tmp_path_factory.mktemp("diffusion")
    data = write_images(base / "images.npz")
    assert main(["diffusion", "train", data, "--out", str(base / "run"), *QUICK]) == 0
    return base, data


@pytest.fixture
def run(made, tmp_path):
    """A copy to harm."""
    shutil.copytree(made[0] / "run", tmp_path / "run")
    return tmp_path / "run"


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(capsys, folder, *command, match):
    """Exit code 2, one sentence, nothing changed."""
    before = contents(folder)
    capsys.readouterr()
    assert main(["diffusion", *map(str, command)]) == 2
    error = capsys.readouterr().err
    assert match in error
    assert "Traceback" not in error
    assert contents(folder) == before


def test_a_run_says_what_it_found_and_leaves_checkpoints_that_load(made, capsys):
    base, data = made
    out = base / "again"
    assert main(["diffusion", "train", data, "--out", str(out), *QUICK]) == 0
    said = capsys.readouterr().out
    assert "40 images of 8×8" in said
    assert "step 30 of 30: copies" in said
    assert "memorized" in said
    assert "Every class generalizes from" in said or "is still falling at the end" in said
    assert f"Report:     {out / 'report.html'}" in said
    for name in ("images.npz", "looks/step-0000030.npz", "checkpoints/step-0000030/tensors.safetensors"):
        assert contents(out).keys() >= {type(out)(name)}
        same = (out / name).read_bytes() == (base / "run" / name).read_bytes()
        assert same, f"the same seed gives the same {name}"
    from equipoise.generative import DDPM

    model = DDPM.load(out / "checkpoints" / "step-0000022")
    assert model.sample(2, stride=4).shape == (2, 8, 8)
    assert model.classes_.tolist() == sorted(["busy", EVIL])


def test_a_killed_run_goes_on_to_the_same_bits(made, monkeypatch, capsys):
    base, data = made
    out = base / "killed"
    from equipoise.cli import diffusion

    told = []

    def kill(line):
        told.append(line)
        if len(told) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(diffusion, "_tell", kill)
        assert main(["diffusion", "train", data, "--out", str(out), *QUICK]) == 130
    assert f"Go on: equipoise diffusion train --resume --out {out}" in capsys.readouterr().err
    assert not (out / "checkpoints" / "step-0000030").exists()
    assert main(["diffusion", "train", "--resume", "--out", str(out)]) == 0
    whole = contents(base / "run")
    for path, data_was in contents(out).items():
        if path.parts[0] in ("checkpoints", "looks"):
            assert data_was == whole[path], path


def test_resume_can_make_a_run_longer(run, capsys):
    assert main(["diffusion", "train", "--resume", "--out", str(run), "--steps", "40"]) == 0
    assert (run / "checkpoints" / "step-0000040").is_dir()
    assert json.loads((run / "run.json").read_text())["settings"]["steps"] == 40
    refused(
        capsys,
        run,
        "train",
        "--resume",
        "--out",
        run,
        "--steps",
        "20",
        match="steps must be at least the 40",
    )


def test_a_folder_that_holds_something_is_not_overwritten(made, run, tmp_path, capsys):
    _, data = made
    refused(capsys, run, "train", data, "--out", run, *QUICK, match="already holds a run")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    refused(capsys, tmp_path, "train", data, "--out", tmp_path / "notes", *QUICK, match="not an empty folder")


def test_other_data_and_other_networks_are_refused(made, run, tmp_path, capsys):
    _, data = made
    other = write_images(tmp_path / "other.npz", seed=1)
    sizes = write_images(tmp_path / "sizes.npz", size=9)
    go_on = ["train", "--resume", "--out", run]
    refused(capsys, run, *go_on, other, match="as many, but with other pixels")
    refused(capsys, run, *go_on, sizes, match="the size was [1, 8, 8], now [1, 9, 9]")
    refused(capsys, run, *go_on, "--preset", "small", match="preset was 'tiny', is 'small'")
    refused(capsys, run, *go_on, data, "--lr", "0.5", match="lr was 0.001, is 0.5")
    refused(capsys, run, "monitor", run, other, match="other images than")


@pytest.mark.slow
def test_a_foreign_state_or_checkpoint_is_refused(run, tmp_path, capsys):
    other = write_images(tmp_path / "other.npz", seed=1)
    foreign = tmp_path / "foreign"
    assert main(["diffusion", "train", other, "--out", str(foreign), *QUICK, "--steps", "20"]) == 0
    shutil.rmtree(run / "state")
    shutil.copytree(foreign / "state", run / "state")
    refused(capsys, run, "train", "--resume", "--out", run, match="state holds another run: data was")

    from equipoise.generative import DDPM

    network = DDPM("tiny", steps=1, monitor=False, random_state=0).fit(
        np.random.default_rng(0).normal(size=(8, 6, 6))
    )
    shutil.rmtree(run / "checkpoints" / "step-0000030")
    network.save(run / "checkpoints" / "step-0000030")
    refused_after_looks(capsys, run, "is a checkpoint of another model")


def refused_after_looks(capsys, run, match):
    """``monitor`` reaches the bad checkpoint after the good ones, which it may look at again."""
    before = {k: v for k, v in contents(run).items() if k.parts[0] != "looks"}
    capsys.readouterr()
    assert main(["diffusion", "monitor", str(run), "--samples", "8"]) == 2
    assert match in capsys.readouterr().err
    assert {k: v for k, v in contents(run).items() if k.parts[0] != "looks"} == before


def test_cut_off_files_are_named(run, tmp_path, capsys):
    def cut(path):
        path.write_bytes(path.read_bytes()[:-30])

    cut(run / "looks" / "step-0000030.npz")
    refused(capsys, run, "report", run, match="step-0000030.npz is not a readable npz file (cut off")
    state = next((run / "state").glob("epoch-*")) / "tensors.safetensors"
    cut(state)
    refused(
        capsys,
        run,
        "train",
        "--resume",
        "--out",
        run,
        "--steps",
        "30",
        match=f"{state} is damaged: it was cut off",
    )
    (run / "looks" / "step-0000030.npz").unlink()
    cut(run / "checkpoints" / "step-0000030" / "tensors.safetensors")
    refused_after_looks(capsys, run, "step-0000030/tensors.safetensors is damaged: it was cut off")
    cut(run / "images.npz")
    refused(capsys, run, "report", run, match="images.npz is not a readable npz file (cut off")
    cut(run / "run.json")
    refused(capsys, run, "report", run, match="run.json is not readable JSON (cut off")


def absent_device():
    """No machine has both."""
    import torch

    return "mps" if torch.cuda.is_available() else "cuda"


def test_bad_images_leave_nothing_behind(tmp_path, capsys):
    from PIL import Image

    for name, side in (("a", 8), ("b", 9)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(8):
            Image.fromarray(np.full((side, side), number, dtype=np.uint8)).save(
                tmp_path / "images" / name / f"{number}.png"
            )
    out = tmp_path / "run"
    refused(
        capsys, tmp_path, "train", tmp_path / "images", "--out", out, *QUICK, match="b/0.png is 9×9; --size 8"
    )
    (tmp_path / "images" / "c").mkdir()
    refused(
        capsys, tmp_path, "train", tmp_path / "images", "--out", out, *QUICK, match="images/c has no images"
    )
    few = write_images(tmp_path / "few.npz", n=5)
    refused(capsys, tmp_path, "train", few, "--out", out, *QUICK, match="has 5 images; at least 8")
    refused(capsys, tmp_path, "train", few, "--out", out, "--classes", "busy,gone", match="class 'gone'")
    same = tmp_path / "same.npz"
    np.savez(same, X=np.repeat(np.eye(8)[None], 16, axis=0), y=np.repeat(["a", "b"], 8))
    refused(capsys, tmp_path, "train", same, "--out", out, *QUICK, match="class 'a' are all the same")
    refused(capsys, tmp_path, "train", "--out", out, match="name the images to train on")
    refused(capsys, tmp_path, "report", tmp_path, match="holds no diffusion run")
    good = write_images(tmp_path / "good.npz", size=6)
    for wrong, said in (
        (["--held-out", "1.5"], "held-out must lie in [0, 0.5], got 1.5"),
        (["--lr", "-1"], "lr must be positive"),
        (["--steps", "0"], "steps must be at least 1"),
        (["--samples", "1"], "samples must be at least 2"),
        (["--preset", "paper"], "must be at least 8 wide, got (6, 6)"),
        (["--device", absent_device()], "is not available here; 'auto' takes the best"),
    ):
        refused(capsys, tmp_path, "train", good, "--out", out, *QUICK, *wrong, match=said)
    assert not out.exists()


def test_a_guided_averaged_model_on_whatever_device_there_is(tmp_path, capsys):
    data, out = write_images(tmp_path / "images.npz"), tmp_path / "run"
    options = ["--label-dropout", "0.2", "--average", "0.9", "--device", "auto", "--precision", "32-true"]
    assert main(["diffusion", "train", data, "--out", str(out), *QUICK, *options]) == 2
    assert "add --conditional" in capsys.readouterr().err
    assert not out.exists()
    assert main(["diffusion", "train", data, "--out", str(out), *QUICK, *options, "--conditional"]) == 0
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert (settings["average"], settings["label_dropout"], settings["device"]) == (0.9, 0.2, "auto")
    assert main(["diffusion", "train", "--resume", "--out", str(out), "--device", "cpu"]) == 0
    assert main(["diffusion", "train", "--resume", "--out", str(out), "--average", "0.5"]) == 2
    assert "average was 0.9, is 0.5" in capsys.readouterr().err


def test_monitor_looks_again_and_only_once(run, capsys):
    (run / "images.npz").unlink()
    refused(capsys, run, "report", run, match="images.npz is missing")
    data = str(run.parent / "images.npz")
    write_images(data)
    assert main(["diffusion", "monitor", str(run), data, "--samples", "24", "--second", "class"]) == 0
    assert "step 30 of 30: copies" in capsys.readouterr().out
    with np.load(run / "looks" / "step-0000030.npz") as look:
        assert look["table_n"].sum() == 24
        assert json.loads(str(look["how"]))["second"] == "class"
    assert main(["diffusion", "monitor", str(run), "--samples", "24", "--second", "class"]) == 0
    assert "step 30 of 30" not in capsys.readouterr().out


def test_the_page_shows_samples_times_and_theory_and_escapes(made):
    page = (made[0] / "run" / "report.html").read_text(encoding="utf-8")
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "data:image/svg+xml;base64," in page
    for word in ("Verdict", "Samples", "Theory", "generalizes from", "predicted place", "measured place"):
        assert word in page


def test_several_runs_share_a_page(made, tmp_path, capsys):
    run = str(made[0] / "run")
    out = tmp_path / "page.html"
    assert main(["diffusion", "report", run, run, "--out", str(out), "--reference", "busy"]) == 0
    page = out.read_text(encoding="utf-8")
    assert "2 runs together" in page
    assert "Together" in page
    refused(
        capsys,
        tmp_path,
        "report",
        run,
        run,
        "--out",
        out,
        "--reference",
        "absent",
        match="has no class 'absent'",
    )


@pytest.mark.slow
def test_shares_by_hand_and_by_prescription(made, capsys):
    base, data = made
    quick = [*QUICK, "--steps", "10", "--conditional"]
    given = base / "given"
    assert (
        main(["diffusion", "train", data, "--out", str(given), *quick, "--shares", f"busy=0.25,{EVIL}=0.75"])
        == 0
    )
    shares = json.loads((given / "run.json").read_text())["settings"]["class_shares"]
    assert sorted(shares) == [0.25, 0.75]
    refused(
        capsys, base, "train", data, "--out", base / "x", "--shares", "busy=1", match="must name every class"
    )
    refused(
        capsys,
        base,
        "train",
        data,
        "--out",
        base / "x",
        "--shares",
        "busy",
        match="--shares must be CLASS=VALUE",
    )
    even = base / "even"
    assert main(["diffusion", "train", data, "--out", str(even), *quick, "--equalize"]) == 0
    record = json.loads((even / "run.json").read_text())
    assert record["settings"]["class_shares"] == record["prescription"]["shares"]
    assert sum(record["prescription"]["shares"]) == pytest.approx(1)
    assert "By the theory, drawing" in capsys.readouterr().out
    refused(
        capsys,
        base,
        "train",
        data,
        "--out",
        base / "x",
        "--equalize",
        "--equalize-by",
        even,
        match="keep one of",
    )
    refused(
        capsys,
        base,
        "train",
        data,
        "--out",
        base / "x",
        *quick,
        "--equalize-by",
        even,
        match="was not memorized",
    )


def test_stopping_when_the_first_class_is_memorized(tmp_path, capsys, monkeypatch):
    """Planted: from the second look on, the samples are the training images of class b with a little noise."""
    data = write_images(tmp_path / "few.npz", names=("a", "b"), n=10)
    with np.load(data) as arrays:
        X, y = arrays["X"], arrays["y"]
    import torch

    from equipoise.generative import monitor

    seen = torch.tensor((X - X.mean(axis=0)) / X.std(), dtype=torch.float32)[:, None]
    looks = []

    def planted(network, n, shape, schedule, generator, **options):
        looks.append(n)
        noise = torch.randn(n, *shape, generator=generator)
        asked = options["labels"]
        if len(looks) == 1:
            return noise
        copies = seen[torch.from_numpy(np.flatnonzero(y == "b"))[torch.arange(n) % 10]]
        return torch.where((asked == 1)[:, None, None, None], copies + 0.01 * noise, noise)

    monkeypatch.setattr(monitor, "sample", planted)
    out = tmp_path / "run"
    quick = [*QUICK, "--conditional", "--held-out", "0", "--stop", "first-memorized"]
    assert main(["diffusion", "train", data, "--out", str(out), *quick]) == 0
    said = capsys.readouterr().out
    assert len(looks) == 2
    assert not (out / "checkpoints" / "step-0000030").exists()
    assert "'b' is memorized first" in said
    assert "'a' not within 22 steps" in said
    assert f"Checkpoint: {out / 'checkpoints' / 'step-0000010'}" in said
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "b: 100% of 8 are copies: 8 of the 8 samples shown are copies" in page
