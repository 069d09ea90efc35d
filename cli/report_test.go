package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

func summary() *engine.Summary {
	reason := "Guardrail triggered: <generator> CPU \x01 & more"
	return &engine.Summary{
		RunID: "r", RunName: "orders & \"lines\"", Status: engine.StatusCompleted, CancellationReason: &reason,
		Validity: engine.VerdictValid,
		Figures: engine.Figures{
			Operations: 12345, QPS: new(617.25), DurationSeconds: 20,
			LatencyMs: &engine.LatencyMs{P50: 0.41, P95: 10.2, P99: 123, Max: 20000},
			ByKind:    map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 5, LatencyMs: &engine.LatencyMs{P50: 1}}},
			Errors: engine.ErrorFigures{Count: 1, ByClass: map[engine.ErrorClass]int64{engine.ErrClassTimeout: 1},
				Top: []engine.ErrorGroup{{ExecutionError: engine.ExecutionError{Class: engine.ErrClassTimeout,
					Message: "canceled\x1b[31m\nby the server"}, Count: 1}}},
			Accounting: engine.Accounting{Scheduled: 3, Started: 3, Succeeded: 2, Failed: 1, Recorded: 3, Balanced: true},
		},
		Thresholds: []engine.ThresholdResult{{Threshold: "p95_ms < 20", Passed: true}},
	}
}

func TestExitCodes(t *testing.T) {
	change := func(f func(*engine.Summary)) *engine.Summary { s := summary(); f(s); return s }
	failed := func(s *engine.Summary) { s.Thresholds[0].Passed = false }
	for name, tc := range map[string]struct {
		s            *engine.Summary
		setup, valid bool
		want         int
	}{
		"passed": {s: summary(), want: terminal.ExitPassed},
		"set-up failed": {s: change(func(s *engine.Summary) { s.Status = engine.StatusFailed }), setup: true,
			want: terminal.ExitUsage},
		"failed": {s: change(func(s *engine.Summary) { s.Status = engine.StatusFailed }), want: terminal.ExitFailed},
		"cancelled": {s: change(func(s *engine.Summary) { s.Status = engine.StatusCancelled }),
			want: terminal.ExitFailed},
		"cancelled, thresholds": {s: change(func(s *engine.Summary) { s.Status = engine.StatusCancelled; failed(s) }),
			want: terminal.ExitFailed},
		"threshold": {s: change(failed), want: terminal.ExitThresholds},
		"records lost": {s: change(func(s *engine.Summary) { s.Accounting.Recorded--; s.Accounting.Check() }),
			want: terminal.ExitFailed},
		"degraded": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded }),
			want: terminal.ExitPassed},
		"degraded, must be valid": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded }), valid: true,
			want: terminal.ExitInvalid},
		"no operation succeeded": {s: change(func(s *engine.Summary) { s.Errors.Count = s.Operations }), valid: true,
			want: terminal.ExitFailed},
		"no operation begun": {s: change(func(s *engine.Summary) { s.Operations, s.Errors.Count = 0, 0 }),
			want: terminal.ExitFailed},
		"all failed, threshold": {s: change(func(s *engine.Summary) { s.Errors.Count = s.Operations; failed(s) }),
			want: terminal.ExitThresholds},
		"thresholds win": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded; failed(s) }),
			valid: true, want: terminal.ExitThresholds},
	} {
		if got := resultExitCode(tc.s, tc.setup, tc.valid); got != tc.want {
			t.Errorf("%s: exit %d, want %d", name, got, tc.want)
		}
	}
}

// TestUsageErrors drives the real command line: each ends with code 1 and a sentence, before anything starts.
func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "name: x\ntarget: {connection: playground, table_name: t}\nworkload: {plugin: mix}\n")
	bad := write("bad.yaml", "name: x\ntarget: {connection: playground, table_name: t}\nworkload: {plugin: mix, "+
		"concurent_connections: 5}\n")
	latin := write("latin.csv", "at_ms,statement,values\n0,note,M\xfcller\n")
	notPlugin := write("not.wasm", "\x7fELF...")
	for _, tc := range []struct {
		args  []string
		words string
	}{
		{[]string{"fly"}, "see: loadstone --help"},
		{[]string{"run"}, "see: loadstone run --help"},
		{[]string{"plugin", "new"}, "see: loadstone plugin new --help"},
		{[]string{"plugin", "tset"}, "see: loadstone plugin --help"},
		{[]string{"run", good, "--feed", latin}, "not valid UTF-8"},
		{[]string{"run", filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"run", bad}, `did you mean "concurrent_connections"`},
		{[]string{"run", good, "--set", "workload.seed"}, "has no value"},
		{[]string{"run", good, "--set", "workload.seed=-1"}, "workload.seed"},
		// A line would be one of a text that nobody has seen.
		{[]string{"run", good, "--set", "workload.duration=3"}, "workload.duration: unknown field"},
		{[]string{"run", good, "--set", "name=\xff"}, "not valid UTF-8"},
		{[]string{"run", good, "--out", filepath.Join(dir, "none", "s.json")}, "does not exist"},
		{[]string{"run", good, "--server", "example"}, "not the address"},
		{[]string{"run", good, "--server", "http://127.0.0.1:1"}, "--token"},
		{[]string{"run", good, "--server", "http://127.0.0.1:1", "--token", "x"}, "does not answer"},
		{[]string{"schema", "check"}, "database-url"},
		{[]string{"schema", "apply", "--snowflake", "lake", "--results"}, "and --results too"},
		{[]string{"report", "run-1", "--from", "snowflake", "--server", "http://127.0.0.1:1"}, "a server too"},
		{[]string{"report", "run-1", "--connection", "lake"}, "without --from"},
		{[]string{"plugin", "inspect", notPlugin}, "not a WebAssembly module"},
		{[]string{"plugin", "inspect", filepath.Join(dir, "none.wasm")}, "no such file"},
		{[]string{"run", good, "--data-dir", filepath.Join(good, "below-a-file")}, "data directory"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, tc.args, &out, &errs)
		if code != terminal.ExitUsage || !strings.Contains(errs.String(), tc.words) {
			t.Errorf("loadstone %s: exit %d\n%s\nwant exit 1 and %q", strings.Join(tc.args, " "), code, errs.String(), tc.words)
		}
	}
}

func TestReportShowsNoInternals(t *testing.T) {
	var b bytes.Buffer
	code := exitCode(&b, &engine.Error{Code: engine.CodeTarget, Message: "It is away.", Hint: "start it",
		Cause: errors.New("dial tcp")})
	if code != terminal.ExitUsage || strings.Contains(b.String(), "dial tcp") ||
		!strings.Contains(b.String(), "start it") {
		t.Errorf("exit %d: %s", code, b.String())
	}
}
