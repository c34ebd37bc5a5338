"""The log-likelihood of one unit's rewards at many points of a model's parameter space, for learning a prior."""

from larl._core.compile import kernel
from larl.policies.auto.layout import BINARY, ModelKind, coordinate_count, field_offsets
from larl.policies.auto.parameters import to_parameters
from larl.policies.auto.replay import RewardHistory, replay_filter
from larl.policies.auto.soa import LANES, Floats, aligned_rows


@kernel
def unit_log_likelihood(
    kind: ModelKind, history: RewardHistory, points: Floats, signs: Floats, level: Floats, out: Floats, scale: Floats
) -> None:
    """Set `out` to the log-likelihood at each point, and `scale` to σ² there.

    Parameters
    ----------
    kind : ModelKind
        The model.
    history : RewardHistory
        The rewards of the unit; its first and its last step must have one.
    points : array, (points, coordinates)
        Coordinates of parameters.py.
    signs : array, (points, arms)
        The signs of β, ±1.
    level : array, (arms,)
        Expected level of each arm.
    out, scale : array, (points,)
        Results. For continuous rewards σ² is integrated out, and `scale` is its estimate; for binary rewards it is 1.
    """
    fields, size, steps, seen, largest = field_offsets(kind), coordinate_count(kind), history.arm.size, -1.0, 0.0
    for t in range(steps):
        if history.arm[t] >= 0:
            seen, largest = seen + 1.0, max(largest, abs(history.reward[t]))
    x = aligned_rows(fields.end)
    for first in range(0, points.shape[0], LANES):
        for lane in range(LANES):
            point = min(first + lane, points.shape[0] - 1)
            for i in range(size):
                x[fields.theta + i, lane] = points[point, i]
            for arm in range(kind.arms):
                x[fields.sign + arm, lane] = signs[point, arm]
        to_parameters(x, fields, kind)
        replay_filter(
            x=x,
            fields=fields,
            kind=kind,
            history=history,
            born=0,
            first=0,
            end=steps,
            seen=seen,
            prior_square=0.0,
            largest=largest,
            expected_level=level,
        )
        for lane in range(min(LANES, points.shape[0] - first)):
            out[first + lane] = x[fields.log_lik, lane]
            scale[first + lane] = 1.0 if kind.rewards == BINARY else x[fields.squared_error, lane] / max(seen, 1.0)
