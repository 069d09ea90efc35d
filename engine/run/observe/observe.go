// Package observe looks at the server of a run's target beside the load, keeps what was seen with the run's record, and
// makes of it where the time went. The adapter says how the server is asked; one connection of its own asks, and takes
// 1 % of a processor's time, but for a look a second. Nothing here touches the load: what goes wrong is told in the
// run's log.
package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// statementLimit is how long the database executes one statement of an observer.
	statementLimit = time.Second
	// defaultEvery is how often sessions are looked at, minEvery the least that an adapter may ask for.
	defaultEvery, minEvery = 100 * time.Millisecond, 50 * time.Millisecond
	// counterEvery is how often counters are read.
	counterEvery = time.Second
	// adapterTimeout bounds the conversation with the adapter, connectTimeout the opening of the connection.
	adapterTimeout, connectTimeout = 30 * time.Second, 15 * time.Second
	// partEvery is for how long a part of the record is written: what a server that is killed loses.
	partEvery = time.Minute
	// minRetry and maxRetry are between two attempts to see a server that cannot be seen.
	minRetry, maxRetry = time.Second, 30 * time.Second
)

// Options are what an observer is made of; all of them are needed.
type Options struct {
	Deps  prepare.Deps
	RunID string
	// Scenario and Plan lead to the target.
	Scenario engine.Scenario
	Plan     *engine.Plan
	// Epoch is the one in which this server carries the run.
	Epoch int64
	// Dir is a folder of the observer's own, which is removed at its end.
	Dir string
	// Keep stores a part of the record.
	Keep func(ctx context.Context, a engine.Artifact, path string) error
	// Log takes lines for the run's log. It is called from the observer's goroutine.
	Log func(level engine.LogLevel, text string)
}

// Observer looks at one server. Its methods are safe for concurrent use.
type Observer struct {
	opts Options
	stop context.CancelFunc
	done chan struct{}

	mu        sync.Mutex
	collector *findings.Collector
	reason    string

	// clientMu is held for moments only: who tells of the client is the loop of a run.
	clientMu sync.Mutex
	// client are the seconds of the client as they were told live.
	client []clientPoint
}

type clientPoint struct {
	at time.Time
	findings.ClientSecond
}

// Start begins to look in a goroutine, until ctx ends or Stop is called.
func Start(ctx context.Context, goroutine func(func()), o Options) *Observer {
	looking, stop := context.WithCancel(ctx)
	ob := &Observer{opts: o, stop: stop, done: make(chan struct{}), collector: findings.NewCollector()}
	goroutine(func() {
		defer close(ob.done)
		defer func() { _ = os.RemoveAll(o.Dir) }()
		// What was seen is kept also where looking has ended.
		ob.run(looking, context.WithoutCancel(ctx))
	})
	return ob
}

// Stop ends the looking; it may be called twice, and on nil.
func (o *Observer) Stop() {
	if o != nil {
		o.stop()
	}
}

// Wait waits until what was seen is kept, or ctx ends.
func (o *Observer) Wait(ctx context.Context) {
	if o == nil {
		return
	}
	select {
	case <-o.done:
	case <-ctx.Done():
	}
}

func (o *Observer) setReason(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reason = text
}

// session is one look after the other on one connection.
type session struct {
	*Observer
	plan     *plugin.ObservePlan
	attached *prepare.Attached
	conn     target.Observer
	reader   *reader
	looking  budget
	counting budget
	activity turn
	counters []turn
	began    time.Time
}

// run looks until the end; it opens the connection again when it is lost.
func (o *Observer) run(ctx, keeping context.Context) {
	parts := &parts{opts: &o.opts}
	defer func() {
		if err := parts.finish(keeping); err != nil {
			o.opts.Log(engine.LogWarning, "What the server did could not be kept: "+engine.ErrorText(err))
		}
	}()
	wait, told := minRetry, ""
	for ctx.Err() == nil {
		s, err := o.open(ctx)
		if err == nil && s == nil {
			return // there is nothing to observe
		}
		if err == nil {
			wait = minRetry
			err = s.look(ctx, keeping, parts)
			s.close()
		}
		if ctx.Err() != nil {
			return
		}
		text := engine.ErrorText(err)
		o.setReason(text)
		if text != told {
			o.opts.Log(engine.LogWarning, "What the server does cannot be seen now; the load is not concerned. "+text)
			told = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

// open asks the adapter how the server is observed, and opens the connection. It is nil where that cannot be.
func (o *Observer) open(ctx context.Context) (*session, error) {
	adapter, err := o.opts.Deps.Plugins.Adapter(ctx, o.opts.Plan.Adapter.SHA256)
	if err == nil && !adapter.Info().Manifest.Observes {
		o.setReason("The adapter " + adapter.Info().Name + " does not say how its server is observed.")
		return nil, nil
	}
	a, err := prepare.Attach(ctx, o.opts.Deps, o.opts.Scenario, o.opts.Plan, "observer")
	if err != nil {
		return nil, err
	}
	s := &session{Observer: o, attached: a}
	observable, able := a.Database().(target.Observable)
	if !able || !a.Observes() {
		a.Close()
		o.setReason("The adapter " + a.Adapter() + " does not say how its server is observed.")
		return nil, nil
	}
	plan, err := o.ask(ctx, a)
	if err != nil || plan == nil {
		a.Close()
		return nil, err
	}
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if s.conn, err = observable.OpenObserver(connecting, statementLimit); err != nil {
		a.Close()
		if engine.HasCode(err, engine.CodeUnsupported) {
			o.setReason(engine.ErrorText(err))
			o.opts.Log(engine.LogInfo, "What the server does is not observed. "+engine.ErrorText(err))
			return nil, nil
		}
		return nil, fmt.Errorf("opening the observer's connection: %w", err)
	}
	s.plan = plan
	s.reader = newReader(o.opts.RunID, plan.Application, o.opts.Plan.Statements)
	s.activity.every = max(minEvery, time.Duration(plan.ActivityMs)*time.Millisecond)
	if plan.ActivityMs <= 0 {
		s.activity.every = defaultEvery
	}
	s.counters = make([]turn, len(plan.Counters))
	for i, c := range plan.Counters {
		s.counters[i].every = max(counterEvery, time.Duration(c.EveryMs)*time.Millisecond)
	}
	return s, nil
}

// ask holds the conversation with the adapter; nil where nothing can be observed.
func (o *Observer) ask(ctx context.Context, a *prepare.Attached) (*plugin.ObservePlan, error) {
	ctx, cancel := context.WithTimeout(ctx, adapterTimeout)
	defer cancel()
	answer, err := a.CallAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpObserve, Tables: o.opts.Plan.Tables})
	if err != nil {
		return nil, fmt.Errorf("asking the adapter how the server is observed: %w", err)
	}
	p := answer.Observe
	if p == nil || p.Skip != "" || p.Activity == "" {
		reason := "The adapter " + a.Adapter() + " knows nothing to observe."
		if p != nil && p.Skip != "" {
			reason = bounded(p.Skip, maxText)
		}
		o.setReason(reason)
		return nil, nil
	}
	if len(p.Counters) > plugin.MaxObserveStatements {
		return nil, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s observes with %d statements, and %d are allowed.", a.Adapter(), len(p.Counters),
				plugin.MaxObserveStatements), Hint: "the plugin's author has to correct it"}
	}
	p.Missing = p.Missing[:min(len(p.Missing), plugin.MaxObserveMissing)]
	for i := range p.Missing {
		p.Missing[i] = bounded(p.Missing[i], maxText)
	}
	for rule, text := range p.Advice {
		p.Advice[rule] = bounded(text, maxText)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reason = ""
	o.collector.Facts(factsOf(p))
	return p, nil
}

func factsOf(p *plugin.ObservePlan) engine.ServerFacts {
	return engine.ServerFacts{Facts: p.Facts, Advice: p.Advice, Missing: p.Missing}
}

func (s *session) close() {
	_ = s.conn.Close()
	s.attached.Close()
}

// look asks the server, statement by statement, until ctx ends or the connection is lost.
func (s *session) look(ctx, keeping context.Context, parts *parts) error {
	s.began = time.Now()
	s.looking, s.counting = budget{share: lookShare, floor: lookFloor}, budget{share: counterShare}
	ticker := time.NewTicker(s.activity.every / 4)
	defer ticker.Stop()
	plan := s.plan
	if err := parts.begin(factsOf(plan)); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now := time.Now()
		if s.looking.allows(now) && s.activity.due(now.Sub(s.began)) {
			if err := s.activityLook(ctx, plan.Activity, parts); err != nil {
				return err
			}
		}
		for i := range s.counters {
			now := time.Now()
			since := now.Sub(s.began)
			if may := s.counting.allows(now); !may && !s.counters[i].overdue(since) || !s.counters[i].due(since) {
				continue
			}
			if err := s.count(ctx, i, plan.Counters[i], parts); err != nil {
				return err
			}
		}
		if err := parts.turnOver(keeping, time.Now()); err != nil {
			return err
		}
	}
}

// read asks one statement. An error that leaves the connection usable is of the statement alone.
func (s *session) read(ctx context.Context, sql string, t *turn) (rs *target.ResultSet, at time.Time,
	took time.Duration, err error) {
	begin := time.Now()
	rs, err = s.conn.Read(ctx, sql)
	took = time.Since(begin)
	return rs, begin.Add(took / 2), took, err
}

func (s *session) activityLook(ctx context.Context, sql string, parts *parts) error {
	rs, at, took, err := s.read(ctx, sql, &s.activity)
	if err != nil {
		if s.conn.Broken() || ctx.Err() != nil {
			return err
		}
		s.looking.spend(took) // a second went by, and nothing was seen: a gap
		return nil
	}
	l, err := s.reader.look(rs)
	if err != nil {
		return err
	}
	cost := took
	if l.TookMs > 0 {
		cost = time.Duration(l.TookMs * float64(time.Millisecond))
	} else {
		l.TookMs = engine.Milliseconds(took)
	}
	s.looking.spend(s.activity.record(cost))
	l.At = engine.At(at)
	s.mu.Lock()
	s.collector.Look(l)
	s.mu.Unlock()
	return parts.look(l)
}

func (s *session) count(ctx context.Context, i int, c plugin.ObserveStatement, parts *parts) error {
	t := &s.counters[i]
	rs, at, took, err := s.read(ctx, c.SQL, t)
	if err != nil {
		if s.conn.Broken() || ctx.Err() != nil {
			return err
		}
		// What this server or role cannot answer is asked seldom.
		t.every = min(2*t.every, time.Minute)
		s.counting.spend(took)
		return nil
	}
	list, err := s.reader.counters(rs)
	if err != nil {
		return err
	}
	s.counting.spend(t.record(took))
	s.mu.Lock()
	s.collector.Counters(at, list)
	s.mu.Unlock()
	return parts.counters(at, list)
}

// parts writes what is seen into files, and stores them one after the other.
type parts struct {
	opts   *Options
	w      *record.ServerWriter
	number int
	since  time.Time
	facts  engine.ServerFacts
}

// begin takes what is known of the server, with which each part begins.
func (p *parts) begin(f engine.ServerFacts) error {
	p.facts = f
	return p.open()
}

func (p *parts) open() error {
	if p.w != nil {
		return nil
	}
	p.number++
	w, err := record.NewServerWriter(p.opts.Dir, p.opts.RunID, record.ServerName(p.opts.Epoch, p.number))
	if err != nil {
		return err
	}
	p.w, p.since = w, time.Now()
	return w.Facts(p.since, p.facts)
}

func (p *parts) look(l engine.ServerLook) error { return p.w.Look(l) }

func (p *parts) counters(at time.Time, list []engine.ServerCounter) error {
	return p.w.Counters(at, list)
}

// turnOver stores the part when it is old enough, and begins the next one.
func (p *parts) turnOver(ctx context.Context, now time.Time) error {
	if now.Sub(p.since) < partEvery {
		return nil
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	return p.open()
}

// finish stores the part that is being written.
func (p *parts) finish(ctx context.Context) error {
	w := p.w
	if w == nil {
		return nil
	}
	p.w = nil
	if w.Rows() == 0 {
		w.Abandon()
		return nil
	}
	a, path, err := w.Finish()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	return errors.Join(p.opts.Keep(ctx, a, path), os.Remove(path))
}

// keepTimeout bounds the storing of one part.
const keepTimeout = 10 * time.Second

// Dir is the folder of the observer of a run below a folder for files under construction.
func Dir(temp, runID string) string { return filepath.Join(temp, "observe-"+runID) }
