package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// segmentRowV1 is a row as the segments of version 1 had them.
type segmentRowV1 struct {
	Series          int32  `parquet:"series,delta"`
	Relation        string `parquet:"relation,dict"`
	Kind            string `parquet:"kind,dict"`
	StatementID     string `parquet:"statement_id,dict"`
	InTransaction   bool   `parquet:"in_transaction"`
	WorkerID        string `parquet:"worker_id,dict"`
	ErrorClass      string `parquet:"error_class,dict"`
	ErrorCode       string `parquet:"error_code,dict"`
	Warehouse       string `parquet:"warehouse,dict"`
	WarehouseType   string `parquet:"warehouse_type,dict"`
	WarehouseSize   string `parquet:"warehouse_size,dict"`
	Warmup          bool   `parquet:"warmup"`
	Second          int32  `parquet:"second,delta"`
	At              int64  `parquet:"at,timestamp(microsecond),delta"`
	Operations      int64  `parquet:"operations,delta"`
	Errors          int64  `parquet:"errors,delta"`
	RowCount        int64  `parquet:"row_count,delta"`
	LatencySchema   int32  `parquet:"latency_schema,dict"`
	LatencyOffset   int32  `parquet:"latency_offset,delta"`
	LatencySumNs    int64  `parquet:"latency_sum_ns,delta"`
	LatencyMinNs    int64  `parquet:"latency_min_ns,delta"`
	LatencyMaxNs    int64  `parquet:"latency_max_ns,delta"`
	LatencyCounts   []byte `parquet:"latency_counts"`
	State           string `parquet:"state,dict"`
	StartedClusters int32  `parquet:"started_clusters,delta"`
	Running         int32  `parquet:"running,delta"`
	Queued          int32  `parquet:"queued,delta"`
}

// asVersion1 is what an earlier program would have written in place of a segment: no load, and no credits.
func asVersion1(t *testing.T, path, runID string) []byte {
	t.Helper()
	f, err := record.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := segment.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var content bytes.Buffer
	w := parquet.NewGenericWriter[segmentRowV1](&content, parquet.Compression(&zstd.Codec{}),
		parquet.SkipPageBounds("latency_counts"), parquet.KeyValueMetadata("loadstone_segment_version", "1"),
		parquet.KeyValueMetadata("run_id", runID))
	err = s.Read(segment.Query{}, func(r *segment.Row) error {
		if r.Relation == segment.LoadSeconds {
			return nil
		}
		_, err := w.Write([]segmentRowV1{{Series: r.Series, Relation: r.Relation, Kind: r.Kind, StatementID: r.StatementID,
			InTransaction: r.InTransaction, WorkerID: r.WorkerID, ErrorClass: r.ErrorClass, ErrorCode: r.ErrorCode,
			Warmup: r.Warmup, Second: r.Second, At: r.At, Operations: r.Operations, Errors: r.Errors, RowCount: r.RowCount,
			LatencySchema: r.LatencySchema, LatencyOffset: r.LatencyOffset, LatencySumNs: r.LatencySumNs,
			LatencyMinNs: r.LatencyMinNs, LatencyMaxNs: r.LatencyMaxNs, LatencyCounts: r.LatencyCounts}})
		return err
	})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// TestARunOfAnEarlierVersionIsTakenInAgain: a server that finds the segment of a run as version 1 had it answers from
// that what it has, makes another one from the run's record, and then has the series that were lacking, and nothing
// twice.
func TestARunOfAnEarlierVersionIsTakenInAgain(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("a server three times, and a run; make soak sets " + clitest.Soak)
	}
	results := t.TempDir()
	in := startIngestCluster(t, s3test.Server{}, "--refresh-workers", "1", "--results", results)
	d, recorded := in.run()
	in.await("taken in", nil, func() bool { return in.ingestedRuns(d.RunID) && in.settledQueue() })
	sum := func(text string) (v float64, ok bool) {
		var p promAnswer
		in.netProxyTo.Do(http.MethodGet, "/prometheus/api/v1/query?"+url.Values{"query": {text}, "stats": {"all"},
			"time": {fmt.Sprint(d.EndTime.Unix() + 10)}}.Encode(), nil, &p)
		for _, l := range p.Data.Stats.Leaves {
			for _, piece := range l.Pieces {
				if strings.Contains(piece.WorkID, "live") {
					return 0, false // the roll-ups have it, not a segment
				}
			}
		}
		found := strings.Split(string(p.Data.Result), `"`)
		if len(found) < 2 {
			return 0, false
		}
		v, err := strconv.ParseFloat(found[len(found)-2], 64)
		return v, err == nil
	}
	const operations, load = `sum(last_over_time(loadstone_operations_total[1m]))`,
		`sum(max_over_time(loadstone_target_connections[1m]))`
	in.await("answered from its segment", nil, func() bool {
		v, ok := sum(operations)
		return ok && v == float64(recorded)
	})
	target, ok := sum(load)
	if !ok || target <= 0 {
		t.Fatalf("target connections of %v, %v", target, ok)
	}
	stop := func() {
		_ = in.served.Cmd.Process.Signal(syscall.SIGTERM)
		if err := in.served.Wait(t, time.Minute); err != nil {
			t.Fatal(err, in.served.Out.String())
		}
	}
	stop()
	var name string
	if err := in.results.QueryRow(t.Context(), "SELECT name FROM rollup.segments").Scan(&name); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(results, "*", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", name, found, err)
	}
	content := asVersion1(t, found[0], d.RunID)
	hash := sha256.Sum256(content)
	epoch, _ := segment.Epoch(name)
	before := segment.Name(epoch, hex.EncodeToString(hash[:]))
	path := filepath.Join(filepath.Dir(found[0]), before)
	if err := errors.Join(os.WriteFile(path, content, 0o600), os.Remove(found[0])); err != nil {
		t.Fatal(err)
	}
	if _, err := in.results.Exec(t.Context(), "UPDATE rollup.segments SET version = 1, name = $1, sha256 = $2, "+
		"size_bytes = $3, row_count = 0", before, hex.EncodeToString(hash[:]), len(content)); err != nil {
		t.Fatal(err)
	}
	// The version is in what tells whether anything has changed.
	if _, err := in.results.Exec(t.Context(), "UPDATE rollup.runs SET fingerprint = 'of version 1'"); err != nil {
		t.Fatal(err)
	}
	// Without a refresh worker nothing is taken in: what there is, is the old segment.
	in.serve(s3test.Server{}, "--refresh-workers", "0", "--results", results)
	if v, ok := sum(operations); !ok || v != float64(recorded) {
		t.Errorf("the segment of version 1 has %v operations (%v), not %d", v, ok, recorded)
	}
	if v, ok := sum(load); ok {
		t.Errorf("the segment of version 1 has target connections: %v", v)
	}
	in.await("saying why the run is taken in again", nil, func() bool {
		return strings.Contains(in.served.Out.String(), "runs of an earlier version are taken in again")
	})
	stop()
	in.serve(s3test.Server{}, "--refresh-workers", "1", "--results", results)
	in.await("taken in again", nil, func() bool {
		v, ok := sum(load)
		return ok && v == target
	})
	if v, ok := sum(operations); !ok || v != float64(recorded) {
		t.Errorf("there are %v operations (%v), not %d", v, ok, recorded)
	}
	if n := count(t, in.results, "SELECT count(*) FROM rollup.segments WHERE version = $1", segment.Version); n != 1 {
		t.Errorf("%d segments of today's version", n)
	}
	in.await("rid of the file of version 1", nil, func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, os.ErrNotExist)
	})
}
