package main

import (
	"fmt"
	"slices"
	"strings"
)

// median of the values that are not zero; 0 when there are none.
func median(values []float64) float64 {
	v := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return x == 0 })
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

// column takes one figure of every round.
func column(s []sample, of func(sample) float64) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = of(s[i])
	}
	return out
}

// table is the comparison in Markdown. Ratios are against pgbench, round by round.
func table(clients []client, samples map[string][]sample) string {
	var b strings.Builder
	b.WriteString("| client | TPS | P50 ms | P99 ms | client CPU µs/query | TPS ÷ pgbench |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: |\n")
	base := samples["pgbench"]
	for _, c := range clients {
		s := samples[c.name]
		ratio := "–"
		if len(base) == len(s) && len(s) > 0 {
			ratios := make([]float64, len(s))
			for i := range s {
				ratios[i] = s[i].tps / base[i].tps
			}
			ratio = fmt.Sprintf("%.2f", median(ratios))
		}
		fmt.Fprintf(&b, "| %s | %.0f | %s | %s | %.2f | %s |\n", c.name,
			median(column(s, func(s sample) float64 { return s.tps })),
			milliseconds(median(column(s, func(s sample) float64 { return s.p50 }))),
			milliseconds(median(column(s, func(s sample) float64 { return s.p99 }))),
			median(column(s, func(s sample) float64 { return s.cpu })), ratio)
	}
	return b.String()
}

func milliseconds(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", ms)
}
