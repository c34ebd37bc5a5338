"""A policy live: decide, observe; rewards that are missing, late or corrected; a state that survives.

    agent = larl.Agent(larl.LARL(s=5), arms=["nothing", "prompt"], seed=7, floor=0.1)
    decision = agent.decide()
    agent.observe(decision, reward=0.4)

The same compiled functions as in the lab: a trial stepped through an agent is the engine's, bit for bit.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from larl import __version__
from larl._check import InvalidValue, number, whole
from larl._compile import bound, copy_fields
from larl._words import FLOOR, IDS, POLICY, stream_key, word_at
from larl.agent import _file
from larl.agent._file import InvalidFile as InvalidFile
from larl.agent._kernels import choose
from larl.agent._past import Past
from larl.policies import DynamicOracle, Policy, from_dict
from larl.policies._contract import has_law
from larl.variants import from_dict as world_from_dict
from larl.world import World

MOST_ARMS = 10_000
COUNTS = ("learnt", "repaired", "corrected", "repeated", "missing", "late")
_finite = number()


class Decision(NamedTuple):
    """What an agent decided, and why."""

    id: str
    t: int
    arm: str | None  # None where no arm was available
    probabilities: dict[str, float]  # of every arm, exact
    expected: float | None  # what the policy expects of the arm; None where it has no opinion
    width: float | None  # what it adds for what it does not know
    explored: bool  # the floor chose, not the policy

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return self._asdict()


class Agent:
    """A policy that decides for one unit, one step after another.

    `arms` are names, or how many there are. Every available arm keeps at least probability `floor`. A reward may come
    until `patience` decisions have been made, its own included; later it is counted as late and not learnt from.
    `horizon` and `world` are for policies that must know them.
    """

    def __init__(
        self,
        policy: Policy,
        arms: Sequence[str] | int,
        seed: int = 0,
        *,
        floor: float = 0.0,
        patience: int = 50,
        horizon: int | None = None,
        world: World | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise InvalidValue("Agent", "policy", policy, "a larl policy, such as larl.LARL(s=5)")
        if isinstance(policy, DynamicOracle):
            raise InvalidValue("Agent", "policy", policy, "a policy that is not shown the true means: only the lab can")
        self.policy, self.arms = policy, _names(arms)
        self.seed = whole(0, 2**63 - 1)("Agent", "seed", seed)
        self.floor = number(0.0, 1.0 / len(self.arms))("Agent", "floor", floor)
        self.patience = whole(1, 10**6)("Agent", "patience", patience)
        self.horizon, self.world = horizon, world
        self.counts = dict.fromkeys(COUNTS, 0)  # how rewards came
        self._place = {name: arm for arm, name in enumerate(self.arms)}
        self._width = int(getattr(policy, "context", 0))
        state = copy_fields(policy.init(len(self.arms), horizon=horizon, world=world))
        if not has_law(state):
            accepted = "a policy that says how likely its choices are: registered with outlook= or odds="
            raise InvalidValue("Agent", "policy", policy, accepted)
        self._start(state, 0)

    def _start(self, state: Any, time: int) -> None:
        self._past = Past(state, self.patience, self._width, time)
        self._key, self._coin, self._ids = (np.uint64(stream_key(self.seed, 0, name)) for name in (POLICY, FLOOR, IDS))
        self._all = np.ones(len(self.arms), dtype=np.bool_)
        self._odds, self._notes, self._no_context = np.zeros(len(self.arms)), np.zeros(3), np.zeros(0)
        self._choose = bound(
            choose, state, self._no_context, self._key, self._coin, 0, 0.5, self._all, self._odds, self._notes
        )
        self._saved: Path | None = None

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
        can = self._all if available is None else self._mask(available)
        shown = self._context(context)
        past = self._past
        past.catch_up()
        t = past.end
        name = self._id(t)
        if available is not None and not can.any():
            past.add(-1, shown, pending=False)
            return Decision(name, t, None, dict.fromkeys(self.arms, 0.0), None, None, False)
        notes = self._notes
        arm = self._choose(past.state, shown, self._key, self._coin, t, self.floor, can, self._odds, notes)
        past.add(arm, shown, pending=True)
        expected, width, explored = notes.tolist()
        return Decision(
            name, t, self.arms[arm], dict(zip(self.arms, self._odds.tolist(), strict=True)),
            None if math.isnan(expected) else expected, width if math.isfinite(width) else None, explored > 0.0,
        )  # fmt: skip

    def observe(self, decision: Decision | str, reward: float | None, *, arm: str | None = None) -> str:
        """Learn what came of a decision (or of its id): a reward, or None if this moment passed without one.

        `arm` is what was done in fact, if not what was decided. Returns how it was taken: "learnt"; "missing";
        "repaired", if it came after further decisions (the State is now as if it had come in time); "corrected", if it
        replaced what was said before; "repeated", if it was known already; "late", if it came after `patience`
        decisions (it is counted, and not learnt from).
        """
        t = self._step(decision)
        past = self._past
        value = math.nan if reward is None else _finite("observe", "reward", reward)
        told = None if arm is None else self._arm("observe", arm)
        if past.end - t > self.patience:
            return self._count("late")
        row = past.row(t)
        known, before, pending = int(past.arm[row]), float(past.reward[row]), bool(past.pending[row])
        played = known if told is None else told
        if played < 0 and reward is not None:
            raise InvalidValue("observe", "arm", None, f"one of {', '.join(self.arms)}: none was available at step {t}")
        same = played == known and (before == value or (math.isnan(before) and math.isnan(value)))
        in_time = t == past.time
        past.set(t, played, value)
        if same and not pending:
            return self._count("repeated")
        if not pending:
            return self._count("corrected")
        return self._count("missing" if reward is None else "learnt" if in_time else "repaired")

    def save(self, path: str | Path) -> Path:
        """Write the agent to a JSON file, whole or not at all. A file that is not this agent's is not overwritten."""
        path, past = Path(path), self._past
        identity = {
            "policy": self.policy.to_dict(), "arms": list(self.arms), "seed": self.seed, "floor": self.floor,
            "patience": self.patience, "horizon": self.horizon,
            "world": None if self.world is None else self.world.to_dict(),
        }  # fmt: skip
        if self._saved != path.resolve():
            _file.refuse_foreign(path, identity)
        rows = slice(0, past.row(past.end))
        values = {
            "larl": __version__, **identity, "counts": self.counts,
            "base": {"time": past.base.time, "state": _file.pack(past.base.state)},
            "past": {
                "arm": past.arm[rows].tolist(), "reward": _file.floats(past.reward[rows]),
                "pending": past.pending[rows].tolist(), "context": past.context[rows].tolist(),
            },
        }  # fmt: skip
        _file.write(path, values)
        self._saved = path.resolve()
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Agent":
        """The agent that `save` wrote; a file that was cut short, edited or is another's is refused."""
        values = _file.read(path)
        try:
            world = values["world"]
            agent = cls(
                from_dict(values["policy"]), values["arms"], values["seed"], floor=values["floor"],
                patience=values["patience"], horizon=values["horizon"],
                world=None if world is None else world_from_dict(world),
            )  # fmt: skip
            state = agent._past.state
            _file.unpack(values["base"]["state"], state)
            agent._start(state, values["base"]["time"])
            agent.counts = {name: int(values["counts"][name]) for name in COUNTS}
            agent._go_through(values["past"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InvalidFile(path, f"does not fit this larl ({values.get('larl')} wrote it): {error}") from error
        agent._saved = Path(path).resolve()
        return agent

    def _go_through(self, past: Mapping[str, Any]) -> None:
        """Decisions and rewards again, as they are known now."""
        for arm, reward, pending, context in zip(
            *(past[key] for key in ("arm", "reward", "pending", "context")), strict=True
        ):
            self._past.catch_up()
            self._past.add(arm, context, pending=pending)
            if reward is not None:
                self._past.set(self._past.end - 1, arm, reward)

    def _id(self, t: int) -> str:
        return f"{t}-{word_at(self._ids, t):016x}"

    def _step(self, decision: Decision | str) -> int:
        """The step of a decision of this agent."""
        name = decision.id if isinstance(decision, Decision) else decision
        first = name.partition("-")[0] if isinstance(name, str) else ""
        if not (first.isascii() and first.isdigit()) or int(first) >= self._past.end or self._id(int(first)) != name:
            raise InvalidValue("observe", "decision", name, "a Decision of this agent, or its id")
        return int(first)

    def _arm(self, owner: str, name: Any) -> int:
        if not isinstance(name, str) or name not in self._place:
            raise InvalidValue(owner, "arm", name, f"one of {', '.join(self.arms)}")
        return self._place[name]

    def _mask(self, available: Sequence[str]) -> Any:
        if isinstance(available, str) or not isinstance(available, Sequence):
            raise InvalidValue("decide", "available", available, f"a list of some of {', '.join(self.arms)}")
        mask = np.zeros(len(self.arms), dtype=np.bool_)
        for name in available:
            mask[self._arm("decide", name)] = True
        return mask

    def _context(self, context: Sequence[float] | None) -> Any:
        if context is None and self._width == 0:
            return self._no_context
        values = [] if context is None else [_finite("decide", f"context[{i}]", x) for i, x in enumerate(context)]
        if len(values) != self._width:
            accepted = (
                f"{self._width} numbers, as {self.policy} asks for" if self._width else f"none: {self.policy} has none"
            )
            raise InvalidValue("decide", "context", context, accepted)
        return np.array(values, dtype=float)

    def _count(self, how: str) -> str:
        self.counts[how] += 1
        return how


def _names(arms: Any) -> tuple[str, ...]:
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        return tuple(str(arm) for arm in range(whole(2, MOST_ARMS)("Agent", "arms", arms)))
    names = tuple(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else ()
    if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise InvalidValue("Agent", "arms", arms, "two or more different names, or how many there are")
    return names
