"""Agents and cohorts that are saved to files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from larl._core.validation import path_like
from larl.live import files
from larl.live.streams import Streams
from larl.live.warm_start import WarmStart


class SavedPolicy(WarmStart):
    """A policy that can be saved and loaded."""

    _kind: ClassVar[str]  # of its files
    _saved: Path | None = None  # the file to which it was saved, or from which it was loaded

    def __reduce__(self) -> tuple[Any, ...]:  # compiled functions have the addresses of its arrays
        values = self.pack() | {"policy": self.policy}  # not as JSON: it need not be registered
        return _unpack, (type(self), values, self._streams.__wrapped__, self._saved)

    def save(self, path: str | Path) -> Path:
        """Write it to a JSON file. The write is atomic: a crash leaves the old file or the new one.

        Parameters
        ----------
        path : str or Path
            The file. It must not exist, or be an older file of the same agent or cohort.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidValue, InvalidFile
            If the file has other settings, or is not the file of an agent or a cohort.
        PolicyError
            If the policy's State contains nan.

        Examples
        --------
        >>> import larl, tempfile
        >>> agent = larl.Agent(larl.UCB(), arms=["off", "on"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     loaded = larl.Agent.load(agent.save(f"{folder}/agent.json"))
        >>> loaded
        Agent(UCB(alpha=1.0, ridge=1.0, standardise=False), arms=['off', 'on'], seed=0, t=0)
        """
        path = Path(path)
        self._refuse_nan(*self._states(), *(update.state for update in self._schedule.updates.values()))
        if self._saved != path.resolve():
            files.refuse_other_file(path, self._settings(), self._kind)
        files.write(path, self.pack(), self._kind)
        self._saved = path.resolve()
        return path

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that ``save`` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Agent or Cohort
            It decides as the saved one would have.

        Raises
        ------
        InvalidFile
            If the file is missing, incomplete, edited or not the file of an agent or a cohort.
        """
        path = path_like(f"{cls.__name__}.load", "path", path)
        values = files.read(path, cls._kind)
        with files.errors_as_invalid_file(path, values):
            loaded = cls.unpack(values)
        loaded._saved = Path(path).resolve()
        return loaded

    def _states(self) -> list[Any]:
        """The States of all units, without catching up."""
        raise NotImplementedError

    def pack(self) -> dict[str, Any]:
        """The agent or cohort as JSON types."""
        raise NotImplementedError

    @classmethod
    def unpack(cls, values: Mapping[str, Any]) -> Self:
        """The agent or cohort that `pack` returned as JSON types."""
        raise NotImplementedError


def _unpack(kind: type[SavedPolicy], values: Mapping[str, Any], streams: Streams, saved: Path | None) -> SavedPolicy:
    """The agent or cohort that was pickled or copied."""
    result = kind.unpack(values)
    result.use_streams(streams)
    result._saved = saved
    return result
