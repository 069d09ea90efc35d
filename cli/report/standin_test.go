package report

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

func TestSimulatedIsInTheTerminalAndInJUnit(t *testing.T) {
	for _, c := range []struct {
		s    *engine.Summary
		word string
	}{{ofStandIn(true, false), "simulated"}, {ofStandIn(true, true), "emulated"}, {ofStandIn(false, false), ""}} {
		var text, junit bytes.Buffer
		if err := Summary(&text, c.s); err != nil {
			t.Fatal(err)
		}
		if err := JUnit(&junit, c.s, true); err != nil {
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

func TestAMatrixSaysWhatIsSimulatedAndWhatItCosts(t *testing.T) {
	against := &compare.Comparison{Verdict: compare.Worse, Simulated: true,
		StandIn: compare.StandIn{A: "", B: "simulated"}}
	r := matrix.Report{MatrixRun: engine.MatrixRun{Name: "both", MatrixID: "m", Labels: []string{"real", "model", "gone"},
		Status: engine.StatusCompleted}, Simulated: true,
		Targets: []matrix.TargetReport{
			{Label: "real", Status: engine.StatusCompleted, Summary: ofStandIn(false, false)},
			{
				Label:      "model",
				Status:     engine.StatusCompleted,
				Simulated:  true,
				Summary:    ofStandIn(true, false),
				Comparison: against,
			},
			{Label: "gone", Status: engine.StatusFailed, Simulated: true},
		}}
	var text, junit bytes.Buffer
	if err := Matrix(&text, r); err != nil {
		t.Fatal(err)
	}
	message := strings.Index(text.String(),
		"Simulated figures stand beside real ones: those of model (simulated), gone (simulated)")
	if table := strings.Index(text.String(), "target "); message < 0 || message > table {
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
	if err := MatrixJUnit(&junit, r, false); err != nil {
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
	lost := ofStandIn(false, false)
	lost.QPS, lost.RecordPartial = nil, true
	r := matrix.Report{MatrixRun: engine.MatrixRun{Name: "both", MatrixID: "m", Labels: []string{"whole", "lost"},
		Status: engine.StatusCompleted},
		Targets: []matrix.TargetReport{
			{Label: "whole", Status: engine.StatusCompleted, Summary: ofStandIn(false, false)},
			{Label: "lost", Status: engine.StatusCompleted, Summary: lost},
		}}
	var text bytes.Buffer
	if err := Matrix(&text, r); err != nil {
		t.Fatal(err)
	}
	var row []string
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "lost" {
			row = fields
		}
	}
	if len(row) < 4 || row[3] != "–" { // the result takes two words
		t.Errorf("the rate of a lost record is %v:\n%s", row, text.String())
	}
}
