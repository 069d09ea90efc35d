// This part keeps in Postgres what runs hold on the nodes that servers share, and who
// waits for it. Room is found and taken in one serializable transaction.

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// AdmissionQueue implements admission.Store. Its calls last as long as their context and the pool allow.
type AdmissionQueue struct{ Pool *pgxpool.Pool }

// The refusals of a serializable transaction that another one was in the way of.
const (
	codeSerialization  = "40001"
	ledgerCodeDeadlock = "40P01"
)

// maxSerializableTries bounds how often a transaction is begun anew that others were in the way of.
const maxSerializableTries = 50

// serializable runs f in a serializable transaction, again when another one was in its way. Who
// finds room takes turns: 64 at once would otherwise refuse each other again and again.
func (b AdmissionQueue) serializable(ctx context.Context, f func(tx pgx.Tx) error) (err error) {
	for range maxSerializableTries {
		err = pgx.BeginTxFunc(ctx, b.Pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
			// Before the first statement that reads: what it sees is settled by that one.
			if _, err := tx.Exec(ctx, "LOCK TABLE run_admission_lock IN EXCLUSIVE MODE"); err != nil {
				return err
			}
			return f(tx)
		})
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != codeSerialization && refused.Code != ledgerCodeDeadlock {
			return err
		}
	}
	return err
}

// Admit runs change, which starts a run, in a transaction, and in it takes the room that the
// run needs. Without room nothing is changed: store.ErrNoCapacity. a is nil where none is needed.
func (b AdmissionQueue) Admit(
	ctx context.Context,
	runID string,
	a *store.Admission,
	change func(tx pgx.Tx) error,
) error {
	if a == nil {
		return pgx.BeginFunc(ctx, b.Pool, change)
	}
	return b.serializable(ctx, func(tx pgx.Tx) error {
		var before int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM run_queue q WHERE q.pool = $2 AND q.run_id <> $1
			AND q.fitted_at > clock_timestamp() - make_interval(secs => $3) AND q.place < coalesce((SELECT own.place FROM run_queue own WHERE own.run_id = $1), q.place + 1)`,
			runID, placement.Pool(a.Demands), placement.BypassAfter.Seconds()).Scan(&before)
		if err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		if before > 0 {
			return store.ErrNoCapacity
		}
		return reserve(ctx, tx, runID, a)
	})
}

// reserve finds room beside what is held and writes it.
func reserve(ctx context.Context, tx pgx.Tx, runID string, a *store.Admission) error {
	held, err := reservedRows(ctx, tx)
	if err != nil {
		return err
	}
	if a.On = placement.Assign(placement.WithReservations(a.Nodes, held, ""), runID, a.Demands); a.On == nil {
		return store.ErrNoCapacity
	}
	took := make([]engine.Reservation, len(a.Demands))
	for i, w := range a.Demands {
		took[i] = engine.Reservation{WorkerID: w.ID, NodeID: a.On[w.ID], Connections: w.Connections}
	}
	return writeReservations(ctx, tx, runID, took)
}

// writeReservations keeps what run workers hold; one without a node holds nothing any more.
func writeReservations(ctx context.Context, tx pgx.Tx, runID string, held []engine.Reservation) error {
	var batch pgx.Batch
	for _, h := range held {
		if h.NodeID == "" {
			batch.Queue("DELETE FROM run_reservations WHERE run_id = $1 AND worker_id = $2", runID, h.WorkerID)
			continue
		}
		batch.Queue(`INSERT INTO run_reservations (run_id, worker_id, node_id, connections) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run_id, worker_id) DO UPDATE SET node_id = excluded.node_id, connections = excluded.connections`,
			runID, h.WorkerID, h.NodeID, h.Connections)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func reservedRows(ctx context.Context, q querier) ([]engine.Reservation, error) {
	rows, err := q.Query(ctx,
		"SELECT run_id, worker_id, node_id, connections FROM run_reservations ORDER BY run_id, worker_id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[engine.Reservation])
}

// Enqueue implements admission.Store.
func (b AdmissionQueue) Enqueue(ctx context.Context, w store.QueuedRun) error {
	works, err := json.Marshal(w.Demands)
	if err != nil {
		return fmt.Errorf("writing what a run waits for: %w", err)
	}
	err = pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		var status engine.Status
		if err := tx.QueryRow(ctx, "SELECT status FROM run_status WHERE run_id = $1 FOR UPDATE",
			w.RunID).Scan(&status); err != nil {
			return dberr.Reading("run", w.RunID, err)
		}
		if status != engine.StatusPrepared {
			return dberr.Conflict(fmt.Sprintf("The run is %s and waits for nothing.", status), "")
		}
		_, err := tx.Exec(ctx, `INSERT INTO run_queue (run_id, pool, demands, asked_by) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run_id) DO NOTHING`, w.RunID, w.Pool, works, store.CleanText(w.By))
		return err
	})
	return dberr.Failed("letting a run wait", err)
}

// Ledger implements admission.Store: both halves are of one moment.
func (b AdmissionQueue) Ledger(ctx context.Context) (l store.Ledger, err error) {
	err = pgx.BeginTxFunc(ctx, b.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if l.Reserved, err = reservedRows(ctx, tx); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `SELECT q.run_id, r.test_name, q.pool, q.demands, q.asked_by, q.since,
					extract(epoch FROM clock_timestamp() - q.fitted_at)::float8
				FROM run_queue q JOIN run_status r USING (run_id) ORDER BY q.place`)
			if err != nil {
				return err
			}
			l.Queued, err = pgx.CollectRows(rows, toQueuedRun)
			return err
		})
	return l, dberr.Failed("reading what runs hold", err)
}

func toQueuedRun(row pgx.CollectableRow) (w store.QueuedRun, err error) {
	var works []byte
	var unfit float64
	if err := row.Scan(&w.RunID, &w.RunName, &w.Pool, &works, &w.By, &w.Since.Time, &unfit); err != nil {
		return w, err
	}
	w.Since, w.Unfit = engine.At(w.Since.Time), time.Duration(max(unfit, 0)*float64(time.Second))
	return w, json.Unmarshal(works, &w.Demands)
}

// MarkFeasible implements admission.Store.
func (b AdmissionQueue) MarkFeasible(ctx context.Context, runIDs []string) error {
	_, err := b.Pool.Exec(ctx, "UPDATE run_queue SET fitted_at = clock_timestamp() WHERE run_id = ANY($1)", runIDs)
	return dberr.Failed("noting which runs nodes could carry", err)
}

// Reserve implements admission.Store.
func (b AdmissionQueue) Reserve(ctx context.Context, runID string, epoch int64, a *store.Admission) error {
	err := b.serializable(ctx, func(tx pgx.Tx) error {
		if err := fence(ctx, tx, runID, epoch); err != nil {
			return err
		}
		before := make([]engine.Reservation, len(a.Demands))
		for i, w := range a.Demands {
			before[i].WorkerID = w.ID
		}
		if err := writeReservations(ctx, tx, runID, before); err != nil {
			return err
		}
		return reserve(ctx, tx, runID, a)
	})
	return dberr.Failed("reserving room", err)
}

// SetReservations implements admission.Store.
func (b AdmissionQueue) SetReservations(
	ctx context.Context,
	runID string,
	epoch int64,
	held []engine.Reservation,
) error {
	err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if err := fence(ctx, tx, runID, epoch); err != nil {
			return err
		}
		return writeReservations(ctx, tx, runID, held)
	})
	return dberr.Failed("writing what a run holds", err)
}

// fence refuses a writer that no longer owns the run, and a run that is over: it holds nothing.
func fence(ctx context.Context, tx pgx.Tx, runID string, epoch int64) error {
	if _, err := tx.Exec(ctx, "SELECT fence_run($1, $2)", runID, epoch); err != nil {
		return err
	}
	var status engine.Status
	if err := tx.QueryRow(ctx, "SELECT status FROM run_status WHERE run_id = $1", runID).Scan(&status); err != nil {
		return err
	}
	if !status.Live() {
		return dberr.Conflict(fmt.Sprintf("The run is %s and holds nothing.", status), "")
	}
	return nil
}
