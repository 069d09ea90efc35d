package results

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestSeconds: each measured execution is in the second in which it ended, the last of
// which is shorter; warm-up and the statements of transactions are not.
func TestSeconds(t *testing.T) {
	const ms = 1_000_000
	base := int64(1_700_000_000_000 * ms)
	var recs []engine.Execution
	add := func(at, elapsed int64, change func(*engine.Execution)) {
		r := engine.Execution{DueAt: base + at*ms, StartedAt: base + at*ms, Elapsed: elapsed * ms, Seq: uint32(len(recs)),
			Success: true}
		if change != nil {
			change(&r)
		}
		recs = append(recs, r)
	}
	add(-500, 10, func(r *engine.Execution) { r.Warmup = true })
	add(0, 10, nil)
	add(900, 50, func(r *engine.Execution) { r.Success, r.ErrorID = false, 1 })
	add(950, 100, nil) // ends in the second second
	add(960, 5, func(r *engine.Execution) { r.Position = 1 })
	add(3100, 20, nil) // ends with the last second
	f := open(t)
	put(t, f, "worker-0", recs[:3], recs[3:])
	seconds, err := f.Seconds(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if len(seconds) != 4 || seconds[0].Length() != 1 || math.Abs(seconds[3].Length()-0.12) > 1e-9 ||
		seconds[3].Operations != 1 {
		t.Fatalf("%+v", seconds)
	}
	if s := seconds[0]; s.Operations != 2 || s.Errors != 1 || s.Latency == nil || s.Latency.Max != 50*ms {
		t.Errorf("%+v", s)
	}
	if s := seconds[1]; s.Operations != 1 || s.Latency.Min != 100*ms {
		t.Errorf("%+v", s)
	}
	if s := seconds[2]; s.Operations != 0 || s.Latency != nil {
		t.Errorf("%+v", s)
	}
	at := func(ms int64) time.Time { return time.Unix(0, base).Add(time.Duration(ms) * time.Millisecond) }
	in, err := f.SecondsIn(context.Background(), "run", engine.Window{From: at(-10), To: at(1480)})
	if err != nil || len(in) != 2 || in[0].Operations != 2 || in[1].Operations != 1 || in[1].Length() != 0.49 {
		t.Errorf("%+v, %v: what ends after the window is in no second of it", in, err)
	}
	if none, err := f.Seconds(context.Background(), "unknown"); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

// TestSecondsOfALongRunAreMerged reads a measurement of more than an hour: as many
// operations and seconds as there are, in few elements.
func TestSecondsOfALongRunAreMerged(t *testing.T) {
	const second = int64(1_000_000_000)
	const length = 3*maxSeconds + 1
	var recs []engine.Execution
	for i := range int64(length) {
		recs = append(recs, engine.Execution{DueAt: i * second, StartedAt: i * second, Elapsed: 1_000_000, Seq: uint32(i),
			Success: true})
	}
	// Ends just behind the last whole second.
	recs = append(recs, engine.Execution{DueAt: length*second - 500_000, StartedAt: length*second - 500_000,
		Elapsed: 1_000_000, Seq: length, Success: true})
	f := open(t)
	put(t, f, "worker-0", recs)
	seconds, err := f.Seconds(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	operations, covered := int64(0), 0.0
	for _, s := range seconds {
		operations += s.Operations
		covered += s.Length()
		// The last one holds the end, half a millisecond long, of the operation added.
		if s.Latency == nil || s.Operations != int64(math.Ceil(s.Length())) {
			t.Fatalf("%+v", s)
		}
	}
	if len(seconds) > maxSeconds || math.Abs(covered-length-0.0005) > 1e-9 || operations != length+1 {
		t.Errorf("%d elements cover %v seconds and %d operations, of %d", len(seconds), covered, operations, length)
	}
}
