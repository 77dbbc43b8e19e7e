-- Lists of an execution in plan order, and by case; of runs with and without a result, so that a result changes neither.
CREATE INDEX runs_in_order ON runs (execution, position) WHERE superseded = 0;
CREATE INDEX runs_of_cases ON runs (execution, eval_id, case_id, target, persona_id, position) WHERE superseded = 0;
