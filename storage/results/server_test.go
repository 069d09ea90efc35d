package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// seen takes what a server part holds, as it comes.
type seen struct {
	looks    []engine.ServerLook
	counters [][]engine.ServerCounter
	events   []engine.ServerEvent
	facts    []engine.ServerFacts
}

func (s *seen) Look(l engine.ServerLook) { s.looks = append(s.looks, l) }
func (s *seen) Counters(_ time.Time, list []engine.ServerCounter) {
	s.counters = append(s.counters, append([]engine.ServerCounter{}, list...))
}
func (s *seen) Event(e engine.ServerEvent) { s.events = append(s.events, e) }
func (s *seen) Facts(f engine.ServerFacts) { s.facts = append(s.facts, f) }

// TestServerPartsAreReadBack: what was seen of a server is read from several parts in its order, and executions are not
// deleted with it or it with them.
func TestServerPartsAreReadBack(t *testing.T) {
	f := open(t)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var want seen
	for _, part := range []struct {
		epoch  int64
		number int
	}{{1, 1}, {1, 2}, {2, 1}} {
		w, err := record.NewServerWriter(t.TempDir(), "run", record.ServerName(part.epoch, part.number))
		if err != nil {
			t.Fatal(err)
		}
		facts := engine.ServerFacts{Facts: map[string]string{"version": "15"}, Advice: map[string]string{"hot_row": "spread"},
			Missing: []string{"one", "two"}}
		want.facts = append(want.facts, facts)
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		check(w.Facts(begin, facts))
		for i := range 30 {
			at := begin.Add(time.Duration(len(want.looks)) * 100 * time.Millisecond)
			l := engine.ServerLook{At: engine.At(at), TookMs: 0.5, Idle: i, OtherIdle: 2}
			for k := range i % 4 {
				l.Sessions = append(l.Sessions, engine.ActivitySample{Session: fmt.Sprint(k), Ours: k == 0,
					State: engine.SessionActive, Class: engine.WaitLock, Event: "tuple", Scope: "row", StatementID: "s",
					Text: "SELECT …", Alters: k == 2, Application: "a", User: "u", BlockedBy: []string{"8", "9"},
					TransactionSeconds: 1.5})
			}
			check(w.Look(l))
			want.looks = append(want.looks, l)
			if i%10 == 9 {
				list := []engine.ServerCounter{{Name: "commits", Value: float64(i)}, {Name: "table_scans", Object: "t", Value: 2}}
				check(w.Counters(at, list))
				e := engine.ServerEvent{At: engine.At(at), Kind: "checkpoint", Text: "A checkpoint"}
				check(w.Event(e))
				want.counters, want.events = append(want.counters, list), append(want.events, e)
			}
		}
		a, path, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if a.Kind != record.KindServer || a.RowCount == 0 || record.HoldsExecutions(a.Kind) {
			t.Errorf("%+v", a)
		}
		if err := f.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, f, "worker-0", someExecutions(10))
	if err := f.DeleteExecutions(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	var got seen
	if n, err := f.ReadServer(t.Context(), "run", &got); err != nil || n != 3 {
		t.Fatalf("%d parts, %v", n, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if n, err := f.ReadServer(t.Context(), "another", &got); err != nil || n != 0 {
		t.Errorf("%d parts, %v", n, err)
	}
}

// TestTheSizeOfServerParts: an hour of 200 sessions, ten times a second, has at most 40 MB.
func TestTheSizeOfServerParts(t *testing.T) {
	w, err := record.NewServerWriter(t.TempDir(), "run", record.ServerName(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	classes := engine.WaitClasses()
	const looks = 200
	for i := range looks {
		l := engine.ServerLook{At: engine.At(time.UnixMilli(int64(i * 100))), TookMs: r.Float64()}
		for k := range 200 {
			l.Sessions = append(l.Sessions, engine.ActivitySample{Session: fmt.Sprint(10_000 + k), Ours: true,
				State: engine.SessionActive, Class: classes[r.IntN(4)], Event: fmt.Sprint("event", r.IntN(6)),
				StatementID: fmt.Sprint("statement", r.IntN(5)), Application: "loadstone worker-1 0a1b2c3d", User: "u",
				TransactionSeconds: r.Float64()})
		}
		if err := w.Look(l); err != nil {
			t.Fatal(err)
		}
	}
	a, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if hour := float64(a.SizeBytes) / looks * 36_000 / 1e6; hour > 40 {
		t.Errorf("an hour has %.0f MB", hour)
	} else {
		t.Logf("an hour has %.0f MB", hour)
	}
}

// TestClientSeconds: the client's time is that of its executions, second by second, also of those that last for long.
func TestClientSeconds(t *testing.T) {
	f := open(t)
	recs := someExecutions(500)
	var inFlight, waiting float64
	r := rand.New(rand.NewPCG(3, 4))
	begin := time.Unix(1_700_000_000, 0)
	for i := range recs {
		e := &recs[i]
		e.DueAt = begin.Add(time.Duration(r.Int64N(int64(20 * time.Second)))).UnixNano()
		wait := r.Int64N(int64(10 * time.Millisecond))
		e.StartedAt, e.Elapsed = e.DueAt+wait, wait+r.Int64N(int64(5*time.Second))
		inFlight += time.Duration(e.Elapsed).Seconds()
		waiting += time.Duration(wait).Seconds()
	}
	put(t, f, "worker-0", recs[:200], recs[200:])
	got, err := f.ClientSeconds(t.Context(), "run", begin, time.Second, 30)
	if err != nil {
		t.Fatal(err)
	}
	var sumFlight, sumWait, ended float64
	for _, s := range got {
		sumFlight, sumWait, ended = sumFlight+s.InFlight, sumWait+s.Waiting, ended+s.Ended
	}
	if math.Abs(sumFlight-inFlight) > 1e-6 || math.Abs(sumWait-waiting) > 1e-6 || ended != 500 {
		t.Errorf("%v of %v in flight, %v of %v waiting, %v ended", sumFlight, inFlight, sumWait, waiting, ended)
	}
	// What lies beside the slots is left out.
	some, err := f.ClientSeconds(t.Context(), "run", begin.Add(5*time.Second), time.Second, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range some {
		if math.Abs(s.InFlight-got[5+i].InFlight) > 1e-9 || s.Ended != got[5+i].Ended {
			t.Errorf("slot %d: %+v, %+v", i, s, got[5+i])
		}
	}
}
