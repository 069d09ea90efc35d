package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// streamNode is a node as a process of its own, with a folder of files.
type streamNode struct {
	*process
	id, address, dir string
}

// streamNodes are so many nodes, and a server that dials them.
func streamNodes(t *testing.T, n int) (streamsServer, []*streamNode, *program) {
	t.Helper()
	p := newProgram(t)
	var nodes []*streamNode
	var addresses []string
	for i := range n {
		node := &streamNode{dir: p.path(fmt.Sprintf("node-%d", i)), address: "127.0.0.1:0"}
		if err := os.MkdirAll(filepath.Join(node.dir, "streams"), 0o700); err != nil {
			t.Fatal(err)
		}
		node.begin(t)
		nodes, addresses = append(nodes, node), append(addresses, node.address)
	}
	s := streamsServer{p.serve("--nodes", strings.Join(addresses, ","))}
	for _, node := range nodes {
		s.worker(node.id, "ACTIVE")
	}
	return s, nodes, p
}

// begin starts the node's process, on the address that it had.
func (n *streamNode) begin(t *testing.T) {
	t.Helper()
	n.process = launch(t, "worker", "--listen", n.address, "--data-dir", n.dir)
	waitFor(t, startLimit, "the node's name", func() bool {
		for line := range strings.Lines(n.out.String()) {
			if _, err := fmt.Sscanf(line, "The node %s listens on %s\n", &n.id, &n.address); err == nil {
				return true
			}
		}
		return false
	})
}

func (n *streamNode) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// write puts a file into the folder of streams of a data directory.
func writeStream(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "streams", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// streamsShown is what GET /api/v1/streams shows, as far as tests want it.
type streamsShown struct {
	Queries []struct {
		Name, State, Failure string
		Output               []string
		Fragments            []struct {
			Host     string `json:"host_name"`
			Plan     string
			State    string
			Attempts int64
			Failure  string
			Live     *struct{ In, Out int64 }
		}
		Live *struct{ In, Out, Late, Malformed, Dropped int64 }
	}
	Workers []struct {
		Host  string `json:"host_name"`
		State string
		Slots int64
		Used  int64 `json:"used_slots"`
	}
}

func (s streamsServer) shown() (all streamsShown) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.get("/api/v1/streams")), &all); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// worker waits for the state of a worker.
func (s streamsServer) worker(host, state string) {
	s.t.Helper()
	waitFor(s.t, time.Minute, host+" "+state, func() bool {
		for _, w := range s.shown().Workers {
			if w.Host == host && w.State == state {
				return true
			}
		}
		return false
	})
}

// rowsOf are lines of a source "ts, host, v": so many seconds with so many rows each.
func rowsOf(host string, seconds, each int) string {
	var b strings.Builder
	for s := range seconds {
		for i := range each {
			fmt.Fprintf(&b, "%d,%s,%d\n", s*1000+i%1000, host, (s*7+i*13)%101)
		}
	}
	return b.String()
}

const perHost = "SELECT start, host, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM a WHERE v <> 5 GROUP BY host " +
	"WINDOW TUMBLING(ts, SIZE 10 SEC) INTO out"

// TestAQueryOverTwoNodes: files of two nodes and one of the server are added up where they are, and merged at the
// server: what is written is what one process gives for the same rows.
func TestAQueryOverTwoNodes(t *testing.T) {
	t.Parallel()
	s, nodes, p := streamNodes(t, 2)
	var whole strings.Builder
	const seconds, each = 60, 300
	for i, n := range nodes {
		text := rowsOf(fmt.Sprintf("h%d", i), seconds, each)
		writeStream(t, n.dir, "a.csv", text)
		whole.WriteString(text)
	}
	own := rowsOf("h2", seconds, each) + "not a row\n"
	writeStream(t, p.path("data"), "a.csv", own)
	whole.WriteString(own)
	writeStream(t, p.path("data"), "whole.csv", whole.String())
	const parser = "'CSV' AS PARSER.TYPE"
	sources := "CREATE LOGICAL SOURCE a(ts INT64, host TEXT, v INT64);" +
		"CREATE LOGICAL SOURCE w(ts INT64, host TEXT, v INT64);" +
		"CREATE PHYSICAL SOURCE FOR w TYPE FILE SET('whole.csv' AS SOURCE.FILE_PATH, " + parser + ");" +
		"CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, " + parser + ");"
	for _, n := range nodes {
		sources += "CREATE PHYSICAL SOURCE FOR a TYPE FILE ON `" + n.id + "` SET('a.csv' AS SOURCE.FILE_PATH, " +
			parser + ");"
	}
	s.done(sources + "CREATE SINK out TYPE FILE SET('out.csv' AS SINK.FILE_PATH);" +
		"CREATE SINK one TYPE FILE SET('one.csv' AS SINK.FILE_PATH);")
	// LATENESS: the rows of the whole file come host by host.
	single := strings.NewReplacer("FROM a", "FROM w", "INTO out", "INTO one", "10 SEC", "10 SEC, LATENESS 1 HOUR").
		Replace(perHost)
	explained := s.done("EXPLAIN " + perHost)
	for _, want := range []string{"Fragment on " + nodes[0].id, "Fragment on server", "Partial Aggregate",
		"Merge partial aggregates of a"} {
		if !strings.Contains(explained, want) {
			t.Errorf("EXPLAIN says nothing of %q: %s", want, explained)
		}
	}
	s.done("CREATE QUERY split AS " + perHost + "; CREATE QUERY single AS " + single)
	s.until("split", "TERMINATED")
	s.until("single", "TERMINATED")
	lines := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(p.path("data"), "streams", name))
		if err != nil {
			t.Fatal(err)
		}
		list := strings.Split(strings.TrimSpace(string(text)), "\n")
		slices.Sort(list)
		return list
	}
	if got, want := lines("out.csv"), lines("one.csv"); len(want) != 3*seconds/10+1 || !slices.Equal(got, want) {
		t.Errorf("over two nodes:\n%s\nin one process:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.stop()
}
