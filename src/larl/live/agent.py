"""`Agent`: a policy that decides for one unit, step by step, with the compiled functions of the simulation."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Self

from numba import types

from larl import __version__
from larl._core.compile import naming_own_functions
from larl._core.validation import InvalidValue, Vector, integer
from larl.live import files, kernels
from larl.live.base import Minimum, Reward, read_settings
from larl.live.decision import Decision, RewardStatus
from larl.live.history import History
from larl.live.log_checks import check_counts
from larl.live.saved import SavedPolicy
from larl.live.streams import StreamKeys, Streams
from larl.policies import Allocation, Policy
from larl.worlds.base import World

_decide = kernels.direct(kernels.decide, types.int64, types.int64)
_learn = kernels.direct(kernels.learn, types.int64, types.int64, types.float64)


class Agent(SavedPolicy):
    """A policy that decides for one unit, step by step.

    Rewards may be missing, late or corrected: the State is always as if every reward had come in time. A trial stepped
    through an agent equals the trial of ``larl.compare`` with the same seed, bit for bit.

    Parameters
    ----------
    policy : Policy
        For example ``larl.LARL(s=5)``. Any policy except ``larl.DynamicOracle``.
    arms : sequence of str, or int
        Names of two or more arms, or their number, 2 to 10⁴ (names ``"0"``, ``"1"``, …).
    seed : int, >= 0, default 0
        Seed of all random choices.
    min_probability : float or mapping from str to float, default 0.0
        Minimum probability of every available arm, 0 to 1 / number of arms ("probability clipping"); or of some arms,
        such as ``{"nothing": 0.3}``, with a sum of at most 1.
    allocation : {"ucb", "best", "smooth"} or Allocation, default "ucb"
        How probabilities follow from the policy's posterior (docs/allocation.md). ``"ucb"``: the policy's own choice.
    update_every : int, >= 1, or "night", optional
        Number of decisions between two updates, between which the State that decides is fixed. ``"night"``: it is that
        of the first decision of a day; ``decide`` needs the date. By default every decision uses all rewards so far.
    warm_up : int, >= 0, default 0
        Number of first decisions with fixed probabilities. The policy learns from them; updates count from their end.
    warm_up_probabilities : mapping from str to float, optional
        Probabilities of the warm-up, with the sum 1; equal by default. If an arm is not available, the others keep
        their proportions.
    max_delay : int, 1 to 10⁶, default 50
        Maximum delay of a reward, in decisions, its own included. A later reward is counted as late and not used.
    horizon : int, optional
        Number of steps, for policies that need it.
    world : World, optional
        The true world, for oracles such as ``larl.KalmanOracle``.
    trial : int, >= 0, default 0
        Random numbers are those of this trial of ``larl.compare``.

    Attributes
    ----------
    counts : dict of str to int
        Number of reports to ``observe`` by ``RewardStatus``.

    Raises
    ------
    InvalidValue
        If an argument is not usable.

    Examples
    --------
    >>> import larl
    >>> agent = larl.Agent(larl.LARL(s=1), arms=["nothing", "prompt"], seed=7, min_probability=0.1)
    >>> decision = agent.decide()
    >>> decision.arm, decision.probabilities
    ('prompt', {'nothing': 0.5, 'prompt': 0.5})
    >>> agent.observe(decision, reward=0.4)
    <RewardStatus.LEARNT: 'learnt'>
    """

    _kind = "agent"

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int = 0,
        *,
        min_probability: Minimum = 0.0,
        allocation: str | Mapping[str, Any] | Allocation = "ucb",
        update_every: int | str | None = None,
        warm_up: int = 0,
        warm_up_probabilities: Mapping[str, float] | None = None,
        max_delay: int = 50,
        horizon: int | None = None,
        world: World | None = None,
        trial: int = 0,
    ) -> None:
        super().__init__(
            policy,
            arms,
            seed,
            min_probability=min_probability,
            allocation=allocation,
            update_every=update_every,
            warm_up=warm_up,
            warm_up_probabilities=warm_up_probabilities,
            max_delay=max_delay,
            horizon=horizon,
            world=world,
        )
        self.trial = integer(0, 2**63 - 1)("Agent", "trial", trial)
        memory = self._initial_memory()
        self._record = self._new_record(memory)
        self._history = History(memory, self._record, self.max_delay, self._context_size)
        self._address = self._history.address
        self._latest: tuple[str | None, int] = None, -1  # id and step of the last decision
        self._reuse_streams()

    def use_streams(self, streams: Streams) -> None:
        super().use_streams(streams)
        if hasattr(self, "_history"):
            self._reuse_streams()

    def _reuse_streams(self) -> None:
        """Write the keys of the random bits, if they are the same at each step."""
        self._set_streams(self._history.record, self.trial, 0)
        has_same_keys = isinstance(self._streams(self.trial), StreamKeys)
        # Whether `decide` without arguments needs nothing but the record.
        self._is_prepared = has_same_keys and self._schedule.every is None and self._context_size == 0

    @property
    def t(self) -> int:
        """Number of decisions so far."""
        return self._history.end

    @property
    def state(self) -> Any:
        """The policy's State before the next step; a reward that has not come yet counts as missing."""
        self._history.catch_up()
        return self._history.state

    def decide(
        self,
        available: Sequence[str] | None = None,
        context: Vector | None = None,
        day: date | None = None,
    ) -> Decision:
        """Choose the arm of the next step.

        Parameters
        ----------
        available : sequence of str, optional
            Arms that can be chosen; all by default. If empty, the step passes without an arm.
        context : sequence of float, optional
            Context of the step: as many numbers as the policy's ``context``.
        day : datetime.date, optional
            Date of the decision, where the unit is; required if ``update_every`` is ``"night"``.

        Returns
        -------
        Decision
            The arm, its probabilities and the policy's prediction.

        Raises
        ------
        InvalidValue
            If an arm is unknown, the context has another length, or the day is missing.
        PolicyError
            If the policy's numbers are invalid.

        Examples
        --------
        >>> import larl
        >>> agent = larl.Agent(larl.UCB(), arms=["off", "on"])
        >>> agent.decide(available=["on"]).arm
        'on'
        >>> agent.decide(available=[]).arm is None
        True
        """
        if available is None and context is None and day is None and self._is_prepared:
            try:
                arm = _decide(self._address, -1)
                if arm == kernels.NOT_READY:
                    self._history.catch_up()
                    arm = _decide(self._address, -1)
            except ArithmeticError as error:
                raise self._refusal(error) from None
            except Exception:  # of an own policy
                with naming_own_functions(type(self._history.state)):
                    raise
            decision = self._decision(self._record, arm)
        else:
            decision = self._decide_among(available, context, day)
        self._latest = decision.id, decision.t
        return decision

    def _decide_among(self, available: Sequence[str] | None, context: Vector | None, day: date | None) -> Decision:
        """`decide`, with arguments or scheduled learning."""
        mask, checked_context = self._available_mask(available), self._check_context(context)
        day_number, history = self._schedule.check_day(day), self._history
        history.catch_up()
        t = history.end
        if not mask.any():
            history.add(-1, checked_context, pending=False)
            return Decision(self._id(t), t, **self._unavailable_fields())
        update = self._schedule.update(0, t, day_number, history.memory.copy)
        self._set_choice(self._record, mask, checked_context, update)
        self._set_streams(self._record, self.trial, t)
        try:
            arm = _decide(self._address, -1)
        except ArithmeticError as error:
            raise self._refusal(error) from None
        finally:
            self._available[:] = True
        self._schedule.keep(0, update)
        return self._decision(self._record, arm, self._id(t))

    def update_if_due(self, day: date | None = None) -> None:
        """Learn as ``decide`` would, if an update is due: for a decision of this agent that is recorded again."""
        day_number = self._schedule.check_day(day)
        self._history.catch_up()
        self._schedule.keep(0, self._schedule.update(0, self.t, day_number, self._history.memory.copy))

    def record(self, arm: str | None, context: Vector | None = None) -> str:
        """Record a step whose arm was chosen outside larl.

        Parameters
        ----------
        arm : str or None
            The arm; None if there was none.
        context : sequence of float, optional
            Context of the step, as for ``decide``.

        Returns
        -------
        str
            Id of the decision, for ``observe``.

        Examples
        --------
        >>> import larl
        >>> agent = larl.Agent(larl.UCB(), arms=["off", "on"])
        >>> agent.observe(agent.record("on"), 1.0)
        <RewardStatus.LEARNT: 'learnt'>
        """
        played, checked_context = -1 if arm is None else self._arm_number("record", arm), self._check_context(context)
        self._history.catch_up()
        self._history.add(played, checked_context, pending=arm is not None)
        return self._id(self.t - 1)

    def observe(self, decision: Decision | str, reward: Reward | None, *, arm: str | None = None) -> RewardStatus:
        """Report the reward of a decision.

        Parameters
        ----------
        decision : Decision or str
            The decision or its id.
        reward : float, bool or None
            The reward; None if there is none. True and False count as 1 and 0.
        arm : str, optional
            The arm that was played, if it is not the one that was chosen.

        Returns
        -------
        RewardStatus
            How the reward was used; equal to a string such as ``"learnt"`` or ``"late"``.

        Raises
        ------
        InvalidValue
            If the decision is not this agent's, the reward is not finite, or the arm is unknown.

        Examples
        --------
        >>> import larl
        >>> agent = larl.Agent(larl.UCB(), arms=["off", "on"], max_delay=2)
        >>> first, second, third = agent.decide(), agent.decide(), agent.decide()
        >>> [str(agent.observe(each, 1.0)) for each in (first, second, third, third)]
        ['late', 'repaired', 'learnt', 'repeated']
        """
        if arm is None and isinstance(reward, float):  # the usual case: the last decision, in time
            name, t = decision.id if type(decision) is Decision else decision, self._latest[1]
            if type(name) is str and name == self._latest[0]:
                try:
                    result = _learn(self._address, t, reward)
                except Exception:
                    self._history.forget_reward(t)
                    with naming_own_functions(type(self._history.state)):
                        raise
                if result == kernels.CHECKPOINT_DUE:
                    self._history.keep_checkpoint()
                if result:
                    self.counts["learnt"] += 1
                    return RewardStatus.LEARNT
        t = self._step_of(decision)
        value, played = self._check_reward(reward, arm)
        if self._history.end - t > self.max_delay:
            return self._count(RewardStatus.LATE)
        return self._set_reward(self._history, t, value, played, t)

    def __repr__(self) -> str:
        return f"Agent({self.policy}, arms={list(self.arms)}, seed={self.seed}, t={self.t})"

    def pack(self) -> dict[str, Any]:
        """The agent as JSON types."""
        history = files.pack_history(self._history) | files.pack_updates(self._schedule)
        return {"larl": __version__, **self._settings(), "counts": self.counts, **history}

    @classmethod
    def unpack(cls, values: Mapping[str, Any]) -> Self:
        """The agent that `pack` returned as JSON types."""
        agent = cls(**read_settings(values), trial=values["trial"])
        files.unpack_updates(values, agent._schedule, agent._initial_memory(), 1)
        files.unpack_history(values, agent._history, agent._log_sizes())
        agent.counts = check_counts(values["counts"], list(RewardStatus))
        return agent

    def _states(self) -> list[Any]:
        return [self._history.state]

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"trial": self.trial}

    def _id(self, t: int) -> str:
        """The id of the decision of step t."""
        return f"{t}-{self._streams(self.trial).id_suffix(t)}"

    def _step_of(self, decision: Decision | str) -> int:
        """The step of a decision of this agent."""
        name = decision.id if isinstance(decision, Decision) else decision
        if isinstance(name, str) and name == self._latest[0]:  # usual case: the last decision
            return self._latest[1]
        first = name.partition("-")[0] if isinstance(name, str) else ""
        if not (first.isascii() and first.isdigit()) or int(first) >= self._history.end or self._id(int(first)) != name:
            raise InvalidValue("observe", "decision", name, "a Decision of this agent, or its id")
        return int(first)
