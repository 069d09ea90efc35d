package calibrate

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

func options(t *testing.T) Options {
	began := time.Now()
	return Options{Driver: postgres.NewDriver(), Connections: 4, Rate: 500, Seconds: 1, SpoolDir: t.TempDir(),
		Log: zerolog.Nop(),
		CPU: func() (time.Duration, error) { return time.Since(began), nil },
		Start: func(ctx context.Context, latency, spread time.Duration) (Target, func(), error) {
			s, err := nullpg.Listen(ctx, "127.0.0.1:0", nullpg.Options{Latency: latency, Spread: spread, Stats: true})
			if err != nil {
				return Target{}, nil, err
			}
			return Target{DSN: secret.New(s.DSN()), Stats: func(ctx context.Context) (*engine.HistogramData, error) {
				conn, err := pgconn.Connect(ctx, s.DSN())
				if err != nil {
					return nil, err
				}
				defer func() { _ = conn.Close(ctx) }()
				results, err := conn.Exec(ctx, "STATS").ReadAll()
				if err != nil {
					return nil, err
				}
				var data engine.HistogramData
				return &data, json.Unmarshal(results[0].Rows[0][0], &data)
			}}, func() { _ = s.Close() }, nil
		}}
}

// TestEveryFigureIsMeasured, on a target in this process: the figures mean
// nothing then, but each must be there and fit the others.
func TestEveryFigureIsMeasured(t *testing.T) {
	var told []string
	o := options(t)
	o.Progress = func(text string) { told = append(told, text) }
	c, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 || c.IOEngine == "" || c.CostNs <= 0 || c.MaxQPS <= 0 || c.CPUs == 0 || c.Connections != 4 ||
		c.ScheduleRate != 500 {
		t.Errorf("%+v after %v", c, told)
	}
	if c.ScheduleLagP50Ms <= 0 || c.ScheduleLagP50Ms > c.ScheduleLagP99Ms || c.ScheduleLagP99Ms > c.ScheduleLagMaxMs {
		t.Errorf("%+v", c)
	}
	if len(c.Percentiles) != 3 {
		t.Fatalf("%+v", c.Percentiles)
	}
	// Uniform between 2 and 18 ms; a busy machine only adds to it.
	for i, least := range []float64{8, 15, 17} {
		if p := c.Percentiles[i]; p.TargetMs < least || p.MeasuredMs < least || p.ErrorMs != p.MeasuredMs-p.TargetMs {
			t.Errorf("%+v", p)
		}
	}
}

func TestATargetThatDies(t *testing.T) {
	o := options(t)
	start := o.Start
	o.Start = func(ctx context.Context, latency, spread time.Duration) (Target, func(), error) {
		target, stop, err := start(ctx, latency, spread)
		if err == nil {
			time.AfterFunc(300*time.Millisecond, stop)
		}
		return target, stop, err
	}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "measuring the cost of an operation") {
		t.Errorf("%v", err)
	}
}
