//go:build darwin || netbsd || openbsd

package quarantine

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// limitSelf puts what the system offers on the running process; its memory is
// limited by Go's soft limit alone.
func limitSelf() error {
	for resource, value := range map[int]uint64{syscall.RLIMIT_CPU: uint64(ProcessorLimit.Seconds()),
		syscall.RLIMIT_CORE: 0} {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			return fmt.Errorf("reading a limit: %w", err)
		}
		limit.Cur, limit.Max = value, value
		if err := syscall.Setrlimit(resource, &limit); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("lowering the priority: %w", err)
	}
	return nil
}

// isolate gives the child a process group of its own.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func executable() (string, error) { return os.Executable() }
