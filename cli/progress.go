package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// progress shows a live run: one line that is rewritten on a terminal, a line
// every few seconds elsewhere, and the run's own warnings as they come.
type progress struct {
	w        io.Writer
	terminal bool
	width    int
	phase    engine.Phase
	last     time.Time
	open     bool // a line without its end stands on the terminal
	lastSeq  int64
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), width: 100}
}

func (p *progress) show(u *engine.Payload) {
	for _, entry := range u.Logs {
		if entry.Seq <= p.lastSeq {
			continue
		}
		p.lastSeq = entry.Seq
		if entry.Level != engine.LogInfo {
			p.line("  %s: %s", strings.ToLower(string(entry.Level)), entry.Message)
		}
	}
	phase := engine.PhaseNone
	if u.Phase != nil {
		phase = *u.Phase
	}
	text := describe(u, phase)
	changed := phase != p.phase
	p.phase = phase
	if p.terminal {
		if changed {
			p.end()
		}
		if runes := []rune(text); len(runes) > p.width {
			text = string(runes[:p.width])
		}
		_, _ = fmt.Fprintf(p.w, "\r\033[K%s", text)
		p.open = true
		return
	}
	if changed || time.Since(p.last) >= 2*time.Second {
		p.last = time.Now()
		p.line("%s", text)
	}
}

// line prints a whole line, after the end of an open one.
func (p *progress) line(format string, args ...any) {
	p.end()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *progress) end() {
	if p.open {
		_, _ = fmt.Fprintln(p.w)
		p.open = false
	}
}

func describe(u *engine.Payload, phase engine.Phase) string {
	switch phase {
	case engine.PhasePreparing:
		if pr := u.Prepare; pr != nil {
			if pr.RowsTotal > 0 && pr.Step == "connect" {
				return fmt.Sprintf("preparing    %s: %s of %s", pr.Message, count(pr.RowsDone), count(pr.RowsTotal))
			}
			if pr.RowsTotal > 0 {
				return fmt.Sprintf("preparing    %s: %s of %s rows, %s/s", pr.Message, count(pr.RowsDone), count(pr.RowsTotal), rate(pr.RowsPerSecond))
			}
			if pr.Message != "" {
				return "preparing    " + pr.Message
			}
		}
		return "preparing    the target"
	case engine.PhaseWarmup, engine.PhaseMeasurement:
		name := "warming up "
		if phase == engine.PhaseMeasurement {
			name = "measuring  "
		}
		t := u.Timing
		clock := ""
		if t.PhaseElapsedSeconds != nil {
			total := t.DurationSeconds
			if phase == engine.PhaseWarmup {
				total = t.WarmupSeconds
			}
			clock = fmt.Sprintf("%s / %s", duration(*t.PhaseElapsedSeconds), duration(total))
		}
		return fmt.Sprintf("%s  %s   %7s op/s   P50 %s   P95 %s   P99 %s   errors %s   connections %d/%d",
			name, clock, rate(u.Ops.CurrentPerSec), ms(u.Latency.P50), ms(u.Latency.P95), ms(u.Latency.P99),
			count(u.Errors.Count), u.Connections.Active, u.Connections.Target)
	case engine.PhaseCooldown:
		return fmt.Sprintf("stopping     %d connections still at work", u.Connections.Active)
	case engine.PhaseProcessing:
		return "processing   reading every execution for the exact figures"
	default:
		return strings.ToLower(string(u.Status))
	}
}

func duration(seconds float64) string {
	s := int(seconds + 0.5)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

func ms(v *float64) string {
	if v == nil {
		return "–"
	}
	return millis(*v)
}

// millis writes a latency with three significant digits.
func millis(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 10:
		return fmt.Sprintf("%.1f ms", v)
	case v >= 1:
		return fmt.Sprintf("%.2f ms", v)
	default:
		return fmt.Sprintf("%.3f ms", v)
	}
}

func rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 100e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	case v >= 10e3:
		return fmt.Sprintf("%.1f k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.1f", v)
	}
}

// count writes a whole number in groups of three.
func count(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return sign + text
}
