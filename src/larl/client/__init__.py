"""A client of the decision service, built on the standard library only."""

from larl.client.client import Client as Client
from larl.client.models import ClosedStudy as ClosedStudy
from larl.client.models import DecisionRecord as DecisionRecord
from larl.client.models import DeliveryReceipt as DeliveryReceipt
from larl.client.models import Health as Health
from larl.client.models import HistoryReceipt as HistoryReceipt
from larl.client.models import Issue as Issue
from larl.client.models import PolicyChange as PolicyChange
from larl.client.models import ResolvedIssue as ResolvedIssue
from larl.client.models import RewardReceipt as RewardReceipt
from larl.client.models import RewardRecord as RewardRecord
from larl.client.models import ServiceDecision as ServiceDecision
from larl.client.models import StudyInfo as StudyInfo
from larl.client.models import UnitInfo as UnitInfo
from larl.client.offline_queue import FallbackDecision as FallbackDecision
from larl.client.transport import RequestRefused as RequestRefused
from larl.client.transport import ServiceUnreachable as ServiceUnreachable
