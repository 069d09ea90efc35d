package promqltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// Noon is when the first of the Runs starts.
var Noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// Run is the segment of a run, in memory.
type Run struct {
	Segment promql.Segment
	Content []byte
}

// Open opens the segment.
func (r Run) Open() (*segment.File, error) { return segment.Open(memory{bytes.NewReader(r.Content)}) }

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// Runs are n runs of 40 s or more that start 7 s after each other, with operations, errors, and a warehouse.
func Runs(n int) ([]Run, error) {
	return runs(n, 50, func(i int) (time.Time, int) { return Noon.Add(time.Duration(i) * 7 * time.Second), 40 + 3*i })
}

// HourRuns are n runs of an hour that all start at Noon, with few operations.
func HourRuns(n int) ([]Run, error) {
	return runs(n, 5, func(int) (time.Time, int) { return Noon, 3600 })
}

func runs(n, rate int, of func(i int) (begin time.Time, seconds int)) ([]Run, error) {
	all := make([]Run, n)
	for i := range all {
		begin, seconds := of(i)
		id := fmt.Sprintf("r-%d", i)
		r := &rollup.Run{Run: engine.Run{RunID: id, StartTime: engine.At(begin)}, Seconds: rollup.New(begin)}
		r.Seconds.Add(operations(uint64(i), begin, seconds, rate))
		reports(r.Seconds, i, seconds)
		r.PerHour = func(engine.Warehouse) (float64, bool) { return 3600, true }
		for at := 0; at < seconds; at += 5 {
			r.Warehouse = append(r.Warehouse, engine.WarehousePoint{
				Timestamp: engine.At(begin.Add(time.Duration(at) * time.Second)), ElapsedSeconds: float64(at),
				Warehouse: engine.Warehouse{Name: "W", State: "STARTED", Queued: (at*7 + i) % 5}})
		}
		content, _, err := segment.Bytes(r)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all[i] = Run{Content: content, Segment: promql.Segment{RunID: id, Name: id, Bytes: int64(len(content)),
			SHA256: hex.EncodeToString(sum[:]),
			From:   begin.Add(-20 * time.Second).UnixMilli(),
			To:     begin.Add(time.Duration(seconds+20) * time.Second).UnixMilli(),
			Labels: labels.FromStrings("run", id, "template", fmt.Sprintf("t-%d", i%2), "run_name",
				"\"nä\nme\" "+id)}}
	}
	return all, nil
}

// reports are those of two run workers on two nodes; one misses the 20th second, and the last 10.
func reports(s *rollup.Seconds, n, seconds int) {
	for worker := range 2 {
		for at := range seconds {
			if worker == 1 && (at == 20 || at >= seconds-10) {
				continue
			}
			phase := engine.PhaseMeasurement
			if at < 5 {
				phase = engine.PhaseWarmup
			}
			rate := float64(20 + at)
			s.Report(int32(at), &engine.WorkerSnapshot{WorkerID: fmt.Sprint("w", worker+1), Phase: phase,
				NodeID: fmt.Sprint("n-", worker), Scheduled: 25, Dropped: int64((at + n) % 3), ActiveConnections: at % 9,
				TargetConnections: 8, Waiting: at * n % 5, TargetQPS: &rate,
				Resources: engine.Resources{CPUPercent: float64((at*7+n)%64) / 64 * 100, MemoryPercent: 50, MemoryBytes: 1 << 30,
					HostCPUPercent: 75, HostMemoryPercent: 25}}, nil)
		}
	}
}

// operations are rate a second of three kinds on two run workers; every 30th fails, and none ends in the tenth second.
func operations(seed uint64, begin time.Time, seconds, rate int) *rollup.Batch {
	r := rand.New(rand.NewPCG(seed, 7))
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP", "INSERT", "UPDATE"}},
		Statement: record.Texts{Values: []string{"a", "b"}}, Worker: record.Texts{Values: []string{"w1", "w2"}},
		Class: record.Texts{Values: []string{"TIMEOUT"}}, Code: record.Texts{Values: []string{"57014"}}}
	for i := range rate * seconds {
		if i/rate == 10 {
			continue
		}
		failed := int32(-1)
		if i%30 == 0 {
			failed = 0
		}
		b.DueNs = append(b.DueNs, begin.Add(time.Duration(i)*time.Second/time.Duration(rate)).UnixNano())
		b.ElapsedNs = append(b.ElapsedNs, int64(1e5*math.Exp(r.Float64()*5)))
		b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
		b.Warmup, b.Success = append(b.Warmup, i < 5*rate), append(b.Success, failed < 0)
		b.Kind.Index, b.Statement.Index = append(b.Kind.Index, int32(r.IntN(3))), append(b.Statement.Index, int32(i%2))
		b.Worker.Index = append(b.Worker.Index, int32(r.IntN(2)))
		b.Class.Index, b.Code.Index = append(b.Class.Index, failed), append(b.Code.Index, failed)
	}
	return b
}

// Catalog has the segments of runs in memory.
type Catalog []Run

// Segments are those with samples between from and to, both in milliseconds since 1970.
func (c Catalog) Segments(_ context.Context, from, to int64) ([]promql.Segment, error) {
	var all []promql.Segment
	for _, r := range c {
		if r.Segment.From <= to && r.Segment.To >= from {
			all = append(all, r.Segment)
		}
	}
	return all, nil
}

// Read implements promql.SegmentReader; the error is os.ErrNotExist where no segment has the name.
func (c Catalog) Read(_ context.Context, s promql.Segment) (*series.Set, int64, error) {
	for _, r := range c {
		if r.Segment.Name != s.Name {
			continue
		}
		f, err := r.Open()
		if err != nil {
			return nil, 0, err
		}
		set, err := series.Read(f, s.Labels)
		_ = f.Close()
		return set, 0, err
	}
	return nil, 0, os.ErrNotExist
}

// Content opens what a segment of a run consists of, and says how large that is.
func (c Catalog) Content(_ context.Context, runID, name string) (io.ReadCloser, int64, error) {
	for _, r := range c {
		if r.Segment.RunID == runID && r.Segment.Name == name {
			return io.NopCloser(bytes.NewReader(r.Content)), int64(len(r.Content)), nil
		}
	}
	return nil, 0, os.ErrNotExist
}
