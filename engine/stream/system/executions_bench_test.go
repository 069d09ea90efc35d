package system_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// some are executions of some kinds, one in fifty failed, 100 000 a second.
func some(n int) []engine.Execution {
	recs := make([]engine.Execution, n)
	for i := range recs {
		at := int64(1_800_000_000_000_000_000) + int64(i)*10_000
		recs[i] = engine.Execution{DueAt: at, StartedAt: at, Elapsed: int64(100_000 + 7919*i%100_000_000), Rows: 3,
			Success: i%50 != 0, Kind: engine.Kind(i % 3), ConnectionID: uint32(i % 64), Seq: uint32(i / 64)}
		if i%50 == 0 {
			recs[i].ErrorID = 1
		}
	}
	return recs
}

// rate begins to measure, and tells rows a second of processor time: on a busy machine that of the clock is another's.
func rate(b *testing.B) (end func()) {
	processor := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := processor()
	b.ReportAllocs()
	b.ResetTimer()
	return func() { b.ReportMetric(float64(b.N)/(processor()-before).Seconds(), "rows/cpu-s") }
}

// BenchmarkExecutionsTold: an operation is an execution that becomes a row which several queries share, or that nobody
// reads.
func BenchmarkExecutionsTold(b *testing.B) {
	for name, read := range map[string]bool{"read": true, "idle": false} {
		b.Run(name, func(b *testing.B) {
			h := &system.Hub{}
			r := follow(h, "w")
			defer r.tap.Close()
			done := make(chan struct{})
			close(done)
			if read {
				s := h.Open(connector.Executions, nil)
				done = make(chan struct{})
				go func() {
					defer close(done)
					for batch := (&column.Batch{}); s.Read(batch) == nil; {
					}
				}()
				defer func() { _ = s.Close(); <-done }()
			}
			recs := some(256)
			defer rate(b)()
			for n := 0; n < b.N; n += len(recs) {
				r.tap.Write(recs[:min(len(recs), b.N-n)])
			}
		})
	}
}

// BenchmarkExecutionsQuery: an operation is a row of executions through a query.
func BenchmarkExecutionsQuery(b *testing.B) {
	for name, query := range map[string]string{
		"FilterProjectTumbling": `SELECT start, statement, COUNT(*) AS n, SUM(ms) AS total, MAX(ms) AS most
			FROM (SELECT timestamp, statement, latencyMs - scheduleLagMs AS ms FROM executions WHERE success AND latencyMs > 1)
			GROUP BY statement WINDOW TUMBLING(timestamp, SIZE 1 SEC)`,
		"P99ByKind": `SELECT runId, kind, QUANTILE(latencyMs, 0.99) AS p99 FROM executions GROUP BY runId, kind
			WINDOW TUMBLING(timestamp, SIZE 1 SEC)`,
		"ErrorsByClass": `SELECT runId, errorClass, COUNT(*) AS n FROM executions WHERE NOT success GROUP BY runId, errorClass
			WINDOW TUMBLING(timestamp, SIZE 1 SEC)`,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := sql.ParseSelect(query)
			if err != nil {
				b.Fatal(err)
			}
			p, err := plan.Bind(query, s, system.Schemas{})
			if err != nil {
				b.Fatal(err)
			}
			h := &system.Hub{}
			source := h.Open(connector.Executions, nil)
			r := follow(h, "w")
			const full, many = 4096, 25
			r.tap.Write(some(full * many))
			var all []*column.Batch
			for len(all) < many {
				batch := &column.Batch{}
				if err := source.Read(batch); err != nil {
					b.Fatal(err)
				}
				if batch.N > 0 {
					all = append(all, batch)
				}
			}
			_ = source.Close()
			r.tap.Close()
			given := 0
			q := flow.New(p, flow.Options{Origins: []int{1}, Now: func() time.Time { return time.Unix(1_900_000_000, 0) },
				Out: func(o *column.Batch) error { given += o.N; return nil }})
			next := func(i int) int {
				batch := all[i%many]
				for j := range batch.Cols[0].Ints {
					if i >= many {
						batch.Cols[0].Ints[j] += full * many * 10
					}
				}
				batch.HasWatermark = false
				if err := q.Push(0, 0, batch); err != nil {
					b.Fatal(err)
				}
				return batch.N
			}
			n := 0
			for ; n < 4*many; n++ {
				next(n)
			}
			defer rate(b)()
			for rows := 0; rows < b.N; n++ {
				rows += next(n)
			}
			if given == 0 {
				b.Fatal("nothing was given")
			}
		})
	}
}
