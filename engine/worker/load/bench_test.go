package load

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// nullConn answers at once.
type nullConn struct{}

func (nullConn) Exec(_ context.Context, _ *plugin.Batch, _ plugin.Op, res *target.Result) error {
	res.Rows = 1
	return nil
}
func (nullConn) Broken() bool                 { return false }
func (nullConn) Cancel(context.Context) error { return nil }
func (nullConn) Close() error                 { return nil }

type nullSink struct{}

func (nullSink) Write([]engine.Execution) error { return nil }

// BenchmarkRecord measures what recording adds to an operation: the record, its
// chunk, and the collector behind it with histograms. No Parquet.
func BenchmarkRecord(b *testing.B) {
	g, err := Open(context.Background(), fakeConfig(&fakeDB{}, &fakeStream{}, nullSink{}), 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	s := g.newSlot()
	s.conn = nullConn{}
	s.work.Ops = make([]plugin.Op, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.execute(g)
	}
	s.own.rec.Flush()
}

// BenchmarkOperation adds taking the operation from the source.
func BenchmarkOperation(b *testing.B) {
	g, err := Open(context.Background(), fakeConfig(&fakeDB{}, &fakeStream{}, nullSink{}), 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	s := g.newSlot()
	s.conn = nullConn{}
	b.ReportAllocs()
	for b.Loop() {
		if s.next(g) && g.thinkTimes.due(s.ended, s.work.Delay) <= s.ended {
			s.execute(g)
		}
	}
	s.own.rec.Flush()
}

// BenchmarkClock is what the two clock readings of an operation cost, which
// BenchmarkRecord includes and no recording can do without.
func BenchmarkClock(b *testing.B) {
	c := newClock(nil)
	var sum int64
	for b.Loop() {
		begin := c.now()
		sum += c.now() - begin
	}
	if sum < 0 {
		b.Fatal("time ran backwards")
	}
}

// BenchmarkRecordTransaction is BenchmarkRecord for a transaction of seven
// statements as tpcb makes it: eight records, eight clock readings.
func BenchmarkRecordTransaction(b *testing.B) {
	g, err := Open(context.Background(), fakeConfig(&fakeDB{}, &fakeStream{}, nullSink{}), 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	s := g.newSlot()
	s.conn = nullConn{}
	s.work.Ops, s.work.Kind = groupOf(plugin.StatementCommit, 5), engine.KindTransaction
	b.ReportAllocs()
	for b.Loop() {
		s.execute(g)
	}
	s.own.rec.Flush()
}
