package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// scriptedGate is a place of runs whose figures are made up: the candidate is slower by a factor.
type scriptedGate struct {
	rng    *rand.Rand
	slower func(run int) float64
	// spoil changes the run's end; runs counts all.
	spoil func(run int, side string, d *engine.RunDetail)
	sides []string
	sql   []string
}

func (s *scriptedGate) run(_ *terminal.Env, side *gateSide) (*engine.RunDetail, error) {
	n := len(s.sides)
	s.sides = append(s.sides, side.name)
	factor := 1.0
	if side.name == "candidate" {
		factor = s.slower(n)
	}
	noise := math.Exp(0.01 * s.rng.NormFloat64())
	qps := 800 * noise / factor
	sum := &engine.Summary{RunID: "r", Status: engine.StatusCompleted, Figures: engine.Figures{Operations: 8000, QPS: &qps,
		LatencyMs: &engine.LatencyMs{P50: 2 / noise * factor, P95: 5 / noise * factor, P99: 9 / noise * factor}}}
	d := &engine.RunDetail{Summary: sum, Run: engine.Run{Status: engine.StatusCompleted}}
	if s.spoil != nil {
		s.spoil(n, side.name, d)
	}
	return d, nil
}

func (s *scriptedGate) exec(_ context.Context, side *gateSide) error {
	s.sql = append(s.sql, side.name)
	return nil
}

// gateOf runs a gate on a scripted place.
func gateOf(t *testing.T, s *scriptedGate, budget time.Duration) (report.GateResult, error) {
	t.Helper()
	s.rng = rand.New(rand.NewPCG(5, 46))
	if s.slower == nil {
		s.slower = func(int) float64 { return 1 }
	}
	c := &gateCommand{Budget: budget, Quiet: true}
	g := &gateLoop{c: c, e: &terminal.Env{Ctx: t.Context(), Stderr: io.Discard}, where: s, seed: 3, began: time.Now(),
		options: compare.DefaultRoundOptions(), show: report.NewProgress(io.Discard),
		sides: [2]*gateSide{{name: "base"}, {name: "candidate"}}}
	err := g.measure()
	return g.result(), err
}

// TestGateVerdicts: a gate goes on until it is sure, and no longer.
func TestGateVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slower func(int) float64
		want   report.GateVerdict
		word   string
	}{
		"nothing changed": {nil, report.GateSame, "Both are the same within 3 %."},
		"5 % slower":      {func(int) float64 { return 1.05 }, report.GateWorse, "The candidate is slower: qps −"},
		"10 % faster":     {func(int) float64 { return 0.9 }, report.GateBetter, "The candidate is faster: qps +1"},
		"slower each round": {func(n int) float64 { return 1 + 0.02*float64(n) }, report.GateCannotTell,
			"The rounds are not alike"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := gateOf(t, &scriptedGate{slower: c.slower}, time.Hour)
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.word) || r.Count < compare.MinRounds ||
				r.Count > 60 {
				t.Errorf("%v: %s after %d rounds: %s", err, r.Verdict, r.Count, r.Reason)
			}
		})
	}
}

// TestGateOrder: the first pair warms up, and of each two pairs one begins with the base and one with the candidate.
func TestGateOrder(t *testing.T) {
	t.Parallel()
	s := &scriptedGate{}
	if _, err := gateOf(t, s, time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(s.sides)%2 != 0 || len(s.sides) < 2*(compare.MinRounds+1) || len(s.sql) != len(s.sides) {
		t.Fatalf("%d runs, %d set up", len(s.sides), len(s.sql))
	}
	for i := 0; i+3 < len(s.sides); i += 4 {
		if a, b := s.sides[i], s.sides[i+2]; a == b || s.sides[i] == s.sides[i+1] || s.sides[i+2] == s.sides[i+3] {
			t.Errorf("run %d on: %q", i, s.sides[i:i+4])
		}
	}
}

// TestGateTakesBack: the base's command comes at the end, after an interrupt too; one that fails is said, and one that
// hangs ends with the budget.
func TestGateTakesBack(t *testing.T) {
	t.Parallel()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	of := func(command string, budget time.Duration) *gateLoop {
		return &gateLoop{c: &gateCommand{Budget: budget}, e: &terminal.Env{Ctx: interrupted, Stderr: io.Discard},
			where: &scriptedGate{}, sides: [2]*gateSide{{name: "base", command: command}, {name: "candidate"}}}
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := of("echo $LOADSTONE_GATE_SIDE >> "+log, time.Hour).takeBack(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "base\n" {
		t.Errorf("%v: %q", err, text)
	}
	if err := of("exit 7", time.Hour).takeBack(); err == nil ||
		!strings.Contains(err.Error(), "taking back what the candidate changed") {
		t.Errorf("%v", err)
	}
	hangs := of("sleep 60", 50*time.Millisecond)
	hangs.e.Ctx = t.Context()
	if err := hangs.setUp(0); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("%v", err)
	}
}

// TestGateOfRunsThatFail: without a base there is nothing to compare with, a candidate that fails is worse, and runs in
// which the generator failed are left out.
func TestGateOfRunsThatFail(t *testing.T) {
	t.Parallel()
	fail := func(side string, status engine.Status, last int) func(int, string, *engine.RunDetail) {
		return func(n int, s string, d *engine.RunDetail) {
			if reason := "The table is gone."; s == side && n > 6 && n <= last {
				d.Status, d.Summary.Status, d.Summary.CancellationReason = status, status, &reason
			}
		}
	}
	const always = 1000
	var exit *terminal.ExitError
	if _, err := gateOf(
		t,
		&scriptedGate{spoil: fail("base", engine.StatusFailed, always)},
		time.Hour,
	); !errors.As(err, &exit) ||
		exit.Code != terminal.ExitFailed ||
		!strings.Contains(err.Error(), "The run of the base failed") {
		t.Errorf("%v", err)
	}
	_, err := gateOf(t, &scriptedGate{spoil: fail("candidate", engine.StatusCancelled, always)}, time.Hour)
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "The run of the candidate was stopped") {
		t.Errorf("%v", err)
	}
	r, err := gateOf(t, &scriptedGate{spoil: fail("candidate", engine.StatusFailed, 7)}, time.Hour)
	if err != nil || r.Verdict != report.GateSame || len(r.LeftOut) != 1 {
		t.Errorf("one failure: %v: %s, %q", err, r.Verdict, r.LeftOut)
	}
	r, err = gateOf(t, &scriptedGate{spoil: fail("candidate", engine.StatusFailed, always)}, time.Hour)
	if err != nil || r.Verdict != report.GateWorse || r.Reason != "A run of the candidate failed: The table is gone." {
		t.Errorf("%v: %s, %s", err, r.Verdict, r.Reason)
	}
	gap := func(often int) func(int, string, *engine.RunDetail) {
		return func(n int, _ string, d *engine.RunDetail) {
			if n%often == 0 {
				d.Summary.ValidityDetail.Causes = []engine.ValidityCause{{Cause: engine.CauseSnapshotGap, Detail: "it stood still"}}
			}
		}
	}
	r, err = gateOf(t, &scriptedGate{spoil: gap(6)}, time.Hour)
	if err != nil || r.Verdict != report.GateSame || len(r.LeftOut) == 0 ||
		!strings.Contains(r.LeftOut[0], "it stood still") {
		t.Errorf("%v: %s, %q", err, r.Verdict, r.LeftOut)
	}
	r, err = gateOf(t, &scriptedGate{spoil: gap(1)}, time.Hour)
	if err != nil || r.Verdict != report.GateCannotTell ||
		!strings.Contains(r.Reason, "too many pairs had to be left out") {
		t.Errorf("%v: %s, %s", err, r.Verdict, r.Reason)
	}
	r, err = gateOf(t, &scriptedGate{}, 0) // the first pair does not fit either
	if err != nil || r.Verdict != report.GateCannotTell || !strings.Contains(r.Reason, "the budget has ended") {
		t.Errorf("%v: %s, %s", err, r.Verdict, r.Reason)
	}
}

// TestGateArguments: what cannot be a gate is refused before anything runs, and names its field.
func TestGateArguments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte(`name: gate
target: {connection: playground, adapter: postgres, table_name: orders}
workload: {plugin: mix, concurrent_connections: 2, duration_seconds: 20, warmup_seconds: 1}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing differs":   {nil, "The base and the candidate are the same."},
		"a short budget":    {[]string{"--candidate", "workload.seed=7", "--budget", "10s"}, "10s is too short: 5 pairs of runs take 2m0s"},
		"a short round":     {[]string{"--candidate", "workload.seed=7", "--round", "1s"}, "--round"},
		"no percentage":     {[]string{"--candidate", "workload.seed=7", "--max-slowdown", "-3%"}, "max-slowdown"},
		"an unknown metric": {[]string{"--candidate", "workload.seed=7", "--judge", "p42_ms"}, "there is no metric"},
		"a search": {[]string{"--candidate", "workload.load_mode=FIND_MAX_CONCURRENCY"},
			"a gate holds figures at one load"},
		"nothing takes back": {[]string{"--candidate-sql", "DROP INDEX x"}, "--base-sql"},
		"nobody checks out":  {[]string{"--candidate-command", "git checkout x"}, "--base-command"},
		"SQL on a server": {[]string{"--candidate-sql", "SELECT 1", "--base-sql", "SELECT 2", "--server", "http://127.0.0.1:1", "--token", "x"},
			"is for runs in this process"},
	} {
		var out, errs bytes.Buffer
		code := start(
			t.Context(),
			func() {},
			func() {},
			terminal.Settings{},
			append([]string{"gate", file}, c.args...),
			&out,
			&errs,
		)
		if code != terminal.ExitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: code %d: %s", name, code, errs.String())
		}
	}
}

// TestGateReports: the result is in each form, and a reader of Markdown or XML is not misled by names.
func TestGateReports(t *testing.T) {
	t.Parallel()
	r, err := gateOf(t, &scriptedGate{slower: func(int) float64 { return 1.1 }}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.Template = "a|b <script> & _c_"
	var text, md, junit, doc bytes.Buffer
	report.Gate(&text, r)
	if err := errors.Join(report.GateMarkdown(&md, r), report.GateJUnit(&junit, r), report.JSON(&doc, r)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "worse. The candidate is slower: qps −9") {
		t.Error(text.String())
	}
	if !strings.Contains(md.String(), "### ❌ Loadstone: worse") || strings.Contains(md.String(), "<script>") ||
		strings.Contains(md.String(), "a|b") {
		t.Error(md.String())
	}
	var suite struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Failures < 2 {
		t.Errorf("%v: %s", err, junit.String())
	}
	var back report.GateResult
	if err := json.Unmarshal(
		doc.Bytes(),
		&back,
	); err != nil || back.Verdict != report.GateWorse ||
		len(back.Metrics) != 5 ||
		len(back.Runs) != 2*(back.Count+1) {
		t.Errorf("%v: %s", err, doc.String())
	}
}
