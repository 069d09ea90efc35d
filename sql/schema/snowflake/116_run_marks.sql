-- RUN_MARKS has what users have noted at moments of runs, such as "index created".

CREATE OR ALTER TABLE RUN_MARKS (
    MARK_ID     VARCHAR NOT NULL,
    RUN_ID      VARCHAR NOT NULL,
    AT          TIMESTAMP_NTZ,
    MARK_TEXT   VARCHAR,
    MADE_BY     VARCHAR,
    MADE_AT     TIMESTAMP_NTZ,
    CHANGED_BY  VARCHAR,
    CHANGED_AT  TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the marks of runs';
