package derivedtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Second is how docs/reference/sql-tables.md puts an execution e of a run r into a second.
const Second = "greatest(floor(extract(epoch FROM e.due_at - r.started_at) + " +
	"e.app_elapsed_ms::numeric * 0.001), 0)::integer"

// figures are what a cell holds of executions: how many, how many failed, their rows, and of their latencies the sum,
// the least and the most.
const (
	counted = `count(*), count(*) FILTER (WHERE NOT success), sum(row_count)::bigint,
		sum(round(app_elapsed_ms::numeric * 1000000))::bigint, min(round(app_elapsed_ms::numeric * 1000000))::bigint,
		max(round(app_elapsed_ms::numeric * 1000000))::bigint`
	written = "operations, errors, row_count, latency[3], latency[4], latency[5]"
)

// rollUps are the relations that are made of executions: what tells their rows apart besides the second, in
// executions and in the relation, and what is counted.
var rollUps = []struct{ name, of, keys, where, counted, written string }{
	{"run_seconds", "''::text", "''::text", "position = 0", counted, written},
	{"kind_seconds", "kind", "kind", "position = 0", counted, written},
	{"worker_seconds", "worker_id", "worker_id", "position = 0", counted, written},
	{"statement_seconds", "statement_id, kind, position <> 0", "statement_id, kind, in_transaction", "true", counted,
		written},
	{"error_seconds", "coalesce(error_class, ''), coalesce(error_code, ''), kind", "error_class, error_code, kind",
		"position = 0 AND NOT success", "count(*)", "errors"},
}

// CompareSeconds compares the roll-ups of a run with its single executions, put into seconds as the documentation says,
// second by second, and says in sentences what is in the one and not in the other.
func CompareSeconds(ctx context.Context, conn *pgx.Conn, runID string) (all []string, err error) {
	for _, r := range rollUps {
		made := fmt.Sprintf(`SELECT second, warmup, (%s)::text, (%s)::text FROM (SELECT e.*, %s AS second
			FROM rollup.executions e JOIN rollup.runs r USING (run_id) WHERE run_id = $1) AS e
			WHERE %s GROUP BY second, warmup, %s`, row(r.of), row(r.counted), Second, r.where, r.of)
		there := fmt.Sprintf("SELECT second, warmup, (%s)::text, (%s)::text FROM rollup.%s WHERE run_id = $1", row(r.keys),
			row(r.written), r.name)
		rows, err := conn.Query(ctx, fmt.Sprintf(`SELECT format('second %%s (warmup %%s) of %%s: %%s are %%s', second, warmup,
			key, side, figures) FROM (
				SELECT 'executions' AS side, * FROM ((%[1]s) EXCEPT ALL (%[2]s)) AS a (second, warmup, key, figures)
				UNION ALL SELECT 'roll-ups', * FROM ((%[2]s) EXCEPT ALL (%[1]s)) AS b (second, warmup, key, figures)
			) AS d ORDER BY second, warmup, key, side`, made, there), runID)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", r.name, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", r.name, err)
		}
		for _, line := range found {
			all = append(all, r.name+": "+line)
		}
	}
	return all, nil
}

// row makes one value of several.
func row(columns string) string { return "ROW(" + columns + ")" }
