"""Published results of the paper's authors (T = 200, 100 trials): mean and sd of total regret, and LARL's win rate."""

from typing import NamedTuple


class PublishedRegret(NamedTuple):
    """Mean and standard deviation of a policy's total regret, and the share of trials in which LARL has less."""

    mean: float
    sd: float
    larl_wins: float | None


TRIALS = 100
REGRET: dict[int, dict[str, PublishedRegret]] = {
    1: {
        "LARL": PublishedRegret(156.87, 47.95, None),
        "Stationary": PublishedRegret(401.21, 176.68, 0.94),
        "AR UCB": PublishedRegret(386.19, 96.92, 1.00),
        "SW UCB": PublishedRegret(368.57, 73.72, 1.00),
        "Rexp3": PublishedRegret(373.66, 74.93, 1.00),
    },
    5: {
        "LARL": PublishedRegret(167.82, 24.84, None),
        "Stationary": PublishedRegret(219.10, 26.40, 0.98),
        "AR UCB": PublishedRegret(222.19, 38.83, 0.90),
        "SW UCB": PublishedRegret(223.10, 27.72, 0.96),
        "Rexp3": PublishedRegret(220.32, 29.12, 0.94),
    },
    10: {
        "LARL": PublishedRegret(171.02, 22.18, None),
        "Stationary": PublishedRegret(186.63, 21.77, 0.75),
        "AR UCB": PublishedRegret(187.48, 24.74, 0.72),
        "SW UCB": PublishedRegret(185.40, 23.82, 0.76),
        "Rexp3": PublishedRegret(182.51, 23.30, 0.70),
    },
}
