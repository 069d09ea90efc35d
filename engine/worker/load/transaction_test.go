package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

func groupOf(end uint16, statements int) []plugin.Op {
	ops := []plugin.Op{{Statement: plugin.StatementBegin}}
	for range statements {
		ops = append(ops, plugin.Op{})
	}
	return append(ops, plugin.Op{Statement: end})
}

// TestProgress drives a group by hand: each answer is "ok", "no" (an error that is
// final), "again" (one that may be retried) or "lost", with where the session stands then.
func TestProgress(t *testing.T) {
	begin, commit, rollback := plugin.StatementBegin, plugin.StatementCommit, plugin.StatementRollback
	for _, c := range []struct {
		name    string
		ops     []plugin.Op
		most    int
		answers []string
		sent    []uint16
		failed  bool
		tries   uint8
		check   func(p *Progress) bool
	}{
		{"single", []plugin.Op{{}}, 0, []string{"ok"}, []uint16{0}, false, 0, nil},
		{"single that fails", []plugin.Op{{}}, 3, []string{"no"}, []uint16{0}, true, 0, nil},
		{"single, third time lucky", []plugin.Op{{}}, 3, []string{"again", "again", "ok"}, []uint16{0, 0, 0}, false, 2, nil},
		{"single, out of luck", []plugin.Op{{}}, 1, []string{"again", "again"}, []uint16{0, 0}, true, 1, nil},
		{"commit", groupOf(commit, 2), 0, []string{"ok", "ok", "ok", "ok"}, []uint16{begin, 0, 0, commit}, false, 0,
			func(p *Progress) bool { return !p.RolledBack && p.Rows == 2 }},
		{"rollback", groupOf(rollback, 1), 0, []string{"ok", "ok", "ok"}, []uint16{begin, 0, rollback}, false, 0,
			func(p *Progress) bool { return p.RolledBack }},
		{"error inside", groupOf(commit, 2), 0, []string{"ok", "no", "ok"}, []uint16{begin, 0, rollback}, true, 0,
			func(p *Progress) bool { return !p.RolledBack && !p.Unclean }},
		{"retried", groupOf(commit, 2), 1, []string{"ok", "ok", "again", "ok", "ok", "ok", "ok", "ok"},
			[]uint16{begin, 0, 0, rollback, begin, 0, 0, commit}, false, 1, nil},
		{"retried commit", groupOf(commit, 1), 1, []string{"ok", "ok", "again", "ok", "ok", "ok"},
			[]uint16{begin, 0, commit, begin, 0, commit}, false, 1, nil},
		{"BEGIN fails", groupOf(commit, 1), 1, []string{"no"}, []uint16{begin}, true, 0, nil},
		{"lost", groupOf(commit, 1), 9, []string{"ok", "lost"}, []uint16{begin, 0}, true, 0,
			func(p *Progress) bool { return !p.Unclean }},
		{"lost while undoing", groupOf(commit, 1), 9, []string{"ok", "again", "lost"}, []uint16{begin, 0, rollback}, true, 0,
			nil},
		{"ROLLBACK of a failed one fails", groupOf(commit, 1), 9, []string{"ok", "again", "no"}, []uint16{begin, 0, rollback},
			true, 0, func(p *Progress) bool { return p.Unclean }},
		{"ROLLBACK fails", groupOf(rollback, 1), 9, []string{"ok", "ok", "again"}, []uint16{begin, 0, rollback}, true, 0,
			func(p *Progress) bool { return p.Unclean }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, policy := Progress{}, RetryPolicy{MaxRetries: c.most}
			var sent []uint16
			next := p.Start(c.ops)
			for i := 0; next != StepDone; i++ {
				if next == StepPause {
					p.Resume()
				}
				if i == len(c.answers) {
					t.Fatalf("it goes on after %v", sent)
				}
				sent = append(sent, p.Op().Statement)
				a, stands, _ := strings.Cut(c.answers[i], ", ")
				session := map[string]target.Transaction{"idle": target.TransactionNone, "open": target.TransactionOpen,
					"failed": target.TransactionFailed}[stands]
				if a == "ok" {
					next = p.Succeeded(1)
				} else {
					next = p.Fail(1, a == "again", a == "lost", session, &policy)
				}
			}
			if !slices.Equal(sent, c.sent) || (p.Failed != 0) != c.failed || p.Tries != c.tries || c.check != nil &&
				!c.check(&p) {
				t.Errorf("sent %#x, %+v", sent, p)
			}
		})
	}
}

func TestRetryPauses(t *testing.T) {
	p := NewRetryPolicy(&engine.Retry{Max: 1000, Classes: []engine.ErrorClass{engine.ErrClassDeadlock},
		BackoffMs: 10})
	if p.MaxRetries != engine.MaxRetries || !p.Covers(engine.ErrClassDeadlock) || p.Covers(engine.ErrClassTimeout) {
		t.Errorf("%+v", p)
	}
	for retry, want := range map[int]time.Duration{1: 10 * time.Millisecond, 2: 20 * time.Millisecond,
		6: 320 * time.Millisecond, 100: 320 * time.Millisecond} {
		if low, high := p.Pause(retry, 0), p.Pause(retry, 1); low != want/2 || high != want*3/2 {
			t.Errorf("retry %d: %v to %v", retry, low, high)
		}
	}
	if none := NewRetryPolicy(nil); none.Covers(engine.ErrClassDeadlock) {
		t.Error("without a policy there are retries")
	}
}

var errSerialization = errors.New("could not serialize access")

// TestRandomTransactions: whatever fails, and however often, the accounts balance
// and each transaction's statements are recorded under it.
func TestRandomTransactions(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		most := rapid.IntRange(0, 4).Draw(r, "retries")
		failing := rapid.IntRange(0, 60).Draw(r, "percent that fail")
		breaking := rapid.IntRange(0, 2).Draw(r, "percent that break")
		connections := rapid.IntRange(1, 5).Draw(r, "connections")
		grouped := rapid.Bool().Draw(r, "transactions")
		seed := rapid.Uint64().Draw(r, "seed")
		var failure error
		synctest.Test(t, func(t *testing.T) {
			failure = randomTransactions(t, most, failing, breaking, connections, grouped, seed)
		})
		if failure != nil {
			r.Fatal(failure)
		}
	})
}

func randomTransactions(t *testing.T, most, failing, breaking, connections int, grouped bool, seed uint64) error {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func() int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(100)
	}
	db := &fakeDB{latency: between(0, time.Millisecond)}
	db.fail = func() (error, bool) {
		switch d := draw(); {
		case d < breaking:
			return errEOF, true
		case d < failing:
			return errSerialization, false
		case d < failing+3:
			return errServer, false
		}
		return nil, false
	}
	sink := &memorySink{}
	cfg := fakeConfig(db, &fakeStream{limit: 200, group: grouped}, sink)
	cfg.Workload.Retry = &engine.Retry{Max: most, Classes: []engine.ErrorClass{engine.ErrClassSerialization}, BackoffMs: 1}
	g := open(t, cfg, connections)
	g.Start(engine.PhaseMeasurement)
	select {
	case <-g.Done():
	case <-g.Failed(): // every connection was lost at the same time
	}
	if err := settle(g, db, sink, time.Hour); err != nil {
		return err
	}
	pending := map[uint32][]engine.Execution{}
	known := map[engine.QueryID]bool{}
	for _, r := range sink.recs {
		// Each query keeps its id; a transaction has none of its own.
		if transaction := grouped && r.Position == 0; (r.QueryID == engine.QueryID{}) != transaction || known[r.QueryID] &&
			!transaction {
			return fmt.Errorf("query id %v in %+v", r.QueryID, r)
		}
		known[r.QueryID] = true
		if r.Position != 0 {
			pending[r.ConnectionID] = append(pending[r.ConnectionID], r)
			continue
		}
		inside := pending[r.ConnectionID]
		delete(pending, r.ConnectionID)
		if int(r.Retries) > most || grouped == (len(inside) == 0) {
			return fmt.Errorf("%d retries, %d statements in %+v", r.Retries, len(inside), r)
		}
		try, position, total := uint8(0), uint16(0), int64(0)
		for _, s := range inside {
			if s.Retries == try+1 {
				try, position = try+1, 0
			}
			if position++; s.Position != position || s.Retries != try || s.Seq != r.Seq || s.StartedAt < r.StartedAt ||
				s.StartedAt+s.Elapsed > r.StartedAt+r.Elapsed {
				return fmt.Errorf("statement %+v of %+v", s, r)
			}
			total += s.Elapsed
		}
		if try != r.Retries && grouped || total > r.Elapsed {
			return fmt.Errorf("%d tries in %+v", try, r)
		}
		if grouped && r.Success && inside[len(inside)-1].Statement != plugin.StatementCommit {
			return fmt.Errorf("%+v succeeded without COMMIT", r)
		}
	}
	if len(pending) > 0 {
		return fmt.Errorf("statements without a transaction: %v", pending)
	}
	return nil
}

// TestStopEndsThePauseBeforeARetry: nobody waits for a back-off at the end of a run.
func TestStopEndsThePauseBeforeARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{fail: func() (error, bool) { return errSerialization, false }}
		sink := &memorySink{}
		cfg := fakeConfig(db, &fakeStream{group: true}, sink)
		cfg.Workload.Retry = &engine.Retry{Max: 3, Classes: []engine.ErrorClass{engine.ErrClassSerialization},
			BackoffMs: 3_600_000}
		g := open(t, cfg, 2)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := settle(g, db, sink, time.Hour); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("stopping took %v", d)
		}
		if n := g.Totals(); n.Failed != 2 || n.Statements != 6 {
			t.Errorf("%+v", n)
		}
	})
}
