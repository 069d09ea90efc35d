package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
)

// metrics are what a server tells under /metrics, by name and labels.
type metrics map[string]float64

func (s *server) metrics(ctx context.Context) (metrics, error) {
	var text []byte
	if err := s.get(ctx, "/metrics", &text); err != nil {
		return nil, err
	}
	return parseMetrics(string(text)), nil
}

func parseMetrics(text string) metrics {
	m := metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			m[line[:at]] = v
		}
	}
	return m
}

func (m metrics) value(name string) float64 { return m[name] }

// buckets is a histogram as what was observed between two readings: the upper bounds and how
// many observations were at most that.
type bucket struct{ bound, count float64 }

func (m metrics) since(earlier metrics, name string) []bucket {
	var out []bucket
	for key, v := range m {
		text, ok := strings.CutPrefix(key, name+`_bucket{le="`)
		if !ok {
			continue
		}
		bound := math.Inf(1)
		if text = strings.TrimSuffix(text, `"}`); text != "+Inf" {
			bound, _ = strconv.ParseFloat(text, 64)
		}
		out = append(out, bucket{bound, v - earlier[key]})
	}
	slices.SortFunc(out, func(a, b bucket) int {
		if a.bound < b.bound {
			return -1
		}
		return 1
	})
	return out
}

// atMost is the bound that the quantile lies under, in the unit of the histogram; a histogram
// without observations has none.
func atMost(b []bucket, q float64) float64 {
	if len(b) == 0 || b[len(b)-1].count == 0 {
		return math.NaN()
	}
	for _, b1 := range b {
		if b1.count >= q*b[len(b)-1].count {
			return b1.bound
		}
	}
	return math.Inf(1)
}
