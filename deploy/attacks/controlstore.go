package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// controlStore are attacks of an operator on the databases of the server, by each way on which users connect.
var controlStore = []attack{
	{
		1,
		"the control store is tested as a connection",
		onEach(func(ctx context.Context, c *program.Client, dsn string) error {
			return c.Do(ctx, http.MethodPost, "/api/connections/test", map[string]any{"driver": "postgres", "dsn": dsn}, nil)
		}),
	},
	{1, "the control store is a saved connection", onEach(func(ctx context.Context, c *program.Client, dsn string) error {
		saved, err := save(ctx, c, dsn)
		if err != nil {
			return err
		}
		defer saved.drop(ctx, c)
		return c.Do(ctx, http.MethodPost, "/api/connections/"+saved.ID+"/test", map[string]any{}, nil)
	})},
	{1, "the control store's tables are listed", onEach(func(ctx context.Context, c *program.Client, dsn string) error {
		saved, err := save(ctx, c, dsn)
		if err != nil {
			return err
		}
		defer saved.drop(ctx, c)
		return c.Do(ctx, http.MethodPost, "/api/statements/catalog", map[string]any{"connection": saved.Name}, nil)
	})},
	{
		1,
		"a statement is tried on the control store",
		onEach(func(ctx context.Context, c *program.Client, dsn string) error {
			return planned(ctx, c, "/api/statements/try", map[string]any{"source": takeover(dsn)})
		}),
	},
	{1, "a run is planned on the control store", onEach(func(ctx context.Context, c *program.Client, dsn string) error {
		return planned(ctx, c, "/api/preflight", map[string]any{"source": takeover(dsn), "allow_writes": true})
	})},
	{1, "a run makes an operator an admin", onEach(func(ctx context.Context, c *program.Client, dsn string) error {
		var run struct {
			ID string `json:"run_id"`
		}
		if err := c.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"source": takeover(dsn), "allow_writes": true,
			"start": true}, &run); err != nil {
			return err
		}
		return ended(ctx, c, "/api/runs/"+run.ID)
	})},
	{
		1,
		"a saved template makes an operator an admin",
		onEach(func(ctx context.Context, c *program.Client, dsn string) error {
			var saved struct {
				ID string `json:"template_id"`
			}
			if err := c.Do(ctx, http.MethodPost, "/api/templates", map[string]any{"source": takeover(dsn)}, &saved); err != nil {
				return err
			}
			var run struct {
				ID string `json:"run_id"`
			}
			if err := c.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"template_id": saved.ID, "allow_writes": true,
				"start": true}, &run); err != nil {
				return err
			}
			return ended(ctx, c, "/api/runs/"+run.ID)
		}),
	},
	{1, "a matrix makes an operator an admin", onEach(func(ctx context.Context, c *program.Client, dsn string) error {
		var made struct {
			Runs []struct {
				ID string `json:"run_id"`
			}
		}
		source := fmt.Sprintf("name: %q\nmatrix:\n  targets:\n  - {label: a, connection: {driver: postgres, dsn: %q}}\n"+
			"  - {label: b, connection: {driver: postgres, dsn: %q}}\n%s", "takeover "+uuid.NewString()[:8], dsn, dsn, workload)
		if err := c.Do(ctx, http.MethodPost, "/api/matrices", map[string]any{"source": source, "allow_writes": true,
			"start": true}, &made); err != nil {
			return err
		}
		for _, run := range made.Runs {
			if err := ended(ctx, c, "/api/runs/"+run.ID); err != nil {
				return err
			}
		}
		return nil
	})},
	{
		1,
		"a run with rules makes an operator an admin",
		onEach(func(ctx context.Context, c *program.Client, dsn string) error {
			var run struct {
				ID string `json:"run_id"`
			}
			if err := c.Do(
				ctx,
				http.MethodPost,
				"/api/runs",
				map[string]any{"source": takeover(dsn) + rule, "allow_writes": true,
					"start": true},
				&run,
			); err != nil {
				return err
			}
			return ended(ctx, c, "/api/runs/"+run.ID)
		}),
	},
	{1, "a rule posts to what no user may reach", rulePosts},
	{1, "the forms of the page lead into the control store", forms},
	{
		1,
		"a POSTGRES sink writes into the control store",
		onEach(func(ctx context.Context, c *program.Client, dsn string) error {
			saved, err := save(ctx, c, dsn)
			if err != nil {
				return err
			}
			defer saved.drop(ctx, c)
			sql := fmt.Sprintf("CREATE SINK %q TYPE POSTGRES SET('%s' AS SINK.CONNECTION, 'users' AS SINK.TABLE)",
				"sink_"+uuid.NewString()[:8], saved.Name)
			return c.Do(ctx, http.MethodPost, "/api/v1/streams/statements", map[string]any{"sql": sql}, nil)
		}),
	},
	{1, "the command line has a server run on the control store", func(ctx context.Context, s *stage) (string, error) {
		return s.everywhere(ctx, func(_ context.Context, c *program.Client, dsn string) error {
			file := filepath.Join(s.dir, uuid.NewString()+".yaml")
			if err := os.WriteFile(file, []byte(takeover(dsn)), 0o600); err != nil {
				return err
			}
			token := c.Token
			for _, of := range s.users[oscar].tokens { // the command line has no session
				if of.Base == c.Base {
					token = of.Token
				}
			}
			out, err := s.run("run", "run", file, "--server", c.Base, "--token", token, "--allow-writes")
			if err == nil {
				return nil
			}
			return &program.StatusError{Status: http.StatusUnprocessableEntity, Text: out}
		})
	}},
}

// workload makes every operator an admin.
const workload = `workload:
  plugin: sql
  params: {statements: [{id: s, sql: "UPDATE users SET role = 'admin' WHERE role = 'operator'"}]}
  load_mode: CONCURRENCY
  concurrent_connections: 1
  warmup_seconds: 0
  duration_seconds: 1
`

// rule stops a run at its first row.
const rule = "rules:\n- name: any\n  when: SELECT recordsProcessed FROM worker_statistics\n"

// rulePosts has the rules of a run on each server post to metadata of clouds, and to the link.
func rulePosts(ctx context.Context, s *stage) (string, error) {
	tried := 0
	for i := range s.servers {
		c := s.users[oscar].sessions[i]
		err := c.Do(
			ctx,
			http.MethodPost,
			"/api/runs",
			map[string]any{"source": posting(s, forbiddenURLs), "start": true},
			nil,
		)
		if through := refused(err, "connections to it are refused"); through != nil {
			return "", through
		}
		tried += strings.Count(err.Error(), "connections to it are refused")
	}
	if tried != 10 {
		return "", fmt.Errorf("%d rules were refused, want 10", tried)
	}
	turned, err := rulesTurned(ctx, s)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"each of 10 rules is refused where it is written, and %d that are sent on while they post fail",
		turned,
	), nil
}

// forbiddenURLs are metadata of clouds, and of the link.
var forbiddenURLs = []string{"http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://[fe80::1]/",
	"http://[::ffff:169.254.169.254]/", "http://100.100.100.200/"}

// rulesTurned has the rules of a run on each server post to a program that sends them on to what no user may reach,
// when they have begun: each fails with that answer, and is not sent on.
func rulesTurned(ctx context.Context, s *stage) (turned int, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	var asked sync.Map
	turns := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(r.URL.Path, true)
			var n int
			if _, err := fmt.Sscanf(filepath.Base(r.URL.Path), "r%d", &n); err == nil && n < len(forbiddenURLs) {
				http.Redirect(w, r, forbiddenURLs[n], http.StatusTemporaryRedirect)
			}
		}),
	}
	go func() { _ = turns.Serve(l) }()
	defer func() { _ = turns.Close() }()
	for i := range s.servers {
		urls := make([]string, len(forbiddenURLs))
		for n := range urls {
			urls[n] = fmt.Sprintf("http://%s/%d/r%d", l.Addr(), i, n)
		}
		c := s.users[oscar].sessions[i]
		var run struct {
			ID    string `json:"run_id"`
			Rules []struct{ Name, Failure string }
		}
		err := c.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"source": posting(s, urls), "start": true}, &run)
		if err == nil {
			err = ended(ctx, c, "/api/runs/"+run.ID)
		}
		if err == nil {
			err = c.Do(ctx, http.MethodGet, "/api/runs/"+run.ID, nil, &run)
		}
		if err != nil {
			return 0, err
		}
		if len(run.Rules) != len(urls) {
			return 0, fmt.Errorf("%d rules of a run are shown, want %d", len(run.Rules), len(urls))
		}
		for n, r := range run.Rules {
			if _, posted := asked.Load(fmt.Sprintf("/%d/r%d", i, n)); !posted || !strings.Contains(r.Failure, "307") {
				return 0, fmt.Errorf("rule %s, which has posted: %t, says %q", r.Name, posted, r.Failure)
			}
			turned++
		}
	}
	return turned, nil
}

// posting is a template whose rules post to addresses.
func posting(s *stage, urls []string) string {
	name := "rules-" + uuid.NewString()[:8]
	source := fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: %s\n  prepare: "+
		"{rows: 100, if_exists: use}\nworkload: {plugin: mix, load_mode: QPS, target_qps: 20, concurrent_connections: 1, "+
		"duration_seconds: 4, warmup_seconds: 0}\nrules:\n",
		name, s.dsnAs("target_owner", target), strings.ReplaceAll(name, "-", "_"))
	for n, url := range urls {
		source += fmt.Sprintf("- name: r%d\n  when: SELECT recordsProcessed FROM worker_statistics\n  do: webhook\n"+
			"  url: %q\n", n, url)
	}
	return source
}

// forms saves what the forms of the page save, and turns it to the control store with a change, as a session does.
func forms(ctx context.Context, s *stage) (string, error) {
	good := s.dsnAs("target_owner", target)
	return s.everywhere(ctx, func(ctx context.Context, c *program.Client, dsn string) error {
		saved, err := save(ctx, c, good)
		if err != nil {
			return err
		}
		defer saved.drop(ctx, c)
		var template struct {
			ID      string `json:"template_id"`
			Version int64
		}
		if err := c.Do(
			ctx,
			http.MethodPost,
			"/api/templates",
			map[string]any{"source": takeover(good)},
			&template,
		); err != nil {
			return err
		}
		defer func() { _ = c.Do(ctx, http.MethodDelete, "/api/templates/"+template.ID, nil, nil) }()
		own := func(err error) bool {
			return err != nil &&
				(strings.Contains(err.Error(), "Loadstone's own") || strings.Contains(err.Error(), "unix socket"))
		}
		// A form that saves what is refused later leads nowhere from any page that uses it.
		err = c.Do(ctx, http.MethodPut, "/api/connections/"+saved.ID, map[string]any{"name": saved.Name, "driver": "postgres",
			"dsn": dsn}, nil)
		if err == nil {
			if err = c.Do(ctx, http.MethodPost, "/api/connections/"+saved.ID+"/test", map[string]any{}, nil); !own(err) {
				return err
			}
			err = c.Do(ctx, http.MethodPost, "/api/statements/catalog", map[string]any{"connection": saved.ID}, nil)
		}
		if !own(err) {
			return err
		}
		if err := c.Do(ctx, http.MethodPut, "/api/templates/"+template.ID, map[string]any{"source": takeover(dsn),
			"version": template.Version}, nil); err != nil {
			return err
		}
		var run struct {
			ID string `json:"run_id"`
		}
		if err := c.Do(ctx, http.MethodPost, "/api/tests/from-template/"+template.ID, map[string]any{"start": true},
			&run); err != nil {
			return err
		}
		return ended(ctx, c, "/api/runs/"+run.ID)
	})
}

// takeover is a template that does so in a database.
func takeover(dsn string) string {
	return fmt.Sprintf(
		"name: %q\ntarget: {connection: {driver: postgres, dsn: %q}}\n%s",
		"takeover "+uuid.NewString()[:8],
		dsn,
		workload,
	)
}

type connection struct {
	ID   string `json:"connection_id"`
	Name string `json:"name"`
}

func save(ctx context.Context, c *program.Client, dsn string) (saved connection, err error) {
	err = c.Do(ctx, http.MethodPost, "/api/connections", map[string]any{"name": "own " + uuid.NewString()[:8],
		"driver": "postgres", "dsn": dsn}, &saved)
	return saved, err
}

func (k connection) drop(ctx context.Context, c *program.Client) {
	_ = c.Do(ctx, http.MethodDelete, "/api/connections/"+k.ID, nil, nil)
}

// planned asks for something whose answer says whether it went well. It is a refusal where it did not, with all of the
// answer. A server that has just begun says that it still compiles its plugins: it is asked again.
func planned(ctx context.Context, c *program.Client, path string, in any) error {
	var text []byte
	if err := program.Until(ctx, program.StartLimit, "compiled plugins", func() (_ bool, err error) {
		text, _, err = c.Send(ctx, http.MethodPost, path, in)
		return !bytes.Contains(text, []byte("still being compiled")), err
	}); err != nil {
		return err
	}
	var answer struct{ OK bool }
	if err := json.Unmarshal(text, &answer); err != nil || answer.OK {
		return err
	}
	return &program.StatusError{Status: http.StatusUnprocessableEntity, Text: string(text)}
}

// ended waits for the end of a run. It is a refusal where the run has failed, with what the run says.
func ended(ctx context.Context, c *program.Client, path string) error {
	var run struct {
		Status string
		Reason string `json:"cancellation_reason"`
	}
	err := program.Until(ctx, time.Minute, "the end of a run", func() (bool, error) {
		err := c.Do(ctx, http.MethodGet, path, nil, &run)
		return slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED", "STOPPED"}, run.Status), err
	})
	if err == nil && run.Status == "FAILED" {
		return &program.StatusError{Status: http.StatusUnprocessableEntity, Text: run.Reason}
	}
	return err
}

// onEach is an attack by one way on every address, by token and by session, on both servers.
func onEach(
	way func(ctx context.Context, c *program.Client, dsn string) error,
) func(context.Context, *stage) (string, error) {
	return func(ctx context.Context, s *stage) (string, error) { return s.everywhere(ctx, way) }
}

// everywhere tries a way on every address of what is the server's own, and on what is not: where that is refused too,
// nothing was withstood.
func (s *stage) everywhere(ctx context.Context, way func(ctx context.Context, c *program.Client, dsn string) error) (
	string, error) {
	relay, err := s.relay(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = relay.Close() }()
	at := func(role, host, database string) string {
		return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", role, host, database)
	}
	own := []string{s.socketDSN(superuser, control), s.socketDSN("target_owner", control), s.socketDSN(superuser, target),
		at("results_owner", relay.Addr().String(), results), at("results_owner", relay.Addr().String(), target),
		at(superuser, fmt.Sprintf("127.0.0.1:%d", s.port), target)}
	for _, host := range []string{fmt.Sprintf("127.0.0.1:%d", s.port), fmt.Sprintf("[::1]:%d", s.port),
		fmt.Sprintf("[::ffff:127.0.0.1]:%d", s.port), fmt.Sprintf("localhost:%d", s.port), relay.Addr().String()} {
		own = append(own, at(superuser, host, control), at("target_owner", host, control))
	}
	tried := 0
	for i, dsn := range own {
		// Both servers have their turn, by token and by session, as programs and the forms of the page call.
		u := s.users[oscar]
		c := []*program.Client{u.tokens[0], u.sessions[1], u.tokens[1], u.sessions[0]}[i%4]
		if err := refused(way(ctx, c, dsn), "Loadstone's own", "unix socket"); err != nil {
			return "", fmt.Errorf("%s: %w", dsn, err)
		}
		tried++
		var role string
		if err := s.sql.QueryRow(
			ctx,
			"SELECT role FROM users WHERE user_id = $1",
			s.users[oscar].id,
		).Scan(
			&role,
		); err != nil {
			return "", err
		}
		if role != "operator" {
			return "", errors.New("the operator is " + role)
		}
	}
	// The way is there: what it asks of another database is not refused as the server's own.
	err = way(ctx, s.users[oscar].tokens[0], s.dsnAs("target_owner", target))
	if err != nil && (strings.Contains(err.Error(), "Loadstone's own") || strings.Contains(err.Error(), "unix socket")) {
		return "", fmt.Errorf("a database beside the control store is refused: %w", err)
	}
	return fmt.Sprintf("refused at %d addresses", tried), nil
}

// relay is a proxy before the Postgres.
func (s *stage) relay(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
			if err != nil {
				_ = from.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return l, nil
}
