"""The scratch folder of a job, where one process works at a time."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import IO, Any

from fastrbhc._optional import require
from fastrbhc.distributed._runners import Runner
from fastrbhc.distributed._scratch import TemporaryFolder, remove_folder, sweep

try:
    import fcntl
except ImportError:  # Windows: two jobs in one folder are not noticed
    fcntl = None  # type: ignore[assignment]

# Blocks of rows as they came, rows by cell, and merges.
_PARTS = ("blocks", "rows", "stages")
_LOCK = "job.lock"


class JobFolder:
    """The folder in which a job keeps what does not fit into memory.

    A temporary one is removed at the end, unless a tree is left in it. In one that the caller has
    named, finished work stays for the next call.

    Parameters
    ----------
    path : str or Path, optional
        A folder that is new, empty or that of an earlier call; without one, a temporary one.
    runner : Runner
        Whose workers have to see the folder.
    """

    def __init__(self, path: str | Path | None, runner: Runner) -> None:
        require("pyarrow.parquet", "a tree on disk")
        self.owner = TemporaryFolder() if path is None else None
        self.path = self.owner.path if self.owner else Path(str(path)).absolute()
        self._runner = runner
        self._kept = False
        self._lock: IO[Any] | None = None

    def __enter__(self) -> JobFolder:
        self.path.mkdir(parents=True, exist_ok=True)
        if any(self.path.iterdir()) and not (self.path / _LOCK).exists():
            raise ValueError(
                f"the folder {self.path} is not empty, and not the scratch folder of such a job: "
                "name a new one"
            )
        self._lock = _locked(self.path / _LOCK)
        try:
            sweep(self.path)
            for part in _PARTS:
                (self.path / part).mkdir(exist_ok=True)
            self._runner.check_shared(self.path / _LOCK, _signed(self._lock))
        except BaseException:
            self._leave(failed=True)
            raise
        return self

    def keep(self) -> None:
        """What a finished tree needs stays; the rows are not needed any more."""
        self._kept = True
        if self.owner is not None:
            for name in ("blocks", "rows"):
                remove_folder(self.path / name)

    def __exit__(self, kind: object, *_: object) -> None:
        self._leave(failed=kind is not None)

    def _leave(self, failed: bool) -> None:
        if failed and not (self.path / "job.json").exists():
            # Nothing is there that another call could go on with.
            for part in _PARTS:
                remove_folder(self.path / part)
            (self.path / _LOCK).unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()
        if self.owner is not None and not self._kept:
            self.owner.remove()


def _locked(path: Path) -> IO[Any]:
    """The open file of a lock; that of a process that has died is free."""
    file = path.open("a+", encoding="utf-8")
    if fcntl is None:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ValueError(
            f"another call is working in the folder {path.parent}: wait for its end, or name "
            "another folder as scratch="
        ) from None
    except OSError:  # a file system without locks
        pass
    return file


def _signed(file: IO[Any]) -> str:
    """A text that only this file has, and has from now on."""
    text = secrets.token_hex(8)
    file.truncate(0)
    file.write(text)
    file.flush()
    return text
