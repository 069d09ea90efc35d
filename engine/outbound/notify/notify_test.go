package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// runs are those that have ended, with what is known of them.
type runs map[string]store.RunRow

func (r runs) Run(_ context.Context, id string) (engine.Run, error) {
	row, ok := r[id]
	if !ok {
		return engine.Run{}, store.ErrNotFound
	}
	return row.Run, nil
}

func (r runs) Row(_ context.Context, run engine.Run) (store.RunRow, bool, error) {
	return r[run.RunID], true, nil
}

func ended(id string, status engine.Status, passed *bool, tags map[string]string) store.RunRow {
	row := store.RunRow{Passed: passed}
	row.RunID, row.RunName, row.Status = id, "look <up> & more", status
	row.Scenario.TemplateID, row.Scenario.Tags = "t-"+id, tags
	return row
}

// heard is what a receiver was told.
type heard struct {
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
	refuse int // so many requests are answered 503 first
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse > 0 {
		h.refuse--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.bodies, h.heads = append(h.bodies, body), append(h.heads, r.Header.Clone())
}

func (h *heard) await(t *testing.T, n int) {
	t.Helper()
	for range 200 {
		h.mu.Lock()
		got := len(h.bodies)
		h.mu.Unlock()
		if got >= n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not told %d times", n)
}

func start(t *testing.T, r runs, p *egress.Policy) *notify.Notifier {
	t.Helper()
	s, _ := postgrestest.Open(t)
	n := notify.Start(notify.Options{Settings: s, Runs: r, Egress: p, Log: zerolog.Nop(),
		URL: func() string { return "https://bench.example" }, SettleTimeout: 3 * time.Second})
	t.Cleanup(n.Close)
	return n
}

func hook(name, kind, url, word string, events ...notify.Event) notify.HookInput {
	to, key := secret.New(url), secret.New(word)
	return notify.HookInput{Hook: notify.Hook{Name: name, Kind: kind, Events: events}, NewURL: &to, NewSecret: &key}
}

// TestWhoIsToldWhat: by event, template and tag; signed; again after a refusal; nobody of a run that was cancelled.
func TestWhoIsToldWhat(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	all := runs{"good": ended("good", engine.StatusCompleted, &yes, map[string]string{"team": "a"}),
		"slow": ended("slow", engine.StatusCompleted, &no, nil), "bad": ended("bad", engine.StatusFailed, nil, nil),
		"cancelled": ended("cancelled", engine.StatusCancelled, nil, nil)}
	everything, team, slack := &heard{refuse: 1}, &heard{}, &heard{}
	var urls []string
	for _, h := range []*heard{everything, team, slack} {
		s := httptest.NewServer(h)
		defer s.Close()
		urls = append(urls, s.URL+"/to-ken")
	}
	n := start(t, all, nil)
	teams := hook("team", notify.Webhook, urls[1], "", notify.Finished, notify.Regressed, notify.Failed)
	teams.Tags = map[string]string{"team": "a"}
	l, err := n.Save(t.Context(), 0, []notify.HookInput{
		hook("everything", notify.Webhook, urls[0], "word", notify.Finished, notify.Regressed, notify.Failed), teams,
		hook("chat", notify.Slack, urls[2], "", notify.Regressed)}, store.User{Name: "ada"})
	if err != nil || strings.Contains(l.Hooks[0].Address, "to-ken") || !l.Hooks[0].Signed || l.Hooks[1].Signed {
		t.Fatalf("%+v, %v", l, err)
	}
	if text, _ := json.Marshal(l); strings.Contains(string(text), "to-ken") || strings.Contains(string(text), "word") {
		t.Errorf("a secret is shown: %s", text)
	}
	for _, id := range []string{"cancelled", "none", "good", "slow", "bad"} {
		n.Ended(id)
	}
	everything.await(t, 3)
	team.await(t, 1)
	slack.await(t, 1)
	events := map[string]notify.Event{}
	for i, body := range everything.bodies {
		var v notify.Notice
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		events[v.RunID] = v.Event
		head := everything.heads[i]
		if got := head.Get("X-Loadstone-Signature"); got != notify.Sign("word", head.Get("X-Loadstone-Timestamp"), body) ||
			head.Get("X-Loadstone-Event") != string(v.Event) || v.URL != "https://bench.example/runs/"+v.RunID {
			t.Errorf("%s: %v", body, head)
		}
	}
	if events["good"] != notify.Finished || events["slow"] != notify.Regressed || events["bad"] != notify.Failed {
		t.Errorf("events %v", events)
	}
	if len(team.bodies) != 1 || len(slack.bodies) != 1 || team.heads[0].Get("X-Loadstone-Signature") != "" {
		t.Errorf("%d and %d", len(team.bodies), len(slack.bodies))
	}
	var message struct{ Text string }
	if err := json.Unmarshal(slack.bodies[0], &message); err != nil ||
		!strings.Contains(message.Text, "look &lt;up&gt; &amp; more") {
		t.Errorf("%s, %v", slack.bodies[0], err)
	}
	refused := 0
	for _, d := range n.Deliveries() {
		if !d.Delivered {
			refused++
			if d.Error == "" || strings.Contains(d.Error, "to-ken") {
				t.Errorf("%+v", d)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d refusals in the log: %+v", refused, n.Deliveries())
	}
	if d, err := n.SendTest(t.Context(), l.Hooks[2].ID); err != nil || !d.Delivered {
		t.Errorf("a test: %+v, %v", d, err)
	}
	slack.await(t, 2)
}

// TestHooksThatAreRefused: at once, with the field; what was there stays.
func TestHooksThatAreRefused(t *testing.T) {
	t.Parallel()
	p, err := egress.Parse([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, runs{}, p)
	for _, c := range []struct {
		g     notify.HookInput
		field string
	}{
		{hook("x", notify.Webhook, "http://169.254.169.254/latest", "", notify.Failed), "hooks[0].url"},
		{hook("x", notify.Webhook, "http://127.0.0.1:9/", "", notify.Failed), "hooks[0].url"},
		{hook("x", notify.Webhook, "ftp://10.0.0.1/", "", notify.Failed), "hooks[0].url"},
		{hook("x", notify.Webhook, "", "", notify.Failed), "hooks[0].url"},
		{hook("", notify.Webhook, "http://10.0.0.1/", "", notify.Failed), "hooks[0].name"},
		{hook("x", "mail", "http://10.0.0.1/", "", notify.Failed), "hooks[0].kind"},
		{hook("x", notify.Webhook, "http://10.0.0.1/", ""), "hooks[0].events"},
		{hook("x", notify.Webhook, "http://10.0.0.1/", "", notify.Test), "hooks[0].events"},
		{notify.HookInput{Hook: notify.Hook{ID: "none", Name: "x", Kind: notify.Webhook}}, "hooks[0].id"},
	} {
		_, err := n.Save(t.Context(), 0, []notify.HookInput{c.g}, store.User{Name: "ada"})
		if e := engine.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != c.field {
			t.Errorf("%+v: %v, want %s", c.g, err, c.field)
		}
	}
	l, err := n.Save(t.Context(), 0, []notify.HookInput{hook("x", notify.Webhook, "http://10.0.0.1/", "word",
		notify.Failed)}, store.User{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Save(t.Context(), 0, nil, store.User{Name: "eve"}); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("the second save: %v", err)
	}
	// Address and secret stay where they are not given.
	kept := notify.HookInput{Hook: l.Hooks[0]}
	kept.Name = "y"
	if l, err = n.Save(
		t.Context(),
		l.Version,
		[]notify.HookInput{kept},
		store.User{Name: "ada"},
	); err != nil || l.Hooks[0].Name != "y" ||
		l.Hooks[0].URL.Reveal() != "http://10.0.0.1/" || l.Hooks[0].Secret.Reveal() != "word" ||
		!l.Hooks[0].Signed {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestARunDoesNotWait: for a receiver that never answers, and for one that is told too much.
func TestARunDoesNotWait(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer s.Close()
	defer close(hold)
	yes := true
	n := start(t, runs{"good": ended("good", engine.StatusCompleted, &yes, nil)}, nil)
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{hook("x", notify.Webhook, s.URL, "", notify.Finished)},
		store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 5000 {
		n.Ended("good")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a run has waited %s", took)
	}
	n.Close()
}

// late are runs whose figures come after a while.
type late struct {
	runs
	from time.Time
}

func (l late) Row(ctx context.Context, run engine.Run) (store.RunRow, bool, error) {
	if time.Now().Before(l.from) {
		return store.RunRow{Run: run}, false, nil
	}
	return l.runs.Row(ctx, run)
}

// away are settings that cannot be read at first.
type away struct {
	store.Settings
	fails atomic.Int64
}

func (a *away) Setting(ctx context.Context, name string) (store.Setting, error) {
	if a.fails.Add(-1) >= 0 {
		return store.Setting{}, store.ErrUnavailable
	}
	return a.Settings.Setting(ctx, name)
}

// reading are settings that know how often they were read.
type reading struct {
	store.Settings
	read *int
}

func (r reading) Setting(ctx context.Context, name string) (store.Setting, error) {
	*r.read++
	return r.Settings.Setting(ctx, name)
}

// TestHooksAreReadBeforeTheirUsers: a user who is created and saves a hook during a check keeps the hook. The check
// reads the users again after each conflict with another save.
func TestHooksAreReadBeforeTheirUsers(t *testing.T) {
	t.Parallel()
	s, _ := postgrestest.Open(t)
	read, judged := 0, 0
	n := notify.Start(notify.Options{Settings: reading{s, &read}, Log: zerolog.Nop()})
	t.Cleanup(n.Close)
	l, err := n.Save(t.Context(), 0, []notify.HookInput{hook("a", notify.Webhook, "http://127.0.0.1:9", "",
		notify.Finished)}, store.User{UserID: "1", Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	read = 0
	err = n.Recheck(t.Context(), func(ctx context.Context) (func(notify.Hook) string, error) {
		if judged++; read != judged {
			t.Errorf("users are read for the time %d after the hooks were read %d times", judged, read)
		}
		bob := judged > 1
		if judged == 1 { // he is let in and saves one
			l, err = n.Save(ctx, l.Version, []notify.HookInput{{Hook: l.Hooks[0]}, hook("b", notify.Webhook,
				"http://127.0.0.1:9", "", notify.Finished)}, store.User{UserID: "2", Name: "bob"})
			read--
		}
		return func(h notify.Hook) string {
			if h.Owner == "bob" && bob {
				return ""
			}
			return h.Owner + " is locked out"
		}, err
	})
	if err != nil || judged != 2 {
		t.Fatalf("judged %d times: %v", judged, err)
	}
	if l, err = notify.ReadHooks(t.Context(), s); err != nil || l.Hooks[0].Suspended == "" || l.Hooks[1].Suspended != "" {
		t.Errorf("%+v, %v", l.Hooks, err)
	}
}

// TestLateFiguresAreWaitedFor: a run is not told as finished before anybody knows whether it has regressed, and a store
// that is away for a moment is asked again. The message names validity and stand-in.
func TestLateFiguresAreWaitedFor(t *testing.T) {
	t.Parallel()
	no := false
	row := ended("slow", engine.StatusCompleted, &no, nil)
	verdict, rate := engine.VerdictDegraded, 0.25
	row.Verdict, row.Simulated, row.ErrorRate = &verdict, true, &rate
	s, _ := postgrestest.Open(t)
	settings := &away{Settings: s}
	n := notify.Start(notify.Options{Settings: settings, Log: zerolog.Nop(), SettleTimeout: 700 * time.Millisecond,
		Runs: late{runs{"slow": row}, time.Now().Add(2 * time.Second)}})
	t.Cleanup(n.Close)
	hooked, chat := &heard{}, &heard{}
	first, second := httptest.NewServer(hooked), httptest.NewServer(chat)
	defer first.Close()
	defer second.Close()
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{
		hook("x", notify.Webhook, first.URL, "", notify.Finished, notify.Regressed),
		hook("y", notify.Slack, second.URL, "", notify.Finished, notify.Regressed)}, store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	settings.fails.Store(1)
	n.Ended("slow")
	hooked.await(t, 1)
	chat.await(t, 1)
	var v notify.Notice
	if err := json.Unmarshal(hooked.bodies[0], &v); err != nil || v.Event != notify.Regressed || !v.Simulated ||
		v.Emulated || v.ErrorRate == nil || *v.ErrorRate != rate {
		t.Errorf("%s, %v", hooked.bodies[0], err)
	}
	if !strings.Contains(string(chat.bodies[0]), "DEGRADED (simulated)") {
		t.Errorf("%s", chat.bodies[0])
	}
}

// TestAHookOfNobodyIsSuspended: a hook whose owner may decide about hooks no longer sends nothing, nor what waits to be
// sent again; others go on. Who resumes or changes it is its owner.
func TestAHookOfNobodyIsSuspended(t *testing.T) {
	t.Parallel()
	yes := true
	all := runs{"good": ended("good", engine.StatusCompleted, &yes, nil)}
	adas, bobs := &heard{refuse: 1}, &heard{}
	first, second := httptest.NewServer(adas), httptest.NewServer(bobs)
	defer first.Close()
	defer second.Close()
	settings, _ := postgrestest.Open(t)
	n := notify.Start(notify.Options{Settings: settings, Runs: all, Log: zerolog.Nop(), SettleTimeout: 3 * time.Second})
	t.Cleanup(n.Close)
	ada, bob := store.User{UserID: "1", Name: "ada"}, store.User{UserID: "2", Name: "bob"}
	l, err := n.Save(t.Context(), 0, []notify.HookInput{hook("a", notify.Webhook, first.URL, "", notify.Finished)}, ada)
	if err != nil {
		t.Fatal(err)
	}
	l, err = n.Save(t.Context(), l.Version, []notify.HookInput{{Hook: l.Hooks[0]},
		hook("b", notify.Webhook, second.URL, "", notify.Finished)}, bob)
	if err != nil || l.Hooks[0].Owner != "ada" || l.Hooks[1].Owner != "bob" {
		t.Fatalf("%+v, %v", l.Hooks, err)
	}
	n.Ended("good")
	bobs.await(t, 1)
	refused := func() bool {
		return slices.ContainsFunc(n.Deliveries(), func(d notify.Delivery) bool { return d.HookName == "a" })
	}
	for !refused() { // it is tried again in a second
		time.Sleep(time.Millisecond)
	}
	judge := func(h notify.Hook) string {
		if h.Owner == "ada" {
			return "ada, who saved it, is locked out"
		}
		return ""
	}
	users := func(context.Context) (func(notify.Hook) string, error) { return judge, nil }
	for range 2 {
		if err := n.Recheck(t.Context(), users); err != nil {
			t.Fatal(err)
		}
	}
	n.Ended("good")
	bobs.await(t, 2)
	time.Sleep(1500 * time.Millisecond)
	adas.mu.Lock()
	if len(adas.bodies) > 0 {
		t.Errorf("%d notifications came to the hook of a locked admin", len(adas.bodies))
	}
	adas.mu.Unlock()
	if d, err := n.SendTest(t.Context(), l.Hooks[0].ID); err != nil || d.Delivered ||
		d.Error != "it is suspended: ada, who saved it, is locked out" {
		t.Errorf("a test of a suspended hook: %+v, %v", d, err)
	}

	// Bob saves others: it stays as it is. He resumes it: it is his.
	now := func() notify.HookList {
		t.Helper()
		is, err := notify.ReadHooks(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	before := now()
	same := []notify.HookInput{{Hook: before.Hooks[0]}, {Hook: before.Hooks[1]}}
	if l, err = n.Save(t.Context(), before.Version, same, bob); err != nil || l.Hooks[0].Suspended == "" ||
		l.Hooks[0].Owner != "ada" {
		t.Errorf("%+v, %v", l.Hooks, err)
	}
	same[0].Resume = true
	if l, err = n.Save(t.Context(), l.Version, same, bob); err != nil || l.Hooks[0].Suspended != "" ||
		l.Hooks[0].Owner != "bob" {
		t.Errorf("%+v, %v", l.Hooks, err)
	}
	n.Ended("good")
	adas.await(t, 1)

	// What waits for a hook that is deleted is not sent either.
	adas.mu.Lock()
	adas.refuse = 1
	adas.mu.Unlock()
	tries := len(n.Deliveries())
	n.Ended("good")
	for len(n.Deliveries()) < tries+2 {
		time.Sleep(time.Millisecond)
	}
	if _, err = n.Save(t.Context(), l.Version, nil, bob); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	adas.mu.Lock()
	defer adas.mu.Unlock()
	if len(adas.bodies) != 1 {
		t.Errorf("a hook that was deleted was told: %d times in all", len(adas.bodies))
	}
}
