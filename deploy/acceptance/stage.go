package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// marker is in the environment of all processes of a stage, so that those that are left are found.
const marker = "LOADSTONE_ACCEPTANCE"

// startLimit is what a process gets to be ready, on a machine that has other work.
const startLimit = 3 * time.Minute

// stage is a server with two nodes on a real Postgres.
type stage struct {
	dir, kept, id string
	broken        spoil
	program       string
	postgres      *embedded.Postgres
	sql           *pgx.Conn
	target        *pgx.Conn

	server *process
	nodes  []*process
	base   string
	token  string
	run    engine.Run

	mu   sync.Mutex
	seen []payload // of the socket
}

// payload is what the socket said, and when.
type payload struct {
	engine.LiveState
	at time.Time
}

// process is the program in a process of its own.
type process struct {
	name  string
	cmd   *exec.Cmd
	mu    sync.Mutex
	text  bytes.Buffer
	done  chan struct{}
	ended error
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

func (s *stage) launch(name string, args ...string) (*process, error) {
	// It is ended by signals, and what is run is what the user names.
	cmd := exec.Command(s.program, args...)
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), marker+"="+s.id, "LOADSTONE_CALIBRATE=off",
		"LOADSTONE_ALLOW_TARGETS=0.0.0.0/0,::/0,unix:/")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	go func() { p.ended = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// until waits for what happens in its own time.
func until(ctx context.Context, limit time.Duration, what string, ready func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %s", what, limit)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// folder makes a folder that the user that Postgres runs as can enter.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "loadstone-acceptance-")
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

// open starts all of it; who gets an error has nothing to close. kept is where the data of the server and of the
// nodes are, with the plugins that they have compiled: what a run leaves there is no other run's.
func open(ctx context.Context, program, kept string, broken spoil) (_ *stage, err error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, kept: kept, id: uuid.NewString(), broken: broken, program: program}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.postgres, err = embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres"), Log: zerolog.Nop(),
		Throwaway: true})
	if err != nil {
		return nil, err
	}
	control, target := s.postgres.DSN(embedded.ControlDatabase), s.postgres.DSN(embedded.PlaygroundDatabase)
	if s.sql, err = pgx.Connect(ctx, control); err != nil {
		return nil, err
	}
	if s.target, err = pgx.Connect(ctx, s.postgres.AdminDSN(embedded.PlaygroundDatabase)); err != nil {
		return nil, err
	}
	apply, err := s.launch("schema", "schema", "apply", "--database-url", control)
	if err != nil {
		return nil, err
	}
	if <-apply.done; apply.ended != nil {
		return nil, fmt.Errorf("applying the schema: %w: %s", apply.ended, apply.output())
	}
	if err := s.openNodes(ctx, control); err != nil {
		return nil, err
	}
	return s, s.create(ctx, target)
}

// openNodes starts the nodes and the server that dials them.
func (s *stage) openNodes(ctx context.Context, control string) error {
	count := 2
	if s.broken == oneNode {
		count = 1
	}
	var addresses []string
	for i := range count {
		n, err := s.launch(fmt.Sprintf("node %d", i+1), "worker", "--listen", "127.0.0.1:0", "--data-dir",
			filepath.Join(s.kept, fmt.Sprintf("node-%d", i+1)))
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
		if err := until(ctx, startLimit, "the address of a node", func() (bool, error) {
			_, after, ok := strings.Cut(n.output(), " listens on ")
			if address, _, whole := strings.Cut(after, "\n"); ok && whole {
				addresses = append(addresses, strings.TrimSpace(address))
				return true, nil
			}
			return false, n.gone()
		}); err != nil {
			return err
		}
	}
	// A server that was killed has left it.
	if err := os.Remove(filepath.Join(s.kept, "server", "operator.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var err error
	if s.server, err = s.launch("server", "serve", "--listen", "127.0.0.1:0", "--data-dir",
		filepath.Join(s.kept, "server"),
		"--database-url", control, "--local-capacity", "0", "--nodes", strings.Join(addresses, ",")); err != nil {
		return err
	}
	var o struct{ Address, Secret string }
	if err := until(ctx, startLimit, "a server", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(s.kept, "server", "operator.json"))
		return err == nil && json.Unmarshal(text, &o) == nil && o.Secret != "", s.server.gone()
	}); err != nil {
		return err
	}
	s.base = o.Address
	// The operator's secret makes a token, as loadstone token does.
	s.token = o.Secret
	var made struct{ Secret string }
	if err := s.do(ctx, http.MethodPost, "/api/auth/tokens", map[string]any{"name": "acceptance", "scope": "admin",
		"expires_in_days": 1}, &made); err != nil {
		return err
	}
	s.token = made.Secret
	return until(ctx, startLimit, "nodes that take work", func() (bool, error) {
		var l struct {
			Nodes []struct {
				Accepting bool `json:"accepting_work"`
			}
		}
		err := s.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &l)
		n := 0
		for _, v := range l.Nodes {
			if v.Accepting {
				n++
			}
		}
		return n == count, err
	})
}

// gone is an error once the process has ended.
func (p *process) gone() error {
	select {
	case <-p.done:
		return fmt.Errorf("the %s has ended: %w: %s", p.name, p.ended, p.output())
	default:
		return nil
	}
}

// create makes the run of the checklist.
func (s *stage) create(ctx context.Context, dsn string) error {
	warmup, seconds := 3, 120
	switch s.broken {
	case noWarmup:
		warmup = 1
	case endsByItself:
		warmup, seconds = 3, 5
	}
	source := fmt.Sprintf("name: acceptance\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
		"prepare: {rows: 1000, if_exists: use}\nworkload: {plugin: mix, load_mode: QPS, target_qps: 400, "+
		"concurrent_connections: 4, duration_seconds: %d, warmup_seconds: %d}\n"+
		"scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", dsn, seconds, warmup)
	in := map[string]any{"source": source, "start": s.broken == startAtOnce}
	var last error
	if err := until(ctx, startLimit, "a run", func() (bool, error) {
		// A server on a new folder compiles its plugins first, which a busy machine may not do in time.
		last = s.do(ctx, http.MethodPost, "/api/runs", in, &s.run)
		if last != nil && strings.Contains(last.Error(), "deadline exceeded") {
			return false, nil
		}
		return last == nil, last
	}); err != nil {
		return errors.Join(err, last)
	}
	if s.broken == startAtOnce {
		return s.watch()
	}
	return nil
}

// watch keeps what the socket says of the run, until the stage is closed.
func (s *stage) watch() error {
	d := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	conn, res, err := d.Dial(strings.Replace(s.base, "http", "ws", 1)+"/ws/runs/"+s.run.RunID,
		http.Header{"Authorization": {"Bearer " + s.token}})
	if err != nil {
		return fmt.Errorf("opening the socket: %w", err)
	}
	_ = res.Body.Close()
	go func() {
		defer func() { _ = conn.Close() }()
		for {
			var m struct{ Data engine.LiveState }
			if conn.ReadJSON(&m) != nil {
				return // the server has ended
			}
			s.mu.Lock()
			s.seen = append(s.seen, payload{m.Data, time.Now()})
			s.mu.Unlock()
		}
	}()
	return nil
}

// payloads is what the socket has said so far.
func (s *stage) payloads() []payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]payload(nil), s.seen...)
}

// do asks the API.
func (s *stage) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// close ends all that is left and removes it.
func (s *stage) close() {
	all := s.nodes
	if s.server != nil {
		all = append(all, s.server)
	}
	for _, p := range all {
		_ = p.signal(syscall.SIGKILL)
		<-p.done
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range []*pgx.Conn{s.sql, s.target} {
		if c != nil {
			_ = c.Close(ctx)
		}
	}
	if s.postgres != nil {
		if err := s.postgres.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "acceptance: stopping Postgres:", err)
		}
	}
	_ = os.RemoveAll(s.dir)
}
