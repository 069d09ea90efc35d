package clitest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	apibinds "github.com/loadstone-db/loadstone/server/api"
)

// Program is the program with a data directory of its own, run command by command.
type Program struct {
	T   *testing.T
	Dir string
	// Jar has the session, which outlives a server.
	Jar http.CookieJar
}

// NewProgram makes the program a folder that ends with the test.
func NewProgram(t *testing.T) *Program {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-program-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for the user that Postgres runs as
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &Program{T: t, Dir: dir}
}

// Path is that of a file in the program's folder.
func (p *Program) Path(name string) string { return filepath.Join(p.Dir, name) }

// Write puts a file into the program's folder.
func (p *Program) Write(name, text string) string {
	p.T.Helper()
	if err := os.WriteFile(p.Path(name), []byte(text), 0o600); err != nil {
		p.T.Fatal(err)
	}
	return p.Path(name)
}

// Command runs a command to its end, and returns its exit code and all that it wrote.
func (p *Program) Command(args ...string) (code int, text string) {
	p.T.Helper()
	return p.CommandIn(nil, args...)
}

// CommandIn is command with more variables.
func (p *Program) CommandIn(env []string, args ...string) (code int, text string) {
	p.T.Helper()
	fillDataDir(p.T, args, env)
	ctx, cancel := context.WithTimeout(context.Background(), StartTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, ProgramFile(p.T), args...)
	cmd.Env = append(append(os.Environ(), ProgramEnv+"=1", "LOADSTONE_CALIBRATE=off"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil || ctx.Err() != nil {
		p.T.Fatalf("%v: %v: %s", args, err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Run runs a template; the summary is nil where none was written.
func (p *Program) Run(template string, args ...string) (code int, text string, s *engine.Summary) {
	p.T.Helper()
	out := p.Path(filepath.Base(template) + ".json")
	_ = os.Remove(out)
	code, text = p.Command(append([]string{"run", template, "--data-dir", p.Path("data"), "--out", out, "--junit",
		out + ".xml"}, args...)...)
	if raw, err := os.ReadFile(out); err == nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			p.T.Fatal(err)
		}
	}
	return code, text, s
}

// LiveServer is the program as a server, with a browser signed in to it.
type LiveServer struct {
	*Process
	T    *testing.T
	Base string
	HTTP *http.Client
}

// Serve starts the server on the program's data.
func (p *Program) Serve(args ...string) *LiveServer {
	p.T.Helper()
	s := &LiveServer{Process: Launch(p.T,
		append([]string{"serve", "--data-dir", p.Path("data"), "--listen", "127.0.0.1:0"}, args...)...), T: p.T}
	var link string
	WaitFor(p.T, StartTimeout, "the server's link", func() bool {
		for line := range strings.Lines(s.Out.String()) {
			if _, after, ok := strings.Cut(line, "Open:"); ok && strings.HasSuffix(line, "\n") {
				link = strings.TrimSpace(after)
			}
		}
		return link != ""
	})
	base, token, _ := strings.Cut(link, "/signin?token=")
	if p.Jar == nil {
		var err error
		if p.Jar, err = cookiejar.New(nil); err != nil {
			p.T.Fatal(err)
		}
	}
	s.Base, s.HTTP = base, &http.Client{Jar: p.Jar, Timeout: time.Minute}
	if token == "" { // somebody has signed in to the server before
		return s
	}
	if status, body := s.Send("POST", "/api/auth/signin", `{"token":"`+token+`"}`); status != http.StatusOK {
		p.T.Fatalf("signing in: %d %s", status, body)
	}
	return s
}

// Send makes a request in the session of the browser, from the server's own page.
func (s *LiveServer) Send(method, path, body string) (status int, answer string) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.Base+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", s.Base)
	resp, err := s.HTTP.Do(req)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// MustGet is what an address answers that has to be there.
func (s *LiveServer) MustGet(path string) string {
	s.T.Helper()
	status, body := s.Send("GET", path, "")
	if status != http.StatusOK {
		s.T.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

// Stop ends the server as a user does.
func (s *LiveServer) Stop() {
	s.T.Helper()
	_ = s.Cmd.Process.Signal(os.Interrupt)
	_ = s.Wait(s.T, time.Minute)
}

// WaitFor waits for what a process does in its own time.
func WaitFor(t *testing.T, limit time.Duration, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s after %v", what, limit)
		}
	}
}

// GetJSON reads an answer of the server.
func (s *LiveServer) GetJSON(path string, into any) {
	s.T.Helper()
	if err := json.Unmarshal([]byte(s.MustGet(path)), into); err != nil {
		s.T.Fatal(err)
	}
}

// StartRun starts a run of a template.
func (s *LiveServer) StartRun(source string) (run engine.Run) {
	s.T.Helper()
	return s.StartRunAs(map[string]any{"source": source, "start": true})
}

// StartRunAs makes a run of a request, and starts it.
func (s *LiveServer) StartRunAs(what map[string]any) (run engine.Run) {
	s.T.Helper()
	body, err := json.Marshal(what)
	if err != nil {
		s.T.Fatal(err)
	}
	status, answer := s.Send("POST", "/api/runs", string(body))
	if err := json.Unmarshal([]byte(answer), &run); err != nil || status != http.StatusCreated {
		s.T.Fatalf("%d %s %v", status, answer, err)
	}
	return run
}

// AwaitEnd waits until a run is over and its figures are there.
func (s *LiveServer) AwaitEnd(id string) (d engine.RunDetail) {
	s.T.Helper()
	WaitFor(s.T, StartTimeout, "the end of "+id, func() bool {
		s.GetJSON("/api/runs/"+id, &d)
		return d.Status.Terminal() && (d.Summary != nil || d.Status == engine.StatusFailed)
	})
	return d
}

// Response is what a server said.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// MediaType is the type of an answer, without its parameters.
func (a Response) MediaType() string {
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return media
}

// Exchange makes a request with bytes as they are; a caller is a header, none the session.
func (s *LiveServer) Exchange(method, path, body string, caller ...string) Response {
	s.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.Base, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	at, query, _ := strings.Cut(path, "?")
	plain, err := url.PathUnescape(at)
	if err != nil {
		s.T.Fatal(err)
	}
	req.URL.Path, req.URL.RawPath, req.URL.RawQuery = plain, at, query
	req.Header.Set("Content-Type", "application/json")
	client := s.HTTP
	for i := 0; i < len(caller); i += 2 {
		req.Header.Set(caller[i], caller[i+1])
		client = &http.Client{Timeout: s.HTTP.Timeout}
	}
	if len(caller) == 0 {
		req.Header.Set("Origin", s.Base)
	}
	resp, err := client.Do(req)
	if err != nil {
		s.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.T.Fatalf("%s %s: %v", method, path, err)
	}
	return Response{resp.StatusCode, resp.Header, raw}
}

// Parameters are the kept parameters of a run: with their values by POST.
func (s *LiveServer) Parameters(method, id, query string) (kept apibinds.KeptBinds) {
	s.T.Helper()
	body := ""
	if method == http.MethodPost {
		body = "{}"
	}
	status, answer := s.Send(method, "/api/v1/runs/"+id+"/binds?"+query, body)
	if status != http.StatusOK {
		s.T.Fatalf("%s: %d %s", query, status, answer)
	}
	if err := json.Unmarshal([]byte(answer), &kept); err != nil {
		s.T.Fatal(err)
	}
	return kept
}
