package cli

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func summary() *engine.Summary {
	reason := "Guardrail triggered: <generator> CPU \x01 & more"
	return &engine.Summary{
		RunID: "r", RunName: "orders & \"lines\"", Status: engine.StatusCompleted, CancellationReason: &reason,
		Validity: engine.VerdictValid,
		Figures: engine.Figures{
			Operations: 12345, QPS: 617.25, DurationSeconds: 20,
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
		"passed": {s: summary(), want: exitPassed},
		"set-up failed": {s: change(func(s *engine.Summary) { s.Status = engine.StatusFailed }), setup: true,
			want: exitUsage},
		"failed": {s: change(func(s *engine.Summary) { s.Status = engine.StatusFailed }), want: exitFailed},
		"cancelled": {s: change(func(s *engine.Summary) { s.Status = engine.StatusCancelled }),
			want: exitFailed},
		"cancelled, thresholds": {s: change(func(s *engine.Summary) { s.Status = engine.StatusCancelled; failed(s) }),
			want: exitFailed},
		"threshold": {s: change(failed), want: exitThresholds},
		"records lost": {s: change(func(s *engine.Summary) { s.Accounting.Recorded--; s.Accounting.Check() }),
			want: exitFailed},
		"degraded": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded }),
			want: exitPassed},
		"degraded, must be valid": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded }), valid: true,
			want: exitInvalid},
		"no operation succeeded": {s: change(func(s *engine.Summary) { s.Errors.Count = s.Operations }), valid: true,
			want: exitFailed},
		"no operation begun": {s: change(func(s *engine.Summary) { s.Operations, s.Errors.Count = 0, 0 }),
			want: exitFailed},
		"all failed, threshold": {s: change(func(s *engine.Summary) { s.Errors.Count = s.Operations; failed(s) }),
			want: exitThresholds},
		"thresholds win": {s: change(func(s *engine.Summary) { s.Validity = engine.VerdictDegraded; failed(s) }),
			valid: true, want: exitThresholds},
	} {
		if got := judge(tc.s, tc.setup, tc.valid); got != tc.want {
			t.Errorf("%s: exit %d, want %d", name, got, tc.want)
		}
	}
}

func TestJUnitIsXML(t *testing.T) {
	s := summary()
	s.Status = engine.StatusFailed
	var b bytes.Buffer
	if err := writeJUnit(&b, s, true); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(b.Bytes(), &suite); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if suite.Tests != 5 || suite.Failures != 1 || len(suite.Cases) != 5 {
		t.Errorf("got %d tests, %d failures, %d cases", suite.Tests, suite.Failures, len(suite.Cases))
	}
}

func TestASummaryWithoutASuccessSaysSo(t *testing.T) {
	s := summary()
	s.Errors.Count = s.Operations
	var b, junit bytes.Buffer
	if err := errors.Join(printSummary(&b, s), writeJUnit(&junit, s, false)); err != nil {
		t.Fatal(err)
	}
	want := "None of the 12 345 operations succeeded: canceled[31m by the server"
	for _, text := range []string{b.String(), junit.String()} {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestSummaryIsReadable(t *testing.T) {
	var b bytes.Buffer
	if err := printSummary(&b, summary()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"617 op/s", "P50 0.410 ms", "P95 10.2 ms", "P99 123 ms", "max 20.0 s", "12 345",
		"INSERT", "timeout: 1, most often: canceled[31m by the server\n", "balanced", "p95_ms < 20  passed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
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
		{[]string{}, "see: loadstone --help"},
		{[]string{"fly"}, "see: loadstone --help"},
		{[]string{"run"}, "see: loadstone run --help"},
		{[]string{"plugin", "new"}, "see: loadstone plugin new --help"},
		{[]string{"plugin", "tset"}, "see: loadstone plugin --help"},
		{[]string{"run", good, "--feed", latin}, "not valid UTF-8"},
		{[]string{"run", filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"run", bad}, `did you mean "concurrent_connections"`},
		{[]string{"run", good, "--set", "workload.seed"}, "has no value"},
		{[]string{"run", good, "--set", "workload.seed=-1"}, "workload.seed"},
		{[]string{"run", good, "--set", "name=\xff"}, "not valid UTF-8"},
		{[]string{"run", good, "--out", filepath.Join(dir, "none", "s.json")}, "does not exist"},
		{[]string{"run", good, "--server", "example"}, "not the address"},
		{[]string{"run", good, "--server", "http://127.0.0.1:1"}, "--token"},
		{[]string{"run", good, "--server", "http://127.0.0.1:1", "--token", "x"}, "does not answer"},
		{[]string{"schema", "check"}, "database-url"},
		{[]string{"plugin", "inspect", notPlugin}, "not a WebAssembly module"},
		{[]string{"plugin", "inspect", filepath.Join(dir, "none.wasm")}, "no such file"},
		{[]string{"run", good, "--data-dir", filepath.Join(good, "below-a-file")}, "data directory"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), func() {}, tc.args, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), tc.words) {
			t.Errorf("loadstone %s: exit %d\n%s\nwant exit 1 and %q", strings.Join(tc.args, " "), code, errs.String(), tc.words)
		}
	}
}

func TestReportShowsNoInternals(t *testing.T) {
	var b bytes.Buffer
	code := report(&b, &engine.Error{Code: engine.CodeTarget, Message: "It is away.", Hint: "start it",
		Cause: errors.New("dial tcp")})
	if code != exitUsage || strings.Contains(b.String(), "dial tcp") || !strings.Contains(b.String(), "start it") {
		t.Errorf("exit %d: %s", code, b.String())
	}
}

func TestSummaryJSONHasTheContractFields(t *testing.T) {
	var b bytes.Buffer
	if err := printJSON(&b, summary()); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"run_id", "status", "validity", "qps", "duration_seconds", "latency_ms", "by_kind",
		"errors", "accounting", "plugins", "environment"} {
		if _, ok := doc[field]; !ok {
			t.Errorf("no %s", field)
		}
	}
}

func TestASearchInWords(t *testing.T) {
	p95, over, most := 1.25, 12.0, 6
	steps := []engine.FindMaxStep{
		{StepNumber: 1, Stage: engine.StageStepping, TotalTargetConnections: 2, QPS: 900, P95LatencyMs: &p95,
			P95VsBaselinePct: &over, Outcome: engine.OutcomeStable},
		{StepNumber: 2, Stage: engine.StageConfirming, TotalTargetConnections: 6, QPS: 12_300, P95LatencyMs: &p95,
			P95VsBaselinePct: &over, Outcome: engine.OutcomePlateau},
	}
	s := summary()
	s.FindMax = &engine.FindMaxResult{Unit: engine.FindMaxConnections, Found: true, Confirmed: true, MaxConnections: &most,
		QPS: 12_300, P95LatencyMs: &p95,
		Steps: 2, Reason: "The target sustains 6 connections.", History: steps}
	var b bytes.Buffer
	if err := printSummary(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"6 connections", "The target sustains 6 connections.", "12.3 k", "plateau, repeated"} {
		if !strings.Contains(b.String(), words) {
			t.Errorf("no %q in\n%s", words, b.String())
		}
	}
	if line := stepLine(steps[1], wide); !strings.Contains(line, "step 2") || !strings.Contains(line, "+12 %") ||
		!strings.Contains(line, "repeated") {
		t.Error(line)
	}
	low, high := 6.0, 10.0
	line := searching(&engine.FindMaxState{Unit: engine.FindMaxConnections, CurrentStep: 3, TargetWorkers: 8,
		StepElapsed: 2, StepDuration: 12, LastStable: &low, FirstUnstable: &high, CurrentP95Ms: &p95}, wide)
	if !strings.Contains(line, "step 3: 8 connections") || !strings.Contains(line, "between 6 and 10") {
		t.Error(line)
	}
}

func TestLengthsOfRuns(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0", 0.0214567: "0.0215", 0.96: "0.96", 1: "1.0", 59.96: "60.0",
		3600: "3600.0"} {
		if got := length(seconds); got != want {
			t.Errorf("%v s: %s, want %s", seconds, got, want)
		}
	}
}
