package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// resultsdb are attacks on a results database that is somebody else's.
var resultsdb = []attack{
	{5, "functions with side effects, by every way that takes SQL", sideEffects},
	{5, "a session that keeps what it set", kept},
	{5, "a reader that may do too much", tooMuch},
}

var effects = []string{"set_config('search_path', 'pg_catalog', false)", "pg_advisory_lock(1)", "lo_create(0)",
	"lo_from_bytea(0, 'x')", "pg_logical_emit_message(false, 'a', 'b')", "pg_notify('a', 'b')", "pg_terminate_backend(1)",
	"pg_cancel_backend(1)", "pg_sleep(5)", "query_to_xml('SELECT 1', true, true, '')", `U&"pg\005fsleep"(5)`,
	`U&"pg!005fsleep" UESCAPE '!' (5)`, `pg_catalog.U&"set_conf*0069g" UESCAPE '*' ('DateStyle', 'German', false)`,
	`pg_catalog . "pg_sleep" /* a */ (5)`, "setseed(0)", "pg_reload_conf()", "pg_promote()"}

func sideEffects(ctx context.Context, s *stage) (string, error) {
	tried := 0
	for i, call := range effects {
		server := i % len(s.servers)
		viewer, operator := s.users[vera].sessions[server], s.users[olga].tokens[server]
		sql := "SELECT (" + call + ")::text AS a"
		ways := map[string]error{
			"a query": query(ctx, viewer, sql),
			"a plan":  query(ctx, viewer, "EXPLAIN ANALYZE "+sql),
			"an export": operator.Do(
				ctx,
				http.MethodPost,
				"/api/query/export",
				map[string]any{"sql": sql, "format": "json"},
				nil,
			),
			"a preview": operator.Do(ctx, http.MethodPost, "/api/v1/table-preview", map[string]any{"definition": sql}, nil),
			"a table": operator.Do(ctx, http.MethodPost, "/api/v1/tables", map[string]any{"name": fmt.Sprint("attack_", i),
				"definition": sql, "target_lag_seconds": 60}, nil),
		}
		for way, err := range ways {
			tried++
			if err := refused(err); err != nil || program.Status(ways[way]) != http.StatusUnprocessableEntity {
				return "", fmt.Errorf("%s by %s: %w", call, way, errors.Join(err, ways[way]))
			}
		}
		out, err := s.run("sql", "sql", "--server", operator.Base, "--token", operator.Token, sql)
		if tried++; err == nil {
			return "", fmt.Errorf("%s by the command line: %s", call, out)
		}
	}
	conn := s.sql
	var objects int
	if err := conn.QueryRow(
		ctx,
		"SELECT count(*) FROM pg_largeobject_metadata",
	).Scan(
		&objects,
	); err != nil ||
		objects > 0 {
		return "", fmt.Errorf("%d large objects are stored, %w", objects, err)
	}
	return fmt.Sprintf("%d were refused, on both servers", tried), nil
}

func kept(ctx context.Context, s *stage) (string, error) {
	for i, c := range s.users[vera].tokens {
		for _, sql := range []string{"SELECT set_config('DateStyle', 'German', false)", "SET search_path = pg_catalog",
			"SET TimeZone = 'Asia/Tokyo'", "PREPARE p AS SELECT 1", "LISTEN x", "CREATE TEMP TABLE runs (a int)",
			"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "BEGIN", "SELECT 1/0"} {
			if err := refused(query(ctx, c, sql)); err != nil {
				return "", fmt.Errorf("%s: %w", sql, err)
			}
		}
		var answer struct{ Rows [][]string }
		if err := s.users[oscar].tokens[i].Do(ctx, http.MethodPost, "/api/query", map[string]any{
			"sql": `SELECT current_setting('search_path'), current_setting('DateStyle'), current_setting('TimeZone'),
				(SELECT count(*) FROM pg_prepared_statements)::text, (SELECT count(*) FROM runs WHERE false)::text`}, &answer); err != nil {
			return "", err
		}
		if got := strings.Join(answer.Rows[0], "|"); got != "tables, rollup|ISO, MDY|UTC|0|0" {
			return "", fmt.Errorf("another user's session has %s", got)
		}
	}
	return "nothing of it is in another user's session, on both servers", nil
}

// tooMuch gives the reader rights that nobody who sends SQL may have, and takes them by the command that does that.
func tooMuch(ctx context.Context, s *stage) (string, error) {
	if err := s.inResults(
		ctx,
		"GRANT pg_signal_backend, pg_write_server_files, pg_execute_server_program TO results_reader",
		"GRANT CREATE ON DATABASE "+results+" TO results_reader",
		"ALTER ROLE results_reader CREATEROLE",
	); err != nil {
		return "", err
	}
	until := func(what string, done func(error) bool) error {
		for _, users := range []string{vera, oscar} {
			for _, c := range s.users[users].tokens {
				err := program.Until(ctx, refreshLimit, what, func() (bool, error) {
					err := query(ctx, c, "SELECT 1")
					time.Sleep(time.Second)
					return done(err), nil
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := until("the refusal of SQL", func(err error) bool {
		return program.Status(err) == http.StatusConflict && strings.Contains(err.Error(), "pg_signal_backend") &&
			strings.Contains(err.Error(), "pg_execute_server_program") && strings.Contains(err.Error(), "may make roles") &&
			strings.Contains(err.Error(), "may make schemas") && strings.Contains(err.Error(), "schema apply --results")
	})
	if err != nil {
		return "", err
	}
	for _, c := range s.admin {
		if err := c.Do(ctx, http.MethodGet, "/api/runs", nil, nil); err != nil {
			return "", fmt.Errorf("the rest of the server: %w", err)
		}
	}
	if out, err := s.applyRole(); err != nil {
		return "", fmt.Errorf("taking the rights: %w: %s", err, out)
	}
	if err := until("answers to SQL", func(err error) bool { return err == nil }); err != nil {
		return "", err
	}
	return "no SQL was executed, each right was named, and after schema apply --results it is again", nil
}
