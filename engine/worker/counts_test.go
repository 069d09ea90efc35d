package worker

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestCountsOutliveTheProcess: what is kept is what was counted, and counts in the words of
// an earlier version are unknown, not 0.
func TestCountsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	want := engine.Totals{Accounting: engine.Accounting{Scheduled: 12, Dropped: 2,
		DroppedByReason: engine.Drops{Stopped: 2},
		Started:         10, Succeeded: 9, Failed: 1, Recorded: 10, Warmup: 3, WarmupScheduled: 4, WarmupDropped: 1,
		Statements: 5},
		Connections: engine.ConnectionFigures{Lost: 1, Reopened: 1}, KeysReplaced: 7}
	if err := writeCounts(dir, counts{"test", &want}); err != nil {
		t.Fatal(err)
	}
	if got := readCounts(dir, "test"); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("kept %+v of %+v", got, want)
	}
	if got := readCounts(dir, "another"); got != nil {
		t.Errorf("the counts of another test are %+v", got)
	}
	old := `{"test_id":"test","totals":{"Scheduled":12,"Started":10,"Succeeded":10}}`
	if err := os.WriteFile(filepath.Join(dir, countsFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readCounts(dir, "test"); got != nil {
		t.Errorf("counts in an earlier version's words are %+v", got)
	}
}
