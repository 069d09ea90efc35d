package fragment_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// TestWhatAFragmentCameToIsShown: its failure comes from a node, stands beside its query and goes to terminals.
func TestWhatAFragmentCameToIsShown(t *testing.T) {
	body, err := json.Marshal(fragment.EndReport{Failure: "TypeError: \x1b[2J\u202ename\u2028\nSELECT 1" +
		strings.Repeat("x", 10_000),
		Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := fragment.ParseEnd(fragment.Message{Kind: fragment.End, Body: body})
	if err != nil || !e.Terminal || !strings.HasPrefix(e.Failure, "TypeError: [2Jname\nSELECT 1xxx") ||
		len([]rune(e.Failure)) > 5000 || strings.ContainsFunc(strings.ReplaceAll(e.Failure, "\n", ""), textsafe.IsControl) {
		t.Errorf("%.80q, %d bytes, %v", e.Failure, len(e.Failure), err)
	}
}
