package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// column takes one figure of every round.
func column(s []sample, of func(sample) float64) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = of(s[i])
	}
	return out
}

// table is the comparison in Markdown: medians, and the range over the rounds in
// parentheses. Ratios are against the client named base, round by round.
func table(clients []client, samples map[string][]sample, base string) string {
	var b strings.Builder
	b.WriteString("| client | TPS | P50 ms | P99 ms | client CPU µs/query | of the whole process " +
		"| TPS ÷ " + base + " | CPU ÷ " + base + " | whole CPU ÷ " + base + " |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	first := samples[base]
	for _, c := range clients {
		s := samples[c.name]
		// against is the ratio to base, round by round.
		against := func(of func(sample) float64) string {
			if len(first) != len(s) || len(s) == 0 {
				return "–"
			}
			ratios := make([]float64, len(s))
			for i := range s {
				ratios[i] = of(s[i]) / of(first[i])
			}
			return measure.Spread("%.2f", ratios)
		}
		tps := func(s sample) float64 { return s.tps }
		whole := func(s sample) float64 { return s.whole }
		cpu := func(s sample) float64 { return s.cpu }
		fmt.Fprintf(&b, "| %s | %s | %.3f | %.3f | %s | %s | %s | %s | %s |\n", c.name,
			measure.Spread("%.0f", column(s, tps)),
			measure.Median(column(s, func(s sample) float64 { return s.p50 })),
			measure.Median(column(s, func(s sample) float64 { return s.p99 })),
			measure.Spread("%.2f", column(s, cpu)),
			measure.Spread("%.2f", column(s, whole)), against(tps), against(cpu), against(whole))
	}
	return b.String()
}

// maxSpread is how far a client's TPS may range over the rounds, largest over
// smallest, before the comparison says more about the machine than about the clients.
const maxSpread = 1.3

// disturbed says which clients' rounds differ so much that the table proves nothing.
func disturbed(clients []client, samples map[string][]sample) string {
	var b strings.Builder
	for _, c := range clients {
		if share := slices.Max(append(column(samples[c.name], func(s sample) float64 { return s.others }),
			0)); share > maxOthers {
			fmt.Fprintf(&b, "Not usable: other processes took up to %.0f %% of the machine from %s.\n", 100*share, c.name)
		}
		tps := column(samples[c.name], func(s sample) float64 { return s.tps })
		if len(tps) == 0 || slices.Max(tps) <= maxSpread*slices.Min(tps) {
			continue
		}
		fmt.Fprintf(&b, "Not usable: %s ranged from %.0f to %.0f TPS; something else uses this machine.\n", c.name,
			slices.Min(tps), slices.Max(tps))
	}
	return b.String()
}
