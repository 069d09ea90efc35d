package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store keeps schedules and what became of their starts.
type Store interface {
	AcquireTaskLease(ctx context.Context, name, owner string, lasts time.Duration) (bool, error)
	ReleaseTaskLease(ctx context.Context, name, owner string) error

	// Schedules lists all by name, each with its newest start.
	Schedules(ctx context.Context) ([]engine.Schedule, error)
	Schedule(ctx context.Context, id string) (engine.Schedule, error)
	// CreateSchedule saves a new schedule; a name that there is, and more than MaxSchedules, is ErrConflict.
	CreateSchedule(ctx context.Context, s engine.Schedule) (engine.Schedule, error)
	// UpdateSchedule saves s if s.Version is current, else ErrConflict.
	UpdateSchedule(ctx context.Context, s engine.Schedule) (engine.Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error
	// SuspendSchedule stops the starts of a schedule, with the reason, unless it has another version; harmless then.
	SuspendSchedule(ctx context.Context, id string, version int64, reason string) error
	// ScheduledStarts lists the newest starts of a schedule, the newest first; ErrNotFound without it.
	ScheduledStarts(ctx context.Context, id string, limit int) ([]engine.ScheduledStart, error)

	// DueSchedules lists those that are due, and says what time it is and when the next one will be, zero for never.
	DueSchedules(ctx context.Context) (due []engine.Schedule, now, next time.Time, err error)
	// BeginStart stores what is to happen to a schedule that is due, and moves it to its next time; next is zero for
	// never. A STARTING start is stored as SKIPPED while a scheduled run of the same template is under way. ErrConflict
	// when the schedule was changed, or moved, since it was read.
	BeginStart(ctx context.Context, s engine.Schedule, starts []engine.ScheduledStart, next time.Time) (
		[]engine.ScheduledStart, error)
	// FinishStart stores what became of a STARTING start; harmless when it is not that any more.
	FinishStart(ctx context.Context, st engine.ScheduledStart) error
	// SettleStarts ends the starts that have been STARTING for longer than a while, and returns them.
	SettleStarts(ctx context.Context, longer time.Duration) ([]engine.ScheduledStart, error)
}

// Starter starts runs for schedules.
type Starter interface {
	// StartScheduled creates a run, or a matrix, of the schedule's template in its owner's name, hands its id to created,
	// and starts it.
	StartScheduled(ctx context.Context, s engine.Schedule, created func(runID, matrixID string) error) error
}

// Listener is told of starts that did not happen. It does not wait.
type Listener interface {
	ScheduleMissed(s engine.Schedule, st engine.ScheduledStart)
}

// MaxSchedules is how many schedules a control store has at most.
const MaxSchedules = 500

const (
	leaseName = "schedules"
	// leaseDuration is how soon another server goes on when the one that has the lease is gone.
	leaseDuration = 15 * time.Second
	// pollInterval is how often the lease is renewed, and schedules are read that somebody has changed.
	pollInterval = 5 * time.Second
	// startGrace is how late a start may be.
	startGrace = 5 * time.Minute
	// startTimeout bounds a start; settleAfter is when another server ends one whose server is gone.
	startTimeout = 2 * time.Minute
	settleAfter  = startTimeout + time.Minute
	storeTimeout = 10 * time.Second
	// maxMissed bounds how many missed starts are counted.
	maxMissed = 100_000
)

// Options are what a Service is made of.
type Options struct {
	Store Store
	// Owner names this server in the lease.
	Owner string
	// Missed is told of starts that did not happen; nil tells nobody.
	Missed Listener
	Log    zerolog.Logger
}

// Service keeps schedules, and starts their runs while Run goes on.
type Service struct {
	Store
	opts Options
	wake chan struct{}
}

// New returns a service; nothing starts before Run.
func New(o Options) *Service {
	return &Service{Store: o.Store, opts: o, wake: make(chan struct{}, 1)}
}

// Save creates a schedule, or changes that of its id and version. Cron and TimeZone are checked; By is who saves it,
// and becomes its owner.
func (s *Service) Save(ctx context.Context, v engine.Schedule, by store.User) (engine.Schedule, error) {
	expression, err := Parse(v.Cron, v.TimeZone)
	if err != nil {
		return v, err
	}
	if v.Name = strings.TrimSpace(v.Name); v.Name == "" || store.CleanText(v.Name) != v.Name ||
		strings.ContainsFunc(v.Name, unicode.IsControl) {
		return v, engine.InvalidField("name", "cannot be used", "choose a name without control characters")
	}
	if v.TimeZone == "" {
		v.TimeZone = time.UTC.String()
	}
	_, now, _, err := s.DueSchedules(ctx)
	if err != nil {
		return v, err
	}
	v.OwnerID, v.Owner, v.UpdatedBy, v.Suspended = by.UserID, by.Name, by.Name, ""
	v.NextDue = engine.Time{}
	if !v.Paused {
		v.NextDue = engine.At(expression.Next(now))
	}
	save := s.UpdateSchedule
	if v.ScheduleID == "" {
		save = s.CreateSchedule
	}
	if v, err = save(ctx, v); err == nil {
		s.Wake()
	}
	return v, err
}

// Pause pauses a schedule of that version, which stays its owner's. A suspended one stays suspended.
func (s *Service) Pause(ctx context.Context, v engine.Schedule, by store.User) (engine.Schedule, error) {
	v.Paused, v.NextDue, v.UpdatedBy = true, engine.Time{}, by.Name
	return s.UpdateSchedule(ctx, v)
}

// Wake has the schedules read again, if this server starts them.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run starts what is due until ctx ends.
func (s *Service) Run(ctx context.Context, starter Starter) {
	var starting sync.WaitGroup
	failing := false
	for ctx.Err() == nil {
		wait, err := s.pass(ctx, starter, &starting)
		if err != nil && ctx.Err() == nil && !failing {
			s.opts.Log.Warn().Err(err).Msg("schedules cannot be read; the server retries")
		}
		failing = err != nil
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.wake:
		}
		timer.Stop()
	}
	starting.Wait()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	_ = s.ReleaseTaskLease(bounded, leaseName, s.opts.Owner) // it expires by itself
}

// pass starts what is due if this server has the lease, and says how long to wait for the next pass.
func (s *Service) pass(ctx context.Context, starter Starter, starting *sync.WaitGroup) (time.Duration, error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	mine, err := s.AcquireTaskLease(bounded, leaseName, s.opts.Owner, leaseDuration)
	if err != nil || !mine {
		return pollInterval, err
	}
	settled, err := s.SettleStarts(bounded, settleAfter)
	if err != nil {
		return pollInterval, err
	}
	due, now, next, err := s.DueSchedules(bounded)
	if err != nil {
		return pollInterval, err
	}
	for _, st := range settled {
		if st.Outcome != engine.StartDone {
			s.missedOf(bounded, st)
		}
	}
	var errs []error
	for _, v := range due {
		errs = append(errs, s.begin(ctx, v, now, starter, starting))
	}
	if err := errors.Join(errs...); err != nil {
		return pollInterval, err
	}
	if len(due) > 0 {
		return 0, nil
	}
	wait := pollInterval
	if !next.IsZero() {
		wait = min(wait, max(next.Sub(now), time.Millisecond))
	}
	return wait, nil
}

// missedOf tells of a start of which only the schedule's id is at hand.
func (s *Service) missedOf(ctx context.Context, st engine.ScheduledStart) {
	if v, err := s.Schedule(ctx, st.ScheduleID); err == nil {
		s.missed(v, st)
	}
}

// missed tells of a start that did not happen.
func (s *Service) missed(v engine.Schedule, st engine.ScheduledStart) {
	s.opts.Log.Warn().Str("schedule_id", v.ScheduleID).Str("schedule", v.Name).Time("due_at", st.DueAt.Time).
		Str("outcome", string(st.Outcome)).Str("reason", st.Reason).Msg("a scheduled run did not start")
	if s.opts.Missed != nil {
		s.opts.Missed.ScheduleMissed(v, st)
	}
}

// begin stores what is to happen to a schedule that is due, and starts its run beside all else.
func (s *Service) begin(ctx context.Context, v engine.Schedule, now time.Time, starter Starter,
	starting *sync.WaitGroup) error {
	expression, err := Parse(v.Cron, v.TimeZone)
	if err != nil { // the zone was known when it was saved
		return s.suspend(ctx, v, engine.ErrorText(err))
	}
	starts, next := plan(expression, v, now)
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := s.BeginStart(bounded, v, starts, next)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // somebody changed it; the next pass reads it
	}
	if err != nil {
		return fmt.Errorf("starting the schedule %s: %w", v.ScheduleID, err)
	}
	for _, st := range stored {
		if st.Outcome != engine.StartBegun {
			s.missed(v, st)
			continue
		}
		starting.Go(func() { s.start(ctx, v, st, starter) })
	}
	return nil
}

// suspend stops the starts of a schedule.
func (s *Service) suspend(ctx context.Context, v engine.Schedule, why string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s.opts.Log.Warn().Str("schedule_id", v.ScheduleID).Str("schedule", v.Name).Str("reason", why).
		Msg("a schedule is suspended")
	return s.SuspendSchedule(ctx, v.ScheduleID, v.Version, why)
}

// start starts a run, and stores what became of that.
func (s *Service) start(ctx context.Context, v engine.Schedule, st engine.ScheduledStart, starter Starter) {
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := starter.StartScheduled(bounded, v, func(runID, matrixID string) error {
		st.RunID, st.MatrixID = runID, matrixID
		return s.FinishStart(bounded, st)
	})
	if st.Outcome = engine.StartDone; err != nil {
		st.Outcome, st.Reason = engine.StartFailed, s.reason(ctx, v, err)
	}
	storing, done := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer done()
	if err := s.FinishStart(storing, st); err != nil { // it is settled later
		s.opts.Log.Warn().Err(err).Str("schedule_id", v.ScheduleID).Msg("the outcome of a scheduled start cannot be stored")
	}
	if st.Outcome == engine.StartFailed {
		s.missed(v, st)
		return
	}
	s.opts.Log.Info().Str("schedule_id", v.ScheduleID).Str("schedule", v.Name).Str("run_id", st.RunID).
		Str("matrix_id", st.MatrixID).Msg("a scheduled run has started")
}

// reason is why a run did not start, as users read it.
func (s *Service) reason(ctx context.Context, v engine.Schedule, err error) string {
	switch {
	case ctx.Err() != nil:
		return "The server was stopped while it started the run."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("The run did not start within %s.", startTimeout)
	case engine.AsError(err).Code == engine.CodeInternal:
		s.opts.Log.Error().Err(err).Str("schedule_id", v.ScheduleID).Msg("a scheduled run could not be started")
	}
	return engine.ErrorText(engine.AsError(err))
}

// plan says what happens at a moment to a schedule that is due, the oldest start first, and when it is due next.
func plan(e Expression, v engine.Schedule, now time.Time) (starts []engine.ScheduledStart, next time.Time) {
	first, latest, count := v.NextDue.Time, v.NextDue.Time, 1
	last := latest // the last one before the latest
	for next = e.Next(latest); !next.IsZero() && !next.After(now) && count < maxMissed; next = e.Next(next) {
		last, latest = latest, next
		count++
	}
	if count == maxMissed {
		next = e.Next(now)
	}
	if now.Sub(latest) > startGrace {
		return []engine.ScheduledStart{missedStarts(v, first, latest, count)}, next
	}
	if count > 1 {
		starts = append(starts, missedStarts(v, first, last, count-1))
	}
	return append(starts, engine.ScheduledStart{ScheduleID: v.ScheduleID, DueAt: engine.At(latest),
		Outcome: engine.StartBegun}), next
}

func missedStarts(v engine.Schedule, first, last time.Time, count int) engine.ScheduledStart {
	st := engine.ScheduledStart{ScheduleID: v.ScheduleID, DueAt: engine.At(first), Outcome: engine.StartMissed,
		Missed: count, Reason: "No server was there to start the run, or the control store did not answer."}
	if count > 1 {
		st.Reason = fmt.Sprintf("No server was there to start %d runs until %s, or the control store did not answer.", count,
			last.UTC().Format(engine.TimeLayout))
	}
	return st
}

// Times are the next times of an expression after a moment, so many at most.
func Times(cron, zone string, after time.Time, most int) ([]engine.Time, error) {
	e, err := Parse(cron, zone)
	if err != nil {
		return nil, err
	}
	times := make([]engine.Time, 0, most)
	for at := e.Next(after); len(times) < most && !at.IsZero(); at = e.Next(at) {
		times = append(times, engine.At(at))
	}
	return times, nil
}

// Recheck asks the judge of the users of now about each schedule that is not suspended, and suspends those of which it
// says why.
func (s *Service) Recheck(ctx context.Context,
	users func(context.Context) (judge func(engine.Schedule) (why string), err error)) error {
	all, err := s.Schedules(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	judge, err := users(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range all {
		if v.Suspended != "" {
			continue
		}
		if why := judge(v); why != "" {
			errs = append(errs, s.suspend(ctx, v, why))
		}
	}
	return errors.Join(errs...)
}
