"""Does the page on assertions tell the truth: can each evaluator be written, and does it judge its samples so?"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import agentv
from agentv.spec.evaluators import check_evaluators
from agentv.spec.yaml import read_yaml

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGE = "\n".join((GUIDE / name).read_text(encoding="utf-8") for name in ("assertions.md", "assertions-of-libraries.md"))
NO_COUNTERPART = "no counterpart"
NAMES = {
    "promptfoo": """
        agent-rubric answer-relevance assert-set bleu classifier contains contains-all contains-any contains-html
        contains-json contains-sql contains-xml context-faithfulness context-recall context-relevance
        conversation-relevance cost equals factuality finish-reason g-eval gleu guardrails human icontains
        icontains-all icontains-any is-html is-json is-refusal is-sql is-valid-function-call
        is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric
        max-score meteor model-graded-closedqa model-graded-factuality moderation not- perplexity perplexity-score pi
        python regex rouge-n ruby search-rubric select-best similar similar:cosine similar:dot similar:euclidean
        skill-used starts-with tool-call-f1 trace-error-spans trace-span-count trace-span-duration
        trajectory:goal-success trajectory:step-count trajectory:tool-args-match trajectory:tool-sequence
        trajectory:tool-used webhook word-count
    """,
    "DeepEval": """
        AgentLoopDetectionMetric AgentResponsivenessMetric AnswerRelevancyMetric ArenaGEval ArgumentCorrectnessMetric
        AudioGlitchMetric AudioIntegrityMetric BiasMetric ContextualPrecisionMetric ContextualRecallMetric
        ContextualRelevancyMetric ConversationCompletenessMetric ConversationalDAGMetric ConversationalGEval
        ConversationalJevEval DAGMetric ExactMatchMetric FaithfulnessMetric GEval GoalAccuracyMetric
        HallucinationMetric ImageCoherenceMetric ImageEditingMetric ImageHelpfulnessMetric ImageReferenceMetric
        JevEval JsonCorrectnessMetric KnowledgeRetentionMetric MCPTaskCompletionMetric MCPUseMetric MisuseMetric
        MultiTurnMCPUseMetric NonAdviceMetric PIILeakageMetric PatternMatchMetric PlanAdherenceMetric
        PlanQualityMetric PromptAlignmentMetric RAGASAnswerRelevancyMetric RAGASContextualEntitiesRecall
        RAGASContextualPrecisionMetric RAGASContextualRecallMetric RAGASFaithfulnessMetric RoleAdherenceMetric
        RoleViolationMetric SpeechIntelligibilityMetric StepEfficiencyMetric SummarizationMetric TaskCompletionMetric
        TextToImageMetric ToolCorrectnessMetric ToolPermissionMetric ToolUseMetric TopicAdherenceMetric ToxicityMetric
        TranscriptionAccuracyMetric TurnContextualPrecisionMetric TurnContextualRecallMetric
        TurnContextualRelevancyMetric TurnFaithfulnessMetric TurnRelevancyMetric TurnTakingNaturalnessMetric
        VoiceConsistencyMetric VoiceNaturalnessMetric VoiceReliabilityMetric
    """,
    "agentevals and openevals": """
        create_code_llm_as_judge create_embedding_similarity_evaluator create_graph_trajectory_llm_as_judge
        create_json_match_evaluator create_llm_as_judge create_mypy_evaluator create_pyright_evaluator
        create_trajectory_llm_as_judge create_trajectory_match_evaluator exact_match graph_trajectory_strict_match
        levenshtein_distance
    """,
    "Google ADK": """
        final_response_match_v2 hallucinations_v1 inference_call_count_v1 invocation_duration_v1
        multi_turn_task_success_v1 multi_turn_tool_use_quality_v1 multi_turn_trajectory_quality_v1
        per_turn_user_simulator_quality_v1 response_evaluation_score response_match_score
        rubric_based_final_response_quality_v1 rubric_based_multi_turn_trajectory_quality_v1
        rubric_based_tool_use_quality_v1 safety_v1 token_usage_v1 tool_call_count_v1 tool_trajectory_avg_score
    """,
    "Azure AI evaluation": """
        AzureOpenAILabelGrader AzureOpenAIPythonGrader AzureOpenAIScoreModelGrader AzureOpenAIStringCheckGrader
        AzureOpenAITextSimilarityGrader BleuScoreEvaluator CodeVulnerabilityEvaluator CoherenceEvaluator
        ContentSafetyEvaluator DocumentRetrievalEvaluator F1ScoreEvaluator FluencyEvaluator GleuScoreEvaluator
        GroundednessEvaluator GroundednessProEvaluator HateUnfairnessEvaluator IndirectAttackEvaluator
        IntentResolutionEvaluator MeteorScoreEvaluator ProtectedMaterialEvaluator QAEvaluator RelevanceEvaluator
        ResponseCompletenessEvaluator RetrievalEvaluator RougeScoreEvaluator SelfHarmEvaluator SexualEvaluator
        SimilarityEvaluator TaskAdherenceEvaluator ToolCallAccuracyEvaluator UngroundedAttributesEvaluator
        ViolenceEvaluator _TaskCompletionEvaluator _TaskNavigationEfficiencyEvaluator _ToolCallSuccessEvaluator
        _ToolInputAccuracyEvaluator _ToolOutputUtilizationEvaluator _ToolSelectionEvaluator
    """,
    "ragas": """
        AgentGoalAccuracy AgentGoalAccuracyWithReference AgentGoalAccuracyWithoutReference AnswerAccuracy
        AnswerCorrectness AnswerRelevancy AspectCritic BleuScore CHRFScore ContextEntityRecall ContextPrecision
        ContextPrecisionWithReference ContextPrecisionWithoutReference ContextRecall ContextRelevance
        ContextUtilization DataCompyScore DiscreteMetric DomainSpecificRubrics ExactMatch FactualCorrectness
        Faithfulness IDBasedContextPrecision IDBasedContextRecall InstanceSpecificRubrics MultiModalFaithfulness
        MultiModalRelevance NoiseSensitivity NonLLMContextPrecisionWithReference NonLLMContextRecall
        NonLLMStringSimilarity NumericMetric QuotedSpansAlignment RankingMetric ResponseGroundedness RougeScore
        RubricsScoreWithReference RubricsScoreWithoutReference SQLSemanticEquivalence SemanticSimilarity
        SimpleCriteriaScore StringPresence SummaryScore ToolCallAccuracy ToolCallF1 TopicAdherence discrete_metric
        numeric_metric
    """,
    "Mastra": """
        checks.calledTool checks.didNotCall checks.equals checks.excludes checks.includes checks.matches
        checks.maxToolCalls checks.noToolErrors checks.similarity checks.toolOrder checks.usedNoTools
        createAnswerRelevancyScorer createAnswerSimilarityScorer createBiasScorer createCompletenessScorer
        createContentSimilarityScorer createContextPrecisionScorer createContextRecallScorer
        createContextRelevanceScorerLLM createFaithfulnessScorer createHallucinationScorer createKeywordCoverageScorer
        createMultiTurnJudgeScorer createNoiseSensitivityScorerLLM createPromptAlignmentScorerLLM createRubricScorer
        createSummarizationScorer createTextualDifferenceScorer createToneScorer createToolCallAccuracyScorerCode
        createToolCallAccuracyScorerLLM createToxicityScorer createTrajectoryAccuracyScorerCode
        createTrajectoryAccuracyScorerLLM createTrajectoryScorerCode
    """,
    "pydantic-evals": """
        ArgumentCorrectness ConfusionMatrixEvaluator Contains Equals EqualsExpected GEval HasMatchingSpan IsInstance
        KolmogorovSmirnovEvaluator LLMJudge MaxDuration MaxModelRequests MaxToolCalls PrecisionRecallEvaluator
        ROCAUCEvaluator ToolCorrectness TrajectoryMatch
    """,
    "Inspect": """
        accuracy() aggregate() answer("letter") answer("line") answer("word") at_least() bootstrap_stderr() cascade()
        categorical() choice() ci() ci_wilson() collect_score() exact() f1() frequency() grouped() includes()
        krippendorff_alpha() majority_score() match() math() max_score() mean() mean_score() median_score()
        mode_score() model_graded_fact() model_graded_qa() multi_scorer() pass_at() pass_k() pattern() perplexity()
        perplexity_per_seq() perplexity_per_token() precomputed_scores() std() stderr() target_perplexity() var()
    """,
}
"""Names in the packages, in the versions that the page gives."""


class Row(NamedTuple):
    """A line of a tool's table."""

    tool: str
    there: str
    here: str
    note: str

    @property
    def names(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.there)

    @property
    def evaluator(self) -> Any:
        """The evaluator in the second column, or `None`."""
        return None if self.here == NO_COUNTERPART else read_yaml(self.here.strip("`").encode()).data

    @property
    def is_run_here(self) -> bool:
        """Neither a program that is not here nor a model decides."""
        return self.evaluator is not None and self.evaluator["type"] not in ("code", "llm_judge", "trajectory_judge")

    @property
    def sample(self) -> Any:
        """Return a passing and a failing reply, by the whole first column or by its first name."""
        known = SAMPLES[self.tool]
        return known.get(self.there.replace("`", "")) or known.get(self.names[0])

    def __str__(self) -> str:
        return f"{self.tool}: {self.there.replace('`', '')[:60]}"


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def table(heading: str) -> list[list[str]]:
    lines = [line for line in section(heading).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def samples(tool: str) -> dict[str, Any]:
    (block,) = re.findall(r"^```yaml samples\n(.*?)^```$", section(tool), re.MULTILINE | re.DOTALL)
    document = read_yaml(block.encode())
    assert document.warnings == ()
    return dict(document.data)


SAMPLES = {tool: samples(tool) for tool in NAMES}
ROWS = [Row(tool, *cells) for tool in NAMES for cells in table(tool)]
WRITTEN = [row for row in ROWS if row.evaluator is not None]
REASONS = [cells[0] for cells in table("Why something has no counterpart")]


def reply(said: Any) -> dict[str, Any]:
    """A sample as an agent sends it: an answer, a reply, or calls; each is a message unless in an inner list."""
    if isinstance(said, str):
        return {"text": said}
    if "calls" not in said:
        return dict(said)
    turns = [call if isinstance(call, list) else [call] for call in said["calls"]]
    messages = [{"role": "assistant", "tool_calls": calls} for calls in turns]
    return {"output_messages": [*messages, {"role": "assistant", "content": said.get("text", "Done.")}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The module of the functions of the page."""
    (code,) = re.findall(r"^```python checks\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    folder = tmp_path_factory.mktemp("assertions")
    (folder / "checks.py").write_text(code, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_evaluator_can_be_written(row: Row) -> None:
    (checked,) = check_evaluators([row.evaluator])
    assert checked.warnings == ()


@pytest.mark.parametrize("row", [row for row in WRITTEN if row.is_run_here], ids=str)
def test_samples_get_the_verdict_that_the_page_gives(row: Row, folder: str) -> None:
    assert list(row.sample) == ["pass", "fail"]
    for verdict, said in row.sample.items():
        result = agentv.score(reply(said), [row.evaluator], root=folder)
        (found,) = result.evaluators
        assert (found.status, result.warnings) == (verdict, ()), (said, found.hits, found.misses, found.details)


@pytest.mark.parametrize("tool", NAMES)
def test_every_sample_belongs_to_a_row(tool: str) -> None:
    rows = [row for row in WRITTEN if row.tool == tool and row.is_run_here]
    known = {name for row in rows for name in (row.there.replace("`", ""), row.names[0])}
    assert [name for name in SAMPLES[tool] if name not in known] == []
    assert len(SAMPLES[tool]) == len(rows)


@pytest.mark.parametrize("tool", NAMES)
def test_every_name_of_a_tool_is_there(tool: str) -> None:
    known = {name for row in ROWS if row.tool == tool for name in row.names}
    assert [name for name in NAMES[tool].split() if name not in known] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row not in WRITTEN], ids=str)
def test_what_has_no_counterpart_says_why(row: Row) -> None:
    reason = row.note.partition(":")[0]
    assert row.note
    assert reason in REASONS or not reason.startswith(("needs", "is about"))


def test_no_row_stands_twice() -> None:
    rows = [(row.tool, row.there) for row in ROWS]
    assert sorted(set(rows)) == sorted(rows)


def test_every_tool_has_a_section() -> None:
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert sections == ["Why something has no counterpart", *NAMES]


def test_every_link_leads_somewhere() -> None:
    for target, anchor in re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", PAGE):
        text = (GUIDE / target).read_text(encoding="utf-8")
        headings = [re.sub(r"[^\w -]", "", title).lower() for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
        assert not anchor or anchor in [heading.replace(" ", "-") for heading in headings], (target, anchor)


def test_every_block_of_the_page_is_run() -> None:
    fences = re.findall(r"^```\w.*$", PAGE, re.MULTILINE)
    assert sorted(fences) == ["```python checks", *["```yaml samples"] * len(NAMES)]
