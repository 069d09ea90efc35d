package derivedtest

import (
	"cmp"
	"slices"
	"strings"
)

// summaries are what is known of each run: its figures are those of the summary, exact as they are there.
func summaries(runs []Run) *table {
	t := newTable("run_summary", "run_id")
	for _, r := range runs {
		var executions int
		for _, e := range r.Executions {
			if e.Position == 0 {
				executions++
			}
		}
		tags := map[string]any{}
		for name, is := range r.Scenario.Tags {
			tags[name] = is
		}
		row := map[string]value{"run_name": exact(r.RunName), "template": exact(r.Scenario.TemplateName),
			"adapter": exact(r.Adapter), "connection": exact(r.Scenario.Target.Connection.Name),
			"table_name": exact(r.Scenario.Target.TableName), "status": exact(string(r.Status)), "verdict": exact(""),
			"passed": exact(nil), "simulated": exact(false), "load_mode": exact(string(r.Scenario.Workload.LoadMode)),
			"started_at": stamp(r.StartTime), "ended_at": stamp(r.EndTime), "warehouse": exact(""),
			"warehouse_size": exact(""), "currency": exact(""), "tags": exact(tags), "created_by": exact(r.CreatedBy),
			"executions": exact(executions), "unreadable_parts": exact(0)}
		for _, name := range []string{"duration_seconds", "operations", "reads", "writes", "errors", "error_rate", "qps",
			"p50_ms", "p95_ms", "p99_ms", "avg_ms", "max_ms", "credits", "price", "price_per_million"} {
			row[name] = exact(nil)
		}
		for name, is := range summarized(r) {
			row[name] = is
		}
		t.rows[key(r.RunID)] = row
	}
	return t
}

// summarized are the columns that come from the summary; counts and latencies are counted again.
func summarized(r Run) map[string]value {
	s := r.Summary
	if s == nil {
		return nil
	}
	row := map[string]value{"verdict": exact(s.Verdict), "passed": exact(s.Passed), "simulated": exact(s.Simulated),
		"duration_seconds": exact(s.DurationSeconds), "error_rate": known(s.Errors.Rate), "qps": known(s.QPS),
		"reads": exact(s.Reads), "writes": exact(s.Writes)}
	var ms []float64
	var failed int
	var sum float64
	for _, e := range r.Executions {
		if e.Position == 0 && !e.Warmup {
			ms = append(ms, e.ElapsedMs)
			sum += e.ElapsedMs
			if !e.Success {
				failed++
			}
		}
	}
	slices.Sort(ms)
	row["operations"], row["errors"] = exact(len(ms)), exact(failed)
	if len(ms) > 0 {
		row["p50_ms"], row["p95_ms"] = rounded(percentile(ms, 0.5)), rounded(percentile(ms, 0.95))
		row["p99_ms"], row["max_ms"] = rounded(percentile(ms, 0.99)), rounded(ms[len(ms)-1])
		row["avg_ms"] = rounded(sum / float64(len(ms)))
	}
	if c := s.Cost; c != nil {
		row["warehouse"], row["warehouse_size"], row["currency"] = exact(c.Warehouse), exact(c.WarehouseSize),
			exact(c.Currency)
		row["credits"], row["price"] = exact(c.Credits), exact(c.Price)
		if c.PricePerMillion != nil {
			row["price_per_million"] = exact(*c.PricePerMillion)
		}
	}
	return row
}

// valid are the runs whose measurement counts.
func valid(runs []Run) (list []Run) {
	for _, r := range runs {
		if r.Summary != nil && strings.HasPrefix(r.Summary.Verdict, "VALID") {
			list = append(list, r)
		}
	}
	return list
}

// costs are those of a million operations.
func costs(runs []Run) *table {
	t := newTable("cost_per_million", "adapter", "simulated", "warehouse_size", "currency")
	groups := map[string][]Run{}
	for _, r := range valid(runs) {
		if c := r.Summary.Cost; c != nil && c.PricePerMillion != nil {
			k := key(r.Adapter, r.Summary.Simulated, c.WarehouseSize, c.Currency)
			groups[k] = append(groups[k], r)
		}
	}
	for k, list := range groups {
		var price, credits, each float64
		var operations, failed int64
		var prices []float64
		last := list[0].EndTime
		for _, r := range list {
			c := r.Summary.Cost
			price, credits, each = price+c.Price, credits+c.Credits, each+*c.PricePerMillion
			operations, failed = operations+r.Summary.Operations, failed+r.Summary.Errors.Count
			prices = append(prices, *c.PricePerMillion)
			if r.EndTime.After(last.Time) {
				last = r.EndTime
			}
		}
		t.rows[k] = map[string]value{"runs": exact(len(list)), "avg_price_per_million": rounded(each / float64(len(list))),
			"price_per_million":     rounded(price / float64(operations-failed) * 1e6),
			"min_price_per_million": rounded(slices.Min(prices)), "max_price_per_million": rounded(slices.Max(prices)),
			"credits": rounded(credits), "price": rounded(price), "operations": exact(operations), "errors": exact(failed),
			"last_run_at": stamp(last)}
	}
	return t
}

// drift is each valid run against the median of those before it.
func drift(runs []Run) *table {
	t := newTable("baseline_drift", "run_id")
	all := valid(runs)
	slices.SortFunc(all, func(a, b Run) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime.Time), strings.Compare(a.RunID, b.RunID))
	})
	for i, r := range all {
		var qps, p95 []float64
		n := 0
		for j := i - 1; j >= 0 && n < 10; j-- {
			b := all[j]
			if b.Scenario.TemplateName != r.Scenario.TemplateName || b.Adapter != r.Adapter ||
				b.Summary.Simulated != r.Summary.Simulated {
				continue
			}
			n++
			if b.Summary.QPS != nil {
				qps = append(qps, *b.Summary.QPS)
			}
			if l := b.Summary.LatencyMs; l != nil {
				p95 = append(p95, l.P95)
			}
		}
		if n == 0 || r.Scenario.TemplateName == "" {
			continue
		}
		row := map[string]value{"template": exact(r.Scenario.TemplateName), "adapter": exact(r.Adapter),
			"simulated": exact(r.Summary.Simulated), "started_at": stamp(r.StartTime), "qps": known(r.Summary.QPS),
			"p95_ms": exact(nil), "baseline_runs": exact(n), "baseline_p95_ms": exact(nil), "p95_change_pct": exact(nil)}
		row["baseline_qps"], row["qps_change_pct"] = medianDeviation(0, qps)
		if own := r.Summary.QPS; own != nil {
			row["baseline_qps"], row["qps_change_pct"] = medianDeviation(*own, qps)
		} else {
			row["qps_change_pct"] = exact(nil)
		}
		if l := r.Summary.LatencyMs; l != nil {
			row["p95_ms"] = exact(l.P95)
			row["baseline_p95_ms"], row["p95_change_pct"] = medianDeviation(l.P95, p95)
		} else if len(p95) > 0 {
			row["baseline_p95_ms"], _ = medianDeviation(0, p95)
		}
		t.rows[key(r.RunID)] = row
	}
	return t
}

// known is a figure that may not be known.
func known(v *float64) value {
	if v == nil {
		return exact(nil)
	}
	return exact(*v)
}

// medianDeviation is the median of values, and by how many percent another one differs from it.
func medianDeviation(is float64, values []float64) (median, change value) {
	if len(values) == 0 {
		return exact(nil), exact(nil)
	}
	slices.Sort(values)
	m := percentile(values, 0.5)
	if m == 0 {
		return exact(m), exact(nil)
	}
	// A difference of nearly nothing has no digits that are sure.
	return rounded(m), value{100 * (is - m) / m, 1e-6}
}
