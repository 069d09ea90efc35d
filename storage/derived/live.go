package derived

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// liveLockTimeout bounds how long live seconds wait for a run that is just being taken in, or for the server that wrote
// before.
const liveLockTimeout = "500ms"

// BeginLive makes a run that is going on the writer's, in the epoch in which it owns the run: lower ones write nothing
// from now on. It returns the last snapshot of each run worker that is there. ErrFenced is of a run that a higher epoch
// writes, or that was taken in or removed.
func (d *Database) BeginLive(ctx context.Context, run engine.Run, epoch int64) (ticks map[string]int64, err error) {
	err = d.liveTx(ctx, func(tx pgx.Tx) error {
		var text string
		err := tx.QueryRow(ctx, `INSERT INTO staging.live_runs AS l (run_id, epoch, batch) VALUES ($1, $2, 0)
			ON CONFLICT (run_id) DO UPDATE SET epoch = excluded.epoch WHERE NOT l.closed AND l.epoch <= excluded.epoch
			RETURNING ticks::text`, run.RunID, epoch).Scan(&text)
		if errors.Is(err, pgx.ErrNoRows) {
			return fencedLive(run.RunID, epoch)
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &ticks); err != nil {
			return fmt.Errorf("the snapshots that are there cannot be read: %w", err)
		}
		return insertRun(ctx, tx, rollup.Run{Run: run, Adapter: run.Scenario.Target.Adapter}, true)
	})
	return ticks, wrapError("beginning to write live seconds", err)
}

// PutLive adds seconds of a run that is going on to those that are there. A batch that was added already is not added
// again. ErrFenced is as for BeginLive.
func (d *Database) PutLive(ctx context.Context, l rollup.Live) error {
	ticks, err := json.Marshal(l.Ticks)
	if err != nil {
		return fmt.Errorf("writing live seconds: %w", err)
	}
	err = d.liveTx(ctx, func(tx pgx.Tx) error {
		var epoch, batch int64
		var closed bool
		err := tx.QueryRow(ctx, "SELECT epoch, batch, closed FROM staging.live_runs WHERE run_id = $1 FOR UPDATE",
			l.RunID).Scan(&epoch, &batch, &closed)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && (closed || epoch != l.Epoch):
			return fencedLive(l.RunID, l.Epoch)
		case err != nil:
			return err
		case batch >= l.Batch:
			return nil
		}
		var b pgx.Batch
		b.Queue("UPDATE staging.live_runs SET batch = $2, ticks = ticks || $3::jsonb WHERE run_id = $1", l.RunID, l.Batch,
			string(ticks))
		b.Queue("UPDATE rollup.runs SET operations = $2, errors = $3 WHERE run_id = $1 AND provisional", l.RunID,
			l.Operations, l.Errors)
		for _, rel := range secondRelations(rollup.Run{Run: engine.Run{RunID: l.RunID}, Seconds: l.Seconds, Warehouse: l.Warehouse,
			PerHour: l.PerHour}) {
			rel.addTo(&b)
		}
		return tx.SendBatch(ctx, &b).Close()
	})
	return wrapError("writing live seconds", err)
}

// liveTx runs f in a transaction that waits for nobody, the disk included: what is lost with the database is there
// again when the run is taken in.
func (d *Database) liveTx(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '"+liveLockTimeout+"'",
			pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		return f(tx)
	})
}

func fencedLive(runID string, epoch int64) error {
	return fmt.Errorf("live seconds of run %s at epoch %d: %w", runID, epoch, store.ErrFenced)
}

// closeLive ends the live seconds of a run for good, in the transaction that replaces or removes them.
func closeLive(ctx context.Context, tx pgx.Tx, runID string) error {
	_, err := tx.Exec(ctx, `INSERT INTO staging.live_runs (run_id, epoch, batch, closed) VALUES ($1, 0, 0, true)
		ON CONFLICT (run_id) DO UPDATE SET closed = true, ticks = '{}'`, runID)
	return err
}

// rollupTypes are those of the columns of roll-ups; others are texts. Histograms travel as texts: arrays of arrays
// would have to be of one length.
var rollupTypes = map[string]string{
	"second":                       "integer",
	"warmup":                       "boolean",
	"at":                           "timestamptz",
	"in_transaction":               "boolean",
	"operations":                   "bigint",
	"errors":                       "bigint",
	"row_count":                    "bigint",
	"rated":                        "bigint",
	"started_clusters":             "integer",
	"min_cluster_count":            "integer",
	"max_cluster_count":            "integer",
	"running":                      "integer",
	"queued":                       "integer",
	"credits_per_hour":             "float8",
	"scheduled":                    "bigint",
	"dropped":                      "bigint",
	"retries":                      "bigint",
	"connections":                  "integer",
	"target_connections":           "integer",
	"waiting":                      "integer",
	"target_operations_per_second": "float8",
	"cpu_ratio":                    "float8",
	"memory_ratio":                 "float8",
	"memory_bytes":                 "bigint",
	"host_cpu_ratio":               "float8",
	"host_memory_ratio":            "float8",
}

// additiveColumns are the columns that add up; those that are in neither list tell rows from each other.
var additiveColumns = []string{
	"operations",
	"errors",
	"row_count",
	"rated",
	"latency",
	"scheduled",
	"dropped",
	"retries",
}

// latestColumns are those of which the later one stays.
var latestColumns = []string{"node_id", "connections", "target_connections", "waiting", "target_operations_per_second",
	"cpu_ratio", "memory_ratio", "memory_bytes", "host_cpu_ratio", "host_memory_ratio"}

// addTo queues a statement that adds the rows to those that are there.
func (r relation) addTo(b *pgx.Batch) {
	if len(r.rows) == 0 {
		return
	}
	arrays, values := make([]string, len(r.columns)), make([]string, len(r.columns))
	args := make([]any, len(r.columns))
	var keys, adding []string
	for i, column := range r.columns {
		typ := rollupTypes[column]
		if typ == "" {
			typ = "text"
		}
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, typ)
		values[i] = "u." + column
		switch {
		case column == "latency":
			values[i] += "::bigint[]"
			adding = append(adding, "latency = rollup.histogram_add(t.latency, excluded.latency)")
		case slices.Contains(additiveColumns, column):
			adding = append(adding, column+" = t."+column+" + excluded."+column)
		case slices.Contains(latestColumns, column):
			adding = append(adding, column+" = excluded."+column)
		case column != "at":
			keys = append(keys, column)
		}
		args[i] = columnOf(r.rows, i)
	}
	conflict := "NOTHING"
	if r.table == "warehouse_seconds" {
		keys = []string{"run_id", "second"} // the first poll of a second counts
	} else {
		conflict = "UPDATE SET " + strings.Join(adding, ", ")
	}
	names := strings.Join(r.columns, ", ")
	b.Queue("INSERT INTO rollup."+r.table+" AS t ("+names+", provisional) SELECT "+strings.Join(values, ", ")+
		", true FROM unnest("+strings.Join(arrays, ", ")+") AS u("+names+") ON CONFLICT ("+strings.Join(keys, ", ")+
		") DO "+conflict, args...)
}

// columnOf is a column of rows as an array that Postgres takes.
func columnOf(rows [][]any, i int) any {
	switch rows[0][i].(type) {
	case int32, int64, int:
		all := make([]int64, len(rows))
		for n, row := range rows {
			switch v := row[i].(type) {
			case int32:
				all[n] = int64(v)
			case int64:
				all[n] = v
			case int:
				all[n] = int64(v)
			}
		}
		return all
	case bool:
		return valuesOf[bool](rows, i)
	case time.Time:
		return valuesOf[time.Time](rows, i)
	case float64:
		return valuesOf[float64](rows, i)
	case *int:
		return valuesOf[*int](rows, i)
	case *int64:
		return valuesOf[*int64](rows, i)
	case *float64:
		return valuesOf[*float64](rows, i)
	case []int64:
		all := make([]string, len(rows))
		for n, row := range rows {
			h, _ := row[i].([]int64)
			all[n] = arrayText(h)
		}
		return all
	}
	return valuesOf[string](rows, i)
}

func valuesOf[T any](rows [][]any, i int) []T {
	all := make([]T, len(rows))
	for n, row := range rows {
		all[n], _ = row[i].(T)
	}
	return all
}

func arrayText(list []int64) string {
	text := append(make([]byte, 0, 4*len(list)+2), '{')
	for i, v := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, v, 10)
	}
	return string(append(text, '}'))
}
