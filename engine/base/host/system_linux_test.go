package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroupLimits: the limits that count are those of the process's own
// cgroups and of all above them, in both versions.
func TestCgroupLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		self   string
		cpus   float64
		memory int64
	}{
		{name: "no limits", self: "0::/\n", cpus: 8, memory: 1000},
		{
			name: "version 2, the parent is tighter", self: "0::/a/b\n", cpus: 0.5, memory: 300,
			files: map[string]string{"a/b/cgroup.controllers": "cpu memory", "a/b/cpu.max": "200000 100000",
				"a/cpu.max": "50000 100000", "a/b/memory.max": "300", "a/memory.max": "max"},
		},
		{
			name: "version 1, a group of its own", self: "4:memory:/m/x\n2:cpu,cpuacct:/load\n0::/\n", cpus: 0.3, memory: 200,
			files: map[string]string{"cpu/load/cpu.cfs_quota_us": "30000", "cpu/load/cpu.cfs_period_us": "100000",
				"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000",
				"memory/m/x/memory.limit_in_bytes": "400", "memory/m/memory.limit_in_bytes": "200",
				"memory/memory.limit_in_bytes": "9223372036854771712"},
		},
		{
			name: "version 1 in a container: the path is hidden, the root is its own",
			self: "4:memory:/docker/1\n1:cpu:/docker/1\n", cpus: 1.5, memory: 500,
			files: map[string]string{"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000",
				"memory/memory.limit_in_bytes": "500"},
		},
		{name: "a cpuset is no quota", self: "3:cpuset:/x\n",
			files: map[string]string{"cpu/x/cpu.cfs_quota_us": "1", "cpu/x/cpu.cfs_period_us": "100000"}, cpus: 8, memory: 1000},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found := findCgroups(root, c.self)
		if cpus, memory := found.cpus(8), found.memoryLimit(1000); cpus != c.cpus || memory != c.memory {
			t.Errorf("%s: %v CPUs and %d bytes, want %v and %d", c.name, cpus, memory, c.cpus, c.memory)
		}
	}
}
