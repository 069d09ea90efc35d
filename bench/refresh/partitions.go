package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// partitions measures what so many runs with executions cost whoever asks for those of one: the first statement of a
// session, which reads the list of partitions, and later ones; and what all of them at once cost.
func (b *bench) partitions(ctx context.Context, owner, reader string, runs int) error {
	began := time.Now()
	if err := makePartitions(ctx, owner, runs); err != nil {
		return err
	}
	fmt.Printf("%d runs with a partition each, made in %.0f s\n", runs, time.Since(began).Seconds())
	for _, q := range []struct{ name, sql string }{{"one run", "SELECT count(*) FROM executions WHERE run_id = 'run-7'"},
		{"the same of a table without partitions", "SELECT count(*) FROM segments WHERE run_id = 'run-7'"},
		{"one run, joined",
			"SELECT count(*) FROM runs r JOIN executions e USING (run_id) WHERE r.run_id = 'run-7'"},
		{"all runs", "SELECT count(*) FROM executions"}} {
		var first, later []float64
		for range 3 {
			conn, err := pgx.Connect(ctx, reader)
			if err != nil {
				return err
			}
			for i := range 6 {
				began := time.Now()
				var n int64
				if err := conn.QueryRow(ctx, q.sql, pgx.QueryExecModeSimpleProtocol).Scan(&n); err != nil {
					return errors.Join(fmt.Errorf("%s: %w", q.name, err), conn.Close(ctx))
				}
				if took := time.Since(began).Seconds() * 1000; i == 0 {
					first = append(first, took)
				} else {
					later = append(later, took)
				}
			}
			if err := conn.Close(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("%d runs, load %.1f: %s: first statement of a session %s ms, later %s ms\n", runs, measure.LoadAverage(),
			q.name, measure.Spread("%.1f", first), measure.Spread("%.1f", later))
	}
	var puts []float64
	for range 5 {
		c := b.claim()
		began := time.Now()
		if err := b.database.Begin(ctx, c); err != nil {
			return err
		}
		staged, err := b.database.StageExecutions(ctx, c, begun, fmt.Sprint(c.Epoch),
			func(context.Context, func(*rollup.Executions) error) error { return nil })
		if err != nil {
			return err
		}
		r := rollup.Run{Seconds: rollup.New(begun), Executions: staged}
		r.Run.RunID = runID
		if _, _, err := b.database.PutRun(ctx, c, r, held); err != nil {
			return err
		}
		puts = append(puts, time.Since(began).Seconds()*1000)
	}
	fmt.Printf("%d runs, load %.1f: a run of no executions in place of itself: %s ms\n", runs, measure.LoadAverage(),
		measure.Spread("%.1f", puts))
	return nil
}

// makePartitions makes them as an ingest does, some hundred in a transaction.
func makePartitions(ctx context.Context, owner string, runs int) error {
	conn, err := pgx.Connect(ctx, owner)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	const together = 200
	for from := 0; from < runs; from += together {
		_, err := conn.Exec(ctx, fmt.Sprintf(`DO $$ BEGIN
			FOR i IN %d..%d LOOP
				EXECUTE format('CREATE TABLE staging.%%I PARTITION OF rollup.executions FOR VALUES IN (%%L)',
					'bench~' || i, 'run-' || i);
				INSERT INTO rollup.execution_runs VALUES ('run-' || i, 'bench~' || i, '', 0);
			END LOOP;
		END $$`, from, min(from+together, runs)-1), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
	}
	return nil
}
