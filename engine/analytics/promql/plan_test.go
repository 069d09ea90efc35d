package promql

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

func options() PlanOptions {
	return PlanOptions{Parser: parser.NewParser(parser.Options{}), Lookback: 5 * time.Minute,
		SubqueryStep: func(int64) int64 { return 60_000 }}
}

func leaves(q *QueryPlan) string {
	var b strings.Builder
	for _, l := range q.Leaves {
		b.WriteString(strings.TrimSpace(l.Expr) + ";")
	}
	return b.String()
}

// TestLeavesAreSelectorsWithTheirRangeFunctions has the shapes of expressions.
func TestLeavesAreSelectorsWithTheirRangeFunctions(t *testing.T) {
	at := time.UnixMilli(3_600_000)
	for _, c := range []struct{ query, leaves, text string }{
		{"1 + time()", "", "1 + time()"},
		{"x", "x;", "x"},
		{`rate(x{a="b"}[1m])`, `rate(x{a="b"}[1m]);`, `:0`},
		{"sum by (a) (rate(x[1m])) / sum(y)", "rate(x[1m]);y;", "sum by (a) (:0) / sum(y)"},
		{"x offset 5m", "x offset 5m;", ":0"},
		{"absent(x{a='b'} offset 5m)", "x{a='b'} offset 5m;", `absent(x{__leaf__=~":0",a="b"})`},
		{"absent_over_time(x{a='b'}[5m])", `last_over_time(x{a="b"}[5m]);`, `absent(x{__leaf__=~":0",a="b"})`},
		{"x[5m]", "x[5m];", ""},
		{"(x[5m] @ 10)", "x[5m] @ 10;", ""},
		{"max_over_time(sum(rate(x[1m]))[5m:10s])", "rate(x[1m]);", "max_over_time(sum(::0)[5m:10s])"},
		{"quantile_over_time(scalar(y), x[5m])", "y;x[5m];", `quantile_over_time(scalar(y), x{__leaf__=~":1"}[5m])`},
		{"quantile_over_time(0.9, x[5m])", "quantile_over_time(0.9, x[5m]);", ":0"},
		{"timestamp((x))", "timestamp((x));", ":0"},
		{"timestamp(abs(x))", "x;", "timestamp(abs(x))"},
		{"x + x", "x;", "x + x"},
		{":0 + rate(:0[1m])", ":0;rate(:0[1m]);", ":0 + ::1"},
		{"rate(x[1m] @ end())", "rate(x[1m] @ 3600.000);", ":0"},
	} {
		t.Run(c.query, func(t *testing.T) {
			q, err := NewPlan(c.query, at, at, 0, options())
			if err != nil {
				t.Fatal(err)
			}
			if got := leaves(q); got != c.leaves {
				t.Errorf("leaves %q, not %q", got, c.leaves)
			}
			if got := strings.Join(strings.Fields(q.Text), " "); got != strings.Join(strings.Fields(c.text), " ") &&
				strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(c.text, " ", "") {
				t.Errorf("the rest is %q, not %q", got, c.text)
			}
		})
	}
}

// TestGridsAreThoseOfTheEngine: a subquery is evaluated at multiples of its own step, whoever asks.
func TestGridsAreThoseOfTheEngine(t *testing.T) {
	start, end := time.UnixMilli(3_601_000), time.UnixMilli(3_691_000)
	for _, c := range []struct {
		query string
		grid  Grid
		from  int64
		to    int64
	}{
		{"rate(x[1m])", Grid{3_601_000, 3_691_000, 30_000}, 3_541_001, 3_691_000},
		{"x offset 1m", Grid{3_601_000, 3_691_000, 30_000}, 3_241_001, 3_631_000},
		{"max_over_time(rate(x[1m])[5m:20s])", Grid{3_320_000, 3_680_000, 20_000}, 3_260_001, 3_680_000},
		{"max_over_time(sum(x)[5m:20s] offset 1m)", Grid{3_260_000, 3_620_000, 20_000}, 2_960_001, 3_620_000},
		{"max_over_time(sum(x)[5m:] @ 1000)", Grid{720_000, 960_000, 60_000}, 420_001, 960_000},
		{"rate(x[1m] @ 1000)", Grid{3_601_000, 3_691_000, 30_000}, 940_001, 1_000_000},
	} {
		t.Run(c.query, func(t *testing.T) {
			q, err := NewPlan(c.query, start, end, 30*time.Second, options())
			if err != nil {
				t.Fatal(err)
			}
			l := q.Leaves[0]
			if l.Grid != c.grid || l.From != c.from || l.To != c.to {
				t.Errorf("%+v from %d to %d, not %+v from %d to %d", l.Grid, l.From, l.To, c.grid, c.from, c.to)
			}
		})
	}
}

// FuzzPlan holds that whatever the parser takes is taken apart or refused, and never ends the process.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{"rate(x[1m])", `absent(x{a="b"} offset 5m @ 3)`, "x[5m:1m] @ end()",
		"sum(x) by (a) > bool 1",
		"# a comment\nx", `{"a b"}`, "x smoothed", "rate(x[5m] anchored)", "x[5m]",
		"label_replace(x, 'a', '$1', 'b', '(.*)')"} {
		f.Add(s)
	}
	o := options()
	f.Fuzz(func(t *testing.T, s string) {
		if q, err := NewPlan(s, time.UnixMilli(0), time.UnixMilli(100_000), 10*time.Second, o); err == nil {
			for _, l := range q.Leaves {
				if _, err := o.Parser.ParseExpr(l.Expr); err != nil {
					t.Errorf("%q: the leaf %q: %v", s, l.Expr, err)
				}
			}
		}
	})
}
