package load

// ioEngine drives slots: it takes their operations from the source, waits for
// the pacer, executes and records. goroutines is the one that works with every
// driver; an event loop over raw connections can take its place where the
// driver offers them.
type ioEngine interface {
	// add begins to drive a slot that has an open connection.
	add(s *slot)
	// name is for the run's environment.
	name() string
}
