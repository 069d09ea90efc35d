package compare

import (
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Notes are reasons to doubt that the two sides can be compared at all: figures
// that are not valid, and what else differs between the runs.
func Notes(a, b []engine.Summary) []string {
	notes := []string{}
	for _, s := range slices.Concat(a, b) {
		if s.Validity != engine.VerdictValid {
			notes = append(notes, fmt.Sprintf("Run %s is %s: what its figures show may be the generator's limit.", s.RunID, s.Validity))
		}
	}
	for _, d := range []struct {
		what string
		of   func(engine.Summary) string
	}{
		{"plugins", func(s engine.Summary) string {
			text := ""
			for _, p := range s.Plugins {
				text += p.Name + " " + p.Version + " " + p.SHA256 + "; "
			}
			return text
		}},
		{"Loadstone version", func(s engine.Summary) string { return s.Environment.LoadstoneVersion }},
		{"machine of the generator", func(s engine.Summary) string {
			return fmt.Sprintf("%s, %d CPUs, %s", s.Environment.Hostname, s.Environment.CPUs, s.Environment.CPUModel)
		}},
		{"I/O engine", func(s engine.Summary) string { return s.Environment.IOEngine }},
		{"server version", func(s engine.Summary) string { return s.Environment.ServerVersion }},
	} {
		seen := map[string]bool{}
		for _, s := range slices.Concat(a, b) {
			seen[d.of(s)] = true
		}
		if len(seen) > 1 {
			notes = append(notes, fmt.Sprintf("The runs differ in their %s.", d.what))
		}
	}
	return notes
}
