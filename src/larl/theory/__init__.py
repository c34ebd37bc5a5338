"""The paper's theory as functions of a world, with corrections. docs/theory.md derives every formula.

`reduction`: Lemma 2, θ_a and the bias; for every world whose filter has a steady state.
`confidence`: Lemma 3, the confidence radius, and Lemma 4, the bound on contexts; for a LatentAR.
`bounds`: Theorem 1, the bound on regret; for a LatentAR.
`certificate`: a bound on the cost of learning from the data of a run, for every policy; for a LatentAR.
`decompose`: the exact split of regret into the floor and the cost of learning, which the paper does not give.
`lookback`: the expected regret of LARL(s) and the best s, which the paper leaves open; for a LatentAR.
`regret_floor`: the regret per step of the filter, and a lower bound, which the paper does not give; for every LatentAR,
LatentVAR, LatentMarkov and LatentGLM.
"""

from larl.theory.bounds import RegretBound as RegretBound
from larl.theory.bounds import regret_bound as regret_bound
from larl.theory.certificate import Certificate as Certificate
from larl.theory.certificate import certificate as certificate
from larl.theory.confidence import confidence_radius as confidence_radius
from larl.theory.confidence import context_bound as context_bound
from larl.theory.decompose import Decomposition as Decomposition
from larl.theory.decompose import decompose as decompose
from larl.theory.decompose import floor_path as floor_path
from larl.theory.expected_maximum import expected_best_mean as expected_best_mean
from larl.theory.lookback import best_lookback as best_lookback
from larl.theory.lookback import predicted_regret as predicted_regret
from larl.theory.reduction import bias_row as bias_row
from larl.theory.reduction import noise_scale as noise_scale
from larl.theory.reduction import reward_parameters as reward_parameters
from larl.theory.reduction import steady_start as steady_start
from larl.theory.regret_floor import greedy_regret as greedy_regret
from larl.theory.regret_floor import predictability as predictability
from larl.theory.regret_floor import random_regret as random_regret
from larl.theory.regret_floor import regret_floor as regret_floor
from larl.theory.regret_floor import regret_lower_bound as regret_lower_bound
