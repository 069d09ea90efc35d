package wiring

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/worker/calibrate"
)

// StartTarget runs a null target in a process of its own, so that its work
// is not counted as the generator's.
func StartTarget(ctx context.Context, latency, spread time.Duration) (t calibrate.Target, stop func(), err error) {
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
	t.DSN = secret.New(strings.TrimSpace(line))
	if latency > 0 {
		t.Stats = func(ctx context.Context) (*engine.HistogramData, error) { return nullStats(ctx, t.DSN.Reveal()) }
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
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return nil, errors.New("asking the null target: it has no answer")
	}
	var data engine.HistogramData
	if err := json.Unmarshal(results[0].Rows[0][0], &data); err != nil {
		return nil, fmt.Errorf("asking the null target: %w", err)
	}
	return &data, nil
}
