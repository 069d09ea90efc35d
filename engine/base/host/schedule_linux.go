package host

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// scheduleReader adds up what the kernel's scheduler tells of this process's threads. Threads end and take their counts
// along: what they had is kept.
type scheduleReader struct {
	threads map[string][3]int64
	sum     [3]int64
}

// read returns how long the threads ran and waited for a processor, in ns, and how often they ran; false where the
// system does not tell.
func (s *scheduleReader) read(proc string) (run, wait, slices int64, known bool) {
	entries, err := os.ReadDir(proc + "/self/task")
	if err != nil {
		return 0, 0, 0, false
	}
	seen := make(map[string][3]int64, len(entries))
	for _, e := range entries {
		now, ok := parseSchedule(read(proc + "/self/task/" + e.Name() + "/schedstat"))
		if !ok {
			continue
		}
		seen[e.Name()] = now
		before := s.threads[e.Name()]
		for i := range now {
			if now[i] >= before[i] { // else the number was given to another thread
				s.sum[i] += now[i] - before[i]
			} else {
				s.sum[i] += now[i]
			}
		}
	}
	s.threads = seen
	// A kernel without these statistics has the files, with zeros in them.
	return s.sum[0], s.sum[1], s.sum[2], s.sum[0] > 0
}

// parseSchedule reads "run wait slices".
func parseSchedule(text string) (n [3]int64, ok bool) {
	f := strings.Fields(text)
	if len(f) != len(n) {
		return n, false
	}
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil || n[i] < 0 {
			return n, false
		}
	}
	return n, true
}

// retransmits is how many segments the network namespace's TCP has sent again, -1 where the system does not tell.
func retransmits(proc string) int64 {
	var names []string
	for line := range strings.Lines(read(proc + "/self/net/snmp")) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, name := range names {
			if name == "RetransSegs" && i < len(f) {
				if n, err := strconv.ParseInt(f[i], 10, 64); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

// wakeExactly asks the kernel not to let this thread's sleeps end later than they must, to save wake-ups.
func wakeExactly() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) } // without it they are 50 µs late

// sleep blocks the thread itself: Go's timers wait for a thread that looks at them. A signal ends it early, which is
// not late.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil)
}
