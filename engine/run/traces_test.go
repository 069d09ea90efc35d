package run

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// traced keeps the spans of a service.
func traced(kept *tracetest.InMemoryExporter) func(*Options) {
	return func(o *Options) {
		p := sdk.NewTracerProvider(sdk.WithSyncer(kept))
		o.Traces = trace.New(p.Tracer("test"), func(oteltrace.TraceID) bool { return true })
	}
}

// TestARunIsATrace: its phases and their parts lie within it, one after another, and none is left open.
func TestARunIsATrace(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := fiveWorkers(engine.ScalingFixed)
		sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 10, 60
		run := v.start(sc)
		if v.figures().Status != engine.StatusCompleted {
			t.Fatal(v.figures().Status)
		}
		v.wait(time.Minute)
		took := map[string]time.Duration{}
		var whole tracetest.SpanStub
		for _, s := range kept.GetSpans() {
			if took[s.Name] += s.EndTime.Sub(s.StartTime); s.Name == "run" {
				whole = s
			}
			if s.Status.Code == codes.Error {
				t.Errorf("%s failed: %s", s.Name, s.Status.Description)
			}
		}
		for _, s := range kept.GetSpans() {
			if s.StartTime.Before(whole.StartTime) || s.EndTime.After(whole.EndTime) || s.EndTime.Before(s.StartTime) {
				t.Errorf("%s is from %v to %v, the run from %v to %v", s.Name, s.StartTime, s.EndTime, whole.StartTime,
					whole.EndTime)
			}
		}
		for name, want := range map[string]time.Duration{"phase WARMUP": 10 * time.Second,
			"phase MEASUREMENT": 60 * time.Second} {
			if took[name].Round(time.Second) != want {
				t.Errorf("%s took %v, want %v", name, took[name], want)
			}
		}
		for _, name := range []string{"run", "prepare", "placement", "drain", "figures", "phase PREPARING", "send START",
			"send STOP", "phase PROCESSING"} {
			if _, there := took[name]; !there {
				t.Errorf("there is no span %q: %v", name, took)
			}
		}
		said := map[string]string{}
		for _, a := range whole.Attributes {
			said[string(a.Key)] = a.Value.String()
		}
		if said["run_id"] != run.RunID || said["status"] != "COMPLETED" || said["stop_reason"] != "duration_elapsed" {
			t.Errorf("the run says %v", said)
		}
	}, traced(kept))
}

// TestARunThatFailsIsATraceThatSaysWhy, also where nothing but its preparation has begun.
func TestARunThatFailsIsATraceThatSaysWhy(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	life := NewSpanTracker(trace.New(sdk.NewTracerProvider(sdk.WithSyncer(kept)).Tracer("test"),
		func(oteltrace.TraceID) bool { return true }), engine.Run{RunID: "r", Status: engine.StatusRunning})
	life.Sent(time.Now(), "n", engine.Event{Type: engine.EventStart}, errors.New("it has gone"))
	spans := kept.GetSpans()
	if len(spans) != 1 || spans[0].Status.Description != "it has gone" {
		t.Fatalf("%+v", spans)
	}
	var none *trace.Tracer
	off := NewSpanTracker(none, engine.Run{RunID: "r"})
	off.Handle(time.Now(), nil, nil)
	off.Sent(time.Now(), "n", engine.Event{Type: engine.EventStart}, nil)
	if off != nil || none.Context("r", "k") != "" || none.Sampled("r") {
		t.Error("where no spans are made there are some")
	}
}
