package promsuite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is for how long a test waits for a program.
const patience = 3 * time.Minute

// program is the one named by LOADSTONE_PROGRAM, as a process.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	data string // its data directory
	log  string // the file with what it says
	done chan struct{}
	// base is the server's address, and token one of a user who may only read.
	base, token string
}

// file is the program's, of which there is none in most tests.
func file(t *testing.T) string {
	t.Helper()
	name := os.Getenv("LOADSTONE_PROGRAM")
	if name == "" {
		t.Skip("LOADSTONE_PROGRAM names no program")
	}
	return name
}

// folder is one that the user of an embedded Postgres can enter, which t.TempDir is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-promsuite-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// launch starts the program, which is killed at the end of the test.
func launch(t *testing.T, data string, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, data: data, done: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), file(t), append(args, "--data-dir", data)...)
	p.cmd.Env = append(append(os.Environ(), "LOADSTONE_ALLOW_TARGETS=0.0.0.0/0,::/0,unix:/"), env...)
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.log, p.cmd.Stdout, p.cmd.Stderr = out.Name(), out, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); _ = out.Close(); close(p.done) }()
	t.Cleanup(func() {
		if p.kill(); t.Failed() {
			t.Log(p.said())
		}
	})
	return p
}

// serve starts a server with a run of its own, and waits until that is over.
func serve(t *testing.T, data string, env []string, args ...string) *program {
	t.Helper()
	p := server(t, data, env, args...)
	p.await("the end of its run", func() bool { return strings.Contains(p.said(), "Serving on;") })
	return p
}

// server starts a server, and waits until it answers.
func server(t *testing.T, data string, env []string, args ...string) *program {
	t.Helper()
	p := launch(t, data, env, append([]string{"serve", "--listen", "127.0.0.1:0", "--calibrate", "off"}, args...)...)
	address := regexp.MustCompile(`Open:\s+(?:\x1b\[1m)?(http://127\.0\.0\.1:\d+)/`)
	p.await("the server", func() bool { return address.MatchString(p.said()) })
	p.base = address.FindStringSubmatch(p.said())[1]
	p.token = p.secret("read")
	return p
}

// write asks a server for something that changes it.
func (p *program) write(token, path string, body, into any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.base+path, bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	p.answer(req, token, into)
}

func (p *program) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// secret is a token of a scope.
func (p *program) secret(scope string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), file(p.t), "token", "promsuite "+scope, "--scope", scope, "--data-dir",
		p.data).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %s\n%s", err, out, p.said())
	}
	return regexp.MustCompile(`\S{30,}`).FindString(string(out))
}

// await waits for something.
func (p *program) await(what string, is func() bool) {
	p.t.Helper()
	for begin := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > patience {
			p.t.Fatalf("%s did not come", what)
		}
		select {
		case <-p.done:
			p.t.Fatalf("the program has ended before %s", what)
		default:
		}
	}
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// end has the program end in order, and says how long that took.
func (p *program) end() time.Duration {
	p.t.Helper()
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	<-p.done
	return time.Since(begin)
}

// get asks a server.
func (p *program) get(path string, into any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.answer(req, p.token, into)
}

func (p *program) answer(req *http.Request, token string, into any) {
	p.t.Helper()
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		p.t.Fatalf("%s: %s, %v: %s", req.URL.Path, res.Status, err, body)
	}
	if text, ok := into.(*string); ok {
		*text = string(body)
	} else if err := json.Unmarshal(body, into); err != nil {
		p.t.Fatalf("%v: %s", err, body)
	}
}

// destination is what a server says of one that it sends to.
type destination struct {
	Name         string           `json:"name"`
	Address      string           `json:"address"`
	Failing      bool             `json:"failing"`
	SentCount    int64            `json:"sent_count"`
	WaitingCount int64            `json:"waiting_count"`
	RetryCount   int64            `json:"retry_count"`
	LostCounts   map[string]int64 `json:"lost_counts"`
	LastError    string           `json:"last_error"`
}

// out are the destinations of a server, by their address.
func (p *program) out() map[string]destination {
	p.t.Helper()
	var all struct{ Destinations []destination }
	p.get("/api/v1/out", &all)
	by := map[string]destination{}
	for _, d := range all.Destinations {
		by[d.Address] = d
	}
	return by
}

// fetch reads an address that asks nobody to sign in.
func fetch(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return string(body)
}
