package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
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
	if err := os.Chmod(dir, 0o755); err != nil {
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

// busyTarget is a database that runs load.
type busyTarget struct {
	t    *testing.T
	dsn  string
	conn *pgx.Conn
}

func newBusyTarget(t *testing.T) busyTarget {
	t.Helper()
	dsn := pgtest.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return busyTarget{t, dsn, conn}
}

// template is a run of ten minutes on it.
func (b busyTarget) template(name string) string {
	return fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
		"prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 50, concurrent_connections: 2, duration_seconds: 600, "+
		"warmup_seconds: 0}\n", name, b.dsn)
}

// busy is how many connections load it.
func (b busyTarget) busy() (n int) {
	b.t.Helper()
	if err := b.conn.QueryRow(b.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "+
		"AND pid <> pg_backend_pid() AND backend_type = 'client backend'").Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestAStopIsHeardWhileTheStoreIsAway stops runs over HTTP, by a session, a token and an
// interrupted command line, while the control store refuses or hangs. The load ends at
// once, pages see it, and the store learns of it when it is back.
func TestAStopIsHeardWhileTheStoreIsAway(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the processes of the store are found in /proc")
	}
	store := newOutageStore(t)
	url := store.url()
	target := newBusyTarget(t)
	if err := schema.Apply(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir,
		"--database-url", url)
	operator := operatorOf(t, dir, served)
	session, token, secret := operator.SignIn()
	text := target.template("outage")
	template := filepath.Join(dir, "outage.yaml")
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
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
			callers := map[string]clitest.Caller{"a session": session, "a token": token}
			runs := map[string]string{}
			sockets := map[string]*websocket.Conn{}
			for name, c := range callers {
				var run engine.Run
				c.Do("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
				runs[name] = run.RunID
				c.AwaitLoad(run.RunID)
				sockets[name] = c.Watch(run.RunID)
			}
			follower := clitest.Launch(t, "run", template, "--server", session.Base, "--token", secret)
			var commanded string
			clitest.Until(t, clitest.StartTimeout, func() bool {
				if m := regexp.MustCompile(`MEASUREMENT|measur`).FindString(follower.Out.String()); m == "" {
					return false
				}
				var list struct{ Runs []engine.Run }
				session.Do("GET", "/api/runs?limit=1", nil, &list)
				commanded = list.Runs[0].RunID
				return list.Runs[0].Status == engine.StatusRunning
			}, follower.Out.String)
			watched := session.Watch(commanded)
			mode.away()
			if os.Getenv("LOADSTONE_SOAK") != "" {
				time.Sleep(25 * time.Second) // until the server would ask the store again who calls
			} else {
				time.Sleep(1500 * time.Millisecond)
			}
			started := time.Now()
			_ = follower.Cmd.Process.Signal(syscall.SIGINT)
			clitest.Until(t, 10*time.Second, func() bool { return payloadOf(t, watched).Status != engine.StatusRunning },
				served.Out.String)
			if took := time.Since(started); took > 3*time.Second {
				t.Errorf("the interrupted command's run was stopped after %v", took)
			} else {
				t.Logf("the interrupted command's run was stopped after %v", took.Round(time.Millisecond))
			}
			for name, c := range callers {
				startedAt := time.Now()
				var run engine.Run
				if _, err := c.Try("POST", "/api/runs/"+runs[name]+"/stop", struct{}{}, &run); err != nil {
					t.Errorf("stopping by %s: %v", name, err)
				}
				if took := time.Since(startedAt); took > 3*time.Second || run.Status == engine.StatusRunning {
					t.Errorf("a stop by %s was answered after %v with %s", name, took, run.Status)
				} else {
					t.Logf("a stop by %s was answered after %v", name, took.Round(time.Millisecond))
				}
			}
			clitest.Until(t, 15*time.Second, func() bool { return target.busy() == 0 }, served.Out.String)
			t.Logf("the load of all has ended %v after the first stop", time.Since(started).Round(time.Millisecond))
			for name, c := range callers {
				for _, socket := range []*websocket.Conn{sockets[name], c.Watch(runs[name])} {
					clitest.Until(t, 10*time.Second, func() bool {
						p := payloadOf(t, socket)
						return p.Status == engine.StatusCancelled && p.CancellationReason != nil
					}, served.Out.String)
				}
			}
			mode.back()
			clitest.Until(t, 30*time.Second, func() bool {
				code,
					_ := session.Try("GET", "/api/runs?limit=1", nil, nil)
				return code == 200
			}, served.Out.String)
			for _, id := range []string{runs["a session"], runs["a token"], commanded} {
				var d engine.RunDetail
				clitest.Until(t, 30*time.Second, func() bool {
					session.Do("GET", "/api/runs/"+id, nil, &d)
					return d.Status.Terminal() && d.Phase == engine.PhaseNone && d.Summary != nil
				}, served.Out.String)
				a := d.Summary.Accounting
				if d.Status != engine.StatusCancelled || d.StopReason != engine.StopUserRequested || !a.Balanced ||
					a.Recorded != a.Started || a.Started == 0 || d.Summary.Operations == 0 {
					t.Errorf("%s by %s: %+v", d.Status, d.StopReason, a)
				}
				var logs struct{ Logs []engine.LogEntry }
				session.Do("GET", "/api/runs/"+id+"/logs?limit=500", nil, &logs)
				message, _ := json.Marshal(logs)
				// One that hangs is away when it has not answered for ten seconds.
				if mode.name == "refuses" && !strings.Contains(string(message), "control store") {
					t.Errorf("the run's log does not tell of the outage: %s", message)
				}
			}
			if err := follower.Wait(t, 30*time.Second); err == nil ||
				follower.Cmd.ProcessState.ExitCode() != terminal.ExitFailed {
				t.Errorf("the interrupted command: %v\n%s", err, follower.Out.String())
			}
			db, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close(context.Background())
			clitest.Until(t, 30*time.Second, func() bool {
				var noted int
				if err := db.QueryRow(t.Context(),
					"SELECT count(DISTINCT object) FROM audit_log WHERE action = 'run.stop' AND object = ANY($1)",
					[]string{runs["a session"], runs["a token"], commanded}).Scan(&noted); err != nil {
					t.Fatal(err)
				}
				return noted == 3
			}, served.Out.String)
		})
	}
}

// payloadOf reads the next message of a socket.
func payloadOf(t *testing.T, socket *websocket.Conn) engine.LiveState {
	t.Helper()
	var m struct{ Data engine.LiveState }
	_ = socket.SetReadDeadline(time.Now().Add(5 * time.Second))
	if err := socket.ReadJSON(&m); err != nil {
		t.Fatalf("the socket: %v", err)
	}
	return m.Data
}

// operatorOf waits for a server and speaks to it as its operator.
func operatorOf(t *testing.T, dir string, served *clitest.Process) clitest.Caller {
	t.Helper()
	var o struct{ Address, Secret string }
	clitest.Until(t, clitest.StartTimeout, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "operator.json"))
		return err == nil && json.Unmarshal(text, &o) == nil && o.Secret != ""
	}, served.Out.String)
	return clitest.Caller{T: t, Base: o.Address, Header: [2]string{"Authorization", "Bearer " + o.Secret}}
}
