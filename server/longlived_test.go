package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// lasting is an answer that goes on.
type lasting struct {
	t    *testing.T
	end  context.CancelFunc
	body io.ReadCloser
}

// streamed opens a watch of the catalog of streams, and reads its first event.
func (b *bench) streamed(header ...string) lasting {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/api/v1/streams/watch?sql="+
		url.QueryEscape("WATCH SELECT * FROM queries"), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	res, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("a watch: %v, %v", res, err)
	}
	b.t.Cleanup(func() { cancel(); _ = res.Body.Close() })
	first, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil || !strings.Contains(first, "SNAPSHOT") {
		b.t.Fatalf("a watch begins with %q, %v", first, err)
	}
	return lasting{b.t, cancel, res.Body}
}

// ends reports whether an answer ends within so long.
func (l lasting) ends(within time.Duration) bool {
	l.t.Helper()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, l.body)
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-time.After(within):
		l.end()
		<-over
		return false
	}
}

// TestWhatLastsEndsWithItsCaller: streams and sockets end when the token that opened them is revoked or expires, when
// its session signs out, and when its user is given another role, locked out or deleted; those of others go on.
func TestWhatLastsEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	other := b.streamed("Authorization", "Bearer "+b.token)
	secret, token := b.mint(auth.ScopeRead)
	ada, hers := b.join("ada", store.RoleOperator)
	bob, his := b.join("bob", store.RoleAdmin)
	eve, theirs := b.join("eve", store.RoleOperator)
	cookie := b.session()
	session := []string{"Authorization", "", "Cookie", cookie.Name + "=" + cookie.Value}
	// After all that takes long to be made: it is to be good when the stream begins.
	short, err := b.srv.APIToken(t.Context(), "short", time.Now().Add(1500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	patch := func(u store.User, to map[string]any) func() {
		return func() { b.do("PATCH", "/api/users/"+u.UserID, to).want(t, http.StatusOK) }
	}
	for _, c := range []struct {
		name   string
		header []string
		end    func()
	}{
		{"an expired token", []string{"Authorization", "Bearer " + short}, func() {}},
		{"a revoked token", []string{"Authorization", "Bearer " + secret}, func() {
			b.do("DELETE", "/api/auth/tokens/"+token, nil).want(t, http.StatusNoContent)
		}},
		{"a session that signs out", session, func() {
			b.do("POST", "/api/auth/signout", nil, session...).want(t, http.StatusNoContent)
		}},
		{"a user who is locked out", hers, patch(ada, map[string]any{"disabled": true})},
		{"an admin who is one no more", his, patch(bob, map[string]any{"role": "viewer"})},
		{"a user who is deleted", theirs, func() {
			b.do("DELETE", "/api/users/"+eve.UserID, nil).want(t, http.StatusNoContent)
		}},
	} {
		stream := b.streamed(c.header...)
		header := http.Header{}
		for i := 0; i+1 < len(c.header); i += 2 {
			if c.header[i+1] != "" {
				header.Set(c.header[i], c.header[i+1])
			}
		}
		conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(b.base, "http")+"/ws/runs/"+id, header)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.end()
		if !stream.ends(10 * time.Second) {
			t.Errorf("%s: the stream goes on", c.name)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		for err = nil; err == nil; {
			_, _, err = conn.ReadMessage()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the socket goes on", c.name)
		}
		_ = conn.Close()
	}
	if other.ends(100 * time.Millisecond) {
		t.Error("the stream of another token has ended")
	}
}

// TestAPartEndsWithItsCaller: the download of a single part is cut short when the token that asked for it is revoked.
func TestAPartEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	b := start(t)
	const size = 64 << 20 // more than lies on the way to a client that does not read
	run := b.recorded(1, size)
	secret, token := b.mint(auth.ScopeRead)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		b.base+"/api/runs/"+run.RunID+"/executions?part=executions-worker-0-0.parquet", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := b.client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK || res.ContentLength != size {
		t.Fatalf("a part: %v, %v", res, err)
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	b.do("DELETE", "/api/auth/tokens/"+token, nil).want(t, http.StatusNoContent)
	if n, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("all %d bytes came to who may read nothing any more", n+1<<20)
	}
	eventually(t, func() bool { return b.files.opened() == 0 }, "the part stays open")
}

// TestALinkEndsWithWhoMadeIt: what somebody may share no more is shown by no link of its own, until it may again; a
// link of who was deleted is gone, also when another comes of the same name.
func TestALinkEndsWithWhoMadeIt(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	root, session := b.join("root", store.RoleAdmin)
	ada, hers := b.join("ada", store.RoleOperator)
	made := decode[store.Connection](t, b.do("POST", "/api/connections", map[string]any{"name": "orders",
		"driver": "postgres", "dsn": restrictedDSN}, session...).want(t, http.StatusCreated))
	s := scenario("shared")
	s["target"].(map[string]any)["connection"] = made.Name
	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": s, "start": true}, hers...).
		want(t, http.StatusCreated))
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusStopping)
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusCompleted)
	link := func(header []string) string {
		t.Helper()
		share := decode[map[string]any](t, b.do("POST", "/api/runs/"+run.RunID+"/shares", "{}", header...).
			want(t, http.StatusCreated))
		u, err := url.Parse(share["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	}
	path, another := link(hers), link(session)
	shows := func(why string, path string, status int) {
		t.Helper()
		a := b.do("GET", path, nil, "Authorization", "")
		if a.StatusCode != status || status != http.StatusOK && strings.Contains(string(a.body), run.RunID) {
			t.Errorf("%s: status %d, want %d: %.300s", why, a.StatusCode, status, a.body)
		}
	}
	change := func(to map[string]any) {
		t.Helper()
		b.do("PATCH", "/api/users/"+ada.UserID, to).want(t, http.StatusOK)
	}
	restrict := func(on bool) {
		t.Helper()
		now := decode[store.Connection](t, b.do("GET", "/api/connections/"+made.ConnectionID, nil).want(t, http.StatusOK))
		b.do("PUT", "/api/connections/"+made.ConnectionID, map[string]any{"name": "orders", "driver": "postgres",
			"dsn": now.DSN, "version": now.Version, "access": map[string]any{"owner": root.Name, "restricted": on}},
			session...).want(t, http.StatusOK)
	}
	shows("before", path, http.StatusOK)
	change(map[string]any{"role": "viewer"})
	shows("of a viewer", path, http.StatusGone)
	change(map[string]any{"role": "operator"})
	shows("of an operator again", path, http.StatusOK)
	change(map[string]any{"disabled": true})
	shows("of who is locked out", path, http.StatusGone)
	change(map[string]any{"disabled": false})
	shows("of who is let in again", path, http.StatusOK)
	restrict(true)
	shows("of who may not use the connection", path, http.StatusGone)
	restrict(false)
	shows("of who may use it again", path, http.StatusOK)
	b.do("DELETE", "/api/users/"+ada.UserID, nil).want(t, http.StatusNoContent)
	shows("of who is gone", path, http.StatusNotFound)
	b.join("ada", store.RoleAdmin)
	shows("of who is gone, with another of the name", path, http.StatusNotFound)
	shows("of somebody else", another, http.StatusOK)
	if strings.Contains(string(b.do("GET", path, nil, "Authorization", "").body), "ada") {
		t.Error("a stranger is told who made a link")
	}
}

// askedTables answer no query and no preview before it is ended.
type askedTables struct {
	noTables
	asked chan<- string
}

func (a askedTables) Query(ctx context.Context, _ string, _ int) (query.Answer, error) {
	return query.Answer{}, a.wait(ctx, "query")
}

func (a askedTables) Preview(ctx context.Context, _ refresh.Table) (query.Preview, error) {
	return query.Preview{}, a.wait(ctx, "preview")
}

func (a askedTables) wait(ctx context.Context, what string) error {
	a.asked <- what
	<-ctx.Done()
	return ctx.Err()
}

// TestWhatIsAskedEndsWithItsCaller: queries of results, their exports and previews end when their user is locked out,
// and so does what asks a target: a preflight, say.
func TestWhatIsAskedEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 4)
	b := start(t, func(o *server.Options) {
		o.Tables = askedTables{asked: asked}
		o.Preflight = func(ctx context.Context, _ engine.Scenario, _ bool) (any, error) {
			asked <- "preflight"
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	ada, hers := b.join("ada", store.RoleOperator)
	requests := map[string]any{
		"/api/query":            map[string]any{"sql": "SELECT 1"},
		"/api/query/export":     map[string]any{"sql": "SELECT 1", "format": "csv"},
		"/api/v1/table-preview": map[string]any{"definition": "SELECT 1"},
		"/api/preflight":        map[string]any{"scenario": scenario("s")},
	}
	ended := make(chan string, len(requests))
	for path, body := range requests {
		go func() {
			b.do("POST", path, body, hers...)
			ended <- path
		}()
	}
	for range requests {
		select {
		case <-asked:
		case path := <-ended:
			t.Fatalf("%s is answered before its user is locked out", path)
		}
	}
	b.do("PATCH", "/api/users/"+ada.UserID, map[string]any{"disabled": true}).want(t, http.StatusOK)
	late := time.After(10 * time.Second)
	for len(requests) > 0 {
		select {
		case path := <-ended:
			delete(requests, path)
		case <-late:
			t.Fatalf("10 s after their user was locked out these go on: %v", requests)
		}
	}
}
