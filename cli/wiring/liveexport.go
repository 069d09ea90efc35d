package wiring

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/target"
)

// liveExportInterval is how often runs that go on are copied to the results connection, where they ask for that.
const liveExportInterval = 10 * time.Second

// liveExport copies the runs of this server that go on. Its goroutine alone uses it.
type liveExport struct {
	t          *Tables
	connection string
	account    snowflakeexport.Account
	closing    target.Database
	runs       map[string]*snowflakeexport.Live
	// over are runs whose copying has ended, problems the last logged problem of each other run.
	over     map[string]bool
	problems map[string]string
}

// startLiveExport begins to copy runs that go on to the account of a stored connection.
func (t *Tables) startLiveExport(ctx context.Context, connection string) {
	t.s.liveExport.Store(true)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it ends with the server, not with its start
	done := make(chan struct{})
	t.s.onClose(func(context.Context) error { stop(); <-done; return nil })
	l := &liveExport{t: t, connection: connection, runs: map[string]*snowflakeexport.Live{}, over: map[string]bool{},
		problems: map[string]string{}}
	go func() {
		defer close(done)
		defer l.close()
		ticker := time.NewTicker(liveExportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.round(ctx)
			}
		}
	}()
}

// round copies each run once, and lets the account rest when there is none.
func (l *liveExport) round(ctx context.Context) {
	active := map[string]bool{}
	copied := false
	for _, id := range l.t.s.Runs.ActiveRunIDs() {
		active[id] = true
		run, err := l.t.s.Store.Run(ctx, id)
		if err != nil || l.over[id] || run.Scenario.Export != engine.ExportLive || run.Status == engine.StatusPrepared ||
			run.Status.Terminal() {
			continue
		}
		copied = true
		l.tell(ctx, id, l.copy(ctx, run))
	}
	for id := range l.over {
		if !active[id] {
			delete(l.over, id)
		}
	}
	for id := range l.runs {
		if !active[id] {
			delete(l.runs, id)
			delete(l.problems, id)
		}
	}
	if !copied {
		l.close()
	}
}

// copy brings the account up to date about one run.
func (l *liveExport) copy(ctx context.Context, run engine.Run) error {
	live := l.runs[run.RunID]
	if live == nil {
		live = &snowflakeexport.Live{Store: l.t.s.Store, RunID: run.RunID, Owner: run.OwnerEpoch}
		l.runs[run.RunID] = live
	}
	if live.Owner != run.OwnerEpoch {
		l.over[run.RunID] = true // another server has it
		return nil
	}
	if l.account == nil {
		db, err := l.t.s.account(ctx, l.connection)
		if err != nil {
			return err
		}
		account, ok := db.(snowflakeexport.Account)
		if !ok {
			_ = db.Close()
			return errors.New("the results connection is not one of Snowflake")
		}
		l.account, l.closing = account, db
	}
	// A copy that takes long is behind, and goes on with the next one.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err := live.Copy(ctx, l.account, SnowflakeSchemaCommand(l.connection))
	if errors.Is(err, snowflakeexport.ErrLiveOver) {
		l.over[run.RunID] = true
		return nil
	}
	return err
}

// tell says what became of a copy, in the log where it is news, and beside the run.
func (l *liveExport) tell(ctx context.Context, runID string, err error) {
	if ctx.Err() != nil {
		return
	}
	problem := "The run goes on, and what is known of it is copied every 10 s."
	if err != nil {
		problem = "It is not copied while it goes on: " + engine.ErrorText(err)
		l.close() // the next copy opens the connection again, which a user may have changed
	}
	if before, told := l.problems[runID]; told && before == problem {
		return
	}
	l.problems[runID] = problem
	if err != nil {
		l.t.s.Log.Warn().Str("run_id", runID).Str("connection", l.connection).Str("problem", problem).
			Msg("a run is not copied to the results connection while it goes on")
	}
	failed := err != nil
	db, err := l.t.Database(ctx)
	if err == nil {
		err = db.NoteExport(ctx, refresh.Claim{Task: refresh.Task{Table: snowflakeexport.Table, Subtask: runID}},
			l.connection, snowflakeexport.ExportStatus{Problem: problem, Failed: failed})
	}
	if err != nil && ctx.Err() == nil {
		l.t.s.Log.Warn().Err(err).Str("run_id", runID).Msg("what is in the results connection could not be noted")
	}
}

func (l *liveExport) close() {
	if l.closing != nil {
		_ = l.closing.Close() // nothing of it is open
	}
	l.account, l.closing = nil, nil
}

// CopiesLive tells whether runs that go on can be copied to an account.
func (r runServer) CopiesLive() bool { return r.s.liveExport.Load() }
