package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// machine is what /proc/stat counts since boot: seconds of all processors, and context switches.
type machine struct{ busy, idle, stolen, switches float64 }

// machineNow is zero on systems without /proc/stat.
func machineNow() machine {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machine{}
	}
	return parseMachine(string(b))
}

func parseMachine(stat string) machine {
	var m machine
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) > 8 && f[0] == "cpu" {
			// user nice system idle iowait irq softirq steal
			for i, text := range f[1:9] {
				n, _ := strconv.ParseFloat(text, 64)
				n *= measure.ClockTick.Seconds()
				switch i {
				case 3, 4:
					m.idle += n
				case 7:
					m.stolen += n
				default:
					m.busy += n
				}
			}
		}
		if len(f) > 1 && f[0] == "ctxt" {
			m.switches, _ = strconv.ParseFloat(f[1], 64)
		}
	}
	return m
}

func (m machine) since(earlier machine) machine {
	return machine{m.busy - earlier.busy, m.idle - earlier.idle, m.stolen - earlier.stolen, m.switches - earlier.switches}
}

// account is what the machine, this process with the clients it has waited
// for, and the server with the sessions that have ended had used at a moment.
type account struct {
	machine machine
	ours    time.Duration
}

func accountNow(server int) account {
	a := account{machine: machineNow()}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			a.ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	if b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(server), "stat")); err == nil {
		own, _ := measure.ParseStat(string(b), measure.OwnTimes)
		ended, _ := measure.ParseStat(string(b), measure.ChildTimes)
		a.ours += own + ended
	}
	return a
}

// others is the share of the machine, 0 to 1, that processes took which have no part in the comparison.
func (a account) others(earlier account) float64 {
	used := a.machine.since(earlier.machine)
	all := used.busy + used.idle + used.stolen
	if all <= 0 {
		return 0
	}
	return max(0, used.busy-(a.ours-earlier.ours).Seconds()) / all
}

// rest is what else a query took: the server's CPU (and that of whoever else
// was at work), context switches of the whole machine, and how much of it was
// idle or taken away by its hypervisor.
type rest struct {
	serverCPU, switches float64 // µs and number a query
	idlePct, stolenPct  float64
}

func (m machine) rest(client time.Duration, operations float64) rest {
	all := m.busy + m.idle + m.stolen
	if all <= 0 || operations <= 0 {
		return rest{}
	}
	return rest{serverCPU: (m.busy - client.Seconds()) * 1e6 / operations, switches: m.switches / operations,
		idlePct: 100 * m.idle / all, stolenPct: 100 * m.stolen / all}
}

func (r rest) String() string {
	return fmt.Sprintf("server and others %.2f µs/query, %.2f switches/query, idle %.1f %%, stolen %.1f %%", r.serverCPU,
		r.switches, r.idlePct, r.stolenPct)
}
