"""Simulated comparisons of policies.

A trial passes through `compare` → an executor (`executors`) → `run_block` (`tasks`) → `run_trials` (`engine`) → the
kernels of world and policy, and its arrays come back in a `Result`.
"""
