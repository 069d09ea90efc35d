// This part describes the machine that this process runs on, and names it as a load generator.

package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Environment names the machine that this process runs on. What the system does
// not tell stays empty.
func Environment(version string) engine.Environment {
	host, _ := os.Hostname()
	e := engine.Environment{LoadstoneVersion: version, GoVersion: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Hostname: host}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		e.CPUModel = field(string(text), "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		kb, _, _ := strings.Cut(field(string(text), "MemTotal"), " ")
		n, _ := strconv.ParseInt(kb, 10, 64)
		e.MemoryBytes = n << 10
	}
	return e
}

// field returns the value of the first "name : value" line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
