"""An attack on decision ids that are output of splitmix64: one id reveals the seed, and so all other decisions."""

from larl._core.random import GOLDEN, IDS

WORD = 2**64
STEP = int(GOLDEN)


def recover_seed(decision: str) -> int:
    """Return the seed of a study of id version 1, from the id of any decision."""
    prefix, t, suffix = decision.rsplit("-", 2)
    number = int(prefix.rpartition(".")[2])
    ids_key = _unmix(int(suffix, 16)) - (int(t) + 1) * STEP
    unit_key = _unmix(_unmix(ids_key) ^ (int(IDS) * STEP % WORD)) - (number + 1) * STEP
    return (_unmix(unit_key) - STEP) % WORD


def _unmix(x: int) -> int:
    """Invert the last function of splitmix64."""
    x = _unshift(x % WORD, 31) * pow(0x94D049BB133111EB, -1, WORD) % WORD
    x = _unshift(x, 27) * pow(0xBF58476D1CE4E5B9, -1, WORD) % WORD
    return _unshift(x, 30)


def _unshift(x: int, count: int) -> int:
    """Return y with y ^ (y >> count) = x."""
    return x ^ (x >> count) ^ (x >> 2 * count)
