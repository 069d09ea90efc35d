-- What run workers reported at the end of each second, and what their schedules made in it. waiting and
-- target_operations_per_second are null where nobody knows, or there is none.
CREATE TABLE IF NOT EXISTS rollup.load_seconds (
    run_id                        text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second                        integer NOT NULL,
    warmup                        boolean NOT NULL,
    at                            timestamptz NOT NULL,
    worker_id                     text NOT NULL,
    node_id                       text NOT NULL,
    scheduled                     bigint NOT NULL,
    dropped                       bigint NOT NULL,
    retries                       bigint NOT NULL,
    connections                   integer NOT NULL,
    target_connections            integer NOT NULL,
    waiting                       integer,
    target_operations_per_second  double precision,
    cpu_ratio                     double precision NOT NULL,
    memory_ratio                  double precision NOT NULL,
    memory_bytes                  bigint NOT NULL,
    host_cpu_ratio                double precision NOT NULL,
    host_memory_ratio             double precision NOT NULL,
    PRIMARY KEY (run_id, second, warmup, worker_id)
);

-- What an hour of it takes, as it was polled; null where the price list does not say.
ALTER TABLE rollup.warehouse_seconds ADD COLUMN IF NOT EXISTS credits_per_hour double precision;

-- Of which version a segment is: runs of earlier ones are taken in again.
ALTER TABLE rollup.segments ADD COLUMN IF NOT EXISTS version integer NOT NULL DEFAULT 1;
