package load_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// longTexts are operations of which a socket never takes all at once, each fourth a short one.
type longTexts struct{ n int }

func (s *longTexts) Fill(b *plugin.Batch, _ int) error {
	b.Reset()
	s.n++
	length := uint32(6 << 20)
	if s.n%4 == 0 {
		length = 10
	}
	b.Data = append(b.Data, bytes.Repeat([]byte("x"), int(length))...)
	b.Ops = append(b.Ops, plugin.Op{NArgs: 1})
	b.Args = append(b.Args, plugin.Value{Type: engine.TypeText, Len: length})
	return nil
}
func (s *longTexts) Close() error { return nil }

// TestRequestsLongerThanASocketTakes, and answers longer than a buffer: each arrives whole, beside others.
func TestRequestsLongerThanASocketTakes(t *testing.T) {
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		g, sink := openGroup(t, io, pgtest.Start(t).DSN("loadstone"), time.Minute, &longTexts{},
			"SELECT 1/(length($1::text) IN (10, 6291456))::int, $1::text",
			engine.TypeText, 5)
		g.Start(engine.PhaseMeasurement)
		for end := time.Now().Add(30 * time.Second); g.Totals().Succeeded < 12 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if n := finish(t, g, sink, 30*time.Second); n.Failed > 0 || n.Succeeded < 12 {
			t.Errorf("%+v, %+v", n, g.Error(1))
		}
	})
}
