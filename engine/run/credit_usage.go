package run

import "time"

// CreditUsage adds up what a run uses of its warehouse: each poll holds until the next.
type CreditUsage struct {
	since   time.Time
	perHour float64 // of the latest poll
	total   float64
	unknown bool
}

// RecordPoll takes a poll that costs so much an hour; known is false where nobody knows.
func (s *CreditUsage) RecordPoll(at time.Time, perHour float64, known bool) {
	if !s.since.IsZero() {
		s.total += max(at.Sub(s.since).Hours(), 0) * s.perHour
	}
	s.since, s.perHour, s.unknown = at, perHour, s.unknown || !known
}

// Credits are those used up to now, nil when they are not known.
func (s *CreditUsage) Credits(now time.Time) *float64 {
	if s.since.IsZero() || s.unknown {
		return nil
	}
	sum := s.total + max(now.Sub(s.since).Hours(), 0)*s.perHour
	return &sum
}
