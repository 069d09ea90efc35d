-- WORKER_METRICS_SNAPSHOTS has what each run worker reported each second. Counters are cumulative over the phase.

CREATE OR ALTER TABLE WORKER_METRICS_SNAPSHOTS (
    RUN_ID              VARCHAR NOT NULL,
    WORKER_ID           VARCHAR NOT NULL,
    TICK                NUMBER(18,0) NOT NULL,
    TEST_ID             VARCHAR,
    WORKER_GROUP_ID     NUMBER(9,0),
    NODE_ID             VARCHAR,
    TIMESTAMP           TIMESTAMP_NTZ,
    ELAPSED_SECONDS     FLOAT,
    PHASE               VARCHAR,
    STATUS              VARCHAR,
    QPS                 FLOAT,
    P50_LATENCY_MS      FLOAT,
    P95_LATENCY_MS      FLOAT,
    P99_LATENCY_MS      FLOAT,
    AVG_LATENCY_MS      FLOAT,
    MAX_LATENCY_MS      FLOAT,
    TOTAL_QUERIES       NUMBER(18,0),
    READ_COUNT          NUMBER(18,0),
    WRITE_COUNT         NUMBER(18,0),
    ERROR_COUNT         NUMBER(18,0),
    ACTIVE_CONNECTIONS  NUMBER(9,0),
    TARGET_CONNECTIONS  NUMBER(9,0),
    CPU_PCT             FLOAT,
    MEMORY_PCT          FLOAT,
    CUSTOM_METRICS      VARIANT
) COMMENT = 'Loadstone table 3: each second of each run worker';
