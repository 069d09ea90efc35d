package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/calibrate"
)

// calibrateCommand measures this machine as a load generator, longer than the
// certificate that is made by itself, in whose place the result comes.
type calibrateCommand struct {
	Seconds     float64 `default:"5" help:"Length of each of the six parts."`
	Connections int     `default:"16" help:"Connections of each part."`
	Rate        float64 `default:"5000" help:"Operations per second of the open-loop part."`
	JSON        bool    `name:"json" help:"Print JSON."`
	DataDir     string  `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"Directory of the result (default: the system's data directory)."`
}

func (c *calibrateCommand) Run(e *terminal.Env) error {
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
		dir = wiring.DefaultDataDir()
	}
	dir, err := wiring.MakeDataDir(dir)
	if err != nil {
		return err
	}
	result, err := calibrate.Run(e.Ctx,
		calibrate.Options{Driver: postgres.NewDriver(), Start: wiring.StartTarget, Connections: c.Connections,
			Rate: c.Rate, Seconds: c.Seconds, EachEngine: true,
			CPU: wiring.ProcessCPU, SpoolDir: dir, Log: e.Log,
			Progress: func(text string) { _, _ = fmt.Fprintln(e.Stderr, text) }})
	if err != nil {
		return err
	}
	result.MachineFingerprint, result.LoadstoneVersion = host.Fingerprint(), version
	path := filepath.Join(dir, wiring.CertificateFile)
	if err := wiring.WriteCertificate(path, result); err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.Stdout, result)
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintln(w, name+"\t"+fmt.Sprintf(format, args...))
	}
	row("I/O engine", "%s, %d connections, %d CPUs", result.IOEngine, result.Connections, result.CPUs)
	row("cost", "%.2f µs of CPU for each operation, recording included; %s op/s on a target that answers at once",
		result.CostNs/1000, terminal.ShortRate(result.MaxQPS))
	for _, io := range result.Engines {
		if io.Refused != "" {
			row("  with "+string(io.IOEngine), "%s", io.Refused)
		} else {
			row("  with "+string(io.IOEngine), "%.2f µs, %s op/s", io.CostNs/1000, terminal.ShortRate(io.MaxQPS))
		}
	}
	row("schedule", "at %s op/s operations begin late by P50 %.3f ms, P99 %.3f ms, at most %.1f ms; the rate was off "+
		"by %+.3f %%",
		terminal.ShortRate(result.ScheduleRate), result.ScheduleLagP50Ms, result.ScheduleLagP99Ms, result.ScheduleLagMaxMs,
		result.RateErrorPct)
	for _, p := range result.Percentiles {
		row(fmt.Sprintf("P%.0f", p.Percentile), "%.3f ms measured, %.3f ms by the target's own clock: %+.3f ms", p.MeasuredMs,
			p.TargetMs, p.ErrorMs)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	_, _ = fmt.Fprintf(e.Stdout, "\nKept in %s; runs with this data directory carry it in their environment.\n", path)
	return nil
}

// nullTargetCommand is the other process of calibrate, and of benchmarks.
type nullTargetCommand struct {
	Listen  string        `default:"127.0.0.1:0" help:"Address, or path of a unix socket."`
	Latency time.Duration `help:"Time that each execution takes."`
	Spread  time.Duration `help:"Uniform spread of it, to either side."`
	Servers int           `help:"How many executions are in service at once; 0 is no bound."`
}

func (c *nullTargetCommand) Run(e *terminal.Env) error {
	s, err := nullpg.Listen(e.Ctx, c.Listen,
		nullpg.Options{Latency: c.Latency, Spread: c.Spread, Servers: c.Servers, Stats: c.Latency > 0})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(e.Stdout, s.DSN())
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-e.Ctx.Done():
	}
	return s.Close()
}
