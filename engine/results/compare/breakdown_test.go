package compare_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world has runs with their segments.
type world struct {
	details  map[string]engine.RunDetail
	segments map[string][]byte
}

func (w world) Detail(_ context.Context, id string) (engine.RunDetail, error) {
	d, ok := w.details[id]
	if !ok {
		return d, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such run.", Cause: store.ErrNotFound}
	}
	return d, nil
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func (w world) LatestSegment(_ context.Context, id string) (*segment.File, error) {
	content, ok := w.segments[id]
	if !ok {
		return nil, store.ErrNotFound
	}
	return segment.Open(memory{bytes.NewReader(content)})
}

// kind is how a kind of operations goes in a run.
type kind struct {
	name, statement string
	perSecond       int
	ms              float64
	failsEvery      int
}

// add makes a run that warms up for 2 s and is measured for so many, from 2.4 s on.
func (w world) add(t *testing.T, id string, seconds int, kinds ...kind) {
	t.Helper()
	from := noon.Add(2400 * time.Millisecond)
	to := from.Add(time.Duration(seconds) * time.Second)
	r := rand.New(rand.NewPCG(1, uint64(len(id))))
	run := &rollup.Run{Run: engine.Run{RunID: id, StartTime: engine.At(noon)}, Seconds: rollup.New(noon)}
	sum := &engine.Summary{RunID: id}
	sum.MeasuredFrom, sum.MeasuredTo = engine.At(from), engine.At(to)
	for _, k := range kinds {
		b := &rollup.Batch{Kind: record.Texts{Values: []string{k.name}},
			Statement: record.Texts{Values: []string{k.statement}}, Worker: record.Texts{Values: []string{"w"}},
			Class: record.Texts{Values: []string{"timeout"}}, Code: record.Texts{Values: []string{"57014"}}}
		n := 0
		for at := noon.Add(400 * time.Millisecond); at.Before(to); at = at.Add(time.Second / time.Duration(k.perSecond)) {
			elapsed := k.ms * (0.8 + 0.4*r.Float64())
			if at.Add(time.Duration(elapsed * 1e6)).After(to) {
				break
			}
			failed := k.failsEvery > 0 && n%k.failsEvery == 0
			n++
			b.DueNs = append(b.DueNs, at.UnixNano())
			b.ElapsedNs = append(b.ElapsedNs, int64(elapsed*1e6))
			b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
			b.Warmup, b.Success = append(b.Warmup, at.Before(from)), append(b.Success, !failed)
			b.Kind.Index, b.Statement.Index = append(b.Kind.Index, 0), append(b.Statement.Index, 0)
			b.Worker.Index = append(b.Worker.Index, 0)
			b.Class.Index, b.Code.Index = append(b.Class.Index, -1), append(b.Code.Index, -1)
		}
		run.Seconds.Add(b)
	}
	content, _, err := segment.Bytes(run)
	if err != nil {
		t.Fatal(err)
	}
	w.segments[id] = content
	w.details[id] = engine.RunDetail{Run: engine.Run{RunID: id, Status: engine.StatusCompleted,
		StartTime: engine.At(noon), WarmupStartTime: engine.At(noon.Add(400 * time.Millisecond))}, Summary: sum}
}

func reader(t *testing.T) (*compare.BreakdownReader, world) {
	t.Helper()
	w := world{map[string]engine.RunDetail{}, map[string][]byte{}}
	return &compare.BreakdownReader{Runs: w, Segments: w}, w
}

// TestCurvesOfKinds: each kind has its own rate, errors and latencies, at whatever resolution, up to the end.
func TestCurvesOfKinds(t *testing.T) {
	r, w := reader(t)
	w.add(t, "a", 30, kind{"POINT_LOOKUP", "get", 200, 2, 0}, kind{"INSERT", "put", 50, 20, 10})
	for _, most := range []int{1000, 10} {
		c, err := r.Curves(t.Context(), "a", most)
		if err != nil {
			t.Fatal(err)
		}
		n := len(c.ElapsedSeconds)
		if len(c.Kinds) != 2 || c.Kinds[0].Kind != engine.KindPointLookup || n > most+1 || most == 1000 && n < 31 {
			t.Fatalf("%d kinds, %d points for %d", len(c.Kinds), n, most)
		}
		for i, want := range []struct{ rate, errors, ms float64 }{{200, 0, 2}, {50, 5, 20}} {
			k := c.Kinds[i]
			if len(k.QPS) != n || len(k.P99) != n || len(k.ErrorsPerSec) != n {
				t.Fatalf("%s has %d, %d and %d points", k.Kind, len(k.QPS), len(k.P99), len(k.ErrorsPerSec))
			}
			for at := range k.QPS {
				if math.Abs(*k.QPS[at]-want.rate) > want.rate*0.1 || math.Abs(*k.ErrorsPerSec[at]-want.errors) > 2 ||
					k.P50[at] == nil || *k.P50[at] < want.ms*0.75 || *k.P99[at] > want.ms*1.25 {
					t.Errorf("%s at %g s: %g/s, %g errors/s, %v to %v ms", k.Kind, c.ElapsedSeconds[at], *k.QPS[at],
						*k.ErrorsPerSec[at], k.P50[at], k.P99[at])
				}
			}
		}
	}
}

// TestOnlyWhatDiffersIsWorse: a kind that became slower is, and the others and their statements are not.
// TestCurvesHaveGapsWhereTheRecordIsLost: where a server was killed the rest is not known, and is not 0.
func TestCurvesHaveGapsWhereTheRecordIsLost(t *testing.T) {
	r, w := reader(t)
	w.add(t, "a", 38, kind{"POINT_LOOKUP", "get", 200, 2, 0})
	sum, covered := w.details["a"].Summary, 37.0
	sum.MeasuredTo = engine.At(noon.Add(62400 * time.Millisecond))
	sum.RecordPartial, sum.CoveredSeconds = true, &covered
	for _, from := range []float64{2.4, 40.4} { // the first is of the account, and of all of it
		sum.ValidityDetail.Causes = append(sum.ValidityDetail.Causes, engine.ValidityCause{Cause: "incomplete_record",
			From: engine.At(noon.Add(time.Duration(from * float64(time.Second)))), To: engine.At(noon.Add(time.Hour))})
	}
	for _, most := range []int{1000, 10} {
		c, err := r.Curves(t.Context(), "a", most)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range c.ElapsedSeconds {
			k := c.Kinds[0]
			// A part of the second before the last execution may be missing, too.
			known := end <= 39
			if (k.QPS[i] != nil) != known || (k.ErrorsPerSec[i] != nil) != known || (k.P95[i] != nil) != known {
				t.Errorf("in %d points: at %g s the rate is %v, the P95 %v", most, end, k.QPS[i], k.P95[i])
			}
		}
	}
	// A comparison takes none of it as seconds in which nothing was done.
	w.add(t, "bb", 60, kind{"POINT_LOOKUP", "get", 200, 2, 0})
	c, err := r.Compare(t.Context(), []string{"bb"}, []string{"a"}, compare.Defaults())
	if err != nil || len(c.Kinds) != 1 || c.Kinds[0].Verdict != compare.Same {
		t.Errorf("against a run that lost nothing: %+v, %v", c.Kinds, err)
	}
}

func TestOnlyWhatDiffersIsWorse(t *testing.T) {
	r, w := reader(t)
	w.add(t, "a", 40, kind{"POINT_LOOKUP", "get", 200, 2, 0}, kind{"INSERT", "put", 100, 5, 0},
		kind{"DELETE", "drop", 20, 5, 0})
	w.add(t, "bb", 40, kind{"POINT_LOOKUP", "get", 200, 2, 0}, kind{"INSERT", "put", 100, 8, 0},
		kind{"UPDATE", "set", 20, 5, 0})
	c, err := r.Compare(t.Context(), []string{"a"}, []string{"bb"}, compare.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]compare.Verdict{"POINT_LOOKUP": compare.Same, "INSERT": compare.Worse,
		"UPDATE": compare.Unclear, "DELETE": compare.Unclear}
	for name, list := range map[string][]compare.ComparedPart{"kinds": c.Kinds, "statements": c.Statements} {
		if len(list) != 4 {
			t.Fatalf("%s: %+v", name, list)
		}
		for _, p := range list {
			once := p.Kind == engine.KindUpdate || p.Kind == engine.KindDelete
			if p.Verdict != want[p.Kind.String()] || once != (p.A == 0 || p.B == 0) || once != (len(p.Metrics) == 0) ||
				(name == "kinds") != (p.StatementID == "") {
				t.Errorf("%s: %s %q is %s, of %d and %d\n%+v", name, p.Kind, p.StatementID, p.Verdict, p.A, p.B, p.Metrics)
			}
			for _, m := range p.Metrics {
				if slower := p.Kind == engine.KindInsert && strings.HasSuffix(m.Name, "_ms"); slower !=
					(m.Verdict == compare.Worse) || slower && (*m.Difference < 50 || *m.Difference > 70) {
					t.Errorf("%s: %s of %s is %s by %v", name, m.Name, p.Kind, m.Verdict, m.Difference)
				}
			}
		}
	}
	if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "by chance") {
		t.Errorf("notes: %q", c.Notes)
	}
}

// TestWhatIsNotThere: runs that go on, that measured nothing, that are not taken in, and that are not there say so.
func TestWhatIsNotThere(t *testing.T) {
	r, w := reader(t)
	w.add(t, "a", 20, kind{"INSERT", "put", 100, 5, 0})
	live, empty, early := w.details["a"], w.details["a"], w.details["a"]
	live.Status, early.RunID = engine.StatusRunning, "early"
	none := *empty.Summary
	none.MeasuredFrom, none.MeasuredTo = engine.Time{}, engine.Time{}
	empty.Summary = &none
	w.details["live"], w.details["empty"], w.details["early"] = live, empty, early
	for id, code := range map[string]engine.Code{"live": engine.CodeConflict, "empty": engine.CodeConflict,
		"early": engine.CodeConflict, "nobody": engine.CodeNotFound} {
		if _, err := r.Curves(t.Context(), id, 100); !engine.HasCode(err, code) {
			t.Errorf("curves of %s: %v", id, err)
		}
		for _, sides := range [][2][]string{{{"a"}, {id}}, {{id}, {"a"}}} {
			if _, err := r.Compare(t.Context(), sides[0], sides[1], compare.Defaults()); !engine.HasCode(err, code) {
				t.Errorf("comparing %v: %v", sides, err)
			}
		}
	}
	if _, err := r.Compare(t.Context(), nil, []string{"a"}, compare.Defaults()); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("no side: %v", err)
	}
}
