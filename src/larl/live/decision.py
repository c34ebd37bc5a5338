"""What an agent or a cohort returns: decisions, the status of a reward, and errors of a policy."""

from enum import StrEnum
from typing import Any, NamedTuple

from larl._core.html import html_table


class PolicyError(ArithmeticError):
    """Raised by ``decide`` and ``save`` if a policy's numbers are invalid.

    They are invalid if its State contains nan, its prediction is infinite, or its probabilities do not sum to 1. The
    agent or cohort is unchanged. Very large rewards are the usual cause.

    Examples
    --------
    >>> import larl
    >>> issubclass(larl.PolicyError, ArithmeticError)
    True
    """


class RewardStatus(StrEnum):
    """How ``Agent.observe`` or ``Cohort.observe`` used a reward. Each value is equal to a plain string.

    Attributes
    ----------
    LEARNT
        ``"learnt"``: the reward came before the next decision.
    REPAIRED
        ``"repaired"``: it came after further decisions. The State is as if it had come in time.
    CORRECTED
        ``"corrected"``: it replaced an earlier report for the same decision.
    REPEATED
        ``"repeated"``: the same report was made before.
    MISSING
        ``"missing"``: the report says that there is no reward (``None``).
    LATE
        ``"late"``: it came after ``max_delay`` decisions. It is counted and not learnt from.

    Examples
    --------
    >>> import larl
    >>> agent = larl.Agent(larl.UCB(), arms=["off", "on"])
    >>> status = agent.observe(agent.decide(), 0.4)
    >>> status
    <RewardStatus.LEARNT: 'learnt'>
    >>> status == "learnt"
    True
    """

    LEARNT = "learnt"
    REPAIRED = "repaired"
    CORRECTED = "corrected"
    REPEATED = "repeated"
    MISSING = "missing"
    LATE = "late"


class Decision(NamedTuple):
    """The arm that an agent or a cohort chose for one step, and how it chose it.

    Attributes
    ----------
    id : str
        Identifies the decision; ``observe`` accepts it instead of the Decision.
    t : int
        Step of the unit, from 0.
    arm : str or None
        Name of the chosen arm; None if no arm was available.
    probabilities : dict of str to float
        Exact probability of each arm, given the history. They sum to 1 if an arm was available; unavailable arms have
        0.
    expected : float or None
        Predicted reward of the chosen arm; None if the policy predicts nothing.
    width : float or None
        Exploration bonus that the policy added to the prediction; None if it is infinite or not defined.
    explored : bool
        Whether ``min_probability`` forced the arm, not the policy.
    unit : str or None
        Unit of a cohort; None for an agent.

    Examples
    --------
    >>> import larl
    >>> decision = larl.Agent(larl.UCB(), arms=["off", "on"], seed=1, min_probability=0.1).decide()
    >>> decision.arm, decision.probabilities, decision.explored
    ('off', {'off': 0.9, 'on': 0.1}, False)
    """

    id: str
    t: int
    arm: str | None
    probabilities: dict[str, float]
    expected: float | None
    width: float | None
    explored: bool
    unit: str | None = None

    def _repr_html_(self) -> str:
        chosen = {self.arm: "chosen by min_probability" if self.explored else "chosen"}
        rows = [(name, f"{each:.4g}", chosen.get(name, "")) for name, each in self.probabilities.items()]
        unit = f" of unit {self.unit}" if self.unit is not None else ""
        title = f"Decision of step {self.t}{unit}: {'no arm available' if self.arm is None else self.arm}"
        if self.expected is not None:
            title += f", expected reward {self.expected:.4g}"
        return html_table(title, rows, ("arm", "probability", ""))

    def to_dict(self) -> dict[str, Any]:
        """The decision as a dictionary of JSON types, by field."""
        return self._asdict()
