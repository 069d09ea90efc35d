-- QUERY_EXECUTION_ARTIFACTS has the parts of the record of each run, as the results folder or S3 has them.

CREATE OR ALTER TABLE QUERY_EXECUTION_ARTIFACTS (
    ARTIFACT_ID             VARCHAR NOT NULL,
    RUN_ID                  VARCHAR NOT NULL,
    TEST_ID                 VARCHAR,
    WORKER_ID               VARCHAR,
    KIND                    VARCHAR,
    NAME                    VARCHAR,
    ARTIFACT_SIZE_BYTES     NUMBER(18,0),
    ARTIFACT_CHECKSUM       VARCHAR,
    ROW_COUNT               NUMBER(18,0),
    MIN_TS                  TIMESTAMP_NTZ,
    MAX_TS                  TIMESTAMP_NTZ,
    PARQUET_SCHEMA_VERSION  NUMBER(9,0),
    CREATED_AT              TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the parts of the records of runs';
