package protocol

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAnAssignmentThatIsTooLargeSaysWhatOfItIs, and what would make it smaller.
func TestAnAssignmentThatIsTooLargeSaysWhatOfItIs(t *testing.T) {
	long := func(kb int) string { return string(bytes.Repeat([]byte("x"), kb<<10)) }
	angles := strings.Repeat("<", 512<<10)
	feed := func(csv string) engine.Workload { return engine.Workload{Feed: &engine.Feed{CSV: csv}} }
	for name, c := range map[string]struct {
		run   AssignRun
		words []string
	}{
		"usual": {run: AssignRun{Plan: &engine.Plan{}, Workload: feed(long(200))}},
		"almost too large": {run: AssignRun{Plan: &engine.Plan{Statements: []engine.Statement{{SQL: long(1000)}}},
			Workload: feed(long(200))}},
		"six bytes for one": {run: AssignRun{Plan: &engine.Plan{}, Workload: feed(angles)},
			words: []string{"its feed (3.0 MB)", "six bytes", "Replay a part"}},
		"statements": {run: AssignRun{Plan: &engine.Plan{Statements: []engine.Statement{{SQL: long(2048)}}}},
			words: []string{"its statements (2.0 MB)", "shorter statements"}},
		"several": {run: AssignRun{Plan: &engine.Plan{Statements: []engine.Statement{{SQL: long(1229)}}},
			Workload: feed(long(1024))},
			words: []string{"its statements (1.2 MB), its feed (1.0 MB)", "Replay", "2.3 MB, and at most 2 MB"}},
		"parameters": {run: AssignRun{Workload: engine.Workload{Params: json.RawMessage(`"` + long(2560) + `"`)}},
			words: []string{"the parameters of its workload (2.5 MB)", "fewer or shorter parameters"}},
		"without a plan yet": {run: AssignRun{Workload: feed(long(2560))}, words: []string{"its feed (2.5 MB)"}},
	} {
		err := c.run.fits(2 << 20)
		if len(c.words) == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.words {
			if text := engine.ErrorText(err); !strings.Contains(text, w) {
				t.Errorf("%s: nothing of %q in %s", name, w, text)
			}
		}
	}
}
