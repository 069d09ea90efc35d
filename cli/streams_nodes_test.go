package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// streamNode is a node as a process of its own, with a folder of files.
type streamNode struct {
	*clitest.Process
	id, address, dir string
}

// streamNodes are so many nodes, and a server that dials them, and what else is given.
func streamNodes(t *testing.T, n int, more ...string) (streamsServer, []*streamNode, *clitest.Program) {
	t.Helper()
	p := clitest.NewProgram(t)
	var nodes []*streamNode
	var addresses []string
	for i := range n {
		node := &streamNode{dir: p.Path(fmt.Sprintf("node-%d", i)), address: "127.0.0.1:0"}
		if err := os.MkdirAll(filepath.Join(node.dir, "streams"), 0o700); err != nil {
			t.Fatal(err)
		}
		node.begin(t)
		nodes, addresses = append(nodes, node), append(addresses, node.address)
	}
	var args []string
	for i := 0; i < len(more); i++ {
		if more[i] == "--nodes" {
			i++
			addresses = append(addresses, more[i])
			continue
		}
		args = append(args, more[i])
	}
	s := streamsServer{p.Serve(append([]string{"--nodes", strings.Join(addresses, ",")}, args...)...)}
	for _, node := range nodes {
		s.worker(node.id, "ACTIVE")
	}
	return s, nodes, p
}

// begin starts the node's process, on the address that it had.
func (n *streamNode) begin(t *testing.T) {
	t.Helper()
	n.Process = clitest.Launch(t, "worker", "--listen", n.address, "--data-dir", n.dir)
	clitest.WaitFor(t, clitest.StartTimeout, "the node's name", func() bool {
		for line := range strings.Lines(n.Out.String()) {
			if _, err := fmt.Sscanf(line, "The node %s listens on %s\n", &n.id, &n.address); err == nil {
				return true
			}
		}
		return false
	})
}

func (n *streamNode) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.Cmd.Process.Signal(s); err != nil {
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
	s.T.Helper()
	if err := json.Unmarshal([]byte(s.MustGet("/api/v1/streams")), &all); err != nil {
		s.T.Fatal(err)
	}
	return all
}

// worker waits for the state of a worker.
func (s streamsServer) worker(host, state string) {
	s.T.Helper()
	clitest.WaitFor(s.T, time.Minute, host+" "+state, func() bool {
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
	clitest.Long(t, "several processes, or runs of many seconds")
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
	writeStream(t, p.Path("data"), "a.csv", own)
	whole.WriteString(own)
	writeStream(t, p.Path("data"), "whole.csv", whole.String())
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
		text, err := os.ReadFile(filepath.Join(p.Path("data"), "streams", name))
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
	s.Stop()
}

// endless is a source that a test feeds, line by line.
func endless(t *testing.T) (port int, send func(lines string)) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, func(lines string) {
		mu.Lock()
		defer mu.Unlock()
		for c := range conns {
			if _, err := io.WriteString(c, lines); err != nil {
				delete(conns, c)
			}
		}
	}
}

// only is the one query of a name.
func (s streamsServer) only(name string) (q struct {
	State, Failure string
	Output         []string
	Hosts          map[string]string
	Attempts       int64
}) {
	s.T.Helper()
	for _, one := range s.shown().Queries {
		if one.Name != name {
			continue
		}
		q.State, q.Failure, q.Output, q.Hosts = one.State, one.Failure, one.Output, map[string]string{}
		for _, f := range one.Fragments {
			q.Hosts[f.Host] = f.State
			q.Attempts = max(q.Attempts, f.Attempts)
		}
	}
	return q
}

// TestANodeIsLostAndComesBack: killed, standing still, or drained, in the middle of a query. The query does not go on
// without it, and begins anew when it is back; dropped meanwhile its name is taken until the node says that
// nothing runs.
func TestANodeIsLostAndComesBack(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	s, nodes, _ := streamNodes(t, 2)
	var sends []func(string)
	sources := "CREATE LOGICAL SOURCE a(ts INT64, host TEXT, v INT64); CREATE SINK out TYPE PRINT;"
	for _, n := range nodes {
		port, send := endless(t)
		sends = append(sends, send)
		sources += fmt.Sprintf("CREATE PHYSICAL SOURCE FOR a TYPE TCP ON `%s` SET('127.0.0.1' AS SOURCE.SOCKET_HOST, "+
			"%d AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE);", n.id, port)
	}
	s.done(sources + "CREATE QUERY q AS SELECT start, COUNT(*) AS n, SUM(v) AS s FROM a WINDOW TUMBLING(ts, SIZE 1 SEC) " +
		"INTO out")
	s.until("q", "RUNNING")
	both := func(lines string) {
		for _, send := range sends {
			send(lines)
		}
	}
	both("100,h,1\n200,h,2\n1100,h,4\n2200,h,8\n")
	printed := func(want string) {
		t.Helper()
		clitest.WaitFor(t, time.Minute, "the rows "+want, func() bool { return fmt.Sprint(s.only("q").Output) == want })
	}
	printed("[0,4,6 1000,2,8]")

	for _, how := range []string{"drained", "killed", "stopped"} {
		n := nodes[1]
		before := s.only("q").Attempts
		switch how {
		case "drained":
			n.signal(t, syscall.SIGTERM)
			<-n.Done
		case "killed":
			n.signal(t, syscall.SIGKILL)
			<-n.Done
		default:
			n.signal(t, syscall.SIGSTOP)
		}
		s.until("q", "DEPLOYING")
		s.worker(n.id, "UNREACHABLE")
		clitest.WaitFor(t, time.Minute, "the others have ended", func() bool {
			q := s.only("q")
			return q.Hosts["server"] != "RUNNING" && q.Hosts[nodes[0].id] != "RUNNING" &&
				strings.Contains(q.Failure, n.id)
		})
		both("2300,h,1\n9000,h,1\n") // nobody reads: what there would be is not half of the truth
		if how != "stopped" {
			n.begin(t)
		} else {
			n.signal(t, syscall.SIGCONT)
		}
		s.until("q", "RUNNING")
		if q := s.only("q"); q.Attempts <= before {
			t.Errorf("%s: it was attempted %d times, then %d", how, before, q.Attempts)
		}
		both("100,h,1\n200,h,2\n1100,h,4\n2200,h,8\n")
		printed("[0,4,6 1000,2,8]")
	}

	n := nodes[1]
	n.signal(t, syscall.SIGSTOP)
	s.worker(n.id, "UNREACHABLE")
	s.done("DROP QUERY q")
	s.until("q", "STOPPING_STUCK")
	if status, body, _ := s.statements("CREATE QUERY q AS SELECT v FROM a INTO out"); status != 409 ||
		!strings.Contains(body, "NameLocked") {
		t.Errorf("%d %s", status, body)
	}
	n.signal(t, syscall.SIGCONT)
	s.until("q", "")
	for _, w := range s.shown().Workers {
		if w.Used != 0 {
			t.Errorf("%+v", w)
		}
	}
	s.Stop()
}

// TestSinksOfNodes: a file of a node, from a source of another one through the server, and from one of the server's;
// what a node may not open ends the query with the reason, and a graceful drop loses nothing.
func TestSinksOfNodes(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s, nodes, p := streamNodes(t, 2)
	writeStream(t, nodes[0].dir, "a.csv", rowsOf("h0", 30, 10))
	writeStream(t, p.Path("data"), "b.csv", rowsOf("h1", 30, 10))
	if err := os.Symlink("..", filepath.Join(nodes[0].dir, "streams", "up")); err != nil {
		t.Fatal(err)
	}
	port, send := endless(t)
	s.done(fmt.Sprintf("CREATE LOGICAL SOURCE a(ts INT64, host TEXT, v INT64); CREATE LOGICAL SOURCE b(ts INT64, "+
		"host TEXT, v INT64); CREATE LOGICAL SOURCE c(ts INT64, host TEXT, v INT64); CREATE LOGICAL SOURCE d(x INT64);"+
		"CREATE PHYSICAL SOURCE FOR a TYPE FILE ON `%[1]s` SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);"+
		"CREATE PHYSICAL SOURCE FOR b TYPE FILE SET('b.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);"+
		"CREATE PHYSICAL SOURCE FOR c TYPE TCP ON `%[1]s` SET('127.0.0.1' AS SOURCE.SOCKET_HOST, %[3]d AS "+
		"SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE);"+
		"CREATE PHYSICAL SOURCE FOR d TYPE FILE ON `%[1]s` SET('up/node-id' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);"+
		"CREATE SINK there TYPE FILE ON `%[2]s` SET('there.csv' AS SINK.FILE_PATH);"+
		"CREATE SINK printed TYPE PRINT ON `%[2]s`; CREATE SINK hook TYPE WEBHOOK ON `%[2]s` SET('http://h/' AS SINK.URL);"+
		"CREATE SINK drained TYPE FILE ON `%[2]s` SET('drained.csv' AS SINK.FILE_PATH);"+
		"CREATE QUERY joined AS SELECT a.ts AS ts, a.v + b.v AS v FROM a JOIN b ON a.ts = b.ts "+
		"WINDOW TUMBLING(ts, SIZE 10 SEC) INTO there;"+
		"CREATE QUERY prints AS SELECT host || '!' AS said FROM a WHERE ts = 3000 INTO printed;"+
		"CREATE QUERY drains AS SELECT ts, LAG(v) OVER () AS l FROM c INTO drained;"+
		"CREATE QUERY climbs AS SELECT x FROM d INTO printed",
		nodes[0].id, nodes[1].id, port))
	if status, body, _ := s.statements("SELECT v FROM a INTO hook"); status != 422 ||
		!strings.Contains(body, "PlacementError") {
		t.Errorf("%d %s", status, body)
	}
	s.until("joined", "TERMINATED")
	s.until("prints", "TERMINATED")
	s.until("climbs", "FAILED")
	if q := s.only("climbs"); !strings.Contains(q.Failure, "there is a link in it") {
		t.Errorf("%+v", q)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(nodes[1].dir, "streams", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := strings.Split(read("there.csv"), "\n"); len(got) != 302 || !slices.Contains(got, "0,0") {
		t.Errorf("%d lines were written: %q", len(got), got[:min(len(got), 5)])
	}
	clitest.WaitFor(t, time.Minute, "what was printed", func() bool {
		return strings.Contains(nodes[1].Out.String(),
			"h0!\n")
	})
	s.until("drains", "RUNNING")
	send("1,h,1\n2,h,2\n3,h,3\n")
	clitest.WaitFor(t, time.Minute, "the first rows", func() bool { return strings.Contains(read("drained.csv"), "3,2") })
	send("4,h,4\n")
	time.Sleep(300 * time.Millisecond) // it is on its way
	s.done("DROP QUERY drains GRACEFUL")
	s.until("drains", "")
	if got := read("drained.csv"); got != "ts,l\n1,\n2,1\n3,2\n4,3\n" {
		t.Errorf("%q", got)
	}
	// What reads on a node that drains goes on, and nothing new comes to it.
	s.done("CREATE QUERY stays AS SELECT v FROM c INTO printed")
	s.until("stays", "RUNNING")
	for _, requested := range []string{"drain", "resume"} {
		if code, text := p.Command("node", requested, nodes[0].id, "--data-dir", p.Path("data")); code != 0 {
			t.Fatalf("%s: %d %s", requested, code, text)
		}
		state, status := "DRAINING", 422
		if requested == "resume" {
			state, status = "ACTIVE", 200
		}
		s.worker(nodes[0].id, state)
		if got, body, _ := s.statements("CREATE QUERY comes AS SELECT v FROM c INTO printed"); got != status ||
			status == 422 && !strings.Contains(body, "takes nothing new") {
			t.Errorf("%s: %d %s", state, got, body)
		}
		if q := s.only("stays"); q.State != "RUNNING" || q.Attempts != 1 {
			t.Errorf("%s: %+v", state, q)
		}
	}
	s.until("comes", "RUNNING")
	s.Stop()
}

// TestANodeThatJoinedRunsFragments: its rows come over TLS, from the node of the stream; once it is revoked nothing of
// it runs on.
func TestANodeThatJoinedRunsFragments(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	nodes := func(args ...string) string {
		t.Helper()
		code, text := p.Command(append(append([]string{"node"}, args...), "--data-dir", p.Path("data"))...)
		if code != 0 {
			t.Fatalf("node %v: %d %s", args, code, text)
		}
		return text
	}
	token, _, _ := strings.Cut(nodes("token"), "\n")
	file := p.Write("token", token+"\n")
	n := clitest.StartNode(t, p.Path("joined"), "", "--join-file", file)
	nodes("add", n.Address)
	name, err := os.ReadFile(filepath.Join(n.Dir, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(name))
	s.worker(id, "ACTIVE")
	port, send := endless(t)
	s.done(fmt.Sprintf("CREATE LOGICAL SOURCE a(v INT64); CREATE SINK out TYPE PRINT; "+
		"CREATE PHYSICAL SOURCE FOR a TYPE TCP ON `%s` SET('127.0.0.1' AS SOURCE.SOCKET_HOST, "+
		"%d AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE); CREATE QUERY q AS SELECT v + 1 AS w FROM a INTO out", id, port))
	s.until("q", "RUNNING")
	send("1\n2\n")
	clitest.WaitFor(t, time.Minute, "the rows", func() bool { return fmt.Sprint(s.only("q").Output) == "[2 3]" })
	nodes("revoke", id)
	s.until("q", "DEPLOYING")
	clitest.WaitFor(t, time.Minute, "the end of the fragment", func() bool {
		return strings.Contains(n.Out.String(), "a fragment of a continuous query has ended")
	})
	// Nobody waits for a node that was removed: the query fails, and everything on the node can be dropped.
	nodes("remove", n.Address)
	s.until("q", "FAILED")
	if q := s.only("q"); !strings.Contains(q.Failure, id) || !strings.Contains(q.Failure, "was removed") {
		t.Errorf("it says %q", q.Failure)
	}
	shown := s.done("SHOW PHYSICAL SOURCES FOR a")
	s.done("DROP QUERY q; DROP SINK out; DROP PHYSICAL SOURCE " + physicalID(t, shown) + "; DROP LOGICAL SOURCE a; " +
		"DROP WORKER `" + id + "`")
	s.Stop()
}

// physicalID is the id in an answer that shows one physical source.
func physicalID(t *testing.T, shown string) string {
	t.Helper()
	var answer struct {
		Results []struct{ Rows [][]string }
	}
	if err := json.Unmarshal([]byte(shown), &answer); err != nil || len(answer.Results) != 1 ||
		len(answer.Results[0].Rows) != 1 {
		t.Fatalf("%s: %v", shown, err)
	}
	return answer.Results[0].Rows[0][0]
}
