package metrics

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// tracer keeps its spans.
func tracer() (*tracetest.InMemoryExporter, *trace.Tracer) {
	kept := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(kept))
	return kept, trace.New(p.Tracer("test"), func(oteltrace.TraceID) bool { return true })
}

// exemplars are those of a histogram.
func exemplars(t *testing.T, c prometheus.Collector, name string) (found []string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
			for _, l := range b.GetExemplar().GetLabel() {
				found = append(found, l.GetName()+"="+l.GetValue())
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestAnObservationNamesItsRun, and its trace where there is one; a name that has no room is left out.
func TestAnObservationNamesItsRun(t *testing.T) {
	const run = "0198c0de-0000-7000-8000-000000000001"
	_, traces := tracer()
	for _, c := range []struct {
		traces *trace.Tracer
		run    string
		want   []string
	}{{nil, run, []string{"run_id=" + run}}, {traces, run, []string{"run_id=" + run, "trace_id=" + trace.ID(run)}},
		{traces, strings.Repeat("x", 200), nil}, {traces, "", nil}} {
		m := NewServer(c.traces)
		m.Responded(nodes.Work{RunID: c.run, WorkerID: "worker-0", NodeID: "n"}, true, time.Millisecond)
		if got := exemplars(t, m, "loadstone_work_assignment_seconds"); !slices.Equal(got, c.want) {
			t.Errorf("the exemplar is %v, want %v", got, c.want)
		}
	}
}

// TestALifeOfARunWorkerIsSpansInTheTimeOfTheRun: a node's clock that is an hour off moves none of them, what never
// came has none, and they hang below what the server has sent.
func TestALifeOfARunWorkerIsSpansInTheTimeOfTheRun(t *testing.T) {
	kept, traces := tracer()
	m := NewNode(traces, func() worker.NodeState { return worker.NodeState{} })
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return at.Add(time.Hour + time.Duration(n)*time.Second) } // by the node's clock
	parent := traces.Context("run-1", "assign worker-0 n")
	w := worker.EndedWorker{
		RunID:       "run-1",
		WorkerID:    "worker-0",
		NodeID:      "n",
		TraceParent: parent,
		Assigned:    second(0),
		Ready: second(
			2,
		),
		LoadStarted: second(3),
		Stopped:     second(13),
		Drained:     second(14),
		Ended:       second(15),
		Ahead:       -time.Hour,
	}
	m.Ended(w)
	took := map[string]time.Duration{}
	for _, s := range kept.GetSpans() {
		took[s.Name] = s.EndTime.Sub(s.StartTime)
		if s.StartTime.Before(at) || s.EndTime.After(at.Add(15*time.Second)) {
			t.Errorf("%s is from %v to %v", s.Name, s.StartTime, s.EndTime)
		}
		if s.Parent.TraceID().String() != trace.ID("run-1") {
			t.Errorf("%s is part of %s", s.Name, s.Parent.TraceID())
		}
	}
	for name, want := range map[string]float64{"run worker": 15, "set-up": 2, "wait for START": 1, "load": 10,
		"drain": 1, "finish record": 1} {
		if took[name].Seconds() != want {
			t.Errorf("%s took %v, want %v s", name, took[name], want)
		}
	}
	kept.Reset()
	m.Ended(worker.EndedWorker{RunID: "run-1", WorkerID: "worker-1", NodeID: "n", Assigned: second(0), Stopped: second(1),
		Ended: second(2), Failed: "it could not connect"})
	spans := kept.GetSpans()
	if len(spans) != 3 || spans[2].Status.Description != "it could not connect" {
		t.Errorf("%d spans of one that never was ready: %+v", len(spans), spans)
	}
	NewNode(nil, func() worker.NodeState { return worker.NodeState{} }).Ended(w) // nothing is made, and nothing fails
}

// TestWhatFailsIsCountedByItsReason, and says so in its span; the taking in of a run is part of the run's trace.
func TestWhatFailsIsCountedByItsReason(t *testing.T) {
	kept, traces := tracer()
	m := NewServer(traces)
	m.Queried("q-1", time.Second, &engine.Error{Code: engine.CodeInvalid, Message: "No such table."})
	m.Queried("", time.Second, errors.New("a driver's"))
	m.Fetched(nodes.Work{RunID: "run-1", WorkID: "w"}, 7, time.Second, true, true)
	Refreshed(traces, refresh.Claim{Epoch: 3}, "run-1", time.Second, nil)
	spans := kept.GetSpans()
	if len(spans) != 4 || spans[0].Status.Description != "No such table." || spans[1].Status.Description == "" ||
		spans[2].Status.Description == "" || spans[3].Parent.TraceID().String() != trace.ID("run-1") {
		t.Fatalf("%+v", spans)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, v := range f.GetMetric() {
			for _, l := range v.GetLabel() {
				counts[l.GetValue()] = v.GetCounter().GetValue()
			}
		}
	}
	if counts["invalid"] != 1 || counts["internal"] != 1 || counts["conflict"] != 0 {
		t.Errorf("%v", counts)
	}
}
