-- TEST_TEMPLATES has the templates from which the runs that are here were made, without secrets.

CREATE OR ALTER TABLE TEST_TEMPLATES (
    TEMPLATE_ID    VARCHAR NOT NULL,
    TEMPLATE_NAME  VARCHAR NOT NULL,
    DESCRIPTION    VARCHAR,
    CONFIG         VARIANT,
    SOURCE         VARCHAR,
    VERSION        NUMBER(18,0),
    CREATED_BY     VARCHAR,
    CREATED_AT     TIMESTAMP_NTZ,
    UPDATED_AT     TIMESTAMP_NTZ
) COMMENT = 'Loadstone table 3: the templates of runs';
