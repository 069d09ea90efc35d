package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// served is a server of this process, as `serve` makes it.
type served struct {
	t    *testing.T
	dir  string
	base string
	end  func()
}

// pingInterval is how often the servers look at their sockets.
const pingInterval = 300 * time.Millisecond

func serve(t *testing.T, control, dir string) *served {
	t.Helper()
	settings := clitest.Settings()
	settings.PingInterval = pingInterval
	ctx, cancel := context.WithCancel(context.Background())
	var out clitest.Output
	ended := make(chan int, 1)
	go func() {
		ended <- start(ctx, cancel, func() {}, settings, []string{"serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--database-url",
			control, "--data-dir", dir}, &out, &out)
	}()
	s := &served{t: t, dir: dir}
	s.end = func() {
		if s.end = func() {}; ctx.Err() == nil {
			cancel()
			if code := <-ended; code != terminal.ExitPassed {
				t.Errorf("serve ended with %d:\n%s", code, out.String())
			}
		}
	}
	t.Cleanup(func() { s.end() })
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if client, err := (operatorFlags{DataDir: dir}).client(); err == nil {
			s.base = client.base
			return s
		}
		if time.Since(begin) > clitest.StartTimeout {
			t.Fatalf("the server does not start:\n%s", out.String())
		}
	}
}

// loadstone runs a command on the server's data directory.
func (s *served) loadstone(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(s.t.Context(), func() {}, append(args, "--data-dir", s.dir), &out, &errs)
	return code, out.String(), errs.String()
}

// token makes one by the command.
func (s *served) token(args ...string) string {
	s.t.Helper()
	code, out, errs := s.loadstone(append([]string{"token"}, args...)...)
	secret := strings.TrimSpace(out)
	if code != terminal.ExitPassed || !strings.HasPrefix(secret, auth.PrefixAPI) || strings.Contains(secret, "\n") ||
		errs != "" {
		s.t.Fatalf("token %v: exit %d, %q, %q", args, code, out, errs)
	}
	return secret
}

// ask sends a request with a token and returns the status; the answer is read into out.
func (s *served) ask(method, path, token, body string, out any) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode
}

// TestSigninAndTokenCommands asks two real servers on one control store.
func TestSigninAndTokenCommands(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	control := postgrestest.NewControl(t)
	dir := t.TempDir()
	clitest.ShareKey(t, filepath.Join(dir, "one"), filepath.Join(dir, "two"))
	one, two := serve(t, control, filepath.Join(dir, "one")), serve(t, control, filepath.Join(dir, "two"))

	type me struct {
		Token struct {
			TokenID   string      `json:"token_id"`
			Name      string      `json:"name"`
			Scope     string      `json:"scope"`
			ExpiresAt engine.Time `json:"expires_at"`
		} `json:"token"`
	}
	who := func(s *served, token string) (m me) {
		t.Helper()
		if code := s.ask("GET", "/api/auth/me", token, "", &m); code != 200 {
			t.Fatalf("a token is answered %d", code)
		}
		return m
	}
	read, write, admin := one.token("reader", "--scope", "read", "--days", "1"), one.token("for ci"),
		one.token("admin", "--scope", "admin")
	for token, want := range map[string]struct {
		name, scope string
		days        int
		mints, runs int
	}{
		read:  {"reader", "read", 1, 403, 403},
		write: {"for ci", "write", 90, 403, 422},
		admin: {"admin", "admin", 90, 201, 422},
	} {
		m := who(two, token).Token // also on the other server
		if left := time.Until(m.ExpiresAt.Time); m.Name != want.name || m.Scope != want.scope ||
			left > time.Duration(want.days)*24*time.Hour || left < time.Duration(want.days)*24*time.Hour-time.Hour {
			t.Errorf("%s: %+v", want.name, m)
		}
		if code := one.ask("POST", "/api/auth/tokens", token, `{"name": "another"}`, nil); code != want.mints {
			t.Errorf("%s: making a token is answered %d", want.name, code)
		}
		if code := one.ask("POST", "/api/runs", token, `{"config": {}}`, nil); code != want.runs {
			t.Errorf("%s: an empty run is answered %d", want.name, code)
		}
	}
	if code := one.ask("POST", "/api/auth/signin-links", write, `{}`, nil); code != 403 {
		t.Errorf("a token makes a sign-in link: %d", code)
	}

	link := func() string {
		t.Helper()
		code, out, errs := one.loadstone("signin")
		_, secret, ok := strings.Cut(strings.TrimSpace(out), one.base+"/signin?token=")
		if code != terminal.ExitPassed || !ok || !strings.Contains(errs, "within an hour") {
			t.Fatalf("signin: exit %d, %q, %q", code, out, errs)
		}
		return `{"token": "` + secret + `"}`
	}
	first := link()
	second := link()
	for i, c := range []struct {
		link string
		want int
	}{{first, 401}, {second, 200}, {second, 401}} {
		if code := one.ask("POST", "/api/auth/signin", "", c.link, nil); code != c.want {
			t.Errorf("link %d is answered %d, want %d", i, code, c.want)
		}
	}

	// What another server on the store revokes ends a socket with the next ping.
	var created struct {
		RunID string `json:"run_id"`
	}
	body := `{"source": "name: watched\ntarget: {connection: {driver: postgres, dsn: 'postgres://u@127.0.0.1:1/d'}, table_name: t}\nworkload: {plugin: mix, concurrent_connections: 1, duration_seconds: 1}\n"}`
	if code := one.ask("POST", "/api/runs", write, body, &created); code != 201 {
		t.Fatalf("a run is answered %d", code)
	}
	dial := func(token string) *websocket.Conn {
		t.Helper()
		conn, res, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(one.base, "http")+"/ws/runs/"+created.RunID,
			http.Header{"Authorization": {"Bearer " + token}})
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	watching, staying := dial(read), dial(write)
	if code := two.ask("DELETE", "/api/auth/tokens/"+who(two, read).Token.TokenID, admin, "", nil); code != 204 {
		t.Fatalf("revoking is answered %d", code)
	}
	_ = watching.SetReadDeadline(time.Now().Add(10 * time.Second))
	var err error
	for err == nil {
		_, _, err = watching.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("a socket whose token another server revoked: %v", err)
	}
	_ = staying.SetReadDeadline(time.Now().Add(3 * pingInterval))
	if _, _, err := staying.ReadMessage(); err != nil && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a socket of another token: %v", err)
	}
	if code := two.ask("GET", "/api/auth/me", read, "", nil); code != 401 {
		t.Errorf("the revoked token is answered %d where it was revoked", code)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"token", "x", "--days", "0"}, "--days"},
		{[]string{"token", "x", "--days", "-3"}, "--days"},
		{[]string{"token", "x", "--days", "3651"}, "3650"},
		{[]string{"token", "", "--days", "3"}, "NAME"},
		{[]string{"token", "x", "--scope", "root"}, "read"},
	} {
		if code, out, errs := one.loadstone(c.args...); code != terminal.ExitUsage || out != "" ||
			!strings.Contains(strings.ToLower(errs), strings.ToLower(c.want)) {
			t.Errorf("%q: exit %d, %q, %q", c.args, code, out, errs)
		}
	}
	one.end()
	if code, _, errs := one.loadstone("token", "late"); code != terminal.ExitUsage ||
		!strings.Contains(errs, "No server runs on the data directory") {
		t.Errorf("a token without a server: exit %d, %q", code, errs)
	}
}
