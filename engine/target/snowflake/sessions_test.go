package snowflake

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// endless makes lookups.
type endless struct{ made atomic.Int64 }

func (s *endless) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	for range n {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(len(b.Args)), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: s.made.Add(1)})
	}
	return nil
}

func (*endless) Close() error { return nil }

// memory keeps what a run records.
type memory struct {
	mu   sync.Mutex
	recs []engine.Execution
}

func (m *memory) Write(recs []engine.Execution) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs = append(m.recs, recs...)
	return nil
}

// TestFiveHundredSessions: the load engine opens 500 sessions, loses every fifth of
// them in the middle, and is stopped with 500 queries in flight that never end by
// themselves. All are aborted, all sessions closed, and TestMain finds no goroutine.
func TestFiveHundredSessions(t *testing.T) {
	const sessions = 500
	a := newAccount(t)
	var hanging, served atomic.Int64
	var hangs atomic.Bool
	gone := sync.Map{}
	a.respond(func(w http.ResponseWriter, r *http.Request, q request) map[string]any {
		if n := served.Add(1); n%5 == 0 && n <= sessions {
			// The session's token and the one that renews it have expired.
			gone.Store(q.token, true)
		}
		if _, expired := gone.Load(q.token); expired {
			return refusal(numberMasterExpired, "08001", "Authentication token has expired.  The user must authenticate again.")
		}
		if hangs.Load() {
			hanging.Add(1)
			defer hanging.Add(-1)
			return hang(w, r, q)
		}
		time.Sleep(20 * time.Millisecond)
		return rows([]string{"A:text"}, []any{"1"})
	})
	db := openDSN(t, a.dsn(), target.Config{})
	sink := &memory{}
	g, err := load.Open(t.Context(), load.Config{Plan: &engine.Plan{Driver: "snowflake", Statements: bothKinds[:1]},
		Workload: engine.Workload{LoadMode: engine.LoadConcurrency, ConcurrentConnections: sessions}, Stream: &endless{},
		Database: db, Sink: sink, Log: zerolog.Nop()}, sessions, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Start(engine.PhaseMeasurement)
	waitFor(t, func() bool { return served.Load() > 3*sessions })
	hangs.Store(true)
	waitFor(t, func() bool { return hanging.Load() == sessions })
	took := endLoad(t, g, db, 100*time.Millisecond)
	t.Logf("%d sessions were opened, %d queries aborted, %v from STOP to the last closed session", a.sessions.Load(),
		a.aborts.Load(), took)
	if took > 10*time.Second {
		t.Errorf("draining took %v", took)
	}
	n := g.Totals()
	lost := 0
	for _, r := range sink.recs {
		if r.Success != (r.ErrorID == 0) || r.QueryID == (engine.QueryID{}) && r.Success {
			t.Fatalf("%+v", r)
		}
		if e := g.Error(r.ErrorID); e.Class == engine.ErrClassConnection {
			lost++
		}
	}
	if lost != sessions/5 || a.sessions.Load() != sessions+sessions/5 {
		t.Errorf("%d executions lost their session, %d sessions were opened", lost, a.sessions.Load())
	}
	if n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started || n.Failed != int64(sessions+lost) {
		t.Errorf("%+v", n)
	}
	if a.open.Load() != 0 && a.open.Load() != int64(lost) { // what the account has forgotten may be closed or not
		t.Errorf("%d sessions are open", a.open.Load())
	}
	if a.aborts.Load() < sessions {
		t.Errorf("%d aborts", a.aborts.Load())
	}
}

// endLoad stops the group within the limit, closes it and its database, and returns how long that took.
func endLoad(t *testing.T, g *load.Group, db target.Database, limit time.Duration) time.Duration {
	t.Helper()
	select {
	case err := <-g.Failed():
		t.Fatal(err)
	default:
	}
	begin := time.Now()
	over, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := g.Drain(over); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}
