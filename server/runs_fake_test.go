package server_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// orchestra is a runs service without load.
type orchestra struct {
	*memory
	lmu        sync.Mutex
	live       map[string]*engine.LiveState
	subs       map[string][]chan *engine.LiveState
	dsns       []string
	checkUntil time.Time
	created    []engine.Scenario
	n          int
	panics     bool
	figures    *engine.Figures // of runs that have completed, nil for some
}

func newOrchestra(m *memory) *orchestra {
	return &orchestra{memory: m, live: map[string]*engine.LiveState{}, subs: map[string][]chan *engine.LiveState{}}
}

// move makes the transitions of a run along a path, the last one to a phase.
func (o *orchestra) move(id string, phase engine.Phase, path ...engine.Status) engine.Run {
	for _, to := range path {
		t := store.Transition{RunID: id, To: to, Phase: &phase}
		if to == engine.StatusRunning {
			t.Events = []engine.Event{{Type: engine.EventStart}}
		}
		if _, err := o.Transition(context.Background(), t); err != nil {
			panic(err)
		}
	}
	r, err := o.Run(context.Background(), id)
	if err != nil {
		panic(err)
	}
	return r
}

// name is a fresh id for a run.
func (o *orchestra) name() string {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	o.n++
	return fmt.Sprintf("run-%d", o.n)
}

func (o *orchestra) Create(ctx context.Context, s engine.Scenario, by engine.Actor) (engine.Run, error) {
	o.lmu.Lock()
	o.created = append(o.created, s)
	panics := o.panics
	o.lmu.Unlock()
	if panics {
		panic("secret internals")
	}
	id := o.name()
	if err := o.CreateRun(ctx, engine.Run{RunID: id, TemplateID: s.TemplateID, RunName: s.Name, Scenario: s,
		CreatedBy: by.Name, CreatedByID: by.ID}); err != nil {
		return engine.Run{}, err
	}
	return o.Run(ctx, id)
}

func (o *orchestra) change(id string, from []engine.Status, phase engine.Phase, sentence string,
	path ...engine.Status) (engine.Run, error) {
	r, err := o.Run(context.Background(), id)
	if err != nil {
		return r, err
	}
	if !slices.Contains(from, r.Status) {
		return r, &engine.Error{Code: engine.CodeConflict, Message: sentence, Cause: store.ErrConflict}
	}
	return o.move(id, phase, path...), nil
}

func (o *orchestra) Start(_ context.Context, id, _ string) (engine.Run, error) {
	return o.change(id, []engine.Status{engine.StatusPrepared}, engine.PhaseMeasurement,
		"The run has been started already.", engine.StatusRunning)
}

func (o *orchestra) Stop(_ context.Context, id, _ string) (engine.Run, error) {
	path := []engine.Status{engine.StatusCancelling, engine.StatusCancelled}
	if r, err := o.Run(context.Background(), id); err == nil && r.Status == engine.StatusPrepared {
		path = path[1:]
	}
	return o.change(id, []engine.Status{engine.StatusPrepared, engine.StatusRunning}, engine.PhaseNone,
		"The run is over already.", path...)
}

func (o *orchestra) Revoke(ctx context.Context, id, _ string) error {
	_, err := o.Stop(ctx, id, "server")
	return err
}

func (o *orchestra) Delete(ctx context.Context, id, _ string) error { return o.DeleteRun(ctx, id) }

func (o *orchestra) Detail(ctx context.Context, id string) (engine.RunDetail, error) {
	r, err := o.Run(ctx, id)
	if err != nil {
		return engine.RunDetail{}, err
	}
	d := engine.RunDetail{Run: r, Workers: []engine.RunResult{}, Enrichment: engine.Enrichment{Status: "SKIPPED"},
		Live: o.LiveState(id)}
	if r.Status == engine.StatusCompleted {
		d.Summary = &engine.Summary{RunID: id, Status: r.Status, Validity: engine.VerdictValid,
			ValidityDetail: engine.Validity{Verdict: engine.VerdictValid}, Figures: engine.Figures{Operations: 7,
				LatencyMs: &engine.LatencyMs{P50: 1}, ByKind: map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 7}}}}
		o.lmu.Lock()
		if o.figures != nil {
			d.Summary.Figures = *o.figures
		}
		o.lmu.Unlock()
	}
	return d, nil
}

func (*orchestra) ChangeLoad(context.Context, string, string, scaling.LoadRequest) (engine.Event, error) {
	return engine.Event{}, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not change loads."}
}

func (*orchestra) Enrichments() map[string]enrichment.Origin { return nil }

func (*orchestra) RevokeEnrichment(context.Context, string, string) error { return nil }

func (o *orchestra) ActiveRunIDs() []string {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	return slices.Collect(maps.Keys(o.live))
}

func (o *orchestra) LiveState(id string) *engine.LiveState {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	return o.live[id]
}

func (o *orchestra) Subscribe(id string) (<-chan *engine.LiveState, func(), error) {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	if o.live[id] == nil {
		return nil, nil, &engine.Error{Code: engine.CodeConflict, Message: "not live"}
	}
	ch := make(chan *engine.LiveState, 1)
	o.subs[id] = append(o.subs[id], ch)
	return ch, func() {
		o.lmu.Lock()
		defer o.lmu.Unlock()
		o.subs[id] = slices.DeleteFunc(o.subs[id], func(c chan *engine.LiveState) bool { return c == ch })
	}, nil
}

// publish is a tick of the run.
func (o *orchestra) publish(p *engine.LiveState) {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	o.live[p.RunID] = p
	for _, ch := range o.subs[p.RunID] {
		select {
		case <-ch:
		default:
		}
		ch <- p
	}
}

// end closes the run's channels after its last payload.
func (o *orchestra) end(id string) {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	delete(o.live, id)
	for _, ch := range o.subs[id] {
		close(ch)
	}
	delete(o.subs, id)
}

func (o *orchestra) subscribers(id string) int {
	o.lmu.Lock()
	defer o.lmu.Unlock()
	return len(o.subs[id])
}

func (o *orchestra) Seconds(_ context.Context, runID string) ([]engine.MeasuredSecond, error) {
	if _, err := o.Run(context.Background(), runID); err != nil {
		return nil, err
	}
	return nil, nil
}

func (o *orchestra) Compare(ctx context.Context, a, b []string, _ compare.Options) (compare.Comparison, error) {
	for _, id := range append(a, b...) {
		if _, err := o.Seconds(ctx, id); err != nil {
			return compare.Comparison{}, err
		}
	}
	return compare.Comparison{Metrics: []compare.Metric{}, Notes: []string{}, Verdict: compare.Same}, nil
}

func (o *orchestra) RetryEnrichment(_ context.Context, runID string, _ engine.Actor) (engine.Enrichment, error) {
	if _, err := o.Run(context.Background(), runID); err != nil {
		return engine.Enrichment{}, err
	}
	return engine.Enrichment{Status: engine.EnrichmentPending}, nil
}

func (o *orchestra) StopEnrichment(_ context.Context, runID, _ string) (engine.Enrichment, error) {
	if _, err := o.Run(context.Background(), runID); err != nil {
		return engine.Enrichment{}, err
	}
	return engine.Enrichment{}, &engine.Error{Code: engine.CodeConflict,
		Message: "No enrichment of this run is under way."}
}

func (o *orchestra) CheckConnection(ctx context.Context, _ string, dsn secret.Secret) (target.ServerInfo, error) {
	o.lmu.Lock()
	o.checkUntil, _ = ctx.Deadline()
	o.dsns = append(o.dsns, dsn.Reveal())
	o.lmu.Unlock()
	if strings.Contains(dsn.Reveal(), "unreachable") {
		return target.ServerInfo{}, &engine.Error{Code: engine.CodeTarget, Message: "Nothing answers at unreachable:5432.",
			Hint: "Check host and port."}
	}
	return target.ServerInfo{Version: "17.0", RoundTrip: 1500 * time.Microsecond}, nil
}
