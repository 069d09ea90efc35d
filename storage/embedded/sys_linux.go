package embedded

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes are those of a child process that runs as id. deathSignal is
// sent to the child when the thread that started it ends.
func (id identity) attributes(deathSignal syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
	if id.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	}
	if id.namespace {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id.inNamespace, HostID: id.uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: id.gid, HostID: id.gid, Size: 1}}
	}
	return attr
}

// namespaceWorks reports whether this process may put children into a user
// namespace; container runtimes often forbid it.
func namespaceWorks(id identity) bool {
	path, err := exec.LookPath("true")
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.SysProcAttr = id.attributes(syscall.SIGKILL)
	return cmd.Run() == nil
}

// runningProcesses returns the processes of a cluster: those that have it as their
// working directory and run an executable called postgres.
func runningProcesses(cluster string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && belongsToCluster(pid, cluster) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// belongsToCluster reports whether a process belongs to the cluster. A reused pid fails
// the test, because neither its folder nor its executable fit.
func belongsToCluster(pid int, cluster string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil || cwd != cluster {
		return false
	}
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "postgres"
}
