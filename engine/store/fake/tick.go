package fake

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// pointRow is a second of a run with its time, which the document rounds.
type pointRow struct {
	at  engine.Time
	doc []byte
}

// SaveTick implements writer.Store.
func (s *Store) SaveTick(ctx context.Context, t store.Tick) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.fenced(t.RunID, t.Epoch)
	if err != nil {
		return err
	}
	var point, search []byte
	if t.Point != nil {
		if point, err = document("point", t.Point); err != nil {
			return err
		}
	}
	if t.FindMax != nil {
		if search, err = searchState(*t.FindMax); err != nil {
			return err
		}
	}
	if err := checkLevels(t.Logs); err != nil {
		return err
	}
	row := &r.row
	row.TotalOps, row.ErrorCount, row.CurrentQPS = t.TotalOps, t.ErrorCount, t.CurrentQPS
	row.WorkersRegistered, row.WorkersActive, row.WorkersCompleted = t.WorkersRegistered, t.WorkersActive,
		t.WorkersCompleted
	r.touch()
	r.extendLease()
	for _, w := range t.Workers {
		r.recordHeartbeat(w)
	}
	if point != nil {
		at := engine.At(t.Point.Timestamp.Truncate(time.Microsecond))
		if _, there := r.points[at.UnixMicro()]; !there {
			r.points[at.UnixMicro()] = pointRow{at, point}
		}
	}
	for _, l := range t.Logs {
		r.addLog(l)
	}
	if t.Rules != nil {
		r.row.Rules = slices.Clone(t.Rules)
	}
	if search != nil {
		r.search = search
	}
	return nil
}

// recordHeartbeat keeps a heartbeat; a late one does not turn it back.
func (r *run) recordHeartbeat(w store.WorkerRow) {
	w.RunID, w.Error = r.row.RunID, store.CleanText(w.Error)
	w.LastHeartbeat = orNow(engine.At(w.LastHeartbeat)).Time
	if old, there := r.workers[w.WorkerID]; !there || !w.LastHeartbeat.Before(old.LastHeartbeat) {
		r.workers[w.WorkerID] = w
	}
}

var levels = []engine.LogLevel{engine.LogInfo, engine.LogWarning, engine.LogError, engine.LogCritical}

func checkLevels(lines []engine.LogEntry) error {
	for _, l := range lines {
		if !slices.Contains(levels, l.Level) {
			return &engine.Error{Code: engine.CodeInvalid,
				Message: "The control store refused a line of the log without a known level."}
		}
	}
	return nil
}

// addLogs adds lines behind those that the run has.
func (r *run) addLogs(lines []engine.LogEntry) {
	var last int64
	for seq := range r.logs {
		last = max(last, seq)
	}
	for i, l := range lines {
		l.Seq = last + 1 + int64(i)
		r.addLog(l)
	}
}

// addLog keeps a line; the same number again is ignored.
func (r *run) addLog(l engine.LogEntry) {
	if _, there := r.logs[l.Seq]; there {
		return
	}
	l.RunID, l.Message, l.Timestamp = r.row.RunID, store.CleanText(l.Message), orNow(l.Timestamp)
	if len(l.Details) > 0 {
		l.Details = bytes.Clone(store.CleanDetails(l.Details))
	}
	r.logs[l.Seq] = l
}

const (
	defaultLogs = 500
	maxLogs     = 10_000
)

// Logs implements recovery.Store. level "" means all levels, another one exactly
// that level and those above it; limit ≤ 0 means 500 and more than 10 000 is 10 000.
func (s *Store) Logs(ctx context.Context, runID string, afterSeq int64, level engine.LogLevel,
	limit int) ([]engine.LogEntry, error) {
	if limit <= 0 {
		limit = defaultLogs
	}
	return of(ctx, s, runID, func(r *run) ([]engine.LogEntry, error) {
		var out []engine.LogEntry
		for _, l := range sorted(r.logs, func(a, b engine.LogEntry) int { return cmp.Compare(a.Seq, b.Seq) }) {
			if l.Seq > afterSeq && slices.Index(levels, l.Level) >= slices.Index(levels, level) {
				l.Details = bytes.Clone(l.Details)
				out = append(out, l)
			}
		}
		return first(min(limit, maxLogs), out), nil
	})
}

// series are all seconds of the run, oldest first.
func (r *run) series() ([]engine.Point, error) {
	var out []engine.Point
	for _, row := range sorted(r.points, func(a, b pointRow) int { return earlier(a.at, b.at) }) {
		p, err := read[engine.Point]("point", row.doc)
		if err != nil {
			return nil, err
		}
		p.Timestamp = row.at
		out = append(out, p)
	}
	return out, nil
}
