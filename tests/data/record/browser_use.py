"""browser-use: the history of an agent, built with its types; a browser is not run."""

import json
from typing import Any

from browser_use.agent.views import ActionResult, AgentHistory, AgentHistoryList, AgentOutput, StepMetadata
from browser_use.browser.views import BrowserStateHistory
from browser_use.tools.registry.views import ActionModel
from pydantic import BaseModel, create_model
from record.common import *

record = Recorder("browser_use", "browser-use", made_by=TYPES)


class Visit(BaseModel):
    """The input of the action `navigate`."""

    url: str


class Done(BaseModel):
    """The input of the action `done`."""

    text: str
    success: bool = True


Action = create_model("Action", __base__=ActionModel, navigate=(Visit | None, None), done=(Done | None, None))
Output = AgentOutput.type_with_custom_actions(Action)


def step(number: int, action: Any, result: ActionResult) -> AgentHistory:
    state = BrowserStateHistory(
        url="https://example.com", title="Weather", tabs=[], interacted_element=[None], screenshot_path=None
    )
    said = Output(evaluation_previous_goal="", memory="", next_goal="Find the weather.", action=[action])
    when = StepMetadata(step_start_time=1.0, step_end_time=2.0, step_number=number)
    return AgentHistory(model_output=said, result=[result], state=state, metadata=when)


history = AgentHistoryList(
    history=[
        step(1, Action(navigate=Visit(url="https://example.com")), ActionResult(extracted_content="18 C")),
        step(2, Action(done=Done(text=ANSWER)), ActionResult(is_done=True, success=True, extracted_content=ANSWER)),
    ]
)
found = expect(
    [
        call("navigate", {"url": "https://example.com"}, output="18 C"),
        call("done", {"text": ANSWER, "success": True}, output=ANSWER),
    ],
    ANSWER,
)
shown = json.loads(json.dumps(history.model_dump(), default=str))
record.save("call-history", "call", "(await agent.run()).model_dump()", shown, found)
