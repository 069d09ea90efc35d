package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/deploy/program"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// marker is in the environment of all processes of a stage, so that those that are left are found.
const marker = "LOADSTONE_ACCEPTANCE"

// stage is a server with two nodes on a real Postgres.
type stage struct {
	dir, kept, id string
	broken        spoil
	program       string
	postgres      *embedded.Postgres
	sql           *pgx.Conn
	target        *pgx.Conn

	server *program.Process
	nodes  []*program.Process
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

func (s *stage) launch(name string, args ...string) (*program.Process, error) {
	return program.Launch(s.program, name, []string{marker + "=" + s.id,
		"LOADSTONE_ALLOW_TARGETS=0.0.0.0/0,::/0,unix:/"}, args...)
}

// open starts all of it; who gets an error has nothing to close. kept is where the data of the server and of the
// nodes are, with the plugins that they have compiled: what a run leaves there is no other run's.
func open(ctx context.Context, binary, kept string, broken spoil) (_ *stage, err error) {
	dir, err := program.Folder("loadstone-acceptance-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, kept: kept, id: uuid.NewString(), broken: broken, program: binary}
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
	if err := apply.Wait(); err != nil {
		return nil, fmt.Errorf("applying the schema: %w: %s", err, apply.Output())
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
		if err := program.Until(ctx, program.StartLimit, "the address of a node", func() (bool, error) {
			_, after, ok := strings.Cut(n.Output(), " listens on ")
			if address, _, whole := strings.Cut(after, "\n"); ok && whole {
				addresses = append(addresses, strings.TrimSpace(address))
				return true, nil
			}
			return false, n.Gone()
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
	operator, err := program.Operator(ctx, s.server, filepath.Join(s.kept, "server", "operator.json"))
	if err != nil {
		return err
	}
	s.base = operator.Base
	// The operator's secret makes a token, as loadstone token does.
	s.token = operator.Token
	var made struct{ Secret string }
	if err := s.do(ctx, http.MethodPost, "/api/auth/tokens", map[string]any{"name": "acceptance", "scope": "admin",
		"expires_in_days": 1}, &made); err != nil {
		return err
	}
	s.token = made.Secret
	return program.Until(ctx, program.StartLimit, "nodes that take work", func() (bool, error) {
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
	if err := program.Until(ctx, program.StartLimit, "a run", func() (bool, error) {
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
	return (&program.Client{Base: s.base, Token: s.token}).Do(ctx, method, path, in, out)
}

// close ends all that is left and removes it.
func (s *stage) close() {
	all := s.nodes
	if s.server != nil {
		all = append(all, s.server)
	}
	for _, p := range all {
		p.Kill()
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
