package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

// progress shows a live run: one line that is rewritten on a terminal, a line
// every few seconds elsewhere, and the run's own warnings as they come.
type progress struct {
	w       *screen
	phase   engine.Phase
	last    time.Time
	lastSeq int64
	steps   int // of a search, that were printed
}

func newProgress(w io.Writer) *progress {
	shared, ok := w.(*screen)
	if !ok {
		shared = newScreen(w)
	}
	return &progress{w: shared}
}

func (p *progress) show(u *engine.Payload) {
	for _, entry := range u.Logs {
		if entry.Seq <= p.lastSeq {
			continue
		}
		p.lastSeq = entry.Seq
		if entry.Level != engine.LogInfo {
			p.line("  %s: %s", strings.ToLower(string(entry.Level)), shown(entry.Message))
		}
	}
	if f := u.FindMax; f != nil {
		for ; p.steps < len(f.Steps); p.steps++ {
			p.line("%s", stepLine(f.Steps[p.steps], wide))
		}
	}
	phase := engine.PhaseNone
	if u.Phase != nil {
		phase = *u.Phase
	}
	if phase == engine.PhaseNone && u.Status.Terminal() {
		return // the summary says it
	}
	changed := phase != p.phase
	p.phase = phase
	if p.w.terminal {
		if changed {
			p.w.keep()
		}
		p.w.status(oneLine(describe(u, phase, p.w.columns())))
		return
	}
	if changed || time.Since(p.last) >= 2*time.Second {
		p.last = time.Now()
		p.line("%s", describe(u, phase, wide))
	}
}

// line prints a whole line, after the status line.
func (p *progress) line(format string, args ...any) {
	p.w.keep()
	_, _ = fmt.Fprintln(p.w, harmless(fmt.Sprintf(format, args...)))
}

func (p *progress) end() { p.w.keep() }

// describe says in one line of at most columns characters where a run is.
func describe(u *engine.Payload, phase engine.Phase, columns int) string {
	switch phase {
	case engine.PhasePreparing:
		if pr := u.Prepare; pr != nil {
			if pr.RowsTotal > 0 && pr.Step == "connect" {
				return fmt.Sprintf("preparing    %s: %s of %s", pr.Message, count(pr.RowsDone), count(pr.RowsTotal))
			}
			if pr.RowsTotal > 0 {
				return fmt.Sprintf("preparing    %s: %s of %s rows, %s/s", pr.Message, count(pr.RowsDone), count(pr.RowsTotal),
					rate(pr.RowsPerSecond))
			}
			if pr.Message != "" {
				return "preparing    " + pr.Message
			}
		}
		return "preparing    the target"
	case engine.PhaseWarmup, engine.PhaseMeasurement:
		if u.FindMax != nil && phase == engine.PhaseMeasurement {
			return searching(u.FindMax, columns)
		}
		name, total := "warming up", u.Timing.WarmupSeconds
		if phase == engine.PhaseMeasurement {
			name, total = "measuring", u.Timing.DurationSeconds
		}
		clock := ""
		if elapsed := u.Timing.PhaseElapsedSeconds; elapsed != nil {
			clock = fmt.Sprintf("%s / %s", duration(*elapsed), duration(total))
		}
		return fit(columns, []part{
			{0, fmt.Sprintf("%-11s  %s", name, clock)},
			{1, fmt.Sprintf("%6s op/s", rate(u.Ops.CurrentPerSec))},
			{4, fmt.Sprintf("P50 %-8s", ms(u.Latency.P50))},
			{2, fmt.Sprintf("P95 %-8s", ms(u.Latency.P95))},
			{5, fmt.Sprintf("P99 %-8s", ms(u.Latency.P99))},
			{3, "errors " + count(u.Errors.Count)},
			{6, fmt.Sprintf("connections %d/%d", u.Connections.Active, u.Connections.Target)},
		})
	case engine.PhaseCooldown:
		return fmt.Sprintf("stopping     %d connections still at work", u.Connections.Active)
	case engine.PhaseProcessing:
		return "processing   reading every execution for the exact figures"
	default:
		return strings.ToLower(string(u.Status))
	}
}

// part is a piece of a line; that of the highest rank is left out first.
type part struct {
	rank int
	text string
}

// fit joins as many parts as columns allow; that of rank 0 always stays.
func fit(columns int, parts []part) string {
	for rank := len(parts) - 1; ; rank-- {
		var kept []string
		for _, p := range parts {
			if p.rank <= rank {
				kept = append(kept, p.text)
			}
		}
		line := strings.TrimRight(strings.Join(kept, "   "), " ")
		if rank <= 0 || utf8.RuneCountInString(line) <= columns {
			return line
		}
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
