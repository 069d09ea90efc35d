package host

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// TestKeysAreNamedByTheirNumber puts in the values of keys that the host holds, and refuses numbers of none.
func TestKeysAreNamedByTheirNumber(t *testing.T) {
	packer := engine.NewKeyPacker(
		[]string{"a", "b", "c"},
		[]engine.ValueType{engine.TypeText, engine.TypeI64, engine.TypeF64},
		10,
		1000,
	)
	for _, row := range [][]any{{"one", int64(-1), 0.5}, {"ünd", int64(2), -1.5}} {
		if err := packer.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	f, err := freezeStatements([]engine.Statement{{ID: "find", Binds: []engine.Bind{{Type: engine.TypeI64},
		{Type: engine.TypeText}, {Type: engine.TypeF64}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.keys = []*engine.PackedKeys{nil, packer.Keys()}
	decode := func(pool, column uint8, n uint32) (*plugin.Batch, error) {
		var out abi.Batch
		out.Reset()
		for range 2 {
			out.Op(0)
			out.Key(1, 1, 0)
			out.Key(pool, column, n)
			out.Key(1, 2, 1)
		}
		b := &plugin.Batch{Data: append([]byte(nil), out.Bytes()...)}
		return b, f.Decode(b, 2)
	}
	b, err := decode(1, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range b.Ops {
		args := b.Args[op.FirstArg : op.FirstArg+3]
		if args[0].I != -1 || string(b.Bytes(args[1])) != "ünd" || args[2].F != -1.5 {
			t.Errorf("%+v", args)
		}
	}
	for want, bad := range map[string][3]uint32{
		"pool 0, which has none": {0, 0, 0}, "pool 2, which has none": {2, 0, 0}, "column 3": {1, 3, 0},
		"key 2 of pool 1, which has 2": {1, 0, 2}, "is i64, the statement takes text": {1, 1, 0},
	} {
		if _, err := decode(uint8(bad[0]), uint8(bad[1]), bad[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// Cut off anywhere, it is an error and no panic.
	var out abi.Batch
	out.Reset()
	out.Op(0)
	out.Key(1, 1, 0)
	out.Key(1, 0, 1)
	out.Key(1, 2, 1)
	for n := range out.Bytes() {
		b := &plugin.Batch{Data: append([]byte(nil), out.Bytes()[:n]...)}
		if err := f.Decode(b, 2); err == nil {
			t.Errorf("a batch cut off at %d was taken", n)
		}
	}
}
