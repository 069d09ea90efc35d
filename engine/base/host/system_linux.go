package host

import (
	"iter"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// system reads what Linux tells of the process and the host. What cannot be
// read counts as zero: telemetry never fails a run.
type system struct{ cgroups cgroups }

func newSystem() system {
	return system{cgroups: findCgroups("/sys/fs/cgroup", read("/proc/self/cgroup"))}
}

// cgroups are the folders of the process's own cgroups below root: the one of
// version 2, and those of version 1 that limit CPU and memory. Where a namespace hides the
// path, it is the root of the hierarchy, which is then the container's own.
type cgroups struct{ root, unified, cpu, memory string }

func findCgroups(root, self string) cgroups {
	c := cgroups{root: root, unified: root, cpu: root + "/cpu", memory: root + "/memory"}
	for line := range strings.Lines(self) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok || path == "/" {
			continue
		}
		switch {
		case id == "0" && controllers == "":
			if read(root+path+"/cgroup.controllers") != "" {
				c.unified = root + path
			}
		case slices.Contains(strings.Split(controllers, ","), "cpu"):
			if read(c.cpu+path+"/cpu.cfs_quota_us") != "" {
				c.cpu += path
			}
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			if read(c.memory+path+"/memory.limit_in_bytes") != "" {
				c.memory += path
			}
		}
	}
	return c
}

// ancestors are a folder and those above it, down to the root of the cgroups.
func (c cgroups) ancestors(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for strings.HasPrefix(dir, c.root) && yield(dir) && dir != c.root {
			dir = dir[:strings.LastIndexByte(dir, '/')]
		}
	}
}

// cpus is the smallest of n and the quotas of the cgroups.
func (c cgroups) cpus(n float64) float64 {
	for dir := range c.ancestors(c.unified) {
		if f := strings.Fields(read(dir + "/cpu.max")); len(f) == 2 {
			n = quota(f[0], f[1], n)
		}
	}
	for dir := range c.ancestors(c.cpu) {
		n = quota(strings.TrimSpace(read(dir+"/cpu.cfs_quota_us")), strings.TrimSpace(read(dir+"/cpu.cfs_period_us")), n)
	}
	return n
}

// memoryLimit is the smallest of limit, in bytes, and the limits of the cgroups; 0 is no limit.
func (c cgroups) memoryLimit(limit int64) int64 {
	least := func(file string) {
		if n, err := strconv.ParseInt(strings.TrimSpace(read(file)), 10, 64); err == nil && n > 0 &&
			(limit == 0 || n < limit) {
			limit = n
		}
	}
	for dir := range c.ancestors(c.unified) {
		least(dir + "/memory.max")
	}
	for dir := range c.ancestors(c.memory) {
		least(dir + "/memory.limit_in_bytes")
	}
	return limit
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
func (s system) cpus() float64 { return s.cgroups.cpus(float64(runtime.NumCPU())) }

// quota bounds n by use ÷ period; "max", -1 and what cannot be read are no bound.
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
	total, _ := meminfo()
	return s.cgroups.memoryLimit(total)
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
