package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// StandIn says of each side what answered in the database's place.
type StandIn struct {
	// A and B are simulated, emulated, mixed (by its runs), or empty when the database answered.
	A string `json:"a"`
	B string `json:"b"`
}

// Mixed reports whether figures of a stand-in meet those of something else.
func (s StandIn) Mixed() bool { return s.A != s.B || s.A == mixed }

// mixed is a side whose runs do not agree in what answered.
const mixed = "mixed"

func standIn(side []engine.Summary) string {
	word := ""
	for i := range side {
		switch one := side[i].StandInLabel(); {
		case i == 0:
			word = one
		case one != word:
			return mixed
		}
	}
	return word
}

// AddNotes adds to a comparison what the runs themselves say: whether a stand-in
// gave their figures, which is the first note, and what Notes finds.
func (c *Comparison) AddNotes(a, b []engine.Summary) {
	c.addNotes(StandIn{standIn(a), standIn(b)}, Notes(a, b))
}

func (c *Comparison) addNotes(s StandIn, notes []string) {
	c.StandIn, c.Simulated = s, s.A != "" || s.B != ""
	c.Notes = slices.Concat(s.notes(), notes, c.Notes)
}

// notes warn of figures that are no database's, most of all when they meet real ones.
func (s StandIn) notes() []string {
	called := func(word string) string {
		switch word {
		case "":
			return "real"
		case mixed:
			return "partly a stand-in's"
		}
		return word
	}
	switch {
	case s.Mixed():
		return []string{fmt.Sprintf("The figures of A are %s, those of B %s: what a stand-in gives says nothing about the "+
			"real database, so neither does the difference.",
			called(s.A), called(s.B))}
	case s.A != "":
		return []string{fmt.Sprintf("All these figures are %s: they say nothing about the real database.", s.A)}
	}
	return nil
}

// none says that a side had no outage.
const none = "had none"

// outagesOf says how many outages the runs of a side had, and how long the longest was; "" without one.
func outagesOf(side []engine.Summary) string {
	count, longest := 0, 0.0
	for i := range side {
		for _, o := range side[i].Outages {
			count, longest = count+1, max(longest, o.DownSeconds)
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("had %s, down for %.3g s at most", engine.Count(count, "outage"), longest)
}

// Notes are reasons to doubt that the two sides can be compared at all: figures
// that are not valid, or of a run that did not complete, and what else differs between the runs.
func Notes(a, b []engine.Summary) []string {
	notes := []string{}
	for _, s := range slices.Concat(a, b) {
		if s.Validity != engine.VerdictValid {
			notes = append(notes, fmt.Sprintf("Run %s is %s: what its figures show may be the generator's limit.", s.RunID,
				s.VerdictText()))
		}
		if s.Status == engine.StatusFailed || s.Status == engine.StatusCancelled {
			notes = append(notes, fmt.Sprintf("Run %s did not complete (%s): its figures are of what was measured until then.",
				s.RunID, s.Status))
		}
	}
	if x, y := outagesOf(a), outagesOf(b); x != "" || y != "" {
		notes = append(notes, fmt.Sprintf("Outages: A %s; B %s. They are in the figures.", cmp.Or(x, none), cmp.Or(y, none)))
	}
	for _, u := range unlike(a, b) {
		notes = append(notes, u.sentence())
	}
	return notes
}
