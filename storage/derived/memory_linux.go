package derived

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"
)

// boundMemory bounds what the process behind a connection may allocate, where that is on this machine and may be
// bounded. Postgres refuses a statement that needs more ("out of memory"), and its session goes on.
func boundMemory(conn *pgconn.PgConn, bytes uint64) {
	if postmaster := localPostmaster(conn); postmaster > 0 && parentOf(int(conn.PID())) == postmaster {
		setLimit(int(conn.PID()), bytes)
	}
}

// mayBound reports whether the processes of the server behind a connection can be bounded from here.
func mayBound(conn *pgconn.PgConn) bool {
	pid := int(conn.PID())
	postmaster := localPostmaster(conn)
	return postmaster > 0 && parentOf(pid) == postmaster && setLimit(pid, limitOf(pid))
}

// localPostmaster is the server behind a connection, where that is on this machine and can be seen; else 0.
func localPostmaster(conn *pgconn.PgConn) int {
	end := conn.Conn()
	if t, ok := end.(*tls.Conn); ok {
		end = t.NetConn()
	}
	switch socket := end.(type) {
	case *net.UnixConn:
		return listenerOf(socket)
	case *net.TCPConn:
		near, ok := socket.LocalAddr().(*net.TCPAddr)
		far, known := socket.RemoteAddr().(*net.TCPAddr)
		if ok && known && far.IP.IsLoopback() && holds(int(conn.PID()), far.Port, near.Port) {
			return parentOf(int(conn.PID()))
		}
	}
	return 0
}

// listenerOf is the process that has made a unix socket.
func listenerOf(socket *net.UnixConn) (pid int) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	return pid
}

// holds reports whether a process has the end of a connection over loopback that has the first port there, and the
// second here: a process of that number may be on another machine.
func holds(pid, there, here int) bool {
	ends := [2]string{fmt.Sprintf(":%04X", there), fmt.Sprintf(":%04X", here)}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			const local, remote, inode = 1, 2, 9
			f := strings.Fields(line)
			if len(f) > inode && strings.HasSuffix(f[local], ends[0]) && strings.HasSuffix(f[remote], ends[1]) &&
				hasFile(pid, "socket:["+f[inode]+"]") {
				return true
			}
		}
	}
	return false
}

// hasFile reports whether a process has a file open.
func hasFile(pid int, name string) bool {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	open, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, f := range open {
		if link, err := os.Readlink(filepath.Join(folder, f.Name())); err == nil && link == name {
			return true
		}
	}
	return false
}

// parentOf is the parent of a process that is a Postgres, 0 of others.
func parentOf(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	name, rest, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !ok || !strings.HasSuffix(name, "(postgres") || len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// setLimit bounds what a process allocates: RLIMIT_DATA counts what it has for itself, and no shared memory.
func setLimit(pid int, bytes uint64) bool {
	err := prlimit(pid, bytes)
	if !errors.Is(err, unix.EPERM) || os.Geteuid() != 0 {
		return err == nil
	}
	// The superuser of a container bounds no process of another user's. That user does: a thread becomes it, and ends.
	var owner unix.Stat_t
	if unix.Stat(filepath.Join("/proc", strconv.Itoa(pid)), &owner) != nil || owner.Uid == 0 {
		return false
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: nothing else runs in that thread
		// The calls of package syscall would change all threads.
		if _, _, e := unix.RawSyscall(
			unix.SYS_SETRESGID,
			uintptr(owner.Gid),
			uintptr(owner.Gid),
			uintptr(owner.Gid),
		); e != 0 {
			done <- e
			return
		}
		if _, _, e := unix.RawSyscall(
			unix.SYS_SETRESUID,
			uintptr(owner.Uid),
			uintptr(owner.Uid),
			uintptr(owner.Uid),
		); e != 0 {
			done <- e
			return
		}
		done <- prlimit(pid, bytes)
	}()
	return <-done == nil
}

func prlimit(pid int, bytes uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &now); err != nil || now.Cur == bytes {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: min(bytes, now.Max), Max: now.Max}, nil)
}

// limitOf is what a process may allocate.
func limitOf(pid int) uint64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "limits"))
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "Max data size")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	if fields[0] == "unlimited" {
		return unix.RLIM_INFINITY
	}
	bytes, _ := strconv.ParseUint(fields[0], 10, 64)
	return bytes
}

// processes are those of a Postgres on this machine.
type processes struct {
	postmaster int
	// born is what new processes of a server of Loadstone's own may allocate until it is known whose they are.
	born uint64
}

func newProcesses() *processes { return &processes{} }

// find finds the server behind a connection; false where it is not on this machine, or not to be bounded.
func (p *processes) find(conn *pgconn.PgConn, own bool, born uint64) bool {
	pid := localPostmaster(conn)
	if pid == 0 || parentOf(int(conn.PID())) != pid {
		return false
	}
	if own && p.postmaster != pid && setLimit(pid, born) {
		p.born = born
	}
	p.postmaster = pid
	return true
}

// limit bounds the process of a session.
func (p *processes) limit(pid uint32, bytes uint64) {
	if parentOf(int(pid)) == p.postmaster && limitOf(int(pid)) != bytes {
		setLimit(int(pid), bytes)
	}
}

// free takes the limit that processes are born with from one that is no reader's.
func (p *processes) free(pid uint32) {
	if p.born == 0 || parentOf(int(pid)) != p.postmaster {
		return
	}
	if limitOf(int(pid)) == p.born {
		setLimit(int(pid), unix.RLIM_INFINITY)
	}
}

// size is how much memory a process has for itself.
func (p *processes) size(pid uint32) uint64 {
	if parentOf(int(pid)) != p.postmaster {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var total, resident, shared uint64
	if _, err := fmt.Sscan(string(text), &total, &resident, &shared); err != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(syscall.Getpagesize())
}

// release lets new processes of the server allocate what they want again.
func (p *processes) release() {
	if p.born != 0 {
		setLimit(p.postmaster, unix.RLIM_INFINITY)
	}
}
