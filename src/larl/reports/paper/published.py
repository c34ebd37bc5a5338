"""What the authors published of their runs (T = 200, 100 trials): mean and sd of total regret, and LARL's win rate."""

from typing import NamedTuple


class Row(NamedTuple):
    """A row of the published table."""

    mean: float
    sd: float
    larl_wins: float | None


TRIALS = 100
REGRET: dict[int, dict[str, Row]] = {
    1: {
        "LARL": Row(156.87, 47.95, None),
        "Stationary": Row(401.21, 176.68, 0.94),
        "AR UCB": Row(386.19, 96.92, 1.00),
        "SW UCB": Row(368.57, 73.72, 1.00),
        "Rexp3": Row(373.66, 74.93, 1.00),
    },
    5: {
        "LARL": Row(167.82, 24.84, None),
        "Stationary": Row(219.10, 26.40, 0.98),
        "AR UCB": Row(222.19, 38.83, 0.90),
        "SW UCB": Row(223.10, 27.72, 0.96),
        "Rexp3": Row(220.32, 29.12, 0.94),
    },
    10: {
        "LARL": Row(171.02, 22.18, None),
        "Stationary": Row(186.63, 21.77, 0.75),
        "AR UCB": Row(187.48, 24.74, 0.72),
        "SW UCB": Row(185.40, 23.82, 0.76),
        "Rexp3": Row(182.51, 23.30, 0.70),
    },
}
