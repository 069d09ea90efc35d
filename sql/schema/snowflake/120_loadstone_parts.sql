-- LOADSTONE_PARTS has a row for each part whose executions are in QUERY_EXECUTIONS. Both are written in one transaction.

CREATE OR ALTER TABLE LOADSTONE_PARTS (
    RUN_ID     VARCHAR NOT NULL,
    PART       VARCHAR NOT NULL,
    SHA256     VARCHAR NOT NULL,
    ROW_COUNT  NUMBER(18,0) NOT NULL
) COMMENT = 'Loadstone table 3: which parts of runs are in QUERY_EXECUTIONS';
