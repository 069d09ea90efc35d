package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
)

// KindEnrichment is engine.Artifact.Kind of parts that hold what a database's
// history knows of executions. They are joined with these by server_query_id.
const KindEnrichment = "enrichment"

// enrichmentVersion is parquet_schema_version of enrichment parts.
const enrichmentVersion = 1

// enrichmentBatch rows are handed to the encoder at a time.
const enrichmentBatch = 1024

// enrichmentRow is the schema of an enrichment part.
type enrichmentRow struct {
	RunID                string  `parquet:"run_id,dict"`
	ServerQueryID        string  `parquet:"server_query_id,plain"`
	Kind                 string  `parquet:"kind,dict"`
	Warmup               bool    `parquet:"warmup"`
	EndedAt              int64   `parquet:"ended_at,timestamp(millisecond)"`
	ClientMs             float64 `parquet:"client_ms"`
	ServerMs             float64 `parquet:"server_ms"`
	OverheadMs           float64 `parquet:"overhead_ms"`
	CompilationMs        float64 `parquet:"compilation_ms,dict"`
	ExecutionMs          float64 `parquet:"execution_ms,dict"`
	QueuedMs             float64 `parquet:"queued_ms,dict"`
	QueuedOverloadMs     float64 `parquet:"queued_overload_ms,dict"`
	QueuedProvisioningMs float64 `parquet:"queued_provisioning_ms,dict"`
	QueuedRepairMs       float64 `parquet:"queued_repair_ms,dict"`
	BlockedMs            float64 `parquet:"blocked_ms,dict"`
	Cluster              int32   `parquet:"cluster_number,dict"`
	Status               string  `parquet:"execution_status,dict"`
}

// EnrichmentWriter writes one enrichment part. One goroutine at a time uses it;
// its memory is one row group.
type EnrichmentWriter struct {
	path     string
	runID    string
	f        *os.File
	sum      hash.Hash
	size     int64
	pq       *parquet.GenericWriter[enrichmentRow]
	rows     int64
	min, max int64
	batch    []enrichmentRow
	ids      []byte
}

// NewEnrichmentWriter begins the numbered part of a run in dir, which is made when absent.
func NewEnrichmentWriter(dir, runID string, number int) (*EnrichmentWriter, error) {
	if !ValidName(runID) {
		return nil, fmt.Errorf("writing enrichment: run id %q cannot be used in a file name", runID)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, DiskError(dir, err)
	}
	w := &EnrichmentWriter{path: filepath.Join(dir, EnrichmentName(number)), runID: runID, sum: sha256.New(),
		batch: make([]enrichmentRow, 0, enrichmentBatch), ids: make([]byte, 0, 36*enrichmentBatch)}
	// An earlier process may have left a part unfinished.
	f, err := os.OpenFile(w.path+unfinishedSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, DiskError(dir, err)
	}
	w.f = f
	w.pq = parquet.NewGenericWriter[enrichmentRow](w, parquet.CreatedBy("loadstone", "", ""),
		parquet.MaxRowsPerRowGroup(rowGroupRows))
	return w, nil
}

var enrichmentName = regexp.MustCompile(`^enrichment-(\d{5,9})\.parquet$`)

// EnrichmentName is the file name of the numbered part.
func EnrichmentName(number int) string { return fmt.Sprintf("enrichment-%05d%s", number, extension) }

// EnrichmentNumber is the number of an enrichment part, ok false for another file.
func EnrichmentNumber(name string) (number int, ok bool) {
	m := enrichmentName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	number, err := strconv.Atoi(m[1])
	return number, err == nil
}

// Write implements io.Writer for the encoder.
func (w *EnrichmentWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.sum.Write(b[:n])
	w.size += int64(n)
	return n, err
}

// Add appends a row.
func (w *EnrichmentWriter) Add(e *engine.EnrichedExecution) error {
	w.ids, _ = e.QueryID.AppendText(w.ids) // never fails
	ended := e.EndedAt.UnixMilli()
	if w.rows == 0 || ended < w.min {
		w.min = ended
	}
	if w.rows == 0 || ended > w.max {
		w.max = ended
	}
	w.rows++
	w.batch = append(w.batch, enrichmentRow{RunID: w.runID, Kind: e.Kind.String(), Warmup: e.Warmup, EndedAt: ended,
		ClientMs: e.ClientMs, ServerMs: e.ServerMs,
		OverheadMs: e.OverheadMs, CompilationMs: e.CompilationMs, ExecutionMs: e.ExecutionMs, QueuedMs: e.QueuedMs(),
		QueuedOverloadMs:     e.QueuedOverloadMs,
		QueuedProvisioningMs: e.QueuedProvisioningMs, QueuedRepairMs: e.QueuedRepairMs, BlockedMs: e.BlockedMs,
		Cluster: e.Cluster, Status: e.Status})
	if len(w.batch) == cap(w.batch) {
		return w.flush()
	}
	return nil
}

func (w *EnrichmentWriter) flush() error {
	text := string(w.ids)
	for i := range w.batch {
		w.batch[i].ServerQueryID = text[36*i : 36*(i+1)]
	}
	if _, err := w.pq.Write(w.batch); err != nil {
		return DiskError(filepath.Dir(w.path), err)
	}
	w.batch, w.ids = w.batch[:0], w.ids[:0]
	return nil
}

// Rows is how many rows were added.
func (w *EnrichmentWriter) Rows() int64 { return w.rows }

// Finish makes the part durable and returns it with its path. The writer cannot be used any more.
func (w *EnrichmentWriter) Finish() (engine.Artifact, string, error) {
	a := engine.Artifact{ArtifactID: uuid.NewString(), RunID: w.runID, ResultID: w.runID, Kind: KindEnrichment,
		Name: filepath.Base(w.path), RowCount: w.rows,
		MinTime: engine.At(time.UnixMilli(w.min)), MaxTime: engine.At(time.UnixMilli(w.max)),
		SchemaVersion: enrichmentVersion, CreatedAt: engine.At(time.Now())}
	w.pq.SetKeyValueMetadata(metaArtifactID, a.ArtifactID)
	w.pq.SetKeyValueMetadata(metaRunID, a.RunID)
	w.pq.SetKeyValueMetadata(metaSchemaVersion, strconv.Itoa(enrichmentVersion))
	w.pq.SetKeyValueMetadata(metaCreatedAt, a.CreatedAt.Format(time.RFC3339Nano))
	err := w.flush()
	if err == nil {
		err = errors.Join(w.pq.Close(), w.f.Sync())
	}
	if err = errors.Join(err, w.f.Close()); err == nil {
		if err = os.Rename(w.path+unfinishedSuffix, w.path); err == nil {
			err = SyncDir(filepath.Dir(w.path))
		}
	}
	if err != nil {
		_ = os.Remove(w.path + unfinishedSuffix)
		return a, "", DiskError(filepath.Dir(w.path), err)
	}
	a.SizeBytes, a.SHA256 = w.size, hex.EncodeToString(w.sum.Sum(nil))
	return a, w.path, nil
}

// ReadEnrichment calls fn for each row of the enrichment part of that name. The row is valid until fn returns.
func ReadEnrichment(f File, name string, fn func(*engine.EnrichedExecution) error) (err error) {
	defer corrupt(&err)
	pq, err := parquet.OpenFile(f, f.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("opening enrichment %s: %w", name, err)
	}
	if v, _ := pq.Lookup(metaSchemaVersion); v != strconv.Itoa(enrichmentVersion) {
		return fmt.Errorf("opening enrichment %s: its schema version %q is not known", name, v)
	}
	r := parquet.NewGenericReader[enrichmentRow](pq)
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]enrichmentRow, enrichmentBatch)
	var e engine.EnrichedExecution
	for {
		n, readErr := r.Read(rows)
		for i := range rows[:n] {
			row := &rows[i]
			id, err := engine.ParseQueryID(row.ServerQueryID)
			if err != nil {
				return fmt.Errorf("reading enrichment: %w", err)
			}
			kind, err := engine.ParseKind(row.Kind)
			if err != nil {
				return fmt.Errorf("reading enrichment: %w", err)
			}
			e = engine.EnrichedExecution{QueryID: id, Kind: kind, Warmup: row.Warmup,
				EndedAt: engine.At(time.UnixMilli(row.EndedAt)), ClientMs: row.ClientMs, ServerMs: row.ServerMs,
				OverheadMs: row.OverheadMs, CompilationMs: row.CompilationMs, ExecutionMs: row.ExecutionMs,
				BlockedMs: row.BlockedMs, QueuedOverloadMs: row.QueuedOverloadMs,
				QueuedProvisioningMs: row.QueuedProvisioningMs, QueuedRepairMs: row.QueuedRepairMs, Cluster: row.Cluster,
				Status: row.Status}
			if err := fn(&e); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("reading enrichment: %w", readErr)
		}
	}
}
