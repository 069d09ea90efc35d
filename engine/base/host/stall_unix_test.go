//go:build unix

package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopped names the child of TestAProcessThatWasStoppedKnowsIt.
const stopped = "LOADSTONE_TEST_STOPPED"

func TestMain(m *testing.M) {
	if os.Getenv(stopped) == "" {
		os.Exit(m.Run())
	}
	s := New()
	go s.Watch(context.Background(), func() bool { return true })
	fmt.Println("runs")
	in := bufio.NewReader(os.Stdin)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		time.Sleep(3 * pollInterval) // for the look that was due
		fmt.Println(s.Sample().MaxStallMs)
	}
}

// TestAProcessThatWasStoppedKnowsIt: nothing in a process tells it of a SIGSTOP but its own lateness.
func TestAProcessThatWasStoppedKnowsIt(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stopped+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != "runs" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	still := func() (ms float64) {
		t.Helper()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(lines, &ms); err != nil {
			t.Fatal(err)
		}
		return ms
	}
	still() // what its start took
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	time.Sleep(1500 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ms := still()
	if most := float64(time.Since(from).Milliseconds()); ms < 1300 || ms > most {
		t.Errorf("a process that was stopped for 1500 ms says %.0f, at most %.0f", ms, most)
	}
	// A run worker may miss a sample, and not two of them.
	if again := still(); again != ms {
		t.Errorf("the sample after it says %.0f", again)
	}
	if ms := still(); ms >= 1300 {
		t.Errorf("it says so for ever: %.0f", ms)
	}
}
