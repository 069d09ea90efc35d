package derived

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// executionColumns are those of a partition as they are copied. The run's id comes as the default of a column that is
// added afterwards: it takes no space in the rows.
const executionColumns = `seq bigint NOT NULL, due_at timestamptz NOT NULL, started_at timestamptz NOT NULL,
	app_elapsed_ms double precision NOT NULL, schedule_lag_ms double precision NOT NULL,
	pool_wait_ms double precision NOT NULL, decode_ns bigint NOT NULL, connection_id bigint NOT NULL,
	step integer NOT NULL, row_count integer NOT NULL, retries integer NOT NULL, position integer NOT NULL,
	warmup boolean NOT NULL, success boolean NOT NULL, rolled_back boolean NOT NULL, worker_id text NOT NULL,
	kind text NOT NULL, statement_id text NOT NULL, error_class text, error_code text, error_message text,
	server_query_id text`

// The steps of taking executions in and of making tables, at each of which a test may let the process end.
const (
	stepRead     = "read"
	stepReplaced = "replaced"
	stepProved   = "proved"
	stepReady    = "ready"
	stepCreate   = "create"
	stepCopy     = "copy"
	stepIdentify = "identify"
	stepStaged   = "staged"
	stepDrop     = "drop"
	stepAttach   = "attach"
	stepCommit   = "commit"
	stepDone     = "done"
	stepUnstage  = "unstage"
)

func (d *Database) reachStep(step string) error {
	if d.stepHook == nil {
		return nil
	}
	return d.stepHook(step)
}

// partitionName is the table of a run's executions; each epoch has its own.
func partitionName(c refresh.Claim) (prefix, name string) {
	sum := sha256.Sum256([]byte(c.Subtask))
	prefix = "executions~" + hex.EncodeToString(sum[:8]) + "~"
	return prefix, fmt.Sprintf("%s%019d", prefix, c.Epoch)
}

// KnownExecutions is of which parts the executions of a run are there, "" when they are not.
func (d *Database) KnownExecutions(ctx context.Context, runID string) (fingerprint string, err error) {
	err = d.owner.QueryRow(ctx, "SELECT fingerprint FROM rollup.execution_runs WHERE run_id = $1",
		runID).Scan(&fingerprint)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return fingerprint, wrapError("looking for executions in the results database", err)
}

// StageExecutions copies what feed gives into a table of its own, which counts from when PutRun attaches it. All of
// it is one transaction: a table that is created in it needs no log of its rows where nothing replicates. start is when
// the run started.
func (d *Database) StageExecutions(ctx context.Context, c refresh.Claim, start time.Time, fingerprint string,
	feed func(ctx context.Context, take func(*rollup.Executions) error) error) (rollup.Staged, error) {
	prefix, name := partitionName(c)
	staged := rollup.Staged{Table: name, Fingerprint: fingerprint}
	table := pgx.Identifier{"staging", name}.Sanitize()
	if err := d.sweepPartitions(ctx, prefix); err != nil {
		return staged, err
	}
	err := pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) (err error) {
		if err := d.reachStep(stepCreate); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE "+table+" ("+executionColumns+")"); err != nil {
			return err
		}
		if staged.Rows, err = copyExecutions(ctx, tx, table, start, feed); err != nil {
			return err
		}
		if err := d.reachStep(stepCopy); err != nil {
			return err
		}
		id := quoted(c.Subtask)
		if _, err := tx.Exec(ctx, "ALTER TABLE "+table+" ADD COLUMN run_id text NOT NULL DEFAULT "+id+
			", ADD CONSTRAINT one_run CHECK (run_id = "+id+")"); err != nil {
			return err
		}
		if err := d.reachStep(stepIdentify); err != nil {
			return err
		}
		var epoch int64
		err = tx.QueryRow(ctx, "SELECT epoch FROM staging.fences WHERE dynamic_table = $1 AND subtask = $2 FOR SHARE",
			c.Table, c.Subtask).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && epoch != c.Epoch {
			return claimLostError(c)
		}
		return err
	})
	if err == nil {
		err = d.reachStep(stepStaged)
	}
	return staged, wrapError("copying executions into the results database", err)
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// copyExecutions reads and encodes beside the copy.
func copyExecutions(ctx context.Context, tx pgx.Tx, table string, start time.Time,
	feed func(ctx context.Context, take func(*rollup.Executions) error) error) (rows int64, err error) {
	group, together := errgroup.WithContext(ctx)
	s := newStream(together, start)
	var fed int64
	group.Go(func() error {
		err := feed(together, func(e *rollup.Executions) error {
			fed += int64(len(e.DueNs))
			return s.take(e)
		})
		if err != nil && together.Err() == nil {
			err = &sourceError{err}
		}
		return s.end(err)
	})
	group.Go(func() error {
		tag, err := tx.Conn().PgConn().CopyFrom(together, s, "COPY "+table+" FROM STDIN (FORMAT binary, FREEZE)")
		rows = tag.RowsAffected()
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if rows != fed {
		return 0, fmt.Errorf("%d of %d executions were copied", rows, fed)
	}
	return rows, nil
}

// sweepPartitions removes tables of executions that nobody attached.
func (d *Database) sweepPartitions(ctx context.Context, prefix string) error {
	rows, err := d.owner.Query(ctx, `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'staging'::regnamespace
		AND c.relkind = 'r' AND NOT c.relispartition AND starts_with(c.relname, $1)`, prefix)
	if err != nil {
		return wrapError("looking for what earlier claims have left", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		err = dropTables(ctx, d.owner, names)
	}
	return wrapError("removing what earlier claims have left", err)
}

// Unstage removes executions that were staged and are not going to be attached.
func (d *Database) Unstage(ctx context.Context, s rollup.Staged) {
	if s.Table == "" || d.reachStep(stepUnstage) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var loose bool
	err := d.owner.QueryRow(ctx, `SELECT true FROM pg_class WHERE relnamespace = 'staging'::regnamespace AND relname = $1
		AND NOT relispartition`, s.Table).Scan(&loose)
	if err == nil && loose {
		_ = dropTables(ctx, d.owner, []string{s.Table}) // what stays the next claim removes
	}
}

// attach makes what was staged the executions of the run, in place of those that are there.
func (d *Database) attach(ctx context.Context, tx pgx.Tx, c refresh.Claim, s rollup.Staged) error {
	if s.Unchanged {
		return nil
	}
	if s.Table != "" {
		if err := keepSlow(ctx, tx, c, s); err != nil {
			return err
		}
	}
	if err := dropPartitions(ctx, tx, c, s.Table); err != nil {
		return err
	}
	if err := d.reachStep(stepDrop); err != nil || s.Table == "" {
		return err
	}
	if _, err := tx.Exec(ctx, "ALTER TABLE rollup.executions ATTACH PARTITION "+
		pgx.Identifier{"staging", s.Table}.Sanitize()+" FOR VALUES IN ("+quoted(c.Subtask)+")"); err != nil {
		return err
	}
	if err := d.reachStep(stepAttach); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO rollup.execution_runs (run_id, partition, fingerprint, row_count)
		VALUES ($1, $2, $3, $4)`, c.Subtask, s.Table, s.Fingerprint, s.Rows)
	return err
}

// keepSlow finds the slowest of what was staged, before readers have to wait for what follows.
func keepSlow(ctx context.Context, tx pgx.Tx, c refresh.Claim, s rollup.Staged) error {
	if _, err := tx.Exec(ctx, "DELETE FROM rollup.slow_executions WHERE run_id = $1", c.Subtask); err != nil {
		return err
	}
	const columns = `app_elapsed_ms, due_at, kind, statement_id, worker_id, connection_id, seq, row_count, success,
		error_class, server_query_id`
	_, err := tx.Exec(ctx, `INSERT INTO rollup.slow_executions (run_id, place, `+columns+`)
		SELECT $1, row_number() OVER (ORDER BY app_elapsed_ms DESC, worker_id, connection_id, seq), `+columns+` FROM (
			SELECT `+columns+` FROM `+pgx.Identifier{"staging", s.Table}.Sanitize()+`
			WHERE position = 0 AND NOT warmup
			ORDER BY app_elapsed_ms DESC, worker_id, connection_id, seq LIMIT 100) slowest`, c.Subtask)
	return err
}

// dropPartitions removes the executions of the run of a claim, all but the named table.
func dropPartitions(ctx context.Context, tx pgx.Tx, c refresh.Claim, keep string) error {
	prefix, _ := partitionName(c)
	rows, err := tx.Query(ctx, `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'staging'::regnamespace
		AND c.relkind = 'r' AND starts_with(c.relname, $1) AND c.relname <> $2`, prefix, keep)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if err := dropTables(ctx, tx, names); err != nil {
		return err
	}
	if keep == "" {
		if _, err := tx.Exec(ctx, "DELETE FROM rollup.slow_executions WHERE run_id = $1", c.Subtask); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "DELETE FROM rollup.execution_runs WHERE run_id = $1", c.Subtask)
	return err
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error)
}

func dropTables(ctx context.Context, db execer, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for i, name := range names {
		names[i] = pgx.Identifier{"staging", name}.Sanitize()
	}
	_, err := db.Exec(ctx, "DROP TABLE IF EXISTS "+strings.Join(names, ", "))
	return err
}
