package record

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is a part's row as an independent reader sees it, through reflection.
type row struct {
	RunID         string    `parquet:"run_id"`
	ResultID      string    `parquet:"test_id"`
	WorkerID      string    `parquet:"worker_id"`
	ConnectionID  uint32    `parquet:"connection_id"`
	Seq           uint32    `parquet:"seq"`
	Step          int32     `parquet:"step"`
	Phase         string    `parquet:"phase"`
	Warmup        bool      `parquet:"warmup"`
	Kind          string    `parquet:"kind"`
	StatementID   string    `parquet:"statement_id"`
	DueAt         time.Time `parquet:"due_at,timestamp(nanosecond)"`
	StartedAt     time.Time `parquet:"started_at,timestamp(nanosecond)"`
	AppElapsedMs  float64   `parquet:"app_elapsed_ms"`
	ScheduleLagMs float64   `parquet:"schedule_lag_ms"`
	PoolWaitMs    float64   `parquet:"pool_wait_ms"`
	Rows          int32     `parquet:"rows"`
	Success       bool      `parquet:"success"`
	ErrorClass    *string   `parquet:"error_class"`
	ErrorCode     *string   `parquet:"error_code"`
	ErrorMessage  *string   `parquet:"error_message"`
	Retries       int32     `parquet:"retries"`
	ServerQueryID *string   `parquet:"server_query_id"`
	DecodeNs      int64     `parquet:"decode_ns"`
}

func ns(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

// check compares a row with the execution it records.
func check(t testing.TB, i int, got row, want engine.Execution) {
	t.Helper()
	phase := "MEASUREMENT"
	if want.Warmup {
		phase = "WARMUP"
	}
	statement := ""
	if int(want.Statement) < len(testStatements) {
		statement = testStatements[want.Statement].ID
	}
	back := engine.Execution{
		DueAt: got.DueAt.UnixNano(), StartedAt: got.StartedAt.UnixNano(), Elapsed: ns(got.AppElapsedMs),
		ScheduleLag: ns(got.ScheduleLagMs), PoolWait: ns(got.PoolWaitMs), Decode: got.DecodeNs, Seq: got.Seq,
		ConnectionID: got.ConnectionID,
		Rows:         got.Rows, ErrorID: want.ErrorID, Statement: want.Statement, Step: uint16(got.Step),
		Retries: uint8(got.Retries),
		Kind:    want.Kind, Warmup: got.Warmup, Success: got.Success, QueryID: queryID(t, got.ServerQueryID),
	}
	if back != want {
		t.Fatalf("row %d: got %+v, want %+v", i, back, want)
	}
	if got.RunID != "run-1" || got.ResultID != "run-1-worker-0" || got.WorkerID != "worker-0" ||
		got.Phase != phase || got.Kind != want.Kind.String() || got.StatementID != statement {
		t.Fatalf("row %d: %+v", i, got)
	}
	if want.ErrorID == 0 {
		if got.ErrorClass != nil || got.ErrorCode != nil || got.ErrorMessage != nil {
			t.Fatalf("row %d has an error: %+v", i, got)
		}
		return
	}
	e := testErrors[want.ErrorID]
	if got.ErrorClass == nil || *got.ErrorClass != string(e.Class) || *got.ErrorCode != e.Code ||
		*got.ErrorMessage != e.Message {
		t.Fatalf("row %d: error %v, want %v", i, got, e)
	}
}

func queryID(t testing.TB, text *string) engine.QueryID {
	t.Helper()
	if text == nil {
		return engine.QueryID{}
	}
	id, err := engine.ParseQueryID(*text)
	if err != nil || id == (engine.QueryID{}) {
		t.Fatalf("query id %q: %v", *text, err)
	}
	return id
}

func readAll(t testing.TB, path string) []row {
	t.Helper()
	rows, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestPartsHoldEveryExecution(t *testing.T) {
	dir := t.TempDir()
	opts := testOptions(dir)
	opts.PartRows = 100_000
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	recs := realistic(300_001, 16, 500, 1e9, 50)
	for i := 0; i < len(recs); i += 777 {
		if err := w.Write(recs[i:min(i+777, len(recs))]); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != 3 {
		t.Fatalf("%d parts, want 3", len(parts))
	}
	i := 0
	for p, a := range parts {
		path := filepath.Join(dir, a.Name)
		size, sum, err := Checksum(path)
		if err != nil {
			t.Fatal(err)
		}
		if a.Name != name(p+1) || a.SizeBytes != size || a.SHA256 != sum || a.ArtifactID == "" ||
			a.SchemaVersion != SchemaVersion {
			t.Fatalf("part %+v: size %d, checksum %s", a, size, sum)
		}
		rows := readAll(t, path)
		if int64(len(rows)) != a.RowCount {
			t.Fatalf("%d rows, want %d", len(rows), a.RowCount)
		}
		lo, hi := int64(math.MaxInt64), int64(0)
		for _, got := range rows {
			check(t, i, got, recs[i])
			lo, hi = min(lo, recs[i].DueAt), max(hi, recs[i].DueAt+recs[i].Elapsed)
			i++
		}
		if a.MinTime.UnixNano() != lo || a.MaxTime.UnixNano() != hi {
			t.Fatalf("times %v–%v, want %d–%d", a.MinTime, a.MaxTime, lo, hi)
		}
	}
	if i != len(recs) {
		t.Fatalf("%d rows in all, want %d", i, len(recs))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v %v", left, err)
	}
	if again, err := w.Close(); err != nil || len(again) != 3 {
		t.Fatalf("second close: %d parts, %v", len(again), err)
	}
	if err := w.Write(recs[:1]); err == nil {
		t.Fatal("a closed writer accepted executions")
	}
}

func TestDamagedPagesAreErrors(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(realistic(5000, 4, 10, 1e6, 10)); err != nil {
		t.Fatal(err)
	}
	parts, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, parts[0].Name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[4 : len(b)-6000]) // the pages; the footer is whole
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPart(path)
	if err != nil {
		t.Skipf("the footer was hit: %v", err)
	}
	defer p.Close()
	if v, err := p.Doubles(0, ColAppElapsedMs, nil); err == nil {
		t.Fatalf("%d values from a page of zeros", len(v))
	}
}
