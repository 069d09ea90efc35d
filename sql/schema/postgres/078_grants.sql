-- Who started a run or a matrix, and which production connections were confirmed then, by their ids.
CREATE TABLE IF NOT EXISTS start_grants (
    grant_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      text UNIQUE REFERENCES run_status ON DELETE CASCADE,
    matrix_id   text UNIQUE REFERENCES matrices ON DELETE CASCADE,
    -- No reference: a user that is gone is known to be.
    user_id     text NOT NULL CHECK (user_id <> ''),
    user_name   text NOT NULL DEFAULT '',
    confirmed   text[] NOT NULL DEFAULT '{}',
    granted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT start_grant_subject CHECK (num_nonnulls(run_id, matrix_id) = 1)
);
