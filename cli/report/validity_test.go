package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestDoubtsHaveTheirTime lists causes by the clock of the measurement, the first ones only.
func TestDoubtsHaveTheirTime(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) engine.Time { return engine.At(began.Add(time.Duration(seconds) * time.Second)) }
	s := &engine.Summary{Status: engine.StatusCompleted, Validity: engine.VerdictDegraded}
	s.MeasuredFrom = at(0)
	s.ValidityDetail.Causes = []engine.ValidityCause{
		{Cause: "gc_pause", Detail: "late", From: at(65), To: at(65)},
		{Cause: "generator_cpu", Detail: "early", From: at(-1), To: at(3)},
		{Cause: "kind_failed", Detail: "always"},
	}
	for i := range 10 {
		s.ValidityDetail.Causes = append(s.ValidityDetail.Causes,
			engine.ValidityCause{Cause: "errors", Detail: fmt.Sprint(i), From: at(100 + i), To: at(100 + i)})
	}
	var out strings.Builder
	if err := Summary(&out, s); err != nil {
		t.Fatal(err)
	}
	message := out.String()
	for _, want := range []string{" kind_failed: always\n", " 00:00–00:03  generator_cpu: early\n",
		" 01:05  gc_pause: late\n", " 01:44  errors: 4\n", " and 5 more\n"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q is not in\n%s", want, message)
		}
	}
	if strings.Index(message, "early") > strings.Index(message, "late") || strings.Contains(message, "errors: 5") {
		t.Errorf("not in order, or too many:\n%s", message)
	}
}
