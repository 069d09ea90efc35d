package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine"
)

// many continuous queries are what the goal is about.
const manyQueries = 20

// over are statements over every execution of a run, without what follows from their rows: of each sort four, which
// differ in a number.
func over(n int) string {
	sorts := []string{
		`SELECT start, runId, statement, COUNT(*) AS n, SUM(ms) AS total, MAX(ms) AS most FROM (SELECT timestamp, runId,
			statement, latencyMs - scheduleLagMs AS ms FROM executions WHERE success AND latencyMs > 0.0%d) GROUP BY runId,
			statement WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING MAX(ms) > 1000000`,
		`SELECT start, runId, kind, QUANTILE(latencyMs, 0.99) AS p99 FROM executions WHERE latencyMs > 0.0%d GROUP BY runId,
			kind WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING QUANTILE(latencyMs, 0.99) > 1000000`,
		`SELECT start, runId, errorClass, COUNT(*) AS n FROM executions WHERE NOT success AND latencyMs > 0.0%d GROUP BY runId,
			errorClass WINDOW TUMBLING(timestamp, SIZE 1 SEC)`,
		`SELECT timestamp, runId, statement, latencyMs FROM executions WHERE latencyMs > 100000%d AND NOT warmup`,
		`SELECT runId, AVG(latencyMs) AS mean, STDDEV(latencyMs) AS spread FROM executions WHERE latencyMs > 0.0%d
			GROUP BY runId WINDOW SLIDING(timestamp, SIZE 5 SEC, ADVANCE BY 1 SEC) HAVING AVG(latencyMs) > 1000000`,
	}
	return fmt.Sprintf(sorts[n%len(sorts)], n/len(sorts))
}

// watched is what is read beside a run.
type watched struct {
	name string
	// statement is that of a query of the server, nil where there is none; rules says that the run has them as rules.
	statement func(n int) string
	rules     bool
	// one says that there is one, not many.
	one bool
}

func (w watched) many() int {
	if w.one {
		return 1
	}
	return manyQueries
}

var besides = []watched{
	{name: "20 queries over executions", statement: over},
	{name: "20 rules over executions", statement: over, rules: true},
	{name: "1 query that lets no execution through", one: true, statement: func(int) string {
		return "SELECT runId FROM executions WHERE latencyMs < 0"
	}},
	{name: "20 queries that have nothing to read", statement: func(n int) string {
		return fmt.Sprintf("SELECT runId, queued FROM warehouse WHERE queued > %d", n)
	}},
}

// queries: what continuous queries cost the rate of a run, in pairs with and without.
func queries(ctx context.Context, b *bench) error {
	rounds, seconds := b.or(b.rounds, 9), b.or(b.seconds, 5)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	s, err := b.server(ctx, "server")
	if err != nil {
		return err
	}
	at := side{server: s, processes: []*process{s.process}}
	if err := s.statements(ctx, "CREATE SINK printed TYPE PRINT"); err != nil {
		return err
	}
	alone := func() map[string]any { return closedLoop(pg.DSN("playground"), seconds) }
	if _, _, err := at.carry(ctx, alone()); err != nil { // it makes the table and compiles the plugins
		return err
	}
	rates, costs := make([][]float64, len(besides)), make([][]float64, len(besides))
	var base []float64
	for round := range rounds {
		for i := range besides {
			w := besides[(i+round)%len(besides)]
			k := (i + round) % len(besides)
			var rate, cost [2]float64
			for turn := range 2 {
				with := (turn + round) % 2 // who begins changes
				if with == 0 {
					rate[0], cost[0], err = at.carry(ctx, alone())
				} else {
					rate[1], cost[1], err = at.beside(ctx, w, alone())
				}
				if err != nil {
					return err
				}
			}
			base = append(base, rate[0])
			rates[k], costs[k] = append(rates[k], rate[1]/rate[0]), append(costs[k], cost[1]/cost[0])
			fmt.Printf("  round %d, %s: %.0f/s and %.1f µs each without, %.0f/s and %.1f µs with: %.3f and %.3f "+
				"(load average %.1f)\n", round+1, w.name, rate[0], cost[0], rate[1], cost[1], rate[1]/rate[0],
				cost[1]/cost[0], measure.LoadAverage())
		}
	}
	tell("operations per second without any", measure.Spread("%.0f", base), "")
	for k, w := range besides {
		goal := "≥ 0.95"
		if w.one || !strings.Contains(w.name, "executions") {
			goal = ""
		}
		half := func(of []float64) string {
			return fmt.Sprintf("%s, middle half %.3f–%.3f", measure.Spread("%.3f", of), measure.Quantile(of, 0.25),
				measure.Quantile(of, 0.75))
		}
		tell(fmt.Sprintf("%s: rate with ÷ without, %d pairs", w.name, rounds), half(rates[k]), goal)
		tell("  processor time of an operation, with ÷ without", half(costs[k]), "")
	}
	return nil
}

// closedLoop is a run that asks for as much as the database gives.
func closedLoop(dsn string, seconds int) map[string]any {
	return map[string]any{"name": "queries",
		"target": map[string]any{"connection": map[string]any{"driver": "postgres", "dsn": dsn},
			"adapter": "postgres", "table_name": "bench_queries",
			"prepare": map[string]any{"rows": 100_000, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix",
			"params":    map[string]any{"weights": map[string]int{"POINT_LOOKUP": 80, "UPDATE": 20}},
			"load_mode": "CONCURRENCY", "concurrent_connections": 16, "duration_seconds": seconds, "warmup_seconds": 1},
		"scaling": map[string]any{"mode": "FIXED", "worker_count": 2, "per_worker_capacity": 8}}
}

// beside is carry beside queries, which have to be there still when the run is over.
func (s *side) beside(ctx context.Context, w watched, t map[string]any) (rate, cost float64, err error) {
	if w.rules {
		var list []map[string]any
		for n := range w.many() {
			list = append(list, map[string]any{"name": fmt.Sprintf("r%d", n), "when": w.statement(n)})
		}
		t["rules"] = list
		return s.carry(ctx, t)
	}
	var create, drop strings.Builder
	for n := range w.many() {
		fmt.Fprintf(&create, "CREATE QUERY q%d AS %s INTO printed;\n", n, w.statement(n))
		fmt.Fprintf(&drop, "DROP QUERY q%d;\n", n)
	}
	if err := s.server.statements(ctx, create.String()); err != nil {
		return 0, 0, err
	}
	if err := s.server.queries(ctx, w.many()); err != nil {
		return 0, 0, err
	}
	rate, cost, err = s.carry(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	if err := s.server.queries(ctx, w.many()); err != nil {
		return 0, 0, fmt.Errorf("behind the run: %w", err)
	}
	if err := s.server.statements(ctx, drop.String()); err != nil {
		return 0, 0, err
	}
	return rate, cost, s.server.queries(ctx, 0)
}

// statements carries out statements over streams.
func (s *server) statements(ctx context.Context, sql string) error {
	return s.call(ctx, http.MethodPost, "/api/v1/streams/statements", map[string]string{"sql": sql}, nil)
}

// queries waits until so many queries run, and there is no other.
func (s *server) queries(ctx context.Context, want int) error {
	return s.await(ctx, fmt.Sprintf("%d queries", want), func() (bool, error) {
		var all struct {
			Queries []struct{ Name, State, Failure string }
		}
		if err := s.get(ctx, "/api/v1/streams", &all); err != nil {
			return false, err
		}
		for _, q := range all.Queries {
			if q.State == "FAILED" {
				return false, fmt.Errorf("the query %s is FAILED: %s", q.Name, q.Failure)
			}
			if q.State != "RUNNING" {
				return false, nil
			}
		}
		return len(all.Queries) == want, nil
	})
}

// named takes the moment out of a reason.
var named = regexp.MustCompile(`(?:end|timestamp) (\S+Z)`)

// stops: how long after the row that breaks a rule a run has ended.
func stops(ctx context.Context, b *bench) error {
	rounds := b.or(b.rounds, 10)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	s, err := b.server(ctx, "server")
	if err != nil {
		return err
	}
	if err := s.statements(ctx, "CREATE SINK stop_run TYPE GUARDRAIL"); err != nil {
		return err
	}
	const single = "SELECT timestamp, runId FROM executions WHERE phase = 'MEASUREMENT' AND connection = 0 AND seq > 2000"
	const second = "SELECT end, runId, kind, QUANTILE(latencyMs, 0.99) AS p99 FROM executions " +
		"WHERE phase = 'MEASUREMENT' AND kind = 'POINT_LOOKUP' GROUP BY runId, kind " +
		"WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING p99 > 0"
	for _, of := range []struct {
		name, when string
		rule       bool
	}{
		{"a rule of the run, on a single execution: from that until the run has ended", single, true},
		{"a rule of the run, on the P99 of a second: from the end of the second", second, true},
		{"a GUARDRAIL of the server, on a single execution", single, false},
		{"a GUARDRAIL of the server, on the P99 of a second", second, false},
	} {
		var took []float64
		for range rounds {
			t := closedLoop(pg.DSN("playground"), 60)
			if of.rule {
				t["rules"] = []map[string]any{{"name": "stop", "when": of.when}}
			} else if err := s.statements(ctx, "CREATE QUERY stop AS "+of.when+" INTO stop_run"); err != nil {
				return err
			} else if err := s.queries(ctx, 1); err != nil {
				return err
			}
			after, err := s.broken(ctx, t)
			if err != nil {
				return err
			}
			if took = append(took, after.Seconds()); of.rule {
				continue
			}
			if err := s.statements(ctx, "DROP QUERY stop"); err != nil {
				return err
			}
			if err := s.queries(ctx, 0); err != nil {
				return err
			}
		}
		tell(fmt.Sprintf("%s, %d rounds (load average %.1f)", of.name, rounds, measure.LoadAverage()),
			measure.Spread("%.2f s", took), "≤ 2 s")
	}
	return nil
}

// broken carries a run that a rule stops, and returns how long after the row it has ended.
func (s *server) broken(ctx context.Context, t map[string]any) (time.Duration, error) {
	run, err := s.run(ctx, t)
	if err != nil {
		return 0, err
	}
	d, err := s.settled(ctx, run.RunID)
	if err != nil {
		return 0, err
	}
	m := named.FindStringSubmatch(reason(d))
	if d.Status != engine.StatusFailed || m == nil {
		return 0, fmt.Errorf("the run is %s: %s", d.Status, reason(d))
	}
	row, err := time.Parse(time.RFC3339, m[1])
	if err != nil {
		return 0, err
	}
	return d.EndTime.Sub(row), nil
}
