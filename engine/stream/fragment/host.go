package fragment

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
)

// Host runs the fragments that are given to a node. It implements protocol.FragmentHost, and is safe for concurrent
// use.
type Host struct {
	connectors Connectors
	limits     memory.Limits
	log        zerolog.Logger
	process    string
	shutdown   *shutdown
	// drainTimeout is how long fragments may take to give their last rows when the process ends.
	drainTimeout time.Duration

	mu sync.Mutex
	// fragments are those that run, by query; refuse says why no more are taken.
	fragments map[int64]*hostedFragment
	refuse    string
	// changes are what came and went, the newest last; sequence is the number of that.
	changes  []change
	sequence int64
}

// hostedFragment is a fragment that runs, or waits until an earlier one of its query has gone.
type hostedFragment struct {
	key    Key
	cancel context.CancelFunc
	gone   chan struct{}
}

type change struct {
	key  Key
	gone bool
}

// maxChanges is how many changes are remembered: who asks for more gets all that run.
const maxChanges = 1000

// NewHost returns a host without fragments, whose fragments read and write by feeds, and hold what limits let them.
func NewHost(feeds Connectors, limits memory.Limits, log zerolog.Logger) *Host {
	return &Host{
		connectors:   feeds,
		limits:       limits,
		log:          log,
		process:      uuid.NewString(),
		fragments:    map[int64]*hostedFragment{},
		shutdown:     &shutdown{closed: make(chan struct{})},
		drainTimeout: 5 * time.Second,
	}
}

// Run implements protocol.FragmentHost.
func (h *Host) Run(ctx context.Context, k Key, spec []byte, link Link) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := func(why string, terminal bool) {
		saying, done := context.WithTimeout(ctx, endTimeout)
		defer done()
		_ = link.Send(saying, newMessage(End, EndReport{Failure: why, Terminal: terminal})) // who is gone knows
	}
	s, err := Unmarshal(spec)
	if err != nil || s.Key != k {
		refused("the node cannot read what it is given: another version?", true)
		return
	}
	mine := &hostedFragment{key: k, cancel: cancel, gone: make(chan struct{})}
	defer close(mine.gone)
	if why := h.take(ctx, mine); why != "" {
		refused(why, false)
		return
	}
	defer h.leave(mine)
	log := h.log.With().Str("query", s.Query.Name).Int64("query_id", k.QueryID).Int64("epoch", k.Epoch).Logger()
	log.Info().Msg("a fragment of a continuous query begins")
	if b, err := s.Bind(); err != nil {
		refused(err.Error(), final(err))
	} else {
		run(ctx, b, h.connectors, h.limits, link, h.shutdown)
	}
	log.Info().Msg("a fragment of a continuous query has ended")
}

// take makes a fragment that of its query, in place of an earlier one, or says why not.
func (h *Host) take(ctx context.Context, mine *hostedFragment) (why string) {
	for {
		h.mu.Lock()
		old := h.fragments[mine.key.QueryID]
		switch {
		case h.refuse != "":
			h.mu.Unlock()
			return h.refuse
		case old == nil:
			h.fragments[mine.key.QueryID] = mine
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

func (h *Host) leave(mine *hostedFragment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.fragments, mine.key.QueryID)
	h.changed(mine.key, true)
}

// changed needs mu.
func (h *Host) changed(k Key, gone bool) {
	h.sequence++
	if h.changes = append(h.changes, change{k, gone}); len(h.changes) > maxChanges {
		h.changes = slices.Clone(h.changes[len(h.changes)-maxChanges/2:])
	}
}

// Stop implements protocol.FragmentHost.
func (h *Host) Stop(ctx context.Context, k Key) error {
	h.mu.Lock()
	old := h.fragments[k.QueryID]
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
	for _, f := range h.fragments {
		l.Running = append(l.Running, f.key)
	}
	return l
}

// Len is how many fragments run.
func (h *Host) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.fragments)
}

// Close ends all fragments, takes no more, and waits for them; why is what who gives one is told. What tells of the
// worker itself gives its last rows first. Repeating it is harmless.
func (h *Host) Close(why string) {
	h.mu.Lock()
	if h.refuse == "" {
		h.refuse, h.shutdown.why = why, why
		close(h.shutdown.closed)
	}
	var all []*hostedFragment
	for _, f := range h.fragments {
		all = append(all, f)
	}
	h.mu.Unlock()
	late := time.AfterFunc(h.drainTimeout, func() {
		for _, f := range all {
			f.cancel()
		}
	})
	defer late.Stop()
	for _, f := range all {
		<-f.gone
	}
}
