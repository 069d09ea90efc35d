package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// TestBadInput sends what must be refused, and names the field that must be blamed.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("x")
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, method, path string
		body               any
		header             []string
		status             int
		code               engine.Code
		field              string
	}{
		{"unknown field", "POST", "/api/runs", `{"sorce":"x"}`, nil, 422, "invalid", "sorce"},
		{"unknown field below", "POST", "/api/auth/tokens", `{"name":"x","more":{"a":1}}`, nil, 422, "invalid", "more"},
		{"missing field", "POST", "/api/auth/tokens", `{}`, nil, 422, "invalid", "name"},
		{"wrong type", "POST", "/api/auth/tokens", `{"name":7}`, nil, 422, "invalid", "name"},
		{"null", "POST", "/api/auth/tokens", `{"name":null}`, nil, 422, "invalid", "name"},
		{"huge number", "POST", "/api/auth/tokens", `{"name":"x","expires_in_days":1e400}`, nil, 422, "invalid",
			"expires_in_days"},
		{"2^63", "PUT", "/api/templates/x", `{"source":"x","version":9223372036854775808}`, nil, 422, "invalid", "version"},
		{"fraction", "POST", "/api/auth/tokens", `{"name":"x","expires_in_days":1.5}`, nil, 422, "invalid",
			"expires_in_days"},
		{"twice", "POST", "/api/auth/tokens", `{"name":"x","name":"y"}`, nil, 422, "invalid", "name"},
		{"NUL", "POST", "/api/auth/tokens", `{"name":"a\u0000b"}`, nil, 422, "invalid", "name"},
		{"invalid UTF-8", "POST", "/api/auth/tokens", []byte("{\"name\":\"\xff\"}"), nil, 400, "malformed", ""},
		{"malformed", "POST", "/api/auth/tokens", `{"name":`, nil, 400, "malformed", ""},
		{"not an object", "POST", "/api/auth/tokens", `[1]`, nil, 422, "invalid", "body"},
		{"two objects", "POST", "/api/auth/tokens", `{"name":"x"}{}`, nil, 400, "malformed", ""},
		{"no body", "POST", "/api/auth/tokens", nil, nil, 400, "malformed", ""},
		{"deep", "POST", "/api/runs", `{"scenario":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500) + "}",
			nil, 422, "invalid", "scenario.a"},
		{"content type", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Type", "text/plain"}, 415,
			"media_type", ""},
		{"no content type", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Type", ""}, 415, "media_type", ""},
		{"charset", "POST", "/api/auth/tokens", `{"nam":"x"}`, []string{"Content-Type", "application/json; charset=utf-8"},
			422, "invalid", "nam"},
		{"compressed", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Encoding", "gzip"}, 415, "media_type",
			""},
		{"too large", "POST", "/api/templates", `{"source":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "too_large", ""},
		{"huge set", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload": 1}},
			nil, 422, "invalid", "workload"},
		{"nothing to run", "POST", "/api/runs", `{}`, nil, 422, "invalid", "template_id"},
		{"two ways", "POST", "/api/runs", `{"source":"x","template_id":"y"}`, nil, 422, "invalid", "template_id"},
		{"no such template", "POST", "/api/runs", `{"template_id":"nope"}`, nil, 404, "not_found", "template_id"},
		{"no such template name", "POST", "/api/runs", `{"template_name":"no pe"}`, nil, 404, "not_found", "template_name"},
		{"mistyped scenario", "POST", "/api/runs", map[string]any{"scenario": map[string]any{"name": "x", "worklod": 1}}, nil,
			422, "invalid", "worklod"},
		{"absurd number", "POST", "/api/runs",
			map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload.concurrent_connections": 1000000000}}, nil,
			422, "invalid", "workload.concurrent_connections"},
		{"absurd time", "POST", "/api/runs",
			map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload.duration_seconds": 9.3e18}}, nil, 422,
			"invalid", "workload.duration_seconds"},
		{"bad path in set", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"": 1}}, nil,
			422, "invalid", ""},
		{"bad limit", "GET", "/api/runs?limit=0", nil, nil, 422, "invalid", "limit"},
		{"text limit", "GET", "/api/runs?limit=many", nil, nil, 422, "invalid", "limit"},
		{"huge limit", "GET", "/api/runs?limit=99999999999999999999", nil, nil, 422, "invalid", "limit"},
		{"bad status", "GET", "/api/runs?status=DONE", nil, nil, 422, "invalid", "status[0]"},
		{"bad time", "GET", "/api/runs?since=yesterday", nil, nil, 422, "invalid", "since"},
		{"bad tag", "GET", "/api/runs?tag=x", nil, nil, 422, "invalid", "tag"},
		{"unknown parameter", "GET", "/api/runs?limt=1", nil, nil, 422, "invalid", "limt"},
		{"bad escape", "GET", "/api/runs?search=%zz", nil, nil, 400, "malformed", ""},
		{"query not text", "GET", "/api/runs?search=%ff", nil, nil, 422, "invalid", "search"},
		{"query NUL", "GET", "/api/runs?search=a%00", nil, nil, 422, "invalid", "search"},
		{"unknown run", "GET", "/api/runs/nope", nil, nil, 404, "not_found", ""},
		{"unknown run's log", "GET", "/api/runs/nope/logs", nil, nil, 404, "not_found", ""},
		{"unknown run's socket", "GET", "/ws/runs/nope", nil, nil, 404, "not_found", ""},
		{"id with a slash", "GET", "/api/runs/a%2Fb", nil, nil, 404, "not_found", ""},
		{"id with a quote", "POST", "/api/runs/'%20or%201=1/start", nil, nil, 404, "not_found", ""},
		{"id with NUL", "DELETE", "/api/templates/a%00", nil, nil, 404, "not_found", ""},
		{"id not text", "GET", "/api/connections/%ff", nil, nil, 404, "not_found", ""},
		{"long id", "GET", "/api/runs/" + long, nil, nil, 404, "not_found", ""},
		{"too long id", "GET", "/api/runs/" + long + long, nil, nil, 422, "invalid", "id"},
		{"unknown address", "GET", "/api/nope", nil, nil, 404, "not_found", ""},
		{"other case", "GET", "/api/Runs", nil, nil, 404, "not_found", ""},
		{"wrong method", "PATCH", "/api/runs", nil, nil, 405, "method_not_allowed", ""},
		{"get of a post", "GET", "/api/auth/signin", nil, nil, 405, "method_not_allowed", ""},
		{"unheard of method", "BREW", "/api/runs", nil, nil, 405, "method_not_allowed", ""},
		{"post to the page", "POST", "/", nil, nil, 405, "method_not_allowed", ""},
		{"not a socket", "GET", "/ws/runs/" + run.RunID, nil, nil, 426, "malformed", ""},
		{"log level", "GET", "/api/runs/" + run.RunID + "/logs?level=LOUD", nil, nil, 422, "invalid", "level"},
		{"no executions", "GET", "/api/runs/" + run.RunID + "/executions", nil, nil, 404, "not_found", ""},
		{"format", "GET", "/api/runs/" + run.RunID + "/executions?format=xls", nil, nil, 422, "invalid", "format"},
		{"download parameter", "GET", "/api/runs/" + run.RunID + "/executions?prt=1", nil, nil, 422, "invalid", "prt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			p := b.do(c.method, c.path, c.body, c.header...).problem(t, c.status, c.code)
			if c.field == "" {
				return
			}
			replaced, _ := c.body.(map[string]any)
			for _, e := range p.Errors {
				if replaced["set"] != nil && e.Line != 0 {
					t.Errorf("%s: line %d is one of a text that nobody has seen", e.Field, e.Line)
				}
				if e.Field == c.field && e.Message != "" || strings.HasPrefix(e.Field, c.field+".") {
					return
				}
			}
			t.Errorf("no error blames %q: %+v", c.field, p)
		})
	}
	b.t = t
	b.do("GET", "/healthz", nil).want(t, 200)
}

func TestInternalsDoNotLeak(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.runs.panics = true
	p := b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}).problem(t, 500, engine.CodeInternal)
	if strings.Contains(fmt.Sprint(p), "secret internals") {
		t.Errorf("problem %+v", p)
	}
	if log := b.log.String(); !strings.Contains(log, "secret internals") || !strings.Contains(log, p.RequestID) {
		t.Errorf("the log lacks the cause or the id: %s", log)
	}
	b.store.mu.Lock()
	b.store.down = errors.New("pq: password authentication failed for user admin_of_store")
	b.store.mu.Unlock()
	a := b.do("GET", "/api/templates/x", nil)
	p = a.problem(t, 500, engine.CodeInternal)
	if strings.Contains(string(a.body), "admin_of_store") || !strings.Contains(b.log.String(), p.RequestID) {
		t.Errorf("answer %s", a.body)
	}
	b.store.mu.Lock()
	b.store.down = fmt.Errorf("asking: %w", store.ErrUnavailable)
	b.store.mu.Unlock()
	away := b.do("GET", "/api/templates/x", nil)
	if away.problem(t, 503, engine.CodeUnavailable); away.Header.Get("Retry-After") != "5" {
		t.Errorf("nobody says when to ask again: %v", away.Header)
	}
	b.do("GET", "/readyz", nil, "Authorization", "").problem(t, 503, engine.CodeUnavailable)
	b.do("GET", "/healthz", nil, "Authorization", "").want(t, 200)
}

// TestProbesOfStrangersAskOnce asks for readiness many times at once: the store is asked once a second.
func TestProbesOfStrangersAskOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200) })
	}
	wg.Wait()
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if limit := 1 + int(time.Since(begin)/time.Second); b.store.pings > limit {
		t.Errorf("the store was asked %d times", b.store.pings)
	}
}

func TestSlowBodyIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.ReadTimeout = 300 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{", b.token)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 408")) || !bytes.Contains(text, []byte(`"code":"timeout"`)) {
		t.Errorf("answer %q, %v", text, err)
	}
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal(what)
}

// TestHugeBodies sends more than is read at all: the server says so and lives.
func TestHugeBodies(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, size := range []int{2 << 20, 3 << 20} {
		b.do("POST", "/api/templates", bytes.Repeat([]byte("x"), size)).problem(t, 413, engine.CodeTooLarge)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// The announcement is refused when the body begins; the rest is not waited for.
	_, _ = fmt.Fprintf(conn, "POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: 9000000000\r\n\r\n%s",
		b.token, strings.Repeat("x", 8<<10))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 413")) ||
		!bytes.Contains(text, []byte(`"code":"too_large"`)) {
		t.Errorf("answer %q, %v", text, err)
	}
	b.do("GET", "/healthz", nil).want(t, 200)
}

// TestStrangersSendNothing announces bodies without a token and holds that none of
// them is waited for or read, and that the connection goes on with the next request.
func TestStrangersSendNothing(t *testing.T) {
	t.Parallel()
	b := start(t)
	ask := func(head, text string) (status int, seen string) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = fmt.Fprintf(conn, "%s\r\nHost: localhost\r\nContent-Type: application/json\r\n%s", head, text)
		r := bufio.NewReader(conn)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.Close {
			return res.StatusCode, string(body)
		}
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if next, err := http.ReadResponse(r, nil); err != nil || next.StatusCode != http.StatusOK {
			t.Errorf("%s: the next request on the connection: %v, %v", head, next, err)
		}
		return res.StatusCode, string(body)
	}
	whole := func(n int) string {
		return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
	}
	chunked := "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+strings.Repeat("x", 0x8000)+"\r\n", 60) +
		"0\r\n\r\n"
	for _, c := range []struct {
		name, head, text string
		status           int
	}{
		{"announced and never sent", "POST /api/runs HTTP/1.1", "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 9000),
			401},
		{"one that fits", "POST /api/runs HTTP/1.1", whole(100), 401},
		{"a large one", "POST /api/runs HTTP/1.1", whole(1 << 20), 401},
		{"chunked", "PUT /api/templates/x HTTP/1.1", chunked, 401},
		{"an upload", "POST /api/plugins HTTP/1.1", whole(1 << 20), 401},
		{"a sign-in of 5 KB", "POST /api/auth/signin HTTP/1.1", whole(5 << 10), 413},
		{"a sign-in in chunks", "POST /api/auth/signin HTTP/1.1", chunked, 413},
		{"a sign-in that fits", "POST /api/auth/signin HTTP/1.1", whole(4 << 10), 400},
		{"a page", "POST / HTTP/1.1", whole(1 << 20), 405},
		{"a probe", "GET /healthz HTTP/1.1", whole(1 << 20), 200},
	} {
		if status, seen := ask(c.head, c.text); status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, seen)
		}
	}
}
