package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// program is the program with a data directory of its own, run command by command.
type program struct {
	t   *testing.T
	dir string
	// jar has the session, which outlives a server.
	jar http.CookieJar
}

func newProgram(t *testing.T) *program {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-program-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for the user that Postgres runs as
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &program{t: t, dir: dir}
}

func (p *program) path(name string) string { return filepath.Join(p.dir, name) }

// write puts a file into the program's folder.
func (p *program) write(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

// invoke runs a command to its end, and returns its exit code and all that it wrote.
func (p *program) command(args ...string) (code int, text string) {
	p.t.Helper()
	return p.commandIn(nil, args...)
}

// commandIn is command with more variables.
func (p *program) commandIn(env []string, args ...string) (code int, text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, programFile(p.t), args...)
	cmd.Env = append(append(os.Environ(), programEnv+"=1", "LOADSTONE_CALIBRATE=off"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil || ctx.Err() != nil {
		p.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// run runs a template; the summary is nil where none was written.
func (p *program) run(template string, args ...string) (code int, text string, s *engine.Summary) {
	p.t.Helper()
	out := p.path(filepath.Base(template) + ".json")
	_ = os.Remove(out)
	code, text = p.command(append([]string{"run", template, "--data-dir", p.path("data"), "--out", out, "--junit",
		out + ".xml"}, args...)...)
	if raw, err := os.ReadFile(out); err == nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			p.t.Fatal(err)
		}
	}
	return code, text, s
}

// liveServer is the program as a server, with a browser signed in to it.
type liveServer struct {
	*process
	t    *testing.T
	base string
	http *http.Client
}

// serve starts the server on the program's data.
func (p *program) serve(args ...string) *liveServer {
	p.t.Helper()
	s := &liveServer{process: launch(p.t,
		append([]string{"serve", "--data-dir", p.path("data"), "--listen", "127.0.0.1:0"}, args...)...), t: p.t}
	var link string
	waitFor(p.t, startLimit, "the server's link", func() bool {
		for line := range strings.Lines(s.out.String()) {
			if _, after, ok := strings.Cut(line, "Open:"); ok && strings.HasSuffix(line, "\n") {
				link = strings.TrimSpace(after)
			}
		}
		return link != ""
	})
	base, token, _ := strings.Cut(link, "/signin?token=")
	if p.jar == nil {
		var err error
		if p.jar, err = cookiejar.New(nil); err != nil {
			p.t.Fatal(err)
		}
	}
	s.base, s.http = base, &http.Client{Jar: p.jar, Timeout: time.Minute}
	if token == "" { // somebody has signed in to the server before
		return s
	}
	if status, body := s.send("POST", "/api/auth/signin", `{"token":"`+token+`"}`); status != http.StatusOK {
		p.t.Fatalf("signing in: %d %s", status, body)
	}
	return s
}

func (s *liveServer) send(method, path, body string) (status int, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", s.base)
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func (s *liveServer) get(path string) string {
	s.t.Helper()
	status, body := s.send("GET", path, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

// stop ends the server as a user does.
func (s *liveServer) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.wait(s.t, time.Minute)
}

// waitFor waits for what a process does in its own time.
func waitFor(t *testing.T, limit time.Duration, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s after %v", what, limit)
		}
	}
}
