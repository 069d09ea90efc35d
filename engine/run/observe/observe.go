// Package observe looks at the server of a run's target beside the load, keeps what was seen with the run's record, and
// makes of it where the time went. The adapter says how the server is asked; one connection of its own asks, and takes
// 1 % of a processor's time, but for a look a second. Nothing here touches the load: what goes wrong is told in the
// run's log.
package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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
	// minRetry and maxRetry are between two attempts to see a server that cannot be seen. Only goodLooks of a session make
	// the next attempt an early one.
	minRetry, maxRetry = time.Second, 30 * time.Second
	goodLooks          = 10
	// maxPartBytes and maxBytes bound what is kept of a minute, and of a run.
	maxPartBytes, maxBytes = 32 << 20, 1 << 30
	// maxLines bounds what one observer says in the run's log: the words are the server's.
	maxLines = 50
	// failures in a row make a statement one that does not work: the server may be too busy for one of them.
	failures = 3
	// maxCounterEvery is how seldom a statement is asked that does not work.
	maxCounterEvery = time.Minute
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

	mu     sync.Mutex
	reason string
	// seen waits for the collector, which a view may be judging: who looks at the server does not wait for that.
	seen []func(c *findings.Collector)
	// trouble are sentences on statements that do not work, by their ids.
	trouble map[string]string
	// tooLarge are statements whose answers cost the connection.
	tooLarge map[string]bool
	lines    int

	viewMu    sync.Mutex
	collector *findings.Collector
	judged    atomic.Pointer[judgedView]

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
	ob := newObserver(o, stop)
	goroutine(func() {
		defer close(ob.done)
		defer func() { _ = os.RemoveAll(o.Dir) }()
		// What was seen is kept also where looking has ended.
		ob.run(looking, context.WithoutCancel(ctx))
	})
	return ob
}

func newObserver(o Options, stop context.CancelFunc) *Observer {
	return &Observer{opts: o, stop: stop, done: make(chan struct{}), collector: findings.NewCollector(),
		trouble: map[string]string{}, tooLarge: map[string]bool{}}
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

// say writes a line into the run's log, maxLines at most.
func (o *Observer) say(level engine.LogLevel, text string) {
	o.mu.Lock()
	o.lines++
	n := o.lines
	o.mu.Unlock()
	if n == maxLines {
		text += " Further lines about the observation are left out."
	}
	if n <= maxLines {
		o.opts.Log(level, text)
	}
}

// tell gives what was seen to the collector, at once where nobody judges what it has.
func (o *Observer) tell(what func(c *findings.Collector)) {
	o.mu.Lock()
	o.seen = append(o.seen, what)
	o.mu.Unlock()
	if o.viewMu.TryLock() {
		o.collect()
		o.viewMu.Unlock()
	}
}

// collect takes what waits for the collector. viewMu is held.
func (o *Observer) collect() {
	o.mu.Lock()
	seen := o.seen
	o.seen = nil
	o.mu.Unlock()
	for _, what := range seen {
		what(o.collector)
	}
}

// session is one look after the other on one connection.
type session struct {
	*Observer
	plan     *plugin.ObservePlan
	attached *prepare.Attached
	conn     target.Observer
	reader   *reader
	parts    *parts
	looks    int
	looking  budget
	counting budget
	activity turn
	counters []counter
	began    time.Time
}

// counter is a statement of counters.
type counter struct {
	plugin.ObserveStatement
	turn
	base time.Duration
}

// run looks until the end; it opens the connection again when it is lost.
func (o *Observer) run(ctx, keeping context.Context) {
	parts := &parts{opts: &o.opts, say: o.say}
	defer func() {
		if err := parts.finish(keeping); err != nil {
			o.say(engine.LogWarning, "Storing the server samples failed: "+engine.ErrorText(err))
		}
	}()
	wait, told := minRetry, ""
	for ctx.Err() == nil {
		s, err := o.open(ctx)
		if err == nil && s == nil {
			return // there is nothing to observe
		}
		if err == nil {
			err = s.look(ctx, keeping, parts)
			s.close()
			if s.looks >= goodLooks {
				wait = minRetry
			}
		}
		if ctx.Err() != nil {
			return
		}
		text := engine.ErrorText(err)
		o.setReason(text)
		if text != told {
			o.say(
				engine.LogWarning,
				"The observer cannot read the server's activity and retries. "+
					"The load is not affected. "+text,
			)
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
	a, err := prepare.AttachBeside(ctx, o.opts.Deps, o.opts.Scenario, o.opts.Plan, "observer")
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
			o.say(engine.LogInfo, "What the server does is not observed. "+engine.ErrorText(err))
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
	for _, c := range plan.Counters {
		s.addCounter(c)
	}
	return s, nil
}

// addCounter adds a statement of counters, unless its answer is known to cost the connection.
func (s *session) addCounter(c plugin.ObserveStatement) {
	if s.tooLarge[c.SQL] {
		for _, p := range c.Parts {
			p.Parts = nil
			s.addCounter(p)
		}
		return
	}
	every := max(counterEvery, time.Duration(c.EveryMs)*time.Millisecond)
	s.counters = append(s.counters, counter{ObserveStatement: c, turn: turn{every: every}, base: every})
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
	if n := len(p.Texts()); n > plugin.MaxObserveStatements {
		return nil, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s observes with %d statements, and %d are allowed.", a.Adapter(), n,
				plugin.MaxObserveStatements), Hint: "the plugin's author has to correct it"}
	}
	p.Missing = p.Missing[:min(len(p.Missing), plugin.MaxObserveMissing)]
	for i := range p.Missing {
		p.Missing[i] = bounded(p.Missing[i], maxText)
	}
	for rule, text := range p.Advice {
		p.Advice[rule] = bounded(text, maxText)
	}
	o.setReason("")
	return p, nil
}

// facts are what is known of the server now: statements that do not work are among what is missing.
func (s *session) facts() engine.ServerFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := engine.ServerFacts{Facts: s.plan.Facts, Advice: s.plan.Advice, Missing: slices.Clone(s.plan.Missing)}
	for _, id := range slices.Sorted(maps.Keys(s.trouble)) {
		f.Missing = append(f.Missing, s.trouble[id])
	}
	return f
}

// tellFacts gives them to the view and to the record.
func (s *session) tellFacts() error {
	f := s.facts()
	s.tell(func(c *findings.Collector) { c.Facts(f) })
	return s.parts.begin(f)
}

// failed takes that a statement has failed n times in a row, and says so once.
func (s *session) failed(id string, n int, err error) error {
	s.mu.Lock()
	_, known := s.trouble[id]
	if known || n < failures {
		s.mu.Unlock()
		return nil
	}
	text := "The server does not answer the observer's statement " + bounded(id, maxName) + ": " +
		bounded(engine.ErrorText(err), maxText)
	s.trouble[id] = text
	s.mu.Unlock()
	s.say(engine.LogWarning, text)
	return s.tellFacts()
}

// answered takes that a statement works, and says so where it did not.
func (s *session) answered(id string) error {
	s.mu.Lock()
	_, known := s.trouble[id]
	delete(s.trouble, id)
	s.mu.Unlock()
	if !known {
		return nil
	}
	s.say(engine.LogInfo, "The server answers the observer's statement "+bounded(id, maxName)+" again.")
	return s.tellFacts()
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
	s.parts = parts
	if err := s.tellFacts(); err != nil {
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
			if err := s.activityLook(ctx, plan.Activity); err != nil {
				return err
			}
		}
		for i := 0; i < len(s.counters); i++ { // a statement that fails may be replaced by its parts
			now := time.Now()
			since := now.Sub(s.began)
			if may := s.counting.allows(now); !may && !s.counters[i].overdue(since) || !s.counters[i].due(since) {
				continue
			}
			if err := s.count(ctx, i); err != nil {
				return err
			}
		}
		if err := parts.turnOver(keeping, time.Now()); err != nil {
			return err
		}
	}
}

// read asks one statement. An error that leaves the connection usable is of the statement alone.
func (s *session) read(ctx context.Context, sql string) (rs *target.ResultSet, at time.Time, took time.Duration,
	err error) {
	begin := time.Now()
	rs, err = s.conn.Read(ctx, sql)
	took = time.Since(begin)
	return rs, begin.Add(took / 2), took, err
}

// activityID is how the statement of sessions is named to users.
const activityID = "activity"

func (s *session) activityLook(ctx context.Context, sql string) error {
	rs, at, took, err := s.read(ctx, sql)
	if err != nil {
		if s.conn.Broken() || ctx.Err() != nil {
			return err
		}
		s.looking.spend(took) // a second went by, and nothing was seen: a gap
		s.activity.failed++
		if s.activity.failed >= failures {
			s.setReason(bounded(engine.ErrorText(err), maxText))
		}
		return s.failed(activityID, s.activity.failed, err)
	}
	l, err := s.reader.look(rs)
	if err != nil {
		return err
	}
	s.looks++
	if s.activity.failed > 0 {
		s.activity.failed = 0
		s.setReason("")
	}
	s.looking.spend(max(s.activity.record(saidCost(l.TookMs, took)), answerCost(rs)))
	if l.TookMs <= 0 {
		l.TookMs = engine.Milliseconds(took)
	}
	l.At = engine.At(at)
	s.tell(func(c *findings.Collector) { c.Look(l) })
	return errors.Join(s.answered(activityID), s.parts.look(l))
}

// count asks one statement of counters. What the server or the role cannot answer is asked seldom, until it can; a
// statement that has parts gives way to them, so that one of them costs no other its numbers.
func (s *session) count(ctx context.Context, i int) error {
	t := &s.counters[i]
	rs, at, took, err := s.read(ctx, t.SQL)
	if err != nil {
		if errors.Is(err, target.ErrTooLarge) {
			s.tooLarge[t.SQL] = true
			return errors.Join(err, s.failed(t.ID, failures, err))
		}
		if s.conn.Broken() || ctx.Err() != nil {
			return err
		}
		s.counting.spend(took)
		t.failed++
		t.every = min(2*t.every, max(t.base, maxCounterEvery))
		if len(t.Parts) > 0 && t.failed > 1 {
			list := t.Parts
			s.counters = slices.Delete(s.counters, i, i+1)
			for _, p := range list {
				p.Parts = nil
				s.addCounter(p)
			}
			return nil
		}
		return s.failed(t.ID, t.failed, err)
	}
	list, err := s.reader.counters(rs)
	if err != nil {
		return err
	}
	if t.failed > 0 {
		t.failed, t.every, t.next = 0, t.base, 0
	}
	s.counting.spend(max(t.record(took), answerCost(rs)))
	s.tell(func(c *findings.Collector) { c.Counters(at, list) })
	return errors.Join(s.answered(t.ID), s.parts.counters(at, list))
}

// parts writes what is seen into files, and stores them one after the other.
type parts struct {
	opts   *Options
	w      *record.ServerWriter
	number int
	since  time.Time
	facts  engine.ServerFacts
	// kept are the bytes of the parts before this one; full says that the run has as many as it may.
	kept int64
	full bool
	say  func(level engine.LogLevel, text string)
}

// begin takes what is known of the server, with which each part begins.
func (p *parts) begin(f engine.ServerFacts) error {
	p.facts = f
	if p.w != nil {
		return p.w.Facts(time.Now(), f)
	}
	return p.open()
}

func (p *parts) open() error {
	p.number++
	w, err := record.NewServerWriter(p.opts.Dir, p.opts.RunID, record.ServerName(p.opts.Epoch, p.number))
	if err != nil {
		return err
	}
	p.w, p.since = w, time.Now()
	return w.Facts(p.since, p.facts)
}

// room reports whether more may be kept, and says once when it may not.
func (p *parts) room() bool {
	if p.w.Size() < maxPartBytes && p.kept+p.w.Size() < maxBytes {
		return true
	}
	if !p.full {
		p.full = true
		p.say(engine.LogWarning, fmt.Sprintf("The server shows more than is kept of a run: %d MB a minute and %d MB in all. "+
			"What is above that is not stored.", maxPartBytes>>20, maxBytes>>20))
	}
	return false
}

func (p *parts) look(l engine.ServerLook) error {
	if !p.room() {
		return nil
	}
	return p.w.Look(l)
}

func (p *parts) counters(at time.Time, list []engine.ServerCounter) error {
	if !p.room() {
		return nil
	}
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
	p.kept += a.SizeBytes
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	return errors.Join(p.opts.Keep(ctx, a, path), os.Remove(path))
}

// keepTimeout bounds the storing of one part.
const keepTimeout = 10 * time.Second

// Dir is the folder of the observer of a run below a folder for files under construction.
func Dir(temp, runID string) string { return filepath.Join(temp, "observe-"+runID) }
