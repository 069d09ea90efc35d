package results

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

const testBase = int64(1_790_000_000_000_000_000)

func after(ms float64) time.Time { return time.Unix(0, testBase+int64(ms*1e6)) }

// steady are operations of a millisecond on one connection, back to back, from from to to.
func steady(from, to int, connection uint32) (recs []engine.Execution) {
	for at := from; at < to; at++ {
		t := testBase + int64(at)*1e6
		recs = append(recs, engine.Execution{DueAt: t, StartedAt: t, Elapsed: 1e6, Seq: uint32(at), ConnectionID: connection,
			Rows: 1, Success: true})
	}
	return recs
}

// A load that ends by itself, as a replay does, was measured as well: the figures say when.
func TestALoadThatEndsByItselfSaysWhenItWasMeasured(t *testing.T) {
	recs := steady(100, 1_000, 0)
	recs[len(recs)-1].Elapsed = 2_000_300 // within a millisecond
	f := open(t)
	put(t, f, "worker-0", recs)
	for _, w := range []engine.Window{{}, {From: after(50)}} {
		fig, err := f.FiguresIn(context.Background(), "run", "", w)
		if err != nil {
			t.Fatal(err)
		}
		if !fig.MeasuredFrom.Equal(after(100)) || !fig.MeasuredTo.Equal(after(1_002)) || fig.DrainSeconds != 0 {
			t.Errorf("measured from %v to %v", fig.MeasuredFrom, fig.MeasuredTo)
		}
		second, err := f.FiguresIn(context.Background(), "run", "",
			engine.Window{From: fig.MeasuredFrom.Time, To: fig.MeasuredTo.Time})
		if err != nil || second.Operations != 900 || second.FinishedLate != 0 {
			t.Errorf("in what was measured, %d operations, %d late: %v", second.Operations, second.FinishedLate, err)
		}
	}
}

// One operation that is open at the end moves no rate: it counts, and it is late.
func TestRatesEndWithTheMeasurement(t *testing.T) {
	recs := steady(0, 10_000, 0)
	stuck := engine.Execution{DueAt: testBase + 2e9, StartedAt: testBase + 2e9, Elapsed: 28e9, ConnectionID: 1,
		Kind: engine.KindUpdate, Statement: 1, Success: true}
	recs = append(recs, stuck)
	f := open(t)
	put(t, f, "worker-0", recs)
	fig, err := f.FiguresIn(context.Background(), "run", "", engine.Window{From: after(0), To: after(10_000)})
	if err != nil {
		t.Fatal(err)
	}
	if *fig.QPS != 1000 || fig.DurationSeconds != 10 || fig.Operations != 10_001 || fig.FinishedLate != 1 ||
		fig.DrainSeconds != 20 {
		t.Errorf("%v/s over %v s, %d operations, %d late, drain %v s", *fig.QPS, fig.DurationSeconds, fig.Operations,
			fig.FinishedLate, fig.DrainSeconds)
	}
	if fig.LatencyMs.Max != 28_000 || *fig.ByKind[engine.KindPointLookup].QPS != 1000 ||
		*fig.ByKind[engine.KindUpdate].QPS != 0 || fig.ByKind[engine.KindUpdate].NoRows != 1 {
		t.Errorf("%+v, %+v, %+v", fig.LatencyMs, fig.ByKind[engine.KindPointLookup], fig.ByKind[engine.KindUpdate])
	}
	rates := 0.0
	for _, s := range fig.ByStatement {
		rates += *s.QPS
	}
	if rates != 1000 || !fig.MeasuredTo.Equal(after(10_000)) || fig.CoveredSeconds != nil {
		t.Errorf("%v by statement, to %v", rates, fig.MeasuredTo)
	}
	seconds, err := f.SecondsIn(context.Background(), "run", engine.Window{From: after(0), To: after(10_000)})
	if err != nil || len(seconds) != 10 {
		t.Errorf("%d seconds: %v", len(seconds), err)
	}
}

// A measurement begins and ends anywhere in a millisecond, and the summary names whole ones: what it counts
// is what somebody counts who has the summary and the record, and no more.
func TestFiguresAreOfTheTimesThatTheyName(t *testing.T) {
	f := open(t)
	var recs []engine.Execution
	for i := range 100 { // fifty a millisecond, some before the end and some after it
		due := testBase + 999e6 + int64(i)*20_000
		recs = append(recs, engine.Execution{DueAt: due, StartedAt: due, Elapsed: 20_000, ConnectionID: uint32(i),
			Success: true})
	}
	put(t, f, "worker-0", recs[:50])
	put(t, f, "worker-1", recs[50:])
	run, workers, err := f.FiguresByWorker(context.Background(), "run", []string{"worker-0", "worker-1"},
		engine.Window{From: after(0.7), To: after(1_000.7)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var message engine.Figures
	if err := json.Unmarshal(text, &message); err != nil {
		t.Fatal(err)
	}
	late := int64(0)
	for _, r := range recs {
		if r.DueAt+r.Elapsed > message.MeasuredTo.UnixNano() {
			late++
		}
	}
	if message.FinishedLate != late || workers[0].FinishedLate+workers[1].FinishedLate != late ||
		*message.QPS != float64(100-late) {
		t.Errorf(
			"%d are late, %d and %d by run worker, %v/s; %d ended after %s",
			message.FinishedLate,
			workers[0].FinishedLate,
			workers[1].FinishedLate,
			*message.QPS,
			late,
			text,
		)
	}
	if drain := float64(
		recs[99].DueAt+recs[99].Elapsed-message.MeasuredTo.UnixNano(),
	) / 1e9; message.DrainSeconds != drain ||
		message.DurationSeconds != message.MeasuredTo.Sub(message.MeasuredFrom.Time).Seconds() {
		t.Errorf("a drain of %v s, want %v; %v s measured", message.DrainSeconds, drain, message.DurationSeconds)
	}
}

// A rate of what is left of a record is taken over the time that it covers.
func TestRatesOfALostRecordAreOverWhatItCovers(t *testing.T) {
	for name, c := range map[string]struct {
		keep    []int // of five parts, of two seconds each
		seconds float64
	}{
		"all are there":    {[]int{0, 1, 2, 3, 4}, 9}, // its last second may not be whole
		"the end is lost":  {[]int{0, 1, 2}, 5},
		"the middle":       {[]int{0, 1, 3, 4}, 3 + 2},
		"the beginning":    {[]int{2, 3, 4}, 4},
		"one is left":      {[]int{2}, 0},
		"nothing is there": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			dir, parts := spoolOf(t, c.keep)
			for _, a := range parts {
				if err := f.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
					t.Fatal(err)
				}
			}
			fig, err := f.FiguresIn(context.Background(), "run", "",
				engine.Window{From: after(0), To: after(10_000), Partial: true, Workers: []string{"worker-0"}})
			if err != nil {
				t.Fatal(err)
			}
			if c.seconds == 0 {
				checkNothingCovered(t, fig)
				return
			}
			if fig.CoveredSeconds == nil || math.Abs(*fig.CoveredSeconds-c.seconds) > 0.01 {
				t.Fatalf("%v s are covered, %v are", fig.CoveredSeconds, c.seconds)
			}
			if fig.QPS == nil || math.Abs(*fig.QPS-1000) > 2 {
				t.Errorf("%v/s of a steady thousand", fig.QPS)
			}
			// A run worker of which nothing is lost does not shorten what the others cover.
			whole, err := f.FiguresIn(context.Background(), "run", "",
				engine.Window{From: after(0), To: after(10_000), Partial: true})
			if err != nil || *whole.CoveredSeconds != 10 {
				t.Errorf("%v, %v", whole.CoveredSeconds, err)
			}
		})
	}
}

// checkNothingCovered: of a record of which no time is whole no rate is known, and none is 0.
func checkNothingCovered(t *testing.T, fig *engine.Figures) {
	t.Helper()
	text, err := json.Marshal(fig)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	found := 0
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, in := range v {
				if name == "qps" || name == "covered_seconds" || name == "rate" && fig.Operations == 0 {
					if found++; in != nil {
						t.Errorf("%s/%s is %v", path, name, in)
					}
				}
				look(path+"/"+name, in)
			}
		case []any:
			for i, in := range v {
				look(fmt.Sprintf("%s/%d", path, i), in)
			}
		}
	}
	look("", all)
	if found < 2 || fig.HasRates() || !fig.RecordPartial || fig.DurationSeconds != 10 {
		t.Errorf("%d unknown figures: %s", found, text)
	}
}

// spoolOf makes five parts of two seconds, and keeps some.
func spoolOf(t *testing.T, keep []int) (string, []engine.Artifact) {
	t.Helper()
	var batches [][]engine.Execution
	for i := range 5 {
		batches = append(batches, steady(2000*i, 2000*(i+1), 0))
	}
	dir, parts := spool(t, "worker-0", batches...)
	var kept []engine.Artifact
	for i, a := range parts {
		found := false
		for _, k := range keep {
			found = found || k == i
		}
		if found {
			kept = append(kept, a)
		} else if err := os.Remove(filepath.Join(dir, a.Name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, kept
}

// The example of the documentation: 1.4 s in a minute, of which a closed loop's P99 shows
// nothing. What it hides is that of the theory: 1.4 s - 0.6 s at 5000/s.
func TestStallsOfAClosedLoopAreFound(t *testing.T) {
	var recs []engine.Execution
	const connections, second = 5, 1_000_000_000
	for c := range uint32(connections) {
		for at := int64(0); at < 60*second; {
			took := int64(1_000_000)
			if at == 20*second {
				took = 1_400_000_000
			}
			recs = append(recs, engine.Execution{DueAt: testBase + at, StartedAt: testBase + at, Elapsed: took, ConnectionID: c,
				Success: true, Rows: 1})
			at += took
		}
	}
	f := open(t)
	putOf(t, f, false, "worker-0", recs)
	fig, err := f.FiguresIn(context.Background(), "run", "", engine.Window{From: after(0), To: after(60_000)})
	if err != nil {
		t.Fatal(err)
	}
	if len(fig.Stalls) != 1 || math.Abs(fig.Stalls[0].Seconds-1.4) > 1e-6 || !fig.Stalls[0].From.Equal(after(20_000)) ||
		fig.Stalls[0].MissedOperations != 7000 {
		t.Fatalf("%+v", fig.Stalls)
	}
	if fig.LatencyMs.P99 != 1 {
		t.Errorf("the closed loop's P99 is %v", fig.LatencyMs.P99)
	}
	if o := fig.Omission; o == nil || math.Abs(o.P99Ms-800) > 10 || o.MissedOperations != 7000 ||
		math.Abs(o.P50Ms-1) > 0.01 {
		t.Errorf("%+v", o)
	}
}

// In an open loop operations come due while the target stands still, and their latency tells of it.
func TestAnOpenLoopHidesNothingOfItsStalls(t *testing.T) {
	var recs []engine.Execution
	const ms = 1_000_000
	for at := int64(0); at < 60_000; at++ {
		due, took := testBase+at*ms, int64(ms)
		started := due
		if at >= 20_000 && at < 21_400 {
			started = testBase + 21_400*ms
		}
		recs = append(recs, engine.Execution{DueAt: due, StartedAt: started, Elapsed: started - due + took,
			PoolWait: started - due, Success: true})
	}
	f := open(t)
	put(t, f, "worker-0", recs)
	fig, err := f.FiguresIn(context.Background(), "run", "",
		engine.Window{From: after(0), To: after(60_000), Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	if fig.ServiceMs == nil || len(fig.Stalls) != 1 {
		t.Fatalf("no stall of an open loop: %+v, %+v", fig.ServiceMs, fig.Stalls)
	}
	if fig.Omission != nil {
		t.Errorf("it is said to have hidden %+v", fig.Omission)
	}
}

func TestOrdinaryPausesAreNoStalls(t *testing.T) {
	for name, c := range map[string]struct {
		took, every int64 // ms
		connections int
	}{
		"slow operations that begin together": {1200, 1200, 50},
		"think times that end together":       {5, 1500, 50},
		"few operations":                      {5, 1500, 1},
	} {
		var recs []engine.Execution
		for conn := range uint32(c.connections) {
			for at := int64(0); at < 60_000; at += c.every {
				t := testBase + at*1e6
				recs = append(recs, engine.Execution{DueAt: t, StartedAt: t, Elapsed: c.took * 1e6, ConnectionID: conn,
					Success: true})
			}
		}
		f := open(t)
		put(t, f, "worker-0", recs)
		fig, err := f.FiguresIn(context.Background(), "run", "",
			engine.Window{From: after(0), To: after(60_000), Connections: c.connections})
		if err != nil || len(fig.Stalls) != 0 || fig.Omission != nil {
			t.Errorf("%s: %+v, %v", name, fig.Stalls, err)
		}
	}
}

// With stages, and in a search, the pace is that of the seconds beside a stall: what is
// missing is counted by the level that stood still, and a slow level is no stall.
func TestStallsAreFoundWhereTheLoadVaries(t *testing.T) {
	// One connection at 1000/s for 20 s, eleven for 20 s, which then take 1.2 s for each operation, all at the same time.
	made := func(freeze int64) (recs []engine.Execution) {
		for c := range uint32(11) {
			from, to := int64(0), int64(60_000)
			if c > 0 {
				from = 20_000
			}
			for at := from; at < to; {
				took := int64(1)
				if at >= 40_000 {
					took = 1200
				}
				if freeze > 0 && at == freeze {
					took = 1400
				}
				recs = append(recs, engine.Execution{DueAt: testBase + at*1e6, StartedAt: testBase + at*1e6, Elapsed: took * 1e6,
					ConnectionID: c, Success: true})
				at += took
			}
		}
		return recs
	}
	for freeze, missed := range map[int64]int64{0: 0, 10_000: 1400, 30_000: 11 * 1400} {
		f := open(t)
		putOf(t, f, false, "worker-0", made(freeze))
		fig, err := f.FiguresIn(context.Background(), "run", "",
			engine.Window{From: after(0), To: after(60_000), Connections: 11, Varies: true})
		if err != nil {
			t.Fatal(err)
		}
		if freeze == 0 {
			if len(fig.Stalls) != 0 {
				t.Errorf("a slow level is said to stand still: %+v", fig.Stalls)
			}
			continue
		}
		if len(fig.Stalls) != 1 || fig.Omission == nil || !fig.Stalls[0].From.Equal(after(float64(freeze))) ||
			math.Abs(float64(fig.Stalls[0].MissedOperations-missed)) > float64(missed)/50 {
			t.Errorf("frozen at %d ms: %+v, %+v", freeze, fig.Stalls, fig.Omission)
		}
	}
}

// Operations that end by their timeout, one after the other, are a target that stands still;
// errors that it answers with are not. Where nothing was ever answered there is no pace to miss.
func TestTimeoutsAreNoAnswers(t *testing.T) {
	made := func(class engine.ErrorClass, from, to int64) (recs []engine.Execution) {
		id := slices.IndexFunc(dictionary, func(e engine.ExecutionError) bool { return e.Class == class })
		if id < 0 {
			t.Fatalf("the dictionary has no error of class %s", class)
		}
		for c := range uint32(4) {
			for at := int64(0); at < 20_000; {
				r := engine.Execution{DueAt: testBase + at*1e6, StartedAt: testBase + at*1e6, Elapsed: 1e6, ConnectionID: c,
					Success: true}
				if at >= from && at < to {
					r.Elapsed, r.Success, r.ErrorID = 500e6, false, uint32(id)
				}
				recs = append(recs, r)
				at += r.Elapsed / 1e6
			}
		}
		return recs
	}
	for name, c := range map[string]struct {
		class    engine.ErrorClass
		from, to int64
		seconds  float64
	}{
		"timeouts":             {engine.ErrClassTimeout, 10_000, 13_000, 3},
		"errors":               {engine.ErrClassConstraint, 10_000, 13_000, 0},
		"nothing but timeouts": {engine.ErrClassTimeout, 0, 20_000, 0},
	} {
		f := open(t)
		putOf(t, f, false, "worker-0", made(c.class, c.from, c.to))
		fig, err := f.FiguresIn(context.Background(), "run", "",
			engine.Window{From: after(0), To: after(20_000), Connections: 4})
		if err != nil {
			t.Fatal(err)
		}
		if c.seconds == 0 {
			if len(fig.Stalls) != 0 {
				t.Errorf("%s: %+v", name, fig.Stalls)
			}
		} else if len(fig.Stalls) != 1 || math.Abs(fig.Stalls[0].Seconds-c.seconds) > 0.01 ||
			math.Abs(float64(fig.Stalls[0].MissedOperations)-4000*c.seconds) > 100 {
			t.Errorf("%s: %+v", name, fig.Stalls)
		}
	}
}
