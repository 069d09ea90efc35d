package cli

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// withoutList starts the program where no list says what may be reached.
func withoutList(t *testing.T, args ...string) *clitest.Process {
	t.Helper()
	return clitest.LaunchProgram(
		t,
		"env",
		append([]string{"-u", "LOADSTONE_ALLOW_TARGETS", clitest.ProgramFile(t)}, args...)...)
}

// TestSocketsOfAServer: without a list the playground is the only socket that a server and a node of another process
// dial, and another one is refused where it is written; who runs it in person dials what they like.
func TestSocketsOfAServer(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	dir, nodeDir := reachable(t), t.TempDir()
	n := &clitest.RemoteNode{
		Process: withoutList(t, "worker", "--listen", "127.0.0.1:0", "--data-dir", nodeDir),
		Dir:     nodeDir,
	}
	clitest.WaitFor(t, clitest.StartTimeout, "the node's address", func() bool {
		_, after, ok := strings.Cut(n.Out.String(), " listens on ")
		n.Address, _, _ = strings.Cut(after, "\n")
		return ok && strings.Contains(after, "\n")
	})
	served := withoutList(
		t,
		"serve",
		"--listen",
		"127.0.0.1:0",
		"--calibrate",
		"off",
		"--data-dir",
		dir,
		"--nodes",
		n.Address,
		"--local-capacity",
		"0",
	)
	session, _, _ := operatorOf(t, dir, served).SignIn()
	const playground = "name: playground\ntarget: {connection: playground, table_name: orders, prepare: {rows: 1000, if_exists: " +
		"use}}\nworkload: {plugin: mix, load_mode: QPS, target_qps: 50, concurrent_connections: 2, duration_seconds: 2, " +
		"warmup_seconds: 0}\n"
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"source": playground, "start": true}, &run)
	if d := session.AwaitEnd(run.RunID, served); d.Status != engine.StatusCompleted {
		t.Errorf("the playground on a node: %s %v", d.Status, d.CancellationReason)
	}
	elsewhere := pgtest.Start(t).NewDatabase(t)
	code, err := session.Try(
		"POST",
		"/api/connections",
		map[string]any{"name": "x", "driver": "postgres", "dsn": elsewhere},
		nil,
	)
	if code != 422 || !strings.Contains(err.Error(), "unix:/") {
		t.Errorf("a socket: %d %v", code, err)
	}
	file := clitest.NewProgram(t)
	text := strings.Replace(
		playground,
		"connection: playground",
		fmt.Sprintf("connection: {driver: postgres, dsn: %q}", elsewhere),
		1,
	)
	own := withoutList(t, "run", file.Write("run.yaml", text), "--data-dir", file.Path("data"), "--calibrate=off")
	if err := own.Wait(t, clitest.StartTimeout); err != nil {
		t.Errorf("a run in one's own hands: %v\n%s", err, own.Out.String())
	}
}

// turncoat leads to one Postgres, and connections for load to another, like a name that leads elsewhere later.
type turncoat struct {
	net.Listener
	honest, other string
	turned        atomic.Int64
}

func newTurncoat(t *testing.T, honest, other string) *turncoat {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &turncoat{Listener: l, honest: honest, other: other}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go c.lead(from)
		}
	}()
	return c
}

// lead looks at the name that the driver gives its session.
func (c *turncoat) lead(from net.Conn) {
	defer func() { _ = from.Close() }()
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(from, rest); err != nil {
		return
	}
	socket := c.honest
	if text := string(rest); strings.Contains(text, "loadstone ") && !strings.Contains(text, "loadstone prepare") &&
		!strings.Contains(text, "loadstone check") {
		socket = c.other
		c.turned.Add(1)
	}
	to, err := net.Dial("unix", socket+"/.s.PGSQL.5432")
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if _, err := to.Write(append(head, rest...)); err != nil {
		return
	}
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
}

// TestANodeRecognisesTheControlStore: an address that is a target's while a run is planned, and leads to the control
// store when a node of another process connects, brings no load there.
func TestANodeRecognisesTheControlStore(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	socketOf := func(pg *pgtest.CrashableServer) string {
		c, err := pgx.ParseConfig(pg.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		return c.Host
	}
	home, away := pgtest.StartCrashable(t, nil), pgtest.StartAnother(t, nil)
	for _, pg := range []*pgtest.CrashableServer{home, away} {
		conn, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE DATABASE control"); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(t.Context())
	}
	control := home.DSN("control")
	if err := schema.Apply(t.Context(), control); err != nil {
		t.Fatal(err)
	}
	honest, err := pgx.Connect(t.Context(), away.DSN("control"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = honest.Close(t.Context()) }()
	if _, err := honest.Exec(t.Context(), "CREATE TABLE users (role text)"); err != nil {
		t.Fatal(err)
	}
	way := newTurncoat(t, socketOf(away), socketOf(home))
	n, dir := clitest.StartNode(t, t.TempDir(), ""), reachable(t)
	served := clitest.Launch(
		t,
		"serve",
		"--listen",
		"127.0.0.1:0",
		"--calibrate",
		"off",
		"--data-dir",
		dir,
		"--nodes",
		n.Address,
		"--local-capacity",
		"0",
		"--database-url",
		control,
	)
	session, _, _ := operatorOf(t, dir, served).SignIn()
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"start": true, "allow_writes": true, "source": fmt.Sprintf(
		"name: turned\ntarget: {connection: {driver: postgres, dsn: %q}}\nworkload: {plugin: sql, load_mode: CONCURRENCY, "+
			"concurrent_connections: 1, warmup_seconds: 0, duration_seconds: 1, params: {statements: [{id: s, sql: "+
			"\"UPDATE users SET role = 'admin'\"}]}}\n",
		"postgres://loadstone@"+way.Addr().String()+"/control?sslmode=disable")}, &run)
	var d engine.RunDetail
	clitest.Until(t, time.Minute, func() bool {
		session.Do("GET", "/api/runs/"+run.RunID, nil, &d)
		return d.Status.Terminal()
	}, served.Out.String)
	if d.Status != engine.StatusFailed || d.CancellationReason == nil ||
		!strings.Contains(*d.CancellationReason, "Loadstone's own control store") || way.turned.Load() == 0 {
		t.Errorf("%s: %v, turned %d times", d.Status, d.CancellationReason, way.turned.Load())
	}
	if os.Getenv("LOADSTONE_ALLOW_TARGETS") == "" {
		t.Error("the list of the tests is not set: the socket was refused, not the database")
	}
}
