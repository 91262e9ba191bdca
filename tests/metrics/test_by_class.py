"""Costs and priors by class follow the names of the classes, never the order in which classes or columns come."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from equipoise.metrics import best_threshold, cheapest_decision, expected_cost
from equipoise.metrics.by_class import costs_by_code, shares_by_code, sorted_codes

COST = {"b": {"a": 7.0, "c": 2.0}, "a": {"b": 1.0, "c": 3.0}, "c": {"a": 5.0, "b": 11.0}}
TABLE = pd.DataFrame(COST).T.fillna(0.0)


def by_hand(labels):
    return np.array([[0.0 if t == c else COST[t][c] for c in labels] for t in labels])


@pytest.mark.parametrize("labels", list(itertools.permutations("abc")))
def test_every_form_gives_the_costs_of_the_names(labels):
    wanted = by_hand(labels)
    shuffled = TABLE.loc[["c", "a", "b"], ["b", "c", "a"]]
    for form in (COST, shuffled, by_hand("abc"), shuffled.rename(index=str.upper)):
        np.testing.assert_array_equal(costs_by_code(form, labels), wanted)
    missed = {"c": 3.0, "a": 1.0, "b": 2.0}
    for form in (missed, pd.Series(missed)):
        table = costs_by_code(form, labels)
        assert all(table[i, j] == (0.0 if i == j else missed[labels[i]]) for i in range(3) for j in range(3))
    shares = {"c": 0.5, "b": 0.2, "a": 0.3}
    for form in (shares, pd.Series(shares), [0.3, 0.2, 0.5], {"c": 0.5, "a": 0.3}):
        np.testing.assert_allclose(shares_by_code(form, labels), [shares[label] for label in labels])


def test_numbers_are_sorted_as_numbers_and_texts_as_texts():
    assert sorted_codes([10, 9]).tolist() == [1, 0]
    assert sorted_codes(["10", "9"]).tolist() == [0, 1]
    assert sorted_codes([True, False]).tolist() == [1, 0]
    assert costs_by_code({"9": 4, "10": 6}, [10, 9]).tolist() == [[0, 6], [4, 0]]  # as typed in a command
    assert costs_by_code([[0, 4], [6, 0]], [10, 9]).tolist() == [[0, 6], [4, 0]]


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ({"a": 1, "b": 2}, "'c' is not named"),
        ({"a": 1, "b": 2, "c": 3, "d": 1}, "'d' is none"),
        ({"a": 1, "A ": 2, "b": 2, "c": 3}, "'A ' is none"),
        ({"a": 1, "b": -2, "c": 3}, "must be positive"),
        (TABLE.rename(columns={"a": "b"}), "columns of the cost table must name every class once"),
        ({"a": {"b": 1, "c": 1}, "b": {"a": 1}, "c": {"a": 1, "b": 1}}, "finite"),
        ([[0, 1], [1, 0]], r"must have the shape \(3, 3\)"),
    ],
)
def test_names_that_do_not_fit_end_in_a_sentence(cost, said):
    with pytest.raises(ValueError, match=said):
        costs_by_code(cost, ("a", "b", "c"))


def test_shares_that_do_not_fit_end_in_a_sentence():
    for prior, said in (
        ({"a": 0.5, "b": 0.4, "c": 0.3}, "sums to 1"),
        ({"x": 0.5}, "is not named"),
        ([0.5], "3 shares"),
    ):
        with pytest.raises(ValueError, match=said):
            shares_by_code(prior, ("a", "b", "c"))


def test_bayes_and_the_mean_cost_follow_named_tables():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 200)
    names = np.array(["c", "a", "b"])  # the columns of proba
    wanted = names[[int(np.argmin([sum(row[t] * by_hand("cab")[t, c] for t in range(3)) for c in range(3)]))
                    for row in proba]]  # fmt: skip
    np.testing.assert_array_equal(cheapest_decision(proba, TABLE, labels=names), wanted)
    truth = rng.choice(names, 200)
    mean = np.mean([0.0 if t == c else COST[t][c] for t, c in zip(truth, wanted, strict=True)])
    assert expected_cost(truth, wanted, cost_matrix=TABLE) == pytest.approx(mean)


def test_a_threshold_follows_named_costs_when_the_positive_class_is_not_the_last():
    y, score = np.array(["ill", "well", "well", "ill"]), np.array([0.9, 0.5, 0.1, 0.3])
    dear = pd.DataFrame([[0, 9], [1, 0]], ["ill", "well"], ["ill", "well"])
    assert best_threshold(y, score, "cost", cost_matrix=dear, pos_label="ill").threshold == 0.3
    assert best_threshold(y, score, "cost", cost_matrix=dear.T, pos_label="ill").threshold == 0.9
