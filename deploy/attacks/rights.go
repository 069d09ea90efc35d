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
	{3, "notifications of a locked admin go on", hooksGoOn},
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
	var made struct{ Name string }
	if err := leaver.Do(ctx, http.MethodPost, "/api/v1/tables", map[string]any{"name": word, "target_lag_seconds": 1,
		"definition": "SELECT count(*) AS n FROM runs"}, &made); err != nil {
		return "", err
	}
	defer func() { _ = s.admin[0].Do(ctx, http.MethodDelete, "/api/v1/tables/"+word, nil, nil) }()
	tableIs := func() string {
		return state("SELECT status || ' ' || suspended_reason FROM dynamic_tables WHERE name = $1", word)
	}
	queryIs := func() string { return state("SELECT execution_state FROM queries WHERE name = $1", word) }
	if !soon(program.StartLimit, func() bool { return runIs() == "RUNNING MEASUREMENT" && posts.Load() > 0 }) {
		return "", fmt.Errorf("nothing goes on: the run is %s, the query %s", runIs(), queryIs())
	}
	began := time.Now()
	if err := revoke(s.users[name].id); err != nil {
		return "", err
	}
	ended := func() bool {
		return strings.HasPrefix(runIs(), "CANCEL") && queryIs() == "SUSPENDED" &&
			strings.HasPrefix(tableIs(), "SUSPENDED "+name)
	}
	if !soon(revokedWithin, ended) {
		return "", fmt.Errorf(
			"after %v the run is %s, the query %s, the table %s",
			revokedWithin,
			runIs(),
			queryIs(),
			tableIs(),
		)
	}
	took, before := time.Since(began), posts.Load()
	time.Sleep(2 * time.Second)
	if n := posts.Load() - before; n > 0 {
		return "", fmt.Errorf("%d times rows were posted afterwards", n)
	}
	var refreshes, others int
	if err := s.sql.QueryRow(ctx, `SELECT (SELECT count(*) FROM pending_refreshes WHERE dynamic_table = $1)
		+ (SELECT count(*) FROM refresh_claims WHERE dynamic_table = $1),
		(SELECT count(*) FROM dynamic_tables WHERE bundled AND status <> 'ACTIVE')`, word).Scan(&refreshes, &others); err != nil ||
		refreshes+others > 0 {
		return "", fmt.Errorf("%d refreshes go on, %d tables of the house were suspended: %w", refreshes, others, err)
	}
	// Another operator takes the table over.
	if err := s.users[olga].tokens[0].Do(ctx, http.MethodPost, "/api/v1/tables/"+word+"/resume", nil, nil); err != nil {
		return "", err
	}
	if is := state("SELECT status || ' ' || owner FROM dynamic_tables WHERE name = $1", word); is != "ACTIVE "+olga {
		return "", fmt.Errorf("the table that another operator resumed is %s", is)
	}
	for i := range s.servers {
		if err := refused(s.users[name].tokens[i].Do(ctx, http.MethodGet, "/api/runs", nil, nil)); err != nil {
			return "", fmt.Errorf("the token at server %d: %w", i+1, err)
		}
	}
	return fmt.Sprintf(
		"run stopped, query and table suspended after %d ms, tokens refused on both servers",
		took.Milliseconds(),
	), nil
}

// hooksGoOn has a new admin save a notification on the second server, and locks it out on the first.
func hooksGoOn(ctx context.Context, s *stage) (string, error) {
	name := "leaver-" + uuid.NewString()[:8]
	if err := s.invite(ctx, name, "admin"); err != nil {
		return "", err
	}
	var posts atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		posts.Add(1)
	}))
	defer hook.Close()
	const path = "/api/v1/notifications"
	type list struct {
		Version int64
		Hooks   []struct {
			ID        string
			Owner     string
			Suspended string `json:"suspended_reason"`
		}
	}
	var saved list
	if err := s.admin[1].Do(ctx, http.MethodGet, path, nil, &saved); err != nil {
		return "", err
	}
	body := map[string]any{"version": saved.Version, "hooks": []any{map[string]any{"name": name, "kind": "webhook",
		"url": hook.URL, "events": []string{"finished", "regressed", "failed"}}}}
	if err := s.users[name].sessions[1].Do(ctx, http.MethodPut, path, body, &saved); err != nil {
		return "", err
	}
	defer func() {
		if s.admin[0].Do(ctx, http.MethodGet, path, nil, &saved) == nil {
			_ = s.admin[0].Do(ctx, http.MethodPut, path, map[string]any{"version": saved.Version, "hooks": []any{}}, nil)
		}
	}()
	// A run that fails at once on a database that is not there, on each server.
	run := func() error {
		for i := range s.servers {
			var run struct {
				ID string `json:"run_id"`
			}
			c := s.users[oscar].tokens[i]
			if err := c.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"source": takeover(s.dsnAs("target_owner", target)),
				"allow_writes": true, "start": true}, &run); err != nil {
				return err
			}
			if err := ended(ctx, c, "/api/runs/"+run.ID); program.Status(err) != http.StatusUnprocessableEntity {
				return fmt.Errorf("the run has not failed: %w", err)
			}
		}
		return nil
	}
	if err := run(); err != nil {
		return "", err
	}
	if !soon(program.StartLimit, func() bool { return posts.Load() == 2 }) {
		return "", fmt.Errorf("the notification was sent %d times, want 2", posts.Load())
	}
	began := time.Now()
	if err := s.admin[0].Do(ctx, http.MethodPatch, "/api/users/"+s.users[name].id, map[string]any{"disabled": true},
		nil); err != nil {
		return "", err
	}
	suspended := func() bool {
		err := s.admin[1].Do(ctx, http.MethodGet, path, nil, &saved)
		return err == nil && len(saved.Hooks) == 1 && strings.HasPrefix(saved.Hooks[0].Suspended, name+", who saved it")
	}
	if !soon(revokedWithin, suspended) {
		return "", fmt.Errorf("after %v the notification is %+v", revokedWithin, saved.Hooks)
	}
	took := time.Since(began)
	if err := run(); err != nil {
		return "", err
	}
	time.Sleep(3 * time.Second)
	if n := posts.Load(); n != 2 {
		return "", fmt.Errorf("%d times runs were told to a locked admin's address", n-2)
	}
	return fmt.Sprintf("suspended after %d ms, and nothing was sent from both servers", took.Milliseconds()), nil
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
	// others may not make the values again, on any server.
	others := func() error {
		for i := range s.servers {
			for _, path := range []string{"/api/runs", "/api/preflight", "/api/statements/try"} {
				err := s.users[olga].tokens[i].Do(ctx, http.MethodPost, path, map[string]any{"source": replay}, nil)
				if got := program.Status(err); got != http.StatusForbidden {
					return fmt.Errorf("%s of a replay: %w", path, refused(err, "403"))
				}
			}
		}
		return nil
	}
	for i := range s.servers {
		for _, viewer := range []*program.Client{s.users[vera].tokens[i], s.users[vera].sessions[i]} {
			text, _, err := viewer.Send(ctx, http.MethodGet, "/api/runs/"+run.ID, nil)
			if err != nil || strings.Contains(string(text), "canary") {
				return "", fmt.Errorf("the run's detail has values of rows: %w", err)
			}
		}
	}
	if err := others(); err != nil {
		return "", err
	}
	drop()
	if err := others(); err != nil {
		return "", fmt.Errorf("after the connection was deleted: %w", err)
	}
	return "403 by run, preflight and try on both servers, also after the connection was deleted; no value in the run's " +
		"detail", nil
}
