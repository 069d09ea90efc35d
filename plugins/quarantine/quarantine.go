package quarantine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
)

// The limits of one examination; docs/decisions tells how they were chosen.
const (
	// MemoryLimit is how many bytes the child may map for writing.
	MemoryLimit = 256 << 20
	// ProcessorLimit is the processor time that the child may use.
	ProcessorLimit = 10 * time.Second
	// WallLimit is how long the child may live. Behind everything else of a busy machine, a second of processor time
	// takes most of it.
	WallLimit = 60 * time.Second
	// QueueLimit is how many callers may wait for the one that is being served.
	QueueLimit = 16

	// niceness of the child: a tenth of the weight of a run's threads. At 19 it has a hundredth, and on a machine of 2
	// cores at a load of 12 it got 0.12 s of processor time in 10 s: no file could be examined beside a run.
	niceness = 10
	// softMemory leaves Go's collector room to keep an honest compilation under MemoryLimit.
	softMemory = 160 << 20
	maxAnswer  = 8 << 20
	maxStderr  = 16 << 10
)

// Examine has the file in wasm examined and returns what it says about itself.
// An error that wraps plugin.ErrRefused is about the file; any other is about
// this machine, and the same file may pass later.
type Examine func(ctx context.Context, wasm []byte) (plugin.Info, error)

// Options of a Quarantine.
type Options struct {
	// Program is the child's program and its arguments; empty means the running
	// binary with Command.
	Program []string
	// Wall is how long a child may live; 0 means WallLimit.
	Wall time.Duration
	Log  zerolog.Logger
}

// Quarantine examines files one after the other. It is safe for concurrent use
// and needs no closing: a child lives as long as the call that made it.
type Quarantine struct {
	program []string
	wall    time.Duration
	log     zerolog.Logger
	turn    chan struct{} // holds a token while a child lives
	queue   chan struct{} // holds a token for each caller
}

// New makes a quarantine. It fails when the running binary cannot find itself.
func New(o Options) (*Quarantine, error) {
	q := &Quarantine{program: o.Program, wall: o.Wall, log: o.Log, turn: make(chan struct{}, 1),
		queue: make(chan struct{}, QueueLimit+1)}
	if len(q.program) == 0 {
		self, err := executable()
		if err != nil {
			return nil, fmt.Errorf("finding the program for quarantine: %w", err)
		}
		q.program = []string{self, Command}
	}
	if q.wall == 0 {
		q.wall = WallLimit
	}
	return q, nil
}

var _ Examine = (*Quarantine)(nil).Examine

// Examine reads the file at the gate and then has a child compile and try it.
// When ctx ends, the child is killed and ctx's error returned.
func (q *Quarantine) Examine(ctx context.Context, wasm []byte) (plugin.Info, error) {
	if err := host.Gate(wasm); err != nil {
		return plugin.Info{}, err
	}
	select {
	case q.queue <- struct{}{}:
		defer func() { <-q.queue }()
	default:
		return plugin.Info{}, busy("too many files are waiting to be examined")
	}
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return plugin.Info{}, fmt.Errorf("waiting for the quarantine: %w", ctx.Err())
	}
	info, err := q.run(ctx, wasm)
	if err != nil {
		return plugin.Info{}, err
	}
	sum := sha256.Sum256(wasm)
	info.SHA256, info.SizeBytes = hex.EncodeToString(sum[:]), int64(len(wasm))
	return info, nil
}

const memoryExceeded = "it used more than 256 MB while it was compiled and tried"

func busy(why string) error {
	return &engine.Error{Code: engine.CodeUnavailable, Message: "The file was not examined: " + why + ".",
		Hint: "upload it again a little later"}
}

func refuse(why string) error {
	return &engine.Error{Code: engine.CodePlugin, Message: "The file is not a plugin that this version accepts: " + why +
		".", Cause: plugin.ErrRefused}
}

// childResult is how a child ended.
type childResult struct {
	stdout, stderr limitedBuffer
	err            error // of starting or of the child's end
	timedOut       bool  // it was killed because of the wall limit
	cpu            time.Duration
}

func (q *Quarantine) run(ctx context.Context, wasm []byte) (plugin.Info, error) {
	// The kernel ties a child's life to the thread that made it, not to the process.
	done := make(chan childResult, 1)
	began := time.Now()
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- q.child(ctx, wasm)
	}()
	o := <-done
	if ctx.Err() != nil {
		return plugin.Info{}, fmt.Errorf("examining a plugin file: %w", ctx.Err())
	}
	info, err := o.evaluate(q.wall)
	event := q.log.Debug() //nolint:zerologlint // it is sent below
	if err != nil {
		event = q.log.Info().Str("reason", engine.AsError(err).Message) //nolint:zerologlint // as above
		if s := o.stderr.firstLine(); s != "" {
			event = event.Str("stderr", s)
		}
	}
	event.Int("bytes", len(wasm)).Dur("took", time.Since(began)).Dur("cpu", o.cpu).
		Msg("plugin file examined in quarantine")
	return info, err
}

func (q *Quarantine) child(ctx context.Context, wasm []byte) childResult {
	limited, cancel := context.WithTimeout(ctx, q.wall)
	defer cancel()
	o := childResult{stdout: limitedBuffer{limit: maxAnswer, full: cancel}, stderr: limitedBuffer{limit: maxStderr}}
	cmd := exec.CommandContext(limited, q.program[0], q.program[1:]...)
	isolate(cmd)
	cmd.Dir = "/"
	// One processor: what is left of the machine belongs to the runs.
	cmd.Env = []string{"GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%d", softMemory), "GOTRACEBACK=none"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(wasm), &o.stdout, &o.stderr
	cmd.WaitDelay = q.wall
	o.err = cmd.Run()
	if o.err != nil {
		o.timedOut = errors.Is(limited.Err(), context.DeadlineExceeded)
	}
	if cmd.ProcessState != nil {
		o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return o
}

// evaluate turns every way in which a child may end into an answer or one sentence.
func (o *childResult) evaluate(wall time.Duration) (plugin.Info, error) {
	message := o.stderr.text()
	var exit *exec.ExitError
	switch {
	case o.stdout.over:
		return plugin.Info{}, refuse("what it says about itself is too long")
	case o.timedOut && o.cpu < ProcessorLimit-time.Second:
		return plugin.Info{}, busy(fmt.Sprintf("the machine was so busy that %v were not enough", wall))
	case o.timedOut:
		return plugin.Info{}, refuse(fmt.Sprintf("compiling and trying it did not finish within %v", wall))
	case o.err == nil:
		return o.answer()
	case errors.Is(o.err, exec.ErrWaitDelay), errors.Is(o.err, syscall.EAGAIN), errors.Is(o.err, syscall.ENOMEM):
		return plugin.Info{}, busy("the machine was too busy to start another process")
	case !errors.As(o.err, &exit):
		return plugin.Info{}, fmt.Errorf("starting the quarantine process: %w", o.err)
	case strings.Contains(message, "out of memory"), strings.Contains(message, "cannot allocate memory"):
		return plugin.Info{}, refuse(memoryExceeded)
	case strings.Contains(message, "stack exceeds"), strings.Contains(message, "stack overflow"):
		return plugin.Info{}, refuse("it is nested too deeply to be compiled")
	case killed(exit) && o.cpu >= ProcessorLimit-time.Second:
		return plugin.Info{}, refuse(fmt.Sprintf("compiling and trying it used more than %v of processor time",
			ProcessorLimit))
	case killed(exit):
		// Nobody of us did it: most likely the kernel, for want of memory.
		return plugin.Info{}, busy("the process that examined it was killed, most likely because the machine has no " +
			"memory left")
	}
	return plugin.Info{}, refuse("the process that compiled and tried it died of it (" + exit.String() + ")")
}

func killed(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (o *childResult) answer() (plugin.Info, error) {
	var a childAnswer
	if err := json.Unmarshal(o.stdout.b, &a); err != nil {
		return plugin.Info{}, refuse("the process that compiled and tried it gave no answer")
	}
	switch {
	case a.Refused != nil && strings.Contains(a.Refused.Message, "cannot allocate memory"):
		// The compiler met the limit where it could say so.
		return plugin.Info{}, refuse(memoryExceeded)
	case a.Refused != nil:
		a.Refused.Code, a.Refused.Cause = engine.CodePlugin, plugin.ErrRefused
		return plugin.Info{}, a.Refused
	case a.Info != nil:
		return *a.Info, nil
	case strings.Contains(a.Failed, "cannot allocate memory"):
		return plugin.Info{}, refuse(memoryExceeded)
	case a.Failed != "":
		return plugin.Info{}, fmt.Errorf("examining a plugin file: %s", a.Failed)
	}
	return plugin.Info{}, refuse("the process that compiled and tried it gave no answer")
}

// limitedBuffer keeps the first bytes of what a child writes, and says when there were more.
type limitedBuffer struct {
	b     []byte
	limit int
	full  func() // called once, when the limit is passed
	over  bool
}

// Write never fails: a child that writes too much is ended by full.
func (w *limitedBuffer) Write(p []byte) (int, error) {
	if room := w.limit - len(w.b); len(p) > room {
		w.b = append(w.b, p[:room]...)
		if !w.over && w.full != nil {
			w.full()
		}
		w.over = true
		return len(p), nil
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

func (w *limitedBuffer) text() string { return string(w.b) }

func (w *limitedBuffer) firstLine() string {
	line, _, _ := strings.Cut(strings.TrimSpace(w.text()), "\n")
	return line
}
