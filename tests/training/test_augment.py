"""Augmentation keeps what it should."""

from __future__ import annotations

import pytest
import torch

from equipoise.training import FlipAndShift


def test_every_image_is_a_shift_or_a_mirrored_shift_of_itself():
    images = torch.randn(50, 2, 6, 5)
    out = FlipAndShift(shift=2)(images, torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(images, (2,) * 4, mode="replicate")
    kinds = set()
    for number in range(50):
        windows = {
            (top, left, flip): padded[number, :, top : top + 6, left : left + 5].flip([2] if flip else [])
            for top in range(5)
            for left in range(5)
            for flip in (False, True)
        }
        found = [kind for kind, window in windows.items() if torch.equal(out[number], window)]
        assert len(found) == 1
        kinds.add(found[0])
    assert {flip for *_, flip in kinds} == {False, True}
    assert {top for top, *_ in kinds} == {left for _, left, _ in kinds} == set(range(5))


def test_the_generator_decides():
    images = torch.randn(8, 1, 5, 5)
    augment = FlipAndShift(1)
    one, two, other = (augment(images, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(FlipAndShift(0, flip=False)(images, torch.Generator()), images)
    with pytest.raises(ValueError, match=r"augment needs images .* got \(3, 4\)"):
        augment(torch.zeros(3, 4), torch.Generator())
