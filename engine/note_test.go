package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNotesAreStoredWithTheirSentences: what is read again says the same, and users of the JSON have sentences.
func TestNotesAreStoredWithTheirSentences(t *testing.T) {
	var v Validity
	at := At(time.Date(2026, 7, 1, 10, 2, 3, 0, time.UTC))
	v.SetNotes([]Note{{Code: NoteRateChanged, Live: true, Old: 400, New: 801.5, Seconds: 21, User: "ada"},
		{Code: NoteClockSet, At: at, Seconds: -0.5}, TextNote("a plugin says so"),
		{Code: NoteHiddenLatency, Seconds: 1.4, Count: 7000, Hidden: []HiddenPercentile{{"P99", 12.34, 800}}}})
	body, err := json.Marshal(v)
	var again Validity
	if err != nil || json.Unmarshal(body, &again) != nil {
		t.Fatal(err)
	}
	again.SetNotes(again.ReadNotes())
	want := []string{
		"The rate was changed while the run went on, from 400/s to 801.5/s at 21 s by ada.",
		"At 10:02:03 the machine's clock was set back by 0.5 s. The run's times, rates and latencies are told by the clock " +
			"as it was at the run's start.",
		"a plugin says so",
		"A closed loop asks nothing while it waits. Had users come at the same pace in the 1.4 s without any answer too, " +
			"about 7000 operations more, the P99 would be 800 ms or more instead of 12.3 ms (estimated; load_mode: QPS measures it).",
	}
	if !slices.Equal(again.Notes, want) || !slices.Equal(again.LiveNotes, want[:1]) {
		t.Errorf("%q, live %q", again.Notes, again.LiveNotes)
	}
	old := Validity{Notes: want[:2], LiveNotes: want[:1]}
	if got := old.ReadNotes(); len(got) != 2 || got[0].Code != NoteUncoded || !got[0].Live || got[0].String() != want[0] ||
		got[1].Live {
		t.Errorf("of an earlier version: %+v", got)
	}
}

// TestEveryNoteIsASentence, also without a parameter: a user or a worker may be left out.
func TestEveryNoteIsASentence(t *testing.T) {
	for code := range noteWords {
		text := Note{Code: code}.String()
		if strings.Contains(text, "%!") || strings.HasSuffix(text, ".") != (code != NoteRunStarted) {
			t.Errorf("%s: %q", code, text)
		}
	}
	for code := range causeWords {
		if text := (Note{Code: code}).String(); strings.Contains(text, "%!") || text == "" || noteWords[code] != nil {
			t.Errorf("%s: %q", code, text)
		}
	}
	if n := TextNote(""); n.String() != "" || n.Code != "" {
		t.Errorf("%+v", n)
	}
}
