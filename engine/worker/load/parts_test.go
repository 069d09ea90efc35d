package load

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

func TestClosedLoopIsDueAfterTheThinkTime(t *testing.T) {
	p := thinkTime{think: 5}
	for _, c := range []struct {
		extra time.Duration
		want  int64
	}{{0, 105}, {7, 112}, {-3, 105}} {
		if got := p.due(100, c.extra); got != c.want {
			t.Errorf("due with %v extra: %d, want %d", c.extra, got, c.want)
		}
	}
}

func TestRampIsLinearAndMeetsItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.IntRange(0, 1000).Draw(t, "from"), rapid.IntRange(0, 1000).Draw(t, "to")
		ramp := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "ramp"))
		a := time.Duration(rapid.Int64Range(0, int64(ramp)).Draw(t, "a"))
		b := time.Duration(rapid.Int64Range(int64(a), int64(ramp)).Draw(t, "b"))
		la, lb := level(from, to, a, ramp), level(from, to, b, ramp)
		if (lb-la)*(to-from) < 0 || la < min(from, to) || la > max(from, to) || level(from, to, ramp, ramp) != to ||
			level(from, to, 0, ramp) != from {
			t.Fatalf("from %d to %d: %d, then %d", from, to, la, lb)
		}
	})
}

func TestTakeRefusesTornBatches(t *testing.T) {
	kinds := []engine.Kind{engine.KindPointLookup}
	begin, commit := plugin.Op{Statement: plugin.StatementBegin}, plugin.Op{Statement: plugin.StatementCommit}
	for name, ops := range map[string][]plugin.Op{
		"unknown statement":   {{Statement: 1}},
		"commit alone":        {commit},
		"no end":              {begin, {}},
		"nested":              {begin, begin, commit},
		"unknown inside":      {begin, {Statement: 9}, commit},
		"delay in the middle": {begin, {Statement: plugin.StatementDelay}, commit},
	} {
		t.Run(name, func(t *testing.T) {
			p := OpBatch{Batch: plugin.Batch{Ops: ops}}
			if ok, err := p.Take(&Unit{}, kinds); ok || err == nil {
				t.Errorf("taken: %v, %v", ok, err)
			}
		})
	}
	p := OpBatch{Batch: plugin.Batch{Ops: []plugin.Op{{Statement: plugin.StatementDelay, Delay: 3}, {},
		{Statement: plugin.StatementDelay, Delay: 4}}}}
	var g Unit
	if ok, err := p.Take(&g, kinds); !ok || err != nil || g.Delay != 3 || len(g.Ops) != 1 {
		t.Errorf("%v, %v, %+v", ok, err, g)
	}
	g.Delay = 0
	if ok, err := p.Take(&g, kinds); ok || err != nil || g.Delay != 4 {
		t.Errorf("a delay at the end: %v, %v, %+v", ok, err, g)
	}
}
