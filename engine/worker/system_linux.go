package worker

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// system reads what Linux tells of the process and the host. What cannot be
// read counts as zero: telemetry never fails a run.
type system struct{ cgroup string }

func newSystem() system { return system{cgroup: ownCgroup()} }

// ownCgroup is the folder of the process's cgroup (version 2), or the root's,
// which is the container's own where the namespace hides the rest.
func ownCgroup() string {
	const root = "/sys/fs/cgroup"
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			if dir := root + path; read(dir+"/cgroup.controllers") != "" {
				return strings.TrimSuffix(dir, "/")
			}
		}
	}
	return root
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

func (system) processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpus is how many CPUs the process may use: its affinity, bounded by the
// quotas of its cgroup and of those above it.
func (s system) cpus() float64 {
	n := float64(runtime.NumCPU())
	for dir := s.cgroup; strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = dir[:strings.LastIndexByte(dir, '/')] {
		if f := strings.Fields(read(dir + "/cpu.max")); len(f) == 2 && f[0] != "max" {
			n = quota(f[0], f[1], n)
		}
	}
	if v := strings.TrimSpace(read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")); v != "" && v != "-1" {
		n = quota(v, strings.TrimSpace(read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")), n)
	}
	return n
}

func quota(use, period string, n float64) float64 {
	u, err1 := strconv.ParseFloat(use, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || p <= 0 || u <= 0 {
		return n
	}
	return min(n, u/p)
}

func (system) processMemory() int64 {
	f := strings.Fields(read("/proc/self/statm"))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// memoryLimit is what the process may use: the cgroup's limit, or the machine's memory.
func (s system) memoryLimit() int64 {
	limit, _ := meminfo()
	paths := []string{"/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	for dir := s.cgroup; strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = dir[:strings.LastIndexByte(dir, '/')] {
		paths = append(paths, dir+"/memory.max")
	}
	for _, path := range paths {
		if n, err := strconv.ParseInt(strings.TrimSpace(read(path)), 10, 64); err == nil && n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

func meminfo() (total, available int64) {
	for line := range strings.Lines(read("/proc/meminfo")) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			total = kb << 10
		case "MemAvailable:":
			available = kb << 10
		}
	}
	return total, available
}

func (system) hostMemoryPercent() float64 {
	total, available := meminfo()
	if total == 0 {
		return 0
	}
	return 100 * float64(total-available) / float64(total)
}

// hostCPU returns busy and total time since the machine started, in clock ticks.
func (system) hostCPU() (busy, total float64) {
	line, _, _ := strings.Cut(read("/proc/stat"), "\n")
	f := strings.Fields(line)
	if len(f) < 6 || f[0] != "cpu" {
		return 0, 0
	}
	// guest time (fields 9 and 10) is part of user time already.
	for i, v := range f[1:min(len(f), 9)] {
		ticks, _ := strconv.ParseFloat(v, 64)
		total += ticks
		if i != 3 && i != 4 {
			busy += ticks
		}
	}
	return busy, total
}
