package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// rights are attacks of somebody who has no right any more, or never had it.
var rights = []attack{
	{3, "work of a locked operator goes on", func(ctx context.Context, s *stage) (string, error) {
		return s.goesOn(ctx, func(id string) error {
			return s.admin[0].Do(ctx, http.MethodPatch, "/api/users/"+id, map[string]any{"disabled": true}, nil)
		})
	}},
	{3, "work of a deleted operator goes on", func(ctx context.Context, s *stage) (string, error) {
		return s.goesOn(ctx, func(id string) error {
			return s.admin[0].Do(ctx, http.MethodDelete, "/api/users/"+id, nil, nil)
		})
	}},
	{3, "a replay makes the values of another's run again", replayed},
}

// revokedWithin is how long work may go on.
const revokedWithin = 5 * time.Second

// goesOn has a new operator start a run and a query that posts, on the second server, and ends its rights on the first.
func (s *stage) goesOn(ctx context.Context, revoke func(id string) error) (string, error) {
	name := "leaver-" + uuid.NewString()[:8]
	if err := s.invite(ctx, name, "operator"); err != nil {
		return "", err
	}
	leaver := s.users[name].tokens[1]
	var posts atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		posts.Add(1)
	}))
	defer hook.Close()
	rows, err := rowsOverTCP()
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	word := strings.ReplaceAll(name, "-", "_")
	if err := leaver.Do(ctx, http.MethodPost, "/api/v1/streams/statements", map[string]any{"sql": fmt.Sprintf(
		`CREATE LOGICAL SOURCE %[1]s(n INT64); CREATE PHYSICAL SOURCE FOR %[1]s TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST,
		%[2]d AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE); CREATE SINK %[1]s TYPE WEBHOOK SET('%[3]s' AS SINK.URL);
		CREATE QUERY %[1]s AS SELECT n FROM %[1]s INTO %[1]s`,
		word,
		rows.Addr().(*net.TCPAddr).Port,
		hook.URL,
	)}, nil); err != nil {
		return "", err
	}
	var run struct {
		ID string `json:"run_id"`
	}
	if err := leaver.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf(
		"name: %s\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: %s\n  prepare: {rows: 100, "+
			"if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 20, concurrent_connections: 2, duration_seconds: 120, "+
			"warmup_seconds: 0}\n",
		name,
		s.dsnAs("target_owner", target),
		word,
	)}, &run); err != nil {
		return "", err
	}
	state := func(sql, of string) (is string) {
		_ = s.sql.QueryRow(ctx, sql, of).Scan(&is) // "" is no state
		return is
	}
	runIs := func() string {
		return state(
			"SELECT status || ' ' || coalesce(phase, cancellation_reason, '') FROM run_status WHERE run_id = $1",
			run.ID,
		)
	}
	queryIs := func() string { return state("SELECT execution_state FROM queries WHERE name = $1", word) }
	if !soon(program.StartLimit, func() bool { return runIs() == "RUNNING MEASUREMENT" && posts.Load() > 0 }) {
		return "", fmt.Errorf("nothing goes on: the run is %s, the query %s", runIs(), queryIs())
	}
	began := time.Now()
	if err := revoke(s.users[name].id); err != nil {
		return "", err
	}
	ended := func() bool { return strings.HasPrefix(runIs(), "CANCEL") && queryIs() == "SUSPENDED" }
	if !soon(revokedWithin, ended) {
		return "", fmt.Errorf("after %v the run is %s, the query %s", revokedWithin, runIs(), queryIs())
	}
	took, before := time.Since(began), posts.Load()
	time.Sleep(2 * time.Second)
	if n := posts.Load() - before; n > 0 {
		return "", fmt.Errorf("%d times rows were posted afterwards", n)
	}
	for i := range s.servers {
		if err := refused(s.users[name].tokens[i].Do(ctx, http.MethodGet, "/api/runs", nil, nil)); err != nil {
			return "", fmt.Errorf("the token at server %d: %w", i+1, err)
		}
	}
	return fmt.Sprintf(
		"run stopped and query suspended after %d ms, tokens refused on both servers",
		took.Milliseconds(),
	), nil
}

// rowsOverTCP sends a row every few milliseconds to whoever comes.
func rowsOverTCP() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for n := 0; ; n++ {
					if _, err := fmt.Fprintf(c, "%d\n", n); err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
	}()
	return l, nil
}

func soon(limit time.Duration, is func() bool) bool {
	for began := time.Now(); time.Since(began) < limit; time.Sleep(20 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// replayed runs on a restricted connection, whose keys are sampled, and looks for the values as a viewer and through a
// replay of another operator.
func replayed(ctx context.Context, s *stage) (string, error) {
	own, drop, err := s.connection(ctx, oscar)
	if err != nil {
		return "", err
	}
	defer drop()
	table := "people_" + uuid.NewString()[:8]
	in, err := pgx.Connect(ctx, s.dsnAs("target_owner", target))
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close(ctx) }()
	if _, err := in.Exec(ctx, fmt.Sprintf(`CREATE TABLE %[1]s (email text PRIMARY KEY, n int NOT NULL DEFAULT 0);
		INSERT INTO %[1]s SELECT 'person' || i || '@canary.example', i FROM generate_series(1, 500) i; ANALYZE %[1]s`, table)); err != nil {
		return "", err
	}
	var run struct {
		ID string `json:"run_id"`
	}
	source := fmt.Sprintf("name: %s\ntarget: {connection: %q, table_name: %s}\nworkload: {plugin: mix, params: {weights: "+
		"{POINT_LOOKUP: 100}}, load_mode: QPS, target_qps: 50, concurrent_connections: 2, duration_seconds: 2, "+
		"warmup_seconds: 0}\n",
		table, own.Name, table)
	if err := s.users[oscar].tokens[0].Do(
		ctx,
		http.MethodPost,
		"/api/runs",
		map[string]any{"source": source, "start": true,
			"allow_writes": true},
		&run,
	); err != nil {
		return "", err
	}
	var status string
	if !soon(program.StartLimit, func() bool {
		_ = s.sql.QueryRow(
			ctx,
			"SELECT status || coalesce(cancellation_reason, '') FROM run_status WHERE run_id = $1 AND phase IS NULL",
			run.ID,
		).Scan(
			&status,
		)
		return status != ""
	}) || status != "COMPLETED" {
		return "", fmt.Errorf("the run is %q", status)
	}
	var plan string
	if err := s.sql.QueryRow(
		ctx,
		"SELECT plan::text FROM test_results WHERE test_id = $1",
		run.ID,
	).Scan(
		&plan,
	); err != nil {
		return "", err
	}
	if !strings.Contains(plan, "pools_sealed") || strings.Contains(plan, "canary") {
		return "", errors.New("the control store has sampled rows in plain, or the run has none")
	}
	replay := fmt.Sprintf(
		"name: %s\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: %s\nworkload: {plugin: replay, "+
			"feed: {run: %s}, binds: plain}\n",
		"replay-"+table,
		s.dsnAs("target_owner", target),
		table,
		run.ID,
	)
	for i := range s.servers {
		for _, viewer := range []*program.Client{s.users[vera].tokens[i], s.users[vera].sessions[i]} {
			text, _, err := viewer.Send(ctx, http.MethodGet, "/api/runs/"+run.ID, nil)
			if err != nil || strings.Contains(string(text), "canary") {
				return "", fmt.Errorf("the run's detail has values of rows: %w", err)
			}
		}
		for _, path := range []string{"/api/runs", "/api/preflight", "/api/statements/try"} {
			err := s.users[olga].tokens[i].Do(ctx, http.MethodPost, path, map[string]any{"source": replay}, nil)
			if got := program.Status(err); got != http.StatusForbidden {
				return "", fmt.Errorf("%s of a replay: %w", path, refused(err, "403"))
			}
		}
	}
	return "403 by run, preflight and try on both servers; no value in the run's detail", nil
}
