package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// outageStore is a Postgres of the test's own, which it stops and freezes.
type outageStore struct {
	t   *testing.T
	dir string
	pg  *embedded.Postgres
}

func newOutageStore(t *testing.T) *outageStore {
	// Not t.TempDir: as root, Postgres runs as a user who cannot enter it.
	dir, err := os.MkdirTemp("", "loadstone-outage-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user enters it
		t.Fatal(err)
	}
	s := &outageStore{t: t, dir: dir}
	t.Cleanup(func() { s.stop(); _ = os.RemoveAll(dir) })
	s.start()
	return s
}

func (s *outageStore) start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: s.dir, Log: zerolog.Nop(), Throwaway: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.pg = pg
}

func (s *outageStore) stop() {
	s.t.Helper()
	if s.pg == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.pg.Stop(ctx); err != nil {
		s.t.Error(err)
	}
	s.pg = nil
}

func (s *outageStore) url() string { return s.pg.DSN(embedded.ControlDatabase) }

// processes are the postmaster and what it has started.
func (s *outageStore) processes() (pids []int) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.pg.SocketDir(), ".s.PGSQL.5432.lock"))
	if err != nil {
		s.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		s.t.Fatal(err)
	}
	pids = []int{postmaster}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		after := string(text[bytes.LastIndexByte(text, ')')+1:])
		if f := strings.Fields(after); len(f) > 1 && f[1] == first {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *outageStore) signal(sig syscall.Signal) {
	for _, pid := range s.processes() {
		_ = syscall.Kill(pid, sig)
	}
}

// caller speaks to a server with a header of its own.
type caller struct {
	t      *testing.T
	base   string
	header [2]string
}

func (c caller) try(method, path string, in, out any) (int, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", c.base)
	req.Header.Set(c.header[0], c.header[1])
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err
	}
	if cookies := res.Cookies(); path == "/api/auth/signin" && len(cookies) > 0 {
		answer, _ = json.Marshal(cookies[0].Name + "=" + cookies[0].Value)
	}
	if res.StatusCode >= 300 {
		return res.StatusCode, fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	}
	if out == nil {
		return res.StatusCode, nil
	}
	return res.StatusCode, json.Unmarshal(answer, out)
}

func (c caller) do(method, path string, in, out any) {
	c.t.Helper()
	if _, err := c.try(method, path, in, out); err != nil {
		c.t.Fatal(err)
	}
}

func (c caller) watch(runID string) *websocket.Conn {
	c.t.Helper()
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second}
	conn, res, err := d.Dial(strings.Replace(c.base, "http", "ws", 1)+"/ws/runs/"+runID,
		http.Header{c.header[0]: {c.header[1]}})
	if err != nil {
		c.t.Fatalf("opening a socket: %v", err)
	}
	_ = res.Body.Close()
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestAStopIsHeardWhileTheStoreIsAway stops runs over HTTP, by a session, a token and an
// interrupted command line, while the control store refuses or hangs. The load ends at
// once, pages see it, and the store learns of it when it is back.
func TestAStopIsHeardWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the processes of the store are found in /proc")
	}
	store := newOutageStore(t)
	url := store.url()
	load := pgtest.Start(t).NewDatabase(t)
	if err := schema.Apply(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	served := launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--database-url", url)
	operator := operatorOf(t, dir, served)
	session, token, secret := operator.signedIn()
	text := fmt.Sprintf("name: outage\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
		"prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 50, concurrent_connections: 2, duration_seconds: 600, "+
		"warmup_seconds: 0}\n", load)
	template := filepath.Join(dir, "outage.yaml")
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), load)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// busy is how many connections load the target.
	busy := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND "+
				"backend_type = 'client backend'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, mode := range []struct {
		name       string
		away, back func()
	}{
		{"refuses", store.stop, store.start},
		{"hangs", func() { store.signal(syscall.SIGSTOP); t.Cleanup(func() { store.signal(syscall.SIGCONT) }) },
			func() { store.signal(syscall.SIGCONT) }},
	} {
		t.Run(mode.name, func(t *testing.T) {
			callers := map[string]caller{"a session": session, "a token": token}
			runs := map[string]string{}
			sockets := map[string]*websocket.Conn{}
			for name, c := range callers {
				var run engine.Run
				c.do("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
				runs[name] = run.RunID
				c.awaitLoad(run.RunID)
				sockets[name] = c.watch(run.RunID)
			}
			follower := launch(t, "run", template, "--server", session.base, "--token", secret)
			var commanded string
			until(t, startLimit, func() bool {
				if m := regexp.MustCompile(`MEASUREMENT|measur`).FindString(follower.out.String()); m == "" {
					return false
				}
				var list struct{ Runs []engine.Run }
				session.do("GET", "/api/runs?limit=1", nil, &list)
				commanded = list.Runs[0].RunID
				return list.Runs[0].Status == engine.StatusRunning
			}, follower.out.String)
			watched := session.watch(commanded)
			mode.away()
			if os.Getenv("LOADSTONE_SOAK") != "" {
				time.Sleep(25 * time.Second) // until the server would ask the store again who calls
			} else {
				time.Sleep(1500 * time.Millisecond)
			}
			begun := time.Now()
			_ = follower.cmd.Process.Signal(syscall.SIGINT)
			until(t, 10*time.Second, func() bool { return payloadOf(t, watched).Status != engine.StatusRunning },
				served.out.String)
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("the interrupted command's run was stopped after %v", took)
			} else {
				t.Logf("the interrupted command's run was stopped after %v", took.Round(time.Millisecond))
			}
			for name, c := range callers {
				begun := time.Now()
				var run engine.Run
				if _, err := c.try("POST", "/api/runs/"+runs[name]+"/stop", struct{}{}, &run); err != nil {
					t.Errorf("stopping by %s: %v", name, err)
				}
				if took := time.Since(begun); took > 3*time.Second || run.Status == engine.StatusRunning {
					t.Errorf("a stop by %s was answered after %v with %s", name, took, run.Status)
				} else {
					t.Logf("a stop by %s was answered after %v", name, took.Round(time.Millisecond))
				}
			}
			until(t, 15*time.Second, func() bool { return busy() == 0 }, served.out.String)
			t.Logf("the load of all has ended %v after the first stop", time.Since(begun).Round(time.Millisecond))
			for name, c := range callers {
				for _, socket := range []*websocket.Conn{sockets[name], c.watch(runs[name])} {
					until(t, 10*time.Second, func() bool {
						p := payloadOf(t, socket)
						return p.Status == engine.StatusCancelled && p.CancellationReason != nil
					}, served.out.String)
				}
			}
			mode.back()
			until(t, 30*time.Second, func() bool {
				code,
					_ := session.try("GET", "/api/runs?limit=1", nil, nil)
				return code == 200
			}, served.out.String)
			for _, id := range []string{runs["a session"], runs["a token"], commanded} {
				var d engine.RunDetail
				until(t, 30*time.Second, func() bool {
					session.do("GET", "/api/runs/"+id, nil, &d)
					return d.Status.Terminal() && d.Phase == engine.PhaseNone && d.Summary != nil
				}, served.out.String)
				a := d.Summary.Accounting
				if d.Status != engine.StatusCancelled || d.StopReason != engine.StopUserRequested || !a.Balanced ||
					a.Recorded != a.Started || a.Started == 0 || d.Summary.Operations == 0 {
					t.Errorf("%s by %s: %+v", d.Status, d.StopReason, a)
				}
				var logs struct{ Logs []engine.LogEntry }
				session.do("GET", "/api/runs/"+id+"/logs?limit=500", nil, &logs)
				said, _ := json.Marshal(logs)
				// One that hangs is away when it has not answered for ten seconds.
				if mode.name == "refuses" && !strings.Contains(string(said), "control store") {
					t.Errorf("the run's log does not tell of the outage: %s", said)
				}
			}
			if err := follower.wait(t, 30*time.Second); err == nil ||
				follower.cmd.ProcessState.ExitCode() != command.ExitFailed {
				t.Errorf("the interrupted command: %v\n%s", err, follower.out.String())
			}
			db, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close(context.Background())
			until(t, 30*time.Second, func() bool {
				var noted int
				if err := db.QueryRow(t.Context(),
					"SELECT count(DISTINCT object) FROM audit_log WHERE action = 'run.stop' AND object = ANY($1)",
					[]string{runs["a session"], runs["a token"], commanded}).Scan(&noted); err != nil {
					t.Fatal(err)
				}
				return noted == 3
			}, served.out.String)
		})
	}
}

// payloadOf reads the next message of a socket.
func payloadOf(t *testing.T, socket *websocket.Conn) engine.Payload {
	t.Helper()
	var m struct{ Data engine.Payload }
	_ = socket.SetReadDeadline(time.Now().Add(5 * time.Second))
	if err := socket.ReadJSON(&m); err != nil {
		t.Fatalf("the socket: %v", err)
	}
	return m.Data
}

// operatorOf waits for a server and speaks to it as its operator.
func operatorOf(t *testing.T, dir string, served *process) caller {
	t.Helper()
	var o struct{ Address, Secret string }
	until(t, startLimit, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "operator.json")) //nolint:gosec // the test's own folder
		return err == nil && json.Unmarshal(text, &o) == nil && o.Secret != ""
	}, served.out.String)
	return caller{t, o.Address, [2]string{"Authorization", "Bearer " + o.Secret}}
}

// signedIn makes a session and a token of it. A link is good until there is another one, which a
// server that starts on the same store makes too: it is asked for again then.
func (c caller) signedIn() (session, token caller, secret string) {
	c.t.Helper()
	var cookie string
	var refused error
	until(c.t, time.Minute, func() bool {
		var link map[string]string
		c.do("POST", "/api/auth/signin-links", struct{}{}, &link)
		for _, text := range link {
			if _, once, ok := strings.Cut(text, "/signin?token="); ok {
				secret = once
			}
		}
		_, refused = c.try("POST", "/api/auth/signin", map[string]string{"token": secret}, &cookie)
		return refused == nil
	}, func() string { return fmt.Sprint(refused) })
	session = caller{c.t, c.base, [2]string{"Cookie", cookie}}
	var made struct{ Secret string }
	session.do("POST", "/api/auth/tokens", map[string]string{"name": "test"}, &made)
	return session, caller{c.t, c.base, [2]string{"Authorization", "Bearer " + made.Secret}}, made.Secret
}

// awaitLoad waits until a run measures.
func (c caller) awaitLoad(runID string) {
	c.t.Helper()
	var d engine.RunDetail
	until(c.t, startLimit, func() bool {
		c.do("GET", "/api/runs/"+runID, nil, &d)
		if d.Status.Terminal() {
			c.t.Fatalf("the run is %s: %v", d.Status, d.CancellationReason)
		}
		return d.Phase == engine.PhaseMeasurement && d.Live != nil && d.Live.Ops.Total > 0
	}, func() string { return string(d.Status) })
}

func until(t *testing.T, limit time.Duration, met func() bool, about func() string) {
	t.Helper()
	for begin := time.Now(); !met(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > limit {
			t.Fatalf("not after %v:\n%s", limit, about())
		}
	}
}
