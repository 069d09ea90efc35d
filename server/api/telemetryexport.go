// This part holds the handler that says what became of what is sent of live runs to other systems.

package api

import (
	"context"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// Destination is what became of what was sent to a system since the server started.
type Destination struct {
	Name         string           `json:"name" doc:"remote_write (the next receivers have numbers: remote_write_2), otlp or grafana, as in metrics."`
	Address      string           `json:"address" doc:"Where it is, without secrets."`
	Failing      bool             `json:"failing" doc:"Whether the last delivery did not arrive."`
	SentCount    int64            `json:"sent_count" doc:"Samples or annotations that it has taken."`
	WaitingCount int              `json:"waiting_count" doc:"Those that wait, and are on their way."`
	WaitingBytes int              `json:"waiting_bytes" doc:"About how much memory they take."`
	RetryCount   int64            `json:"retry_count" doc:"Deliveries that did not arrive and were made again."`
	LostCounts   map[string]int64 `json:"lost_counts" doc:"Those that are lost, by why: queue_full, refused, given_up, shutdown."`
	LastError    string           `json:"last_error,omitempty" doc:"What the last delivery came to that did not succeed."`
	LastErrorAt  *engine.Time     `json:"last_error_at,omitempty" doc:"When that was."`
}

// Destinations are those of a server.
type Destinations struct {
	Destinations []Destination `json:"destinations" doc:"In the order of their flags; none where nothing is sent."`
}

type telemetryBody struct{ Body Destinations }

// RegisterTelemetryExport adds the route.
func RegisterTelemetryExport(a *API, outlets []delivery.NamedSink) {
	o := NewOperation(
		http.MethodGet,
		"/api/v1/out",
		"list-destinations",
		"Runs",
		"Read what became of what is sent elsewhere",
	)
	o.Description = "What this server has sent of its own live runs with --remote-write, --otlp-metrics and " +
		"--grafana-url. Other servers send what is of theirs."
	Handle(a, o, func(context.Context, *struct{}) (*telemetryBody, error) {
		all := Destinations{Destinations: make([]Destination, 0, len(outlets))}
		for _, out := range outlets {
			c := out.Counts()
			d := Destination{Name: out.Name, Address: out.To, Failing: c.Failing, SentCount: c.Sent,
				WaitingCount: c.Waiting, WaitingBytes: c.Bytes, RetryCount: c.Retries, LostCounts: c.Lost,
				LastError: c.LastError}
			if !c.LastErrorAt.IsZero() {
				at := engine.At(c.LastErrorAt)
				d.LastErrorAt = &at
			}
			all.Destinations = append(all.Destinations, d)
		}
		return &telemetryBody{all}, nil
	})
}
