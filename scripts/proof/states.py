"""States of a table: sets of pairs that are paid, each with what that costs (table.py)."""
import numpy as np

EXACT = 2 ** 53  # a few whole numbers below are added exactly as floating-point numbers, too, which is quicker


def exact(weight, *costs):
    """The numbers in which sums of these are exact."""
    return np.float64 if sum(int(np.abs(c).max()) for c in costs) + int(weight.sum()) < EXACT else np.int64


class States:
    """Which states can buy what others have. rows: [state, pair] is it paid; weight: of each pair."""

    def __init__(self, rows, cost, weight):
        number = exact(weight, cost)
        self.rows, self.cost = rows.astype(number), cost.astype(number)
        self.heavy = self.rows * weight.astype(number)
        self.total = self.heavy.sum(axis=1)

    def bought(self, a, b):
        """[a, b]: can state a buy what b has beyond it and still cost no more?"""
        return self.cost[a][:, None] + self.total[b][None, :] - self.rows[a] @ self.heavy[b].T <= self.cost[b][None, :]


def as_words(packed):
    return packed.view([("", packed.dtype)] * packed.shape[1]).ravel()


def distinct(rows, cost):
    """Which of these stay where only the first, the cheapest, of those alike does; cheapest first."""
    sequence = np.argsort(cost, kind="stable")
    if not rows.shape[1]:
        return sequence[:1]
    first = np.unique(as_words(np.packbits(rows[sequence], axis=1)), return_index=True)[1]
    return sequence[np.sort(first)]


def unbought(rows, cost, weight, size=256, most=None):
    """Which of these states, cheapest first, stay: those that no other may buy; size: so many are looked at at a time, beside the first `most` that stay."""
    states = States(rows, cost, weight)
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, len(cost), size):
        block = np.arange(start, min(start + size, len(cost)))
        block = block[~states.bought(kept[:most], block).any(axis=0)]
        earlier = np.triu(np.ones((len(block), len(block)), dtype=bool), 1)
        kept = np.concatenate([kept, block[~(states.bought(block, block) & earlier).any(axis=0)]])
    return kept
