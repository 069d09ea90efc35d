package snowflakeexport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// LiveStore is what is known of runs that go on.
type LiveStore interface {
	// RunRowsAfter calls each with the rows of a run in one of RunTables behind a row, nil for all.
	RunRowsAfter(ctx context.Context, runID, table string, after map[string]json.RawMessage,
		each func(map[string]json.RawMessage) error) error
}

// A copy of a run that goes on is claimed by the server that has the run, with the epoch in which it has it, below all
// epochs of exports: whoever takes the run over writes, and an export ends it.
const (
	liveEpochs      = -1 << 40
	liveTransaction = "LIVE_"
)

// The tables of a run that goes on: rows of some change, to others some are added.
var (
	liveChanging = []string{"RUN_STATUS", "WORKER_HEARTBEATS", Steps, "RUN_MARKS", "RUN_NOTES"}
	liveGrowing  = []string{"RUN_CONTROL_EVENTS", "METRICS_SNAPSHOTS", Polls, "TEST_LOGS"}
)

// ErrLiveOver is of a run that has been taken to the account as a whole, or is another server's.
var ErrLiveOver = errors.New("the run is not copied by this server any more")

// Live copies what the control store knows of one run that goes on. It is not safe for concurrent use.
type Live struct {
	Store LiveStore
	RunID string
	// Owner is the epoch in which this server has the run.
	Owner int64

	// last are the last rows that were copied of the tables that grow, and of each run worker's seconds; empty is before
	// the first copy, and after one of which it is not known whether it holds.
	last map[string]Row
	// begun: the account has this server's epoch.
	begun bool
}

// Copy brings the account up to date. After ErrLiveOver there is nothing more to copy.
func (l *Live) Copy(ctx context.Context, a Account, cure string) error {
	e := &Export{Account: a, Cure: cure}
	c := refresh.Claim{Task: refresh.Task{Table: Table, Subtask: l.RunID}, Epoch: l.Owner + liveEpochs}
	var err error
	if e.schema, err = CheckSchema(ctx, a, cure); err != nil {
		return err
	}
	next := map[string]Row{}
	err = a.InTransaction(ctx, transactionName(c), func(t target.Tx) error {
		if err := l.begin(ctx, t, c); err != nil {
			return err
		}
		return l.tables(ctx, t, e, next)
	})
	if errors.Is(err, store.ErrClaimLost) {
		return ErrLiveOver
	}
	if err != nil {
		l.last = nil
		return e.userError(fmt.Errorf("copying run %s: %w", l.RunID, err))
	}
	l.last, l.begun = next, true
	return nil
}

// begin holds the run for this server, unless somebody has begun with it later.
func (l *Live) begin(ctx context.Context, t target.Tx, c refresh.Claim) error {
	if !l.begun {
		switch epoch, err := epochOf(ctx, t, c.Subtask); {
		case err != nil:
			return err
		case epoch > c.Epoch:
			return claimLost(c)
		case epoch == noEpoch:
			err = t.Exec(ctx, "INSERT INTO LOADSTONE_RUNS (RUN_ID, EPOCH) VALUES (?, ?)", c.Subtask, c.Epoch)
			if err != nil {
				return err
			}
		case epoch < c.Epoch:
			if err := t.Exec(ctx, "UPDATE LOADSTONE_RUNS SET EPOCH = ? WHERE RUN_ID = ?", c.Epoch, c.Subtask); err != nil {
				return err
			}
		}
	}
	return hold(ctx, t, c)
}

// tables copies all tables; next gets the last rows of those that grow.
func (l *Live) tables(ctx context.Context, t target.Tx, e *Export, next map[string]Row) error {
	var workers []string
	for _, name := range liveChanging {
		if err := l.copy(ctx, t, e, name, nil, func(r Row) bool {
			var id string
			if name == "WORKER_HEARTBEATS" && json.Unmarshal(r["worker_id"], &id) == nil {
				workers = append(workers, id)
			}
			return true
		}); err != nil {
			return err
		}
	}
	for _, name := range liveGrowing {
		next[name] = l.last[name]
		if err := l.copy(ctx, t, e, name, l.last[name], func(r Row) bool { next[name] = r; return true }); err != nil {
			return err
		}
	}
	return l.seconds(ctx, t, e, workers, next)
}

// seconds copies those of run workers, each behind its last: the ticks of one say nothing of another's.
func (l *Live) seconds(ctx context.Context, t target.Tx, e *Export, workers []string, next map[string]Row) error {
	const name = "WORKER_METRICS_SNAPSHOTS"
	if !e.schema.Has(name) {
		return nil
	}
	if l.last == nil {
		if err := wipeRows(ctx, t, name, &engine.RunDetail{Run: engine.Run{RunID: l.RunID}}); err != nil {
			return err
		}
	}
	for _, worker := range workers {
		after := l.last[name+worker]
		if after == nil {
			after = Row{}
			after.set("worker_id", worker)
			after.set("tick", -1)
		}
		next[name+worker] = after
		mine := string(after["worker_id"])
		if err := l.copy(ctx, t, e, name, after, func(r Row) bool {
			if string(r["worker_id"]) != mine {
				return false
			}
			next[name+worker] = r
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends the reading of rows.
var errEnough = errors.New("no more rows are wanted")

// copy copies the rows of a table behind a row, or, without one, all in place of what is there, until want says no.
func (l *Live) copy(ctx context.Context, t target.Tx, e *Export, name string, after Row, want func(Row) bool) error {
	if !e.schema.Has(name) {
		return nil
	}
	o := theSchema().byName[name]
	d := &engine.RunDetail{Run: engine.Run{RunID: l.RunID}}
	if after == nil {
		if err := wipeRows(ctx, t, name, d); err != nil {
			return err
		}
	}
	insert := o.insertInto()
	return o.inArrays(func(each func(map[string]json.RawMessage) error) error {
		err := l.Store.RunRowsAfter(ctx, l.RunID, strings.ToLower(name), after, func(r map[string]json.RawMessage) error {
			if !want(r) {
				return errEnough
			}
			complete(name, r, d)
			return each(r)
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	}, func(array []byte) error { return t.Exec(ctx, insert, string(array)) })
}
