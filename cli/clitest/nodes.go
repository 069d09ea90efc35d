package clitest

import (
	"fmt"
	"strings"
	"testing"
)

// RemoteNode is a node in a process of its own.
type RemoteNode struct {
	*Process
	Dir, Address string
}

// StartNode starts a node; address is "" for any.
func StartNode(t *testing.T, dir, address string, args ...string) *RemoteNode {
	t.Helper()
	return StartNodeOf(t, ProgramFile(t), dir, address, args...)
}

// StartNodeOf is a node of another program.
func StartNodeOf(t *testing.T, program, dir, address string, args ...string) *RemoteNode {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	args = append([]string{"worker", "--listen", address, "--data-dir", dir}, args...)
	n := &RemoteNode{Process: LaunchProgram(t, program, args...), Dir: dir}
	WaitFor(t, StartTimeout, "the node's address", func() bool {
		for line := range strings.Lines(n.Out.String()) {
			if _, after, ok := strings.Cut(line, " listens on "); ok && strings.HasSuffix(line, "\n") {
				n.Address = strings.TrimSpace(after)
			}
		}
		return n.Address != ""
	})
	return n
}

// TemplateOnNodes is a run with a run worker for each of so many nodes.
func TemplateOnNodes(dsn, name string, workers, seconds int) string {
	return fmt.Sprintf(`name: %s
target: {connection: {driver: postgres, dsn: %q}, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 80, UPDATE: 20}}, load_mode: QPS, target_qps: 600,
  concurrent_connections: %d, warmup_seconds: 1, duration_seconds: %d}
scaling: {mode: FIXED, worker_count: %d, per_worker_capacity: 2}
`, name, dsn, 2*workers, seconds, workers)
}
