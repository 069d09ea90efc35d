-- LOADSTONE_SEGMENTS has the seconds of each run by kind and statement, with their distributions: a file of Loadstone's
-- own, base64, in parts of 600 KB. It is there for `loadstone report --from snowflake`.

CREATE OR ALTER TABLE LOADSTONE_SEGMENTS (
    RUN_ID    VARCHAR NOT NULL,
    POSITION  NUMBER(9,0) NOT NULL,
    CONTENT   VARCHAR NOT NULL
) COMMENT = 'Loadstone table 3: seconds of runs by kind and statement, as a file of Loadstone''s';
