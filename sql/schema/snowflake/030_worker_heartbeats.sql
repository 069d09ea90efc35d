-- WORKER_HEARTBEATS has the last state of each run worker.

CREATE OR ALTER TABLE WORKER_HEARTBEATS (
    RUN_ID           VARCHAR NOT NULL,
    WORKER_ID        VARCHAR NOT NULL,
    WORKER_GROUP_ID  NUMBER(9,0),
    NODE_ID          VARCHAR,
    TEST_ID          VARCHAR,
    STATUS           VARCHAR,
    PHASE            VARCHAR,
    LAST_HEARTBEAT   TIMESTAMP_NTZ,
    ERROR            VARCHAR,
    CREATED_AT       TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the run workers of runs';
