package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAKilledServersRunKeepsItsFigures kills a server in a run. The next one tells of the
// run what its record holds, over the time that it covers, and no more.
func TestAKilledServersRunKeepsItsFigures(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	dir, err := os.MkdirTemp("", "loadstone-kill-") // as root, Postgres cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	load := pgtest.Start(t).NewDatabase(t)
	serve := func() (*clitest.Process, clitest.Caller) {
		p := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir)
		session, _, _ := operatorOf(t, dir, p).SignIn()
		return p, session
	}
	first, session := serve()
	const rate = 400
	text := fmt.Sprintf("name: kill\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
		"prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 4, duration_seconds: 300, "+
		"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", load, rate)
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
	session.AwaitLoad(run.RunID)
	// Each run worker ends a part every ten seconds.
	clitest.Until(t, time.Minute, func() bool {
		parts, _ := filepath.Glob(filepath.Join(dir, "spool", run.RunID, "*", "executions-*.parquet"))
		return len(parts) >= 2
	}, first.Out.String)
	time.Sleep(2 * time.Second)
	if err := first.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done
	if err := os.Remove(filepath.Join(dir, "operator.json")); err != nil {
		t.Fatal(err)
	}

	second, session := serve()
	t.Cleanup(func() { _ = second.Cmd.Process.Signal(syscall.SIGTERM); <-second.Done })
	d := session.AwaitEnd(run.RunID, second)
	s := d.Summary
	t.Logf("%s, %s: %d operations, %.2f op/s over %.2f s", d.Status, s.Verdict, s.Operations, *s.QPS, s.DurationSeconds)
	if d.Status != engine.StatusFailed || s.Validity != engine.VerdictDegraded || s.Passed || s.Accounting.Balanced ||
		s.CoveredSeconds == nil || *s.CoveredSeconds <= 0 {
		t.Fatalf("%s, %+v, covered %v, %+v", d.Status, s.ValidityDetail, s.CoveredSeconds, s.Accounting)
	}
	if math.Abs(*s.QPS-rate) > rate/20 {
		t.Errorf("%.1f operations per second, and %d were asked for", *s.QPS, rate)
	}
	// The record says the same: so many rows are there, and so many ended in the covered time.
	var rows, inside int64
	first10 := map[string]int64{}
	parts, _ := filepath.Glob(filepath.Join(dir, "results", run.RunID, "executions-*.parquet"))
	ended := map[string][]int64{}
	for _, path := range parts {
		p, err := record.OpenPart(path)
		if err != nil {
			t.Fatal(err)
		}
		for g := range p.RowGroups() {
			due, err := p.Int64s(g, record.ColDueAt, nil)
			if err != nil {
				t.Fatal(err)
			}
			took, err := p.Doubles(g, record.ColAppElapsedMs, nil)
			if err != nil {
				t.Fatal(err)
			}
			rows += int64(len(due))
			for i := range due {
				ended[p.Artifact().WorkerID] = append(ended[p.Artifact().WorkerID], due[i]+int64(took[i]*1e6))
			}
		}
		_ = p.Close()
	}
	from := s.MeasuredFrom.UnixNano()
	to := from + int64(*s.CoveredSeconds*1e9)
	for id, times := range ended {
		for _, at := range times {
			if at > from && at <= to {
				inside++
				first10[id]++
			}
		}
	}
	if rows == 0 || s.Operations != rows || s.Accounting.Recorded != rows {
		t.Errorf("%d operations and %d records; the parts hold %d", s.Operations, s.Accounting.Recorded, rows)
	}
	if own := float64(inside) / *s.CoveredSeconds; len(ended) != 2 || math.Abs(own-*s.QPS) > *s.QPS/100 {
		t.Errorf("in the covered %.2f s ended %v operations: %.2f per second, and %.2f are told", *s.CoveredSeconds, first10,
			own, *s.QPS)
	}
	for _, problem := range s.Accounting.Problems {
		t.Logf("problem: %s", problem)
	}
	t.Logf("notes %q", s.ValidityDetail.Notes)
	// What the killed process had noted is still there, beside what the next one found, and each once.
	for _, want := range []string{"The target is on the same machine as the load generator.",
		"Parts of the record are lost"} {
		n := 0
		for _, note := range s.ValidityDetail.Notes {
			if strings.HasPrefix(note, want) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the note %q is there %d times: %q", want, n, s.ValidityDetail.Notes)
		}
	}
}
