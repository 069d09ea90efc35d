package params

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// version is parquet_schema_version of the files.
const version = 1

// metaLeftOut is the key of the file's metadata that says how many executions there was no room for.
const metaLeftOut = "executions_left_out"

// The schema of a file: a row is an execution.
type row struct {
	RunID        string    `parquet:"run_id,dict"`
	WorkerID     string    `parquet:"worker_id,dict"`
	Why          string    `parquet:"why,dict"`
	ConnectionID uint32    `parquet:"connection_id"`
	Seq          uint32    `parquet:"seq"`
	Position     int32     `parquet:"position"`
	Retries      int32     `parquet:"retries"`
	Phase        string    `parquet:"phase,dict"`
	Kind         string    `parquet:"kind,dict"`
	StatementID  string    `parquet:"statement_id,dict"`
	StartedAt    int64     `parquet:"started_at,timestamp(nanosecond)"`
	EndedAt      int64     `parquet:"ended_at,timestamp(nanosecond)"`
	ServiceMs    float64   `parquet:"service_ms"`
	AppElapsedMs float64   `parquet:"app_elapsed_ms"`
	ErrorClass   string    `parquet:"error_class,dict"`
	ErrorCode    string    `parquet:"error_code,dict"`
	ErrorMessage string    `parquet:"error_message"`
	Calls        []callRow `parquet:"calls,list"`
	CallsLeftOut int32     `parquet:"calls_left_out"`
}

type callRow struct {
	StatementID   string     `parquet:"statement_id,dict"`
	Position      int32      `parquet:"position"`
	Values        []valueRow `parquet:"values,list"`
	ValuesLeftOut int32      `parquet:"values_left_out"`
}

type valueRow struct {
	Type   string  `parquet:"type,dict"`
	Length int64   `parquet:"length"`
	Text   *string `parquet:"text,optional"`
	Cut    bool    `parquet:"cut"`
}

// FileInfo names the run worker whose executions a file holds, and the file.
type FileInfo struct{ RunID, ResultID, WorkerID, Name string }

// FreeName returns a name that no file of a run worker in dir has: what an earlier process has left stays as it is.
func FreeName(dir, workerID string) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s%s-%05d.parquet", record.ParamsPrefix, workerID, n)
		taken := false
		for _, as := range []string{name, name + record.StoredSuffix} {
			if _, err := os.Lstat(filepath.Join(dir, as)); err == nil {
				taken = true
			}
		}
		if !taken {
			return name
		}
	}
}

// Write puts what was kept into a file in dir, in the place of what it held before: all of it or nothing; left is how
// many there was no room for. With last it is durable then.
func Write(dir string, of FileInfo, kept []KeptExecution, left int64, last bool) (a engine.Artifact, err error) {
	now := time.Now()
	a = engine.Artifact{ArtifactID: uuid.NewString(), RunID: of.RunID, ResultID: of.ResultID, WorkerID: of.WorkerID,
		Kind: record.KindParams, Name: of.Name, RowCount: int64(len(kept)), SchemaVersion: version,
		CreatedAt: engine.At(now)}
	rows := make([]row, len(kept))
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range kept {
		rows[i] = rowOf(of.RunID, &kept[i])
		from, to = min(from, rows[i].StartedAt), max(to, rows[i].EndedAt)
	}
	if len(kept) == 0 {
		from, to = now.UnixNano(), now.UnixNano()
	}
	a.MinTime, a.MaxTime = engine.At(time.Unix(0, from)), engine.At(time.Unix(0, to))
	path := filepath.Join(dir, a.Name)
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return a, fmt.Errorf("writing parameters: %w", err)
	}
	sum := sha256.New()
	n := &countingWriter{w: io.MultiWriter(f, sum)}
	pq := parquet.NewGenericWriter[row](n, parquet.CreatedBy("loadstone", "", ""))
	for key, v := range record.Metadata(a, from, to) {
		pq.SetKeyValueMetadata(key, v)
	}
	pq.SetKeyValueMetadata(metaLeftOut, strconv.FormatInt(left, 10))
	if _, err = pq.Write(rows); err == nil {
		err = pq.Close()
	}
	if err == nil && last {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err == nil && last {
		err = record.SyncDir(dir)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp") // it is no part
		return a, fmt.Errorf("writing parameters: %w", err)
	}
	a.SizeBytes, a.SHA256 = n.n, hex.EncodeToString(sum.Sum(nil))
	return a, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err //nolint:wrapcheck // Write wraps it
}

func rowOf(runID string, e *KeptExecution) row {
	r := row{RunID: runID, WorkerID: e.WorkerID, Why: e.Why, ConnectionID: e.ConnectionID, Seq: e.Seq,
		Position: e.Position, Retries: e.Retries, Phase: string(e.Phase), Kind: e.Kind.String(), StatementID: e.StatementID,
		StartedAt: e.StartedAt.UnixNano(), EndedAt: e.EndedAt.UnixNano(), ServiceMs: e.ServiceMs,
		AppElapsedMs: e.AppElapsedMs, ErrorClass: e.ErrorClass, ErrorCode: e.ErrorCode, ErrorMessage: e.ErrorMessage,
		CallsLeftOut: int32(e.CallsLeftOut)}
	for _, c := range e.Calls {
		one := callRow{StatementID: c.StatementID, Position: c.Position, ValuesLeftOut: int32(c.ValuesLeftOut)}
		for _, v := range c.Values {
			one.Values = append(one.Values, valueRow{Type: v.Type, Length: v.Length, Text: v.Text, Cut: v.Cut})
		}
		r.Calls = append(r.Calls, one)
	}
	return r
}

// maxRows bounds what is read of a file that says it has more.
const maxRows = 100_000

// Read reads the file of a run worker, and how many executions it had no room for; name is for errors.
func Read(f record.File, name string) (kept []KeptExecution, left int64, err error) {
	defer func() {
		if v := recover(); v != nil { // of the library, about bytes that are no Parquet
			kept, left, err = nil, 0, fmt.Errorf("reading parameters %s: %v", name, v)
		}
	}()
	pq, err := parquet.OpenFile(f, f.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, 0, fmt.Errorf("opening parameters %s: %w", name, err)
	}
	if v, _ := pq.Lookup(record.MetaSchemaVersion); v != strconv.Itoa(version) {
		return nil, 0, fmt.Errorf("opening parameters %s: its schema version %q is not known", name, v)
	}
	if n := pq.NumRows(); n > maxRows {
		return nil, 0, fmt.Errorf("opening parameters %s: it has %d rows", name, n)
	}
	// A file of an earlier version does not say it.
	if v, ok := pq.Lookup(metaLeftOut); ok {
		if left, err = strconv.ParseInt(v, 10, 64); err != nil || left < 0 {
			return nil, 0, fmt.Errorf("opening parameters %s: it has left out %q executions", name, v)
		}
	}
	rows := make([]row, pq.NumRows())
	r := parquet.NewGenericReader[row](pq)
	defer func() { err = errors.Join(err, r.Close()) }()
	n, err := r.Read(rows)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("reading parameters %s: %w", name, err)
	}
	for i := range rows[:n] {
		e, err := rows[i].execution()
		if err != nil {
			return nil, 0, fmt.Errorf("reading parameters %s: %w", name, err)
		}
		kept = append(kept, e)
	}
	return kept, left, nil
}

func (r *row) execution() (KeptExecution, error) {
	kind, err := engine.ParseKind(r.Kind)
	if err != nil {
		return KeptExecution{}, fmt.Errorf("a row: %w", err)
	}
	e := KeptExecution{Why: r.Why, WorkerID: r.WorkerID, ConnectionID: r.ConnectionID, Seq: r.Seq, Position: r.Position,
		Retries: r.Retries, Phase: engine.Phase(r.Phase), Kind: kind, StatementID: r.StatementID,
		StartedAt: engine.At(time.Unix(0, r.StartedAt)), EndedAt: engine.At(time.Unix(0, r.EndedAt)), ServiceMs: r.ServiceMs,
		AppElapsedMs: r.AppElapsedMs, ErrorClass: r.ErrorClass, ErrorCode: r.ErrorCode, ErrorMessage: r.ErrorMessage,
		Calls: make([]KeptCall, 0, len(r.Calls)), CallsLeftOut: int(r.CallsLeftOut)}
	for _, c := range r.Calls {
		one := KeptCall{StatementID: c.StatementID, Position: c.Position, ValuesLeftOut: int(c.ValuesLeftOut),
			Values: make([]KeptValue, 0, len(c.Values))}
		for _, v := range c.Values {
			one.Values = append(one.Values, KeptValue{Type: v.Type, Length: v.Length, Text: v.Text, Cut: v.Cut,
				Parameters: []int{}})
		}
		e.Calls = append(e.Calls, one)
	}
	return e, nil
}
