package protocol

// WorkerOf are the run worker that a message of a node is about, and its result, "" where it names none.
func WorkerOf(m FromNode) (workerID, resultID string) {
	switch m := m.(type) {
	case Snapshot:
		return m.WorkerID, m.ResultID
	case Log:
		return m.WorkerID, m.ResultID
	case WorkReady:
		return m.Artifact.WorkerID, m.Artifact.ResultID
	case RunRejected:
		return m.WorkerID, ""
	case WorkerState:
		return m.WorkerID, m.ResultID
	}
	return "", ""
}
