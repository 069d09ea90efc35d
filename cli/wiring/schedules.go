package wiring

import "github.com/loadstone-db/loadstone/engine/run/schedule"

// OpenSchedules returns the schedules; the server has their runs start.
func (s *Services) OpenSchedules() *schedule.Service {
	o := schedule.Options{Store: s.Store, Owner: s.owner, Log: s.Log}
	if n := s.watched.notifier.Load(); n != nil {
		o.Missed = n
	}
	return schedule.New(o)
}
