package quarantine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
)

// one is a batch of one operation without arguments, which only a plugin that declares such a statement may return.
var one = []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0}

// testWall is generous: the machine that runs the tests may be busy.
const testWall = 2 * time.Minute

func withBinary(t *testing.T) *Quarantine {
	t.Helper()
	q, err := New(Options{Program: []string{quarantinetest.Binary(t), Command}, Wall: testWall, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestHonestFilesPass(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: each bundled plugin is compiled anew, for seconds")
	}
	q := withBinary(t)
	files := map[string][]byte{"guest": plugintest.Guest{Batch: one}.Build()}
	bundledFiles, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range bundledFiles {
		files[name] = wasm
	}
	for name, wasm := range files {
		t.Run(name, func(t *testing.T) {
			info, err := q.Examine(context.Background(), wasm)
			if err != nil {
				t.Fatal(err)
			}
			if info.Name+".wasm" != name && info.Name != name || info.SizeBytes != int64(len(wasm)) || len(info.SHA256) != 64 ||
				len(info.Exports) == 0 {
				t.Errorf("%+v", info)
			}
		})
	}
}

// TestSmokeTest: what passes the gate and then misbehaves is refused, with the guest's own words where it has any.
func TestSmokeTest(t *testing.T) {
	q := withBinary(t)
	for name, c := range map[string]struct {
		guest plugintest.Guest
		says  string // "" accepts
	}{
		"trap in describe": {plugintest.Guest{Code: map[string][]byte{"ls_describe": plugintest.Unreachable}}, "trapped"},
		"trap in open": {plugintest.Guest{Batch: one, Code: map[string][]byte{"ls_open": plugintest.Unreachable}},
			"trapped"},
		"trap in fill": {plugintest.Guest{Batch: one, Code: map[string][]byte{"ls_fill": plugintest.Unreachable}},
			"trapped"},
		"invalid batch":  {plugintest.Guest{Batch: []byte{9, 0, 0, 0, 1, 0, 0, 0}}, "batch"},
		"invalid rows":   {plugintest.Guest{Batch: one, Rows: []byte{9}}, "rows"},
		"invalid answer": {plugintest.Guest{Batch: one, Answer: "no JSON"}, "JSON"},
		"its own refusal": {plugintest.Guest{Error: "these tables do not suit me",
			Code: map[string][]byte{"ls_open": plugintest.I32(1)}}, ""},
		"needs parameters": {plugintest.Guest{
			Manifest: `{"kind":"workload","name":"x","parameters":{"type":"object","required":["file"]},"statements":[{"id":"a","sql":"SELECT 1"}]}`,
			Code:     map[string][]byte{"ls_fill": plugintest.Unreachable}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := q.Examine(context.Background(), c.guest.Build())
			if c.says == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.says != "" && (!errors.Is(err, plugin.ErrRefused) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, expected ErrRefused with %q", err, c.says)
			}
		})
	}
}

// script is a child that does what a shell is told.
func script(t *testing.T, wall time.Duration, text string) *Quarantine {
	t.Helper()
	q, err := New(Options{Program: []string{"/bin/sh", "-c", text}, Wall: wall, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestEndsOfTheChild: every way in which a child may end is one sentence.
func TestEndsOfTheChild(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		wall    time.Duration
		refused bool
		says    string
	}{
		"out of memory": {"echo 'fatal error: runtime: out of memory' >&2; exit 2", testWall, true, "256 MB"},
		"no mapping": {"echo 'fatal error: runtime: cannot allocate memory' >&2; exit 2", testWall, true,
			"256 MB"},
		"deep stack": {"echo 'runtime: goroutine stack exceeds 1000000000-byte limit' >&2; exit 2", testWall,
			true, "nested too deeply"},
		"crash":            {"kill -SEGV $$", testWall, true, "died of it"},
		"exit code":        {"exit 7", testWall, true, "died of it (exit status 7)"},
		"killed by others": {"kill -KILL $$", testWall, false, "no memory left"},
		"silence":          {"exit 0", testWall, true, "gave no answer"},
		"garbage":          {"echo garbage", testWall, true, "gave no answer"},
		"empty answer":     {"echo '{}'", testWall, true, "gave no answer"},
		"endless answer": {"cat >/dev/null; while :; do echo 0123456789012345678901234567890123456789; done",
			testWall, true, "too long"},
		"endless stderr": {"head -c 1000000 /dev/zero >&2; exit 3", testWall, true, "exit status 3"},
		"its failure":    {`echo '{"failed":"limiting: no"}'`, testWall, false, "limiting: no"},
		"its refusal": {`echo '{"refused":{"code":"plugin","message":"It is bad."}}'`, testWall, true,
			"It is bad."},
		"its refusal for memory": {`echo '{"refused":{"code":"plugin","message":"the compiler failed on it: cannot allocate memory"}}'`, testWall, true, "256 MB"},
		"asleep":                 {"sleep 1000", 200 * time.Millisecond, false, "so busy"},
		"grandchild":             {"sleep 2 & exit 5", testWall, true, "exit status 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := script(t, c.wall, c.script).Examine(context.Background(), plugintest.Guest{}.Build())
			if err == nil || errors.Is(err, plugin.ErrRefused) != c.refused || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLate: a child that used the processor until the wall limit is the file's fault.
func TestLate(t *testing.T) {
	o := childResult{err: errors.New("signal: killed"), timedOut: true, cpu: 9 * time.Second}
	if _, err := o.evaluate(
		WallLimit,
	); !errors.Is(err, plugin.ErrRefused) ||
		!strings.Contains(err.Error(), "within 1m0s") {
		t.Errorf("%v", err)
	}
	o = childResult{err: fmt.Errorf("waiting: %w", exec.ErrWaitDelay)}
	if _, err := o.evaluate(WallLimit); errors.Is(err, plugin.ErrRefused) || !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("%v", err)
	}
	o = childResult{err: errors.New("signal: killed"), timedOut: true, cpu: 8 * time.Second}
	if _, err := o.evaluate(WallLimit); errors.Is(err, plugin.ErrRefused) || !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestAnswerIsNotTrusted: the hash and the size are the parent's own.
func TestAnswerIsNotTrusted(t *testing.T) {
	wasm := plugintest.Guest{}.Build()
	info, err := script(t, testWall, `echo '{"info":{"name":"x","sha256":"00","size_bytes":1}}'`).
		Examine(context.Background(), wasm)
	if err != nil || len(info.SHA256) != 64 || info.SizeBytes != int64(len(wasm)) {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestTheGateComesFirst(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "started")
	_, err := script(t, testWall, "touch "+marker).Examine(context.Background(), []byte("\x7fELF"))
	if !errors.Is(err, plugin.ErrRefused) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a process was started for a file that the gate refuses")
	}
}

// TestNothingIsInherited: neither the environment nor descriptors nor the folder.
func TestNothingIsInherited(t *testing.T) {
	t.Setenv("LOADSTONE_SECRET", "hush")
	out := filepath.Join(t.TempDir(), "out")
	_, _ = script(t, testWall, fmt.Sprintf("{ env; pwd; ls /proc/self/fd; } > %s", out)).Examine(context.Background(),
		plugintest.Guest{}.Build())
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "hush") || !strings.Contains(string(b), "GOMAXPROCS=1") ||
		!strings.Contains(string(b), "\n/\n") {
		t.Errorf("%s", b)
	}
}

// TestCancelKillsTheGroup: nobody who waits holds the line, and grandchildren die too.
func TestCancelKillsTheGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	q := script(t, testWall, fmt.Sprintf("sleep 1000 & echo $! > %s.new; mv %s.new %s; wait", pids, pids, pids))
	wasm := plugintest.Guest{}.Build()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := q.Examine(ctx, wasm)
		ended <- err
	}()
	var b []byte
	for {
		var err error
		if b, err = os.ReadFile(pids); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	waiting, stop := context.WithCancel(context.Background())
	stop()
	if _, err := q.Examine(waiting, wasm); !errors.Is(err, context.Canceled) {
		t.Errorf("a second caller: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var grandchild int
	if _, err := fmt.Sscan(string(b), &grandchild); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if gone(grandchild) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d is alive", grandchild)
}

// gone reports that a process has ended; one that nobody has waited for yet counts as ended.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestQueue: past its end callers are told at once.
func TestQueue(t *testing.T) {
	q := script(t, testWall, "sleep 1000")
	wasm := plugintest.Guest{}.Build()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	for range QueueLimit + 1 {
		go func() {
			_, err := q.Examine(ctx, wasm)
			ended <- err
		}()
	}
	for len(q.queue) < cap(q.queue) {
		time.Sleep(time.Millisecond)
	}
	if _, err := q.Examine(ctx, wasm); !engine.HasCode(err, engine.CodeUnavailable) || errors.Is(err, plugin.ErrRefused) {
		t.Errorf("%v", err)
	}
	cancel()
	for range QueueLimit + 1 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func TestMissingProgram(t *testing.T) {
	q, err := New(Options{Program: []string{"/nonexistent/loadstone"}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = q.Examine(context.Background(), plugintest.Guest{}.Build()); err == nil ||
		errors.Is(err, plugin.ErrRefused) {
		t.Errorf("%v", err)
	}
}
