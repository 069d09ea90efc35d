package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// TestAComparisonSpeaksAsASummaryDoes: figures have the digits and units that the summary of a run gives them.
func TestAComparisonSpeaksAsASummaryDoes(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	c := compare.Comparison{Verdict: compare.Same, Metrics: []compare.Metric{
		{Name: "qps", Unit: "per second", A: v(14_061.4), B: v(987.6), Detectable: v(17.44), Verdict: compare.Worse},
		{Name: "error_rate", Unit: "fraction", A: v(0), B: v(0.00012345), Detectable: v(0.0005), Verdict: compare.Same},
		{Name: "p50_ms", Unit: "ms", A: v(0.41234), B: v(12_345), Verdict: compare.Worse},
		{Name: "p99_ms", Unit: "ms", A: v(2.3149), Verdict: compare.Unclear, Reason: "nothing"},
	}}
	var out bytes.Buffer
	Comparison(&out, c)
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{"qps 14.1 k 988 17.4 % worse", "error_rate 0 % 0.0123 % 0.05 pp same", "p50_ms 0.412 ms 12.3 s – worse",
		"p99_ms 2.31 ms – – unclear nothing"} {
		if len(got) <= i+1 || got[i+1] != want {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}
