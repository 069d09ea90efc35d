package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestAServerCannotFillTheMemory: statements of others are remembered by their beginning, counters that the core does not
// know are left out, and numbers that no server counts are none.
func TestAServerCannotFillTheMemory(t *testing.T) {
	r := newReader("0a1b2c3d", "", nil)
	for i := range 50 {
		text := fmt.Sprintf("SELECT %d FROM t -- ", i) + strings.Repeat("x", 1<<20)
		if _, err := r.look(&target.ResultSet{Columns: activityColumns,
			Rows: [][]any{{"9", "active", "cpu", "", "", text, false, "", "", "", 1e300, int64(1), 0.1}}}); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for key, value := range r.masked {
		held += len(key) + len(value)
	}
	if most := 50 * (maxRaw + 2*maxText); held > most {
		t.Errorf("%d bytes are held", held)
	}
	l, err := r.look(&target.ResultSet{Columns: activityColumns,
		Rows: [][]any{{"9", "active", "cpu", "", "", "", false, "", "", "", 1e300, int64(1), 0.1}}})
	if err != nil || l.Sessions[0].TransactionSeconds > maxAge {
		t.Errorf("%+v, %v", l, err)
	}
	rows := [][]any{{"commits", "", 5.0}, {"temp_bytes", "", 1e300}}
	for i := range 100 {
		rows = append(rows, []any{fmt.Sprintf("name%d", i), "", 1.0})
	}
	list, err := r.counters(&target.ResultSet{Columns: []string{"NAME", "OBJECT", "VALUE"}, Rows: rows})
	if err != nil || len(list) != 1 || list[0].Name != "commits" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestAServerIsNotBelievedWhatItCosts: large answers cost the observer's own processor whatever the server says, so
// that they are asked for seldom.
func TestAServerIsNotBelievedWhatItCosts(t *testing.T) {
	big := &target.ResultSet{Rows: [][]any{{strings.Repeat("x", 4<<20)}}}
	for range 2000 {
		big.Rows = append(big.Rows, []any{"1"})
	}
	b := budget{share: lookShare, floor: lookFloor}
	look := turn{every: 100 * time.Millisecond}
	looks, start := 0, time.Unix(0, 0)
	for at := time.Duration(0); at < time.Minute; at += 25 * time.Millisecond {
		if b.allows(start.Add(at)) && look.due(at) {
			b.spend(max(look.record(saidCost(0.001, 50*time.Millisecond)), answerCost(big)))
			looks++
		}
	}
	if looks > 70 {
		t.Errorf("%d looks at 4 MiB in a minute", looks)
	}
	if c := saidCost(1e12, time.Millisecond); c != time.Millisecond {
		t.Errorf("a look that took 1 ms cost %v", c)
	}
}

// asked is a connection whose answers a test gives.
type asked struct {
	answer func(sql string) (*target.ResultSet, error)
	broken bool
}

func (a *asked) Read(_ context.Context, sql string) (*target.ResultSet, error) { return a.answer(sql) }
func (a *asked) Broken() bool                                                  { return a.broken }
func (*asked) Close() error                                                    { return nil }

func newSession(t *testing.T, conn target.Observer, plan *plugin.ObservePlan) (*session, *[]string) {
	t.Helper()
	var log []string
	o := newObserver(Options{RunID: "0a1b2c3d", Dir: t.TempDir(),
		Log: func(_ engine.LogLevel, text string) { log = append(log, text) }}, func() {})
	s := &session{Observer: o, plan: plan, conn: conn, reader: newReader("0a1b2c3d", "", nil),
		parts: &parts{opts: &o.opts, say: o.say}}
	for _, c := range plan.Counters {
		s.addCounter(c)
	}
	if err := s.tellFacts(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.parts.w != nil {
			s.parts.w.Abandon()
		}
	})
	return s, &log
}

var (
	errDenied = &engine.Error{Code: engine.CodeTarget, Message: "permission denied for view pg_stat_wal"}
	counted   = &target.ResultSet{Columns: []string{"NAME", "OBJECT", "VALUE"}, Rows: [][]any{{"commits", "", 1.0}}}
	looked    = &target.ResultSet{Columns: activityColumns, Rows: [][]any{
		{"9", "active", "cpu", "", "", "", false, "", "", "", 0.0, int64(1), 0.1}}}
)

// TestAStatementThatIsRefusedIsTold: sessions that cannot be read are the reason why nothing is observed, in the log
// once, and in what is missing, until they can.
func TestAStatementThatIsRefusedIsTold(t *testing.T) {
	refused := true
	s, log := newSession(t, &asked{answer: func(string) (*target.ResultSet, error) {
		if refused {
			return nil, errDenied
		}
		return looked, nil
	}}, &plugin.ObservePlan{Activity: "A"})
	for range 10 {
		if err := s.activityLook(t.Context(), "A"); err != nil {
			t.Fatal(err)
		}
	}
	if v := s.View(Measured{}); v.Observed || !strings.Contains(v.Reason, "permission denied") || len(v.Missing) != 1 ||
		len(*log) != 1 || !strings.Contains((*log)[0], "activity") {
		t.Fatalf("%+v; %q", v, *log)
	}
	refused = false
	if err := s.activityLook(t.Context(), "A"); err != nil {
		t.Fatal(err)
	}
	if v := s.View(Measured{To: time.Now()}); !v.Observed || v.Reason != "" || len(v.Missing) > 0 || len(*log) != 2 {
		t.Errorf("%+v; %q", v, *log)
	}
}

// TestOneDeniedViewCostsOnlyWhatIsOfIt: a statement whose whole is refused is asked in its parts; the one that is refused
// is told, asked more seldom, and as often as before once it is answered.
func TestOneDeniedViewCostsOnlyWhatIsOfIt(t *testing.T) {
	denied := true
	s, log := newSession(t, &asked{answer: func(sql string) (*target.ResultSet, error) {
		if denied && strings.Contains(sql, "WAL") {
			return nil, errDenied
		}
		return counted, nil
	}}, &plugin.ObservePlan{Activity: "A", Counters: []plugin.ObserveStatement{{ID: "second", SQL: "DATABASE WAL",
		Parts: []plugin.ObserveStatement{{ID: "database", SQL: "DATABASE"}, {ID: "log", SQL: "WAL"}}}}})
	round := func() {
		for i := 0; i < len(s.counters); i++ {
			if err := s.count(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 8 {
		round()
	}
	f := s.facts()
	if len(s.counters) != 2 || s.counters[0].ID != "database" || s.counters[0].failed > 0 ||
		s.counters[1].every <= counterEvery || len(f.Missing) != 1 || !strings.Contains(f.Missing[0], "statement log") ||
		len(*log) != 1 {
		t.Fatalf("%+v; %q; %q", s.counters, f.Missing, *log)
	}
	denied = false
	round()
	if s.counters[1].every != counterEvery || len(s.facts().Missing) > 0 || len(*log) != 2 {
		t.Errorf("%+v; %q", s.counters[1].turn, *log)
	}
}

// TestAnAnswerThatIsTooLargeIsNotAskedForAgain: it costs the connection once.
func TestAnAnswerThatIsTooLargeIsNotAskedForAgain(t *testing.T) {
	conn := &asked{}
	conn.answer = func(string) (*target.ResultSet, error) { conn.broken = true; return nil, target.ErrTooLarge }
	c := plugin.ObserveStatement{ID: "tables", SQL: "T"}
	s, log := newSession(t, conn, &plugin.ObservePlan{Activity: "A", Counters: []plugin.ObserveStatement{c}})
	if err := s.count(t.Context(), 0); !errors.Is(err, target.ErrTooLarge) {
		t.Fatal(err)
	}
	next := &session{Observer: s.Observer}
	if next.addCounter(c); len(next.counters) > 0 || len(*log) != 1 {
		t.Errorf("%+v; %q", next.counters, *log)
	}
}

// TestWhoLooksDoesNotWaitForWhoJudges: while a view is judged the server is looked at; one view is the answer to all who
// ask within a second.
func TestWhoLooksDoesNotWaitForWhoJudges(t *testing.T) {
	s, _ := newSession(t, &asked{answer: func(string) (*target.ResultSet, error) { return looked, nil }},
		&plugin.ObservePlan{Activity: "A"})
	s.viewMu.Lock() // somebody judges
	done := make(chan error)
	go func() { done <- s.activityLook(context.Background(), "A") }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the look waits")
	}
	s.viewMu.Unlock()
	m := Measured{From: time.Unix(1, 0)}
	s.View(m)
	first := s.judged.Load()
	if first.view.Observed != true || !first.until.After(time.Now().Add(-time.Minute)) {
		t.Fatalf("%+v", first)
	}
	first.until = time.Now().Add(time.Hour)
	s.View(m)
	if s.judged.Load() != first {
		t.Error("a fresh view is judged again")
	}
}

// TestTheRecordOfAnObserverIsBounded: above the bound nothing more is written, and the log says so once.
func TestTheRecordOfAnObserverIsBounded(t *testing.T) {
	s, log := newSession(t, &asked{}, &plugin.ObservePlan{})
	s.parts.kept = maxBytes
	for range 3 {
		if err := s.parts.look(engine.ServerLook{At: engine.At(time.Now())}); err != nil {
			t.Fatal(err)
		}
	}
	if s.parts.w.Rows() != 0 || len(*log) != 1 || !strings.Contains((*log)[0], "MB") {
		t.Errorf("%d rows; %q", s.parts.w.Rows(), *log)
	}
}

// TestTheLogOfAnObserverIsBounded: the words are the server's.
func TestTheLogOfAnObserverIsBounded(t *testing.T) {
	s, log := newSession(t, &asked{}, &plugin.ObservePlan{})
	for i := range 10 * maxLines {
		s.say(engine.LogWarning, fmt.Sprint(i))
	}
	if len(*log) != maxLines || !strings.Contains((*log)[maxLines-1], "left out") {
		t.Errorf("%d lines, %q", len(*log), (*log)[len(*log)-1])
	}
}

// TestOursAreKnownByTheMarkAlone: an application that has the connection's name is not the run.
func TestOursAreKnownByTheMarkAlone(t *testing.T) {
	r := newReader("0a1b2c3d-rest", "", nil)
	for name, want := range map[string]bool{"billing 0a1b2c3d": true, "loadstone w-1 0a1b2c3d": true, "billing": false,
		"loadstone server watch": false, "0a1b2c3d": false} {
		if r.ours(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
