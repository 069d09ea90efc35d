package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// connProxy stands between run workers and their target, and notes when they send something
// to be executed. It belongs to another process than they do, so that it sees what they
// do after they were stopped, and not what they believe.
type connProxy struct {
	t     *testing.T
	ln    net.Listener
	to    string // a socket's path, or host:port
	conns sync.WaitGroup

	mu   sync.Mutex
	sent map[string][]sentMessage // by the application's name
}

// sentMessage is something that was sent.
type sentMessage struct {
	at   time.Time
	what []byte
}

// newConnProxy returns it with the DSN that leads through it to a Postgres.
func newConnProxy(t *testing.T, dsn string) (*connProxy, string) {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	b := &connProxy{t: t, to: net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), sent: map[string][]sentMessage{}}
	if strings.HasPrefix(c.Host, "/") {
		b.to = fmt.Sprintf("%s/.s.PGSQL.%d", c.Host, c.Port)
	}
	if b.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	b.conns.Go(b.accept)
	t.Cleanup(func() { _ = b.ln.Close(); b.conns.Wait() })
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Host: b.ln.Addr().String(),
		Path: "/" + c.Database, RawQuery: "sslmode=disable"}
	return b, u.String()
}

func (b *connProxy) accept() {
	for {
		client, err := b.ln.Accept()
		if err != nil {
			return
		}
		network := "tcp"
		if strings.HasPrefix(b.to, "/") {
			network = "unix"
		}
		server, err := net.Dial(network, b.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		b.conns.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		b.conns.Go(func() { b.watch(client, server); _ = server.Close(); _ = client.Close() })
	}
}

// watch passes on what a client sends. Only its end, Terminate, is nothing to be executed.
func (b *connProxy) watch(client, server net.Conn) {
	buf, name := make([]byte, 64<<10), ""
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if _, after, ok := bytes.Cut(buf[:n], []byte("application_name\x00")); ok && name == "" {
			text, _, _ := bytes.Cut(after, []byte{0})
			name = string(text)
		} else if buf[0] != 'X' {
			b.mu.Lock()
			b.sent[name] = append(b.sent[name], sentMessage{time.Now(), bytes.Clone(buf[:min(n, 200)])})
			b.mu.Unlock()
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// countSince is how often run workers have sent something since a time.
func (b *connProxy) countSince(at time.Time) int { return len(b.sentSince(at)) }

// sentSince is what run workers have sent since a time, and how long after it.
func (b *connProxy) sentSince(at time.Time) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, list := range b.sent {
		for _, s := range list {
			if strings.HasPrefix(name, "loadstone worker-") && s.at.After(at) {
				all = append(all, fmt.Sprintf("%s after %v: %q", name, s.at.Sub(at), s.what))
			}
		}
	}
	return all
}

// runFrozenNode are runs on a node of another process that is then stopped for a while: in a
// closed loop over event loops, and in an open one over goroutines, of which the stop makes a backlog.
func runFrozenNode(
	t *testing.T, limit, stopped time.Duration, after func(b *connProxy, stop, goOn time.Time, runs []engine.RunDetail),
) {
	dir, nodeDir := reachable(t), t.TempDir()
	b, dsn := newConnProxy(t, pgtest.Start(t).NewDatabase(t))
	n := clitest.StartNode(t, nodeDir, "", "--contact-limit", limit.String())
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--nodes",
		n.Address,
		"--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	var ids []string
	for i, load := range []string{"load_mode: CONCURRENCY, think_time_ms: 20, io_engine: events",
		"load_mode: QPS, target_qps: 100, io_engine: goroutines"} {
		template := fmt.Sprintf("name: frozen-%d\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  "+
			"table_name: orders_%d\n  prepare: {rows: 1000, if_exists: use}\nworkload: {plugin: mix, %s, "+
			"concurrent_connections: 4, duration_seconds: 600, warmup_seconds: 0}\n", i, dsn, i, load)
		var run engine.Run
		session.Do("POST", "/api/runs", map[string]any{"source": template, "start": true}, &run)
		ids = append(ids, run.RunID)
	}
	for _, id := range ids {
		session.AwaitLoad(id)
	}
	begin := time.Now()
	clitest.Until(t, clitest.StartTimeout, func() bool { return b.countSince(begin) > 50 }, served.Out.String)
	stop := time.Now()
	if err := n.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// What the server has to say to the node, and cannot, is bounded.
	before := residentBytes(t, served)
	maximum := before
	for end := time.Now().Add(stopped); time.Now().Before(end); {
		maximum = max(maximum, residentBytes(t, served))
		time.Sleep(min(time.Second, time.Until(end)))
	}
	t.Logf("while the node stood still the server had %d MB, and %d at most", before>>20, maximum>>20)
	if maximum > before+64<<20 {
		t.Errorf("the server grew from %d to %d MB", before>>20, maximum>>20)
	}
	goOn := time.Now()
	if err := n.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var runs []engine.RunDetail
	if stopped < limit {
		clitest.Until(t, clitest.StartTimeout, func() bool { return b.countSince(goOn) > 50 }, n.Out.String)
		for _, id := range ids {
			session.Do("POST", "/api/runs/"+id+"/stop", struct{}{}, nil)
		}
	}
	for _, id := range ids {
		runs = append(runs, session.AwaitEnd(id, served))
	}
	after(b, stop, goOn, runs)
}

// residentBytes is how much memory a process holds, in bytes; 0 where the system does not say it in /proc.
func residentBytes(t *testing.T, p *clitest.Process) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestAFrozenNodeIssuesNothingPastItsDeadline: a process that was stopped for longer than load
// may outlive the contact issues nothing when it goes on, whatever is due by then; it says
// why, and the accounts of its runs balance.
func TestAFrozenNodeIssuesNothingPastItsDeadline(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	runFrozenNode(t, 3*time.Second, 4*time.Second, checkSelfStopped(t))
}

// TestNodesThatAreFrozenForReal is the same with the limits that are real, and a stop that is
// short enough to go on after.
func TestNodesThatAreFrozenForReal(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	for _, seconds := range []int{5, 65, 130} {
		t.Run(fmt.Sprint(seconds, " s"), func(t *testing.T) {
			t.Parallel()
			stopped := time.Duration(seconds) * time.Second
			runFrozenNode(t, protocol.ContactTimeout, stopped, func(b *connProxy, _, goOn time.Time, runs []engine.RunDetail) {
				if all := b.sentSince(goOn); seconds > 60 && len(all) > 0 {
					t.Errorf("%d things were sent to the target after the stop: %s", len(all), all)
				}
				for _, d := range runs {
					switch {
					case seconds > 60:
						// The server has given it up by then, and what it recorded may come too late for the figures.
						if d.Status != engine.StatusFailed || d.Summary.Validity != engine.VerdictDegraded {
							t.Errorf("%s, %s", d.Status, d.Summary.Validity)
						}
					case d.Status != engine.StatusCancelled || !d.Summary.Accounting.Balanced:
						t.Errorf("%s, %+v", d.Status, d.Summary.Accounting)
					}
				}
			})
		})
	}
}

func checkSelfStopped(t *testing.T) func(*connProxy, time.Time, time.Time, []engine.RunDetail) {
	return func(b *connProxy, stop, goOn time.Time, runs []engine.RunDetail) {
		if all := b.sentSince(goOn); len(all) > 0 {
			t.Errorf("%d things were sent to the target after the stop: %s", len(all), all)
		}
		if all := b.sentSince(stop.Add(time.Second)); len(all) > 0 {
			t.Errorf("%d things were sent to the target during the stop: %s", len(all), all)
		}
		for _, d := range runs {
			a := d.Summary.Accounting
			if d.Status != engine.StatusFailed || d.CancellationReason == nil ||
				!strings.Contains(*d.CancellationReason, "stopped by itself") || d.Summary.Validity != engine.VerdictDegraded {
				t.Errorf("%s, %v, %s", d.Status, d.CancellationReason, d.Summary.Validity)
			}
			if !a.Balanced || a.Started == 0 || a.Recorded != a.Started {
				t.Errorf("%+v", a)
			}
		}
	}
}
