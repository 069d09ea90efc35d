-- RUN_NOTES has the notes of users about runs.

CREATE OR ALTER TABLE RUN_NOTES (
    RUN_ID      VARCHAR NOT NULL,
    NOTE        VARCHAR,
    VERSION     NUMBER(18,0),
    UPDATED_BY  VARCHAR,
    UPDATED_AT  TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the notes of runs';
