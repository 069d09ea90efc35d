package server_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// prospects are what a server can be told of its nodes and results.
type prospects struct {
	mu             sync.Mutex
	nodes, results error
	looks          int
}

func (p *prospects) CheckNodes() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes
}

func (p *prospects) CheckResults() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return p.results
}

// TestReadyIsWhoCanCreateARun: each cause is told by its check and in words, no secret of it to a stranger, and it is
// over when the cause is. A probe leaves checks out by their names.
func TestReadyIsWhoCanCreateARun(t *testing.T) {
	t.Parallel()
	secret := errors.New("worker-7 at 10.1.2.3 in /srv/secret")
	for name, c := range map[string]struct {
		set     func(b *bench, p *prospects, broken bool)
		words   string
		exclude string
	}{
		"control_store": {func(b *bench, _ *prospects, broken bool) {
			b.store.mu.Lock()
			defer b.store.mu.Unlock()
			if b.store.down = nil; broken {
				b.store.down = store.ErrUnavailable
			}
		}, "control store", ""},
		"results": {func(_ *bench, p *prospects, broken bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.results = nil; broken {
				p.results = secret
			}
		}, "Results cannot be stored", "?exclude=results"},
		"nodes": {func(_ *bench, p *prospects, broken bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.nodes = nil; broken {
				p.nodes = secret
			}
		}, "No node takes run workers", "?exclude=results,nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &prospects{}
			b := start(t, func(o *server.Options) { o.Readiness = p })
			ask := func(query string) answer { return b.do("GET", "/readyz"+query, nil, "Authorization", "") }
			if text := string(ask("").want(t, 200).body); !strings.Contains(text, `"results":"ok"`) {
				t.Error(text)
			}
			c.set(b, p, true)
			time.Sleep(1100 * time.Millisecond) // an answer holds for a second
			a := ask("")
			problem := a.problem(t, 503, engine.CodeUnavailable)
			if len(problem.Errors) != 1 || problem.Errors[0].Field != name || !strings.Contains(problem.Detail, c.words) ||
				strings.Contains(string(a.body), "10.1.2.3") || strings.Contains(string(a.body), "/srv") {
				t.Errorf("%s", a.body)
			}
			if c.exclude != "" {
				ask(c.exclude).want(t, 200)
				other := map[string]string{"results": "nodes", "nodes": "results"}[name]
				ask("?exclude="+other).problem(t, 503, engine.CodeUnavailable)
			}
			c.set(b, p, false)
			time.Sleep(1100 * time.Millisecond)
			ask("").want(t, 200)
		})
	}
	t.Run("a name that is no check", func(t *testing.T) {
		t.Parallel()
		p := &prospects{}
		b := start(t, func(o *server.Options) { o.Readiness = p })
		for _, query := range []string{"?exclude=node", "?exclude=control_store", "?exclude=", "?exclude=nodes,,results"} {
			b.do("GET", "/readyz"+query, nil, "Authorization", "").problem(t, 422, engine.CodeInvalid)
		}
		for range 20 {
			b.do("GET", "/readyz?exclude=nodes&exclude=results", nil, "Authorization", "").want(t, 200)
		}
		for range 20 {
			b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.looks > 4 {
			t.Errorf("strangers had the results looked at %d times", p.looks)
		}
	})
}

// TestATokenThatEndsIsToldBefore: tokens that are in use and end within two weeks are counted, and whoever asks for the
// demand of nodes with one that has ended is counted as refused: the alerts go by both.
func TestATokenThatEndsIsToldBefore(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Scaling = demand{} })
	mint := func(name string, days int) string {
		return decode[struct{ Secret string }](t, b.do("POST", "/api/auth/tokens",
			map[string]any{"name": name, "scope": "read", "expires_in_days": days}).want(t, 201)).Secret
	}
	soon, later := mint("keda", 5), mint("ci", 90)
	mint("unused", 5)
	count := func() string {
		text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
		for line := range strings.Lines(text) {
			if n, ok := strings.CutPrefix(line, "loadstone_api_tokens_ending "); ok {
				return strings.TrimSpace(n)
			}
		}
		return "none"
	}
	before := count()
	for _, token := range []string{soon, later} {
		b.do("GET", "/api/auth/me", nil, "Authorization", "Bearer "+token).want(t, 200)
	}
	if after := count(); before != "0" || after != "1" {
		t.Errorf("%s tokens end soon, and %s after one was used", before, after)
	}
	b.do("GET", "/api/v1/scaling", nil, "Authorization", "Bearer lst_ended").want(t, 401)
	text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
	if !strings.Contains(text, `loadstone_http_requests_total{method="GET",route="/api/v1/scaling",status="401"} 1`) {
		t.Error("a refused scaler is not counted under its route")
	}
}
