package runlog

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestThePayloadHasAllLinesOfTheLastSeconds, and counts those that are nowhere.
func TestThePayloadHasAllLinesOfTheLastSeconds(t *testing.T) {
	var b Buffer
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(at time.Time, n int) {
		for range n {
			b.Add(engine.LogEntry{Timestamp: engine.At(at)})
		}
		b.Take()
	}
	add(begin, 300)
	add(begin.Add(20*time.Second), 30)
	if got := b.Newest(begin.Add(20 * time.Second)); len(got) != minTail || got[len(got)-1].Seq != 330 {
		t.Errorf("%d lines up to %d", len(got), got[len(got)-1].Seq)
	}
	add(begin.Add(25*time.Second), 400)
	got := b.Newest(begin.Add(29 * time.Second))
	if len(got) != 430 || got[0].Seq != 301 || got[429].Seq != 730 {
		t.Errorf("%d lines from %d", len(got), got[0].Seq)
	}
	for i := range 10 {
		add(begin.Add(time.Duration(30+i)*time.Second), 600)
	}
	if got := b.Newest(begin.Add(39 * time.Second)); len(got) != maxTail {
		t.Errorf("%d lines", len(got))
	}
	b.RecordDropped("node-1", 4)
	b.RecordDropped("node-1", 3) // an older report
	b.RecordDropped("node-2", 5)
	if n := b.MissingLines(7); n != 10*100+4+5+7 {
		t.Errorf("%d lines are missing", n)
	}
}
