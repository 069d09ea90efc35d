-- FIND_MAX_STEP_HISTORY has each step of a search. TARGET_WORKERS equals TOTAL_TARGET_CONNECTIONS: the live payload calls
-- it so.

CREATE OR ALTER TABLE FIND_MAX_STEP_HISTORY (
    STEP_ID                   VARCHAR NOT NULL,
    RUN_ID                    VARCHAR NOT NULL,
    STEP_NUMBER               NUMBER(9,0) NOT NULL,
    REPETITION                NUMBER(9,0),
    STAGE                     VARCHAR,
    TOTAL_TARGET_CONNECTIONS  NUMBER(9,0) NOT NULL,
    TARGET_WORKERS            NUMBER(9,0),
    TARGET_QPS                FLOAT,
    STEP_START_TIME           TIMESTAMP_NTZ NOT NULL,
    STEP_END_TIME             TIMESTAMP_NTZ,
    STEP_DURATION_SECONDS     FLOAT,
    TOTAL_QUERIES             NUMBER(18,0),
    QPS                       FLOAT,
    P50_LATENCY_MS            FLOAT,
    P95_LATENCY_MS            FLOAT,
    P99_LATENCY_MS            FLOAT,
    ERROR_COUNT               NUMBER(18,0),
    ERROR_RATE                FLOAT,
    DROPPED_COUNT             NUMBER(18,0),
    QPS_VS_PRIOR_PCT          FLOAT,
    P95_VS_BASELINE_PCT       FLOAT,
    QUEUE_DETECTED            BOOLEAN,
    OUTCOME                   VARCHAR,
    STOP_REASON               VARCHAR,
    CREATED_AT                TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the steps of searches';
