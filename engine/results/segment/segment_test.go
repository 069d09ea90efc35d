package segment_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123_456_789, time.UTC)

// run has so many seconds of two kinds, six statements and three run workers, and some errors.
func run(seconds int) *rollup.Run {
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP", "INSERT"}},
		Statement: record.Texts{Values: []string{"a", "b", "c", "ä", "", "é\x00"}},
		Worker:    record.Texts{Values: []string{"w1", "w2", "w3"}},
		Class:     record.Texts{Values: []string{"TIMEOUT"}}, Code: record.Texts{Values: []string{"57014", "08006"}}}
	for i := range seconds * 40 {
		b.DueNs = append(b.DueNs, noon.Add(time.Duration(i)*25*time.Millisecond).UnixNano())
		b.ElapsedNs = append(b.ElapsedNs, int64(1e5*math.Pow(1.3, float64(i%31))))
		b.Rows = append(b.Rows, int32(i%7))
		b.Position = append(b.Position, int32(i%5/4))
		b.Warmup = append(b.Warmup, i < seconds)
		b.Success = append(b.Success, i%9 != 0)
		b.Kind.Index = append(b.Kind.Index, int32(i%2))
		b.Statement.Index = append(b.Statement.Index, int32(i%6))
		b.Worker.Index = append(b.Worker.Index, int32(i%3))
		b.Class.Index = append(b.Class.Index, int32(i%2)-1)
		b.Code.Index = append(b.Code.Index, int32(i%3)-1)
	}
	r := &rollup.Run{Run: engine.Run{RunID: "r-1", StartTime: engine.At(noon)}, Seconds: rollup.New(noon)}
	r.Seconds.Add(b)
	for i := range seconds {
		r.Seconds.Report(int32(i), &engine.WorkerSnapshot{WorkerID: fmt.Sprint("w", i%2), Phase: engine.PhaseMeasurement,
			NodeID: "n1", Scheduled: 9, Dropped: int64(i % 5), Retries: 1, ActiveConnections: i % 7, TargetConnections: 8,
			Waiting: i % 3, Resources: engine.Resources{CPUPercent: 25, MemoryPercent: 50, MemoryBytes: 1 << 30,
				HostCPUPercent: 75, HostMemoryPercent: 12.5}}, nil)
	}
	r.PerHour = func(w engine.Warehouse) (float64, bool) { return float64(w.Clusters()), w.Running != 1 }
	for i := range 3 {
		r.Warehouse = append(r.Warehouse, engine.WarehousePoint{Timestamp: engine.At(noon.Add(time.Duration(i) * 5e9)),
			ElapsedSeconds: float64(5 * i), Warehouse: engine.Warehouse{Name: "W", State: "STARTED", Type: "STANDARD",
				Size: "XSMALL", StartedClusters: new(1 + i), Running: i, Queued: 2 * i}})
	}
	return r
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func open(t *testing.T, content []byte) *segment.File {
	t.Helper()
	s, err := segment.Open(memory{bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encode(t *testing.T, r *rollup.Run) ([]byte, int64) {
	t.Helper()
	content, rows, err := segment.Bytes(r)
	if err != nil {
		t.Fatal(err)
	}
	return content, rows
}

func read(t *testing.T, s *segment.File, q segment.Query) (rows []segment.Row) {
	t.Helper()
	if err := s.Read(q, func(r *segment.Row) error {
		row := *r
		row.LatencyCounts = slices.Clone(row.LatencyCounts)
		rows = append(rows, row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestASegmentHoldsTheSecondsOfARun(t *testing.T) {
	r := run(700)
	content, count := encode(t, r)
	s := open(t, content)
	rows := read(t, s, segment.Query{})
	sec := r.Seconds
	want := len(sec.Run) + len(sec.Kinds) + len(sec.Statements) + len(sec.Workers) + len(sec.Errors) + len(sec.Loads) + 3
	if len(rows) != want || s.Rows() != count || count != int64(want) || s.RunID() != "r-1" || s.RowGroups() < 2 {
		t.Fatalf("%d rows of %d, said to be %d, in %d groups, of %q", len(rows), want, count, s.RowGroups(), s.RunID())
	}
	seen := map[segment.Labels]int32{}
	for i, row := range rows {
		if i > 0 {
			before := rows[i-1]
			if row.Series < before.Series || row.Series > before.Series+1 ||
				row.Series == before.Series && (row.Second <= before.Second || row.Labels != before.Labels) {
				t.Fatalf("row %d: %+v after %+v", i, row, before)
			}
		}
		if number, ok := seen[row.Labels]; ok && number != row.Series {
			t.Fatalf("%+v has the numbers %d and %d", row.Labels, number, row.Series)
		}
		seen[row.Labels] = row.Series
		check(t, r, row)
	}
}

func bucketsOf(t *testing.T, r *segment.Row) []segment.Bucket {
	t.Helper()
	buckets, err := r.Buckets(nil)
	if err != nil {
		t.Fatal(err)
	}
	return buckets
}

// filled are the counts that are not 0.
func filled(counts []int64) (all []segment.Bucket) {
	for i, c := range counts {
		if c != 0 {
			all = append(all, segment.Bucket{At: int32(i), Count: c})
		}
	}
	return all
}

// TestCountsThatAreNone are refused, however they are damaged, and nothing large is allocated for them.
func TestCountsThatAreNone(t *testing.T) {
	for _, b := range [][]byte{{0}, {0x80}, {1, 0, 0x80}, {0, 0xff, 0xff, 0xff, 0xff, 0x7f},
		bytes.Repeat([]byte{0xff}, 10), bytes.Repeat([]byte{0, 0x7f}, 100)} {
		if buckets, err := (&segment.Row{LatencyCounts: b}).Buckets(nil); err == nil {
			t.Errorf("%x: %d buckets", b, len(buckets))
		}
	}
}

// check compares a row with the cell that it is of.
func check(t *testing.T, r *rollup.Run, row segment.Row) {
	t.Helper()
	at := rollup.Moment{Second: row.Second, Warmup: row.Warmup}
	var c *rollup.Cell
	switch row.Relation {
	case segment.RunSeconds:
		c = r.Seconds.Run[at]
	case segment.KindSeconds:
		c = r.Seconds.Kinds[rollup.KindKey{Moment: at, Kind: row.Kind}]
	case segment.StatementSeconds:
		c = r.Seconds.Statements[rollup.StatementKey{Moment: at, Statement: row.StatementID, Kind: row.Kind,
			InTransaction: row.InTransaction}]
	case segment.WorkerSeconds:
		c = r.Seconds.Workers[rollup.WorkerKey{Moment: at, Worker: row.WorkerID}]
	case segment.ErrorSeconds:
		if n := r.Seconds.Errors[rollup.ErrorKey{Moment: at, Class: row.ErrorClass, Code: row.ErrorCode,
			Kind: row.Kind}]; n != row.Errors || n == 0 || len(bucketsOf(t, &row)) != 0 {
			t.Fatalf("%+v, want %d errors", row, n)
		}
		return
	case segment.WarehouseSeconds:
		p := r.Warehouse[row.Second/5]
		if row.Warehouse != p.Name || row.State != p.State || row.WarehouseType != p.Type || row.WarehouseSize != p.Size ||
			int(row.StartedClusters) != p.Clusters() || int(row.Running) != p.Running || int(row.Queued) != p.Queued ||
			row.At != p.Timestamp.UnixMicro() {
			t.Fatalf("%+v, want %+v", row, p)
		}
		if want := []float64{1, rollup.Unknown, 3}[row.Second/5]; row.CreditsPerHour != want {
			t.Fatalf("%v credits an hour, want %v", row.CreditsPerHour, want)
		}
		return
	case segment.LoadSeconds:
		if l := r.Seconds.Loads[rollup.WorkerKey{Moment: at, Worker: row.WorkerID}]; l == nil || row.Load() != *l {
			t.Fatalf("%+v, want %+v", row, l)
		}
		return
	}
	if c == nil {
		t.Fatalf("%+v is of nothing", row)
	}
	h := c.Latency.Data()
	if row.Operations != c.Operations || row.Errors != c.Errors || row.RowCount != c.Rows ||
		int(row.LatencySchema) != h.Schema || int(row.LatencyOffset) != h.Offset || row.LatencySumNs != h.Sum ||
		row.LatencyMinNs != h.Min || row.LatencyMaxNs != h.Max || !slices.Equal(bucketsOf(t, &row), filled(h.Counts)) ||
		row.At != r.Seconds.At(row.Second).UnixMicro() {
		t.Fatalf("%+v, want %+v, %+v", row, c, h)
	}
}

// TestTheSameSecondsGiveTheSameBytes: a segment is named by its content.
func TestTheSameSecondsGiveTheSameBytes(t *testing.T) {
	first, _ := encode(t, run(20))
	for range 5 {
		if again, _ := encode(t, run(20)); !bytes.Equal(first, again) {
			t.Fatal("the bytes differ")
		}
	}
	name := segment.Name(77, fmt.Sprintf("%x", sha256.Sum256(first)))
	if epoch, ok := segment.Epoch(name); !ok || epoch != 77 {
		t.Errorf("%s is of epoch %d, %v", name, epoch, ok)
	}
	for _, other := range []string{"executions-w-00001.parquet", "segment-1-abc.parquet", name + ".parquet", ""} {
		if _, ok := segment.Epoch(other); ok {
			t.Errorf("%s is a segment", other)
		}
	}
}

// TestStatisticsSayWhatToRead: only row groups that can hold what is asked for are read, and nothing of it is missed.
func TestStatisticsSayWhatToRead(t *testing.T) {
	r := run(1500)
	content, _ := encode(t, r)
	s := open(t, content)
	all := read(t, s, segment.Query{})
	at := func(second int32) int64 { return r.Seconds.At(second).UnixMicro() }
	for i, q := range []segment.Query{{Relations: []string{segment.RunSeconds}}, {From: at(100), To: at(101)},
		{Relations: []string{segment.WorkerSeconds, segment.ErrorSeconds}, From: at(1400)}, {To: at(0)}, {},
		{Relations: []string{"a relation"}}, {From: at(1 << 20)}} {
		var want []segment.Row
		for _, row := range all {
			if (len(q.Relations) == 0 || slices.Contains(q.Relations, row.Relation)) && row.At >= q.From &&
				(q.To == 0 || row.At <= q.To) {
				want = append(want, row)
			}
		}
		if got := read(t, s, q); !reflect.DeepEqual(got, want) {
			t.Errorf("query %d: %d rows, want %d", i, len(got), len(want))
		}
		if len(want) == 0 && len(s.Groups(q)) != 0 {
			t.Errorf("query %d: %d groups are read for nothing", i, len(s.Groups(q)))
		}
	}
	if n, of := len(s.Groups(segment.Query{Relations: []string{segment.RunSeconds}})), s.RowGroups(); of < 4 || n > of/2 {
		t.Errorf("%d of %d groups are read for the seconds of the run", n, of)
	}
}

// TestRowsAreReadHoweverTheyAreDivided into pages and row groups, with and without dictionaries.
func TestRowsAreReadHoweverTheyAreDivided(t *testing.T) {
	content, _ := encode(t, run(300))
	want := read(t, open(t, content), segment.Query{})
	options := []parquet.WriterOption{parquet.KeyValueMetadata("loadstone_segment_version", fmt.Sprint(segment.Version)),
		parquet.KeyValueMetadata("run_id", "r-1")}
	for _, rows := range []int64{70, 1500, 1 << 20} {
		for _, page := range []int{300, 4000} {
			with := append(slices.Clone(options), parquet.PageBufferSize(page), parquet.MaxRowsPerRowGroup(rows))
			b := written(t, want, with)
			for _, without := range []bool{false, true} {
				got := read(t, open(t, b), segment.Query{NoExtremes: without})
				if len(got) != len(want) {
					t.Fatalf("%d rows and %d bytes: %d rows, not %d", rows, page, len(got), len(want))
				}
				for i := range got {
					row := want[i]
					if without {
						row.LatencyMinNs, row.LatencyMaxNs = 0, 0
					}
					if !reflect.DeepEqual(got[i], row) {
						t.Fatalf("%d rows and %d bytes: row %d is %+v\nnot %+v", rows, page, i, got[i], row)
					}
				}
			}
		}
	}
	// As a version that had fewer columns, by a writer without dictionaries.
	type plain struct {
		Series        int32  `parquet:"series"`
		Relation      string `parquet:"relation"`
		Kind          string `parquet:"kind"`
		Second        int32  `parquet:"second"`
		At            int64  `parquet:"at"`
		LatencyCounts []byte `parquet:"latency_counts"`
		State         string `parquet:"state"`
	}
	plains := make([]plain, len(want))
	for i, r := range want {
		plains[i] = plain{r.Series, r.Relation, r.Kind, r.Second, r.At, r.LatencyCounts, r.State}
	}
	got := read(t, open(t, written(t, plains, []parquet.WriterOption{parquet.PageBufferSize(300),
		parquet.KeyValueMetadata("loadstone_segment_version", "1")})), segment.Query{})
	for i, r := range got {
		if now := (plain{r.Series, r.Relation, r.Kind, r.Second, r.At, r.LatencyCounts, r.State}); len(got) != len(want) ||
			!reflect.DeepEqual(now, plains[i]) || r.Operations != 0 || r.CreditsPerHour != rollup.Unknown {
			t.Fatalf("%d rows, row %d is %+v\nnot %+v", len(got), i, r, plains[i])
		}
	}
}

func written[T any](t *testing.T, rows []T, options []parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	// One call of Write makes one page of what it is given.
	for part := range slices.Chunk(rows, 40) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatIsNoSegmentIsRefused, and what is damaged is an error and no panic.
func TestWhatIsNoSegmentIsRefused(t *testing.T) {
	content, _ := encode(t, run(30))
	version := "loadstone_segment_version\x18\x01"
	newer := bytes.Replace(content, fmt.Appendf(nil, "%s%d", version, segment.Version), []byte(version+"9"), 1)
	for name, b := range map[string][]byte{"nothing": nil, "text": []byte(strings.Repeat("PAR1", 30)),
		"cut off": content[:len(content)-9], "newer": newer} {
		if s, err := segment.Open(memory{bytes.NewReader(b)}); err == nil {
			t.Errorf("%s: a segment of %d rows", name, s.Rows())
		} else if name == "newer" && !strings.Contains(err.Error(), "newer version") {
			t.Errorf("newer: %v", err)
		}
	}
	for i := 0; i < len(content); i += len(content)/97 + 1 {
		b := bytes.Clone(content)
		b[i] ^= 0x55
		if s, err := segment.Open(memory{bytes.NewReader(b)}); err == nil {
			_ = s.Read(segment.Query{}, func(*segment.Row) error { return nil })
		}
	}
}

func TestARunWithoutExecutionsHasAnEmptySegment(t *testing.T) {
	content, rows := encode(t, &rollup.Run{Run: engine.Run{RunID: "r"}, Seconds: rollup.New(noon)})
	if s := open(t, content); rows != 0 || s.Rows() != 0 || len(read(t, s, segment.Query{})) != 0 {
		t.Errorf("%d rows", rows)
	}
}

// TestAnEarlierVersionIsRead: what it did not have is unknown, or 0.
func TestAnEarlierVersionIsRead(t *testing.T) {
	type row struct {
		Series          int32  `parquet:"series,delta"`
		Relation        string `parquet:"relation,dict"`
		Warehouse       string `parquet:"warehouse,dict"`
		Second          int32  `parquet:"second,delta"`
		At              int64  `parquet:"at,timestamp(microsecond),delta"`
		LatencyCounts   []byte `parquet:"latency_counts"`
		StartedClusters int32  `parquet:"started_clusters,delta"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.KeyValueMetadata("loadstone_segment_version", "1"),
		parquet.KeyValueMetadata("run_id", "r-1"))
	if _, err := w.Write([]row{{Relation: segment.WarehouseSeconds, Warehouse: "W", Second: 5, At: noon.UnixMicro(),
		StartedClusters: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows := read(t, open(t, b.Bytes()), segment.Query{})
	if len(rows) != 1 || rows[0].Warehouse != "W" || rows[0].StartedClusters != 2 ||
		rows[0].CreditsPerHour != rollup.Unknown || rows[0].NodeID != "" || rows[0].Connections != 0 {
		t.Errorf("%+v", rows)
	}
}

// TestASegmentOfVersion1: testdata/version1.parquet was written by the writer of version 1 (commit 95ec302b), of the
// same run. Its rows are those of today, but for what there was no relation or column for.
func TestASegmentOfVersion1(t *testing.T) {
	old, err := os.ReadFile("testdata/version1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	content, _ := encode(t, run(8))
	read := func(content []byte) (all []segment.Row) {
		if err := open(t, content).Read(segment.Query{}, func(r *segment.Row) error {
			row := *r
			row.LatencyCounts = slices.Clone(r.LatencyCounts)
			all = append(all, row)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var want []segment.Row
	for _, row := range read(content) {
		if row.Relation == segment.LoadSeconds {
			continue
		}
		row.CreditsPerHour = rollup.Unknown
		want = append(want, row)
	}
	got := read(old)
	if len(got) != len(want) || len(got) < 100 {
		t.Fatalf("%d rows, not %d", len(got), len(want))
	}
	for i := range got {
		want[i].Series = got[i].Series // there are more of them today
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d is %+v\nnot %+v", i, got[i], want[i])
		}
	}
}
