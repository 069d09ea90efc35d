package derivedtest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// endSecond is the second of the run in which an execution ended, counted from its start.
func endSecond(r Run, e Execution) int64 {
	return max(e.DueAt+elapsed(e)-r.StartTime.UnixNano(), 0) / int64(time.Second)
}

func elapsed(e Execution) int64 { return int64(math.Round(e.ElapsedMs * 1e6)) }

// group are executions that a row is about.
type group struct {
	keys           []any
	ms             []float64
	errors, rows   int64
	rated          int64
	second, latest int64
	run            Run
}

// grouped puts executions together whose keys are the same; nil leaves one out.
func grouped(runs []Run, of func(Run, Execution) []any) map[string]*group {
	groups := map[string]*group{}
	for _, r := range runs {
		for _, e := range r.Executions {
			keys := of(r, e)
			if keys == nil {
				continue
			}
			k, second := key(keys...), endSecond(r, e)
			g := groups[k]
			if g == nil {
				g = &group{keys: keys, second: second, run: r}
				groups[k] = g
			}
			g.second, g.latest = min(g.second, second), max(g.latest, second)
			g.ms = append(g.ms, float64(elapsed(e))/1e6)
			g.rows += int64(e.Rows)
			if rated(r, e) {
				g.rated++
			}
			if !e.Success {
				g.errors++
			}
		}
	}
	for _, g := range groups {
		slices.Sort(g.ms)
	}
	return groups
}

// figures are those that every group has.
func (g *group) figures() map[string]value {
	row := map[string]value{"operations": exact(len(g.ms)), "errors": exact(g.errors), "row_count": exact(g.rows),
		"rated":  exact(nil),
		"max_ms": rounded(g.ms[len(g.ms)-1])}
	for name, q := range map[string]float64{"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99} {
		row[name] = value{percentile(g.ms, q), percentileTolerance}
	}
	if measured(g.run) {
		row["rated"] = exact(g.rated)
	}
	return row
}

func measured(r Run) bool {
	return r.Summary != nil && !r.Summary.MeasuredTo.IsZero() && !r.Summary.RecordPartial
}

// rated reports whether an execution counts in the rates of its run: it ended in the measurement.
func rated(r Run, e Execution) bool {
	if !measured(r) {
		return false
	}
	ended := e.DueAt + elapsed(e)
	return ended <= r.Summary.MeasuredTo.UnixNano() && (!e.Warmup || ended > r.Summary.MeasuredFrom.UnixNano())
}

// percentile is PERCENTILE_CONT of sorted values.
func percentile(sorted []float64, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	low := sorted[int(math.Floor(rank))]
	return low + (sorted[int(math.Ceil(rank))]-low)*(rank-math.Floor(rank))
}

// seconds are the tables of seconds: statements inside transactions are no operations.
func seconds(runs []Run) (list []*table) {
	for _, kind := range []struct {
		name string
		more []string
		of   func(Execution) []any
	}{
		{"run_seconds", nil, func(Execution) []any { return nil }},
		{"kind_seconds", []string{"kind"}, func(e Execution) []any { return []any{e.Kind} }},
		{"node_seconds", []string{"worker_id"}, func(e Execution) []any { return []any{e.Worker} }},
	} {
		t := newTable(kind.name, append([]string{"run_id", "second", "warmup"}, kind.more...)...)
		groups := grouped(runs, func(r Run, e Execution) []any {
			if e.Position != 0 {
				return nil
			}
			return append([]any{r.RunID, endSecond(r, e), e.Warmup}, kind.of(e)...)
		})
		for k, g := range groups {
			t.rows[k] = g.figures()
			t.rows[k]["at"] = exact(g.run.StartTime.Add(time.Duration(g.second) * time.Second))
		}
		list = append(list, t)
	}
	return list
}

// slowest are the hundred slowest operations of each measurement, where single executions were taken in.
func slowest(runs []Run) *table {
	t := newTable("slow_executions", "run_id", "place")
	for _, r := range runs {
		if !r.Single {
			continue
		}
		list := slices.DeleteFunc(slices.Clone(r.Executions), func(e Execution) bool { return e.Warmup || e.Position != 0 })
		slices.SortFunc(list, func(a, b Execution) int {
			return cmp.Or(cmp.Compare(b.ElapsedMs, a.ElapsedMs), strings.Compare(a.Worker, b.Worker),
				cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Seq, b.Seq))
		})
		for i, e := range list[:min(100, len(list))] {
			t.rows[key(r.RunID, i+1)] = map[string]value{"app_elapsed_ms": exact(e.ElapsedMs),
				"due_at": exact(time.Unix(0, e.DueAt)), "kind": exact(e.Kind),
				"statement_id": exact(e.Statement), "worker_id": exact(e.Worker), "connection_id": exact(e.Connection),
				"seq": exact(e.Seq), "row_count": exact(e.Rows), "success": exact(e.Success), "error_class": text(e.Class),
				"server_query_id": text(e.QueryID)}
		}
	}
	return t
}

// text is a column that may have none.
func text(s *string) value {
	if s == nil {
		return exact(nil)
	}
	return exact(*s)
}

// statements are those of the measurement, inside transactions too.
func statements(runs []Run) *table {
	t := newTable("statement_stats", "run_id", "statement_id", "kind", "in_transaction")
	carried := grouped(runs, func(r Run, e Execution) []any {
		if !e.Warmup {
			return nil
		}
		return []any{r.RunID, e.Statement, e.Kind, e.Position != 0}
	})
	for k, g := range grouped(runs, func(r Run, e Execution) []any {
		if e.Warmup {
			return nil
		}
		return []any{r.RunID, e.Statement, e.Kind, e.Position != 0}
	}) {
		if c := carried[k]; c != nil {
			g.rated += c.rated
		}
		t.rows[k] = g.figures()
		var sum float64
		for _, ms := range g.ms {
			sum += ms
		}
		t.rows[k]["avg_ms"] = rounded(sum / float64(len(g.ms)))
	}
	return t
}

// failures are the operations of the measurement that failed.
func failures(runs []Run) *table {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	t := newTable("error_stats", "run_id", "error_class", "error_code", "kind")
	for k, g := range grouped(runs, func(r Run, e Execution) []any {
		if e.Warmup || e.Success || e.Position != 0 {
			return nil
		}
		return []any{r.RunID, text(e.Class), text(e.Code), e.Kind}
	}) {
		t.rows[k] = map[string]value{"errors": exact(len(g.ms)), "first_second": exact(g.second),
			"last_second": exact(g.latest)}
	}
	return t
}

// warehouses are the slots of five seconds of runs whose warehouse was polled.
func warehouses(runs []Run) *table {
	t := newTable("warehouse_timeseries", "run_id", "second")
	for _, r := range runs {
		if len(r.Warehouse) == 0 {
			continue
		}
		done := map[int64]int64{} // operations by second
		first, last := int64(math.MaxInt64), int64(-1)
		for _, e := range r.Executions {
			if e.Position == 0 {
				second := endSecond(r, e)
				done[second]++
				first, last = min(first, second), max(last, second)
			}
		}
		end := last
		for _, p := range r.Warehouse {
			end = max(end, int64(p.ElapsedSeconds))
		}
		for slot := int64(0); slot <= end; slot += 5 {
			t.rows[key(r.RunID, slot)] = warehouseSlot(r, slot, done, first, last)
		}
	}
	return t
}

func warehouseSlot(r Run, slot int64, done map[int64]int64, first, last int64) map[string]value {
	row := map[string]value{"at": exact(r.StartTime.Add(time.Duration(slot) * time.Second)), "qps": exact(nil)}
	var operations, lasted int64
	for second := max(slot, first); second < slot+5 && second <= last; second++ {
		operations += done[second]
		lasted++
	}
	if lasted > 0 {
		row["qps"] = rounded(float64(operations) / float64(lasted))
	}
	for _, name := range []string{"polled_at", "warehouse", "state", "warehouse_type", "warehouse_size", "generation",
		"started_clusters", "min_cluster_count", "max_cluster_count", "running", "queued"} {
		row[name] = exact(nil)
	}
	polls, queued := 0, -1
	for _, p := range r.Warehouse {
		at := int64(p.ElapsedSeconds)
		if at < slot-5 || at >= slot+5 {
			continue
		}
		if at >= slot {
			polls++
			queued = max(queued, p.Queued)
		}
		for name, is := range map[string]any{"polled_at": p.Timestamp.Time, "warehouse": p.Name, "state": p.State,
			"warehouse_type": p.Type, "warehouse_size": p.Size, "generation": p.Generation,
			"started_clusters": numberOrNil(p.StartedClusters), "min_cluster_count": numberOrNil(p.MinClusterCount),
			"max_cluster_count": numberOrNil(p.MaxClusterCount), "running": p.Running, "queued": max(queued, p.Queued)} {
			row[name] = exact(is)
		}
	}
	row["polls"] = exact(polls)
	return row
}

// numberOrNil is what a pointer has, nil without one.
func numberOrNil(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}
