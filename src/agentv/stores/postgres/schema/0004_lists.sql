-- Lists of an execution in plan order. By case, the server groups in memory: names may be too long for its indexes.
CREATE INDEX runs_in_order ON runs (execution, position) WHERE superseded = 0;
