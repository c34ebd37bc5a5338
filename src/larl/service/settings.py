"""Settings of a running service."""

from dataclasses import dataclass

from larl.service.core.batch import MEMORY, TIMEOUT


@dataclass(frozen=True)
class Settings:
    """How a service runs."""

    auth: bool = True  # require tokens
    timeout: float = TIMEOUT  # seconds that a policy may take
    memory: int = MEMORY  # bytes for agents
    rate: float = 500.0  # requests per second that a token may make
    read_rate: float = 10_000.0  # rows per second that a token may read
    request_timeout: float = 10.0  # seconds in which a client has to send a request
    max_body: int = 64 * 1024  # bytes
    alert_url: str | None = None
    alert_command: str | None = None
    behind_tls: bool = False  # the page's cookie is only sent over TLS
    accept_loss: bool = False  # serve an SQLite file that has lost its last events
    proxy: str | None = None  # address of the reverse proxy, whose X-Forwarded-For is used
