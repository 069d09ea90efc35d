package simtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/storage/results"
)

// controlStore is the control store as one server reaches it: calls take a while, fail while the
// store is away, and now and then they are committed and their answer is lost. It holds the
// invariants of epochs and terminal states against each write.
type controlStore struct {
	*fake.Store
	srv *server
}

// asked lets a call that only reads happen when the loop says so.
func asked[T any](s controlStore, ctx context.Context, name string, do func(context.Context) (T, error)) (T, error) {
	return call(s, ctx, name, "", do)
}

// call lets a call happen when the loop says so. on is the run whose row a write locks, empty for what only reads.
func call[T any](s controlStore, ctx context.Context, name, on string, do func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	reply := make(chan answer, 2) // a late one comes after that which nobody has waited for
	sim := s.srv.sim
	away := fmt.Errorf("%s: %w", name, store.ErrUnavailable)
	if s.srv.dead.Load() {
		var none T
		return none, away // nobody sees what a process that has ended would still ask
	}
	happens := func() {
		switch {
		case ctx.Err() != nil: // nobody waits, and the transaction is rolled back
		case s.srv.dead.Load():
			reply <- answer{err: away}
		case s.srv.paused:
			s.srv.hears(func() { reply <- answer{err: away} })
		case sim.storeAway:
			sim.w.note("%s %s: away", s.srv.name, name)
			reply <- answer{err: away}
		case on != "" && !sim.calm.Load() && sim.w.oneIn(sim.lateCommits):
			sim.commitsLate(s.srv.name+" "+name, on, func() error { _, err := do(context.Background()); return err },
				func() { s.srv.hears(func() { reply <- answer{err: away} }) })
		default:
			v, err := do(context.Background())
			sim.writes(on, name, err)
			if !sim.calm.Load() && sim.w.oneIn(sim.ambiguous) {
				sim.w.note("%s %s: %s, and the answer is lost", s.srv.name, name, short(err))
				reply <- answer{err: away}
				return
			}
			sim.w.note("%s %s: %s", s.srv.name, name, short(err))
			reply <- answer{v, err}
		}
	}
	sim.w.hand("store "+s.srv.name+" "+name, func() {
		sim.w.after(sim.storeDelay(), func() { sim.unlocked(on, happens) })
	})
	select {
	case a := <-reply:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: %w", name, ctx.Err())
	}
}

// hears lets something reach the process, when it goes on if it is stopped.
func (srv *server) hears(what func()) {
	if srv.paused {
		srv.resumed = append(srv.resumed, what)
		return
	}
	what()
}

// renewing is the name of a call that says nothing new.
const renewing = "RenewLeases"

// anyRun is what writes lock that are about the runs of an owner: they are one statement, lock no run for longer
// than it takes, and may come after what was written later.
const anyRun = "any run"

// commitsLate has a write be committed when its caller has heard that the store is away, or waits no longer. Until
// then its run is locked as the row of it is in Postgres: nothing else is written, and what is read is as it was.
func (s *simulation) commitsLate(name, on string, do func() error, lost func()) {
	most := []time.Duration{300 * time.Millisecond, 4 * time.Second, 30 * time.Second}[s.w.chance.IntN(3)]
	late := s.w.between(time.Millisecond, most)
	s.w.note("%s: is committed in %v", name, late)
	if s.w.oneIn(2) {
		s.w.after(s.w.between(0, late), lost) // else the caller waits for as long as it does
	}
	if on != anyRun {
		s.locked[on] = nil
	}
	s.w.after(late, func() {
		err := do()
		s.writes(on, name, err)
		s.w.note("%s, late: %s", name, short(err))
		lost()
		waiting := s.locked[on]
		delete(s.locked, on)
		for _, again := range waiting {
			s.unlocked(on, again)
		}
	})
}

// writes takes note of a write that was made; that a lease is renewed is none.
func (s *simulation) writes(on, name string, err error) {
	if on != "" && err == nil && name != renewing {
		s.wroteLast, s.wrote = time.Now(), append(s.wrote, name)
	}
}

// unlocked does something when no write to a run is under way.
func (s *simulation) unlocked(on string, do func()) {
	if waiting, locked := s.locked[on]; locked {
		s.locked[on] = append(waiting, do)
		return
	}
	do()
}

func short(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// watched holds a write against the run as it was before and as it is afterwards.
func watched[T any](s controlStore, runID string, epoch int64, do func() (T, error)) (T, error) {
	sim := s.srv.sim
	ctx := context.Background()
	before, _ := s.Store.Run(ctx, runID)
	v, err := do()
	sim.written = true
	after, _ := s.Store.Run(ctx, runID)
	if epoch != 0 && epoch != before.OwnerEpoch && err == nil {
		sim.w.violated(1, "%s has written to %s in epoch %d, which %d has followed", s.srv.name, runID, epoch,
			before.OwnerEpoch)
	}
	if after.OwnerEpoch < before.OwnerEpoch {
		sim.w.violated(1, "the epoch of %s fell from %d to %d", runID, before.OwnerEpoch, after.OwnerEpoch)
	}
	if before.Status.Terminal() && after.Status != before.Status {
		sim.w.violated(2, "%s was %s and became %s", runID, before.Status, after.Status)
	}
	return v, err
}

func (s controlStore) OpenDSN(context.Context, engine.ConnectionRef) (driver string, dsn secret.Secret, err error) {
	return "postgres", secret.New(""), nil
}

func (s controlStore) Run(ctx context.Context, id string) (engine.Run, error) {
	return asked(s, ctx, "Run "+id, func(ctx context.Context) (engine.Run, error) { return s.Store.Run(ctx, id) })
}

func (s controlStore) LiveRuns(ctx context.Context) ([]engine.Run, error) {
	return asked(s, ctx, "LiveRuns", s.Store.LiveRuns)
}

func (s controlStore) ExpiredRuns(ctx context.Context) ([]engine.Run, error) {
	return asked(s, ctx, "ExpiredRuns", s.Store.ExpiredRuns)
}

func (s controlStore) Claim(ctx context.Context, c store.Claim) (int64, error) {
	name := fmt.Sprintf("Claim %s for %s", c.RunID, c.Owner)
	return call(s, ctx, name, anyRun, func(ctx context.Context) (int64, error) {
		return watched(s, c.RunID, 0, func() (int64, error) { return s.Store.Claim(ctx, c) })
	})
}

func (s controlStore) RenewLeases(ctx context.Context, owner string, runs []string) error {
	_, err := call(s, ctx, renewing, anyRun, func(ctx context.Context) (struct{}, error) {
		if s.srv.sim.without == withoutLapse {
			live, _ := s.Store.LiveRuns(ctx)
			for _, run := range live {
				runs = append(runs, run.RunID)
			}
		}
		return struct{}{}, s.Store.RenewLeases(ctx, owner, runs)
	})
	return err
}

func (s controlStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	name := fmt.Sprintf("Transition %s@%d to %q with %d events", t.RunID, t.Epoch, t.To, len(t.Events))
	return call(s, ctx, name, t.RunID, func(ctx context.Context) ([]engine.Event, error) {
		return watched(s, t.RunID, t.Epoch, func() ([]engine.Event, error) {
			if s.srv.sim.without == withoutFencing && t.Epoch != 0 {
				t.Epoch = s.epoch(t.RunID)
			}
			t.Admission = s.roomy(t.Admission)
			if m := s.srv.sim.without; m == withoutKeys || m == withoutDeduplication {
				t.Events = slices.Clone(t.Events)
				for i := range t.Events {
					t.Events[i].EventID = ""
				}
			}
			events, err := s.Store.Transition(ctx, t)
			if err == nil {
				if t.Admission != nil {
					s.srv.sim.admitted(t.RunID, t.Admission.On)
				}
				if t.To == engine.StatusRunning {
					s.srv.sim.model.begins(t.RunID, s.srv)
				}
				s.srv.sim.model.decided(t)
			}
			return events, err
		})
	})
}

// epoch is that in which the run is owned.
func (s controlStore) epoch(runID string) int64 {
	run, _ := s.Store.Run(context.Background(), runID)
	return run.OwnerEpoch
}

func (s controlStore) SaveTick(ctx context.Context, t store.Tick) error {
	_, err := call(s, ctx, fmt.Sprintf("SaveTick %s@%d of %d", t.RunID, t.Epoch, t.TotalOps), t.RunID,
		func(ctx context.Context) (struct{}, error) {
			return watched(s, t.RunID, t.Epoch, func() (struct{}, error) {
				if s.srv.sim.without == withoutFencing {
					t.Epoch = s.epoch(t.RunID)
				}
				err := s.Store.SaveTick(ctx, t)
				if err == nil {
					s.srv.sim.model.counted(t)
					s.srv.sim.model.ruled(t)
				}
				return struct{}{}, err
			})
		})
	return err
}

func (s controlStore) Events(ctx context.Context, id string, after int64, only ...engine.EventType) ([]engine.Event,
	error) {
	return asked(s, ctx, fmt.Sprintf("Events %s after %d", id, after), func(ctx context.Context) ([]engine.Event, error) {
		if s.srv.sim.without == withoutDeduplication {
			return nil, nil
		}
		return s.Store.Events(ctx, id, after, only...)
	})
}

func (s controlStore) Workers(ctx context.Context, id string) ([]store.WorkerRow, error) {
	return asked(s, ctx, "Workers "+id, func(ctx context.Context) ([]store.WorkerRow, error) {
		rows, err := s.Store.Workers(ctx, id)
		for i := range rows {
			if rows[i].Status == engine.WorkerDead && s.srv.sim.without == withoutLosses {
				rows[i].LastHeartbeat = time.Time{}
			}
		}
		return rows, err
	})
}

func (s controlStore) Logs(ctx context.Context, id string, after int64, level engine.LogLevel,
	most int) ([]engine.LogEntry, error) {
	return asked(s, ctx, fmt.Sprintf("Logs %s after %d", id, after), func(ctx context.Context) ([]engine.LogEntry, error) {
		return s.Store.Logs(ctx, id, after, level, most)
	})
}

func (s controlStore) Series(ctx context.Context, id string, w store.Window) ([]engine.Point, float64, error) {
	type series struct {
		points     []engine.Point
		resolution float64
	}
	v, err := asked(s, ctx, "Series "+id, func(ctx context.Context) (v series, err error) {
		v.points, v.resolution, err = s.Store.Series(ctx, id, w)
		return v, err
	})
	return v.points, v.resolution, err
}

func (s controlStore) FindMax(ctx context.Context, id string) (*engine.FindMaxState, error) {
	return asked(s, ctx, "FindMax "+id, func(ctx context.Context) (*engine.FindMaxState, error) {
		return s.Store.FindMax(ctx, id)
	})
}

func (s controlStore) SaveFindMax(ctx context.Context, p store.FindMaxProgress) error {
	name := fmt.Sprintf("SaveFindMax %s@%d", p.RunID, p.Epoch)
	_, err := call(s, ctx, name, p.RunID, func(ctx context.Context) (struct{}, error) {
		return watched(s, p.RunID, p.Epoch, func() (struct{}, error) {
			return struct{}{}, s.Store.SaveFindMax(ctx, p)
		})
	})
	return err
}

func (s controlStore) PendingEnrichments(ctx context.Context) ([]string, error) {
	return asked(s, ctx, "PendingEnrichments", s.Store.PendingEnrichments)
}

func (s controlStore) PendingAggregates(ctx context.Context) ([]string, error) {
	return asked(s, ctx, "PendingAggregates", s.Store.PendingAggregates)
}

func (s controlStore) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	if s.srv.sim.without == withoutRows {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r engine.RunResult) bool {
			return r.WorkerID != "" && r.Figures == nil
		})
		if len(rows) == 0 {
			return nil
		}
	}
	r := &rows[0]
	_, err := call(s, ctx, fmt.Sprintf("SaveResult %s %s %d", r.RunID, r.WorkerID, len(rows)), r.RunID,
		func(ctx context.Context) (struct{}, error) {
			return watched(s, r.RunID, r.Epoch, func() (struct{}, error) {
				if s.srv.sim.without == withoutFencing && r.Epoch != 0 {
					r.Epoch = s.epoch(r.RunID)
				}
				return struct{}{}, s.Store.SaveResult(ctx, rows...)
			})
		})
	return err
}

func (s controlStore) Results(ctx context.Context, id string) ([]engine.RunResult, error) {
	return asked(s, ctx, "Results "+id,
		func(ctx context.Context) ([]engine.RunResult, error) { return s.Store.Results(ctx, id) })
}

func (s controlStore) SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error {
	_, err := call(s, ctx, "SaveArtifact "+a.Name, a.RunID, func(ctx context.Context) (struct{}, error) {
		if s.srv.sim.without == withoutDeduplication {
			kept, _ := s.Store.Artifacts(ctx, a.RunID)
			if slices.ContainsFunc(kept, func(o engine.Artifact) bool { return o.Name == a.Name }) {
				a.Name = "again-" + a.Name
			}
		}
		return watched(s, a.RunID, epoch, func() (struct{}, error) {
			if s.srv.sim.without == withoutFencing && epoch != 0 {
				epoch = s.epoch(a.RunID)
			}
			return struct{}{}, s.Store.SaveArtifact(ctx, epoch, a)
		})
	})
	return err
}

func (s controlStore) Artifacts(ctx context.Context, id string) ([]engine.Artifact, error) {
	return asked(s, ctx, "Artifacts "+id, func(ctx context.Context) ([]engine.Artifact, error) {
		return s.Store.Artifacts(ctx, id)
	})
}

// storeDelay is how long a call takes.
func (s *simulation) storeDelay() time.Duration {
	return s.w.between(200*time.Microsecond, 4*time.Millisecond) + s.w.between(0, s.storeSlow)
}

// keptResults are the results as one server reaches them.
type keptResults struct {
	*results.Results
	srv *server
}

func (r keptResults) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	if r.srv.dead.Load() {
		return store.ErrUnavailable
	}
	sim := r.srv.sim
	if slow := sim.diskSlow.Load(); slow > 0 {
		took := time.Duration(sim.chanceOf(fmt.Sprint(a.Name, time.Now().UnixNano())).Int64N(slow))
		if sim.without == withoutDurability {
			return nil // before it is there, and then it never is
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.srv.dead.Load() {
			return store.ErrUnavailable
		}
	}
	return r.Results.Put(ctx, a, from)
}

// acknowledges checks that what a server says it has stored is there.
func (s *server) acknowledges(runID, name string) {
	parts, _ := s.sim.store.Artifacts(context.Background(), runID)
	i := slices.IndexFunc(parts, func(a engine.Artifact) bool { return a.Name == name })
	if i < 0 {
		s.sim.w.violated(6, "%s acknowledges %s of %s, which it has not stored", s.name, name, runID)
		return
	}
	s.sim.model.whole(parts[i])
}
