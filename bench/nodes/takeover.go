package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// postgres starts one of the figure's own, with the control store's tables.
func (b *bench) postgres(ctx context.Context) (*embedded.Postgres, error) {
	dir, err := b.folder("postgres")
	if err != nil {
		return nil, err
	}
	// A run on a thousand nodes asks whether its target takes as many connections.
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Log: zerolog.Nop(),
		Settings: map[string]string{"max_connections": "1200"}})
	if err != nil {
		return nil, err
	}
	b.onClose(func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = pg.Stop(closing)
	})
	return pg, schema.Apply(ctx, pg.DSN(embedded.ControlDatabase))
}

// takeover: the server that owns a run is killed, and another one on the same store goes on with it.
func takeover(ctx context.Context, b *bench) error {
	nodes, rounds := b.or(b.nodes, 4), b.or(b.rounds, 3)
	pg, err := b.postgres(ctx)
	if err != nil {
		return err
	}
	results, err := b.folder("results")
	if err != nil {
		return err
	}
	var servers [2]*server
	var key []byte
	for i := range servers {
		dir, err := b.folder(fmt.Sprintf("server-%d", i))
		if err != nil {
			return err
		}
		// Servers on one store share the key that seals connections.
		file := filepath.Join(dir, "loadstone.key")
		if i == 0 {
			if _, err = keyring.Open(file); err == nil {
				key, err = os.ReadFile(file)
			}
		} else {
			err = os.WriteFile(file, key, 0o600)
		}
		if err != nil {
			return err
		}
		if servers[i], err = b.sharing(ctx, dir, pg, results); err != nil {
			return err
		}
	}
	var m moments
	opts, err := b.real(ctx, nodes, &m)
	if err != nil {
		return err
	}
	if _, _, err := b.joined(ctx, servers[0], opts); err != nil {
		return err
	}
	t := lookups(template("takeover", nodes, 50, 60))
	t["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": pg.DSN("playground")}
	var took, gaps []float64
	for round := range rounds {
		owner, other := servers[round%2], servers[1-round%2]
		if err := other.active(ctx, nodes); err != nil {
			return err
		}
		run, err := owner.run(ctx, t)
		if err != nil {
			return err
		}
		if err := owner.measuring(ctx, run.RunID); err != nil {
			return err
		}
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
		seconds, err := taken(ctx, pg, run.RunID, owner)
		if err != nil {
			return err
		}
		if servers[round%2], err = b.sharing(ctx, owner.dir, pg, results); err != nil {
			return err
		}
		d, err := other.settled(ctx, run.RunID)
		if err != nil {
			return err
		}
		gap, err := longestGap(filepath.Join(results, run.RunID))
		if err != nil {
			return err
		}
		took, gaps = append(took, seconds), append(gaps, ms(gap))
		fmt.Printf("  round %d: taken over in %.1f s, longest pause of a run worker %.0f ms; %s (load average %.1f)\n",
			round+1, seconds, gaps[round], account(d), measure.LoadAverage())
		if err := servers[round%2].active(ctx, nodes); err != nil {
			return err
		}
	}
	tell("from kill -9 of the owner until another server owns the run", measure.Spread("%.1f", took)+" s", "≤ 20 s")
	tell("longest pause between operations of a run worker, of one each 20 ms", measure.Spread("%.0f", gaps)+" ms",
		"uninterrupted")
	return nil
}

// sharing starts a server on a store that others use too.
func (b *bench) sharing(ctx context.Context, dir string, pg *embedded.Postgres, results string) (*server, error) {
	return b.serve(ctx, dir, "--local-capacity", "0", "--database-url", pg.DSN(embedded.ControlDatabase), "--results",
		results)
}

// taken kills the owner of a run, and says how many seconds later another server owns it.
func taken(ctx context.Context, pg *embedded.Postgres, runID string, owner *server) (float64, error) {
	db, err := pgx.Connect(ctx, pg.DSN(embedded.ControlDatabase))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close(ctx) }()
	epoch := func() (epoch int64, err error) {
		err = db.QueryRow(ctx, "SELECT owner_epoch FROM run_status WHERE run_id = $1", runID).Scan(&epoch)
		return epoch, err
	}
	before, err := epoch()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	owner.kill()
	for time.Since(begin) < patience {
		now, err := epoch()
		if err != nil {
			return 0, err
		}
		if now > before {
			return time.Since(begin).Seconds(), nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("nobody took the run over within %v", patience)
}

// longestGap is the longest time in which a run worker issued nothing, by its record.
func longestGap(dir string) (longest time.Duration, err error) {
	issued := map[string][]int64{}
	err = eachPart(dir, func(p *record.Part) error {
		for g := range p.RowGroups() {
			times, err := p.Int64s(g, record.ColStartedAt, nil)
			if err != nil {
				return err
			}
			id := p.Artifact().WorkerID
			issued[id] = append(issued[id], times...)
		}
		return nil
	})
	for _, times := range issued {
		slices.Sort(times)
		for i := 1; i < len(times); i++ {
			longest = max(longest, time.Duration(times[i]-times[i-1]))
		}
	}
	return longest, err
}
