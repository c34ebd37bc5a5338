"""Executors run the blocks of a comparison on threads of this process or on a Dask cluster."""

from larl.simulation.executors.base import Executor as Executor
from larl.simulation.executors.dask import DaskExecutor as DaskExecutor
from larl.simulation.executors.run import BlocksFailed as BlocksFailed
from larl.simulation.executors.run import run_blocks as run_blocks
from larl.simulation.executors.threads import ThreadExecutor as ThreadExecutor
