package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

func TestTheSummaryShowsTheCertificate(t *testing.T) {
	s := summary()
	pct := -0.25
	s.LivePercentiles = []engine.LivePercentile{{Percentile: 99, LiveMs: 1, ExactMs: 1.1, ErrorPct: &pct}}
	var b strings.Builder
	if err := Summary(&b, s); err != nil || !strings.Contains(b.String(), "not measured on this machine") {
		t.Errorf("without one: %v\n%s", err, b.String())
	}
	s.Environment.Calibration = &engine.Calibration{CostNs: 9600, MaxQPS: 98_000, ScheduleRate: 5000,
		ScheduleLagP99Ms: 0.07,
		Percentiles:      []engine.PercentileError{{Percentile: 50, ErrorMs: 0.01}, {Percentile: 99, ErrorMs: -0.09}}}
	b.Reset()
	if err := Summary(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"P99 -0.25 %", "9.6 µs of CPU", "98.0 k op/s", "off by -0.090 ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	if _, err := os.Stat("calibration.json"); err == nil {
		t.Error("a file was written")
	}
}

func TestJUnitIsXML(t *testing.T) {
	s := summary()
	s.Status = engine.StatusFailed
	var b bytes.Buffer
	if err := JUnit(&b, s, true); err != nil {
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

func TestNotesAreInTheTerminalAndInJUnit(t *testing.T) {
	s := summary()
	s.ValidityDetail.Notes = []string{"The measurement took 1 s.", "a row \x1b[31m of <b>"}
	var text, junit bytes.Buffer
	if err := errors.Join(Summary(&text, s), JUnit(&junit, s, false)); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Output != "The measurement took 1 s.\na row [31m of <b>" {
		t.Errorf("JUnit has %q", suite.Output)
	}
	if !strings.Contains(text.String(), "note: The measurement took 1 s.\n") {
		t.Errorf("the terminal lacks the note:\n%s", text.String())
	}
}

func TestASummaryWithoutASuccessSaysSo(t *testing.T) {
	s := summary()
	s.Errors.Count = s.Operations
	var b, junit bytes.Buffer
	if err := errors.Join(Summary(&b, s), JUnit(&junit, s, false)); err != nil {
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
	if err := Summary(&b, summary()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"617 op/s", "P50 0.410 ms", "P95 10.2 ms", "P99 123 ms", "max 20.0 s", "12 345",
		"INSERT", "timeout: 1, most often: canceled[31m by the server\n", "balanced", "p95_ms < 20  passed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
}

func TestSummaryJSONHasTheContractFields(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, summary()); err != nil {
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
	p95, over, limit := 1.25, 12.0, 6
	steps := []engine.FindMaxStep{
		{StepNumber: 1, Stage: engine.StageStepping, TotalTargetConnections: 2, QPS: 900, P95LatencyMs: &p95,
			P95VsBaselinePct: &over, Outcome: engine.OutcomeStable},
		{StepNumber: 2, Stage: engine.StageConfirming, TotalTargetConnections: 6, QPS: 12_300, P95LatencyMs: &p95,
			P95VsBaselinePct: &over, Outcome: engine.OutcomePlateau},
	}
	s := summary()
	s.FindMax = &engine.FindMaxResult{
		Unit:           engine.FindMaxConnections,
		Found:          true,
		Confirmed:      true,
		MaxConnections: &limit,
		QPS:            new(12_300.0),
		P95LatencyMs:   &p95,
		Steps:          2,
		Reason:         "The target sustains 6 connections.",
		History:        steps,
	}
	var b bytes.Buffer
	if err := Summary(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"6 connections", "The target sustains 6 connections.", "12.3 k", "plateau, repeated"} {
		if !strings.Contains(b.String(), words) {
			t.Errorf("no %q in\n%s", words, b.String())
		}
	}
	if line := stepLine(steps[1], terminal.Unbounded); !strings.Contains(line, "step 2") ||
		!strings.Contains(line, "+12 %") ||
		!strings.Contains(line, "repeated") {
		t.Error(line)
	}
	low, high := 6.0, 10.0
	line := searching(&engine.FindMaxState{Unit: engine.FindMaxConnections, CurrentStep: 3, TargetWorkers: 8,
		StepElapsed: 2, StepDuration: 12, LastStable: &low, FirstUnstable: &high, CurrentP95Ms: &p95}, terminal.Unbounded)
	if !strings.Contains(line, "step 3: 8 connections") || !strings.Contains(line, "between 6 and 10") {
		t.Error(line)
	}
}

func TestLengthsOfRuns(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0", 0.0214567: "0.0215", 0.96: "0.96", 1: "1.0", 59.96: "60.0",
		3600: "3600.0"} {
		if got := terminal.Seconds(seconds); got != want {
			t.Errorf("%v s: %s, want %s", seconds, got, want)
		}
	}
}

// TestAThresholdOfAPartHasNoTick: what a run that did not complete met so far is neither passed nor failed.
func TestAThresholdOfAPartHasNoTick(t *testing.T) {
	s := summary()
	s.Status = engine.StatusFailed
	s.Thresholds = []engine.ThresholdResult{{Threshold: "p95_ms < 20", Passed: true, Reason: "met so far, in 12 of 60 s"},
		{Threshold: "p50_ms < 20", Passed: true}, {Threshold: "qps > 1000", Reason: "qps is 617, in 12 of 60 s"}}
	var text, junit strings.Builder
	if err := errors.Join(Summary(&text, s), JUnit(&junit, s, false)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"p95_ms < 20  met so far, in 12 of 60 s",
		"p50_ms < 20  met so far; the run did not complete",
		"qps > 1000  FAILED: qps is 617, in 12 of 60 s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	var suite junitSuite
	if err := xml.Unmarshal([]byte(junit.String()), &suite); err != nil {
		t.Fatal(err)
	}
	evaluated := suite.Cases[len(suite.Cases)-3:]
	if suite.Skipped != 2 || suite.Tests != len(suite.Cases) || evaluated[0].Skipped == nil ||
		evaluated[0].Failure != nil ||
		evaluated[0].Skipped.Message != "met so far, in 12 of 60 s" ||
		evaluated[2].Failure == nil ||
		evaluated[2].Skipped != nil {
		t.Errorf("%s", junit.String())
	}
}
