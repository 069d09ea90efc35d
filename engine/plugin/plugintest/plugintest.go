// Package plugintest is the conformance suite of engine/plugin: every Host runs
// it. Its guests are modules written byte by byte, so that each misbehaves in
// exactly one way.
package plugintest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Factory returns a host that has registered the module, or the error with which it was refused.
type Factory func(t *testing.T, wasm []byte) (plugin.Host, plugin.Info, error)

// Run runs the suite.
func Run(t *testing.T, factory Factory) {
	t.Run("names", func(t *testing.T) { names(t, factory) })
	t.Run("stream", func(t *testing.T) { honest(t, factory) })
	t.Run("values", func(t *testing.T) { values(t, factory) })
	t.Run("transactions", func(t *testing.T) { transactions(t, factory) })
	t.Run("ending", func(t *testing.T) { ending(t, factory) })
	t.Run("failures", func(t *testing.T) { failures(t, factory) })
	t.Run("invalid batches", func(t *testing.T) { invalid(t, factory) })
	t.Run("rows", func(t *testing.T) { rows(t, factory) })
	t.Run("tables", func(t *testing.T) { tableList(t, factory) })
	t.Run("statements", func(t *testing.T) { statementList(t, factory) })
}

// Operation writes one operation of a batch.
func Operation(statement uint16, values ...[]byte) []byte {
	out := binary.LittleEndian.AppendUint16(nil, statement)
	out = append(out, byte(len(values)))
	return append(out, Code(values...)...)
}

// Batch writes a batch of operations.
func Batch(operations ...[]byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(operations))), Code(operations...)...)
}

// Int writes an i64 value.
func Int(v int64) []byte { return binary.LittleEndian.AppendUint64([]byte{1}, uint64(v)) }

// Ref writes a ref: column c of operation k of the transaction.
func Ref(k, c byte) []byte { return []byte{7, k, c} }

// many is n operations.
func many(n int) [][]byte {
	var list [][]byte
	for i := range n {
		list = append(list, Operation(0, Int(int64(i))))
	}
	return list
}

// transaction is a whole one with n operations.
func transaction(n int) [][]byte {
	return append(append([][]byte{Operation(0xFF00)}, many(n)...), Operation(0xFF01))
}

// Data writes a text (3) or bytes (4) value.
func Data(kind byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(s))), s...)
}

func register(t *testing.T, factory Factory, g Guest) (plugin.Host, plugin.Workload) {
	t.Helper()
	h, info, err := factory(t, g.Build())
	if err != nil {
		t.Fatalf("registering an honest guest: %v", err)
	}
	w, err := h.Workload(context.Background(), info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return h, w
}

func frozen(t *testing.T, w plugin.Workload) []engine.Statement {
	t.Helper()
	list, err := w.Statements(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []engine.Statement
	for _, s := range list {
		out = append(out, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT 1", Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	return out
}

func open(t *testing.T, w plugin.Workload) (plugin.Stream, error) {
	t.Helper()
	s, err := w.Open(context.Background(), plugin.OpenRequest{Seed: 1, KeySlots: 4}, frozen(t, w))
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing a stream: %v", err)
			}
		})
	}
	return s, err
}

// firstFill opens a stream and takes a batch; a host may notice trouble in either.
func firstFill(t *testing.T, w plugin.Workload, b *plugin.Batch, most int) (plugin.Stream, error) {
	t.Helper()
	s, err := open(t, w)
	if err != nil {
		return nil, err
	}
	return s, s.Fill(b, most)
}

func names(t *testing.T, factory Factory) {
	h, w := register(t, factory, Guest{})
	info := w.Info()
	if info.Kind != plugin.KindWorkload || info.Name != "guest" || info.Version != "1.2.3" || len(info.SHA256) != 64 ||
		info.ABI != "1.0" || info.SizeBytes == 0 {
		t.Errorf("info is %+v", info)
	}
	ctx := context.Background()
	for _, ref := range []string{"guest", "guest@1.2.3", info.SHA256} {
		if _, err := h.Workload(ctx, ref); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"", "gues", "guest@1.2.4", info.SHA256[:12]} {
		if _, err := h.Workload(ctx, ref); !errors.Is(err, plugin.ErrNotFound) {
			t.Errorf("%q: %v, expected ErrNotFound", ref, err)
		}
	}
	if _, err := h.Adapter(ctx, "guest"); !errors.Is(err, plugin.ErrNotFound) {
		t.Errorf("a workload as adapter: %v", err)
	}
	list, err := h.List(ctx)
	if err != nil || len(list) != 1 || list[0].SHA256 != info.SHA256 {
		t.Errorf("the list is %v, %v", list, err)
	}
}

func honest(t *testing.T, factory Factory) {
	batch := Batch(Operation(0, Int(0)), Operation(0xFF03, Int(1500)))
	_, w := register(t, factory, Guest{Batch: batch,
		Code: map[string][]byte{"ls_fill": CountingFill(12, uint32(len(batch)))}})
	a, err := open(t, w)
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(t, w)
	if err != nil {
		t.Fatal(err)
	}
	var x, y plugin.Batch
	for i := range int64(20) {
		if err := errors.Join(a.Fill(&x, 128), b.Fill(&y, 128)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("two streams of one document differ: %v and %v", x, y)
		}
		if len(x.Ops) != 2 || x.Args[x.Ops[0].FirstArg].I != i+1 {
			t.Fatalf("batch %d is %+v", i, x)
		}
		if x.Ops[1].Statement != plugin.StatementDelay || x.Ops[1].Delay.Microseconds() != 1500 {
			t.Fatalf("the delay is %+v", x.Ops[1])
		}
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Errorf("closing: %v", err)
	}
	if err := a.Fill(&x, 128); err == nil {
		t.Error("a closed stream was filled")
	}
	if err := b.Fill(&y, 1); !errors.Is(err, plugin.ErrInvalidBatch) {
		t.Errorf("two operations for one: %v", err)
	}
	if err := b.Fill(&y, 128); err == nil || len(y.Ops) != 0 {
		t.Errorf("a failed stream was filled with %d operations: %v", len(y.Ops), err)
	}
}

func values(t *testing.T, factory Factory) {
	half := binary.LittleEndian.AppendUint64([]byte{2}, 0x3fe0000000000000)
	_, w := register(t, factory, Guest{Batch: Batch(
		Operation(1, Int(-5), half, Data(3, "grüß"), Data(4, "\xff\x00"), []byte{5, 1},
			binary.LittleEndian.AppendUint64([]byte{6}, 86_400_000_000)),
		Operation(1, []byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{0}))})
	var b plugin.Batch
	if _, err := firstFill(t, w, &b, 2); err != nil {
		t.Fatal(err)
	}
	v := b.Args[b.Ops[0].FirstArg:][:b.Ops[0].NArgs]
	if v[0].I != -5 || v[1].F != 0.5 || string(b.Bytes(v[2])) != "grüß" || string(b.Bytes(v[3])) != "\xff\x00" ||
		v[4].I != 1 || v[5].I != 86_400_000_000 {
		t.Errorf("the values are %+v", v)
	}
	for i, want := range []engine.ValueType{engine.TypeI64, engine.TypeF64, engine.TypeText, engine.TypeBytes,
		engine.TypeBool, engine.TypeTimestamp} {
		if v[i].Type != want {
			t.Errorf("value %d has type %q, expected %q", i, v[i].Type, want)
		}
		if null := b.Args[b.Ops[1].FirstArg+uint32(i)]; null.Type != "" {
			t.Errorf("value %d is %+v, expected NULL", i, null)
		}
	}
}

func transactions(t *testing.T, factory Factory) {
	refs := [][]byte{Operation(0xFF00), Operation(0, Int(7)), Operation(0, Int(8)),
		Operation(1, Ref(0, 0), []byte{0}, Ref(0, 0), []byte{0}, Ref(0, 0), Ref(0, 0)), Operation(0, Ref(0, 0)),
		Operation(0xFF02)}
	for _, c := range []struct {
		name string
		ops  [][]byte
	}{
		{"refs", refs},
		{"the largest", transaction(256)},
		{"one that ends past the limit", append(many(9), transaction(256)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, w := register(t, factory, Guest{Batch: Batch(c.ops...)})
			var b plugin.Batch
			if _, err := firstFill(t, w, &b, 10); err != nil || len(b.Ops) != len(c.ops) {
				t.Fatalf("%d operations of %d: %v", len(b.Ops), len(c.ops), err)
			}
			for i, op := range b.Ops {
				if want := c.name == "refs" && i == 1; op.Referred != want {
					t.Errorf("operation %d: referred to is %v", i, op.Referred)
				}
			}
			if c.name != "refs" {
				return
			}
			for i, want := range []engine.ValueType{plugin.TypeRef, "", plugin.TypeRef, "", plugin.TypeRef, plugin.TypeRef} {
				v := b.Args[b.Ops[3].FirstArg+uint32(i)]
				if k, column := v.Ref(); v.Type != want || k != 0 || column != 0 {
					t.Errorf("argument %d is %+v", i, v)
				}
			}
		})
	}
}

func ending(t *testing.T, factory Factory) {
	_, w := register(t, factory, Guest{Code: map[string][]byte{"ls_fill": I64(0)}})
	s, err := open(t, w)
	if err != nil {
		t.Fatal(err)
	}
	var b plugin.Batch
	for range 3 {
		if err := s.Fill(&b, 10); !errors.Is(err, plugin.ErrEnded) {
			t.Errorf("the end is %v", err)
		}
	}
}

func failures(t *testing.T, factory Factory) {
	code := func(export string, body []byte) map[string][]byte { return map[string][]byte{export: body} }
	good := Batch(Operation(0, Int(1)))
	for _, c := range []struct {
		name  string
		guest Guest
		is    error
		says  string
	}{
		{"own error", Guest{Error: "no \x1b[31msuch\nkey", Code: code("ls_fill", I64(-1))}, plugin.ErrFailed, "[31msuch key"},
		{"own error without words", Guest{Code: code("ls_fill", I64(-1))}, plugin.ErrFailed, "no reason"},
		{"error in open", Guest{Batch: good, Error: "bad params", Code: code("ls_open", I32(7))}, plugin.ErrFailed,
			"bad params"},
		{"feed me", Guest{Code: code("ls_fill", I64(-2))}, plugin.ErrFailed, "issues operations of a feed"},
		{"trap in fill", Guest{Code: code("ls_fill", Unreachable)}, plugin.ErrTrapped, "ls_fill"},
		{"trap in open", Guest{Batch: good, Code: code("ls_open", Unreachable)}, plugin.ErrTrapped, "ls_open"},
		{"no room", Guest{Batch: good, Code: code("ls_alloc", I32(0))}, plugin.ErrTrapped, "ls_alloc"},
		{"room outside memory", Guest{Batch: good, Code: code("ls_alloc", I32(-8))}, plugin.ErrTrapped, "ls_alloc"},
		{"division by zero", Guest{Code: code("ls_fill", Code(I64(1), I64(0), []byte{0x7f}))}, plugin.ErrTrapped, "divi"},
		{"endless recursion", Guest{Code: code("ls_fill", Code(I32(1), Call(4)))}, plugin.ErrTooDeep, "too deep"},
		{"batch outside memory", Guest{Code: code("ls_fill", I64(packed(1<<31, 100)))}, plugin.ErrInvalidBatch, "outside"},
		{"batch across the end of memory", Guest{Code: code("ls_fill", I64(packed(3*65_536-4, 100)))}, plugin.ErrInvalidBatch,
			"outside"},
		{"batch too large", Guest{Code: code("ls_fill", I64(packed(0, 1<<30)))}, plugin.ErrInvalidBatch, "limit"},
		{"pointer that wraps", Guest{Code: code("ls_fill", I64(packed(0xfffffff0, 0x7fffff)))}, plugin.ErrInvalidBatch,
			"outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, w := register(t, factory, c.guest)
			var b plugin.Batch
			_, err := firstFill(t, w, &b, 10)
			checkError(t, err, c.is, c.says)
			if len(b.Ops) != 0 {
				t.Errorf("%d operations came with the error", len(b.Ops))
			}
		})
	}
}

// checkError checks that an error is what a user and the engine can work with.
func checkError(t *testing.T, err, is error, says string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("the error is %v, expected %v", err, is)
		return
	}
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodePlugin {
		t.Errorf("%v is not for the user", err)
		return
	}
	if !strings.Contains(e.Message, says) {
		t.Errorf("%q does not say %q", e.Message, says)
	}
	if len(e.Message) > 4096 || strings.ContainsFunc(e.Message, unicode.IsControl) {
		t.Errorf("%q is too long or has control characters", e.Message)
	}
}

func invalid(t *testing.T, factory Factory) {
	one, begin, commit, rollback := Operation(0, Int(1)), Operation(0xFF00), Operation(0xFF01), Operation(0xFF02)
	stamp := func(v int64) []byte { return binary.LittleEndian.AppendUint64([]byte{6}, uint64(v)) }
	all := func(i int, v []byte) []byte {
		list := [][]byte{{0}, {0}, {0}, {0}, {0}, {0}}
		list[i] = v
		return Batch(Operation(1, list...))
	}
	for _, c := range []struct {
		name  string
		batch []byte
		says  string
	}{
		{"cut off in the header", []byte{1, 0, 0}, "header"},
		{"another version", append([]byte{2, 0, 0, 0, 1, 0, 0, 0}, one...), "version"},
		{"unknown flags", append([]byte{1, 0, 1, 0, 1, 0, 0, 0}, one...), "flags"},
		{"nothing", Batch(), "no operation"},
		{"more than asked for", Batch(one, one, one, one, one, one, one, one, one, one, one), "asked for"},
		{"a count that lies", []byte{1, 0, 0, 0, 255, 255, 255, 255}, "asked for"},
		{"fewer than it says", append([]byte{1, 0, 0, 0, 2, 0, 0, 0}, one...), "cut off"},
		{"more than it says", append(Batch(one), 0), "follow"},
		{"an undeclared statement", Batch(Operation(2, Int(1))), "only 2"},
		{"the last index", Batch(Operation(0xfeff, Int(1))), "only 2"},
		{"too few arguments", Batch(Operation(0)), "arguments"},
		{"too many arguments", Batch(Operation(0, Int(1), Int(2))), "arguments"},
		{"another type", Batch(Operation(0, Data(3, "1"))), "takes i64"},
		{"an unknown type", Batch(Operation(0, []byte{9})), "type 9"},
		{"an integer cut off", Batch(Operation(0, []byte{1, 0, 0})), "cut off"},
		{"a text that is too long", all(2, []byte{3, 255, 255, 255, 255}), "past the end"},
		{"a text without length", Batch(Operation(1, []byte{0}, []byte{0}, []byte{3, 1})), "arguments"},
		{"a text that is not UTF-8", all(2, Data(3, "\xff")), "UTF-8"},
		{"a bool of 2", all(4, []byte{5, 2}), "bool"},
		{"a time before the year 1", all(5, stamp(-62_135_596_800_000_001)), "timestamp"},
		{"a time after the year 9999", all(5, stamp(253_402_300_800_000_000)), "timestamp"},
		{"a ref outside a transaction", Batch(Operation(0, Ref(0, 0))), "in none"},
		{"a ref that is cut off", append(Batch(begin, one, Operation(0, []byte{7, 0})), 0)[:8+3+12+3+2], "cut off"},
		{"a ref to itself", Batch(begin, Operation(0, Ref(0, 0)), commit), "operation 0 itself"},
		{"a ref to a later operation", Batch(begin, one, Operation(0, Ref(2, 0)), one, commit), "operation 1 itself"},
		{"a ref into the transaction before", Batch(begin, one, commit, begin, Operation(0, Ref(0, 0)), commit),
			"operation 0 itself"},
		{"a ref to a column too many", Batch(begin, one, Operation(0, Ref(0, 1)), commit),
			"column 1 of statement one, which declares 1"},
		{"a ref to a statement without columns",
			Batch(begin, Operation(1, []byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{0}, []byte{0}), Operation(0, Ref(0, 0)),
				commit), "declares 0"},
		{"a ref as delay", Batch(Operation(0xFF03, Ref(0, 0))), "DELAY"},
		{"BEGIN alone", Batch(begin), "no end"},
		{"BEGIN with an argument", Batch(Operation(0xFF00, Int(1)), one, commit), "takes none"},
		{"a transaction without an end", Batch(one, begin, one), "at operation 1 has no end"},
		{"COMMIT without a beginning", Batch(one, commit), "operation 1 is COMMIT, but no transaction"},
		{"ROLLBACK without a beginning", Batch(rollback), "ROLLBACK, but no transaction"},
		{"COMMIT twice", Batch(begin, one, commit, commit), "no transaction"},
		{"an empty transaction", Batch(begin, rollback), "no operation"},
		{"a transaction in a transaction", Batch(begin, one, begin, one, commit, commit), "do not nest"},
		{"a delay in a transaction", Batch(begin, one, Operation(0xFF03, Int(1)), commit), "think time"},
		{"257 operations in a transaction", Batch(transaction(257)...), "the limit is 256"},
		{"a transaction after those asked for", Batch(append(many(10), transaction(1)...)...), "asked for"},
		{"an unknown control statement", Batch(Operation(0xFF04)), "control"},
		{"a delay without length", Batch(Operation(0xFF03)), "DELAY"},
		{"a negative delay", Batch(Operation(0xFF03, Int(-1))), "DELAY"},
		{"a delay of a year", Batch(Operation(0xFF03, Int(31_536_000_000_000))), "DELAY"},
		{"a delay of NULL", Batch(Operation(0xFF03, []byte{0})), "DELAY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, w := register(t, factory, Guest{Batch: c.batch})
			var b plugin.Batch
			_, err := firstFill(t, w, &b, 10)
			checkError(t, err, plugin.ErrInvalidBatch, c.says)
		})
	}
}

func rows(t *testing.T, factory Factory) {
	ctx := context.Background()
	_, w := register(t, factory, Guest{Rows: Batch(Operation(0, Int(1), Data(3, "x")), Operation(0, Int(2), []byte{0}))})
	r, err := w.Rows(ctx, json.RawMessage(`{"a":1}`), 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 2 || r.Value(0, 0) != int64(1) || r.Value(0, 1) != "x" || r.Value(1, 1) != nil {
		t.Errorf("the rows are %v", r)
	}
	if _, err := w.Rows(ctx, nil, 1, 0, 10); err == nil {
		t.Error("an undeclared table gave rows")
	}
	for name, bad := range map[string][]byte{
		"NULL in a column that is not nullable": Batch(Operation(0, []byte{0}, []byte{0})),
		"a missing column":                      Batch(Operation(0, Int(1))),
		"another type":                          Batch(Operation(0, Int(1), Int(1))),
		"a count that lies":                     {1, 0, 0, 0, 255, 255, 255, 255},
		"a count that is cut off":               {1, 0, 0, 0, 9, 0, 0, 0},
	} {
		_, w := register(t, factory, Guest{Rows: bad})
		if _, err := w.Rows(ctx, nil, 0, 0, 10); !errors.Is(err, plugin.ErrInvalidBatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, w = register(t, factory, Guest{Rows: []byte{1}, Code: map[string][]byte{"ls_rows": I64(0)}})
	if _, err := w.Rows(ctx, nil, 0, 0, 10); !errors.Is(err, plugin.ErrEnded) {
		t.Errorf("the end of rows: %v", err)
	}
	_, w = register(t, factory, Guest{Rows: []byte{1}, Code: map[string][]byte{"ls_rows": Unreachable}})
	if _, err := w.Rows(ctx, nil, 0, 0, 10); !errors.Is(err, plugin.ErrTrapped) {
		t.Errorf("a trap in ls_rows: %v", err)
	}
}

func tableList(t *testing.T, factory Factory) {
	ctx := context.Background()
	_, w := register(t, factory, Guest{Answer: `{"tables":[]}`})
	list, err := w.Tables(ctx, nil)
	if err != nil || len(list) != len(w.Info().Manifest.Tables) {
		t.Errorf("tables that do not vary are %+v, %v", list, err)
	}
	const manifest = `{"kind":"workload","name":"guest","tables_vary":true,"statements":[{"id":"one","binds":["i64"]}]}`
	_, w = register(t, factory, Guest{
		Manifest: manifest,
		Rows:     Batch(Operation(0, Int(1)), Operation(0, Int(2))),
		Answer:   `{"tables":[{"name":"a","columns":["id i64"],"empty":true,"varies":true},{"name":"b","columns":["id i64"],"key":"id","rows":7,"sized_by":"n","computed_keys":true,"indexes":[{"columns":["id"],"unique":true}],"options":{"postgres":"x"}}]}`,
	})
	list, err = w.Tables(ctx, json.RawMessage(`{"n":7}`))
	if err != nil || len(list) != 2 || !list[0].Empty || !list[0].Varies || list[1].Rows != 7 || list[1].SizedBy != "n" ||
		!list[1].ComputedKeys || !list[1].Indexes[0].Unique || list[1].Options["postgres"] != "x" {
		t.Errorf("the answered tables are %+v, %v", list, err)
	}
	if r, err := w.Rows(ctx, nil, 1, 0, 10); err != nil || r.Len() != 2 {
		t.Errorf("rows of an answered table: %v", err)
	}
	if _, err := w.Rows(ctx, nil, 2, 0, 10); err == nil {
		t.Error("a table that was not answered gave rows")
	}
	for name, answer := range map[string]string{"not JSON": `{"tables":`, "another shape": `{"tables":5}`,
		"a negative number of rows":    `{"tables":[{"name":"a","rows":-1}]}`,
		"rows of an empty table":       `{"tables":[{"name":"a","rows":1,"empty":true}]}`,
		"an index without columns":     `{"tables":[{"name":"a","columns":["id i64"],"indexes":[{}]}]}`,
		"an index of a strange column": `{"tables":[{"name":"a","columns":["id i64"],"indexes":[{"columns":["x"]}]}]}`,
		"control characters":           `{"tables":[{"name":"a","options":"\u0007"}]}`} {
		_, w := register(t, factory, Guest{Manifest: manifest, Answer: answer})
		_, err := w.Tables(ctx, nil)
		checkError(t, err, plugin.ErrFailed, "guest")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func statementList(t *testing.T, factory Factory) {
	ctx := context.Background()
	_, w := register(t, factory, Guest{})
	list, err := w.Statements(ctx, nil, nil)
	if err != nil || len(list) != 2 || list[0].ID != "one" || len(list[1].Binds) != 6 || list[1].Binds[1].Name != "f" ||
		!list[1].Writes {
		t.Errorf("the manifest's statements are %+v, %v", list, err)
	}
	_, w = register(t, factory, Guest{Answer: `{"statements":[{"id":"x","kind":"GENERIC_SQL","sql":"SELECT 1"}]}`})
	list, err = w.Statements(ctx, json.RawMessage(`{}`), nil)
	if err != nil || len(list) != 1 || list[0].ID != "x" || list[0].SQL["*"] != "SELECT 1" {
		t.Errorf("the answered statements are %+v, %v", list, err)
	}
	_, w = register(t, factory, Guest{Answer: `{}`})
	if list, err = w.Statements(ctx, nil, nil); err != nil || len(list) != 2 {
		t.Errorf("without an opinion the statements are %+v, %v", list, err)
	}
	for name, answer := range map[string]string{"not JSON": `{"statements":`, "another shape": `{"statements":5}`,
		"an unknown type": `{"statements":[{"id":"x","binds":["int"]}]}`,
		"an id twice":     `{"statements":[{"id":"x"},{"id":"x"}]}`} {
		_, w := register(t, factory, Guest{Answer: answer})
		_, err := w.Statements(ctx, nil, nil)
		checkError(t, err, plugin.ErrFailed, "guest")
		if t.Failed() {
			t.Log(name)
		}
	}
	_, w = register(t, factory, Guest{Answer: "x", Error: "cannot", Code: map[string][]byte{"ls_call": I64(-1)}})
	_, err = w.Statements(ctx, nil, nil)
	checkError(t, err, plugin.ErrFailed, "cannot")
	if _, err := w.Open(ctx, plugin.OpenRequest{}, nil); err == nil {
		t.Error("a stream opened with an empty list")
	}
}
