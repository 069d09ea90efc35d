package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestARunOfAnOlderServerHasNoFiguresThatNobodyKnows: it says 0/s of a record that is lost, and of a run that was not
// measured. None of these is a figure.
func TestARunOfAnOlderServerHasNoFiguresThatNobodyKnows(t *testing.T) {
	for name, summary := range map[string]string{
		"a lost record": `{"run_id": "r", "qps": 0, "covered_seconds": 0, "duration_seconds": 60, "operations": 100,
			"errors": {"rate": 0}, "by_kind": {"UPDATE": {"count": 100, "qps": 0}}}`,
		"not measured": `{"run_id": "r", "qps": 0, "duration_seconds": 0, "operations": 0, "errors": {"rate": 0},
			"by_kind": {}}`,
	} {
		f, err := RunFile(t.Context(), func(_ context.Context, path string) ([]byte, error) {
			if strings.HasSuffix(path, "/summary") {
				return []byte(summary), nil
			}
			return []byte(`{"seconds": []}`), nil
		}, "r")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := f.Summary
		if s.HasRates() || s.RecordLost() != (s.Operations > 0) || s.Operations == 0 && s.Errors.Rate != nil ||
			s.ByKind[engine.KindUpdate] != nil && s.ByKind[engine.KindUpdate].QPS != nil {
			t.Errorf("%s: %+v", name, s.Figures)
		}
	}
}
