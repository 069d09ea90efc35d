//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/plugins/host/hostiletest"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
)

// growthLimit is how much memory the corpus may cost the server for good.
const growthLimit = 50 << 20

// testServer is a server of its own: the real binary, a data directory, the built-in Postgres.
type testServer struct {
	t    *testing.T
	cmd  *exec.Cmd
	base string
	http *http.Client
}

func startServer(t *testing.T) *testServer {
	t.Helper()
	binary := quarantinetest.Binary(t)
	dir, err := os.MkdirTemp("", "loadstone-hostile-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for the user that Postgres runs as
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, cmd: exec.Command(binary, "serve", "--data-dir", filepath.Join(dir, "data"), "--listen",
		"127.0.0.1:0")}
	s.cmd.Stdout, s.cmd.Stderr = out, log
	s.cmd.Env = append(os.Environ(), "LOADSTONE_CALIBRATE=off")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			showLog(t, log.Name())
		}
		_ = os.RemoveAll(dir)
	})
	link := ""
	for link == "" {
		select {
		case err := <-ended:
			ended <- err
			b, _ := os.ReadFile(log.Name())
			t.Fatalf("the server ended before it was ready: %v\n%s", err, b)
		case <-time.After(50 * time.Millisecond):
		}
		b, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if _, after, ok := strings.Cut(line, "Open:"); ok && strings.HasSuffix(line, "\n") {
				link = strings.TrimSpace(after)
			}
		}
	}
	base, token, ok := strings.Cut(link, "/signin?token=")
	if !ok {
		t.Fatalf("no sign-in link: %q", link)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.base, s.http = base, &http.Client{Jar: jar, Timeout: 5 * time.Minute}
	if status, body := s.json("POST", "/api/auth/signin", map[string]string{"token": token}); status != http.StatusOK {
		t.Fatalf("signing in: %d %s", status, body)
	}
	return s
}

// showLog shows what the server had to complain about.
func showLog(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Log(err)
		return
	}
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, `"level":"info"`) {
			t.Log(line)
		}
	}
}

func (s *testServer) send(method, path, media string, body io.Reader) (int, string, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.base+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Origin", s.base)
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), b
}

func (s *testServer) json(method, path string, in any) (int, []byte) {
	s.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	status, _, b := s.send(method, path, "application/json", body)
	return status, b
}

// resident is the memory of the server's process, in bytes.
func (s *testServer) resident() int64 {
	s.t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatalf("the server is gone: %v", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	s.t.Fatal("the server has no memory")
	return 0
}

// watchHealth asks the server all along whether it lives; stop returns how often
// it answered, and the longest that it took.
func (s *testServer) watchHealth() (stop func() (int64, time.Duration)) {
	var answers, longest atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			began := time.Now()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/healthz", nil)
			if err != nil {
				s.t.Error(err)
				return
			}
			res, err := http.DefaultClient.Do(req)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				s.t.Errorf("asking for its health: %v", err)
				return
			case res.StatusCode != http.StatusOK:
				s.t.Errorf("its health is %d", res.StatusCode)
			}
			_ = res.Body.Close()
			answers.Add(1)
			longest.Store(max(longest.Load(), int64(time.Since(began))))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() (int64, time.Duration) {
		cancel()
		<-done
		return answers.Load(), time.Duration(longest.Load())
	}
}

// upload posts a file. A machine that is too busy to judge it may be asked again.
func (s *testServer) upload(wasm []byte) (status int, media string, body []byte) {
	s.t.Helper()
	for range 20 {
		status, media, body = s.send(http.MethodPost, "/api/plugins", "application/wasm", bytes.NewReader(wasm))
		if status != http.StatusServiceUnavailable {
			break
		}
		time.Sleep(time.Second)
	}
	return status, media, body
}

// run makes a run and starts it.
func (s *testServer) run(source string) string {
	s.t.Helper()
	status, body := s.json("POST", "/api/runs", map[string]any{"source": source, "start": true})
	var run engine.Run
	if err := json.Unmarshal(body, &run); err != nil || status/100 != 2 {
		s.t.Fatalf("starting a run: %d %s", status, body)
	}
	return run.RunID
}

// wait waits for a run's end.
func (s *testServer) wait(id string) engine.RunDetail {
	s.t.Helper()
	for {
		status, body := s.json("GET", "/api/runs/"+id, nil)
		var detail engine.RunDetail
		if err := json.Unmarshal(body, &detail); err != nil || status != http.StatusOK {
			s.t.Fatalf("asking for a run: %d %s", status, body)
		}
		if detail.Status.Terminal() && detail.Summary != nil && detail.Phase == engine.PhaseNone {
			return detail
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Of the files that take seconds one in slowFileStride is uploaded; the soak has all. Of the others that pass the gate,
// and are examined by a process, one in fileStride is; make check has all.
const slowFileStride, fileStride = 10, 4

func hostileFiles(soak bool) (files []hostiletest.File) {
	slow, examined := 0, 0
	for _, f := range hostiletest.Corpus() {
		take := true
		switch {
		case f.Slow || f.Large:
			slow++
			take = soak || slow%slowFileStride == 0
		case f.Stage != hostiletest.Gate:
			examined++
			take = clitest.Whole() || examined%fileStride == 0
		}
		if take {
			files = append(files, f)
		}
	}
	return files
}

// TestHostileFilesOnALiveServer uploads files of the corpus to a running server. It answers
// each file with a sentence, lives, keeps its memory, and serves an honest plugin
// afterwards.
func TestHostileFilesOnALiveServer(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := startServer(t)
	pid := s.cmd.Process.Pid
	all := os.Getenv(clitest.Soak) != ""
	beside := ""
	if all {
		beside = s.run(concurrentOpenLoop)
		time.Sleep(5 * time.Second) // its table is loaded
	}
	if status, _, body := s.upload(hostiletest.Honest()); status != http.StatusCreated {
		t.Fatalf("an honest file: %d %s", status, body)
	}
	before, peak := s.resident(), int64(0)
	health := s.watchHealth()
	began, answered := time.Now(), map[int]int{}
	for _, f := range hostileFiles(all) {
		status, media, body := s.upload(f.Bytes())
		answered[status]++
		peak = max(peak, s.resident())
		checkAnswer(t, f, status, media, body)
	}
	answers, longest := health()
	growth := s.resident() - before
	t.Logf("%d s, answers by status %v; the server's memory went from %d MB to %d MB, at most %d MB; %d answers about "+
		"its health, the slowest after %v",
		int(time.Since(began).Seconds()), answered, before>>20, (before+growth)>>20, peak>>20, answers, longest)
	if growth > growthLimit {
		t.Errorf("the server's memory grew by %d MB", growth>>20)
	}
	if answers == 0 {
		t.Error("nobody asked for its health")
	}
	if beside != "" {
		if status, body := s.json("POST", "/api/runs/"+beside+"/stop", nil); status/100 != 2 {
			t.Fatalf("stopping the run beside: %d %s", status, body)
		}
		detail := s.wait(beside)
		t.Logf("the open-loop run beside it: %s, %.2f operations a second of 1000; %+v", detail.Status, *detail.Summary.QPS,
			detail.Summary.Accounting)
	}

	status, _, body := s.upload(hostiletest.Runnable())
	var entry struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(body, &entry); err != nil || status != http.StatusCreated {
		t.Fatalf("an honest plugin afterwards: %d %s", status, body)
	}
	if status, body := s.json("POST", "/api/plugins/"+entry.SHA256+"/enable", nil); status/100 != 2 {
		t.Fatalf("enabling it: %d %s", status, body)
	}
	detail := s.wait(s.run(honestRun))
	if detail.Status != engine.StatusCompleted || detail.Summary.Operations == 0 {
		t.Errorf("its run: %s, %+v", detail.Status, detail.Summary)
	}
	if s.cmd.Process.Pid != pid || s.resident() == 0 {
		t.Error("the server is another one")
	}
}

// checkAnswer compares an answer with what the corpus expects of a file.
func checkAnswer(t *testing.T, f hostiletest.File, status int, media string, body []byte) {
	t.Helper()
	refused := status >= 400 && status < 500
	switch f.Stage {
	case hostiletest.Gate, hostiletest.Quarantine:
		if !refused {
			t.Errorf("%s was answered with %d", f.Name, status)
			return
		}
	case hostiletest.Run:
		// The suite takes more batches than one, and may find what it does later.
		if status >= 500 {
			t.Errorf("%s was answered with %d: %s", f.Name, status, body)
			return
		}
	case hostiletest.Harmless:
		// Another file of the same name may be there already.
		if status != http.StatusCreated && status != http.StatusOK && status != http.StatusConflict &&
			status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s was answered with %d: %s", f.Name, status, body)
			return
		}
	case hostiletest.Bounded:
		if status >= 500 {
			t.Errorf("%s was answered with %d: %s", f.Name, status, body)
			return
		}
	}
	if !refused {
		return
	}
	var p terminal.Problem
	if err := json.Unmarshal(body, &p); err != nil || media != "application/problem+json" || p.Code == "" ||
		len(p.Detail) < 10 {
		t.Errorf("%s: %s is no problem: %s", f.Name, media, body)
	}
	if strings.ContainsAny(p.Detail, "\x00\x1b\n\u202e") {
		t.Errorf("%s: a terminal would obey %q", f.Name, p.Detail)
	}
}

const honestRun = `
name: honest
target: {connection: playground, adapter: postgres}
workload: {plugin: honest, concurrent_connections: 2, duration_seconds: 1, warmup_seconds: 0}
`

const concurrentOpenLoop = `
name: beside
target: {connection: playground, adapter: postgres, table_name: beside, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, load_mode: QPS, target_qps: 1000, concurrent_connections: 8, duration_seconds: 900, warmup_seconds: 1}
`
