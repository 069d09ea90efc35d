package wiring

import (
	"os"
	"runtime"

	"github.com/loadstone-db/loadstone/engine/worker"
)

// BusyReason says why nothing should be refreshed beside a node: it carries a run, whose figures would be of the
// refresh too. Without a node nothing is ever in the way.
func BusyReason(node *worker.Node) func() string {
	if node == nil {
		return nil
	}
	return func() string {
		if node.HasWorker() {
			return "a run is carried on this machine"
		}
		return ""
	}
}

// ingestCores is how many cores the reading of a record takes: beside a node one is left for a run that begins, and
// while one is carried, where a refresh goes on in spite of it, it takes one alone.
func ingestCores(node *worker.Node) int {
	cores := runtime.GOMAXPROCS(0)
	switch {
	case node == nil:
		return cores
	case node.HasWorker():
		return 1
	}
	return max(1, cores-1)
}

// hostname is for people to know a process by.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
