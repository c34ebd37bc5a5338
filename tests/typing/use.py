"""Code of users, for type checkers; it is never run.

Every line with an ignore comment is a mistake that both mypy and pyright must report. Both report an ignore comment
that is not needed, so an unreported mistake fails `make check`.
"""

from typing import assert_type

import numpy as np
import pandas as pd
import polars as pl

import larl

# Required arguments are required.
larl.LARL()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.LatentAR()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.LatentVAR()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.LatentAR(gammas=[0.9], beta=[1.0, -1.0])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.JointNormal(mean=[0.0])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.ARUCB()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.AR2(0.9)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.LARLBIC()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.Rexp3()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.DiscountedUCB()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.DiscountedThompson()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.DiscountedBetaThompson()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.DiscountedKLUCB()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.SlidingWindowUCB()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.SlidingWindowThompson()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.SlidingWindowBetaThompson()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.SlidingWindowLinUCB(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.DiscountedLinUCB(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.worlds.Burden(larl.worlds.paper(1))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.worlds.LatentMarkov()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.worlds.Recorded(np.eye(2))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.worlds.LatentGLM()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.worlds.Seasonal()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
larl.study.Study(worlds={}, policies={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

# Types of arguments are checked, and specs are frozen.
larl.LARL(s="five")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
larl.LARL(s=5).s = 6  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
larl.LatentAR(gammas="abc", beta=[1.0], mu=[0.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
larl.compare([larl.UCB()], larl.worlds.paper(1), horizon=1, trials=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
larl.theory.regret_floor(larl.UCB())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
larl.Larl  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]

# Arguments with defaults can be omitted.
larl.UCB()
larl.Auto()
larl.Exp3()
larl.KalmanOracle()
larl.KalmanUCB()
larl.worlds.ChangePoints()
larl.worlds.LatentGLM(gammas=(0.9,), beta=(-1, 1), mu=(0, 0))

# Sequences and arrays of any kind of number.
array, matrix, integers = np.array([0.5]), np.eye(2), np.array([1, 3])
world = larl.LatentAR(gammas=array, beta=np.array([1, -1]), mu=np.zeros(2))
larl.LatentAR(gammas=[1, 0], beta=(1, -1), mu=np.zeros(2, dtype=np.float32))
larl.LatentVAR(gammas=[matrix], beta=matrix, mu=np.zeros(2), gamma0=np.zeros(2), cov_z=matrix)
larl.LatentVAR(gammas=np.zeros((1, 2, 2)), beta=[[1, 0], [0, 1]], mu=[0, 0], cov_z=[np.ones(2), np.ones(2)])
larl.JointNormal(np.zeros(2), matrix)
larl.worlds.Burden(world, effect=array)
larl.worlds.Contextual(world, eta=matrix)
larl.worlds.Seasonal(mu=array, amplitude=array, phase=array)
larl.worlds.LatentMarkov(transition=matrix, means=[[0, 1], [1, 0]], start=np.array([0.5, 0.5]))
larl.LatentThompson(transition=matrix, means=matrix, sigma_r=1)
larl.Auto(orders=integers)
larl.Exp3(reward_range=np.array([-5.0, 5.0]))
larl.Rexp3(20.0, reward_range=[-5.0, 5.0])

# Settings of a trial: names, mappings and objects.
larl.Deployed(larl.UCB(), allocation="smooth", min_probability={"0": 0.3}, update_every=5, warm_up=2)
larl.Deployed(larl.UCB(), allocation=larl.Allocation("smooth", slope=2), warm_up_probabilities={"0": 0.5, "1": 0.5})
larl.Agent(larl.UCB(), 2, allocation={"kind": "smooth"}, min_probability={"0": 0.3}, update_every="night")
larl.Cohort(larl.UCB(), 2, allocation=larl.Allocation("best"), warm_up=3)
assert_type(larl.Agent(larl.UCB(), 2).allocation, larl.Allocation)

# Modules are not Any.
assert_type(larl.theory.regret_floor(world), float)
assert_type(larl.worlds.HeavyTails(world).base.arms, int)
assert_type(larl.worlds.paper(1), larl.LatentAR)
result = larl.compare({"LARL": larl.LARL(s=1)}, {"one": world}, horizon=10, trials=10)
assert_type(result, larl.Result)
assert_type(larl.LARL(s=1).alpha, float)
agent = larl.Agent(larl.UCB(), arms=["off", "on"])
assert_type(agent.decide(), larl.Decision)
assert_type(agent.observe(agent.decide(), 1.0), larl.RewardStatus)
agent.observe(agent.decide(context=np.zeros(2)), np.float32(1.0))
agent.observe(agent.decide(context=[0.5, 1]), np.bool_(True))
larl.Cohort(larl.UCB(), 2).observe("x", np.int64(1))
assert_type(larl.gym.LatentAREnv, type[larl.gym.LatentAREnv])

# A log is a path or a table of any library that narwhals supports.
larl.diagnose(pl.DataFrame({"t": [0]}))
larl.diagnose(pl.LazyFrame({"t": [0]}))
larl.diagnose(pd.DataFrame({"t": [0]}))
larl.diagnose("log.csv")
larl.diagnose([1, 2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(larl.Agent.from_log(larl.UCB(), "pilot.csv"), larl.Agent)
assert_type(larl.Cohort.from_log(larl.UCB(), pl.DataFrame({"t": [0]}), unit="user", pooling="full"), larl.Cohort)
larl.Agent.from_log(larl.UCB(), [1, 2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
