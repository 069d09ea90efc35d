package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/threshold"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

type junitSuite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr,omitempty"`
	Time     float64  `xml:"time,attr"`
	Time0    string   `xml:"timestamp,attr,omitempty"`
	// Properties come before the cases in the schema that CI systems check against.
	Properties *junitProperties `xml:"properties,omitempty"`
	Cases      []junitCase      `xml:"testcase"`
	// Output has what a reader of the figures should know, and comes after the cases.
	Output string `xml:"system-out,omitempty"`
}

type junitProperties struct {
	Properties []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class string  `xml:"classname,attr"`
	Name  string  `xml:"name,attr"`
	Time  float64 `xml:"time,attr"`
	// Skipped is of what was judged on a part of the run: it neither passed nor failed.
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// JUnit writes a result as CI systems read it: one case for the run, one
// for the accounting, one for each threshold (skipped where a run that did not complete met it so far), and one for the
// verdict when it is required.
func JUnit(w io.Writer, s *engine.Summary, requireValid bool) error {
	return writeXML(w, suiteOf(s, requireValid))
}

func suiteOf(s *engine.Summary, requireValid bool) junitSuite {
	suite := junitSuite{Name: printable(s.RunName), Time: s.DurationSeconds}
	if !s.StartTime.IsZero() {
		suite.Time0 = s.StartTime.Format("2006-01-02T15:04:05")
	}
	word := s.StandInLabel()
	if word != "" {
		suite.Properties = &junitProperties{[]junitProperty{{"simulated", "true"}, {"stand_in", word},
			{"verdict", s.VerdictText()}}}
		suite.Name += " (" + word + ")"
	}
	add := func(name string, passed bool, kind, message string) {
		if word != "" {
			name += " (" + word + ")"
		}
		c := junitCase{Class: printable("loadstone." + s.RunName), Name: printable(name), Time: s.DurationSeconds}
		if !passed {
			c.Failure = &junitFailure{Message: printable(message), Type: kind}
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	reason := string(s.Status)
	if s.CancellationReason != nil {
		reason += ": " + *s.CancellationReason
	}
	add("run completes", s.Status == engine.StatusCompleted, "run", reason)
	add("accounting balances", s.Accounting.Balanced, "accounting", strings.Join(s.Accounting.Problems, "; "))
	add("at least one operation succeeds", s.HasSuccess(), "errors", allFailedReason(s))
	if s.HasSuccess() && s.Errors.Count > 0 {
		suite.Cases[len(suite.Cases)-1].Output = fmt.Sprintf("%d of %d operations failed (%.3g %%). "+
			"A threshold on error_rate judges that.", s.Errors.Count, s.Operations,
			100*float64(s.Errors.Count)/float64(s.Operations))
	}
	for _, t := range s.Thresholds {
		add(t.Threshold, t.Passed, "threshold", t.Reason)
		if part := threshold.CoverageNote(s, t); part != "" {
			suite.Cases[len(suite.Cases)-1].Skipped = &junitSkipped{printable(part)}
			suite.Skipped++
		}
	}
	if requireValid {
		var causes []string
		for _, c := range s.ValidityDetail.Causes {
			causes = append(causes, c.Detail)
		}
		if s.Validity == engine.VerdictNone {
			causes = append(causes, s.VerdictText())
		}
		add("figures are valid", s.Validity == engine.VerdictValid, "validity", strings.Join(causes, "; "))
	}
	notes := make([]string, 0, len(s.ValidityDetail.Notes))
	for _, n := range s.ValidityDetail.Notes {
		notes = append(notes, printable(n))
	}
	for _, line := range findingLines(s) {
		notes = append(notes, printable("Why: "+line))
	}
	suite.Output = strings.Join(notes, "\n")
	return suite
}

func writeXML(w io.Writer, v any) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// MatrixJUnit writes a suite for each target.
func MatrixJUnit(w io.Writer, r matrix.Report, requireValid bool) error {
	all := struct {
		XMLName xml.Name     `xml:"testsuites"`
		Name    string       `xml:"name,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}{Name: printable(r.Name)}
	for _, t := range r.Targets {
		s := t.Summary
		if s == nil {
			reason := fmt.Sprintf("The run is %s and has no figures.", t.Status)
			s = &engine.Summary{RunID: t.RunID, RunName: r.Name + " · " + t.Label, Status: t.Status,
				CancellationReason: &reason, Validity: engine.VerdictNone,
				Simulated: t.Simulated, Emulated: t.Emulated}
		}
		all.Suites = append(all.Suites, suiteOf(s, requireValid))
	}
	return writeXML(w, all)
}
