package recovery

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

func TestTheLostIntervalBeginsWhereTheRecordEnds(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	part := func(worker string, end int) engine.Artifact {
		return engine.Artifact{WorkerID: worker, MaxTime: engine.At(at(end))}
	}
	loaded := engine.Run{WarmupStartTime: engine.At(begin), WorkersExpected: 2}
	for name, c := range map[string]struct {
		run   engine.Run
		parts []engine.Artifact
		want  int
	}{
		"before the load":      {engine.Run{WorkersExpected: 2}, nil, 25},
		"no part was complete": {loaded, nil, 0},
		"one worker has none":  {loaded, []engine.Artifact{part("worker-0", 20)}, 0},
		"the worker whose parts end first": {loaded,
			[]engine.Artifact{part("worker-0", 10), part("worker-0", 20), part("worker-1", 11), part("worker-1", 21)}, 20},
		"the seconds end before the parts": {loaded, []engine.Artifact{part("worker-0", 30), part("worker-1", 30)}, 25},
	} {
		if got := recordEnd(c.run, at(25), c.parts); !got.Equal(at(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, at(c.want))
		}
	}
}
