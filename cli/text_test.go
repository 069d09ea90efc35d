package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

// hostileText is what a database or plugin might say to a terminal; it is long, too.
var hostileText = "\x1b]0;owned\x07\x1b[31mred\u009b2J\u202egnp.exe\r\x7f\x00" + strings.Repeat("x", 100_000)

// TestNothingOfOthersReachesATerminalAsItIs puts nasty into whatever they can fill.
func TestNothingOfOthersReachesATerminalAsItIs(t *testing.T) {
	s := summary()
	s.RunName, s.CancellationReason, s.Status = hostileText, &hostileText, engine.StatusFailed
	s.Errors.Top[0].Message = hostileText
	s.ValidityDetail.Causes = []engine.ValidityCause{{Cause: "c", Detail: hostileText}}
	s.ValidityDetail.Notes = []string{hostileText}
	s.Thresholds[0] = engine.ThresholdResult{Threshold: hostileText, Reason: hostileText}
	s.Accounting.Problems, s.Accounting.Balanced = []string{hostileText}, false
	done := *s
	done.Status = engine.StatusCompleted
	done.Errors.Count = done.Operations
	label := matrix.TargetReport{Label: hostileText, Status: engine.StatusCompleted, Summary: &done, Problem: hostileText}
	result := matrix.Report{Targets: []matrix.TargetReport{label, {Label: hostileText, Status: engine.StatusFailed}}}
	result.Name, result.Labels = hostileText, []string{hostileText}
	log := func(format string) func(io.Writer) error {
		return func(w io.Writer) error {
			l, _ := terminal.NewLogger(w, "info", format)
			l.Info().Str("sql", hostileText[:100]).Msg(hostileText)
			return nil
		}
	}
	for name, print := range map[string]func(io.Writer) error{
		"summary":      func(w io.Writer) error { return report.Summary(w, s) },
		"JUnit":        func(w io.Writer) error { return report.JUnit(w, s, true) },
		"matrix":       func(w io.Writer) error { return report.Matrix(w, result) },
		"matrix JUnit": func(w io.Writer) error { return report.MatrixJUnit(w, result, true) },
		"log, text":    log("text"),
		"log, JSON":    log("json"),
		"live": func(w io.Writer) error {
			p := report.NewProgress(w)
			p.Show(&engine.LiveState{Logs: []engine.LogEntry{{Seq: 1, Level: engine.LogError, Message: hostileText}}})
			preparing := engine.PhasePreparing
			p.Show(&engine.LiveState{Phase: &preparing, Prepare: &engine.PrepareProgress{Message: hostileText[:200]}})
			return nil
		},
	} {
		var b bytes.Buffer
		if err := print(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := b.String()
		if name == "log, text" {
			for _, colour := range []string{"\x1b[90m", "\x1b[0m", "\x1b[32m", "\x1b[36m", "\x1b[1m"} {
				text = strings.ReplaceAll(text, colour, "") // the console's own
			}
		}
		for i, r := range text {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s: %U at %d: %q", name, r, i, text[max(0, i-40):min(len(text), i+40)])
				break
			}
		}
		if name != "log, JSON" && strings.Contains(text, strings.Repeat("x", 5000)) {
			t.Errorf("%s: a text is not cut", name)
		}
		if !strings.Contains(text, "xxxx") {
			t.Errorf("%s: it is not there at all: %.200q", name, text)
		}
	}
}
