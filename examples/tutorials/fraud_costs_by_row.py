"""
Fraud, where every row has its own cost
=======================================

A missed fraud costs the amount of the transaction; a false alarm costs the five dollars of a phone call. No
single threshold fits that: a transaction of 2,000 dollars is worth a call at a risk of 1 %, one of 20 dollars
only at 25 %. You will make a table of transactions, let the advisor find a model and a rule, and count the
dollars that the rule saves on transactions that nobody has seen.
"""

# %%
# The data
# --------
# 6,000 transactions, of which about 3 % are fraudulent. Fraud is more common at night, abroad and on new
# accounts.

import numpy as np
import pandas as pd

import equipoise
from equipoise.report import new_axes

rng = np.random.default_rng(0)
n = 6000
table = pd.DataFrame(
    {
        "amount": np.round(np.exp(rng.normal(4, 1.2, n)), 2),
        "hour": rng.integers(24, size=n),
        "country": rng.choice(["home", "near", "far"], n, p=[0.85, 0.1, 0.05]),
        "account_days": np.round(rng.exponential(400, n)),
    }
)
risk = (
    -5.2
    + 1.6 * (table["hour"] < 6)
    + 2.2 * (table["country"] == "far")
    + 1.5 * (table["account_days"] < 30)
    + 0.3 * np.log(table["amount"])
)
fraud = rng.random(n) < 1 / (1 + np.exp(-risk))
known, new = np.arange(n) < 4000, np.arange(n) >= 4000
print(f"{fraud.mean():.1%} fraudulent, {table['amount'][fraud].sum():,.0f} dollars in all")

# %%
# The decision
# ------------
# A cost is a number or the name of a column. Two treatments and no tuning keep this page quick; without
# ``treatments`` and ``trials`` the advisor uses whatever time ``budget`` allows.

advisor = equipoise.Advisor(
    cost={"fp": 5, "fn": "amount"},
    treatments=["lightgbm", "logistic"],
    trials=0,
    random_state=0,
    verbose=False,
)
advisor.fit(table[known], fraud[known])
print(advisor.leaderboard_[["cost", "average_precision", "brier"]].round(3))

# %%
# ``cost`` is the mean cost of a transaction, measured on rows that no model was fitted to. The two rows at
# the end of the leaderboard call nothing or everything: whatever does not beat them is worth nothing.
#
# The rule that follows from the probabilities is *call if p times the amount is more than 5*. In the picture
# it is the curve, and no horizontal line could do its work.

proba = advisor.predict_proba(table[new])[:, 1]
amount = table["amount"][new].to_numpy()
called = advisor.predict(table[new])

figure, axes = new_axes(7, 4)
for truth, name, color in ((False, "honest", "0.75"), (True, "fraud", "tab:red")):
    rows = fraud[new] == truth
    axes.scatter(amount[rows], proba[rows], s=8, c=color, label=name)
curve = np.geomspace(5, amount.max(), 200)
axes.plot(curve, 5 / curve, color="tab:blue", label="call above this line")
axes.set(
    xscale="log", yscale="log", ylim=(proba.min() / 2, 1), xlabel="amount", ylabel="probability of fraud"
)
axes.legend(loc="lower left")

# %%
# Dollars on new rows
# -------------------


def dollars(called):
    """What a list of calls costs: five for a false alarm, the amount for a miss."""
    truth = fraud[new]
    return 5 * (called & ~truth).sum() + amount[truth & ~called].sum()


choices = {
    "call nobody": np.zeros(len(proba), dtype=bool),
    "call everybody": np.ones(len(proba), dtype=bool),
    "call at p > 0.5": proba > 0.5,
    "the advisor's rule": called.astype(bool),
}
for name, choice in choices.items():
    print(f"{name:20} {choice.sum():5} calls {dollars(choice):10,.0f} dollars")

# %%
# The same from the command line, for a file with these columns::
#
#     equipoise report transactions.csv --target fraud --cost fp=5,fn=amount --budget 5m --out out
#     equipoise predict out/model new.csv --out calls.csv
