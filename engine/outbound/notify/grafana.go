// This part marks runs in Grafana: their start, and their phases and themselves as regions once they are over.
// What is marked follows from the run alone, so that a server that takes a run over marks it once.

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// grafanaLimits: annotations are few, and one that is an hour late still says when it was.
var grafanaLimits = delivery.Limits{
	MaxItems:     1000,
	MaxBytes:     1 << 20,
	BatchSize:    1,
	MinBackoff:   time.Second,
	MaxBackoff:   time.Minute,
	RetryTimeout: time.Hour,
}

// grafanaReadTimeout bounds how long the control store may take to say what a run is.
const grafanaReadTimeout = 5 * time.Second

// Annotation is what Grafana takes.
type Annotation struct {
	Time    int64    `json:"time"`
	TimeEnd int64    `json:"timeEnd,omitempty"`
	Tags    []string `json:"tags"`
	Text    string   `json:"text"`
}

// Bytes implements delivery.Item.
func (a Annotation) Bytes() int { return 100 + len(a.Text) }

// Milestone is something that has happened to a run.
type Milestone int

// The moments that are marked.
const (
	Started Milestone = iota
	WarmedUp
	Ended
)

// Annotator marks runs.
type Annotator struct {
	delivery.Sink[Annotation]
	run        func(context.Context, string) (engine.Run, error)
	milestones chan runMilestone
	once       sync.Once
	done       chan struct{}
}

type runMilestone struct {
	run       string
	milestone Milestone
}

// Open begins to mark runs in the Grafana of an endpoint.
func Open(e delivery.Endpoint, run func(context.Context, string) (engine.Run, error), log zerolog.Logger) (*Annotator,
	error) {
	client, err := delivery.NewClient(e)
	if err != nil {
		return nil, err
	}
	m := &Annotator{run: run, milestones: make(chan runMilestone, 256), done: make(chan struct{})}
	m.Sink = delivery.OpenSink(client, grafanaLimits, m.send, log)
	go m.read()
	return m, nil
}

// Record takes a moment of a run, once the control store has it. It does not wait.
func (m *Annotator) Record(runID string, is Milestone) {
	select {
	case m.milestones <- runMilestone{runID, is}:
	default:
		m.CountLost(delivery.LostQueueFull, 1, nil)
	}
}

// Close marks what has happened, for as long as ctx allows. Nothing may happen any more.
func (m *Annotator) Close(ctx context.Context) {
	m.once.Do(func() { close(m.milestones) })
	<-m.done
	m.Sink.Close(ctx)
}

func (m *Annotator) read() {
	defer close(m.done)
	for h := range m.milestones {
		ctx, cancel := context.WithTimeout(context.Background(), grafanaReadTimeout)
		run, err := m.run(ctx, h.run)
		cancel()
		if err != nil {
			m.CountLost(delivery.LostRejected, 1, fmt.Errorf("reading the run that is to be marked: %w", err))
			continue
		}
		m.Enqueue(Annotations(run, h.milestone)...)
	}
}

// Annotations are the annotations of a moment of a run.
func Annotations(run engine.Run, is Milestone) []Annotation {
	tags := []string{"loadstone", "run:" + run.RunID}
	if name := run.Scenario.TemplateName; name != "" {
		tags = append(tags, "template:"+name)
	}
	region := func(what string, from, to engine.Time, text string) Annotation {
		return Annotation{Time: from.UnixMilli(), TimeEnd: to.UnixMilli(), Tags: append(tags[:len(tags):len(tags)], what),
			Text: text}
	}
	name := run.RunName
	switch is {
	case Started:
		return []Annotation{{Time: run.StartTime.UnixMilli(), Tags: append(tags, "start"),
			Text: fmt.Sprintf("Run %s has started", name)}}
	case WarmedUp:
		if run.WarmupStartTime.IsZero() || !run.WarmupEndTime.After(run.WarmupStartTime.Time) {
			return nil
		}
		return []Annotation{region("warmup", run.WarmupStartTime, run.WarmupEndTime, fmt.Sprintf("Warmup of run %s", name))}
	}
	if run.StartTime.IsZero() || run.EndTime.IsZero() {
		return nil // it was ended before it had started
	}
	var all []Annotation
	if measured := run.WarmupEndTime; !measured.IsZero() {
		end := run.MeasurementEndTime
		if end.IsZero() {
			end = run.EndTime
		}
		all = append(all, region("measurement", measured, end, fmt.Sprintf("Measurement of run %s", name)))
	}
	text := fmt.Sprintf("Run %s is %s", name, run.Status)
	if run.StopReason != "" {
		text += ": " + string(run.StopReason)
	}
	return append(all, region("run", run.StartTime, run.EndTime, text))
}

func (m *Annotator) send(ctx context.Context, all []Annotation, _ int) delivery.Outcome {
	body, err := json.Marshal(all[0])
	if err != nil {
		return delivery.Outcome{Err: fmt.Errorf("writing an annotation: %w", err)}
	}
	answer, err := m.Client.Post(ctx, "api/annotations", "application/json", body)
	return delivery.OutcomeOf(answer, err, 1)
}
