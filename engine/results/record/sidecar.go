package record

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
)

// KindParams is engine.Artifact.Kind of files with the parameters of a few executions; engine/results/params writes and
// reads them. ParamsPrefix begins their names.
const (
	KindParams   = "binds"
	ParamsPrefix = "binds-"
)

// MetaSchemaVersion is the key of a file's metadata under which the version of its columns stands.
const MetaSchemaVersion = metaSchemaVersion

// HoldsExecutions reports whether files of a kind tell of single executions: they go where these are deleted.
func HoldsExecutions(kind string) bool { return kind == KindExecutions || kind == KindParams }

// ExecutionKinds are the kinds that HoldsExecutions is true of.
func ExecutionKinds() []string { return []string{KindExecutions, KindParams} }

// Metadata is what a file that lies beside the parts says of itself, so that it is known for what it is when its
// process was killed; from and to are the time that it tells of, in ns since the Unix epoch.
func Metadata(a engine.Artifact, from, to int64) map[string]string {
	return map[string]string{metaSchemaVersion: strconv.Itoa(a.SchemaVersion), metaArtifactID: a.ArtifactID,
		metaRunID: a.RunID, metaTestID: a.ResultID, metaWorkerID: a.WorkerID,
		metaMinTime: strconv.FormatInt(from, 10), metaMaxTime: strconv.FormatInt(to, 10),
		metaCreatedAt: a.CreatedAt.Format(time.RFC3339Nano)}
}

// readSidecar reads what a file beside the parts says of itself.
func readSidecar(path, name string) (a engine.Artifact, err error) {
	defer corrupt(&err)
	f, err := os.Open(path)
	if err != nil {
		return a, fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		return a, fmt.Errorf("opening %s: %w", name, err)
	}
	pq, err := parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return a, fmt.Errorf("opening %s: %w", name, err)
	}
	text := func(key string) string { v, _ := pq.Lookup(key); return v }
	number := func(key string) (n int64) {
		v, wrong := strconv.ParseInt(text(key), 10, 64)
		if wrong != nil && err == nil {
			err = fmt.Errorf("opening %s: its %s %q is no number", name, key, text(key))
		}
		return v
	}
	a = engine.Artifact{ArtifactID: text(metaArtifactID), RunID: text(metaRunID), ResultID: text(metaTestID),
		WorkerID: text(metaWorkerID), Kind: KindParams, Name: name, RowCount: pq.NumRows(),
		SchemaVersion: int(number(metaSchemaVersion)), MinTime: engine.At(time.Unix(0, number(metaMinTime))),
		MaxTime: engine.At(time.Unix(0, number(metaMaxTime)))}
	if at, wrong := time.Parse(time.RFC3339Nano, text(metaCreatedAt)); wrong == nil {
		a.CreatedAt = engine.At(at)
	}
	return a, err
}

// isSidecar tells a file that lies beside the parts from these.
func isSidecar(name string) bool { return strings.HasPrefix(name, ParamsPrefix) }
