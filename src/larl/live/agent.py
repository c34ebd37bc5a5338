"""A policy live: decide, observe; rewards that are missing, late or corrected; a state that survives.

    agent = larl.Agent(larl.LARL(s=5), arms=["nothing", "prompt"], seed=7, min_probability=0.1)
    decision = agent.decide()
    agent.observe(decision, reward=0.4)

The same compiled functions as in the lab: a trial stepped through an agent is the engine's, bit for bit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from larl import __version__
from larl._core.validation import InvalidValue, integer
from larl.live import files as _file
from larl.live.base import COUNTS, Live, Streams, terms_of
from larl.live.base import Decision as Decision
from larl.live.base import PolicyError as PolicyError
from larl.live.files import InvalidFile as InvalidFile
from larl.live.history import Past
from larl.live.renamed import upgraded
from larl.policies import Policy
from larl.worlds.base import World


class Agent(Live):
    """A policy that decides for one unit, one step after another.

    `arms` are names, or their number. Every available arm has at least probability `min_probability`. A reward may come
    until `max_delay` decisions have been made, its own included; later it is counted as late and not used. `horizon`
    and `world` are for policies that must know them. Its random numbers are those of the engine's trial `trial`.
    """

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int = 0,
        *,
        min_probability: float = 0.0,
        max_delay: int = 50,
        horizon: int | None = None,
        world: World | None = None,
        trial: int = 0,
    ) -> None:
        super().__init__(policy, arms, seed, min_probability, max_delay, horizon, world)
        self.trial = integer(0, 2**63 - 1)("Agent", "trial", trial)
        state = self._fresh()
        self._past = Past(state, self.max_delay, self._width)
        self._streams = Streams.of(self.seed, self.trial)
        self._bind(state)
        self._saved: Path | None = None
        self._latest: tuple[str | None, int] = None, -1  # id and step of the last decision

    @property
    def t(self) -> int:
        """How many decisions were made."""
        return self._past.end

    @property
    def state(self) -> Any:
        """The policy's State before the coming step (a reward that may still come counts as missing so far)."""
        self._past.catch_up()
        return self._past.state

    def decide(self, available: Sequence[str] | None = None, context: Sequence[float] | None = None) -> Decision:
        """Decide for the coming step; time moves on by one.

        `available`: the arms that can be chosen, all unless given; with none, the step passes without an arm.
        """
        can, shown = self._mask(available), self._context(context)
        past = self._past
        past.catch_up()
        t = past.end
        if available is not None and not can.any():
            past.add(-1, shown, pending=False)
            return Decision(self._id(t), t, **self._nothing())
        arm, words = self._chosen(past.state, self._streams, t, shown, can)
        past.add(arm, shown, pending=True)
        name = self._id(t)
        self._latest = name, t
        return Decision(name, t, **words)

    def record(self, arm: str | None, context: Sequence[float] | None = None) -> str:
        """A step for which somebody else has chosen the arm (None: there was none); returns its decision's id.

        It counts as a decision, whose reward may come.
        """
        played, shown = -1 if arm is None else self._arm("record", arm), self._context(context)
        self._past.catch_up()
        self._past.add(played, shown, pending=arm is not None)
        return self._id(self.t - 1)

    def observe(self, decision: Decision | str, reward: float | None, *, arm: str | None = None) -> str:
        """Learn what came of a decision (or of its id): a reward, or None if this moment passed without one.

        `arm` is what was done in fact, if not what was decided. Returns how it was taken: "learnt"; "missing";
        "repaired", if it came after further decisions (the State is now as if it had come in time); "corrected", if it
        replaced what was said before; "repeated", if it was known already; "late", if it came after `max_delay`
        decisions (it is counted, and not learnt from). True and False count as 1 and 0.
        """
        t = self._step(decision)
        value, told = self._told(reward, arm)
        if self._past.end - t > self.max_delay:
            return self._count("late")
        return self._take(self._past, t, value, told, t)

    def save(self, path: str | Path) -> Path:
        """Write the agent to a JSON file, whole or not at all. A file that is not this agent's is not overwritten."""
        path = Path(path)
        self._refuse_nan(self._past.state)
        if self._saved != path.resolve():
            _file.refuse_foreign(path, self._terms())
        _file.write(path, self.pack())
        self._saved = path.resolve()
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Agent":
        """The agent that `save` wrote; a file that was cut short, edited or is another's is refused."""
        values = _file.read(path)
        with _file.fitting(path, values):
            agent = cls.unpack(values)
        agent._saved = Path(path).resolve()
        return agent

    def __repr__(self) -> str:
        return f"Agent({self.policy}, arms={list(self.arms)}, seed={self.seed}, t={self.t})"

    def pack(self) -> dict[str, Any]:
        """The agent as JSON types."""
        return {"larl": __version__, **self._terms(), "counts": self.counts, **_file.pack_past(self._past)}

    @classmethod
    def unpack(cls, values: Mapping[str, Any]) -> "Agent":
        """The agent that `pack` made."""
        values = upgraded(values)
        agent = cls(**terms_of(values), trial=values["trial"])
        agent._past = _file.unpack_past(values, agent._past.state, agent.max_delay, agent._width)
        agent.counts = {name: int(values["counts"][name]) for name in COUNTS}
        return agent

    def _terms(self) -> dict[str, Any]:
        return super()._terms() | {"trial": self.trial}

    def _id(self, t: int) -> str:
        return f"{t}-{self._streams.name(t)}"

    def _step(self, decision: Decision | str) -> int:
        """The step of a decision of this agent."""
        name = decision.id if isinstance(decision, Decision) else decision
        if isinstance(name, str) and name == self._latest[0]:  # most are of the last decision
            return self._latest[1]
        first = name.partition("-")[0] if isinstance(name, str) else ""
        if not (first.isascii() and first.isdigit()) or int(first) >= self._past.end or self._id(int(first)) != name:
            raise InvalidValue("observe", "decision", name, "a Decision of this agent, or its id")
        return int(first)
