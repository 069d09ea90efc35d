package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	AppendAudit(ctx context.Context, e store.AuditEntry) error
}

// Files keeps the files of runs.
type Files interface {
	Delete(ctx context.Context, runID string) error
	DeleteExecutions(ctx context.Context, runID string) error
}

// Options are what a Keeper is made of.
type Options struct {
	Store Store
	Files Files
	// Owner names this server in turns.
	Owner string
	// Every is how often it is looked (10 minutes).
	Every time.Duration
	// Now is the clock, time.Now without one.
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
	Bytes      int64       `json:"bytes_freed"`
	Stayed     int         `json:"stayed" doc:"Runs that were pinned, or begun anew, in the meantime."`
	OverBytes  int64       `json:"over_budget_bytes" doc:"By how much executions are above the budget still, because pinned and young runs stay."`
	Error      string      `json:"error,omitempty" doc:"What has gone wrong; it is tried again."`
}

const (
	lookEvery = 10 * time.Minute
	turn      = 3 * time.Minute // a step takes less; a server that is gone is replaced after it
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
			Help: "What the executions took that retention has deleted here."}),
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
	t := time.NewTicker(k.o.Every)
	defer t.Stop()
	for {
		if err := k.Look(life); err != nil && life.Err() == nil {
			k.o.Log.Warn().Err(err).Msg("retention has not done all that it should; it tries again")
		}
		select {
		case <-life.Done():
			return
		case <-t.C:
		case <-k.wake:
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
	if err := r.Check(); err != nil {
		return Plan{}, err
	}
	runs, err := k.o.Store.EndedRuns(ctx, r.KeepTags)
	if err != nil {
		return Plan{}, err
	}
	return r.Plan(runs, k.o.Now()), nil
}

// LastPass is what the last look came to, or how far that is which goes on; nil before the first.
func (k *Keeper) LastPass(ctx context.Context) (*Pass, error) {
	v, err := k.o.Store.Setting(ctx, passOf)
	if err != nil || v.Version == 0 {
		return nil, err
	}
	var p Pass
	if err := json.Unmarshal(v.Value, &p); err != nil {
		return nil, fmt.Errorf("reading what retention did: %w", err)
	}
	return &p, nil
}

// Look looks at all runs once, if it is this server's turn, and lets go what the rules say.
func (k *Keeper) Look(ctx context.Context) error {
	mine, err := k.o.Store.TakeTurn(ctx, settingOf, k.o.Owner, turn)
	if err != nil || !mine {
		return err
	}
	// A file that nobody may remove holds up nothing else.
	stuck := k.clear(ctx)
	rules, err := Read(ctx, k.o.Store)
	if err != nil || !rules.On {
		return errors.Join(err, stuck)
	}
	plan, err := k.Preview(ctx, rules.Rules)
	if err != nil {
		return errors.Join(err, stuck)
	}
	k.last.Set(float64(k.o.Now().Unix()))
	if len(plan.Victims) == 0 {
		return stuck
	}
	pass := Pass{StartedAt: engine.At(k.o.Now()), Planned: len(plan.Victims), OverBytes: plan.Over}
	err = errors.Join(stuck, k.carryOut(ctx, rules, plan, &pass))
	if err != nil {
		pass.Error = engine.AsError(err).Message
	}
	pass.EndedAt = engine.At(k.o.Now())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), notedWith)
	defer cancel()
	return errors.Join(err, k.note(ending, pass))
}

func (k *Keeper) carryOut(ctx context.Context, rules Saved, plan Plan, pass *Pass) error {
	var errs []error
	var noted time.Time
	for _, v := range plan.Victims {
		if now := k.o.Now(); now.Sub(noted) >= notedWith {
			noted = now
			mine, err := k.o.Store.TakeTurn(ctx, settingOf, k.o.Owner, turn)
			if err != nil || !mine {
				return errors.Join(append(errs, err)...)
			}
			// What was decided meanwhile counts at once.
			if there, err := Read(ctx, k.o.Store); err != nil || there.Version != rules.Version {
				return errors.Join(append(errs, err)...)
			}
			if err := k.note(ctx, *pass); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		err := k.o.Store.Expire(ctx, store.Expiry{RunID: v.RunID, Whole: v.Whole, By: by, KeepTags: rules.KeepTags})
		pass.Done++
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			pass.Stayed++
			continue
		case err != nil:
			k.failed.Inc()
			errs = append(errs, err)
			if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				return errors.Join(errs...)
			}
			continue
		}
		k.gone(ctx, v, pass)
		if err := k.remove(ctx, store.Leftover{RunID: v.RunID, Whole: v.Whole}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// gone notes what was let go.
func (k *Keeper) gone(ctx context.Context, v Victim, pass *Pass) {
	what, action := "executions", "run.delete_executions"
	if v.Whole {
		what, action = "runs", "run.delete"
		pass.Runs++
	} else {
		pass.Executions++
	}
	pass.Bytes += v.Bytes
	k.deleted.WithLabelValues(what).Inc()
	k.freed.Add(float64(v.Bytes))
	detail := fmt.Sprintf("%s, ended %s, %s bytes (retention: %s)", v.RunName,
		v.EndedAt.UTC().Format(time.RFC3339), strconv.FormatInt(v.Bytes, 10), v.Reason)
	err := k.o.Store.AppendAudit(context.WithoutCancel(ctx),
		store.AuditEntry{UserName: by, Action: action, Object: v.RunID, Detail: store.CleanText(detail)})
	if err != nil {
		k.o.Log.Error().Err(err).Str("run_id", v.RunID).Msg("the audit log did not take what retention did")
	}
	k.o.Log.Info().Str("run_id", v.RunID).Str("reason", string(v.Reason)).Bool("whole", v.Whole).Int64("bytes", v.Bytes).
		Msg("retention has let a run go")
}

// clear removes files of what was forgotten, by whomever.
func (k *Keeper) clear(ctx context.Context) error {
	left, err := k.o.Store.Leftovers(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range left {
		errs = append(errs, k.remove(ctx, l))
	}
	return errors.Join(errs...)
}

func (k *Keeper) remove(ctx context.Context, l store.Leftover) error {
	remove := k.o.Files.DeleteExecutions
	if l.Whole {
		remove = k.o.Files.Delete
	}
	if err := remove(ctx, l.RunID); err != nil {
		k.failed.Inc()
		return fmt.Errorf("removing the files of run %s: %w", l.RunID, err)
	}
	return k.o.Store.Cleared(ctx, l)
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
