"""Worlds generate rewards: the paper's (`paper`), random ones (`random`), and worlds in which its assumptions fail."""

from larl.worlds.base import LinearGaussianWorld as LinearGaussianWorld
from larl.worlds.base import LinearSystem as LinearSystem
from larl.worlds.base import World as World
from larl.worlds.extend import register_latent as register_latent
from larl.worlds.extend import start_bits as start_bits
from larl.worlds.extend import step_bits as step_bits
from larl.worlds.latent_ar import LatentAR as LatentAR
from larl.worlds.latent_markov import LatentMarkov as LatentMarkov
from larl.worlds.latent_var import LatentVAR as LatentVAR
from larl.worlds.presets import PAPER_GAMMAS as PAPER_GAMMAS
from larl.worlds.presets import paper as paper
from larl.worlds.presets import random as random
from larl.worlds.presets import random_markov as random_markov
from larl.worlds.presets import random_vector as random_vector
from larl.worlds.simulator import Simulator as Simulator
from larl.worlds.start import JointNormal as JointNormal
from larl.worlds.start import Normal as Normal
from larl.worlds.variants import Burden as Burden
from larl.worlds.variants import ChangePoints as ChangePoints
from larl.worlds.variants import Contextual as Contextual
from larl.worlds.variants import HeavyTails as HeavyTails
from larl.worlds.variants import HeterogeneousUnits as HeterogeneousUnits
from larl.worlds.variants import Recorded as Recorded
from larl.worlds.variants import Seasonal as Seasonal
from larl.worlds.variants import from_dict as from_dict
