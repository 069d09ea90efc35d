// Package segment keeps the series of a run in one Parquet file: what each second of the run, of its kinds,
// statements, errors, run workers and its warehouse came to, with mergeable histograms. The same is in the roll-ups
// of the results database; a segment can be read without that database, by anybody who is given the file.
//
// # Order
//
// A series is a relation and its labels. Rows are sorted by series and, within one, by time: who wants a series reads
// one stretch of the file. Series have numbers, from 0, in the order of their relation and labels. Row groups are
// small, and their statistics say which relations, series and times are in each.
package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// Version is that of the columns and relations. A reader refuses a higher one, and finds nothing of what came later in
// a lower one; runs are taken in again for that.
const Version = 2

// The relations, as the results database calls them.
const (
	RunSeconds       = "run_seconds"
	KindSeconds      = "kind_seconds"
	StatementSeconds = "statement_seconds"
	ErrorSeconds     = "error_seconds"
	WorkerSeconds    = "worker_seconds"
	WarehouseSeconds = "warehouse_seconds"
	LoadSeconds      = "load_seconds"
)

const (
	metaVersion = "loadstone_segment_version"
	metaRunID   = "run_id"
	// rowsPerGroup is how many rows a reader takes or leaves at a time.
	rowsPerGroup = 8192
	writeBatch   = 512
)

// Labels tell the series of a relation apart; those that a relation does not have are "" or false.
type Labels struct {
	Relation      string `parquet:"relation,dict"`
	Kind          string `parquet:"kind,dict"`
	StatementID   string `parquet:"statement_id,dict"`
	InTransaction bool   `parquet:"in_transaction"`
	WorkerID      string `parquet:"worker_id,dict"`
	ErrorClass    string `parquet:"error_class,dict"`
	ErrorCode     string `parquet:"error_code,dict"`
	Warehouse     string `parquet:"warehouse,dict"`
	WarehouseType string `parquet:"warehouse_type,dict"`
	WarehouseSize string `parquet:"warehouse_size,dict"`
	Warmup        bool   `parquet:"warmup"`
	NodeID        string `parquet:"node_id,dict"`
}

func (l *Labels) compare(o *Labels) int {
	return cmp.Or(cmp.Compare(l.Relation, o.Relation), cmp.Compare(l.Kind, o.Kind),
		cmp.Compare(l.StatementID, o.StatementID), compareBools(l.InTransaction, o.InTransaction),
		cmp.Compare(l.WorkerID, o.WorkerID), cmp.Compare(l.ErrorClass, o.ErrorClass),
		cmp.Compare(l.ErrorCode, o.ErrorCode), cmp.Compare(l.Warehouse, o.Warehouse),
		cmp.Compare(l.WarehouseType, o.WarehouseType), cmp.Compare(l.WarehouseSize, o.WarehouseSize),
		compareBools(l.Warmup, o.Warmup), cmp.Compare(l.NodeID, o.NodeID))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Row is one second of one series. Values that a relation does not have are 0.
type Row struct {
	Series int32 `parquet:"series,delta"`
	Labels
	// Second is counted from the start of the run, At is when it began; of a warehouse, when it was asked.
	Second int32 `parquet:"second,delta"`
	At     int64 `parquet:"at,timestamp(microsecond),delta"`

	Operations int64 `parquet:"operations,delta"`
	Errors     int64 `parquet:"errors,delta"`
	RowCount   int64 `parquet:"row_count,delta"`
	// A bucket i of the schema s holds what lies above 2^((i-1)/2^s) ns, up to 2^(i/2^s) ns; the first of the
	// counts is that of the bucket at the offset. Histograms of one schema are merged by adding their counts.
	LatencySchema int32  `parquet:"latency_schema,dict"`
	LatencyOffset int32  `parquet:"latency_offset,delta"`
	LatencySumNs  int64  `parquet:"latency_sum_ns,delta"`
	LatencyMinNs  int64  `parquet:"latency_min_ns,delta"`
	LatencyMaxNs  int64  `parquet:"latency_max_ns,delta"`
	LatencyCounts []byte `parquet:"latency_counts"` // see Counts

	State           string `parquet:"state,dict"`
	StartedClusters int32  `parquet:"started_clusters,delta"`
	Running         int32  `parquet:"running,delta"`
	Queued          int32  `parquet:"queued,delta"`
	// CreditsPerHour, TargetRate and Waiting are rollup.Unknown where nobody knows.
	CreditsPerHour float64 `parquet:"credits_per_hour"`

	Scheduled         int64   `parquet:"scheduled,delta"`
	Dropped           int64   `parquet:"dropped,delta"`
	Retries           int64   `parquet:"retries,delta"`
	Connections       int32   `parquet:"connections,delta"`
	TargetConnections int32   `parquet:"target_connections,delta"`
	Waiting           int32   `parquet:"waiting,delta"`
	TargetRate        float64 `parquet:"target_operations_per_second"`
	CPU               float64 `parquet:"cpu_ratio"`
	Memory            float64 `parquet:"memory_ratio"`
	HostCPU           float64 `parquet:"host_cpu_ratio"`
	HostMemory        float64 `parquet:"host_memory_ratio"`
	MemoryBytes       int64   `parquet:"memory_bytes,delta"`
}

// appendCounts writes counts as unsigned varints; a 0 is followed by how many more of them there are. Most buckets of
// a second are empty.
func appendCounts(b []byte, counts []int64) []byte {
	for i := 0; i < len(counts); i++ {
		b = binary.AppendUvarint(b, uint64(counts[i]))
		if counts[i] != 0 {
			continue
		}
		more := 0
		for i+1 < len(counts) && counts[i+1] == 0 {
			i, more = i+1, more+1
		}
		b = binary.AppendUvarint(b, uint64(more))
	}
	return b
}

// Bucket is one with a count; At is how far it is above LatencyOffset.
type Bucket struct {
	At    int32
	Count int64
}

// Buckets are those of LatencyCounts that have a count, in their order, in the memory of into.
func (r *Row) Buckets(into []Bucket) ([]Bucket, error) {
	into = into[:0]
	at := 0
	for b := r.LatencyCounts; len(b) > 0; at++ {
		count, n := uint64(b[0]), 1
		if count >= 0x80 {
			if count, n = binary.Uvarint(b); n <= 0 || count > math.MaxInt64 {
				return nil, errCounts
			}
		}
		if b = b[n:]; at >= maxBuckets {
			return nil, errCounts
		}
		if count != 0 {
			into = append(into, Bucket{int32(at), int64(count)})
			continue
		}
		more, n := binary.Uvarint(b)
		if n <= 0 || more > maxBuckets {
			return nil, errCounts
		}
		b, at = b[n:], at+int(more)
	}
	return into, nil
}

// maxBuckets is more than a histogram has.
const maxBuckets = 1 << 13

var errCounts = errors.New("the counts of a histogram cannot be read")

// pendingRow is a row before it is written: histograms are copied only then.
type pendingRow struct {
	labels Labels
	second int32
	cell   *rollup.Cell
	errors int64
	poll   *rollup.WarehouseSecond
	load   *rollup.Load
}

func pendingRows(r *rollup.Run) []pendingRow {
	s := r.Seconds
	all := make([]pendingRow, 0, len(s.Run)+len(s.Kinds)+len(s.Statements)+len(s.Workers)+len(s.Errors)+len(s.Loads)+
		len(r.Warehouse))
	for k, c := range s.Run {
		all = append(all, pendingRow{labels: Labels{Relation: RunSeconds, Warmup: k.Warmup}, second: k.Second, cell: c})
	}
	for k, c := range s.Kinds {
		all = append(all, pendingRow{labels: Labels{Relation: KindSeconds, Kind: k.Kind, Warmup: k.Warmup}, second: k.Second,
			cell: c})
	}
	for k, c := range s.Statements {
		all = append(all, pendingRow{labels: Labels{Relation: StatementSeconds, Kind: k.Kind, StatementID: k.Statement,
			InTransaction: k.InTransaction, Warmup: k.Warmup}, second: k.Second, cell: c})
	}
	for k, c := range s.Workers {
		all = append(all, pendingRow{labels: Labels{Relation: WorkerSeconds, WorkerID: k.Worker, Warmup: k.Warmup},
			second: k.Second, cell: c})
	}
	for k, n := range s.Errors {
		all = append(
			all,
			pendingRow{labels: Labels{Relation: ErrorSeconds, Kind: k.Kind, ErrorClass: k.Class, ErrorCode: k.Code,
				Warmup: k.Warmup}, second: k.Second, errors: n},
		)
	}
	for k, l := range s.Loads {
		all = append(
			all,
			pendingRow{labels: Labels{Relation: LoadSeconds, WorkerID: k.Worker, Warmup: k.Warmup, NodeID: l.Node},
				second: k.Second, load: l},
		)
	}
	polls := r.WarehouseSeconds()
	for i := range polls {
		p := &polls[i]
		all = append(all, pendingRow{labels: Labels{Relation: WarehouseSeconds, Warehouse: p.Name, WarehouseType: p.Type,
			WarehouseSize: p.Size}, second: int32(p.Second), poll: p})
	}
	slices.SortFunc(all, func(a, b pendingRow) int {
		return cmp.Or(a.labels.compare(&b.labels), cmp.Compare(a.second, b.second))
	})
	return all
}

func (l *pendingRow) row(s *rollup.Seconds, series int32, counts []byte) Row {
	row := Row{Series: series, Labels: l.labels, Second: l.second, At: s.At(l.second).UnixMicro(), Errors: l.errors,
		LatencyCounts: counts[:0]}
	if c := l.cell; c != nil {
		h := c.Latency.Data()
		row.Operations, row.Errors, row.RowCount = c.Operations, c.Errors, c.Rows
		row.LatencySchema, row.LatencyOffset = int32(h.Schema), int32(h.Offset)
		row.LatencySumNs, row.LatencyMinNs, row.LatencyMaxNs = h.Sum, h.Min, h.Max
		row.LatencyCounts = appendCounts(row.LatencyCounts, h.Counts)
	}
	if p := l.poll; p != nil {
		row.At, row.State = p.Timestamp.UnixMicro(), p.State
		row.StartedClusters, row.Running, row.Queued = int32(p.Clusters()), int32(p.Running), int32(p.Queued)
		row.CreditsPerHour = p.CreditsPerHour
	}
	if l.load != nil {
		row.setLoad(l.load)
	}
	return row
}

func (r *Row) setLoad(l *rollup.Load) {
	r.Scheduled, r.Dropped, r.Retries = l.Scheduled, l.Dropped, l.Retries
	r.Connections, r.TargetConnections, r.Waiting = int32(l.Connections), int32(l.TargetConnections), int32(l.Waiting)
	r.TargetRate, r.CPU, r.Memory, r.MemoryBytes = l.TargetRate, l.CPU, l.Memory, l.MemoryBytes
	r.HostCPU, r.HostMemory = l.HostCPU, l.HostMemory
}

// Load is what a row of LoadSeconds says.
func (r *Row) Load() rollup.Load {
	return rollup.Load{Node: r.NodeID, Counts: rollup.Counts{Scheduled: r.Scheduled, Dropped: r.Dropped,
		Retries: r.Retries}, Connections: int(r.Connections), TargetConnections: int(r.TargetConnections),
		Waiting: int(r.Waiting), TargetRate: r.TargetRate, CPU: r.CPU, Memory: r.Memory, MemoryBytes: r.MemoryBytes,
		HostCPU: r.HostCPU, HostMemory: r.HostMemory}
}

// Encode writes the segment of a run and returns how many rows it has. The same seconds give the same bytes.
func Encode(r *rollup.Run, to io.Writer) (rows int64, err error) {
	w := parquet.NewGenericWriter[Row](to, parquet.CreatedBy("loadstone", "", ""), parquet.Compression(&zstd.Codec{}),
		parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.SkipPageBounds("latency_counts"),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("series"), parquet.Ascending("second"))),
		parquet.KeyValueMetadata(metaVersion, strconv.Itoa(Version)), parquet.KeyValueMetadata(metaRunID, r.Run.RunID))
	series, buffer := int32(-1), make([]Row, 0, writeBatch)
	var last Labels
	for _, l := range pendingRows(r) {
		if series < 0 || l.labels != last {
			series, last = series+1, l.labels
		}
		n := len(buffer)
		buffer = append(buffer, l.row(r.Seconds, series, buffer[: n+1 : cap(buffer)][n].LatencyCounts))
		if len(buffer) < cap(buffer) {
			continue
		}
		if _, err := w.Write(buffer); err != nil {
			return 0, fmt.Errorf("writing a segment: %w", err)
		}
		rows, buffer = rows+int64(len(buffer)), buffer[:0]
	}
	if _, err := w.Write(buffer); err != nil {
		return 0, fmt.Errorf("writing a segment: %w", err)
	}
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("writing a segment: %w", err)
	}
	return rows + int64(len(buffer)), nil
}

// Bytes is Encode into memory.
func Bytes(r *rollup.Run) (content []byte, rows int64, err error) {
	var b bytes.Buffer
	rows, err = Encode(r, &b)
	return b.Bytes(), rows, err
}

var segmentName = regexp.MustCompile(`^segment-(\d{19})-[0-9a-f]{16}\.parquet$`)

// Name is what a segment is called: by the epoch of the claim that wrote it, and by its content.
// Epochs rise, so that whoever removes what earlier ones wrote never meets a later one.
func Name(epoch int64, sha256 string) string {
	return fmt.Sprintf("segment-%019d-%.16s.parquet", epoch, sha256)
}

// Epoch is that of a segment's name, ok false for another file.
func Epoch(name string) (epoch int64, ok bool) {
	m := segmentName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	epoch, err := strconv.ParseInt(m[1], 10, 64)
	return epoch, err == nil
}
