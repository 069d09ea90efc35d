package load

import (
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Where nothing can be inserted, rows that were met before take their place; only the newest
// failures are remembered.
func TestKeysOfFailedInsertsAreBounded(t *testing.T) {
	plan := &engine.Plan{Tables: []engine.Table{{Name: "t", Key: []string{"id"}}}, Statements: []engine.Statement{
		{ID: "look", Kind: engine.KindPointLookup, Table: "t", Binds: []engine.Bind{{Column: "id"}}},
		{ID: "put", Kind: engine.KindInsert, Table: "t", Binds: []engine.Bind{{Column: "id"}}},
		{ID: "other", Kind: engine.KindInsert, Table: "t", Binds: []engine.Bind{{Column: "v"}}}}}
	const lookup, insert = 0, 1
	u := NewFailedInserts(plan)
	op := func(statement uint16, key int64) (*plugin.Batch, plugin.Op) {
		return &plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: key}}}, plugin.Op{Statement: statement, NArgs: 1}
	}
	ended := func(statement uint16, key int64, ok bool, rows int64) {
		b, o := op(statement, key)
		u.Ended(b, o, ok, rows)
	}
	look := func(key int64) int64 {
		b, o := op(lookup, key)
		u.Begin(b, []plugin.Op{o})
		return b.Args[0].I
	}
	ended(2, 5, false, 0) // names no key
	if u.some.Load() {
		t.Error("an INSERT without a key was noted")
	}
	ended(insert, 1000, false, 0)
	if got := look(1000); got != 1000 {
		t.Errorf("with nothing to look for instead it looked for %d", got)
	}
	ended(lookup, 77, true, 0)
	ended(lookup, 42, true, 1)
	if got := look(1000); got != 42 {
		t.Errorf("it looked for %d, and not for the row that was met", got)
	}
	ended(insert, 555, true, 0) // left out by a trigger
	if got := look(555); got != 42 {
		t.Errorf("it looked for %d, which was left out", got)
	}
	if got := look(999); got != 999 {
		t.Errorf("another key became %d", got)
	}
	for i := range int64(maxFailedKeys) {
		ended(insert, 2000+i, false, 0)
	}
	if n := len(u.tables[0].gone); n != maxFailedKeys || len(u.tables[0].order) != maxFailedKeys {
		t.Errorf("%d keys are remembered", n)
	}
	if look(1000) != 1000 || look(2000) != 42 || look(2000+maxFailedKeys-1) != 42 {
		t.Error("the oldest is not the one that was forgotten")
	}
	if u.Count() != 4 {
		t.Errorf("%d were replaced", u.Count())
	}
}

// The operations of a transaction stay together, whatever other slots learn in the meantime.
func TestATransactionLooksForOneKey(t *testing.T) {
	u := NewFailedInserts(
		&engine.Plan{Tables: []engine.Table{{Name: "t", Key: []string{"id"}}}, Statements: []engine.Statement{
			{ID: "look", Kind: engine.KindPointLookup, Table: "t", Binds: []engine.Bind{{Column: "id"}}},
			{ID: "put", Kind: engine.KindInsert, Table: "t", Binds: []engine.Bind{{Column: "id"}}}}},
	)
	insert := func(key int64, ok bool, rows int64) {
		b := &plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: key}}}
		u.Ended(b, plugin.Op{Statement: 1, NArgs: 1}, ok, rows)
	}
	insert(-1, true, 1)
	insert(0, false, 0)
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for key := int64(1); ; key++ {
			select {
			case <-stop:
				return
			default:
			}
			insert(key, key%2 == 0, key%2)
			insert(-key-1, true, 1)
		}
	})
	var look []plugin.Op
	for i := range uint32(8) {
		look = append(look, plugin.Op{NArgs: 1, FirstArg: i})
	}
	for n := range int64(20_000) {
		b := &plugin.Batch{}
		for range look {
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: n})
		}
		u.Begin(b, look)
		for _, v := range b.Args {
			if v.I != b.Args[0].I {
				close(stop)
				others.Wait()
				t.Fatalf("one transaction looks for %d and for %d", b.Args[0].I, v.I)
			}
		}
	}
	close(stop)
	others.Wait()
}
