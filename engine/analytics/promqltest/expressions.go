// Package promqltest makes expressions of PromQL and series of runs, for tests that ask two engines the same.
package promqltest

import (
	"fmt"
	"math/rand/v2"
)

// Generator makes expressions over the series of Runs.
type Generator struct{ r *rand.Rand }

// NewGenerator returns one whose expressions are those of the seed.
func NewGenerator(seed uint64) *Generator { return &Generator{rand.New(rand.NewPCG(seed, 16))} }

func (g *Generator) pick(all ...string) string { return all[g.r.IntN(len(all))] }

// Expression gives a vector. None chooses among series that tie, where any answer would be right.
func (g *Generator) Expression() string { return g.vector(g.r.IntN(4)) }

func (g *Generator) vector(depth int) string {
	if depth == 0 {
		return g.pick(g.selector(), g.ranged(), g.ranged(), g.histogram())
	}
	a, b := g.vector(depth-1), g.vector(depth-1)
	by := g.pick("kind", "run", "run, kind")
	switch g.r.IntN(11) {
	case 0, 1:
		return g.pick("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar") + g.grouping() + "(" + a + ")"
	case 2:
		return g.pick("quantile(0.3, ", `count_values("value", 7 + 0 * `) + a + ")"
	case 3:
		return g.pick("abs", "ceil", "sgn", "sqrt", "-", "round", "timestamp", "absent", "sort", "exp") + "(" + a + ")"
	case 4:
		return "clamp(" + a + ", 1, scalar(max(" + b + ")))"
	case 5:
		return "(" + a + " " + g.pick("+", "-", "*", "/", "%", ">", "<=", "== bool", "^") + " " +
			g.pick("2", "0.5", "time()", "scalar(sum("+b+"))") + ")"
	case 6:
		return "(" + a + " " + g.pick("and", "or", "unless") + g.pick("", " on (kind)", " ignoring (run)") + " " + b + ")"
	case 7:
		return "(sum by (" + by + ") (" + a + ") " + g.pick("/", "-", "> bool", "*") + " on (" + by + ") max by (" + by +
			") (" + b + "))"
	case 8:
		return "(" + a + " * on (run) group_left () count by (run) (" + b + "))"
	case 9:
		return g.pick("max", "min", "avg", "count", "last", "sum", "stddev", "present") + "_over_time((" + a + ")" +
			g.pick("[30s:5s]", "[20s:]", "[1m:7s]", "[30s:5s] offset 10s", "[30s:5s] @ end()") + ")"
	}
	return `label_replace(` + a + `, "first", "$1-x", "kind", "(.).*")`
}

func (g *Generator) grouping() string {
	return g.pick("", " by (run) ", " by (kind) ", " without (run) ", " without (worker, kind) ", " by () ",
		" by (template, phase) ")
}

func (g *Generator) named() string {
	return g.pick("loadstone_operations_total", "loadstone_failed_operations_total", "loadstone_errors_total",
		"loadstone_statement_operations_total", "loadstone_worker_operations_total",
		"loadstone_warehouse_queued_queries", "loadstone_warehouse_state", "loadstone_no_such_metric",
		"loadstone_connections", "loadstone_dropped_operations_total", "loadstone_node_cpu_ratio",
		"loadstone_target_operations_per_second", "loadstone_warehouse_credits_total") + g.matchers()
}

func (g *Generator) matchers() string {
	return g.pick("", "", `{kind="INSERT"}`, `{run=~"r-[12]"}`, `{run!="r-1"}`, `{kind!~"I.*|U.*"}`, `{template="t-0"}`,
		`{run=~"r-.",kind=""}`, `{phase="measurement"}`, `{node="n-1"}`)
}

func (g *Generator) window() string { return g.pick("[5s]", "[10s]", "[17s]", "[1m]", "[1s]", "[3s]") }

func (g *Generator) modifiers() string {
	return g.pick("", "", "", " offset 7s", " offset -5s", " @ start()", " @ end() offset 3s", " @ 1795348830")
}

func (g *Generator) selector() string { return g.named() + g.modifiers() }

func (g *Generator) ranged() string {
	return fmt.Sprintf(g.pick("rate(%s)", "rate(%s)", "increase(%s)", "delta(%s)", "irate(%s)", "idelta(%s)", "deriv(%s)",
		"changes(%s)", "resets(%s)", "avg_over_time(%s)", "sum_over_time(%s)", "count_over_time(%s)",
		"max_over_time(%s)", "min_over_time(%s)", "last_over_time(%s)", "stddev_over_time(%s)", "present_over_time(%s)",
		"absent_over_time(%s)", "quantile_over_time(0.7, %s)", "predict_linear(%s, 60)",
		"quantile_over_time(scalar(sum(loadstone_warehouse_state)) / 4, %s)"), g.named()+g.window()+g.modifiers())
}

func (g *Generator) histogram() string {
	name := g.pick("loadstone_latency_seconds", "loadstone_worker_latency_seconds", "loadstone_statement_latency_seconds")
	rate := g.pick("rate", "rate", "increase", "delta", "avg_over_time", "sum_over_time", "last_over_time", "irate") +
		"(" + name + g.matchers() + g.window() + g.modifiers() + ")"
	some := g.pick(rate, name+g.matchers()+g.modifiers(), "sum"+g.grouping()+"("+rate+")", "avg"+g.grouping()+"("+rate+")")
	return fmt.Sprintf(g.pick("histogram_quantile(0.9, %s)", "histogram_count(%s)", "histogram_sum(%s)",
		"histogram_avg(%s)", "histogram_fraction(0, 0.01, %s)", "histogram_stddev(%s)", "%s"), some)
}
