package quarantine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// limits of the child. RLIMIT_NPROC is left alone: it counts the threads of all
// processes of the user, so that a small one would refuse every file on a busy server.
var limits = []struct {
	name     string
	resource int
	value    uint64
}{
	{"data", unix.RLIMIT_DATA, MemoryLimit},
	{"address space", unix.RLIMIT_AS, 2 << 30},
	{"processor time", unix.RLIMIT_CPU, uint64(ProcessorLimit.Seconds())},
	{"open files", unix.RLIMIT_NOFILE, 16},
	{"file size", unix.RLIMIT_FSIZE, 0},
	{"core files", unix.RLIMIT_CORE, 0},
	{"locked memory", unix.RLIMIT_MEMLOCK, 0},
}

// The I/O class "idle", as ioprio_set takes it for a process group.
const (
	ioprioWhoGroup  = 2
	ioprioClassIdle = 3 << 13
)

// limitSelf puts the limits on the running process; none can be raised again.
func limitSelf() error {
	for _, l := range limits {
		// Soft and hard are one: the kernel kills at the hard limit, and Go does not get to handle it.
		err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value})
		var had unix.Rlimit
		if err != nil && errors.Is(err, unix.EPERM) && unix.Getrlimit(l.resource, &had) == nil && had.Max <= l.value {
			continue // somebody has limited us further
		}
		if err != nil {
			return fmt.Errorf("setting the limit of %s: %w", l.name, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	// By group, since Linux keeps both for each thread and the runtime has some already.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("lowering the priority: %w", err)
	}
	// Not every kernel has classes of I/O, and the child does none.
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoGroup, 0, ioprioClassIdle)
	return nil
}

// isolate gives the child a process group of its own and ties its life to ours.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// executable is the running program, also when its file has been replaced meanwhile.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}
