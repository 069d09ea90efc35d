package connector

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// TestTheNewestRowIsAGauge: of each set of labels, beside that of another query with the same metric, until the query
// ends.
func TestTheNewestRowIsAGauge(t *testing.T) {
	t.Parallel()
	var m Metrics
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&m)
	config := Config{"SINK.METRIC": "p99", "SINK.SERIES": int64(3)}
	first, second := m.Open("a", config, alertColumns), m.Open("b", config, alertColumns)
	for _, b := range []*column.Batch{alertRows("r0", "r1"), alertRows("r1")} {
		if err := first.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	nothing := alertRows("r2", "r3")
	nothing.Cols[1].Null[0] = true
	if err := second.Write(nothing); err != nil {
		t.Fatal(err)
	}
	want := "# HELP loadstone_stream_p99 The newest row of continuous queries with this metric.\n" +
		"# TYPE loadstone_stream_p99 gauge\n" + `loadstone_stream_p99{query="a",runId="r0"} 200
loadstone_stream_p99{query="a",runId="r1"} 200
loadstone_stream_p99{query="b",runId="r3"} 201
`
	if got := gathered(t, registry); got != want {
		t.Error(got)
	}
	if err := second.Write(alertRows("r4")); err != nil {
		t.Error(err)
	}
	var known *sql.Error
	if err := second.Write(alertRows("r5")); !errors.As(err, &known) || known.Kind != sql.StateLimit ||
		!strings.Contains(known.Message, "more than 3 series") {
		t.Errorf("a fourth series: %v", err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if got := gathered(t, registry); got != "" {
		t.Errorf("series are left: %s", got)
	}
}

// gathered is what a registry tells.
func gathered(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestWhatCanBeNoMetric is refused with the statement.
func TestWhatCanBeNoMetric(t *testing.T) {
	t.Parallel()
	text, number := column.Type{Kind: column.Text}, column.Type{Kind: column.Int, Bits: 64}
	for what, columns := range map[string][]column.Column{
		"no column is a number":                     {{Name: "a", Type: text}},
		`the column "a b" can be no label`:          {{Name: "a b", Type: text}, {Name: "n", Type: number}},
		`the column "__a" can be no label`:          {{Name: "__a", Type: text}, {Name: "n", Type: number}},
		"the label Query is there already":          {{Name: "Query", Type: text}, {Name: "n", Type: number}},
		`the column "é" can be no part of a metric`: {{Name: "é", Type: number}},
		"": {{Name: "a", Type: text}, {Name: "n", Type: number}, {Name: "m", Type: number},
			{Name: "timestamp", Type: column.Type{Kind: column.Timestamp}}},
	} {
		if got, _ := CheckMetric(columns); !strings.HasPrefix(got, what) || what == "" && got != "" {
			t.Errorf("%s: %s", what, got)
		}
	}
	for _, name := range []string{"", "9", "A", "a-b", "a b", strings.Repeat("x", 101)} {
		if metricNamed(name) {
			t.Errorf("%q is a name", name)
		}
	}
	if !metricNamed("p99_of_checkout") {
		t.Error("a name is none")
	}
}

func metricNamed(name string) bool {
	list, err := sql.Parse(fmt.Sprintf("CREATE SINK s TYPE METRIC SET('%s' AS SINK.METRIC)", name))
	if err != nil {
		return false
	}
	s, _ := list[0].Statement.(*sql.CreateSink)
	_, err = SinkConfig(Metric, "", 0, s.Settings)
	return err == nil
}
