package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/calibrate"
	"github.com/loadstone-db/loadstone/engine/machine"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	targetpostgres "github.com/loadstone-db/loadstone/engine/target/postgres"
)

// calibrateCommand measures this machine as a load generator, longer than the
// certificate that is made by itself, in whose place the result comes.
type calibrateCommand struct {
	Seconds     float64 `default:"5" help:"Length of each of the three parts."`
	Connections int     `default:"16" help:"Connections of each part."`
	Rate        float64 `default:"5000" help:"Operations per second of the schedule's part."`
	JSON        bool    `name:"json" help:"Print JSON."`
	DataDir     string  `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"Where the result is kept (default: the system's data directory)."`
}

// calibrationFile is the result's place in a data directory.
const calibrationFile = "calibration.json"

func (c *calibrateCommand) Run(e *env) error {
	switch {
	case math.IsNaN(c.Seconds) || c.Seconds < 1 || c.Seconds > 600:
		return engine.InvalidField("--seconds", "is not between 1 and 600", "5 is enough on an idle machine")
	case c.Connections < 1 || c.Connections > 2000:
		return engine.InvalidField("--connections", "is not between 1 and 2000", "")
	case math.IsNaN(c.Rate) || c.Rate < 1 || c.Rate > 1e6:
		return engine.InvalidField("--rate", "is not between 1 and 1 000 000 operations per second", "")
	}
	dir := c.DataDir
	if dir == "" {
		dir = defaultDataDir()
	}
	dir, err := makeDataDir(dir)
	if err != nil {
		return err
	}
	result, err := calibrate.Run(e.ctx,
		calibrate.Options{Driver: targetpostgres.NewDriver(), Start: startNullTarget, Connections: c.Connections,
			Rate: c.Rate, Seconds: c.Seconds,
			CPU: processCPU, SpoolDir: dir, Log: e.log, Progress: func(text string) { _, _ = fmt.Fprintln(e.stderr, text) }})
	if err != nil {
		return err
	}
	result.MachineFingerprint, result.LoadstoneVersion = machine.Fingerprint(), version
	path := filepath.Join(dir, calibrationFile)
	if err := keepCertificate(path, result); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, result)
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintln(w, name+"\t"+fmt.Sprintf(format, args...))
	}
	row("I/O engine", "%s, %d connections, %d CPUs", result.IOEngine, result.Connections, result.CPUs)
	row("cost", "%.2f µs of CPU for each operation, recording included; %s op/s on a target that answers at once",
		result.CostNs/1000, short(result.MaxQPS))
	row("schedule", "at %s op/s operations begin late by P50 %.3f ms, P99 %.3f ms, at most %.1f ms; the rate was off "+
		"by %+.3f %%",
		short(result.ScheduleRate), result.ScheduleLagP50Ms, result.ScheduleLagP99Ms, result.ScheduleLagMaxMs,
		result.RateErrorPct)
	for _, p := range result.Percentiles {
		row(fmt.Sprintf("P%.0f", p.Percentile), "%.3f ms measured, %.3f ms by the target's own clock: %+.3f ms", p.MeasuredMs,
			p.TargetMs, p.ErrorMs)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	_, _ = fmt.Fprintf(e.stdout, "\nKept in %s; runs with this data directory carry it in their environment.\n", path)
	return nil
}

// short writes a rate for a person.
func short(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1f k", v/1000)
	}
	return fmt.Sprintf("%.0f", v)
}

// startNullTarget runs a null target in a process of its own, so that its work
// is not counted as the generator's.
func startNullTarget(ctx context.Context, latency, spread time.Duration) (t calibrate.Target, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return t, nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "null-target", "--latency", latency.String(), "--spread", spread.String())
	// It ends when its standard input does: also when this process is killed.
	in, err := cmd.StdinPipe()
	if err != nil {
		return t, nil, fmt.Errorf("starting the null target: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, nil, fmt.Errorf("starting the null target: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return t, nil, fmt.Errorf("starting the null target: %w", err)
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait() // that it ended is enough
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return t, nil, fmt.Errorf("starting the null target: %w", err)
	}
	t.DSN = strings.TrimSpace(line)
	if latency > 0 {
		t.Stats = func(ctx context.Context) (*engine.HistogramData, error) { return nullStats(ctx, t.DSN) }
	}
	return t, stop, nil
}

// nullStats asks a null target what it knows of its latencies.
func nullStats(ctx context.Context, dsn string) (*engine.HistogramData, error) {
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("asking the null target: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	results, err := conn.Exec(ctx, "STATS").ReadAll()
	if err != nil {
		return nil, fmt.Errorf("asking the null target: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("asking the null target: it has no answer")
	}
	var data engine.HistogramData
	if err := json.Unmarshal(results[0].Rows[0][0], &data); err != nil {
		return nil, fmt.Errorf("asking the null target: %w", err)
	}
	return &data, nil
}

// nullTargetCommand is the other process of calibrate, and of benchmarks.
type nullTargetCommand struct {
	Listen  string        `default:"127.0.0.1:0" help:"Address, or path of a unix socket."`
	Latency time.Duration `help:"Time that each execution takes."`
	Spread  time.Duration `help:"Uniform spread of it, to either side."`
	Servers int           `help:"How many executions are in service at once; 0 is no bound."`
}

func (c *nullTargetCommand) Run(e *env) error {
	s, err := nullpg.Listen(e.ctx, c.Listen,
		nullpg.Options{Latency: c.Latency, Spread: c.Spread, Servers: c.Servers, Stats: c.Latency > 0})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(e.stdout, s.DSN())
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-e.ctx.Done():
	}
	return s.Close()
}
