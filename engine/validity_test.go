package engine_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestSentencesOfEarlierVersionsAreKnown: those whose code decides something; others stay sentences.
func TestSentencesOfEarlierVersionsAreKnown(t *testing.T) {
	t.Parallel()
	v := engine.Validity{Notes: []string{"The target is on the same machine as the load generator.", "Something else."},
		LiveNotes: []string{"Something else."}}
	notes := v.ReadNotes()
	if len(notes) != 2 || notes[0].Code != engine.NoteTargetLocal || notes[1].Code != engine.NoteUncoded ||
		!notes[1].Live {
		t.Errorf("%+v", notes)
	}
	for text, want := range map[string]engine.NoteCode{
		"The server was down: executions after the last complete part are not recorded": engine.AboutServerDown,
		"the lost worker's record": engine.NoteUncoded,
	} {
		c := engine.ValidityCause{Detail: text}
		if got := c.ReadAbout(); got.Code != want || got.String() != text {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
