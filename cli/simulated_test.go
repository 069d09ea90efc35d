package cli

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/compare"
	"github.com/loadstone-db/loadstone/engine/histogram"
	"github.com/loadstone-db/loadstone/engine/matrix"
)

// ofStandIn is a summary with a cost, of a stand-in, an emulator or neither.
func ofStandIn(simulated, emulated bool) *engine.Summary {
	s := summary()
	s.CancellationReason = nil
	s.Simulated, s.Emulated = simulated, emulated
	s.Verdict = s.VerdictText()
	million := 0.5
	s.Cost = &engine.Cost{Warehouse: "WH", WarehouseType: "STANDARD", WarehouseSize: "X-Small", Clusters: 1,
		CreditsPerHour: 1, Credits: 0.0056, CreditPrice: 3,
		Currency: "USD", Price: 0.0167, PricePerMillion: &million, PriceList: "list"}
	return s
}

// seconds is a measurement that is long enough to be compared.
func seconds(n int) (list []engine.MeasuredSecond) {
	h := histogram.New()
	for i := range 100 {
		h.Record(int64(i+1) * int64(time.Millisecond))
	}
	for range n {
		list = append(list, engine.MeasuredSecond{Operations: 100, Latency: h.Data()})
	}
	return list
}

func TestSimulatedIsInTheTerminalAndInJUnit(t *testing.T) {
	for _, c := range []struct {
		s    *engine.Summary
		word string
	}{{ofStandIn(true, false), "simulated"}, {ofStandIn(true, true), "emulated"}, {ofStandIn(false, false), ""}} {
		var text, junit bytes.Buffer
		if err := printSummary(&text, c.s); err != nil {
			t.Fatal(err)
		}
		if err := writeJUnit(&junit, c.s, true); err != nil {
			t.Fatal(err)
		}
		var suite junitSuite
		if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil {
			t.Fatal(err)
		}
		if c.word == "" {
			if s := text.String() + junit.String(); strings.Contains(s, "simulated") || strings.Contains(s, "emulated") ||
				!strings.Contains(s, "  VALID\n") {
				t.Errorf("a real run is called one:\n%s", s)
			}
			continue
		}
		for _, want := range []string{"VALID (" + c.word + ")\n", "\n  " + c.word + ": ",
			"of a warehouse that is " + c.word} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the terminal lacks %q:\n%s", want, text.String())
			}
		}
		if !strings.HasSuffix(suite.Name, "("+c.word+")") || suite.Properties == nil ||
			suite.Properties.Properties[0] != (junitProperty{"simulated", "true"}) ||
			suite.Properties.Properties[1].Value != c.word {
			t.Errorf("the suite is %q with %+v", suite.Name, suite.Properties)
		}
		if len(suite.Cases) != 5 {
			t.Fatalf("%d cases", len(suite.Cases))
		}
		for _, one := range suite.Cases {
			if !strings.HasSuffix(one.Name, " ("+c.word+")") {
				t.Errorf("the case %q does not say %s", one.Name, c.word)
			}
		}
	}
}

// TestSimulatedAgainstRealIsSaidFirst drives the command compare on files.
func TestSimulatedAgainstRealIsSaidFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, s *engine.Summary) string {
		s.RunID = name
		text, err := json.Marshal(written{Summary: s, Seconds: seconds(30)})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	real, model, emulator := write("real", ofStandIn(false, false)), write("model", ofStandIn(true, false)),
		write("emulator", ofStandIn(true, true))
	other, model2 := write("other", ofStandIn(false, false)), write("model2", ofStandIn(true, false))
	for _, c := range []struct{ a, b, first, head, inA, inB string }{
		{real, model, "The figures of A are real, those of B simulated", "B (simulated)", "", "simulated"},
		{emulator, real, "The figures of A are emulated, those of B real", "A (emulated)", "emulated", ""},
		{model, model2 + "," + real, "The figures of A are simulated, those of B partly a stand-in's", "B (mixed)",
			"simulated", "mixed"},
		{model, model2, "All these figures are simulated", "A (simulated)", "simulated", "simulated"},
		{real, other, "metric", "A ", "", ""},
	} {
		out := filepath.Join(dir, "out.json")
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), func() {}, []string{"compare", c.a, c.b, "--out", out}, &stdout,
			&stderr); code != exitPassed {
			t.Fatalf("%s against %s: exit %d\n%s", c.b, c.a, code, stderr.String())
		}
		if text := strings.TrimLeft(stdout.String(), " "); !strings.HasPrefix(text, c.first) ||
			!strings.Contains(text, c.head) {
			t.Errorf("it begins otherwise than %q, or lacks %q:\n%s", c.first, c.head, text)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var got compare.Comparison
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		simulated := c.inA != "" || c.inB != ""
		if got.StandIn != (compare.StandIn{A: c.inA, B: c.inB}) || got.Simulated != simulated || simulated &&
			!strings.HasPrefix(got.Notes[0], c.first) {
			t.Errorf("--out holds %+v %v %q", got.StandIn, got.Simulated, got.Notes)
		}
	}
}

func TestAMatrixSaysWhatIsSimulatedAndWhatItCosts(t *testing.T) {
	against := &compare.Comparison{Verdict: compare.Worse, Simulated: true,
		StandIn: compare.StandIn{A: "", B: "simulated"}}
	r := matrix.Report{MatrixRun: engine.MatrixRun{Name: "both", MatrixID: "m", Labels: []string{"real", "model", "gone"},
		Status: engine.StatusCompleted}, Simulated: true,
		Targets: []matrix.TargetReport{
			{Label: "real", Status: engine.StatusCompleted, Summary: ofStandIn(false, false)},
			{Label: "model", Status: engine.StatusCompleted, Simulated: true, Summary: ofStandIn(true, false), Against: against},
			{Label: "gone", Status: engine.StatusFailed, Simulated: true},
		}}
	var text, junit bytes.Buffer
	if err := printMatrix(&text, r); err != nil {
		t.Fatal(err)
	}
	said := strings.Index(text.String(),
		"Simulated figures stand beside real ones: those of model (simulated), gone (simulated)")
	if table := strings.Index(text.String(), "target "); said < 0 || said > table {
		t.Errorf("it is not said before the table:\n%s", text.String())
	}
	for _, want := range []string{"model (simulated)", "VALID (simulated)", "worse, but simulated against real",
		"cost of a million", "0.5 USD", "gone (simulated): failed, without figures",
		"model: cost: 0.5 USD for a million operations; 0.0056 credits, 0.0167 USD, of a warehouse that is simulated",
		"STANDARD X-Small, 1 cluster at 1 credits an hour"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if err := writeMatrixJUnit(&junit, r, false); err != nil {
		t.Fatal(err)
	}
	var all struct {
		Suites []junitSuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &all); err != nil || len(all.Suites) != 3 {
		t.Fatalf("%v, %d suites", err, len(all.Suites))
	}
	for i, simulated := range []bool{false, true, true} {
		if s := all.Suites[i]; simulated != (s.Properties != nil) ||
			simulated != strings.HasSuffix(s.Cases[0].Name, "(simulated)") {
			t.Errorf("suite %d: %+v, %q", i, s.Properties, s.Cases[0].Name)
		}
	}
}

func TestAMatrixHasNoRateWhereTheRecordIsLost(t *testing.T) {
	lost, none := ofStandIn(false, false), 0.0
	lost.QPS, lost.CoveredSeconds = 0, &none
	r := matrix.Report{MatrixRun: engine.MatrixRun{Name: "both", MatrixID: "m", Labels: []string{"whole", "lost"},
		Status: engine.StatusCompleted},
		Targets: []matrix.TargetReport{
			{Label: "whole", Status: engine.StatusCompleted, Summary: ofStandIn(false, false)},
			{Label: "lost", Status: engine.StatusCompleted, Summary: lost},
		}}
	var text bytes.Buffer
	if err := printMatrix(&text, r); err != nil {
		t.Fatal(err)
	}
	var row []string
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "lost" {
			row = fields
		}
	}
	if len(row) < 4 || row[3] != "-" { // the result takes two words
		t.Errorf("the rate of a lost record is %v:\n%s", row, text.String())
	}
}
