package connector

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// metricPrefix begins the name of every metric that queries make.
const metricPrefix = "loadstone_stream_"

// queryLabel names the query that tells a metric, so that those of several queries do not meet.
const queryLabel = "query"

// maxLabelBytes is how many bytes of a text become the value of a label.
const maxLabelBytes = 256

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// CheckMetric says why rows with these columns can not become a metric: what is wrong, and what to do about it.
func CheckMetric(columns []column.Column) (wrong, hint string) {
	numbers := 0
	seen := map[string]bool{queryLabel: true}
	for _, c := range columns {
		switch {
		case c.Type.Numeric():
			numbers++
			if !labelName.MatchString(c.Name) {
				return fmt.Sprintf("the column %q can be no part of a metric's name", c.Name),
					"name it with letters, digits and _: x AS name"
			}
		case c.Type.Kind == column.Text || c.Type.Kind == column.Boolean:
			if !labelName.MatchString(c.Name) || strings.HasPrefix(c.Name, "__") {
				return fmt.Sprintf("the column %q can be no label", c.Name), "name it with letters, digits and _: x AS name"
			}
			if name := strings.ToLower(c.Name); seen[name] {
				return fmt.Sprintf("the label %s is there already", c.Name), "name the column otherwise: x AS name"
			}
			seen[strings.ToLower(c.Name)] = true
		}
	}
	if numbers == 0 {
		return "no column is a number", "select what the metric tells"
	}
	return "", ""
}

// Metrics are what queries tell with sinks of the type METRIC, as a collector. The zero value is empty; it is safe for
// concurrent use.
type Metrics struct {
	mu    sync.Mutex
	sinks map[*metric]bool
}

// metric takes the rows of a query.
type metric struct {
	metrics *Metrics
	query   string
	limit   int64
	labels  []string // the query's first
	texts   []int    // columns of the other labels
	values  []gauge
	series  map[string]series
}

// gauge is a column that is told, under a name.
type gauge struct {
	column int
	name   string
}

type series struct {
	labels []string
	values []float64
	there  []bool
}

// Open returns the sink of a query. Its series are told until it is closed.
func (m *Metrics) Open(query string, c Config, columns []column.Column) Sink {
	s := &metric{metrics: m, query: query, limit: c.Int("SINK.SERIES"), labels: []string{queryLabel},
		series: map[string]series{}}
	for i, col := range columns {
		switch {
		case col.Type.Numeric():
			s.values = append(s.values, gauge{i, metricPrefix + c.String("SINK.METRIC") + "_" + col.Name})
		case col.Type.Kind == column.Text || col.Type.Kind == column.Boolean:
			s.labels, s.texts = append(s.labels, col.Name), append(s.texts, i)
		}
	}
	if len(s.values) == 1 {
		s.values[0].name = metricPrefix + c.String("SINK.METRIC")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sinks == nil {
		m.sinks = map[*metric]bool{}
	}
	m.sinks[s] = true
	return s
}

// Write implements Sink. The newest row of each set of labels counts; a value that is NULL is not told.
func (s *metric) Write(b *column.Batch) error {
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	for i := range b.N {
		row := series{labels: []string{s.query}, values: make([]float64, len(s.values)), there: make([]bool, len(s.values))}
		for _, t := range s.texts {
			text := ""
			if !b.Cols[t].Null[i] {
				text = string(b.Cols[t].AppendValue(nil, i))
			}
			row.labels = append(row.labels, strings.ToValidUTF8(text[:min(len(text), maxLabelBytes)], ""))
		}
		for n, v := range s.values {
			if b.Cols[v.column].Null[i] {
				continue
			}
			number, err := strconv.ParseFloat(string(b.Cols[v.column].AppendValue(nil, i)), 64)
			row.values[n], row.there[n] = number, err == nil
		}
		key := strings.Join(row.labels, "\x00")
		if _, known := s.series[key]; !known && int64(len(s.series)) >= s.limit {
			return sql.Errorf(sql.StateLimit, "", -1, "select fewer texts, or raise SINK.SERIES",
				"the metric would have more than %d series", s.limit)
		}
		s.series[key] = row
	}
	return nil
}

// Close implements Sink: nothing of the query is told any more.
func (s *metric) Close() error {
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	delete(s.metrics.sinks, s)
	return nil
}

// Describe implements prometheus.Collector: what there is, is known when it is collected.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byQuery := func(a, b *metric) int { return cmp.Compare(a.query, b.query) }
	for _, s := range slices.SortedFunc(maps.Keys(m.sinks), byQuery) {
		for n, v := range s.values {
			desc := prometheus.NewDesc(v.name, "The newest row of continuous queries with this metric.", s.labels, nil)
			for _, row := range s.series {
				if !row.there[n] {
					continue
				}
				one, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, row.values[n], row.labels...)
				if err != nil {
					continue // names and values were checked
				}
				to <- one
			}
		}
	}
}
