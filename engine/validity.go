package engine

import (
	"slices"
	"time"
)

// Verdict says whether a run's figures can be defended.
type Verdict string

// VALID, or DEGRADED with the causes; NONE for a run that ended before its measurement.
const (
	VerdictValid    Verdict = "VALID"
	VerdictDegraded Verdict = "DEGRADED"
	VerdictNone     Verdict = "NONE"
)

// Validity is the verdict with its causes and the notes that are not causes.
type Validity struct {
	Verdict Verdict         `json:"verdict"`
	Causes  []ValidityCause `json:"causes"`
	Notes   []string        `json:"notes"`
	// LiveNotes are the notes that were made while the run went on. The others follow from its figures.
	LiveNotes []string `json:"seen_notes,omitempty"`
	// NoteDetails are the notes as data, in their order. Runs of versions that stored none have sentences alone.
	NoteDetails []Note `json:"note_details,omitempty"`
}

// SetNotes sets the notes, and their sentences with them.
func (v *Validity) SetNotes(notes []Note) {
	v.NoteDetails, v.Notes, v.LiveNotes = notes, []string{}, nil
	for _, n := range notes {
		v.Notes = append(v.Notes, n.String())
		if n.Live {
			v.LiveNotes = append(v.LiveNotes, n.String())
		}
	}
}

// Starved says why what the generator was measured to cost and to err by does not hold for a run, because its machine
// had less for it then; empty where it holds.
func (v *Validity) Starved() string {
	for i := range v.Causes {
		switch v.Causes[i].Cause {
		case CauseGeneratorStarved, CauseGeneratorCPU:
			return "its accuracy certificate does not hold for this run: the machine was busier than when it was measured"
		}
	}
	return ""
}

// plainNotes are those without parameters whose codes decide something: they are known by their whole
// sentence in what versions without codes have stored.
var plainNotes = []NoteCode{NoteTargetLocal, AboutServerDown}

// storedNote is the note that a version without codes has stored as a sentence.
func storedNote(text string) Note {
	for _, code := range plainNotes {
		if n := (Note{Code: code}); n.String() == text {
			return n
		}
	}
	return Note{Code: NoteUncoded, Text: text}
}

// ReadNotes are the notes as data. What a version without codes has stored is NoteUncoded, or known by its sentence.
func (v *Validity) ReadNotes() []Note {
	if len(v.NoteDetails) > 0 {
		return v.NoteDetails
	}
	var notes []Note
	for _, text := range v.Notes {
		n := storedNote(text)
		n.Live = slices.Contains(v.LiveNotes, text)
		notes = append(notes, n)
	}
	return notes
}

// ValidityCause is one reason to doubt, with its interval.
type ValidityCause struct {
	// Cause is generator_cpu | gc_pause | recorder_stall | lost_worker | snapshot_gap | incomplete_record | schedule_lag
	// | pool_wait | dropped | errors | failing | nothing_measured | fallback_warehouse | kind_failed | misses |
	// connections_short | clock_step | generator_starved | freezes.
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
	From   Time   `json:"from"`
	To     Time   `json:"to"`
	// About is the detail as data. Versions that stored no codes have the sentence alone.
	About Note `json:"about,omitzero"`
}

// NewCause returns a cause with its detail in words.
func NewCause(cause string, about Note, from, to time.Time) ValidityCause {
	return ValidityCause{Cause: cause, Detail: about.String(), From: At(from), To: At(to), About: about}
}

// ReadAbout is the detail as data. What a version without codes has stored is NoteUncoded, or known by its sentence.
func (c *ValidityCause) ReadAbout() Note {
	if c.About.Code == "" {
		return storedNote(c.Detail)
	}
	return c.About
}

// The causes of DEGRADED.
const (
	CauseGeneratorCPU     = "generator_cpu"
	CauseGCPause          = "gc_pause"
	CauseRecorderStall    = "recorder_stall"
	CauseLostWorker       = "lost_worker"
	CauseSnapshotGap      = "snapshot_gap"
	CauseClockStep        = "clock_step"
	CauseIncompleteRecord = "incomplete_record"
	CauseScheduleLag      = "schedule_lag"
	CausePoolWait         = "pool_wait"
	CauseDropped          = "dropped"
	CauseErrors           = "errors"
	CauseFailing          = "failing"
	CauseNothingMeasured  = "nothing_measured"
	CauseFallback         = "fallback_warehouse"
	CauseKindFailed       = "kind_failed"
	CauseMisses           = "misses"
	CauseConnectionsShort = "connections_short"
	CauseGeneratorStarved = "generator_starved"
	CauseFreezes          = "freezes"
	CauseBurst            = "burst_credits"
)
