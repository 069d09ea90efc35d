package results

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var statements = []engine.Statement{{ID: "lookup"}, {ID: "scan"}, {ID: "insert"}, {ID: "update"}}

var dictionary = []engine.ExecutionError{
	{},
	{Class: engine.ErrClassTimeout, Code: "57014", Message: `canceling statement, "due" to timeout`},
	{Class: engine.ErrClassConstraint, Code: "23505", Message: "duplicate key\nin two lines"},
	{Class: engine.ErrClassTimeout, Code: "57014", Message: "another"},
	{Class: engine.ErrClassLock, Code: "55P03", Message: "canceling statement due to lock timeout"},
	{Class: engine.ErrClassConnection, Code: engine.CodeUnknownOutcome, Message: "connection lost"},
}

// spool writes executions as one worker's parts into a folder of their own.
func spool(t testing.TB, worker string, recs ...[]engine.Execution) (dir string, parts []engine.Artifact) {
	t.Helper()
	return spoolLoop(t, true, worker, recs...)
}

func spoolLoop(t testing.TB, openLoop bool, worker string, recs ...[]engine.Execution) (dir string,
	parts []engine.Artifact) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "spool")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range recs {
		w, err := record.NewWriter(record.WriterOptions{Dir: dir, RunID: "run", ResultID: "run-" + worker,
			WorkerID:   worker,
			Statements: statements, Errors: func(id uint32) engine.ExecutionError { return dictionary[id] }, OpenLoop: openLoop})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		done, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, done...)
	}
	return dir, parts
}

func put(t testing.TB, f *Results, worker string, recs ...[]engine.Execution) []engine.Artifact {
	t.Helper()
	return putOf(t, f, true, worker, recs...)
}

func putOf(t testing.TB, f *Results, openLoop bool, worker string, recs ...[]engine.Execution) []engine.Artifact {
	t.Helper()
	dir, parts := spoolLoop(t, openLoop, worker, recs...)
	for _, a := range parts {
		if err := f.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
			t.Fatal(err)
		}
	}
	return parts
}

func open(t testing.TB) *Results {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func someExecutions(n int) []engine.Execution {
	recs := make([]engine.Execution, n)
	for i := range recs {
		at := int64(1_790_000_000_000_000_000) + int64(i)*1_000_000
		recs[i] = engine.Execution{DueAt: at, StartedAt: at, Elapsed: int64(i+1) * 1000, Seq: uint32(i), Rows: 1,
			Success: true}
	}
	return recs
}

func TestDelete(t *testing.T) {
	ctx := context.Background()
	f := open(t)
	put(t, f, "worker-0", someExecutions(1))
	for range 2 {
		if err := f.Delete(ctx, "run"); err != nil {
			t.Fatal(err)
		}
	}
	if fig, err := f.FiguresIn(
		ctx,
		"run",
		"",
		engine.Window{},
	); err != nil || fig.Operations != 0 ||
		fig.LatencyMs != nil {
		t.Fatalf("figures of a deleted run: %+v, %v", fig, err)
	}
}

func TestTornPartIsAnError(t *testing.T) {
	f := open(t)
	parts := put(t, f, "worker-0", someExecutions(1000))
	path := filepath.Join(f.Location("run"), parts[0].Name)
	if err := os.Truncate(path, parts[0].SizeBytes-5); err != nil {
		t.Fatal(err)
	}
	if _, err := f.FiguresIn(context.Background(), "run", "", engine.Window{}); err == nil {
		t.Fatal("figures from a torn part")
	}
}

func TestCSVHoldsEveryExecution(t *testing.T) {
	f := open(t)
	recs := someExecutions(500)
	for i := range recs {
		recs[i].Warmup = i < 100
		if i%2 == 1 {
			recs[i].QueryID = engine.QueryID{0: 1, 14: byte(i >> 8), 15: byte(i)}
		}
		if i%3 == 0 {
			recs[i].Success, recs[i].ErrorID = false, uint32(1+i%2)
		}
	}
	put(t, f, "worker-0", recs[:200], recs[200:])
	var out strings.Builder
	if err := f.WriteCSV(context.Background(), "run", &out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(recs)+1 {
		t.Fatalf("%d lines", len(lines))
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	for i, r := range recs {
		line := lines[i+1]
		field := func(name string) string { return line[at[name]] }
		ms, err := strconv.ParseFloat(field("app_elapsed_ms"), 64)
		if err != nil || ms != float64(r.Elapsed)/1e6 {
			t.Fatalf("line %d: app_elapsed_ms %v, want %d ns", i, ms, r.Elapsed)
		}
		e := dictionary[r.ErrorID]
		if field("seq") != strconv.Itoa(i) || field("success") != strconv.FormatBool(r.Success) ||
			field("error_message") != e.Message ||
			field("error_class") != string(e.Class) || field("warmup") != strconv.FormatBool(r.Warmup) ||
			field("statement_id") != "lookup" ||
			field("server_query_id") != r.QueryID.String() {
			t.Fatalf("line %d: %q", i, line)
		}
	}
	if !strings.Contains(lines[1][at["started_at"]], "T") || lines[1][at["server_query_id"]] != "" {
		t.Fatalf("first line %q", lines[1])
	}
}
