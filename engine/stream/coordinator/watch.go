package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	streamwatch "github.com/loadstone-db/loadstone/engine/stream/watch"
)

// maxWatchers is how many watch the catalog at a time, and maxApplying of how many answers are evaluated.
// maxUserBytes is what the watches of one user may show together.
const (
	maxWatchers  = 200
	maxApplying  = 2
	maxUserBytes = 2 * streamwatch.MaxViewBytes
)

// watchHub is what all who watch the catalog share.
type watchHub struct {
	mu sync.Mutex
	// changed is closed when something was heard.
	changed  chan struct{}
	version  int64
	watchers int
	// shown is how many bytes the watches of a user show.
	shown map[string]int

	// reading is full while somebody reads the catalog, and what follows is theirs. Who waits for it can give up.
	reading chan struct{}
	// applying are those whose answers are evaluated, which may take a while.
	applying chan struct{}
	// instance is of this process: another one has other moments.
	instance string
	history  streamwatch.History
	seen     int64
	at       time.Time
}

func newWatching() *watchHub {
	return &watchHub{changed: make(chan struct{}), shown: map[string]int{}, reading: make(chan struct{}, 1),
		applying: make(chan struct{}, maxApplying), instance: rand.Text()[:10]}
}

// notify says that something has changed.
func (w *watchHub) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watchHub) next() (changed <-chan struct{}, heard int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed, w.version
}

func (w *watchHub) enter() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers >= maxWatchers {
		return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("%d clients watch the catalog.", maxWatchers),
			Hint: "end one of them, or ask GET /api/v1/streams; the bound is fixed"}
	}
	w.watchers++
	return nil
}

func (w *watchHub) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers--
}

// show counts what a watch of a user shows in place of was.
func (w *watchHub) show(user string, was, now int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.shown[user] + now - was
	switch {
	case now > was && all > maxUserBytes:
		return sql.Errorf(sql.StateLimit, "", -1, "end one of them, or narrow them down with WHERE; the bound is fixed",
			"your watches of the catalog would show more than %d MiB together", maxUserBytes>>20)
	case all == 0:
		delete(w.shown, user)
	default:
		w.shown[user] = all
	}
	return nil
}

// observeTables reads the catalog, unless another watcher has since, and not before a time.
func (c *Coordinator) observeTables(ctx context.Context, heard int64, notBefore time.Time) error {
	w := c.watches
	if w.seen >= heard && time.Since(w.at) < pollInterval && !w.at.Before(notBefore) && w.history.Moment > 0 {
		return nil
	}
	began := time.Now()
	contents, err := c.o.Store.CatalogContents(ctx)
	if err != nil {
		return fmt.Errorf("reading the catalog of streams: %w", err)
	}
	w.seen, w.at = heard, began
	w.history.Note(catalog.FromContents(contents).Rows())
	return nil
}

// answer is what a view shows now and where that is, and what it has shown at another position; nil where that is not
// known. What it shows was read at a time, or later.
func (c *Coordinator) answer(
	ctx context.Context,
	account *memory.Account,
	v *streamwatch.View,
	heard int64,
	after string,
	notBefore time.Time,
) (now,
	then streamwatch.ViewRows, position string, err error) {
	w := c.watches
	rows, before, position, err := c.tables(ctx, v.Table, heard, after, notBefore)
	if err != nil {
		return nil, nil, "", err
	}
	select {
	case w.applying <- struct{}{}:
		defer func() { <-w.applying }()
	case <-ctx.Done():
		return nil, nil, "", ctx.Err()
	}
	if now, err = v.Apply(ctx, account, rows); err == nil && before != nil {
		then, err = v.Apply(ctx, account, before)
	}
	return now, then, position, err
}

// tables are the rows of a table now and where that is, and those at another position; nil where that is not known.
func (c *Coordinator) tables(ctx context.Context, table string, heard int64, after string, notBefore time.Time) (now,
	then []catalog.Row, position string, err error) {
	w := c.watches
	select {
	case w.reading <- struct{}{}:
		defer func() { <-w.reading }()
	case <-ctx.Done():
		return nil, nil, "", ctx.Err()
	}
	if err := c.observeTables(ctx, heard, notBefore); err != nil {
		return nil, nil, "", err
	}
	now, _ = w.history.Rows(table, w.history.Moment)
	var moment int64
	if n, _ := fmt.Sscanf(after, w.instance+".%d", &moment); n == 1 {
		if rows, known := w.history.Rows(table, moment); known {
			then = append([]catalog.Row{}, rows...)
		}
	}
	return now, then, fmt.Sprintf("%s.%d", w.instance, w.history.Moment), nil
}

// Watch tells how the answer of a view changes, until ctx ends or tell has an error, which it returns. It begins with
// all of it, or with what is different since a position that was told before and is still known. tell may take its
// time: what changes meanwhile is one change. Every few seconds in which nothing changes it is told nothing. What the
// watch holds counts for its user, and it ends when queries need that.
func (c *Coordinator) Watch(
	ctx context.Context,
	user string,
	v *streamwatch.View,
	after string,
	tell func([]streamwatch.Event) error,
) error {
	if err := c.watches.enter(); err != nil {
		return err
	}
	defer c.watches.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	account := c.o.Memory.Open(memory.Holder{Owner: user, Yields: true}, 0, cancel)
	defer account.Close()
	err := c.watch(ctx, account, v, after, tell)
	var over *memory.ExceededError
	if errors.As(account.Evicted(), &over) {
		return v.Exceeded(over)
	}
	return err
}

func (c *Coordinator) watch(
	ctx context.Context,
	account *memory.Account,
	v *streamwatch.View,
	after string,
	tell func([]streamwatch.Event) error,
) error {
	changed, heard := c.watches.next()
	// Another server may have told it more than this one has heard of: what it begins with is read now.
	was, then, position, err := c.answer(ctx, account, v, heard, after, time.Now())
	if err != nil {
		return err
	}
	shown := 0
	show := func(bytes int) error {
		err := c.watches.show(account.Owner, shown, bytes)
		if err == nil {
			shown = bytes
		}
		return err
	}
	if err := show(was.Size()); err != nil {
		return err
	}
	defer func() { _ = show(0) }() // less is never refused
	first := []streamwatch.Event{v.SnapshotEvent(was, position)}
	if then != nil {
		resumed := streamwatch.Event{
			Kind:     streamwatch.Resumed,
			Type:     streamwatch.Resumed,
			Columns:  v.Columns,
			Position: after,
			Rows:     v.SnapshotEvent(nil, "").Rows,
		}
		first = append([]streamwatch.Event{resumed}, streamwatch.Changes(then, was, position)...)
	}
	for events, before := first, then; ; {
		if err := tell(events); err != nil {
			return err
		}
		account.Free(before.Size()) // events may have had rows of it
		events, before = nil, nil
		select {
		case <-changed:
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-time.After(minPassInterval): // many changes at once are one
		case <-ctx.Done():
			return ctx.Err()
		}
		changed, heard = c.watches.next()
		now, _, position, err := c.answer(ctx, account, v, heard, "", time.Time{})
		var refused *sql.Error
		switch {
		case errors.As(err, &refused): // it takes too much by now
			return err
		case err != nil:
			continue // the catalog is away for the moment
		}
		if err := show(now.Size()); err != nil {
			return err
		}
		events = streamwatch.Changes(was, now, position)
		was, before = now, was
	}
}
