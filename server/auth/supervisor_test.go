package auth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// changes is a store of rights that change when a test says so.
type changes struct {
	mu             sync.Mutex
	rights, tokens int64
	heard          func()
}

func (c *changes) RightsRevision(context.Context) (rights, tokens int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rights, c.tokens, nil
}

func (c *changes) WatchRights(ctx context.Context, heard func()) error {
	c.mu.Lock()
	c.heard = heard
	c.mu.Unlock()
	heard()
	<-ctx.Done()
	return ctx.Err()
}

func (c *changes) add(rights, tokens int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rights, c.tokens = c.rights+rights, c.tokens+tokens
	c.heard()
}

// passes are the times of the passes over a kind of work.
type passes struct {
	mu   sync.Mutex
	at   []time.Time
	pass func(ctx context.Context) error
}

func (p *passes) Recheck(ctx context.Context) error {
	p.mu.Lock()
	p.at = append(p.at, time.Now())
	p.mu.Unlock()
	if p.pass != nil {
		return p.pass(ctx)
	}
	return nil
}

// since returns how many passes there were from then on, and when the first came.
func (p *passes) since(then time.Time) (n int, first time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.at, func(t time.Time) bool { return !t.Before(then) })
	if i < 0 {
		return 0, time.Hour
	}
	return len(p.at) - i, p.at[i].Sub(then)
}

func supervise(t *testing.T, s *Supervisor) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	time.Sleep(30 * time.Second) // the passes of the start
}

// TestNoWorkDelaysAnother: work that takes all the time of its pass, and work that fails, hold up nothing else.
func TestNoWorkDelaysAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights, open, good := &changes{}, &passes{}, &passes{}
		slow := &passes{pass: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		failing := &passes{pass: func(context.Context) error { return errors.New("not now") }}
		supervise(t, &Supervisor{Store: rights, Open: open, Work: []Work{slow, failing, good}, Log: zerolog.Nop()})
		for range 5 {
			time.Sleep(7 * time.Second)
			then := time.Now()
			rights.add(1, 0)
			time.Sleep(7 * time.Second)
			for name, w := range map[string]*passes{"what is open": open, "work": good} {
				if n, first := w.since(then); n != 2 || first > 2*time.Second {
					t.Errorf("%s is judged %d times after a change, the first after %v", name, n, first)
				}
			}
			if n, _ := failing.since(then); n < 3 {
				t.Errorf("work that could not be judged is tried %d times", n)
			}
		}
	})
}

// TestChangesWithoutPause: however often rights change, a kind of work is judged once a second at most; and the end of
// sessions and tokens concerns what is open alone.
func TestChangesWithoutPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights, open, runs := &changes{}, &passes{}, &passes{}
		supervise(t, &Supervisor{Store: rights, Open: open, Work: []Work{runs}, Log: zerolog.Nop()})
		for name, change := range map[string]struct{ rights, tokens, least, most int }{
			"sign-outs":         {0, 1, 0, 1}, // the pass of each minute
			"changes of rights": {1, 0, 25, 31},
		} {
			then := time.Now()
			for range 3000 {
				time.Sleep(10 * time.Millisecond)
				rights.add(int64(change.rights), int64(change.tokens))
			}
			if n, _ := open.since(then); n < 25 || n > 31 {
				t.Errorf("%s: what is open is judged %d times in 30 s", name, n)
			}
			if n, _ := runs.since(then); n < change.least || n > change.most {
				t.Errorf("%s: runs are judged %d times in 30 s", name, n)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// someRuns are runs of ada's, who is locked out, but for those of the process.
type someRuns struct {
	Store
	mu      sync.Mutex
	live    map[string]string // with who made it
	stuck   map[string]bool
	revoked map[string]time.Time
	origins map[string]enrichment.Origin
	reasons []string
}

func (*someRuns) ListUsers(context.Context) ([]store.User, error) {
	return []store.User{{UserID: "a", Name: "ada", Role: store.RoleOperator, DisabledAt: engine.At(time.Now())},
		{UserID: "b", Name: "bob", Role: store.RoleOperator}}, nil
}

func (*someRuns) StartGrant(context.Context, string, string) (g store.StartGrant, err error) {
	return g, store.ErrNotFound
}

func (r *someRuns) Run(_ context.Context, id string) (engine.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return engine.Run{
		RunID:       id,
		Status:      engine.StatusRunning,
		CreatedBy:   r.live[id],
		CreatedByID: map[string]string{"ada": "a", "bob": "b"}[r.live[id]],
		CreatedAt:   engine.At(time.Now()),
	}, nil
}

func (r *someRuns) ActiveRunIDs() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.live {
		ids = append(ids, id)
	}
	return ids
}

func (r *someRuns) Revoke(ctx context.Context, id, _ string) error {
	r.mu.Lock()
	stuck := r.stuck[id]
	if !stuck {
		delete(r.live, id)
		r.revoked[id] = time.Now()
	}
	r.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (r *someRuns) Enrichments() map[string]enrichment.Origin {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.origins)
}

func (r *someRuns) RevokeEnrichment(_ context.Context, id, why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.origins, id)
	r.reasons = append(r.reasons, why)
	return nil
}

// TestEnrichmentsAreJudged: by who asked for them, or else by who started the run.
func TestEnrichmentsAreJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &someRuns{
			live: map[string]string{"ada's": "ada", "of ada's again": "cli", "of bob's again": "ada", "plain": "cli"},
			origins: map[string]enrichment.Origin{"ada's": {}, "of ada's again": {By: engine.Actor{ID: "a", Name: "ada"}},
				"of bob's again": {By: engine.Actor{ID: "b", Name: "bob"}}, "plain": {}},
		}
		work := &EnrichmentsWork{Authorizer: Authorizer{Store: r}, Runs: r, Log: zerolog.Nop()}
		if err := work.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(r.reasons)
		if want := []string{"It was stopped: the user who asked for it has no right to it any more.",
			"It was stopped: the user who started the run has no right to it any more."}; !slices.Equal(r.reasons, want) ||
			len(r.origins) != 2 {
			t.Errorf("stopped with %q, left %v", r.reasons, r.origins)
		}
	})
}

// TestARunThatIsTakenOverIsJudged: a run that comes to this server after its user was locked out is stopped within 5 s,
// though no right changes then, and though others do not stop.
func TestARunThatIsTakenOverIsJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &someRuns{live: map[string]string{"of the process": "cli"}, stuck: map[string]bool{"stuck": true, "too": true},
			revoked: map[string]time.Time{}}
		work := &RunsWork{Authorizer: Authorizer{Store: r}, Runs: r, Log: zerolog.Nop()}
		supervise(t, &Supervisor{Store: &changes{}, Open: &passes{}, Work: []Work{work}, Log: zerolog.Nop()})
		then := time.Now()
		r.mu.Lock()
		r.live["taken over"], r.live["stuck"], r.live["too"] = "ada", "ada", "ada"
		r.mu.Unlock()
		time.Sleep(20 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if at := r.revoked["taken over"]; at.IsZero() || at.Sub(then) > 5*time.Second {
			t.Errorf("the run that was taken over is stopped at %v after %v", at, then)
		}
		if r.live["of the process"] == "" {
			t.Error("another run is stopped")
		}
	})
}

// ownedThings are a table or a hook of each of some users; what is suspended has its reason.
type ownedThings struct {
	suspended []string
	late      *atomic.Bool
}

func (o *ownedThings) each(judge func(id, name string) string) {
	for _, u := range [][2]string{{"ada", "ada"}, {"op", "ola"}, {"adm", "adam"}, {"vic", "vic"}, {"gone", "greta"},
		{"late", "lena"}} {
		if why := judge(u[0], u[1]); why != "" {
			o.suspended = append(o.suspended, why)
		}
	}
}

// someTables and someHooks judge them.
type (
	someTables struct{ *ownedThings }
	someHooks  struct{ *ownedThings }
	someLogins struct{ *ownedThings }
)

func (o someLogins) RecheckReaders(
	ctx context.Context,
	users func(context.Context) (func(string) string, error),
) error {
	o.late.Store(true) // and makes one
	judge, err := users(ctx)
	o.each(func(id, _ string) string {
		if why := judge(id); why != "" {
			return id + ": " + why
		}
		return ""
	})
	return err
}

func (o someTables) Recheck(
	ctx context.Context,
	users func(context.Context) (func(refresh.Table) string, error),
) error {
	o.late.Store(true) // and makes one
	judge, err := users(ctx)
	o.each(func(id, name string) string { return judge(refresh.Table{OwnerID: id, Owner: name}) })
	return err
}

func (o someHooks) Recheck(ctx context.Context, users func(context.Context) (func(notify.Hook) string, error)) error {
	o.late.Store(true) // and makes one
	judge, err := users(ctx)
	o.each(func(id, name string) string { return judge(notify.Hook{OwnerID: id, Owner: name}) })
	return err
}

// fiveUsers are users of each kind; one is locked out. late is one more, once it is let in.
type fiveUsers struct {
	Store
	late *atomic.Bool
}

func (u fiveUsers) ListUsers(context.Context) ([]store.User, error) {
	list := []store.User{{UserID: "ada", Role: store.RoleAdmin, DisabledAt: engine.At(time.Now())},
		{UserID: "op", Role: store.RoleOperator}, {UserID: "adm", Role: store.RoleAdmin},
		{UserID: "vic", Role: store.RoleViewer}}
	if u.late.Load() {
		list = append(list, store.User{UserID: "late", Role: store.RoleAdmin})
	}
	return list, nil
}

// TestTablesAndHooksAreJudged: tables are for operators and admins, notifications and logins to the results database for
// admins, as long as they are; what somebody makes who is let in while they are judged is not suspended.
func TestTablesAndHooksAreJudged(t *testing.T) {
	t.Parallel()
	tables, hooks, logins := &ownedThings{late: &atomic.Bool{}}, &ownedThings{late: &atomic.Bool{}},
		&ownedThings{late: &atomic.Bool{}}
	if err := errors.Join(
		TablesWork{Authorizer{Store: fiveUsers{late: tables.late}}, someTables{tables}}.Recheck(t.Context()),
		HooksWork{Authorizer{Store: fiveUsers{late: hooks.late}}, someHooks{hooks}}.Recheck(t.Context()),
		LoginsWork{Authorizer{Store: fiveUsers{late: logins.late}}, someLogins{logins}}.Recheck(t.Context()),
	); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"ada, whose table it is, is locked out",
		"vic, whose table it is, is a viewer now, who refreshes " +
			"nothing",
		"greta, whose table it is, is no user any more",
	}; !slices.Equal(
		tables.suspended,
		want,
	) {
		t.Errorf("tables: %q", tables.suspended)
	}
	if want := []string{"ada, who saved it, is locked out", "ola, who saved it, is no admin any more",
		"vic, who saved it, is a viewer now, who saves nothing", "greta, who saved it, is no user any more"}; !slices.Equal(
		hooks.suspended, want) {
		t.Errorf("hooks: %q", hooks.suspended)
	}
	if want := []string{
		"ada: the user who made it is locked out",
		"op: the user who made it is no admin any more",
		"vic: the user who made it is a viewer now, who makes nothing",
		"gone: the user who made it is no user any more",
	}; !slices.Equal(
		logins.suspended, want) {
		t.Errorf("logins: %q", logins.suspended)
	}
}
