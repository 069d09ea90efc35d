package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// moments are when the loads of a run were begun and stopped, on this machine's clock.
type moments struct {
	mu             sync.Mutex
	begun, stopped []time.Time
}

// timed is a load whose beginning and end are noted once they have taken effect.
type timed struct {
	*load.Group
	moments *moments
	once    sync.Once
}

// Start implements worker.Load.
func (l *timed) Start(phase engine.Phase) {
	l.Group.Start(phase)
	l.moments.mu.Lock()
	defer l.moments.mu.Unlock()
	l.moments.begun = append(l.moments.begun, time.Now())
}

// Stop implements worker.Load.
func (l *timed) Stop() {
	l.Group.Stop()
	l.once.Do(func() {
		l.moments.mu.Lock()
		defer l.moments.mu.Unlock()
		l.moments.stopped = append(l.moments.stopped, time.Now())
	})
}

// take returns what was noted, once there is so much of it, and forgets it.
func (m *moments) take(want int) (begun, stopped []time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.begun) != want || len(m.stopped) != want {
		return nil, nil, fmt.Errorf("%d loads were begun and %d stopped, not %d", len(m.begun), len(m.stopped), want)
	}
	begun, stopped = m.begun, m.stopped
	m.begun, m.stopped = nil, nil
	return begun, stopped, nil
}

// toNull is a driver whose databases are all the null target.
type toNull struct {
	target.Driver
	dsn string
}

// Open implements target.Driver.
func (d toNull) Open(cfg target.Config) (target.Database, error) {
	cfg.DSN = secret.New(d.dsn)
	return d.Driver.Open(cfg)
}

// real are nodes whose load is real, on a null target in this process.
func (b *bench) real(ctx context.Context, n int, m *moments) (farmOptions, error) {
	null, err := nullpg.Listen(ctx, "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		return farmOptions{}, err
	}
	b.onClose(func() { _ = null.Close() })
	host, _, err := wiring.OpenHost(ctx, wiring.PluginCache(b.dir), wiring.StoreFlags{}, zerolog.Nop())
	if err != nil {
		return farmOptions{}, err
	}
	b.onClose(func() { _ = host.Close(context.WithoutCancel(ctx)) })
	return farmOptions{nodes: n, node: worker.Options{Plugins: host, Capacity: 64,
		Drivers: map[string]target.Driver{"postgres": toNull{postgres.NewDriver(), null.DSN()}},
		OpenLoad: func(ctx context.Context, cfg load.Config, connections int, progress func(open, want int)) (worker.Load,
			error) {
			g, err := load.Open(ctx, cfg, connections, progress)
			if err != nil {
				return nil, err
			}
			return &timed{Group: g, moments: m}, nil
		}}}, nil
}

// lookups makes the workload of a template one that the null target answers: one integer by its key.
func lookups(t map[string]any) map[string]any {
	w, target := t["workload"].(map[string]any), t["target"].(map[string]any)
	w["plugin"], w["params"] = "tpcb", map[string]any{"scale": 1, "script": "select-only"}
	delete(target, "table_name")
	target["prepare"] = map[string]any{"if_exists": "use"}
	return t
}

// start: START reaches every node, and STOP ends what every node issues.
func start(ctx context.Context, b *bench) error {
	nodes, rounds := b.or(b.nodes, 50), b.or(b.rounds, 10)
	s, err := b.server(ctx, "server", elsewhere...)
	if err != nil {
		return err
	}
	var m moments
	opts, err := b.real(ctx, nodes, &m)
	if err != nil {
		return err
	}
	if _, _, err := b.joined(ctx, s, opts); err != nil {
		return err
	}
	var first, last, apart, halted, issued []float64
	for round := range rounds {
		run, err := s.run(ctx, lookups(template("start", nodes, 20, 600)))
		if err != nil {
			return err
		}
		if err := s.measuring(ctx, run.RunID); err != nil {
			return err
		}
		if err := pause(ctx, 1500*time.Millisecond); err != nil {
			return err
		}
		asked := time.Now()
		if err := s.call(ctx, http.MethodPost, "/api/runs/"+run.RunID+"/stop", struct{}{}, nil); err != nil {
			return err
		}
		d, err := s.settled(ctx, run.RunID)
		if err != nil {
			return err
		}
		begun, stopped, err := m.take(nodes)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(d.Events, func(e engine.Event) bool { return e.Type == engine.EventStart })
		if i < 0 || !d.Summary.Accounting.Balanced {
			return fmt.Errorf("events %v; %s", d.Events, account(d))
		}
		newest, err := lastIssue(filepath.Join(s.dir, "results", run.RunID))
		if err != nil {
			return err
		}
		decided := d.Events[i].CreatedAt.Time
		early, late := slices.MinFunc(begun, time.Time.Compare), slices.MaxFunc(begun, time.Time.Compare)
		stop := slices.MaxFunc(stopped, time.Time.Compare)
		first, last = append(first, ms(early.Sub(decided))), append(last, ms(late.Sub(decided)))
		apart = append(apart, ms(late.Sub(early)))
		halted, issued = append(halted, ms(stop.Sub(asked))), append(issued, ms(newest.Sub(asked)))
		fmt.Printf("  round %d: START %.0f to %.0f ms, STOP %.0f ms, last issue %.0f ms; %s (load average %.1f)\n", round+1,
			first[round], last[round], halted[round], issued[round], account(d), measure.LoadAverage())
	}
	tell(fmt.Sprintf("START decided until the first of %d nodes issues", nodes), measure.Spread("%.0f", first)+" ms", "")
	tell("until the last does", measure.Spread("%.0f", last)+" ms", "≤ 200 ms")
	tell("between the first and the last", measure.Spread("%.0f", apart)+" ms", "")
	tell("STOP asked over HTTP until the last node begins nothing more", measure.Spread("%.0f", halted)+" ms", "≤ 300 ms")
	tell("until the last operation of the record was issued", measure.Spread("%.0f", issued)+" ms", "≤ 300 ms")
	return nil
}

// lastIssue is when the last operation in the parts of a run was issued.
func lastIssue(dir string) (last time.Time, err error) {
	err = eachPart(dir, func(p *record.Part) error {
		for g := range p.RowGroups() {
			times, err := p.Int64s(g, record.ColStartedAt, nil)
			if err != nil {
				return err
			}
			for _, ns := range times {
				if at := time.Unix(0, ns); at.After(last) {
					last = at
				}
			}
		}
		return nil
	})
	return last, err
}

// eachPart reads the parts of a run, which has some.
func eachPart(dir string, read func(*record.Part) error) error {
	paths, err := filepath.Glob(filepath.Join(dir, "executions-*.parquet"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no parts in %s", dir)
	}
	if err != nil {
		return err
	}
	for _, path := range paths {
		p, err := record.OpenPart(path)
		if err != nil {
			return err
		}
		if err := errors.Join(read(p), p.Close()); err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
