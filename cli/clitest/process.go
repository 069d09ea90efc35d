package clitest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// StartTimeout is what a process gets to begin a run, or to notice one: with the race
// detector, on a machine that has other work, it compiles plugins for a while.
const StartTimeout = 3 * time.Minute

// Process is the program in a process of its own.
type Process struct {
	Cmd  *exec.Cmd
	Out  Output
	Done chan struct{}
	Err  error
}

// Output is what a process has written so far; a test reads it while the process writes.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// LeasesOf are those of the programs that a test launches, by its name.
var LeasesOf sync.Map

// Launch starts the program with its arguments; it is killed with the test.
func Launch(t *testing.T, args ...string) *Process {
	t.Helper()
	return LaunchProgram(t, ProgramFile(t), args...)
}

// LaunchProgram launches a file that is the program, or the test binary, which then is it.
func LaunchProgram(t *testing.T, file string, args ...string) *Process {
	t.Helper()
	fillDataDir(t, args, nil)
	p := &Process{Cmd: exec.CommandContext(context.Background(), file, args...), Done: make(chan struct{})}
	p.Cmd.Env = append(os.Environ(), ProgramEnv+"=1")
	if limit, ok := LeasesOf.Load(t.Name()); ok {
		p.Cmd.Env = append(p.Cmd.Env, LeaseEnv+"="+limit.(string))
	}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Out, &p.Out
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.Err = p.Cmd.Wait(); close(p.Done) }()
	t.Cleanup(func() { _ = p.Cmd.Process.Kill(); <-p.Done })
	return p
}

// Wait waits, so long at most, for the end of a process, and returns with what it ended.
func (p *Process) Wait(t *testing.T, limit time.Duration) error {
	t.Helper()
	select {
	case <-p.Done:
		return p.Err
	case <-time.After(limit):
		t.Fatalf("the process has not ended: %s", p.Out.String())
		return nil
	}
}
