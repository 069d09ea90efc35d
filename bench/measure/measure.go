// Package measure is what benchmarks say of the machine that they ran on, of the processes
// that they measured, and of how far their rounds differ.
package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine says which machine the figures are from: its processor, memory and kernel.
func Machine() string {
	processor, memory, kernel := "unknown processor", "", ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		processor = field(string(b), "model name", processor)
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if kb, err := strconv.ParseFloat(strings.TrimSuffix(field(string(b), "MemTotal", ""), " kB"), 64); err == nil {
			memory = fmt.Sprintf(", %.0f GiB", kb/(1<<20))
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(b))
	}
	return processor + memory + kernel
}

// LoadAverage is how many processes of the machine wanted a processor in the last minute; it is
// not a number on systems that do not tell.
func LoadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return math.NaN()
	}
	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return math.NaN()
	}
	return load
}

// field is the first value of a name in a file of names and values.
func field(text, name, otherwise string) string {
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// ClockTick is the unit of /proc/PID/stat, 1/USER_HZ, which Linux fixes at 100.
const ClockTick = 10 * time.Millisecond

// Where in /proc/PID/stat, behind the command's name, a process's user and
// system time are, and those of the children it has waited for.
const (
	OwnTimes   = 11
	ChildTimes = 13
)

// CPU is the user and system time that a process has taken, its children's not included.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	return ParseStat(string(b), OwnTimes)
}

// ParseStat takes user and system time out of /proc/PID/stat. The second field, the
// command's name, is in parentheses and may hold anything.
func ParseStat(stat string, which int) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("no command name in stat")
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < which+2 {
		return 0, errors.New("too few fields in stat")
	}
	var ticks int64
	for _, f := range fields[which : which+2] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * ClockTick, nil
}

// Memory is what a process has in memory now, and the most that it ever had, in bytes.
func Memory(pid int) (now, peak int64, err error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, err
	}
	for name, into := range map[string]*int64{"VmRSS": &now, "VmHWM": &peak} {
		kb, err := strconv.ParseInt(strings.TrimSuffix(field(string(b), name, ""), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading %s of process %d: %w", name, pid, err)
		}
		*into = kb << 10
	}
	return now, peak, nil
}

// Median of the values, 0 when there are none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile of the values, between two of them where it falls between; 0 when there are none.
func Quantile(values []float64, q float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	below := int(at)
	if below+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[below] + (at-float64(below))*(v[below+1]-v[below])
}

// Spread writes the median and the range.
func Spread(format string, values []float64) string {
	switch len(values) {
	case 0:
		return "–"
	case 1:
		return fmt.Sprintf(format, values[0])
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", Median(values), slices.Min(values), slices.Max(values))
}
