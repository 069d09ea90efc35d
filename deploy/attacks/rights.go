package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
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
	{3, "a login of a locked admin reads results", loginGoesOn},
	{3, "the owner of the results connection, or of its name, takes it elsewhere", resultsTakenElsewhere},
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
	if err := s.tellsNothing(ctx, run.ID, name); err != nil {
		return "", err
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
		"run stopped, query and table suspended after %d ms without a word on their user, tokens refused on both servers",
		took.Milliseconds(),
	), nil
}

// fates are what reasons must not say of a user.
var fates = []string{"locked out", "no user any more", "a viewer now"}

// tellsNothing is an error when what each role can read of a run that was stopped, or of a query that was suspended,
// tells what has become of their user, or names it in a reason.
func (s *stage) tellsNothing(ctx context.Context, runID, name string) error {
	for _, who := range []string{vera, olga} {
		for i, c := range s.users[who].tokens {
			var run struct {
				Reason string `json:"cancellation_reason"`
			}
			if err := c.Do(ctx, http.MethodGet, "/api/runs/"+runID, nil, &run); err != nil {
				return err
			}
			if !strings.Contains(run.Reason, "no right to it") || strings.Contains(run.Reason, name) {
				return fmt.Errorf("%s reads that the run has ended for %q", who, run.Reason)
			}
			paths := []string{"/api/runs/" + runID, "/api/runs", "/api/v1/streams", "/api/runs/" + runID + "/logs"}
			if who == vera {
				paths = append(paths, "/api/v1/tables")
			}
			for _, path := range paths {
				text, _, err := c.Send(ctx, http.MethodGet, path, nil)
				if err != nil && program.Status(err) != http.StatusNotFound {
					return fmt.Errorf("%s: %w", path, err)
				}
				for _, fate := range fates {
					if strings.Contains(string(text), fate) {
						return fmt.Errorf("%s of server %d tells %s that somebody is %q", path, i+1, who, fate)
					}
				}
			}
		}
	}
	return nil
}

// house starts a server with a Postgres of its own; end stops it.
func (s *stage) house(ctx context.Context, args ...string) (admin *program.Client, end func(), err error) {
	dir := filepath.Join(s.dir, "house-"+uuid.NewString()[:8])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	server, err := s.launch("house", append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = server.Signal(syscall.SIGTERM); _ = server.Wait(); _ = os.RemoveAll(dir) }
	operator, err := program.Operator(ctx, server, filepath.Join(dir, "operator.json"))
	if err == nil {
		admin, err = newToken(ctx, operator, "admin")
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return admin, end, nil
}

// joins makes a user of a house, and returns its session.
func (s *stage) joins(ctx context.Context, admin *program.Client, name, role string) (id string, as *program.Client,
	err error) {
	var made struct {
		User struct {
			ID string `json:"user_id"`
		}
		URL string
	}
	if err := admin.Do(ctx, http.MethodPost, "/api/users", map[string]any{"name": name, "role": role}, &made); err != nil {
		return "", nil, err
	}
	link, err := url.Parse(made.URL)
	if err != nil {
		return "", nil, err
	}
	as, err = signInAt(ctx, admin.Base, map[string]any{"invitation": link.Query().Get("invitation"), "password": password})
	return made.User.ID, as, err
}

// loginGoesOn has a new admin make a login to the results database of a server of its own, and ends its rights in each
// way.
func loginGoesOn(ctx context.Context, s *stage) (string, error) {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := free.Addr().String()
	_ = free.Close()
	admin, end, err := s.house(ctx, "--query-listen", address)
	if err != nil {
		return "", err
	}
	defer end()
	var slowest time.Duration
	for name, revoke := range map[string]func(path string) error{
		"locked": func(at string) error {
			return admin.Do(ctx, http.MethodPatch, at, map[string]any{"disabled": true}, nil)
		},
		"demoted": func(at string) error {
			return admin.Do(ctx, http.MethodPatch, at, map[string]any{"role": "operator"}, nil)
		},
		"deleted": func(at string) error { return admin.Do(ctx, http.MethodDelete, at, nil, nil) },
	} {
		id, as, err := s.joins(ctx, admin, name, "admin")
		if err != nil {
			return "", err
		}
		var login struct{ DSN string }
		if err := as.Do(ctx, http.MethodPost, "/api/v1/query-users", map[string]any{"name": name}, &login); err != nil {
			return "", err
		}
		session, err := pgx.Connect(ctx, login.DSN)
		if err != nil {
			return "", err
		}
		defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
		if _, err := session.Exec(ctx, "SELECT 1"); err != nil {
			return "", err
		}
		began := time.Now()
		if err := revoke("/api/users/" + id); err != nil {
			return "", err
		}
		if !soon(revokedWithin, func() bool { _, err := session.Exec(ctx, "SELECT 1"); return err != nil }) {
			return "", fmt.Errorf("the session of a login goes on whose admin was %s", name)
		}
		slowest = max(slowest, time.Since(began))
		if again, err := pgx.Connect(ctx, login.DSN); err == nil {
			_ = again.Close(ctx)
			return "", fmt.Errorf("a login is let in whose admin was %s", name)
		}
		// Another admin takes it over.
		if err := admin.Do(ctx, http.MethodPost, "/api/v1/query-users", map[string]any{"name": name, "new_password": true},
			&login); err != nil {
			return "", err
		}
		again, err := pgx.Connect(ctx, login.DSN)
		if err != nil {
			return "", fmt.Errorf("a login that was renewed: %w", err)
		}
		_ = again.Close(ctx)
	}
	return fmt.Sprintf("sessions ended after %d ms at most, and no new ones", slowest.Milliseconds()), nil
}

// resultsTakenElsewhere has operators change the connection to which servers take results, and save another of its
// name.
func resultsTakenElsewhere(ctx context.Context, s *stage) (string, error) {
	admin, end, err := s.house(ctx, "--results-connection", "lake")
	if err != nil {
		return "", err
	}
	defer end()
	_, owner, err := s.joins(ctx, admin, "owner", "operator")
	if err != nil {
		return "", err
	}
	_, other, err := s.joins(ctx, admin, "other", "operator")
	if err != nil {
		return "", err
	}
	account := func(name, host string) map[string]any {
		return map[string]any{"name": name, "driver": "snowflake", "dsn": "snowflake://u:pw@" + host + "/DB/S?warehouse=W"}
	}
	tried := 0
	deny := func(err error) error { tried++; return refused(err, "--results-connection") }
	// Nobody has a connection of the name yet.
	if err := deny(other.Do(ctx, http.MethodPost, "/api/connections", account("lake", "a.example"), nil)); err != nil {
		return "", fmt.Errorf("the name that the flag says: %w", err)
	}
	var lake, pond named
	if err := admin.Do(ctx, http.MethodPost, "/api/connections", account("lake", "a.example"), &lake); err != nil {
		return "", err
	}
	given := account("lake", "a.example")
	given["access"] = map[string]any{"restricted": false, "owner": "owner"}
	if err := admin.Do(ctx, http.MethodPut, "/api/connections/"+lake.ID, given, nil); err != nil {
		return "", err
	}
	if err := other.Do(ctx, http.MethodPost, "/api/connections", account("pond", "b.example"), &pond); err != nil {
		return "", err
	}
	for what, err := range map[string]error{
		"another host": owner.Do(ctx, http.MethodPut, "/api/connections/"+lake.ID, account("lake", "b.example"), nil),
		"another name": owner.Do(ctx, http.MethodPut, "/api/connections/"+lake.ID, account("puddle", "a.example"), nil),
		"deleted":      owner.Do(ctx, http.MethodDelete, "/api/connections/"+lake.ID, nil, nil),
		"renamed to":   other.Do(ctx, http.MethodPut, "/api/connections/"+pond.ID, account("lake", "b.example"), nil),
	} {
		if err := deny(err); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
	}
	return fmt.Sprintf("%d changes refused", tried), nil
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
