package promapi

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
)

// point is a sample in Prometheus' form.
type point struct {
	t int64
	f float64
	h *histogram.FloatHistogram
}

// MarshalJSON implements json.Marshaler.
func (p point) MarshalJSON() ([]byte, error) {
	b := append([]byte{'['}, strconv.FormatFloat(float64(p.t)/1000, 'f', -1, 64)...)
	b = append(b, ',')
	if p.h != nil {
		h, err := json.Marshal(histogramOf(p.h))
		if err != nil {
			return nil, err
		}
		return append(append(b, h...), ']'), nil
	}
	return append(append(append(b, '"'), formatNumber(p.f)...), '"', ']'), nil
}

// formatNumber is written as Prometheus writes it: with an exponent where it would be long.
func formatNumber(f float64) string {
	if abs := math.Abs(f); abs != 0 && !math.IsInf(f, 0) && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

type histogramJSON struct {
	Count   string  `json:"count"`
	Sum     string  `json:"sum"`
	Buckets [][]any `json:"buckets,omitempty"`
}

// histogramOf has the buckets that hold something; their first value says which of their bounds belong to them.
func histogramOf(h *histogram.FloatHistogram) histogramJSON {
	j := histogramJSON{Count: formatNumber(h.Count), Sum: formatNumber(h.Sum)}
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue
		}
		bounds := 2
		if b.LowerInclusive {
			if b.UpperInclusive {
				bounds = 3
			} else {
				bounds = 1
			}
		} else if b.UpperInclusive {
			bounds = 0
		}
		j.Buckets = append(j.Buckets, []any{bounds, formatNumber(b.Lower), formatNumber(b.Upper), formatNumber(b.Count)})
	}
	return j
}

type sampleJSON struct {
	Metric    map[string]string `json:"metric"`
	Value     *point            `json:"value,omitempty"`
	Histogram *point            `json:"histogram,omitempty"`
}

type seriesJSON struct {
	Metric     map[string]string `json:"metric"`
	Values     []point           `json:"values,omitempty"`
	Histograms []point           `json:"histograms,omitempty"`
}

type resultJSON struct {
	ResultType string `json:"resultType"`
	Result     any    `json:"result"`
	Stats      *stats `json:"stats,omitempty"`
}

// stats is what a query took, the part of it that Prometheus has, and how it was divided.
type stats struct {
	QueryID string `json:"query_id"`
	Timings struct {
		ExecTotalTime float64 `json:"execTotalTime"`
	} `json:"timings"`
	Samples struct {
		TotalQueryableSamples int64 `json:"totalQueryableSamples"`
	} `json:"samples"`
	Stages analyticspromql.Stages `json:"stages"`
	Leaves []leafStats            `json:"leaves"`
}

// leafStats is a part of the expression that was evaluated beside the series, in pieces.
type leafStats struct {
	Expr string `json:"expr"`
	// Function is the range function that nodes evaluate, "" where they read a selector alone.
	Function string `json:"function"`
	// Instants is how many it is evaluated at.
	Instants int64                       `json:"instants"`
	Pieces   []analyticspromql.WorkStats `json:"pieces"`
}

func leafStatsOf(q *analyticspromql.Query) []leafStats {
	all := []leafStats{}
	for _, l := range q.Leaves() {
		s := leafStats{
			Expr:     strings.TrimSpace(l.Expr),
			Function: l.Func,
			Instants: l.Grid.Steps(),
			Pieces:   []analyticspromql.WorkStats{},
		}
		if l.Raw {
			s.Instants = 1
		}
		all = append(all, s)
	}
	return all
}

func statsOf(q *analyticspromql.Query, took time.Duration) *stats {
	s := &stats{QueryID: q.ID(), Stages: q.Stages(), Leaves: leafStatsOf(q)}
	s.Timings.ExecTotalTime = took.Seconds()
	for _, p := range q.Stats() {
		l := &s.Leaves[p.Leaf]
		l.Pieces = append(l.Pieces, p)
		s.Samples.TotalQueryableSamples += p.Samples
	}
	return s
}

func dataOf(v parser.Value) (resultJSON, error) {
	r := resultJSON{ResultType: string(v.Type())}
	if m, ok := v.(promql.Matrix); ok && m.TotalSamples() > maxPoints {
		return r, &failure{"execution", fmt.Errorf("the answer has %d points, more than the %d that are sent at once; "+
			"ask with a longer step, for a shorter time or for fewer series", m.TotalSamples(), maxPoints)}
	}
	switch v := v.(type) {
	case promql.Scalar:
		r.Result = point{t: v.T, f: v.V}
	case promql.String:
		r.Result = []any{float64(v.T) / 1000, v.V}
	case promql.Vector:
		all := make([]sampleJSON, len(v))
		for i, s := range v {
			all[i] = sampleJSON{Metric: s.Metric.Map()}
			p := &point{s.T, s.F, s.H}
			if s.H != nil {
				all[i].Histogram = p
			} else {
				all[i].Value = p
			}
		}
		r.Result = all
	case promql.Matrix:
		all := make([]seriesJSON, len(v))
		for i, s := range v {
			all[i] = seriesJSON{Metric: s.Metric.Map()}
			for _, p := range s.Floats {
				all[i].Values = append(all[i].Values, point{t: p.T, f: p.F})
			}
			for _, p := range s.Histograms {
				all[i].Histograms = append(all[i].Histograms, point{t: p.T, h: p.H})
			}
		}
		r.Result = all
	default:
		return r, fmt.Errorf("a result of the type %s", v.Type())
	}
	return r, nil
}
