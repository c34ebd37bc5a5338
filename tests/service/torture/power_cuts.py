"""Power cuts: files that could be left after one, made from the log of a service's writes to SQLite, and checked.

    python -m tests.service.torture.power_cuts [--images 300] [--seed 0] [--json FILE]

A service is started, loaded, stopped, killed and started again while its writes are logged.
"""

import argparse
import json
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from larl.service.storage.database import StorageError
from tests.service.host import Host
from tests.service.processes import Server
from tests.service.retrying_client import STUDIES, RetryingClient
from tests.service.torture.checks import Findings, Place, Table, check, progress
from tests.service.torture.disk import MODES, Change, Disk, cut
from tests.service.torture.load import create_studies, loading, wait_for

CLIENTS = 4
ENDINGS = (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
STARTS = 10  # one of this many images is also served by a process


class Recording(NamedTuple):
    """The log of a disk, all acknowledged responses with their place in the log, and all requests."""

    changes: list[Change]
    acknowledged: dict[Place, tuple[float, bytes]]
    sent: set[Place]

    def until(self, position: float) -> dict[Place, bytes]:
        """Return the responses that were acknowledged before a position of the log."""
        return {place: content for place, (at, content) in self.acknowledged.items() if at <= position}


def record(disk: Disk, folder: Path, responses: int, seed: int, endings: Sequence[int] = ENDINGS) -> Recording:
    """Log a service that is started, loaded and ended by each of these signals."""
    clients: list[RetryingClient] = []
    server = Server(disk.storage, folder / "log", "--no-auth", "--timeout", "20", **disk.environment)
    with server:
        create_studies(server.port)
        for number, ending in enumerate(endings):
            if number:
                server.start()
                server.ready()
            with loading(new := [client(server, disk, f"c{number}{i}", seed) for i in range(CLIENTS)]):
                wait_for(new, responses)
            clients += new
            server.end(ending)
    return recording(disk, clients)


def client(server: Server, disk: Disk, name: str, seed: int) -> RetryingClient:
    """Return a client that notes the position in the log after each response."""
    return RetryingClient(name, [server.port], seed, note=disk.position)


def recording(disk: Disk, clients: list[RetryingClient]) -> Recording:
    """Return what was recorded so far."""
    acknowledged = {
        place: (client.noted[place], content) for client in clients for place, content in client.acknowledged.items()
    }
    return Recording(disk.changes(), acknowledged, {place for client in clients for place in client.sent})


def check_images(recorded: Recording, images: int, seed: int, folder: Path) -> dict[str, Findings]:
    """Check images at random positions, half of them just after a response; return the findings by mode."""
    generator = random.Random(seed)
    findings = {mode: Findings() for mode in MODES}
    after_responses = sorted(position for position, _ in recorded.acknowledged.values())
    for number in range(images):
        mode, is_after_response = ("lost", "mixed", "mixed", "kept")[number % 4], number // 4 % 2 == 0
        anywhere = generator.choice(recorded.changes).end
        position = int(generator.choice(after_responses)) if is_after_response else anywhere
        image = folder / f"image{number}"
        cut(recorded.changes, position, mode, generator, image)
        before = findings[mode].wrong
        findings[mode].runs += 1
        _check_image(image, recorded.until(position), recorded.sent, findings[mode], serve=number % STARTS == 0)
        if findings[mode].wrong > before:
            findings[mode].examples.append(f"image {number}, {mode}, position {position} of the log")
        shutil.rmtree(image)
        if (number + 1) % 50 == 0:
            progress(f"{number + 1} of {images} images")
    return findings


def _check_image(
    image: Path, acknowledged: Mapping[Place, bytes], sent: set[Place], findings: Findings, serve: bool
) -> None:
    storage = f"sqlite:///{image / 'study.db'}"
    if serve:
        try:
            with Server(storage, image / "log", "--no-auth") as server:
                server.end(signal.SIGTERM)
        except RuntimeError as error:
            findings.corrupt += 1
            findings.examples.append(str(error))
    if serve or (image / "study.db").exists():
        continue_serving(storage, acknowledged, findings)
        more = {(name, kind, "after") for name in STUDIES for kind in ("decision", "reward")}
        check(storage, acknowledged, sent | more, findings)
    else:
        findings.acknowledged += len(acknowledged)
        findings.lost += len(acknowledged)


def continue_serving(storage: str, acknowledged: Mapping[Place, bytes], findings: Findings) -> None:
    """Repeat an acknowledged request and make one more decision in each study; there must be no issue."""
    try:
        host = Host(storage)
    except StorageError as error:
        findings.corrupt += 1
        findings.examples.append(str(error))
        return
    try:
        for study in STUDIES:
            decisions = [place for place in acknowledged if place[:2] == (study, "decision")]
            for place in decisions[-1:]:
                unit = json.loads(acknowledged[place])["unit"]
                findings.changed += host.decide(unit, place[2], study) != json.loads(acknowledged[place])
                decision = host.decide(unit, "after", study)
                host.reward(decision["id"], "after", 1.0)
                findings.corrupt += len(host.issues(study))
    except Exception as error:
        findings.corrupt += 1
        findings.examples.append(f"the service does not go on: {type(error).__name__}: {error}")
    finally:
        host.close()


def run(
    images: int,
    responses: int,
    seed: int,
    folder: Path,
    *,
    sync: bool = True,
    endings: Sequence[int] = ENDINGS,
) -> dict[str, Findings]:
    """Record a service and check images of its disk."""
    disk = Disk(folder, sync=sync)
    recorded = record(disk, folder, responses, seed, endings)
    kinds = Counter(change.kind for change in recorded.changes)
    progress(f"{len(recorded.acknowledged)} responses; {kinds['W']} writes, {kinds['S']} syncs")
    return check_images(recorded, images, seed, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--responses", type=int, default=400, help="before each end of the service")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        findings = run(options.images, options.responses, options.seed, Path(folder))
    table = image_table("Power cuts (SQLite)", findings)
    table.finish(options.json)


def image_table(title: str, findings: Mapping[str, Findings]) -> Table:
    """Return a table of findings by mode."""
    columns = ("changes without a sync", "images", "acknowledged", "lost", "changed", "gaps", "damaged", "not replayed")
    table = Table(title, columns)
    for mode, found in findings.items():
        counts = (found.lost, found.changed, found.gaps, found.corrupt, found.not_replayed)
        table.rows.append((mode, found.runs, found.acknowledged, *counts))
        table.failures += found.examples if found.wrong else []
    return table


if __name__ == "__main__":
    main()
