package host

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/host/hostiletest"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

var allTypes = []engine.Bind{{Type: engine.TypeI64}, {Type: engine.TypeF64}, {Type: engine.TypeText},
	{Type: engine.TypeBytes}, {Type: engine.TypeBool}, {Type: engine.TypeTimestamp}}

// FuzzRows: whatever a guest returns as sample rows is refused, or has every value it is asked for.
func FuzzRows(f *testing.F) {
	for _, b := range hostiletest.Rows() {
		f.Add(b)
	}
	columns := []plugin.LogicalColumn{{Name: "id", Type: engine.TypeI64},
		{Name: "v", Type: engine.TypeText, Nullable: true}}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRows(data, columns, 100)
		if err != nil {
			return
		}
		if r.Len() < 1 || r.Len() > 100 {
			t.Fatalf("%d rows were accepted", r.Len())
		}
		for i := range r.Len() {
			if _, ok := r.Value(i, 0).(int64); !ok {
				t.Fatalf("row %d has the key %v", i, r.Value(i, 0))
			}
			if v := r.Value(i, 1); v != nil {
				if _, ok := v.(string); !ok {
					t.Fatalf("row %d has the value %v", i, v)
				}
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	list, err := freezeStatements([]engine.Statement{{ID: "one", Columns: []string{"a"}}, {ID: "all", Binds: allTypes}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plugintest.Batch(plugintest.Operation(0),
		plugintest.Operation(1, plugintest.Int(1), []byte{0}, plugintest.Data(3, "x"), plugintest.Data(4, "y"), []byte{5, 1},
			[]byte{0})))
	f.Add(plugintest.Batch(plugintest.Operation(0xFF03, plugintest.Int(5))))
	f.Add(plugintest.Batch(plugintest.Operation(0xFF00), plugintest.Operation(0),
		plugintest.Operation(1, plugintest.Ref(0, 0), []byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{0}),
		plugintest.Operation(0xFF02)))
	for _, b := range hostiletest.Batches() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := plugin.Batch{Data: append([]byte(nil), data...)}
		if list.Decode(&b, 64) != nil {
			return
		}
		if len(b.Ops) == 0 || len(b.Ops) > 64+257 {
			t.Fatalf("%d operations were accepted", len(b.Ops))
		}
		begin := -1
		for i, op := range b.Ops {
			switch op.Statement {
			case plugin.StatementBegin:
				begin = i
			case plugin.StatementCommit, plugin.StatementRollback:
				begin = -1
			}
			for _, v := range b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
				switch v.Type {
				case "text", "bytes":
					_ = b.Bytes(v)
				case plugin.TypeRef:
					k, c := v.Ref()
					if at := begin + 1 + k; begin < 0 || at >= i || !b.Ops[at].Referred || b.Ops[at].Statement != 0 || c != 0 {
						t.Fatalf("operation %d refers to %d, %d", i, k, c)
					}
				}
			}
		}
		if begin >= 0 {
			t.Fatal("a transaction without an end was accepted")
		}
		// The reference for authors judges the same.
		ops, err := abi.Decode(data)
		if err == nil {
			err = abi.CheckGroups(ops, 64, func(s uint16) int { return list.columns[s] })
		}
		if err != nil {
			t.Fatalf("the emulator refuses what the host accepts: %v", err)
		}
	})
}
