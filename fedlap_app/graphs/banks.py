"""A made-up payment network: accounts at several banks, and the transfers between them.

Accounts live in circles: households of a region, a chain of suppliers and shops, a ring of money
mules. A circle reaches across all banks, and most transfers leave the bank they start in. What an
account is follows from its circle much more than from its own numbers, so whoever sees only one
bank sees little; the circles are the low end of the spectrum of the whole graph.
"""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.arrays import Ints, Strings
from fedlap_app.graphs.graph import Graph

CLASSES = ("ordinary", "merchant", "mule")
FEATURES = (
    "balance",
    "account_age",
    "holder_age",
    "income",
    "card_use",
    "cash_share",
    "night_share",
    "foreign_share",
    "mean_amount",
    "amount_spread",
    "standing_orders",
    "days_idle",
)
MIN_ACCOUNTS, MAX_ACCOUNTS = 200, 5_000_000

_CLASS_SHARES = (0.5, 0.3, 0.2)
_CIRCLE_SIZE, _MIN_CIRCLES, _MAX_CIRCLES = 50, 6, 40
_TRANSFERS = 4  # started by each account
_IN_CIRCLE = 0.75  # share of the transfers that stay in the circle
_IN_KIND = 0.15  # share that goes to any circle of the same kind
_IN_BANK = 0.25  # share of the transfers that stay in the bank
_MISFITS = 0.08  # share of the accounts that are not what their circle is
_SHIFT = 0.35  # distance of the classes in each feature, in standard deviations


def make_banks(accounts: int, banks: int, seed: int, *, directed: bool = False) -> Graph:
    """Generate the network; the same arguments give the same network.

    Parameters
    ----------
    accounts : number of accounts.
    banks : number of banks, the natural owners; the first is the largest.
    seed : of every draw.
    directed : keep who paid whom.
    """
    check_size(accounts, banks)
    rng = np.random.default_rng([seed, 0xBA])
    bank = rng.permutation(np.repeat(np.arange(banks), _bank_sizes(accounts, banks)))
    circle = rng.permutation(np.arange(accounts) % _num_circles(accounts))
    kinds = _draw_kinds(_num_circles(accounts), rng)
    labels = _draw_labels(kinds[circle], rng)
    index = _draw_transfers(bank, circle, kinds, rng)
    return Graph(
        ids=_ibans(bank, rng),
        features=_draw_features(labels, rng),
        labels=labels,
        edge_index=index,
        edge_weight=_draw_weights(index, accounts, rng),
        classes=CLASSES,
        feature_names=FEATURES,
        owner=np.asarray(bank_names(banks))[bank],
        directed=directed,
    )


def check_size(accounts: int, banks: int) -> None:
    """Refuse sizes that cannot be generated."""
    if not MIN_ACCOUNTS <= accounts <= MAX_ACCOUNTS:
        raise ConfigError(
            f"accounts = {accounts} is out of range: take {MIN_ACCOUNTS} to {MAX_ACCOUNTS}."
        )
    if not 1 <= banks <= accounts:
        raise ConfigError(f"clients = {banks} is out of range: take 1 to {accounts} banks.")


def bank_names(banks: int) -> list[str]:
    """Names whose sorted order is the order of the banks."""
    width = max(2, len(str(banks - 1)))
    return [f"bank-{bank:0{width}d}" for bank in range(banks)]


def _num_circles(accounts: int) -> int:
    return int(np.clip(accounts // _CIRCLE_SIZE, _MIN_CIRCLES, _MAX_CIRCLES))


def _bank_sizes(accounts: int, banks: int) -> Ints:
    """Uneven sizes, the first bank about five times the tenth; everyone has an account."""
    shares = 1 / (np.arange(banks) + 2.0)
    sizes: Ints = 1 + np.floor((accounts - banks) * shares / shares.sum()).astype(np.int64)
    sizes[: accounts - sizes.sum()] += 1
    return sizes


def _draw_kinds(circles: int, rng: np.random.Generator) -> Ints:
    """The class that rules in each circle, in fixed shares."""
    middles = (np.arange(circles) + 0.5) / circles
    return rng.permutation(np.searchsorted(np.cumsum(_CLASS_SHARES), middles))


def _draw_labels(kind: Ints, rng: np.random.Generator) -> Ints:
    """The kind of the account's circle, but for a few misfits."""
    misfit = rng.random(kind.size) < _MISFITS
    other = rng.choice(len(CLASSES), size=kind.size, p=_CLASS_SHARES)
    return np.where(misfit, other, kind).astype(np.int64)


def _draw_transfers(bank: Ints, circle: Ints, kinds: Ints, rng: np.random.Generator) -> Ints:
    """Each account pays a few others, mostly of its circle, and mostly at other banks."""
    source = np.repeat(np.arange(bank.size), _TRANSFERS)
    reach = np.searchsorted(np.cumsum([_IN_CIRCLE, _IN_KIND]), rng.random(source.size))
    target = np.empty_like(source)
    for level, group in enumerate((circle, kinds[circle], np.zeros_like(circle))):
        chosen = reach == level
        target[chosen] = _draw_partners(source[chosen], bank, group, rng)
    return np.stack([source, target])


def _draw_partners(source: Ints, bank: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """A random account of the same group, at the same bank for a share of the draws.

    Sorted by group and bank, a group is a range and a bank's part of it a range inside.
    """
    order = np.lexsort((bank, group))
    block = group * (int(bank.max()) + 1) + bank
    group_start = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
    first, size = group_start[group[source]], np.diff(group_start)[group[source]]
    sizes = np.bincount(block)
    starts = np.cumsum(sizes) - sizes
    own_first, own_size = starts[block[source]], sizes[block[source]]
    stay = (rng.random(source.size) < _IN_BANK) | (own_size == size)
    draw = rng.random(source.size)
    near = own_first + np.floor(draw * own_size).astype(np.int64)
    far = first + np.floor(draw * (size - own_size)).astype(np.int64)
    far += np.where(far >= own_first, own_size, 0)
    partners: Ints = order[np.where(stay, near, far)]
    return partners


def _draw_weights(index: Ints, accounts: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Decimal logarithm of the amount; a repeated transfer is one edge with one weight."""
    keys = index[0] * np.int64(accounts) + index[1]
    _, edge = np.unique(keys, return_inverse=True)
    amounts = 150 * rng.lognormal(sigma=0.8, size=int(edge.max()) + 1)
    weights: NDArray[np.float64] = np.clip(np.log10(amounts), 1, 4)[edge]
    return weights


def _draw_features(labels: Ints, rng: np.random.Generator) -> NDArray[np.float32]:
    """Standard scores whose mean differs a little from class to class."""
    # Columns of alternating sign: no class is simply larger than another in everything.
    signs = np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1], [-1, 0, 1], [1, -1, 0], [0, 1, -1]]).T
    means = np.tile(signs, len(FEATURES) // signs.shape[1]) * _SHIFT
    noise = rng.standard_normal((labels.size, len(FEATURES)), dtype=np.float32)
    return (means[labels] + noise).astype(np.float32)


def _ibans(bank: Ints, rng: np.random.Generator) -> Strings:
    """IBANs with correct check digits at bank codes that no real bank has.

    A German IBAN is DE, two check digits, eight digits of the bank and ten of the account; real
    bank codes do not begin with 9. The check digits make the number, with DE00 (131400) moved to
    its end, leave 1 when divided by 97.
    """
    stride = 10**10 // (2 * bank.size)
    account = np.arange(bank.size) * stride + rng.integers(stride, size=bank.size)
    number = (99_900_000 + bank) * 10**10 + account
    check = 98 - (number % 97 * 10**6 + 131_400) % 97
    digits = np.char.zfill(check.astype(np.str_), 2)
    ibans: Strings = np.char.add(np.char.add("DE", digits), number.astype(np.str_))
    return ibans
