"""Files of earlier versions with the policy `Auto`, whose States had other arrays.

Its particles cannot be converted. But the State also had the last rewards, so the agent learns from them again.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larl._core.validation import LARGEST
from larl.live.kernels import replay
from larl.policies.auto.state import SMCState

ONLY_OLD = frozenset({"smc.owner", "smc.candidate"})  # arrays that only earlier States have

FORMER_PRIOR = frozenset(f"smc.populations.start_{name}" for name in ("mean", "sd", "weight"))


def learn_again(values: Mapping[str, Any], state: Any, smc: SMCState, unpack: Callable[..., NDArray[Any]]) -> None:
    """Write into the State of a new unit, whose sampler is `smc`, what it learns from the rewards in an earlier State.

    `values` are its arrays by path, as `pack_state` wrote them; ValueError if they are not those of such a State.
    """

    def read(name: str, like: NDArray[Any]) -> NDArray[Any]:
        if values[name]["shape"] != list(like.shape) or values[name]["type"] != like.dtype.str:
            raise ValueError(f"state {name} is {values[name]['type']} of shape {values[name]['shape']}")
        return unpack(name, values[name]["data"], like)

    size = smc.history.arm.size
    arm, reward = read("smc.history.arm", np.zeros(size, dtype="<i8")), read("smc.history.reward", np.zeros(size))
    # The first version only subtracted an offset from the rewards; the second then divided them by a unit.
    length = 1 if values["smc.offset"]["shape"] == [1] else 2
    offset, unit = (*read("smc.offset", np.zeros(length)), 1.0)[:2]
    time = int(read("smc.time", np.zeros(1, dtype="<i8"))[0])
    if time < 0 or not ((arm >= -1) & (arm < smc.arms)).all():
        raise ValueError("the history of the state has an arm or a time that does not exist")
    order = np.arange(max(time - size, 0), time) % size
    played, rewards = arm[order], np.where(arm[order] < 0, np.nan, offset + unit * reward[order])
    if not (np.isnan(rewards) | (np.abs(rewards) <= LARGEST)).all():
        raise ValueError("the history of the state has a reward that is not finite or too large")
    replay(state, np.zeros((order.size, 0)), played, rewards, 0, order.size)
