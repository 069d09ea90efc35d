-- TEST_LOGS has the log of each run, in the order of SEQ.

CREATE OR ALTER TABLE TEST_LOGS (
    LOG_ID      VARCHAR NOT NULL,
    RUN_ID      VARCHAR NOT NULL,
    SEQ         NUMBER(18,0),
    TEST_ID     VARCHAR,
    WORKER_ID   VARCHAR,
    LEVEL       VARCHAR NOT NULL,
    MESSAGE     VARCHAR NOT NULL,
    DETAILS     VARIANT,
    TIMESTAMP   TIMESTAMP_NTZ NOT NULL,
    CREATED_AT  TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the logs of runs';
