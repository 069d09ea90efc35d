-- LOADSTONE_RUNS has the epoch of the last writer of each run; one of a lower epoch writes nothing.

CREATE OR ALTER TABLE LOADSTONE_RUNS (
    RUN_ID  VARCHAR NOT NULL,
    EPOCH   NUMBER(18,0) NOT NULL
) COMMENT = 'Loadstone table 3: who writes the rows of a run';
