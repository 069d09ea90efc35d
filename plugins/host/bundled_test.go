package host

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
)

func newHost(t testing.TB, o Options) *Host {
	t.Helper()
	if o.CacheDir == "" {
		o.CacheDir = cacheDir
	}
	o.Log = zerolog.Nop()
	h, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	return h
}

func bundledFile(t testing.TB, name string) []byte {
	t.Helper()
	files, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	if files[name] == nil {
		t.Fatalf("%s is not among the bundled plugins: run `make plugins`", name)
	}
	return files[name]
}

func mixWorkload(t testing.TB, h *Host) plugin.Workload {
	t.Helper()
	if _, err := h.Register(context.Background(), bundledFile(t, "mix.wasm"), true); err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(context.Background(), "mix")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ordersTable is the table that mix brings, with dense keys 1 … rows.
func ordersTable(rows int64) engine.Table {
	lo, hi := int64(1), rows
	return engine.Table{Name: "orders", PhysicalName: `public.orders`, Key: []string{"id"}, Rows: rows, RowsExact: true,
		KeyMin: &lo, KeyMax: &hi, Dense: true,
		Columns: []engine.Column{{Name: "id", Type: engine.TypeI64, DBType: "bigint"},
			{Name: "customer_id", Type: engine.TypeI64, DBType: "bigint"},
			{Name: "status", Type: engine.TypeText, DBType: "character varying(16)", MaxLength: 16},
			{Name: "amount", Type: engine.TypeText, DBType: "numeric(12,2)"},
			{Name: "created_at", Type: engine.TypeTimestamp, DBType: "timestamp with time zone"},
			{Name: "note", Type: engine.TypeText, DBType: "text", Nullable: true}}}
}

// frozenList makes the list that an adapter would have made of statements.
func frozenList(list []plugin.Statement) []engine.Statement {
	var out []engine.Statement
	for _, s := range list {
		out = append(out, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT 1", Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	return out
}

func openMix(t testing.TB, w plugin.Workload, params string, rows int64) (plugin.Stream, []engine.Statement) {
	t.Helper()
	ctx := context.Background()
	tables := []engine.Table{ordersTable(rows)}
	list, err := w.Statements(ctx, json.RawMessage(params), tables)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Open(ctx, plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: json.RawMessage(params), Tables: tables},
		frozenList(list))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, frozenList(list)
}

func TestMixThroughWasm(t *testing.T) {
	h := newHost(t, Options{})
	w := mixWorkload(t, h)
	s, list := openMix(t, w, `{"weights":{"POINT_LOOKUP":50,"RANGE_SCAN":20,"INSERT":20,"UPDATE":10}}`, 1000)
	if len(list) != 4 {
		t.Fatalf("%d statements, expected 4", len(list))
	}
	var b plugin.Batch
	seen := map[engine.Kind]int{}
	inserted := map[int64]bool{}
	for range 100 {
		if err := s.Fill(&b, 128); err != nil {
			t.Fatal(err)
		}
		for _, op := range b.Ops {
			kind := list[op.Statement].Kind
			seen[kind]++
			if kind == engine.KindInsert {
				id := b.Args[op.FirstArg].I
				if id <= 1000 || (id-1001)%4 != 0 || inserted[id] {
					t.Fatalf("inserted key %d is not a new one of slot 0 of 4", id)
				}
				inserted[id] = true
			}
		}
	}
	for kind, want := range map[engine.Kind]int{engine.KindPointLookup: 6400, engine.KindRangeScan: 2560,
		engine.KindInsert: 2560, engine.KindUpdate: 1280} {
		if got := seen[kind]; got < want*8/10 || got > want*12/10 {
			t.Errorf("%v: %d operations, expected about %d", kind, got, want)
		}
	}
}

func TestSameDocumentSameStream(t *testing.T) {
	h := newHost(t, Options{})
	w := mixWorkload(t, h)
	const params = `{"keys":"zipfian","think_time_ms":1}`
	a, _ := openMix(t, w, params, 5000)
	b, _ := openMix(t, w, params, 5000)
	var x, y plugin.Batch
	for i := range 50 {
		if err := errors.Join(a.Fill(&x, 128), b.Fill(&y, 128)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("batch %d differs", i)
		}
	}
}

func TestMixRows(t *testing.T) {
	h := newHost(t, Options{})
	w := mixWorkload(t, h)
	ctx := context.Background()
	rows, err := w.Rows(ctx, nil, 0, 0, 5000)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Rows(ctx, json.RawMessage(`{}`), 0, 100, 10)
	if err != nil {
		t.Fatal(err)
	}
	for c := range 6 {
		if !reflect.DeepEqual(rows.Value(100, c), second.Value(0, c)) {
			t.Errorf("column %d of row 100 depends on where the call began", c)
		}
	}
	if id := rows.Value(0, 0); id != int64(1) {
		t.Errorf("the first key is %v", id)
	}
}

func BenchmarkMixRows(b *testing.B) {
	h := newHost(b, Options{})
	w := mixWorkload(b, h)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		rows, err := w.Rows(context.Background(), nil, 0, int64(n), 5000)
		if err != nil {
			b.Fatal(err)
		}
		n += rows.Len()
	}
}

// BenchmarkRegister measures a bundled plugin that is compiled.
func BenchmarkRegister(b *testing.B) {
	wasm := bundledFile(b, "mix.wasm")
	for range b.N {
		h := newHost(b, Options{CacheDir: b.TempDir()})
		if _, err := h.Register(context.Background(), wasm, true); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRegisterCached measures one whose code is in the cache: the gate, the
// meter, loading the code and asking the plugin who it is.
func BenchmarkRegisterCached(b *testing.B) {
	wasm, dir := bundledFile(b, "mix.wasm"), filepath.Join(b.TempDir(), "cache")
	if _, err := newHost(b, Options{CacheDir: dir}).Register(context.Background(), wasm, true); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		h := newHost(b, Options{CacheDir: dir})
		if _, err := h.Register(context.Background(), wasm, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := h.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkGate measures the parser, and what it and the meter take together.
func BenchmarkGate(b *testing.B) {
	file := bundledFile(b, "mix.wasm")
	for name, metered := range map[string]bool{"parse": false, "parse_and_meter": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				_, m, err := examine(file)
				if err != nil {
					b.Fatal(err)
				}
				if metered {
					m.Meter()
				}
			}
		})
	}
}

// BenchmarkDecode measures the host's part of a batch alone.
func BenchmarkDecode(b *testing.B) {
	for name, params := range map[string]string{"lookups": `{"weights":{"POINT_LOOKUP":1}}`,
		"inserts": `{"weights":{"INSERT":1}}`} {
		b.Run(name, func(b *testing.B) {
			h := newHost(b, Options{})
			s, list := openMix(b, mixWorkload(b, h), params, 1_000_000)
			f, err := freezeStatements(list)
			if err != nil {
				b.Fatal(err)
			}
			var batch plugin.Batch
			if err := s.Fill(&batch, 128); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += 128 {
				batch.Ops, batch.Args = batch.Ops[:0], batch.Args[:0]
				if err := f.Decode(&batch, 128); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAdapterCall measures a call, which has an instance of its own.
func BenchmarkAdapterCall(b *testing.B) {
	h := newHost(b, Options{})
	ctx := context.Background()
	if _, err := h.Register(ctx, bundledFile(b, "postgres.wasm"), true); err != nil {
		b.Fatal(err)
	}
	a, err := h.Adapter(ctx, "postgres")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for range b.N {
		var answer plugin.AdapterAnswer
		if err := a.Call(ctx, plugin.AdapterRequest{Op: plugin.OpSession}, &answer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen measures opening a stream, with its rehearsal.
func BenchmarkOpen(b *testing.B) {
	h := newHost(b, Options{})
	w := mixWorkload(b, h)
	for range b.N {
		s, _ := openMix(b, w, `{}`, 1_000_000)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
