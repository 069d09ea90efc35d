package load

// eventTimers is a heap of the slots that wait for a time.
type eventTimers []*slot

func (t eventTimers) Len() int           { return len(t) }
func (t eventTimers) Less(i, j int) bool { return t[i].event.until < t[j].event.until }
func (t eventTimers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].event.place, t[j].event.place = i, j
}

// Push implements heap.Interface.
func (t *eventTimers) Push(x any) {
	s := x.(*slot)
	s.event.place = len(*t)
	*t = append(*t, s)
}

// Pop implements heap.Interface.
func (t *eventTimers) Pop() any {
	old := *t
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return s
}
