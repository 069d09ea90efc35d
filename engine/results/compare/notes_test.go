package compare

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func TestNotes(t *testing.T) {
	same := engine.Summary{RunID: "a", Validity: engine.VerdictValid,
		Environment: engine.Environment{ServerVersion: "15.1", CPUs: 2}}
	if notes := Notes([]engine.Summary{same}, []engine.Summary{same}); len(notes) != 0 {
		t.Errorf("%v", notes)
	}
	down := same
	down.Outages = []engine.Outage{{DownSeconds: 3.421}, {DownSeconds: 2}}
	if notes := Notes([]engine.Summary{same}, []engine.Summary{down}); len(notes) != 1 ||
		notes[0] != "Outages: A had none; B had 2 outages, down for 3.42 s at most. They are in the figures." {
		t.Errorf("%q", notes)
	}
	other := same
	other.RunID, other.Validity, other.Environment.ServerVersion = "b", engine.VerdictDegraded, "16.0"
	other.Plugins = []engine.PluginRef{{Name: "mix", SHA256: "2"}}
	other.Status = engine.StatusFailed // its server was killed: it keeps the verdict of its life
	text := strings.Join(Notes([]engine.Summary{same}, []engine.Summary{other}), "\n")
	for _, want := range []string{"Run b is DEGRADED", "differ in their server version", "differ in their plugins",
		"Run b did not complete (FAILED)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
