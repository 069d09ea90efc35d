package load

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAFullChunkIsReadBeforeTheNext: a recorder fills a chunk and begins the next
// one after the collector has looked for full ones. The Sink gets its records in order all the same.
func TestAFullChunkIsReadBeforeTheNext(t *testing.T) {
	sink := &memorySink{}
	g := &Group{cfg: Config{Sink: sink}, pool: newPool()}
	g.pool.resize(1)
	c, r := &collector{g: g}, recorder{pool: g.pool}
	const n = 3*chunkSize + 5
	for i := range uint32(n) {
		chunk, place := r.place()
		*place = engine.Execution{Seq: i, Success: true}
		r.publish(chunk)
	}
	c.readCurrent(&r)
	if len(sink.recs) != n {
		t.Fatalf("%d of %d records are read", len(sink.recs), n)
	}
	for i, rec := range sink.recs {
		if rec.Seq != uint32(i) {
			t.Fatalf("record %d is %d", i, rec.Seq)
		}
	}
	if c.readCurrent(&r); len(sink.recs) != n {
		t.Errorf("records are read twice: %d", len(sink.recs))
	}
}
