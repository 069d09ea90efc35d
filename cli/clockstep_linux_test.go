package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// buildWithSettableClock builds the program with a wall clock of its own: the time package is compiled with an offset
// that SIGUSR1 raises by an hour and SIGUSR2 lowers, see clockset_test.go. All that the program knows of the time of
// day steps then, as when a machine's clock is set, and its monotonic clock does not.
func buildWithSettableClock(t *testing.T) string {
	t.Helper()
	dir := reachable(t)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const read = "\tsec, nsec, mono := runtimeNow()\n"
	if n := strings.Count(string(text), read); n != 1 {
		t.Fatalf("the clock is read in %d places of %s", n, path)
	}
	changed := strings.Replace(string(text), read, read+"\tsec += wallStep\n", 1) +
		"\n// wallStep is the test's.\n//\n//go:linkname wallStep\nvar wallStep int64\n"
	file := filepath.Join(dir, "program")

	cmd := exec.Command("go", "test", "-c", "-buildvcs=false", "-trimpath", "-tags", "settableclock",
		overlay(t, dir, map[string]string{path: changed}),
		"-ldflags=-s -w", "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// TestClocksThatStepUnderLoad: those of a node, of the server and of both go an hour ahead and back while a run goes
// on. Nothing is offered twice or late, what is recorded is in the server's time as it was, and the run says what
// happened.
func TestClocksThatStepUnderLoad(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("builds everything with another clock; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	program, dir := buildWithSettableClock(t), reachable(t)
	var nodes [2]*clitest.RemoteNode
	var addresses []string
	for i := range nodes {
		n := &clitest.RemoteNode{Dir: t.TempDir()}
		n.Process = clitest.LaunchProgram(t, program, "worker", "--listen", "127.0.0.1:0", "--data-dir", n.Dir)
		clitest.WaitFor(t, clitest.StartTimeout, "the node's address", func() bool {
			_, after, ok := strings.Cut(n.Out.String(), " listens on ")
			n.Address, _, _ = strings.Cut(after, "\n")
			return ok && strings.Contains(after, "\n")
		})
		nodes[i], addresses = n, append(addresses, n.Address)
	}
	served := clitest.LaunchProgram(t, program, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir",
		dir,
		"--nodes", strings.Join(addresses, ","), "--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	p := &nodePair{t: t, dir: dir, served: served, session: session, nodes: nodes[:]}
	clitest.Until(t, clitest.StartTimeout, func() bool { return p.accepting() == 2 }, served.Out.String)
	const seconds = 60
	run := p.begin(pgtest.Start(t).NewDatabase(t), seconds)
	for _, step := range [][]*clitest.Process{{nodes[0].Process}, {served}, {nodes[0].Process, nodes[1].Process, served}} {
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
			for _, one := range step {
				if err := one.Cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(7 * time.Second)
		}
	}
	d := session.AwaitEnd(run.RunID, served)
	var due []int64
	for _, w := range recordedOperations(t, run.RunID, filepath.Join(dir, "results"), nodes[:]...) {
		due = append(due, w.due...)
	}
	limit, a := maxPerSecond(due), d.Summary.Accounting
	first, last := time.Unix(0, slices.Min(due)), time.Unix(0, slices.Max(due))
	var message []string
	for _, c := range d.Summary.ValidityDetail.Causes {
		message = append(message, fmt.Sprintf("%s: %s", c.Cause, c.Detail))
	}
	message = append(message, d.Summary.ValidityDetail.Notes...)
	t.Logf("%s, %s; %.1f/s over %.1f s; due from %v to %v, at most %d in a second; %+v; %q", d.Status, d.Summary.Validity,
		*d.Summary.QPS, d.Summary.DurationSeconds, first, last, limit, a, message)
	if d.Status != engine.StatusCompleted || !a.Balanced || a.Recorded != a.Started || a.Scheduled < 200*seconds*95/100 ||
		limit > 204 || d.Summary.DurationSeconds < seconds-1 || d.Summary.DurationSeconds > seconds+1 {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, a)
	}
	if from, to := d.Summary.MeasuredFrom, d.Summary.MeasuredTo; first.Before(from.Add(-time.Second)) ||
		last.After(to.Add(time.Second)) {
		t.Errorf("measured from %v to %v, and due from %v to %v", from, to, first, last)
	}
	// Twice the server's was set, with each way: ahead, and back.
	for _, route := range []string{"forward by 3600.0 s", "back by 3600.0 s"} {
		what := engine.CauseClockStep + ": the machine's clock was set " + route
		if n := strings.Count(strings.Join(message, "\n"), what); n != 2 {
			t.Errorf("%d times it is said that the clock was set %s", n, route)
		}
	}
	// An end of a stream whose clock went back takes what it heard before for what it has heard last (gRPC reckons its
	// keepalive by the wall clock), and closes the connection within 15 s, once. The stream is back at once.
	left, broken := map[string]time.Time{}, map[string]int{}
	for line := range strings.Lines(served.Out.String()) {
		var l struct {
			NodeID, State, Why string
			Time               time.Time
		}
		if json.Unmarshal([]byte(strings.ReplaceAll(line, "node_id", "NodeID")), &l) != nil || l.NodeID == "" {
			continue
		}
		switch from := left[l.NodeID]; {
		case l.State == "UNREACHABLE" && l.Why == "its stream has broken":
			left[l.NodeID] = l.Time
			broken[l.NodeID]++
		case l.State == "ACTIVE" && !from.IsZero():
			if away := l.Time.Sub(from); away < 0 || away > 2*time.Second {
				t.Errorf("%s was away for %v", l.NodeID, away)
			}
			delete(left, l.NodeID)
		case l.State != "" && l.State != "ACTIVE":
			t.Errorf("%s", line)
		}
	}
	t.Logf("streams that broke: %v", broken)
	for id, n := range broken {
		if !left[id].IsZero() || n > 3 {
			t.Errorf("the stream of %s broke %d times, and it is away since %v", id, n, left[id])
		}
	}
}
