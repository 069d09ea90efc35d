package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// spool keeps the files of a node within their budget: it asks engine/worker/diskbudget, and does
// on the disk what that decides. A file's key is its path in the folder, which is the work
// id of a part.
type spool struct {
	dir string
	log zerolog.Logger
	// announce tells servers of a part at once. It is called without mu.
	announce func(a engine.Artifact)
	// gone is told of files that are not on the disk any more. It is called without mu.
	gone func(keys []string)
	// remove is os.Remove, or fails in tests.
	remove func(path string) error
	// deleted is told of files that the budget has deleted, and why; nil is told nothing.
	deleted func(reason string)

	mu sync.Mutex
	b  *diskbudget.Budget
	// made are finished parts that no server has been told of.
	made map[string]engine.Artifact
	// pressedRuns are runs whose record may not fit, with what their workers end with.
	pressedRuns map[string]*engine.Error
	// stay are files that could not be removed.
	stay map[string]bool
}

// minSpool is the smallest budget: a part and its neighbours.
const minSpool = 64 << 20

// spoolBytes is the budget of a spool: bytes, or for 0 half of what its disk has free.
// Less than 0 is none.
func spoolBytes(dir string, bytes int64) int64 {
	if bytes < 0 {
		return 1 << 60
	}
	if bytes == 0 {
		free, _, ok := record.Space(existing(dir))
		if !ok {
			return 10 << 30
		}
		bytes = free / 2
	}
	return max(bytes, minSpool)
}

// existing is the folder, or the nearest above it that there is.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// newSpool returns the spool in a folder. What a server has stays for acknowledged.
func newSpool(dir string, bytes int64, acknowledged time.Duration, log zerolog.Logger,
	announce func(engine.Artifact), gone func([]string)) *spool {
	p := diskbudget.PolicyFor(bytes)
	p.Acknowledged = acknowledged
	return &spool{dir: dir, log: log, announce: announce, gone: gone, remove: os.Remove, b: diskbudget.New(p),
		made: map[string]engine.Artifact{}, pressedRuns: map[string]*engine.Error{}, stay: map[string]bool{}}
}

// apply tells the budget what has happened and does what follows. It reports whether a
// write was refused.
func (s *spool) apply(h diskbudget.Event) (refused bool) {
	s.mu.Lock()
	d := budgetActions{spool: s}
	if h, ok := h.(diskbudget.Announced); ok {
		delete(s.made, h.Key)
	}
	d.apply(h)
	if g, ok := h.(diskbudget.Grow); ok && !d.granted {
		d.apply(diskbudget.RequestCancelled{Key: g.Key}) // a file that should have gone could not be removed
	}
	if _, ok := h.(diskbudget.Tick); ok {
		for key := range s.stay {
			d.drop(key)
		}
	}
	s.mu.Unlock()
	for _, a := range d.announce {
		s.announce(a)
	}
	if len(d.gone) > 0 {
		s.gone(d.gone)
	}
	return !d.granted
}

// state is how much lies in the spool, in whichever state, and how much may.
func (s *spool) state() (bytes, cached, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Used(), s.b.Used() - s.b.Spool(), s.b.Policy().Budget
}

// budgetActions is what one event leads to. It has the spool's mu.
type budgetActions struct {
	*spool
	granted  bool
	announce []engine.Artifact
	gone     []string
}

func (d *budgetActions) apply(h diskbudget.Event) {
	for _, a := range d.b.Apply(time.Now(), h) {
		switch a := a.(type) {
		case diskbudget.Granted:
			d.granted = true
		case diskbudget.Delete:
			d.log.Debug().Str("work_id", a.Key).Str("reason", string(a.Reason)).Msg("a file of the spool goes")
			d.drop(a.Key)
			if d.deleted != nil {
				d.deleted(string(a.Reason))
			}
		case diskbudget.Announce:
			if made, ok := d.made[a.Key]; ok { // else what an announcement before it led to has done it
				delete(d.made, a.Key)
				d.announce = append(d.announce, made)
				d.apply(diskbudget.Announced(a))
			}
		case diskbudget.Redo:
			d.log.Warn().Str(
				"work_id",
				a.Key,
			).Msg(
				"an artifact that no server has fetched is deleted; its work has to be repeated",
			)
		case diskbudget.Degrade:
			used, all := d.b.Used()>>20, d.b.Policy().Budget>>20
			d.log.Error().Str("run_id", a.Run).Int64("used_mb", used).Int64("budget_mb", all).
				Msg("the record of a run is written faster than it is fetched; its load ends")
			d.pressedRuns[a.Run] = &engine.Error{
				Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("Recording has stopped: the "+
					"spool of the node holds %d MB of the %d MB that it may, which no server has fetched yet.", used, all),
				Hint: "Give the node more room with --spool-budget, or find out why its server does not fetch.",
			}
		}
	}
}

// drop takes a file off the disk.
func (d *budgetActions) drop(key string) {
	path := filepath.Join(d.dir, filepath.FromSlash(key))
	for _, path := range []string{path, path + record.StoredSuffix} {
		if err := d.remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			if !d.stay[key] {
				d.log.Warn().Err(err).Str("work_id", key).Msg("a file of the spool cannot be removed; it is tried again")
			}
			d.stay[key] = true
			return
		}
	}
	delete(d.stay, key)
	delete(d.made, key)
	d.gone = append(d.gone, key)
	d.apply(diskbudget.Gone{Key: key})
}

// full is the error of a write for which there is no room.
func (s *spool) full(run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pressedRuns[run]; err != nil {
		return err
	}
	return &engine.Error{Code: engine.CodeUnavailable, Message: "Recording has stopped: a file of the node's spool " +
		"cannot be removed.", Hint: "Look into the node's log, and at its disk."}
}

// pressedBy is why the load of a run ends, nil while its record fits.
func (s *spool) pressedBy(run string) *engine.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pressedRuns[run]
}

// ended forgets a run of which the node carries nothing any more.
func (s *spool) ended(run string) {
	s.apply(diskbudget.Ended{Run: run})
	s.mu.Lock()
	delete(s.pressedRuns, run)
	s.mu.Unlock()
}

// runQuota is what the writer of one run worker asks.
type runQuota struct {
	*spool
	run, worker string
}

var _ record.Quota = runQuota{}

func (q runQuota) key(name string) string { return q.run + "/" + q.worker + "/" + name }

// Grow implements record.Quota.
func (q runQuota) Grow(name string, bytes int64) error {
	if q.apply(diskbudget.Grow{Key: q.key(name), Kind: diskbudget.Record, Run: q.run, Bytes: bytes}) {
		return q.full(q.run)
	}
	return nil
}

// Finished implements record.Quota.
func (q runQuota) Finished(a engine.Artifact) {
	key := q.key(a.Name)
	q.mu.Lock()
	q.made[key] = a
	q.mu.Unlock()
	q.apply(diskbudget.Finished{Key: key, Bytes: a.SizeBytes})
}

// Abandoned implements record.Quota.
func (q runQuota) Abandoned(name string) { q.apply(diskbudget.Gone{Key: q.key(name)}) }
