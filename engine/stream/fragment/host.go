package fragment

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Host runs the fragments that are given to a node. It implements protocol.FragmentHost, and is safe for concurrent use.
type Host struct {
	feeds   Feeds
	log     zerolog.Logger
	process string
	leaves  *leaving
	// longest is how long fragments may take to give their last rows when the process ends.
	longest time.Duration

	mu sync.Mutex
	// held are those that run, by query; refuse says why no more are taken.
	held   map[int64]*held
	refuse string
	// changes are what came and went, the newest last; sequence is the number of that.
	changes  []change
	sequence int64
}

// held is a fragment that runs, or waits until an earlier one of its query has gone.
type held struct {
	key    Key
	cancel context.CancelFunc
	gone   chan struct{}
}

type change struct {
	key  Key
	gone bool
}

// mostChanges is how many changes are remembered: who asks for more gets all that run.
const mostChanges = 1000

// NewHost returns a host without fragments, whose fragments read and write by feeds.
func NewHost(feeds Feeds, log zerolog.Logger) *Host {
	return &Host{feeds: feeds, log: log, process: uuid.NewString(), held: map[int64]*held{},
		leaves: &leaving{closed: make(chan struct{})}, longest: 5 * time.Second}
}

// Run implements protocol.FragmentHost.
func (h *Host) Run(ctx context.Context, k Key, spec []byte, link Link) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := func(why string, terminal bool) {
		saying, done := context.WithTimeout(ctx, lastWord)
		defer done()
		_ = link.Send(saying, worded(End, Ended{Failure: why, Terminal: terminal})) // who is gone knows
	}
	s, err := Unmarshal(spec)
	if err != nil || s.Key != k {
		refused("the node cannot read what it is given: another version?", true)
		return
	}
	mine := &held{key: k, cancel: cancel, gone: make(chan struct{})}
	defer close(mine.gone)
	if why := h.take(ctx, mine); why != "" {
		refused(why, false)
		return
	}
	defer h.leave(mine)
	log := h.log.With().Str("query", s.Query.Name).Int64("query_id", k.QueryID).Int64("epoch", k.Epoch).Logger()
	log.Info().Msg("a fragment of a continuous query begins")
	run(ctx, s, h.feeds, link, h.leaves)
	log.Info().Msg("a fragment of a continuous query has ended")
}

// take makes a fragment that of its query, in place of an earlier one, or says why not.
func (h *Host) take(ctx context.Context, mine *held) (why string) {
	for {
		h.mu.Lock()
		old := h.held[mine.key.QueryID]
		switch {
		case h.refuse != "":
			h.mu.Unlock()
			return h.refuse
		case old == nil:
			h.held[mine.key.QueryID] = mine
			h.changed(mine.key, false)
			h.mu.Unlock()
			return ""
		case mine.key.Before(old.key):
			h.mu.Unlock()
			return "a later fragment of the query runs here"
		}
		h.mu.Unlock()
		old.cancel()
		select {
		case <-old.gone:
		case <-ctx.Done():
			return "an earlier fragment of the query has not ended"
		}
	}
}

func (h *Host) leave(mine *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, mine.key.QueryID)
	h.changed(mine.key, true)
}

// changed needs mu.
func (h *Host) changed(k Key, gone bool) {
	h.sequence++
	if h.changes = append(h.changes, change{k, gone}); len(h.changes) > mostChanges {
		h.changes = slices.Clone(h.changes[len(h.changes)-mostChanges/2:])
	}
}

// Stop implements protocol.FragmentHost.
func (h *Host) Stop(ctx context.Context, k Key) error {
	h.mu.Lock()
	old := h.held[k.QueryID]
	h.mu.Unlock()
	if old == nil || k.Before(old.key) {
		return nil
	}
	old.cancel()
	select {
	case <-old.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List implements protocol.FragmentHost.
func (h *Host) List(process string, since int64) protocol.FragmentList {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := protocol.FragmentList{Process: h.process, Sequence: h.sequence}
	if behind := h.sequence - since; process == h.process && behind >= 0 && behind <= int64(len(h.changes)) {
		last := map[Key]bool{}
		for _, c := range h.changes[int64(len(h.changes))-behind:] {
			last[c.key] = c.gone
		}
		for k, gone := range last {
			if gone {
				l.Gone = append(l.Gone, k)
			} else {
				l.Running = append(l.Running, k)
			}
		}
		return l
	}
	l.All = true
	for _, f := range h.held {
		l.Running = append(l.Running, f.key)
	}
	return l
}

// Len is how many fragments run.
func (h *Host) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// Close ends all fragments, takes no more, and waits for them; why is what who gives one is told. What tells of the
// worker itself gives its last rows first. Repeating it is harmless.
func (h *Host) Close(why string) {
	h.mu.Lock()
	if h.refuse == "" {
		h.refuse, h.leaves.why = why, why
		close(h.leaves.closed)
	}
	var all []*held
	for _, f := range h.held {
		all = append(all, f)
	}
	h.mu.Unlock()
	late := time.AfterFunc(h.longest, func() {
		for _, f := range all {
			f.cancel()
		}
	})
	defer late.Stop()
	for _, f := range all {
		<-f.gone
	}
}
