"""A client of the decision service, built on the standard library only."""

from larl.client.client import Client as Client
from larl.client.models import Closed as Closed
from larl.client.models import Decided as Decided
from larl.client.models import Delivered as Delivered
from larl.client.models import Health as Health
from larl.client.models import Issue as Issue
from larl.client.models import Outcome as Outcome
from larl.client.models import PolicyChange as PolicyChange
from larl.client.models import Resolved as Resolved
from larl.client.models import Reward as Reward
from larl.client.models import Study as Study
from larl.client.models import Taken as Taken
from larl.client.models import Unit as Unit
from larl.client.offline_queue import Fallback as Fallback
from larl.client.transport import RequestRefused as RequestRefused
from larl.client.transport import ServiceUnreachable as ServiceUnreachable
