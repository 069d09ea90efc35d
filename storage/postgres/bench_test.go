package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/store"
)

// BenchmarkSaveTick measures one second of a run of many run workers.
func BenchmarkSaveTick(b *testing.B) {
	for _, workers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			s, _ := open(b)
			if err := s.CreateRun(b.Context(), engine.Run{RunID: "r1"}); err != nil {
				b.Fatal(err)
			}
			counts := make([]int64, 300)
			for i := range counts {
				counts[i] = int64(i)
			}
			latency := histogram.Pack(&engine.HistogramData{Schema: 6, Offset: 1200, Counts: counts, Sum: 1e9, Min: 1, Max: 1e9})
			begin := time.Now()
			n := 0
			for b.Loop() {
				n++
				at := begin.Add(time.Duration(n) * time.Second)
				t := store.Tick{RunID: "r1", TotalOps: int64(n), Point: &engine.Point{Timestamp: engine.At(at)},
					Logs: []engine.LogEntry{{Seq: int64(n), Level: engine.LogInfo, Message: "a second has passed"}}}
				for w := range workers {
					id := fmt.Sprintf("worker-%d", w)
					t.Workers = append(t.Workers,
						store.WorkerRow{WorkerID: id, WorkerGroupID: w, Status: engine.WorkerRunning, LastHeartbeat: at})
					t.Snapshots = append(t.Snapshots,
						engine.WorkerSnapshot{WorkerID: id, WorkerGroupID: w, Tick: int64(n), Timestamp: engine.At(at),
							TickSeconds: 1, TickStarted: 100,
							ByKind:      map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: 100}},
							TickLatency: latency})
				}
				if err := s.SaveTick(b.Context(), t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
