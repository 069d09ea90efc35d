package derived_test

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// TestASegmentIsTheRollUps: what is read from the segment of a run is what the roll-ups in Postgres hold, relation by
// relation and exactly; and the run names its segment from the transaction on that brought them in.
func TestASegmentIsTheRollUps(t *testing.T) {
	d, owner, reader := open(t)
	r, _ := oneRun("a", 3000)
	content, rows, err := segment.Bytes(&r)
	if err != nil {
		t.Fatal(err)
	}
	r.Segment = rollup.Segment{Name: segment.Name(1, "0123456789abcdef0123"), SHA256: "sum",
		SizeBytes: int64(len(content)),
		Rows:      rows}
	put(t, d, r, 1)
	if print, name, err := d.Known(t.Context(), "a"); err != nil || print != "first" || name != r.Segment.Name {
		t.Errorf("fingerprint %q, segment %q, %v", print, name, err)
	}
	if old, err := d.Outdated(t.Context()); err != nil || len(old) > 0 {
		t.Errorf("of an earlier version: %v, %v", old, err)
	}
	if _, err := owner.Exec(t.Context(), "UPDATE rollup.segments SET version = version - 1"); err != nil {
		t.Fatal(err)
	}
	if old, err := d.Outdated(t.Context()); err != nil || !slices.Equal(old, []string{"a"}) {
		t.Errorf("of an earlier version: %v, %v", old, err)
	}
	s, err := segment.Open(memory{bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	fromFile := map[string][]string{}
	if err := s.Read(segment.Query{}, func(row *segment.Row) error {
		fromFile[row.Relation] = append(fromFile[row.Relation], rowOf(row))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	const moment, counts = `second, extract(epoch FROM at) * 1000000, `, `, operations, errors, row_count, latency::text)`
	total := 0
	for relation, columns := range map[string]string{
		segment.RunSeconds:       moment + "warmup" + counts,
		segment.KindSeconds:      moment + "warmup, kind" + counts,
		segment.StatementSeconds: moment + "warmup, statement_id, kind, in_transaction" + counts,
		segment.WorkerSeconds:    moment + "warmup, worker_id" + counts,
		segment.ErrorSeconds:     moment + "warmup, error_class, error_code, kind, errors)",
		segment.WarehouseSeconds: moment +
			"warehouse, state, warehouse_type, warehouse_size, coalesce(started_clusters, 1), running, queued, credits_per_hour)",
		segment.LoadSeconds: moment + `warmup, worker_id, node_id, scheduled, dropped, retries, connections, target_connections,
			coalesce(waiting, -1), coalesce(target_operations_per_second, -1), cpu_ratio, memory_ratio, memory_bytes, host_cpu_ratio,
			host_memory_ratio)`,
	} {
		list, err := owner.Query(t.Context(), "SELECT concat_ws('|', "+
			strings.Replace(columns, "* 1000000", "* 1000000::bigint", 1)+
			" FROM rollup."+relation+" WHERE run_id = 'a'")
		if err != nil {
			t.Fatal(err)
		}
		want, err := pgx.CollectRows(list, pgx.RowTo[string])
		if err != nil {
			t.Fatal(relation, err)
		}
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], ".000000", "")
		}
		sort.Strings(want)
		got := fromFile[relation]
		sort.Strings(got)
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %d rows %.300q\nwant %d %.300q", relation, len(got), got, len(want), want)
		}
		total += len(want)
	}
	if int64(total) != rows {
		t.Errorf("%d rows in all, %d in the segment", total, rows)
	}
	if n := count(t, reader, "SELECT row_count FROM segments WHERE run_id = 'a'"); n != rows {
		t.Errorf("readers see a segment of %d rows", n)
	}
	gone := claim("runs", "a", 2)
	if err := d.Begin(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := d.DropRun(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if n := count(t, owner, "SELECT count(*) FROM rollup.segments"); n != 0 {
		t.Errorf("%d segments of a run that is gone", n)
	}
}

// rowOf writes a row as the statement of the test does.
func rowOf(r *segment.Row) string {
	flag := map[bool]string{true: "t", false: "f"}
	parts := []any{r.Second, r.At}
	if r.Relation == segment.WarehouseSeconds {
		return join(append(parts, r.Warehouse, r.State, r.WarehouseType, r.WarehouseSize, r.StartedClusters, r.Running,
			r.Queued, r.CreditsPerHour))
	}
	parts = append(parts, flag[r.Warmup])
	switch r.Relation {
	case segment.KindSeconds:
		parts = append(parts, r.Kind)
	case segment.StatementSeconds:
		parts = append(parts, r.StatementID, r.Kind, flag[r.InTransaction])
	case segment.WorkerSeconds:
		parts = append(parts, r.WorkerID)
	case segment.LoadSeconds:
		return join(append(parts, r.WorkerID, r.NodeID, r.Scheduled, r.Dropped, r.Retries, r.Connections,
			r.TargetConnections, r.Waiting, r.TargetRate, r.CPU, r.Memory, r.MemoryBytes, r.HostCPU, r.HostMemory))
	case segment.ErrorSeconds:
		return join(append(parts, r.ErrorClass, r.ErrorCode, r.Kind, r.Errors))
	}
	packed := []any{r.LatencySchema, r.LatencyOffset, r.LatencySumNs, r.LatencyMinNs, r.LatencyMaxNs}
	buckets, err := r.Buckets(nil)
	if err != nil {
		return err.Error()
	}
	for _, b := range buckets {
		for int(b.At) > len(packed)-5 {
			packed = append(packed, 0)
		}
		packed = append(packed, b.Count)
	}
	texts := make([]string, len(packed))
	for i, n := range packed {
		texts[i] = fmt.Sprint(n)
	}
	return join(append(parts, r.Operations, r.Errors, r.RowCount, "{"+strings.Join(texts, ",")+"}"))
}

func join(parts []any) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = fmt.Sprint(p)
	}
	return strings.Join(texts, "|")
}
