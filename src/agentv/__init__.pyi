# The public names of the package: the only list of them. Type checkers read it, and so does `__init__.py`, which
# imports each name when it is first used. One name a line.

from agentv.api.compare import compare as compare
from agentv.api.evaluate import Execution as Execution
from agentv.api.evaluate import aevaluate as aevaluate
from agentv.api.evaluate import evaluate as evaluate
from agentv.api.mutation import mutate as mutate
from agentv.api.run_store import RunStore as RunStore
from agentv.api.run_store import open_store as open_store
from agentv.api.score import Scorer as Scorer
from agentv.api.score import ascore as ascore
from agentv.api.score import assert_trajectory as assert_trajectory
from agentv.api.score import explain as explain
from agentv.api.score import score as score
from agentv.api.score import score_many as score_many
from agentv.api.traces import trace_from_messages as trace_from_messages
from agentv.errors import AgentVError as AgentVError
from agentv.errors import DamagedRunError as DamagedRunError
from agentv.errors import EvaluationError as EvaluationError
from agentv.errors import FormatError as FormatError
from agentv.errors import OutputError as OutputError
from agentv.errors import PluginError as PluginError
from agentv.errors import Problem as Problem
from agentv.errors import ProviderError as ProviderError
from agentv.errors import SpecError as SpecError
from agentv.errors import StoreError as StoreError
from agentv.evaluators.base import EvaluatorBase as EvaluatorBase
from agentv.evaluators.python import evaluator as evaluator
from agentv.formats.adk import from_adk as from_adk
from agentv.formats.adk import to_adk as to_adk
from agentv.formats.ai_sdk import from_mastra as from_mastra
from agentv.formats.ai_sdk import to_mastra as to_mastra
from agentv.formats.openai import from_openai as from_openai
from agentv.formats.openai import to_azure as to_azure
from agentv.formats.openai import to_openai as to_openai
from agentv.formats.reader import decode_response as decode_response
from agentv.formats.reader import decode_response_json as decode_response_json
from agentv.model.comparison import Comparison as Comparison
from agentv.model.conversation import Message as Message
from agentv.model.conversation import ToolCall as ToolCall
from agentv.model.conversation import TraceEvent as TraceEvent
from agentv.model.conversation import TraceSummary as TraceSummary
from agentv.model.mutation import MutationReport as MutationReport
from agentv.model.request import Case as Case
from agentv.model.request import Request as Request
from agentv.model.request import Scope as Scope
from agentv.model.response import ProviderResponse as ProviderResponse
from agentv.model.response import ResponseError as ResponseError
from agentv.model.response import TokensUsage as TokensUsage
from agentv.model.response import Unread as Unread
from agentv.model.results import EvaluatorResult as EvaluatorResult
from agentv.model.results import ResultRecord as ResultRecord
from agentv.model.results import RunResult as RunResult
from agentv.model.results import Summary as Summary
from agentv.model.stored import Run as Run
from agentv.protocols import Context as Context
from agentv.protocols import Evaluator as Evaluator
from agentv.protocols import Provider as Provider
from agentv.protocols import ProviderSession as ProviderSession
from agentv.protocols import Reporter as Reporter
from agentv.protocols import Store as Store
from agentv.providers.base import ProviderBase as ProviderBase
from agentv.providers.base import failure as failure
from agentv.run.options import RunOptions as RunOptions

__version__: str
__all__: list[str]  # noqa: PYI035 - all names above
