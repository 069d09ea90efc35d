//go:build !linux

package embedded

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func (id identity) attributes(syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if id.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	}
	return attr
}

func namespaceWorks(identity) bool { return false }

// serving returns the postmaster named by the pid file, if it is alive.
func runningProcesses(cluster string) []int {
	pid, _, err := readPidFile(cluster)
	if err != nil || !belongsToCluster(pid, cluster) {
		return nil
	}
	return []int{pid}
}

// serves asks ps, because there is no /proc to look into.
func belongsToCluster(pid int, cluster string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(cluster, "postmaster.pid")); err != nil {
		return false
	}
	return strings.Contains(string(out), "postgres") && strings.Contains(string(out), cluster)
}
