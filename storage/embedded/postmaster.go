package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/loadstone-db/loadstone/engine"
)

// errLocked: Postgres refused to start because something still uses the cluster.
var errLocked = errors.New("the cluster is still in use")

// postmaster is one child process.
type postmaster struct {
	cmd *exec.Cmd
	pid int
	// exited is closed when the child has ended; err is its end then.
	exited chan struct{}
	err    error
}

// launch starts a postmaster on its own thread and returns without waiting for readiness.
func launch(p layout, in install, id identity) (*postmaster, error) {
	log, err := openLog(p.log)
	if err != nil {
		return nil, unusable(p.home, err)
	}
	defer log.Close()
	m := &postmaster{exited: make(chan struct{})}
	// Its end is asked for with signals, in the order that Postgres wants.
	m.cmd = exec.CommandContext(context.Background(), filepath.Join(in.dir, "postgres"), "-D", p.cluster)
	m.cmd.Dir = p.cluster
	m.cmd.Env = id.environment(p)
	// A file, never a pipe: orphans that hold a pipe would block its reader.
	m.cmd.Stdout, m.cmd.Stderr = log, log
	// SIGINT is Postgres's fast shutdown.
	m.cmd.SysProcAttr = id.attributes(syscall.SIGINT)
	started := make(chan error)
	go func() {
		// The parent-death signal fires when the starting thread ends, so the
		// thread stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := m.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		m.err = m.cmd.Wait()
		close(m.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting postgres: %w", err)
	}
	m.pid = m.cmd.Process.Pid
	return m, nil
}

// maxLog bounds the log that is kept over a start.
const maxLog = 8 << 20

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// ready waits until the child itself serves: its own pid stands in the pid
// file with status ready, and a connection has been served.
func (m *postmaster) ready(ctx context.Context, p layout, logFrom int64) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-m.exited:
			return m.failed(p, logFrom)
		case <-ctx.Done():
			return &engine.Error{Code: engine.CodeUnavailable, Cause: ctx.Err(),
				Message: "Postgres did not become ready in time.", Hint: "Its log is " + p.log + "."}
		case <-tick.C:
		}
		pid, status, err := readPidFile(p.cluster)
		if err != nil || pid != m.pid || status != "ready" {
			continue
		}
		conn, err := pgconn.Connect(ctx, p.dsn("postgres", superuser))
		if err == nil {
			return conn.Close(ctx)
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "28") && p.password != "" {
			return errPassword
		}
		if errors.As(err, &refused) && refused.Code != "57P03" {
			return fmt.Errorf("connecting to the postgres just started: %w", err)
		}
	}
}

// readPidFile returns the first and the last line of postmaster.pid: the
// postmaster's pid and its status. (In a user namespace the pid is the same.)
func readPidFile(cluster string) (pid int, status string, err error) {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return 0, "", err
	}
	lines := strings.Split(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return 0, "", fmt.Errorf("reading postmaster.pid: %w", err)
	}
	if len(lines) >= 8 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status, nil
}

// failed explains why the child ended before it was ready.
func (m *postmaster) failed(p layout, logFrom int64) error {
	tail := logTail(p.log, logFrom)
	for _, sign := range []string{"pre-existing shared memory block", "lock file \"", "could not create lock file"} {
		if strings.Contains(tail, sign) && !strings.Contains(tail, "Permission denied") && !diskFull(tail) {
			return fmt.Errorf("%w: %s", errLocked, lastFatal(tail))
		}
	}
	if diskFull(tail) {
		return unusable(p.home, fmt.Errorf("starting postgres: %w", syscall.ENOSPC))
	}
	if strings.Contains(tail, "Read-only file system") {
		return unusable(p.home, fmt.Errorf("starting postgres: %w", syscall.EROFS))
	}
	message := "Postgres did not start."
	if line := lastFatal(tail); line != "" {
		message = "Postgres did not start: " + line
	}
	return &engine.Error{Code: engine.CodeUnavailable, Cause: fmt.Errorf("postgres ended: %w", m.err),
		Message: message, Hint: "Its log is " + p.log + "."}
}

func logSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logTail returns what was logged after an offset, at most 64 KiB of it.
func logTail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	n, _ := f.ReadAt(buf, from)
	return string(buf[:n])
}

func lastFatal(log string) string {
	last := ""
	scan := bufio.NewScanner(bytes.NewReader([]byte(log)))
	for scan.Scan() {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(scan.Text(), level); ok {
				last = strings.TrimSpace(text)
			}
		}
	}
	return last
}

// stop asks for a fast shutdown and hurries when ctx ends: immediate
// shutdown, and after two more seconds a kill. The child is gone afterwards.
func (m *postmaster) stop(ctx context.Context) error {
	_ = m.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-m.exited:
		return nil
	case <-ctx.Done():
	}
	_ = m.cmd.Process.Signal(syscall.SIGQUIT)
	grace := time.NewTimer(2 * time.Second)
	defer grace.Stop()
	select {
	case <-m.exited:
	case <-grace.C:
		_ = m.cmd.Process.Kill()
		<-m.exited
	}
	return fmt.Errorf("stopping postgres: it did not end in time and was killed: %w", ctx.Err())
}

// sweep ends what an earlier postmaster left running on the cluster: first the
// postmaster of the pid file with a fast shutdown, then whatever remains.
func sweep(ctx context.Context, cluster string) (int, error) {
	pids := runningProcesses(cluster)
	if len(pids) == 0 {
		return 0, nil
	}
	found := len(pids)
	if pid, _, err := readPidFile(cluster); err == nil && slices.Contains(pids, pid) {
		_ = syscall.Kill(pid, syscall.SIGINT)
		if awaitExit(ctx, cluster, 5*time.Second) {
			return found, nil
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		for _, pid := range runningProcesses(cluster) {
			_ = syscall.Kill(pid, signal)
		}
		if awaitExit(ctx, cluster, 2*time.Second) {
			return found, nil
		}
	}
	return found, &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("Processes of an earlier Postgres on %s do not end: %v.", cluster, runningProcesses(cluster)),
		Hint:    "End them, then start again."}
}

// clearLocks removes lock files of a postmaster that is gone. Postgres would
// believe them when their pid is in use again, which is likely in a container
// that was killed and started anew. The lock on the data directory is ours, and
// nothing serves the cluster; should something do so after all, the shared
// memory segment that Postgres checks next refuses the start.
func (p layout) clearLocks() error {
	if len(runningProcesses(p.cluster)) > 0 {
		return nil
	}
	for _, path := range []string{filepath.Join(p.cluster, "postmaster.pid"),
		filepath.Join(p.socket, fmt.Sprintf(".s.PGSQL.%d.lock", p.port))} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(p.home, err)
		}
	}
	return nil
}

// awaitExit waits until nothing runs on the cluster.
func awaitExit(ctx context.Context, cluster string, patience time.Duration) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if len(runningProcesses(cluster)) == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-deadline.C:
			return false
		case <-tick.C:
		}
	}
}
