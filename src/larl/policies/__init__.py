"""All policies, one file or folder each. `_contract.py` defines what a policy is; `REGISTRY` maps names to classes.

To write a policy, use `Policy`, `register` and the random draws `uniform`, `pick` and `normal` (see CONTRIBUTING.md).
"""

from larl._core.random import Bits as Bits
from larl._core.random import normal as normal
from larl._core.random import pick as pick
from larl._core.random import uniform as uniform
from larl.policies import _partial_pooling as _partial_pooling
from larl.policies._allocation import Allocation
from larl.policies._contract import Policy
from larl.policies._registry import REGISTRY, bind, from_dict, from_json, register
from larl.policies.adaptive_larl.policy import AdaptiveLARL
from larl.policies.ar2 import AR2
from larl.policies.ar_ucb import ARUCB
from larl.policies.auto.policy import Auto
from larl.policies.belief_linucb import BeliefLinUCB
from larl.policies.beta_thompson import BetaThompson
from larl.policies.change_point_thompson import ChangePointThompson
from larl.policies.cohort_auto import CohortAuto
from larl.policies.cohort_larl import CohortLARL
from larl.policies.cusum_ucb import CUSUMUCB
from larl.policies.deployed import Deployed
from larl.policies.discounted_beta_thompson import DiscountedBetaThompson
from larl.policies.discounted_kl_ucb import DiscountedKLUCB
from larl.policies.discounted_linucb import DiscountedLinUCB
from larl.policies.discounted_thompson import DiscountedThompson
from larl.policies.discounted_ucb import DiscountedUCB
from larl.policies.dynamic_oracle import DynamicOracle
from larl.policies.exp3 import Exp3
from larl.policies.filter_oracle import FilterOracle
from larl.policies.glr_klucb import GLRklUCB
from larl.policies.kalman_oracle import KalmanOracle
from larl.policies.kalman_ucb import KalmanUCB
from larl.policies.kl_ucb import KLUCB
from larl.policies.larl import LARL
from larl.policies.larl_bic import LARLBIC
from larl.policies.latent_thompson import LatentThompson
from larl.policies.markov_oracle import MarkovOracle
from larl.policies.mucb import MUCB
from larl.policies.particle_latent_thompson import ParticleLatentThompson
from larl.policies.predictive_sampling import PredictiveSampling
from larl.policies.random import Random
from larl.policies.reset_thompson import ResetThompson
from larl.policies.rexp3 import Rexp3
from larl.policies.round_robin import RoundRobin
from larl.policies.shared_larl.policy import SharedLARL
from larl.policies.sliding_window_beta_thompson import SlidingWindowBetaThompson
from larl.policies.sliding_window_linucb import SlidingWindowLinUCB
from larl.policies.sliding_window_thompson import SlidingWindowThompson
from larl.policies.sliding_window_ucb import SlidingWindowUCB
from larl.policies.thompson_sampling import ThompsonSampling
from larl.policies.ucb import UCB

__all__ = [
    "AR2",
    "ARUCB",
    "CUSUMUCB",
    "KLUCB",
    "LARL",
    "LARLBIC",
    "MUCB",
    "REGISTRY",
    "UCB",
    "AdaptiveLARL",
    "Allocation",
    "Auto",
    "BeliefLinUCB",
    "BetaThompson",
    "ChangePointThompson",
    "CohortAuto",
    "CohortLARL",
    "Deployed",
    "DiscountedBetaThompson",
    "DiscountedKLUCB",
    "DiscountedLinUCB",
    "DiscountedThompson",
    "DiscountedUCB",
    "DynamicOracle",
    "Exp3",
    "FilterOracle",
    "GLRklUCB",
    "KalmanOracle",
    "KalmanUCB",
    "LatentThompson",
    "MarkovOracle",
    "ParticleLatentThompson",
    "Policy",
    "PredictiveSampling",
    "Random",
    "ResetThompson",
    "Rexp3",
    "RoundRobin",
    "SharedLARL",
    "SlidingWindowBetaThompson",
    "SlidingWindowLinUCB",
    "SlidingWindowThompson",
    "SlidingWindowUCB",
    "ThompsonSampling",
    "bind",
    "from_dict",
    "from_json",
    "register",
]
