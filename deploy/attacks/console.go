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

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// console are attacks on the memory and the time of the SQL console, and of those who connect to the results database.
var console = []attack{
	{4, "forty slow queries of a viewer, on two servers", slowQueries},
	{4, "queries that build huge values and sets", hugeValues},
	{4, "a login that sets its limits away", limitsSetAway},
	{8, "statements that nobody can see afterwards", unseenStatements},
}

// slow goes on for longer than a query may.
const slow = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS g"

// hugeQueries make values, lists and sets as large as Postgres lets them.
var hugeQueries = []string{
	"SELECT repeat('x', 1000000000)",
	"SELECT string_agg(repeat('x', 1000), '') FROM generate_series(1, 1000000)",
	"SELECT array_agg(g) FROM generate_series(1, 100000000) g",
	"WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r WHERE length(x) < 900000000) " +
		"SELECT max(length(x)) FROM r",
	"SELECT a FROM generate_series(1, 3000) a, generate_series(1, 3000) b ORDER BY md5((a + b)::text) LIMIT 1",
	"SELECT count(*) FROM (SELECT md5(g::text) FROM generate_series(1, 20000000) g GROUP BY 1) x",
	"SELECT jsonb_agg(jsonb_build_object('a', repeat('x', 1000))) FROM generate_series(1, 1000000)",
	"SELECT regexp_replace(repeat('ab', 5000000), '(a|b)*', '\\1\\1', 'g')",
}

const (
	quickLimit   = time.Second
	memoryLimit  = 500 << 20
	refreshLimit = 40 * time.Second // what a server knows of the reader's rights it believes for 30 s
)

func query(ctx context.Context, c *program.Client, sql string) error {
	return c.Do(ctx, http.MethodPost, "/api/query", map[string]any{"sql": sql}, nil)
}

// meanwhile asks SELECT 1 as another user on both servers until stop is closed, and returns the longest that it took.
func (s *stage) meanwhile(ctx context.Context, stop <-chan struct{}) (slowest time.Duration, err error) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return slowest, err
		case <-time.After(100 * time.Millisecond):
		}
		began := time.Now()
		if failed := query(ctx, s.users[oscar].tokens[i%len(s.servers)], "SELECT 1"); failed != nil {
			err = fmt.Errorf("SELECT 1 of another user: %w", failed)
		}
		slowest = max(slowest, time.Since(began))
	}
}

// besides runs an attack while another user asks, and sees to it that this takes no longer than a second.
func (s *stage) besides(ctx context.Context, attack func()) (string, error) {
	stop := make(chan struct{})
	go func() { defer close(stop); attack() }()
	slowest, err := s.meanwhile(ctx, stop)
	if err == nil && slowest > quickLimit {
		err = fmt.Errorf("SELECT 1 of another user took %v", slowest)
	}
	return fmt.Sprintf("SELECT 1 of another user took %v at most", slowest.Round(time.Millisecond)), err
}

func slowQueries(ctx context.Context, s *stage) (string, error) {
	var mu sync.Mutex
	answers := map[int]int{}
	seen, err := s.besides(ctx, func() {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				c := s.users[vera].tokens[i%2]
				if i%4 > 1 {
					c = s.users[vera].sessions[i%2]
				}
				err := query(ctx, c, slow)
				mu.Lock()
				defer mu.Unlock()
				answers[program.Status(err)]++
			})
		}
		all.Wait()
	})
	if err == nil && answers[http.StatusTooManyRequests] == 0 {
		err = fmt.Errorf("none was refused: %v", answers)
	}
	return fmt.Sprintf("%s, %d of 40 were told to wait", seen, answers[http.StatusTooManyRequests]), err
}

func hugeValues(ctx context.Context, s *stage) (string, error) {
	idle, most := s.backends(), uint64(0)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, s.backends())
			}
		}
	})
	seen, err := s.besides(ctx, func() {
		for _, n := range []int{4, 40} {
			s.explode(ctx, n, func(int) string { return hugeQueries[0] })
		}
		for range 2 {
			s.explode(ctx, 2*len(hugeQueries), func(i int) string { return hugeQueries[i%len(hugeQueries)] })
		}
	})
	close(done)
	watch.Wait()
	above := most - min(idle, most)
	if err == nil && above > memoryLimit {
		err = fmt.Errorf("backends had %d MB more than idle", above>>20)
	}
	return fmt.Sprintf("backends had at most %d MB more than idle (%d MB); %s", above>>20, idle>>20, seen), err
}

// explode sends hugeQueries at the same time by all ways that take SQL, as a viewer and an operator, on both servers.
func (s *stage) explode(ctx context.Context, n int, bomb func(i int) string) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
			defer cancel()
			sql, server := bomb(i), i%len(s.servers)
			viewer, operator := s.users[vera].tokens[server], s.users[olga].tokens[server]
			switch i % 5 {
			case 0, 1:
				_ = query(ctx, viewer, sql)
			case 2:
				_ = operator.Do(ctx, http.MethodPost, "/api/query/export", map[string]any{"sql": sql, "format": "csv"}, nil)
			case 3:
				_ = operator.Do(ctx, http.MethodPost, "/api/v1/table-preview", map[string]any{"definition": sql}, nil)
			case 4:
				_, _ = s.run("sql", "sql", "--server", operator.Base, "--token", operator.Token, sql)
			}
		})
	}
	all.Wait()
}

// backends is how much memory the processes of the Postgres have for themselves.
func (s *stage) backends() (bytes uint64) {
	postmaster := s.postgres.PID()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil {
		return 0
	}
	for _, pid := range strings.Fields(string(text)) {
		line, err := os.ReadFile(filepath.Join("/proc", pid, "statm"))
		if err != nil {
			continue
		}
		var total, resident, shared uint64
		if _, err := fmt.Sscan(string(line), &total, &resident, &shared); err == nil && resident > shared {
			bytes += (resident - shared) * uint64(os.Getpagesize())
		}
	}
	return bytes
}

func limitsSetAway(ctx context.Context, s *stage) (string, error) {
	if out, err := s.applyRole(); err != nil {
		return "", fmt.Errorf("making the reader as it should be: %w: %s", err, out)
	}
	if err := s.inResults(ctx, "DROP ROLE IF EXISTS query_mallory",
		"CREATE ROLE query_mallory LOGIN IN ROLE results_reader"); err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, s.dsnAs("query_mallory", results))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range []string{"SET statement_timeout = 0", "SET idle_session_timeout = 0", "SET work_mem = '2GB'",
		"SET idle_in_transaction_session_timeout = 0"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	began := time.Now()
	_, err = conn.Exec(ctx, slow)
	took := time.Since(began)
	switch {
	case err == nil:
		return "", errors.New("it had an answer")
	case took > time.Minute:
		return "", fmt.Errorf("it went on for %v", took)
	}
	time.Sleep(time.Second)
	idle := s.backends()
	if _, err := conn.Exec(ctx, "SELECT length(repeat('x', 1000000000))"); err == nil {
		return "", errors.New("it had 1 GB of memory")
	}
	return fmt.Sprintf("its statement was ended after %v, and 1 GB refused (backends have %d MB)", took.Round(time.Second),
		idle>>20), nil
}

func unseenStatements(ctx context.Context, s *stage) (string, error) {
	_ = query(ctx, s.users[vera].tokens[0], "SELECT 'a secret word', set_config('a.b', 'c', false)")
	for range 300 {
		_ = query(ctx, s.users[vera].tokens[1], "SELECT 1")
	}
	var page struct {
		Entries []struct{ Detail, Outcome string }
	}
	if err := s.admin[0].Do(ctx, http.MethodGet, "/api/audit?limit=500&user=vera&action=query", nil, &page); err != nil {
		return "", err
	}
	found := false
	for _, e := range page.Entries {
		if strings.Contains(e.Detail, "secret word") {
			return "", errors.New("the audit log has a value")
		}
		found = found || e.Outcome == "failed" && strings.Contains(e.Detail, "set_config")
	}
	switch n := len(page.Entries); {
	case !found:
		return "", errors.New("the refused statement is not in the audit log")
	case n > 200:
		return "", fmt.Errorf("%d lines of 301 statements fill the audit log", n)
	default:
		return fmt.Sprintf("it has the refused statement without its values, and %d lines of the flood", n), nil
	}
}

// inResults executes statements in the results database as its superuser.
func (s *stage) inResults(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.dsn(results))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// applyRole makes the reader of the results database as it should be, as an administrator would.
func (s *stage) applyRole() (string, error) {
	return s.run("schema", "schema", "apply", "--results", "--results-database-url", s.dsnAs("results_owner", results),
		"--results-reader-url", s.dsnAs("results_reader", results), "--results-admin-url", s.dsn(results))
}
