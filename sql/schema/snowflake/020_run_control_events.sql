-- RUN_CONTROL_EVENTS has what the run workers of a run were told, in order.

CREATE OR ALTER TABLE RUN_CONTROL_EVENTS (
    EVENT_ID     VARCHAR NOT NULL,
    RUN_ID       VARCHAR NOT NULL,
    EVENT_TYPE   VARCHAR NOT NULL,
    EVENT_DATA   VARIANT,
    SEQUENCE_ID  NUMBER(18,0) NOT NULL,
    CREATED_AT   TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the control events of runs';
