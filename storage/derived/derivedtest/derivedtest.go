// Package derivedtest computes what the bundled tables must hold from the single executions of runs, in plain Go and by
// none of the code that makes the tables, and says where a results database differs.
//
// Counts, times and exact figures are equal to the last digit; percentiles that come from histograms are within 0.55 %
// of PERCENTILE_CONT over the executions, which is half a bucket.
package derivedtest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
)

// Execution is a row of a run's record, as whoever reads the Parquet file finds it.
type Execution struct {
	DueAt     int64   `parquet:"due_at"`
	ElapsedMs float64 `parquet:"app_elapsed_ms"`
	Rows      int32   `parquet:"rows"`
	Position  int32   `parquet:"position"`
	Warmup    bool    `parquet:"warmup"`
	Success   bool    `parquet:"success"`
	Kind      string  `parquet:"kind"`
	Statement string  `parquet:"statement_id"`
	Worker    string  `parquet:"worker_id"`
	Class     *string `parquet:"error_class,optional"`
	Code      *string `parquet:"error_code,optional"`
	// Connection, Seq and QueryID are looked at where single executions were taken in.
	Connection int32   `parquet:"connection_id"`
	Seq        int32   `parquet:"seq"`
	QueryID    *string `parquet:"server_query_id,optional"`
}

// Run is a run with all that its rows are made of.
type Run struct {
	engine.Run
	Adapter    string
	Summary    *engine.Summary
	Warehouse  []engine.WarehousePoint
	Executions []Execution
	// Single: its single executions were taken in.
	Single bool
}

// percentileTolerance is how far a percentile of a histogram may be from the exact one.
const percentileTolerance = 0.0055

// value is what a cell must hold.
type value struct {
	is any
	// near: a number that need not be the same to the last digit but within so much of it.
	near float64
}

func exact(is any) value { return value{is: is} }

// rounded is a number that was computed in another order.
func rounded(f float64) value { return value{f, 1e-9} }

// table is what a table must hold: rows by their key.
type table struct {
	name string
	keys []string
	rows map[string]map[string]value
}

func newTable(name string, keys ...string) *table {
	return &table{name: name, keys: keys, rows: map[string]map[string]value{}}
}

// key is how rows are told from each other.
func key(values ...any) string {
	var b strings.Builder
	for _, v := range values {
		_, _ = fmt.Fprintf(&b, "%v|", v)
	}
	return b.String()
}

// Differences are those between the bundled tables and what they must hold of all the runs that are there, in
// sentences; the first few of each table.
func Differences(ctx context.Context, conn *pgx.Conn, runs []Run) (all []string, err error) {
	for _, t := range expected(runs) {
		found, err := t.differences(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", t.name, err)
		}
		if len(found) > 4 {
			found = append(found[:4], fmt.Sprintf("%s: and %d more", t.name, len(found)-4))
		}
		all = append(all, found...)
	}
	return all, nil
}

// expected are the tables of the runs.
func expected(runs []Run) []*table {
	list := []*table{summaries(runs), costs(runs), drift(runs)}
	list = append(list, seconds(runs)...)
	return append(list, statements(runs), failures(runs), warehouses(runs), slowest(runs))
}

func (t *table) differences(ctx context.Context, conn *pgx.Conn) (found []string, err error) {
	rows, err := conn.Query(ctx, "SELECT * FROM tables."+pgx.Identifier{t.name}.Sanitize())
	if err != nil {
		return nil, err
	}
	maps, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, row := range maps {
		keys := make([]any, len(t.keys))
		for i, name := range t.keys {
			keys[i] = row[name]
		}
		k := key(keys...)
		want, known := t.rows[k]
		if !known || seen[k] {
			found = append(found, fmt.Sprintf("%s has the row %s, which is not expected (twice: %v)", t.name, k, seen[k]))
			continue
		}
		seen[k] = true
		found = append(found, t.compare(k, want, row)...)
	}
	for k := range t.rows {
		if !seen[k] {
			found = append(found, fmt.Sprintf("%s lacks the row %s", t.name, k))
		}
	}
	slices.Sort(found)
	return found, nil
}

// compare says what differs in a row, columns of which nothing is known by hand too.
func (t *table) compare(k string, want map[string]value, row map[string]any) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(row)) {
		w, known := want[name]
		if !known && !slices.Contains(t.keys, name) {
			found = append(found, fmt.Sprintf("%s has a column %s, which nobody has computed", t.name, name))
		}
		if known && !w.holds(row[name]) {
			found = append(found, fmt.Sprintf("%s: %s of %s is %v, not %v", t.name, name, k, row[name], w.is))
		}
	}
	for name := range want {
		if _, there := row[name]; !there {
			found = append(found, fmt.Sprintf("%s has no column %s", t.name, name))
		}
	}
	return found
}

// holds compares what a cell has.
func (v value) holds(got any) bool {
	if v.is == nil || got == nil {
		return v.is == nil && got == nil
	}
	if at, is := v.is.(time.Time); is {
		is, ok := got.(time.Time)
		return ok && is.Sub(at).Abs() < time.Microsecond
	}
	want, ok := number(v.is)
	if !ok {
		return fmt.Sprint(v.is) == fmt.Sprint(got)
	}
	is, ok := number(got)
	return ok && math.Abs(is-want) <= v.near*math.Abs(want)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// stamp is an instant as a column has it: null when there is none.
func stamp(t engine.Time) value {
	if t.IsZero() {
		return exact(nil)
	}
	return exact(t.Time)
}
