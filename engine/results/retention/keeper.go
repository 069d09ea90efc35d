package retention

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store is what is asked of the control store.
type Store interface {
	store.Settings
	store.Retention
}

// Files keeps the files of runs.
type Files interface {
	Delete(ctx context.Context, runID string) error
	DeleteExecutions(ctx context.Context, runID string) error
	// RemoveSegment removes one file that is no part of executions.
	RemoveSegment(ctx context.Context, runID, name string) error
	// HasExecutions reports whether some of the files have executions.
	HasExecutions(ctx context.Context, runID string) (bool, error)
	// Place names where all of them are, the same for all servers that share it, and says what that is.
	Place() (place, label string, err error)
}

// Options are what a Keeper is made of.
type Options struct {
	Store Store
	Files Files
	// Owner names this server in turns.
	Owner string
	// Every is how often it is looked (10 minutes).
	Every time.Duration
	// Now is this server's clock, time.Now without one. Only how long something takes is measured by it.
	Now func() time.Time
	Log zerolog.Logger
}

// Keeper lets runs go. It is safe for concurrent use.
type Keeper struct {
	o    Options
	end  context.CancelFunc
	wake chan struct{}
	done sync.WaitGroup

	deleted *prometheus.CounterVec
	freed   prometheus.Counter
	failed  prometheus.Counter
	last    prometheus.Gauge
}

// Pass is one look at the runs, and what came of it.
type Pass struct {
	StartedAt  engine.Time `json:"started_at"`
	EndedAt    engine.Time `json:"ended_at" doc:"Null while it goes on."`
	Planned    int         `json:"planned" doc:"How many runs go, or their executions."`
	Done       int         `json:"done"`
	Runs       int         `json:"runs_deleted"`
	Executions int         `json:"executions_deleted" doc:"Of how many runs."`
	Bytes      int64       `json:"bytes_freed" doc:"What the executions took whose files are gone."`
	FilesLeft  int         `json:"files_left" doc:"Of how many runs files could not be removed; it is tried again."`
	Stayed     int         `json:"stayed" doc:"Runs that were pinned, or begun anew, in the meantime."`
	OverBytes  int64       `json:"over_budget_bytes" doc:"By how much executions are above the budget still, because pinned and young runs stay."`
	Error      string      `json:"error,omitempty" doc:"What has gone wrong; it is tried again."`
	CutShort   bool        `json:"cut_short" doc:"It ended before all that was planned: the rules were changed, the server stopped or lost its turn, or the control store was away. The next look goes on."`
}

const (
	lookEvery = 10 * time.Minute
	turn      = 3 * time.Minute // a step takes less; a server that is gone in the middle is replaced after it
	retry     = 5 * time.Second // while it is another's turn
	notedWith = 2 * time.Second // how often progress is noted
	atOnce    = 100             // leftovers
	settingOf = "retention"
	passOf    = "retention.pass"
	by        = "retention"
)

// New makes a Keeper that looks when it is started.
func New(o Options) *Keeper {
	if o.Every <= 0 {
		o.Every = lookEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{o: o, wake: make(chan struct{}, 1),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_retention_deleted_total",
			Help: "Runs that retention has deleted here, and those whose executions it has."},
			[]string{"what"}),
		freed: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadstone_retention_freed_bytes_total",
			Help: "What the executions took whose files were removed here."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadstone_retention_failures_total",
			Help: "Runs and files that retention could not delete here; they are tried again."}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadstone_retention_last_pass_timestamp_seconds",
			Help: "When retention last looked at all runs here."})}
}

// Start begins to look. Close ends it.
func (k *Keeper) Start() {
	life, end := context.WithCancel(context.Background())
	k.end = end
	k.done.Go(func() { k.work(life) })
}

// Close ends it and waits for the step that is under way.
func (k *Keeper) Close() {
	if k.end != nil {
		k.end()
		k.done.Wait()
	}
}

// Wake has it look now.
func (k *Keeper) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) work(life context.Context) {
	for {
		next, err := k.look(life)
		if err != nil && life.Err() == nil {
			k.o.Log.Warn().Err(err).Msg("retention has not done all that it should; it tries again")
		}
		t := time.NewTimer(next)
		select {
		case <-life.Done():
			t.Stop()
			return
		case <-t.C:
		case <-k.wake:
			t.Stop()
		}
	}
}

// Saved are rules with their version.
type Saved struct {
	Rules
	Version   int64       `json:"version" doc:"0 before anything was saved; to be sent back with a change."`
	UpdatedBy string      `json:"updated_by,omitempty"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// Read reads the rules.
func Read(ctx context.Context, s store.Settings) (Saved, error) {
	saved := Saved{Rules: Defaults()}
	v, err := s.Setting(ctx, settingOf)
	if err != nil || v.Version == 0 {
		return saved, err
	}
	saved.Rules = Rules{}
	if err := json.Unmarshal(v.Value, &saved.Rules); err != nil {
		return saved, fmt.Errorf("reading retention: %w", err)
	}
	saved.Version, saved.UpdatedBy, saved.UpdatedAt = v.Version, v.UpdatedBy, v.UpdatedAt
	return saved, nil
}

// Save saves the rules over those of a version.
func (k *Keeper) Save(ctx context.Context, r Rules, version int64, user string) (Saved, error) {
	if err := r.Check(); err != nil {
		return Saved{}, err
	}
	r.KeepTags = append([]string{}, r.KeepTags...)
	text, err := json.Marshal(r)
	if err != nil {
		return Saved{}, fmt.Errorf("writing retention: %w", err)
	}
	v, err := k.o.Store.SaveSetting(ctx, store.Setting{Name: settingOf, Value: text, Version: version, UpdatedBy: user})
	if err != nil {
		return Saved{}, err
	}
	k.Wake()
	return Saved{Rules: r, Version: v.Version, UpdatedBy: v.UpdatedBy, UpdatedAt: v.UpdatedAt}, nil
}

// Preview says what rules come to now, and changes nothing.
func (k *Keeper) Preview(ctx context.Context, r Rules) (Plan, error) {
	plan, _, err := k.plan(ctx, r)
	return plan, err
}

// plan is what rules come to at the time that it is by the store's clock.
func (k *Keeper) plan(ctx context.Context, r Rules) (Plan, time.Time, error) {
	if err := r.Check(); err != nil {
		return Plan{}, time.Time{}, err
	}
	runs, now, err := k.o.Store.EndedRuns(ctx, r.KeepTags)
	if err != nil {
		return Plan{}, now, err
	}
	return r.Plan(runs, now), now, nil
}

// LastPass is what the last look came to, or how far that is which goes on; nil before the first.
func (k *Keeper) LastPass(ctx context.Context) (*Pass, error) {
	p, _, err := k.lastPass(ctx)
	return p, err
}

// lastPass is LastPass, and when it was noted.
func (k *Keeper) lastPass(ctx context.Context) (*Pass, engine.Time, error) {
	v, err := k.o.Store.Setting(ctx, passOf)
	if err != nil || v.Version == 0 {
		return nil, v.UpdatedAt, err
	}
	var p Pass
	if err := json.Unmarshal(v.Value, &p); err != nil {
		return nil, v.UpdatedAt, fmt.Errorf("reading what retention did: %w", err)
	}
	return &p, v.UpdatedAt, nil
}

// Look looks at all runs once, unless it is another server's turn, and lets go what the rules say.
func (k *Keeper) Look(ctx context.Context) error {
	_, err := k.look(ctx)
	return err
}

// look is Look, and says when to look again.
func (k *Keeper) look(ctx context.Context) (next time.Duration, err error) {
	// A server removes what it can reach, whoever's turn it is: others may not be able to. A file that nobody may remove
	// holds up nothing else.
	place, freed, failed, stuck := k.clear(ctx)
	mine, err := k.o.Store.TakeTurn(ctx, settingOf, k.o.Owner, turn)
	if err != nil {
		return k.o.Every, errors.Join(err, stuck)
	}
	if !mine {
		return min(retry, k.o.Every), stuck
	}
	// Another server that was told of a change has its turn at once.
	defer func() {
		err = errors.Join(err, k.ending(ctx, func(ctx context.Context) error {
			return k.o.Store.YieldTurn(ctx, settingOf, k.o.Owner)
		}))
	}()
	rules, err := Read(ctx, k.o.Store)
	if err != nil {
		return k.o.Every, errors.Join(err, stuck)
	}
	plan, now := Plan{}, time.Time{}
	if rules.On {
		plan, now, err = k.plan(ctx, rules.Rules)
	}
	if err == nil { // also while it is off: what was above a budget then is not above one that comes later
		stuck = errors.Join(stuck, k.noteOver(ctx, plan, now, rules.On))
	}
	if err = errors.Join(err, k.broken(ctx)); err != nil || !rules.On {
		return k.o.Every, errors.Join(err, stuck)
	}
	k.last.Set(float64(now.Unix()))
	if len(plan.Victims) == 0 {
		return k.o.Every, stuck
	}
	// The clock here may be wrong, and yet tells how much time has passed.
	began := k.o.Now()
	pass := Pass{StartedAt: engine.At(now), Planned: len(plan.Victims), OverBytes: plan.Over,
		Bytes: freed, FilesLeft: failed}
	halted, err := k.carryOut(ctx, place, rules, plan, &pass)
	if err = errors.Join(stuck, err); err != nil {
		pass.Error = words(err)
	}
	if halted == lostTurn {
		return min(retry, k.o.Every), err // who has it now tells
	}
	next, pass.CutShort, pass.EndedAt = k.o.Every, halted != "", engine.At(now.Add(k.o.Now().Sub(began)))
	if halted == otherRules {
		next = 0
	}
	return next, errors.Join(err, k.ending(ctx, func(ctx context.Context) error { return k.note(ctx, pass) }))
}

// ending does what ends a look, also when the server ends.
func (k *Keeper) ending(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notedWith)
	defer cancel()
	return do(ctx)
}

// broken ends a pass in the books whose server ended in the middle: the turn is ours.
func (k *Keeper) broken(ctx context.Context) error {
	p, noted, err := k.lastPass(ctx)
	if err != nil || p == nil || !p.EndedAt.IsZero() {
		return err
	}
	p.CutShort, p.EndedAt = true, noted
	return k.note(ctx, *p)
}

// Why a pass is cut short.
const (
	lostTurn   = "turn"
	otherRules = "rules"
	away       = "store"
)

// carryOut lets go what was planned, and says why it has not looked at all of it.
func (k *Keeper) carryOut(ctx context.Context, place string, rules Saved, plan Plan, pass *Pass) (halted string,
	err error) {
	var errs []error
	var noted time.Time
	for _, v := range plan.Victims {
		if now := k.o.Now(); now.Sub(noted) >= notedWith {
			noted = now
			mine, err := k.o.Store.TakeTurn(ctx, settingOf, k.o.Owner, turn)
			if err != nil {
				return away, errors.Join(append(errs, err)...)
			}
			if !mine {
				return lostTurn, errors.Join(errs...)
			}
			// What was decided meanwhile counts at once.
			there, err := Read(ctx, k.o.Store)
			if err == nil && there.Version != rules.Version {
				return otherRules, errors.Join(errs...)
			}
			if err = errors.Join(err, k.note(ctx, *pass)); err != nil {
				return away, errors.Join(append(errs, err)...)
			}
		}
		err := k.o.Store.Expire(ctx, store.Expiry{RunID: v.RunID, Whole: v.Whole, By: by, KeepTags: rules.KeepTags,
			OlderThan: v.Age, Line: line(v)})
		pass.Done++
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			pass.Stayed++
			continue
		case err != nil:
			k.failed.Inc()
			errs = append(errs, err)
			if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				pass.Done--
				return away, errors.Join(errs...)
			}
			continue
		}
		k.gone(v, pass)
		freed, err := k.remove(ctx, store.Leftover{RunID: v.RunID, Place: place, Whole: v.Whole, Bytes: v.Bytes})
		if pass.Bytes += freed; err != nil {
			pass.FilesLeft++
			errs = append(errs, err)
		}
	}
	return "", errors.Join(errs...)
}

// line is what the audit log says of a run that is let go.
func line(v Victim) store.AuditEntry {
	action := "run.delete_executions"
	if v.Whole {
		action = "run.delete"
	}
	return store.AuditEntry{UserName: by, Action: action, Object: v.RunID,
		Detail: fmt.Sprintf("%s, ended %s, %d bytes (retention: %s)", v.RunName, v.EndedAt.UTC().Format(time.RFC3339),
			v.Bytes, v.Reason)}
}

// gone counts what was let go.
func (k *Keeper) gone(v Victim, pass *Pass) {
	what := "executions"
	if v.Whole {
		what = "runs"
		pass.Runs++
	} else {
		pass.Executions++
	}
	k.deleted.WithLabelValues(what).Inc()
	k.o.Log.Info().Str("run_id", v.RunID).Str("reason", string(v.Reason)).Bool("whole", v.Whole).Int64("bytes", v.Bytes).
		Msg("retention has let a run go")
}

// clear removes files of what was forgotten, by whomever, from the place that this server reaches. It says what that
// freed, and of how many runs files stay.
func (k *Keeper) clear(ctx context.Context) (place string, freed int64, failed int, err error) {
	place, label, err := k.o.Files.Place()
	if err != nil {
		return "", 0, 0, err
	}
	if err := k.o.Store.Reach(ctx, store.Place{Place: place, Label: label}); err != nil {
		return place, 0, 0, err
	}
	var first error
	for tried := map[store.Leftover]bool{}; ; {
		left, err := k.o.Store.Leftovers(ctx, place, atOnce)
		if err != nil {
			return place, freed, failed, errors.Join(first, err)
		}
		more := false
		for _, l := range left {
			if tried[l] || ctx.Err() != nil {
				continue
			}
			tried[l], more = true, true
			n, err := k.remove(ctx, l)
			if freed += n; err != nil {
				failed++
				first = cmp.Or(first, err)
			}
		}
		if !more {
			return place, freed, failed, first
		}
	}
}

// remove removes the files of a leftover, and says what the executions took that are gone.
func (k *Keeper) remove(ctx context.Context, l store.Leftover) (freed int64, err error) {
	there, err := k.o.Files.HasExecutions(ctx, l.RunID)
	switch {
	case err != nil:
	case l.Part != "":
		there, err = false, k.o.Files.RemoveSegment(ctx, l.RunID, l.Part)
	case l.Whole:
		err = k.o.Files.Delete(ctx, l.RunID)
	default:
		err = k.o.Files.DeleteExecutions(ctx, l.RunID)
	}
	if err != nil {
		k.failed.Inc()
		err = fmt.Errorf("removing the files of run %s: %w", l.RunID, err)
		return 0, errors.Join(err, k.ending(ctx, func(ctx context.Context) error {
			return k.o.Store.Tried(ctx, l, words(err))
		}))
	}
	if there {
		freed = l.Bytes
		k.freed.Add(float64(freed))
	}
	return freed, k.o.Store.Cleared(ctx, l)
}

// words are an error for admins, who need the path and what the system said of it.
func words(err error) string {
	if worded, ok := errors.AsType[*engine.Error](err); ok {
		return worded.Message
	}
	return err.Error()
}

// Left is what is left over, by place.
func (k *Keeper) Left(ctx context.Context) ([]store.LeftPlace, error) {
	return k.o.Store.LeftPlaces(ctx)
}

func (k *Keeper) note(ctx context.Context, p Pass) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("writing what retention did: %w", err)
	}
	there, err := k.o.Store.Setting(ctx, passOf)
	if err == nil {
		_, err = k.o.Store.SaveSetting(ctx,
			store.Setting{Name: passOf, Value: text, Version: there.Version, UpdatedBy: k.o.Owner})
	}
	return err
}

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(k, out) }

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{k.deleted, k.freed, k.failed, k.last} {
		c.Collect(out)
	}
}
