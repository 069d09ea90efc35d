package record

import (
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// keptRecords is a Sink that keeps the records.
type keptRecords struct{ recs []engine.Execution }

func (k *keptRecords) Write(recs []engine.Execution) error {
	k.recs = append(k.recs, recs...)
	return nil
}

// TestAFullChunkIsReadBeforeTheNext: a recorder fills a chunk and begins the next
// one after the collector has looked for full ones. The Sink gets its records in order all the same.
func TestAFullChunkIsReadBeforeTheNext(t *testing.T) {
	sink := &keptRecords{}
	p := NewPool()
	p.Resize(1)
	c, r := &Collector{opts: Options{Sink: sink, Pool: p}}, Recorder{Pool: p}
	const n = 3*ChunkSize + 5
	for i := range uint32(n) {
		chunk, place := r.Next()
		*place = engine.Execution{Seq: i, Success: true}
		r.Publish(chunk)
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

func TestDictionaryIsBoundedAndTheAdapterDecides(t *testing.T) {
	d := NewDictionary(map[string]engine.ErrorClass{"40": engine.ErrClassSerialization, "40P01": engine.ErrClassDeadlock,
		"": engine.ErrClassAuth})
	for code, want := range map[string]engine.ErrorClass{"40001": engine.ErrClassSerialization,
		"40P01": engine.ErrClassDeadlock, "22003": engine.ErrClassData} {
		id := d.ID(engine.ExecutionError{Class: engine.ErrClassData, Code: code})
		if got := d.Get(id).Class; got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	var last uint32
	for i := range 3 * maxErrors {
		last = d.ID(engine.ExecutionError{Class: engine.ErrClassOther, Message: fmt.Sprintf("unlike_%d", i)})
	}
	if len(d.entries) > maxErrors+20 || d.Get(last).Class != engine.ErrClassOther || d.Get(last).Message == "" {
		t.Errorf("%d entries, the last %+v", len(d.entries), d.Get(last))
	}
	if (d.Get(0) != engine.ExecutionError{}) || (d.Get(1<<30) != engine.ExecutionError{}) {
		t.Error("unknown ids have entries")
	}
}

// What the database repeats of a row is not in the dictionary: errors that differ by it alone are one.
func TestTheDictionaryHoldsNoValues(t *testing.T) {
	d := NewDictionary(nil)
	var ids []uint32
	for _, name := range []string{"Ann", "Bob"} {
		ids = append(ids, d.ID(engine.ExecutionError{Class: engine.ErrClassData, Code: "22P02",
			Message: `invalid input syntax for type integer: "` + name + `"`}))
	}
	want := engine.ExecutionError{Class: engine.ErrClassData, Code: "22P02",
		Message: `invalid input syntax for type integer: "•••"`}
	if ids[0] != ids[1] || d.Get(ids[0]) != want {
		t.Errorf("ids %v, %+v", ids, d.Get(ids[0]))
	}
	own := d.Add(engine.ExecutionError{Class: engine.ErrClassCancelled, Message: "cut off after 5 of 7"})
	if d.Get(own).Message != "cut off after 5 of 7" {
		t.Errorf("a sentence of Loadstone's: %+v", d.Get(own))
	}
}

// A snapshot tells of the errors that were met last, with how often and when, whichever connection was read first.
func TestASnapshotTellsOfErrorsWithTheirTimes(t *testing.T) {
	d := NewDictionary(nil)
	c := &Collector{opts: Options{Errors: d, Sink: &keptRecords{}}}
	c.phase.openLoop()
	c.tick.openLoop()
	meet := func(message string, at int64) {
		id := d.Add(engine.ExecutionError{Class: engine.ErrClassOther, Message: message})
		c.fold(&engine.Execution{DueAt: at - 10, Elapsed: 10, ErrorID: id})
	}
	const second = int64(1e9)
	for i := range maxShownErrors {
		meet(fmt.Sprint("older ", i), second)
	}
	meet("clash", 7*second)
	meet("clash", 5*second)
	meet("late", 6*second)
	meet("clash", 6*second)
	var s engine.WorkerSnapshot
	c.Snapshot(&s, 8*second)
	if n := len(s.LastErrors); n != maxShownErrors || s.LastErrors[n-2].Message != "late" {
		t.Fatalf("%+v", s.LastErrors)
	}
	e := s.LastErrors[maxShownErrors-1]
	if e.Message != "clash" || e.Count != 3 || e.FirstAt.UnixNano() != 5*second || e.LastAt.UnixNano() != 7*second {
		t.Errorf("%+v", e)
	}
}
