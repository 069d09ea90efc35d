package params

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

func statements(n int) []engine.Statement {
	s := make([]engine.Statement, n)
	for i := range s {
		s[i] = engine.Statement{ID: fmt.Sprint("s", i), SQL: fmt.Sprintf("SELECT %d WHERE a = $1 AND b = $2", i),
			Binds: []engine.Bind{{Name: "a"}, {Name: "b"}}}
	}
	return s
}

// offer gives a keeper an execution, as a connection does.
func offer(k *Sampler, r engine.Execution, e engine.ExecutionError, b *plugin.Batch, ops ...plugin.Op) {
	if k.Wants(&r) {
		k.Record(&r, e, b, ops)
	}
}

// batch is one with an operation of a statement that has these arguments.
func batch(statement uint16, values ...any) (*plugin.Batch, plugin.Op) {
	b := &plugin.Batch{}
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b.Args = append(b.Args, plugin.Value{})
		case int:
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: int64(v)})
		case float64:
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeF64, F: v})
		case bool:
			one := plugin.Value{Type: engine.TypeBool}
			if v {
				one.I = 1
			}
			b.Args = append(b.Args, one)
		case time.Time:
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeTimestamp, I: v.UnixMicro()})
		case []byte:
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeBytes, Off: uint32(len(b.Data)), Len: uint32(len(v))})
			b.Data = append(b.Data, v...)
		case string:
			b.Args = append(b.Args, plugin.Value{Type: engine.TypeText, Off: uint32(len(b.Data)), Len: uint32(len(v))})
			b.Data = append(b.Data, v...)
		case plugin.Value:
			b.Args = append(b.Args, v)
		}
	}
	return b, plugin.Op{Statement: statement, NArgs: uint16(len(values))}
}

func texts(e KeptExecution) (all []string) {
	for _, c := range e.Calls {
		for _, v := range c.Values {
			if v.Text == nil {
				all = append(all, v.Type+"?")
			} else {
				all = append(all, *v.Text)
			}
		}
	}
	return all
}

var refused = engine.ExecutionError{Class: engine.ErrClassConstraint, Code: "23505",
	Message: "Key (id)=(4711) already exists."}

// TestTheSlowestAreKept: whatever comes in whatever order, by statement and place, and with their own parameters
// although the batch is used again.
func TestTheSlowestAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := New(Plain, statements(3), 1)
		b, op := batch(0, 0)
		type seen struct {
			took int64
			id   int
		}
		all := map[string][]seen{}
		for i := range rapid.IntRange(0, 300).Draw(t, "executions") {
			r := engine.Execution{Success: true, Statement: uint16(rapid.IntRange(0, 2).Draw(t, "statement")), Seq: uint32(i),
				Elapsed: rapid.Int64Range(0, 1000).Draw(t, "took"), PoolWait: rapid.Int64Range(0, 50).Draw(t, "wait"),
				Position: uint16(rapid.IntRange(0, 1).Draw(t, "inside")), Warmup: rapid.Bool().Draw(t, "warm")}
			r.Elapsed += r.PoolWait
			b.Args[0].I, op.Statement = int64(i), r.Statement
			offer(k, r, engine.ExecutionError{}, b, op)
			if !r.Warmup {
				at := fmt.Sprintf("%d/%d", r.Statement, r.Position)
				all[at] = append(all[at], seen{serviceTime(&r), i})
			}
		}
		kept, left := k.Samples("w")
		if left != 0 {
			t.Fatalf("%d left out", left)
		}
		got := map[string][]int64{}
		for _, e := range kept {
			at := fmt.Sprintf("%s/%d", strings.TrimPrefix(e.StatementID, "s"), e.Position)
			got[at] = append(got[at], int64(math.Round(e.ServiceMs*1e6)))
			if want := fmt.Sprint(e.Seq); !slices.Equal(texts(e), []string{want}) {
				t.Fatalf("execution %s has the parameters %q", want, texts(e))
			}
		}
		for at, s := range all {
			slices.SortFunc(s, func(a, b seen) int { return cmp.Compare(b.took, a.took) })
			var want []int64
			for _, one := range s[:min(len(s), MaxSlowest)] {
				want = append(want, one.took)
			}
			if !slices.Equal(got[at], want) {
				t.Fatalf("of %s %v are kept, not %v", at, got[at], want)
			}
		}
	})
}

// TestWhatIsKeptIsBounded: by a flood of different errors, long texts and many parameters, and what is counted is
// what there is.
func TestWhatIsKeptIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.SampledFrom([]int{0, 1, 4, 500}).Draw(t, "workers")
		k := New(Plain, statements(40), workers)
		long := strings.Repeat("ä", rapid.IntRange(0, 3000).Draw(t, "long"))
		many := make([]any, rapid.IntRange(1, 300).Draw(t, "parameters"))
		for i := range many {
			many[i] = long
		}
		b, op := batch(0, many...)
		for i := range rapid.IntRange(0, 400).Draw(t, "executions") {
			r := engine.Execution{Statement: uint16(i % 40), Success: i%3 == 0, Elapsed: int64(i)}
			op.Statement = r.Statement
			offer(k, r, engine.ExecutionError{Code: fmt.Sprint(i), Message: long}, b, op)
		}
		budget := max(MaxBytes/int64(max(workers, 1)), minBytes)
		holds := int64(0)
		count := func(e *entry) {
			holds += entryBytes + int64(len(e.data)) + int64(len(e.err.Message))
			for _, c := range e.calls {
				holds += callBytes + valueBytes*int64(len(c.values))
			}
		}
		for _, m := range k.errors {
			for _, e := range m.entries {
				count(e)
			}
		}
		for _, s := range k.slow {
			for _, e := range s.entries {
				count(e)
			}
		}
		if left := k.bytesForFailed + k.bytesForSlow; k.bytesForFailed < 0 || k.bytesForSlow < 0 || holds != budget-left {
			t.Fatalf("%d bytes are held, %d of %d are left", holds, left, budget)
		}
		if len(k.errors) > MaxErrors {
			t.Fatalf("%d errors", len(k.errors))
		}
	})
}

// TestTheFirstOfEachErrorAreKept: the warm-up takes no place of the measurement, and later ones none of the first.
func TestTheFirstOfEachErrorAreKept(t *testing.T) {
	k := New(Plain, statements(2), 1)
	b, op := batch(0, 0)
	for i := range 1000 {
		r := engine.Execution{Seq: uint32(i), DueAt: int64(i) * 1e6, Warmup: i < 100}
		b.Args[0].I = int64(i)
		offer(k, r, refused, b, op)
	}
	for i := range uint16(3) { // what has no parameters, and what was rolled back for it
		offer(k, engine.Execution{Statement: engine.FirstControl + i, Position: 1}, refused, b,
			plugin.Op{Statement: engine.FirstControl + i})
	}
	kept, _ := k.Samples("w")
	var at []uint32
	for _, e := range kept {
		at = append(at, e.Seq)
	}
	want := []uint32{0, 1, 2, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109}
	if !slices.Equal(at, want) {
		t.Errorf("%v are kept, not %v", at, want)
	}
	if e := kept[3]; e.Why != Failed || e.ErrorCode != "23505" || e.ErrorMessage != refused.Message ||
		!slices.Equal(texts(e), []string{"100"}) || e.Phase != engine.PhaseMeasurement {
		t.Errorf("%+v", e)
	}
}

// TestATransactionIsKeptWhole: with each statement and its place, without those that have no parameters.
func TestATransactionIsKeptWhole(t *testing.T) {
	all := statements(2)
	all[0].Transaction = "pay"
	k := New(Plain, all, 1)
	b, _ := batch(0, 1, "x", plugin.Ref(0, 2))
	ops := []plugin.Op{{Statement: plugin.StatementBegin}, {Statement: 0, NArgs: 2}, {Statement: 1, FirstArg: 2, NArgs: 1},
		{Statement: plugin.StatementCommit}}
	offer(k, engine.Execution{Kind: engine.KindTransaction, Success: true, Elapsed: 5}, engine.ExecutionError{}, b, ops...)
	kept, _ := k.Samples("w")
	if len(kept) != 1 || kept[0].StatementID != "pay" || len(kept[0].Calls) != 2 {
		t.Fatalf("%+v", kept)
	}
	if c := kept[0].Calls[1]; c.Position != 3 || c.StatementID != "s1" || *c.Values[0].Text != "column 3 of statement 1" {
		t.Errorf("%+v", c)
	}
	long := New(Masked, all, 1)
	offer(long, engine.Execution{Kind: engine.KindTransaction, Elapsed: 5}, refused, b,
		slices.Repeat([]plugin.Op{{Statement: 0, NArgs: 2}}, 120)...)
	if kept, _ = long.Samples("w"); len(kept[0].Calls) != MaxCalls || kept[0].CallsLeftOut != 20 {
		t.Errorf("%d calls, %d left out", len(kept[0].Calls), kept[0].CallsLeftOut)
	}
}

// nasty are values that somebody may send to a database.
var nasty = []any{nil, "", "<script>alert(1)</script>", "\x1b[2J\u202e\x00", "\xff\xfe",
	strings.Repeat("long ", 2_000_000),
	[]byte{0, 255}, 42, -0.5, true, time.Date(2026, 11, 24, 1, 2, 3, 4000, time.UTC), math.Inf(1)}

// TestOfMaskedValuesNothingIsWritten: neither in memory that is held on to, nor in the file; types and lengths are.
func TestOfMaskedValuesNothingIsWritten(t *testing.T) {
	const secret = "4711-SECRET"
	values := append([]any{secret, []byte(secret), 471100815, 4711.00815}, nasty...)
	for _, mode := range []string{Masked, Plain} {
		k := New(mode, statements(1), 1)
		b, op := batch(0, values...)
		offer(k, engine.Execution{}, engine.ExecutionError{Code: "1", Message: "Key (a)=(" + secret + ") exists"}, b, op)
		offer(k, engine.Execution{Success: true, Elapsed: 4}, engine.ExecutionError{}, b, op)
		if mode == Masked {
			holdsNothing(t, k)
		}
		kept, _ := k.Samples("worker-0")
		dir := t.TempDir()
		a, err := Write(
			dir,
			FileInfo{RunID: "r", ResultID: "t", WorkerID: "worker-0", Name: FreeName(dir, "worker-0")},
			kept,
			3,
			true,
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, a.Name))
		if err != nil {
			t.Fatal(err)
		}
		found := bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte("471100815"))
		if found != (mode == Plain) {
			t.Errorf("%s: the value is in the file: %v", mode, found)
		}
		if int64(len(text)) != a.SizeBytes || a.RowCount != 2 || len(text) > 64<<10 {
			t.Errorf("%d bytes of %+v", len(text), a)
		}
		back := reread(t, filepath.Join(dir, a.Name))
		if len(back) != 2 {
			t.Fatalf("%d executions", len(back))
		}
		for _, e := range back {
			of := e.Calls[0].Values
			if of[0].Type != "text" || of[0].Length != 11 || of[4].Type != "null" || of[9].Length != 10_000_000 {
				t.Errorf("%s: %+v", mode, of)
			}
			if mode == Plain && (*of[9].Text != strings.Repeat("long ", 205)[:MaxTextBytes] || !of[9].Cut ||
				*of[8].Text != "\uFFFD" || *of[10].Text != "00ff" || *of[14].Text != "2026-11-24T01:02:03.000004Z") {
				t.Errorf("%q", texts(e))
			}
			if mode == Plain {
				e.Mask()
			}
			for i, v := range of {
				if v.Text != nil {
					t.Errorf("value %d is shown", i)
				}
			}
			if strings.Contains(e.ErrorMessage, secret) {
				t.Error(e.ErrorMessage)
			}
		}
	}
}

// holdsNothing: of what is masked no value is kept in memory either.
func holdsNothing(t *testing.T, k *Sampler) {
	t.Helper()
	entries := k.slow[0].entries
	for _, m := range k.errors {
		entries = append(entries, m.entries...)
	}
	for _, e := range entries {
		for _, v := range e.calls[0].values {
			if len(e.data) != 0 || v.I != 0 || v.F != 0 {
				t.Errorf("%d bytes and %+v are held", len(e.data), v)
			}
		}
	}
	if len(entries) != 2 {
		t.Errorf("%d executions", len(entries))
	}
}

func reread(t *testing.T, path string) []KeptExecution {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	kept, left, err := Read(sized{f, st.Size()}, path)
	if err != nil {
		t.Fatal(err)
	}
	if left != 3 {
		t.Errorf("%d were left out", left)
	}
	return kept
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

type sized struct {
	*os.File
	size int64
}

func (s sized) Size() int64 { return s.size }

// TestATextIsCutAtACharacter: of those that end in the middle of one nothing is made up.
func TestATextIsCutAtACharacter(t *testing.T) {
	k := New(Plain, statements(1), 1)
	b, op := batch(0, "x"+strings.Repeat("é", MaxTextBytes), "x"+strings.Repeat("🙂", MaxTextBytes))
	offer(k, engine.Execution{}, refused, b, op)
	kept, _ := k.Samples("w")
	for _, text := range texts(kept[0]) {
		if len(text) < MaxTextBytes-4 || len(text) > MaxTextBytes || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("%d bytes, ending in %q", len(text), text[len(text)-6:])
		}
	}
}

// TestALeftFileIsFound: what a killed process has written of it is announced as it is by the next one, beside the
// parts, and a torn file is not.
func TestALeftFileIsFound(t *testing.T) {
	dir := t.TempDir()
	k := New(Masked, statements(1), 1)
	b, op := batch(0, 1)
	offer(k, engine.Execution{DueAt: 5e9, StartedAt: 5e9, Elapsed: 1e6}, refused, b, op)
	kept, _ := k.Samples("worker-1")
	of := FileInfo{RunID: "r", ResultID: "t", WorkerID: "worker-1", Name: FreeName(dir, "worker-1")}
	a, err := Write(dir, of, kept, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if next := FreeName(dir, "worker-1"); next == of.Name {
		t.Error("the next process would write into it")
	}
	if err := os.WriteFile(filepath.Join(dir, "binds-worker-1-00007.parquet"), []byte("PAR1 torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := record.Salvage(dir)
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	got := found[0]
	a.CreatedAt, got.CreatedAt = engine.Time{}, engine.Time{}
	if got != a {
		t.Errorf("%+v is found, not %+v", got, a)
	}
}

// TestDamagedFilesAreRefused: whatever byte is wrong, reading ends with an error or with rows, and not otherwise.
func TestDamagedFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	k := New(Plain, statements(2), 1)
	b, op := batch(0, "text", 5)
	offer(k, engine.Execution{}, refused, b, op)
	kept, _ := k.Samples("w")
	a, err := Write(dir, FileInfo{RunID: "r", ResultID: "t", WorkerID: "w", Name: FreeName(dir, "w")}, kept, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, a.Name))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		spoilt := slices.Clone(whole)
		for range rapid.IntRange(1, 4).Draw(t, "bytes") {
			spoilt[rapid.IntRange(0, len(spoilt)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if got, left, err := Read(memory{bytes.NewReader(spoilt)}, "x"); err == nil && (len(got) > maxRows || left < 0) {
			t.Fatal(len(got))
		}
	})
}

// TestMergedWorkersAreOne: what many run workers kept comes down to what one may keep.
func TestMergedWorkersAreOne(t *testing.T) {
	var all []KeptExecution
	slow := 0.0
	for w := range 30 {
		k := New(Masked, statements(1), 30)
		b, op := batch(0, 1)
		for i := range 40 {
			offer(k, engine.Execution{Seq: uint32(i), DueAt: int64(1000*i+w) * 1e6}, refused, b, op)
			r := engine.Execution{Seq: uint32(i), Success: true, Elapsed: int64(1000*i+w) * 1e6}
			slow = max(slow, float64(r.Elapsed)/1e6)
			offer(k, r, engine.ExecutionError{}, b, op)
		}
		kept, _ := k.Samples(fmt.Sprintf("worker-%02d", w))
		all = append(all, kept...)
	}
	merged := Merge(all)
	if len(merged) != MaxPerError+MaxSlowest {
		t.Fatalf("%d are left of %d", len(merged), len(all))
	}
	for i, e := range merged[:MaxPerError] {
		if e.Why != Failed || e.Seq != 0 || e.WorkerID != fmt.Sprintf("worker-%02d", i) {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if e := merged[MaxPerError]; e.Why != Slow || e.ServiceMs != slow {
		t.Errorf("%+v", e)
	}
}

// TestParametersHaveTheirPlaces: as the statement numbers them, also where its order is another one.
func TestParametersHaveTheirPlaces(t *testing.T) {
	all := []engine.Statement{{ID: "s", SQL: "SELECT $1, $2, $3", Binds: []engine.Bind{{Name: "low"}, {Name: "high"}},
		BindOrder: []int{1, 0, 1}}}
	k := New(Plain, all, 1)
	b, op := batch(0, 1, 2)
	offer(k, engine.Execution{}, refused, b, op)
	kept, _ := k.Samples("w")
	AddStatementTexts(kept, all)
	v := kept[0].Calls[0].Values
	if v[0].Name != "low" || !slices.Equal(v[0].Parameters, []int{2}) || v[1].Name != "high" ||
		!slices.Equal(v[1].Parameters, []int{1, 3}) || kept[0].Calls[0].SQL != all[0].SQL {
		t.Errorf("%+v", v)
	}
}

// TestNothingIsKeptWhereNothingIsWanted: neither by the word, nor by runs that know none.
func TestNothingIsKeptWhereNothingIsWanted(t *testing.T) {
	for _, mode := range []string{"", None, "PLAIN"} {
		k := New(mode, statements(1), 1)
		b, op := batch(0, 1)
		offer(k, engine.Execution{}, refused, b, op)
		if kept, _ := k.Samples("w"); k != nil || kept != nil || k.Changed() {
			t.Errorf("%q keeps %v", mode, kept)
		}
	}
}

// TestManyConnectionsKeepAtOnce is for the race detector, and that nothing is lost.
func TestManyConnectionsKeepAtOnce(t *testing.T) {
	k := New(Plain, statements(1), 1)
	var wait sync.WaitGroup
	for c := range uint32(8) {
		wait.Go(func() {
			b, op := batch(0, 0)
			for i := range 2000 {
				b.Args[0].I = int64(c)<<32 + int64(i)
				r := engine.Execution{ConnectionID: c, Seq: uint32(i), Success: i%10 != 0, Elapsed: int64(i)}
				offer(k, r, refused, b, op)
				if i%100 == 0 {
					_, _ = k.Samples("w")
				}
			}
		})
	}
	wait.Wait()
	kept, _ := k.Samples("w")
	if len(kept) != MaxSlowest+MaxPerError {
		t.Errorf("%d are kept", len(kept))
	}
	for _, e := range kept {
		if want := fmt.Sprint(int64(e.ConnectionID)<<32 + int64(e.Seq)); texts(e)[0] != want {
			t.Errorf("%s has %s", want, texts(e))
		}
		if e.Why == Slow && e.Seq < 1997 {
			t.Errorf("%d is among the slowest", e.Seq)
		}
	}
}

// TestWhatIsNotWantedAllocatesNothing: neither an execution that is none of the slowest, nor one of an error that
// is known.
func TestWhatIsNotWantedAllocatesNothing(t *testing.T) {
	k := New(Plain, statements(1), 1)
	b, op := batch(0, "text")
	ops := []plugin.Op{op}
	fast, failed := engine.Execution{Success: true, Elapsed: 5}, engine.Execution{}
	for range 100 {
		offer(k, engine.Execution{Success: true, Elapsed: 100}, engine.ExecutionError{}, b, op)
		offer(k, failed, refused, b, op)
	}
	if n := testing.AllocsPerRun(100, func() {
		if k.Wants(&fast) {
			t.Error("it is wanted")
		}
		if k.Wants(&failed) {
			t.Error("enough of this error are kept, and it is wanted")
		}
		failed.ErrorID = 4711 // one of many: Keep has to look
		if k.Wants(&failed) {
			k.Record(&failed, refused, b, ops)
		}
		failed.ErrorID = 0
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
