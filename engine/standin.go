package engine

import "fmt"

// StandInLabel is the word for what answered in the database's place: simulated,
// emulated, or nothing when it was the database itself.
func StandInLabel(simulated, emulated bool) string {
	switch {
	case emulated:
		return "emulated"
	case simulated:
		return "simulated"
	}
	return ""
}

// StandInLabel is the word for what answered in the database's place, empty when the database did.
func (s *Summary) StandInLabel() string { return StandInLabel(s.Simulated, s.Emulated) }

// VerdictText is the verdict as people read it: figures of a stand-in may be valid, and are none of the database.
func (s *Summary) VerdictText() string {
	if s.Validity == VerdictNone {
		return "none: the run ended before its measurement"
	}
	if word := s.StandInLabel(); word != "" {
		return fmt.Sprintf("%s (%s)", s.Validity, word)
	}
	return string(s.Validity)
}
