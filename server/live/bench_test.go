package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

type oneRun struct{ updates chan *engine.LiveState }

func (o *oneRun) LiveState(string) *engine.LiveState { return sample(0) }
func (o *oneRun) Subscribe(string) (<-chan *engine.LiveState, func(), error) {
	return o.updates, func() {}, nil
}
func (o *oneRun) Detail(context.Context, string) (engine.RunDetail, error) {
	return engine.RunDetail{}, errors.New("not stored")
}

// sample is a payload of usual size: 16 run workers, all kinds.
func sample(tick int) *engine.LiveState {
	p := &engine.LiveState{RunID: "run", Status: engine.StatusRunning, Elapsed: float64(tick),
		LatencyByKind: map[engine.Kind]engine.Latency{}, OpsByKind: map[engine.Kind]engine.KindRate{},
		LatencyHistogram: &engine.HistogramData{Schema: 2, Counts: make([]int64, 120)}}
	for _, k := range engine.Kinds() {
		p.OpsByKind[k], p.LatencyByKind[k] = engine.KindRate{Total: int64(tick)}, engine.Latency{}
	}
	for i := range 16 {
		p.Workers = append(p.Workers,
			engine.WorkerState{WorkerID: fmt.Sprintf("worker-%d", i), Status: engine.WorkerRunning})
	}
	return p
}

// BenchmarkFanOut is one tick: encode, hand to 200 sockets, and all of them have read it.
func BenchmarkFanOut(b *testing.B) {
	const clients = 200
	source := &oneRun{updates: make(chan *engine.LiveState)}
	hub := NewHub(Options{Source: source})
	dialer := serveHub(b, hub, func() Viewer { return Viewer{} })
	var read sync.WaitGroup
	var bytes atomic.Int64
	var ready sync.WaitGroup
	for range clients {
		conn, _, err := dialer.Dial("ws://server/", nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ready.Add(1)
		go func() {
			first := true
			for {
				_, text, err := conn.ReadMessage()
				if err != nil {
					return
				}
				if first {
					first = false
					ready.Done()
					continue
				}
				bytes.Add(int64(len(text)))
				read.Done()
			}
		}()
	}
	ready.Wait()
	b.ReportAllocs()
	tick := 0
	for b.Loop() {
		tick++
		read.Add(clients)
		source.updates <- sample(tick)
		read.Wait()
	}
	b.ReportMetric(float64(bytes.Load())/float64(tick)/clients, "B/message")
}
