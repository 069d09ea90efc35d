package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/deploy/program"
	"github.com/loadstone-db/loadstone/engine"
)

// The limits of the checklist.
const (
	startWithin  = 2 * time.Second
	stopWithin   = 10 * time.Second
	warmup       = 3 * time.Second
	warmupMargin = 500 * time.Millisecond
	flowFor      = 3 * time.Second
	patience     = 60 * time.Second
	endWithin    = 60 * time.Second
)

func (s *stage) status(ctx context.Context) (status string, err error) {
	err = s.sql.QueryRow(ctx, "SELECT status FROM run_status WHERE run_id = $1", s.run.RunID).Scan(&status)
	return status, err
}

func created(ctx context.Context, s *stage) (string, error) {
	status, err := s.status(ctx)
	if err != nil {
		return "", fmt.Errorf("reading run_status: %w", err)
	}
	if status != "PREPARED" {
		return "", fmt.Errorf("run_status.status is %s", status)
	}
	return fmt.Sprintf("run_status.status = %s (run %s)", status, s.run.RunID), nil
}

// registered starts the run, and waits for both run workers.
func registered(ctx context.Context, s *stage) (string, error) {
	if s.broken != startAtOnce {
		if err := s.watch(); err != nil {
			return "", err
		}
		if err := s.do(ctx, http.MethodPost, "/api/runs/"+s.run.RunID+"/start", map[string]any{}, nil); err != nil {
			return "", err
		}
	}
	var workers, nodes int
	err := program.Until(ctx, patience, "two run workers on two nodes in worker_heartbeats", func() (bool, error) {
		err := s.sql.QueryRow(ctx, "SELECT count(*), count(DISTINCT node_id) FROM worker_heartbeats WHERE run_id = $1",
			s.run.RunID).Scan(&workers, &nodes)
		return workers == 2 && (nodes == 2 || s.broken == oneNode), err
	})
	if err == nil && nodes != 2 {
		err = errors.New("fewer nodes than two")
	}
	if err != nil {
		return "", fmt.Errorf("%w (%d run workers on %d nodes)", err, workers, nodes)
	}
	if s.broken == frozenStart {
		// The rows are there before the nodes are asked: by the time that both are ready it would be too late at times.
		_ = s.nodes[0].Signal(syscall.SIGSTOP)
	}
	return fmt.Sprintf("%d/2 in worker_heartbeats, on %d nodes", workers, nodes), nil
}

// begun waits until both are RUNNING, by the socket, and counts from the START event in the store.
func begun(ctx context.Context, s *stage) (string, error) {
	var event time.Time
	if err := program.Until(ctx, patience, "a START event", func() (bool, error) {
		var n int
		err := s.sql.QueryRow(ctx, "SELECT count(*), coalesce(min(created_at), 'epoch') FROM run_control_events "+
			"WHERE run_id = $1 AND event_type = 'START'", s.run.RunID).Scan(&n, &event)
		return n > 0, err
	}); err != nil {
		return "", err
	}
	var at time.Time
	if err := program.Until(ctx, 5*startWithin, "both run workers RUNNING", func() (bool, error) {
		for _, p := range s.payloads() {
			running := 0
			for _, w := range p.Workers {
				if w.Status == engine.WorkerRunning {
					running++
				}
			}
			if running == 2 {
				at = p.at
				return true, nil
			}
		}
		return false, nil
	}); err != nil {
		return "", err
	}
	took := at.Sub(event)
	if took > startWithin {
		return "", fmt.Errorf("both were RUNNING %.2f s after the START event", took.Seconds())
	}
	switch s.broken {
	case frozenLoad:
		_ = s.nodes[0].Signal(syscall.SIGSTOP)
	case silentLoad:
		_ = s.nodes[0].Signal(syscall.SIGKILL)
	}
	return fmt.Sprintf("workers RUNNING %.2f s after the START event", max(took, 0).Seconds()), nil
}

// ticks counts the snapshots of each run worker.
func (s *stage) ticks(ctx context.Context) (map[string]int, error) {
	rows, err := s.sql.Query(ctx, "SELECT worker_id, count(*) FROM worker_metrics_snapshots WHERE run_id = $1 "+
		"GROUP BY worker_id", s.run.RunID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		all[id] = n
	}
	return all, rows.Err()
}

func flowing(ctx context.Context, s *stage) (string, error) {
	before, err := s.ticks(ctx)
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(flowFor + time.Second):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	after, err := s.ticks(ctx)
	if err != nil {
		return "", err
	}
	var grown []string
	for id, n := range after {
		if n-before[id] >= int(flowFor/time.Second)-1 {
			grown = append(grown, fmt.Sprintf("%s by %d", id, n-before[id]))
		}
	}
	if len(grown) != 2 {
		return "", fmt.Errorf("in %s worker_metrics_snapshots grew from %v to %v", flowFor+time.Second, before, after)
	}
	return "worker_metrics_snapshots has 2 workers, and grew: " + strings.Join(grown, ", "), nil
}

// aggregated compares one picture of the socket with its parts, and with what the target counts.
func aggregated(ctx context.Context, s *stage) (string, error) {
	all := s.payloads()
	if len(all) == 0 {
		return "", errors.New("the socket has said nothing")
	}
	p := all[len(all)-1]
	if time.Since(p.at) > 5*time.Second {
		return "", fmt.Errorf("the socket has said nothing for %.0f s", time.Since(p.at).Seconds())
	}
	var sum float64
	var parts []string
	for _, w := range p.Workers {
		qps := 0.0
		if w.Metrics.QPS != nil {
			qps = *w.Metrics.QPS
		}
		sum += qps
		parts = append(parts, fmt.Sprintf("%.0f", qps))
		if qps <= 0 || w.Status != engine.WorkerRunning {
			return "", fmt.Errorf("%s is %s at %.0f operations per second", w.WorkerID, w.Status, qps)
		}
	}
	if got := p.Ops.CurrentPerSec; len(parts) != 2 || math.Abs(got-sum) > 0.01*sum+1 {
		return "", fmt.Errorf("the socket says %.0f, of %s", got, strings.Join(parts, " + "))
	}
	// What the target itself counts knows nothing of snapshots: it tells a node that is gone.
	begin := time.Now()
	counted, err := s.commits(ctx)
	if err != nil {
		return "", err
	}
	mean, n := 0.0, 0
	for _, p := range s.payloads() {
		if p.at.After(begin) {
			mean, n = mean+p.Ops.CurrentPerSec, n+1
		}
	}
	mean /= float64(max(n, 1))
	if math.Abs(counted-mean) > rateMargin*counted {
		return "", fmt.Errorf("the socket says %.0f on average, and the target counts %.0f transactions a second", mean,
			counted)
	}
	return fmt.Sprintf("combined QPS = %.0f (sum of %s); on average of %d pictures %.0f, and the target counts %.0f",
		p.Ops.CurrentPerSec, strings.Join(parts, " + "), n, mean, counted), nil
}

// rateMargin is what the target's count may differ: its sessions report about once a second.
const rateMargin = 0.3

// commits is how many transactions a second the target counts.
func (s *stage) commits(ctx context.Context) (float64, error) {
	read := func() (n int64, at time.Time, err error) {
		err = s.target.QueryRow(ctx, "SELECT xact_commit, clock_timestamp() FROM pg_stat_database "+
			"WHERE datname = current_database()").Scan(&n, &at)
		return n, at, err
	}
	before, begin, err := read()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(2 * flowFor):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, end, err := read()
	return float64(after-before) / end.Sub(begin).Seconds(), err
}

// phased compares the times of the store with each other, and that the socket has shown both phases.
func phased(ctx context.Context, s *stage) (string, error) {
	var begin, end *time.Time
	if err := program.Until(ctx, patience, "the end of the warm-up in run_status", func() (bool, error) {
		err := s.sql.QueryRow(ctx, "SELECT warmup_start_time, warmup_end_time FROM run_status WHERE run_id = $1",
			s.run.RunID).Scan(&begin, &end)
		return begin != nil && end != nil, err
	}); err != nil {
		return "", err
	}
	took := end.Sub(*begin)
	if off := took - warmup; off.Abs() > warmupMargin {
		return "", fmt.Errorf("the warm-up took %.2f s", took.Seconds())
	}
	shown := ""
	if err := program.Until(ctx, 5*time.Second, "MEASUREMENT on the socket", func() (bool, error) {
		shown = ""
		for _, p := range s.payloads() {
			if p.Phase != nil && !strings.HasSuffix(shown, string(*p.Phase)) {
				shown += " → " + string(*p.Phase)
			}
		}
		return strings.Contains(shown, "WARMUP → MEASUREMENT"), nil
	}); err != nil {
		return "", fmt.Errorf("%w: %s", err, shown)
	}
	return fmt.Sprintf("WARMUP for %.2f s, then MEASUREMENT; the socket:%s", took.Seconds(),
		strings.TrimPrefix(shown, " →")), nil
}

// sessions counts those of others than this command on the target.
func (s *stage) sessions(ctx context.Context) (n int, err error) {
	err = s.target.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+
		"pid <> pg_backend_pid() AND backend_type = 'client backend'").Scan(&n)
	return n, err
}

func stopped(ctx context.Context, s *stage) (string, error) {
	switch s.broken {
	case frozenStop:
		_ = s.nodes[0].Signal(syscall.SIGSTOP)
	case endsByItself:
		if err := program.Until(ctx, patience, "the end of the run", func() (bool, error) {
			status, err := s.status(ctx)
			return status == "COMPLETED", err
		}); err != nil {
			return "", err
		}
	}
	before, err := s.sessions(ctx)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := s.do(ctx, http.MethodPost, "/api/runs/"+s.run.RunID+"/stop", map[string]any{}, nil); err != nil {
		return "", err
	}
	var ended, left int
	err = program.Until(ctx, stopWithin, "the end of both run workers", func() (bool, error) {
		if err := s.sql.QueryRow(ctx, "SELECT count(*) FROM worker_heartbeats WHERE run_id = $1 AND status IN "+
			"('COMPLETED', 'FAILED')", s.run.RunID).Scan(&ended); err != nil {
			return false, err
		}
		var err error
		left, err = s.sessions(ctx)
		return ended == 2 && left == 0, err
	})
	if err != nil {
		return "", fmt.Errorf("%w (%d have ended, %d sessions are left of %d)", err, ended, left, before)
	}
	return fmt.Sprintf("workers exited in %.2f s; sessions on the target: %d before, %d after",
		time.Since(begin).Seconds(),
		before, left), nil
}

func cancelled(ctx context.Context, s *stage) (string, error) {
	status := ""
	if err := program.Until(ctx, patience, "a final status", func() (bool, error) {
		var phase *string
		err := s.sql.QueryRow(ctx, "SELECT status, phase FROM run_status WHERE run_id = $1",
			s.run.RunID).Scan(&status, &phase)
		return (status == "CANCELLED" || status == "COMPLETED" || status == "FAILED") && phase == nil, err
	}); err != nil {
		return "", fmt.Errorf("%w: it is %s", err, status)
	}
	if status != "CANCELLED" {
		return "", fmt.Errorf("run_status.status is %s", status)
	}
	return "run_status.status = CANCELLED, and nothing is left to do", nil
}

// cleaned asks all processes to end, and looks for what is left of them.
func cleaned(ctx context.Context, s *stage) (string, error) {
	all := append(append([]*program.Process(nil), s.nodes...), s.server)
	for i, p := range all {
		if i > 0 || s.broken != leftBehind {
			_ = p.Signal(syscall.SIGTERM)
		}
	}
	limit := time.After(endWithin)
	if s.broken == leftBehind {
		limit = time.After(5 * time.Second)
	}
	var codes []string
	for _, p := range all {
		select {
		case <-p.Done():
		case <-limit:
			return "", fmt.Errorf("the %s has not ended; left are %v", p.Name, s.left())
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if err := p.Wait(); err != nil {
			return "", fmt.Errorf("the %s ended with %w", p.Name, err)
		}
		codes = append(codes, p.Name+" 0")
	}
	if left := s.left(); len(left) > 0 {
		return "", fmt.Errorf("processes are left: %v", left)
	}
	n, err := s.sessions(ctx)
	if err != nil || n > 0 {
		return "", fmt.Errorf("%d sessions are left on the target: %w", n, err)
	}
	return "exit codes: " + strings.Join(codes, ", ") + "; no process and no session is left", nil
}

// left are the processes of this stage that there still are, by what they were started with.
func (s *stage) left() (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte(marker+"="+s.id)) {
			continue
		}
		what, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		all = append(all, strings.TrimSpace(strings.ReplaceAll(string(what), "\x00", " ")))
	}
	return all
}
