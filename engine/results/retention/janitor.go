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

// Runs finds the runs that may go, and lets them go.
type Runs interface {
	// EndedRuns lists the runs that are over and whose enrichment is, the oldest first, and says what time it is by the
	// store's clock, which judges their ages.
	EndedRuns(ctx context.Context, keepTags []string) (runs []store.EndedRun, now time.Time, err error)
	// Expire lets a run go that is over, old enough and not pinned, else ErrConflict; all is judged in the transaction
	// that deletes, and whoever makes a pin meanwhile waits, or is waited for. Its files are queued for deletion.
	// ErrNotFound without the run; executions that went before are ErrConflict.
	Expire(ctx context.Context, e store.Expiry) error
}

// Deletions are the files that are still to be removed, in each place where servers keep files. Removing a run and its
// files cannot be one transaction: the store remembers the files until it is told that they are gone.
type Deletions interface {
	// RegisterLocation tells that a server keeps files of runs there: what is deleted is queued for each such place.
	RegisterLocation(ctx context.Context, p store.FileLocation) error
	// QueueDeletion notes that files of a run are to be removed from a place, or one of them.
	QueueDeletion(ctx context.Context, l store.PendingDeletion) error
	// PendingDeletions lists some of the files of a place, and of those whose place is not known, that are queued for
	// deletion, so many at most: first those that nobody has tried to delete, then those of which the last attempt is
	// longest ago.
	PendingDeletions(ctx context.Context, place string, most int) ([]store.PendingDeletion, error)
	// DeletionFailed tells that files could not be removed, and why.
	DeletionFailed(ctx context.Context, l store.PendingDeletion, problem string) error
	// DeletionDone tells that files are gone from their place. Repeating it is harmless.
	DeletionDone(ctx context.Context, l store.PendingDeletion) error
	// DeletionBacklogs sums up what is left over, by place.
	DeletionBacklogs(ctx context.Context) ([]store.LeftPlace, error)
}

// Store is what is asked of the control store.
type Store interface {
	store.Settings
	Runs
	Deletions
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

// Options are what a Janitor is made of.
type Options struct {
	Store Store
	Files Files
	// Owner names this server in turns.
	Owner string
	// Interval is how often it is looked (10 minutes).
	Interval time.Duration
	// RetryDelay is how soon a server looks again while another one has the lease (5 s).
	RetryDelay time.Duration
	// Now is this server's clock, time.Now without one. Only how long something takes is measured by it.
	Now func() time.Time
	Log zerolog.Logger
}

// Janitor lets runs go. It is safe for concurrent use.
type Janitor struct {
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
	EndedAt    engine.Time `json:"ended_at" doc:"Null during the pass."`
	Planned    int         `json:"planned" doc:"How many runs go, or their executions."`
	Done       int         `json:"done"`
	Runs       int         `json:"runs_deleted"`
	Executions int         `json:"executions_deleted" doc:"Of how many runs."`
	Bytes      int64       `json:"bytes_freed" doc:"What the executions took whose files are gone."`
	FilesLeft  int         `json:"files_left" doc:"Of how many runs files could not be removed; it is tried again."`
	Stayed     int         `json:"stayed" doc:"Runs that were pinned or restarted in the meantime."`
	OverBytes  int64       `json:"over_budget_bytes" doc:"By how much executions are above the budget still, because pinned and young runs stay."`
	Error      string      `json:"error,omitempty" doc:"What has gone wrong; it is tried again."`
	CutShort   bool        `json:"cut_short" doc:"The pass ended early: the rules changed, the server stopped or lost its lease, or the control store was unavailable. The next pass continues."`
}

const (
	passInterval        = 10 * time.Minute
	leaseDuration       = 3 * time.Minute // a step takes less; a server that is gone in the middle is replaced after it
	retryDelay          = 5 * time.Second // while it is another's turn
	progressInterval    = 2 * time.Second // how often progress is noted
	maxPendingDeletions = 100             // leftovers
	rulesSetting        = "retention"
	passSetting         = "retention.pass"
	auditActor          = "retention"
)

// New makes a Janitor that looks when it is started.
func New(o Options) *Janitor {
	if o.Interval <= 0 {
		o.Interval = passInterval
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = retryDelay
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Janitor{o: o, wake: make(chan struct{}, 1),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_retention_deleted_total",
			Help: "Runs that retention on this server deleted, and runs whose executions it deleted."},
			[]string{"what"}),
		freed: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadstone_retention_freed_bytes_total",
			Help: "Bytes of executions whose files retention on this server removed."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadstone_retention_failures_total",
			Help: "Runs and files that retention on this server failed to delete; it retries."}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadstone_retention_last_pass_timestamp_seconds",
			Help: "Time of the last retention pass over all runs on this server, as Unix seconds."})}
}

// Start begins to look. Close ends it.
func (k *Janitor) Start() {
	life, end := context.WithCancel(context.Background())
	k.end = end
	k.done.Go(func() { k.work(life) })
}

// Close ends it and waits for the step that is under way.
func (k *Janitor) Close() {
	if k.end != nil {
		k.end()
		k.done.Wait()
	}
}

// Wake has it look now.
func (k *Janitor) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Janitor) work(life context.Context) {
	for {
		next, err := k.runPass(life)
		if err != nil && life.Err() == nil {
			k.o.Log.Warn().Err(err).Msg("retention did not finish; it retries")
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

// SavedRules are rules with their version.
type SavedRules struct {
	Rules
	Version   int64       `json:"version" doc:"0 before anything was saved; to be sent back with a change."`
	UpdatedBy string      `json:"updated_by,omitempty"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// ReadRules reads the rules.
func ReadRules(ctx context.Context, s store.Settings) (SavedRules, error) {
	saved := SavedRules{Rules: Defaults()}
	v, err := s.Setting(ctx, rulesSetting)
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
func (k *Janitor) Save(ctx context.Context, r Rules, version int64, user string) (SavedRules, error) {
	if err := r.Check(); err != nil {
		return SavedRules{}, err
	}
	r.KeepTags = append([]string{}, r.KeepTags...)
	text, err := json.Marshal(r)
	if err != nil {
		return SavedRules{}, fmt.Errorf("writing retention: %w", err)
	}
	v, err := k.o.Store.SaveSetting(ctx, store.Setting{Name: rulesSetting, Value: text, Version: version, UpdatedBy: user})
	if err != nil {
		return SavedRules{}, err
	}
	k.Wake()
	return SavedRules{Rules: r, Version: v.Version, UpdatedBy: v.UpdatedBy, UpdatedAt: v.UpdatedAt}, nil
}

// Preview says what rules come to now, and changes nothing.
func (k *Janitor) Preview(ctx context.Context, r Rules) (Plan, error) {
	plan, _, err := k.plan(ctx, r)
	return plan, err
}

// plan is what rules come to at the time that it is by the store's clock.
func (k *Janitor) plan(ctx context.Context, r Rules) (Plan, time.Time, error) {
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
func (k *Janitor) LastPass(ctx context.Context) (*Pass, error) {
	p, _, err := k.lastPass(ctx)
	return p, err
}

// lastPass is LastPass, and when it was noted.
func (k *Janitor) lastPass(ctx context.Context) (*Pass, engine.Time, error) {
	v, err := k.o.Store.Setting(ctx, passSetting)
	if err != nil || v.Version == 0 {
		return nil, v.UpdatedAt, err
	}
	var p Pass
	if err := json.Unmarshal(v.Value, &p); err != nil {
		return nil, v.UpdatedAt, fmt.Errorf("reading what retention did: %w", err)
	}
	return &p, v.UpdatedAt, nil
}

// RunPass looks at all runs once, unless it is another server's turn, and lets go what the rules say.
func (k *Janitor) RunPass(ctx context.Context) error {
	_, err := k.runPass(ctx)
	return err
}

// runPass is Look, and says when to look again.
func (k *Janitor) runPass(ctx context.Context) (next time.Duration, err error) {
	// A server removes what it can reach, whoever's turn it is: others may not be able to. A file that nobody may remove
	// holds up nothing else.
	place, freed, failed, stuck := k.deletePending(ctx)
	mine, err := k.o.Store.AcquireTaskLease(ctx, rulesSetting, k.o.Owner, leaseDuration)
	if err != nil {
		return k.o.Interval, errors.Join(err, stuck)
	}
	if !mine {
		return min(k.o.RetryDelay, k.o.Interval), stuck
	}
	// Another server that was told of a change has its turn at once.
	defer func() {
		err = errors.Join(err, k.withGrace(ctx, func(ctx context.Context) error {
			return k.o.Store.ReleaseTaskLease(ctx, rulesSetting, k.o.Owner)
		}))
	}()
	rules, err := ReadRules(ctx, k.o.Store)
	if err != nil {
		return k.o.Interval, errors.Join(err, stuck)
	}
	plan, now := Plan{}, time.Time{}
	if rules.Enabled {
		plan, now, err = k.plan(ctx, rules.Rules)
	}
	if err == nil { // also while it is off: what was above a budget then is not above one that comes later
		stuck = errors.Join(stuck, k.saveOverBudget(ctx, plan, now, rules.Enabled))
	}
	if err = errors.Join(err, k.closeBrokenPass(ctx)); err != nil || !rules.Enabled {
		return k.o.Interval, errors.Join(err, stuck)
	}
	k.last.Set(float64(now.Unix()))
	if len(plan.Victims) == 0 {
		return k.o.Interval, stuck
	}
	// The clock here may be wrong, and yet tells how much time has passed.
	began := k.o.Now()
	pass := Pass{StartedAt: engine.At(now), Planned: len(plan.Victims), OverBytes: plan.Over,
		Bytes: freed, FilesLeft: failed}
	halted, err := k.execute(ctx, place, rules, plan, &pass)
	if err = errors.Join(stuck, err); err != nil {
		pass.Error = adminMessage(err)
	}
	if halted == haltLeaseLost {
		return min(k.o.RetryDelay, k.o.Interval), err // who has it now tells
	}
	next, pass.CutShort, pass.EndedAt = k.o.Interval, halted != "", engine.At(now.Add(k.o.Now().Sub(began)))
	if halted == haltRulesChanged {
		next = 0
	}
	return next, errors.Join(err, k.withGrace(ctx, func(ctx context.Context) error { return k.savePass(ctx, pass) }))
}

// withGrace does what ends a look, also when the server ends.
func (k *Janitor) withGrace(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), progressInterval)
	defer cancel()
	return do(ctx)
}

// closeBrokenPass ends a pass in the books whose server ended in the middle: the turn is ours.
func (k *Janitor) closeBrokenPass(ctx context.Context) error {
	p, noted, err := k.lastPass(ctx)
	if err != nil || p == nil || !p.EndedAt.IsZero() {
		return err
	}
	p.CutShort, p.EndedAt = true, noted
	return k.savePass(ctx, *p)
}

// Why a pass is cut short.
const (
	haltLeaseLost        = "turn"
	haltRulesChanged     = "rules"
	haltStoreUnavailable = "store"
)

// execute lets go what was planned, and says why it has not looked at all of it.
func (k *Janitor) execute(ctx context.Context, place string, rules SavedRules, plan Plan, pass *Pass) (halted string,
	err error) {
	var errs []error
	var noted time.Time
	for _, v := range plan.Victims {
		if now := k.o.Now(); now.Sub(noted) >= progressInterval {
			noted = now
			mine, err := k.o.Store.AcquireTaskLease(ctx, rulesSetting, k.o.Owner, leaseDuration)
			if err != nil {
				return haltStoreUnavailable, errors.Join(append(errs, err)...)
			}
			if !mine {
				return haltLeaseLost, errors.Join(errs...)
			}
			// What was decided meanwhile counts at once.
			there, err := ReadRules(ctx, k.o.Store)
			if err == nil && there.Version != rules.Version {
				return haltRulesChanged, errors.Join(errs...)
			}
			if err = errors.Join(err, k.savePass(ctx, *pass)); err != nil {
				return haltStoreUnavailable, errors.Join(append(errs, err)...)
			}
		}
		err := k.o.Store.Expire(ctx, store.Expiry{RunID: v.RunID, Whole: v.Whole, By: auditActor, KeepTags: rules.KeepTags,
			OlderThan: v.Age, Line: auditEntry(v)})
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
				return haltStoreUnavailable, errors.Join(errs...)
			}
			continue
		}
		k.countDeleted(v, pass)
		freed, err := k.removeFiles(
			ctx,
			store.PendingDeletion{RunID: v.RunID, Location: place, Whole: v.Whole, Bytes: v.Bytes},
		)
		if pass.Bytes += freed; err != nil {
			pass.FilesLeft++
			errs = append(errs, err)
		}
	}
	return "", errors.Join(errs...)
}

// auditEntry is what the audit log says of a run that is let go.
func auditEntry(v Victim) store.AuditEntry {
	action := "run.delete_executions"
	if v.Whole {
		action = "run.delete"
	}
	return store.AuditEntry{UserName: auditActor, Action: action, Object: v.RunID,
		Detail: fmt.Sprintf("%s, ended %s, %d bytes (retention: %s)", v.RunName, v.EndedAt.UTC().Format(time.RFC3339),
			v.Bytes, v.Reason)}
}

// countDeleted counts what was let go.
func (k *Janitor) countDeleted(v Victim, pass *Pass) {
	what := "executions"
	if v.Whole {
		what = "runs"
		pass.Runs++
	} else {
		pass.Executions++
	}
	k.deleted.WithLabelValues(what).Inc()
	k.o.Log.Info().Str("run_id", v.RunID).Str("reason", string(v.Reason)).Bool("whole", v.Whole).Int64("bytes", v.Bytes).
		Msg("retention deleted a run")
}

// deletePending removes files of what was forgotten, by whomever, from the place that this server reaches. It says
// what that freed, and of how many runs files stay.
func (k *Janitor) deletePending(ctx context.Context) (place string, freed int64, failed int, err error) {
	place, label, err := k.o.Files.Place()
	if err != nil {
		return "", 0, 0, err
	}
	if err := k.o.Store.RegisterLocation(ctx, store.FileLocation{ID: place, Label: label}); err != nil {
		return place, 0, 0, err
	}
	var first error
	for tried := map[store.PendingDeletion]bool{}; ; {
		left, err := k.o.Store.PendingDeletions(ctx, place, maxPendingDeletions)
		if err != nil {
			return place, freed, failed, errors.Join(first, err)
		}
		more := false
		for _, l := range left {
			if tried[l] || ctx.Err() != nil {
				continue
			}
			tried[l], more = true, true
			n, err := k.removeFiles(ctx, l)
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

// removeFiles removes files that are queued, and says what the executions took that are gone.
func (k *Janitor) removeFiles(ctx context.Context, l store.PendingDeletion) (freed int64, err error) {
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
		return 0, errors.Join(err, k.withGrace(ctx, func(ctx context.Context) error {
			return k.o.Store.DeletionFailed(ctx, l, adminMessage(err))
		}))
	}
	if there {
		freed = l.Bytes
		k.freed.Add(float64(freed))
	}
	return freed, k.o.Store.DeletionDone(ctx, l)
}

// adminMessage are an error for admins, who need the path and what the system said of it.
func adminMessage(err error) string {
	if worded, ok := errors.AsType[*engine.Error](err); ok {
		return worded.Message
	}
	return err.Error()
}

// Backlogs is what is left over, by place.
func (k *Janitor) Backlogs(ctx context.Context) ([]store.LeftPlace, error) {
	return k.o.Store.DeletionBacklogs(ctx)
}

func (k *Janitor) savePass(ctx context.Context, p Pass) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("writing what retention did: %w", err)
	}
	there, err := k.o.Store.Setting(ctx, passSetting)
	if err == nil {
		_, err = k.o.Store.SaveSetting(ctx,
			store.Setting{Name: passSetting, Value: text, Version: there.Version, UpdatedBy: k.o.Owner})
	}
	return err
}

// Describe implements prometheus.Collector.
func (k *Janitor) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(k, out) }

// Collect implements prometheus.Collector.
func (k *Janitor) Collect(out chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{k.deleted, k.freed, k.failed, k.last} {
		c.Collect(out)
	}
}
