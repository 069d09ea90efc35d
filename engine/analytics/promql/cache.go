package promql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// How long who waits for a segment does so while servers bring nothing, neither it nor another before it; how often one
// is asked; how long whoever brings it may send nothing, and how often it may come to that.
const (
	segmentTimeout       = 30 * time.Second
	segmentRetryInterval = 3 * time.Second
	segmentStallTimeout  = 10 * time.Second
	segmentMaxAttempts   = 3
)

// Cache keeps segments that servers bring on the node's disk, by their hash. What it has is right: it was compared with
// its hash when it came, and one that cannot be read any more is brought again.
type Cache struct {
	disk Disk
	log  zerolog.Logger
	scan sync.Once
	// stallTimeout is segmentStill, apart from tests.
	stallTimeout time.Duration
	// lastProgress is when something of a segment came last, in nanoseconds since the epoch of Unix.
	lastProgress atomic.Int64

	mu sync.Mutex
	// known is how large segments on the disk are, by hash.
	known map[string]int64
	// waits are those that were asked for, or are on their way.
	waits    map[string]*wait
	sessions []*Session
}

// wait is a segment that does not lie there yet, and that somebody waits for.
type wait struct {
	// done is closed when it has come, or failed with err.
	done  chan struct{}
	err   error
	bytes int64
	// waiters is how many wait; comes: a server brings it.
	waiters  int
	incoming bool
}

// NewCache returns the cache of a disk; what an earlier process has left there is in it.
func NewCache(d Disk, log zerolog.Logger) *Cache {
	return &Cache{
		disk:         d,
		log:          log,
		stallTimeout: segmentStallTimeout,
		known:        map[string]int64{},
		waits:        map[string]*wait{},
	}
}

// sessionKey is of the session for whose work something is read.
type sessionKey struct{}

func (c *Cache) join(s *Session) {
	c.scan.Do(c.scanDisk)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, s)
}

func (c *Cache) leave(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = slices.DeleteFunc(c.sessions, func(o *Session) bool { return o == s })
}

// scanDisk takes in the segments that an earlier process has left.
func (c *Cache) scanDisk() {
	entries, err := os.ReadDir(c.disk.Dir())
	if err != nil {
		return // there is none yet
	}
	for _, e := range entries {
		name := e.Name()
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasPrefix(name, segmentPrefix) && strings.HasSuffix(name, suffix):
			c.disk.Apply(diskbudget.Found{Key: name, Kind: diskbudget.Cache, Bytes: info.Size()})
			c.mu.Lock()
			c.known[strings.TrimSuffix(strings.TrimPrefix(name, segmentPrefix), suffix)] = info.Size()
			c.mu.Unlock()
		case strings.HasPrefix(name, segmentPrefix):
			_ = os.Remove(filepath.Join(c.disk.Dir(), name))
		}
	}
}

func segmentFile(sum string) string { return segmentPrefix + sum + suffix }

// Read implements SegmentReader.
func (c *Cache) Read(ctx context.Context, s Segment) (set *series.Set, fetched int64, err error) {
	if !isHash(s.SHA256) {
		return nil, 0, fmt.Errorf("%.80q is no SHA-256", s.SHA256)
	}
	for range 2 {
		if !c.has(s.SHA256) {
			begin := time.Now()
			if fetched, err = c.fetch(ctx, s); err != nil {
				return nil, 0, err
			}
			c.log.Debug().Str("run_id", s.RunID).Str("sha256", s.SHA256).Int64("bytes", fetched).
				Dur("took_ms", time.Since(begin)).Msg("a segment was brought")
		}
		key := segmentFile(s.SHA256)
		c.disk.Apply(diskbudget.Used{Key: key})
		if set, err = c.open(key, s); err == nil {
			return set, fetched, nil
		}
		c.log.Warn().Err(err).Str("run_id", s.RunID).Str("sha256", s.SHA256).
			Msg("a segment on the disk cannot be read; it is brought again")
		c.drop(s.SHA256)
	}
	return nil, 0, err
}

func (c *Cache) open(key string, s Segment) (*series.Set, error) {
	f, err := record.OpenFile(filepath.Join(c.disk.Dir(), key))
	if err != nil {
		return nil, err
	}
	file, err := segment.Open(f)
	if err != nil {
		return nil, err
	}
	set, err := series.Read(file, s.Labels)
	_ = file.Close()
	return set, err
}

func isHash(sum string) bool {
	return len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}

func (c *Cache) has(sum string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.known[sum]
	return ok
}

// drop deletes a segment.
func (c *Cache) drop(sum string) {
	c.mu.Lock()
	delete(c.known, sum)
	c.mu.Unlock()
	_ = os.Remove(filepath.Join(c.disk.Dir(), segmentFile(sum)))
	c.disk.Apply(diskbudget.Gone{Key: segmentFile(sum)})
}

// evicted forgets segments that the budget has deleted.
func (c *Cache) evicted(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if strings.HasPrefix(key, segmentPrefix) {
			delete(c.known, strings.TrimSuffix(strings.TrimPrefix(key, segmentPrefix), suffix))
		}
	}
}

var errNoServer = errors.New("there is no server that could bring it")

var errSegmentTimeout = fmt.Errorf("no server has brought it, or another before it, within %v", segmentTimeout)

// fetch asks servers for a segment until it is there. It returns its size.
func (c *Cache) fetch(ctx context.Context, s Segment) (bytes int64, err error) {
	f := fetch{asker: ctx.Value(sessionKey{}), started: time.Now(),
		wanted: protocol.SegmentRequest{RunID: s.RunID, Name: s.Name, SHA256: s.SHA256}}
	for range segmentMaxAttempts {
		// Of who stands still nothing more is expected; another server may bring it.
		if bytes, err = c.await(ctx, &f); !errors.Is(err, errStalled) {
			break
		}
	}
	return bytes, err
}

// fetch is what one who waits asks for.
type fetch struct {
	wanted protocol.SegmentRequest
	// asker is the session for whose work it is wanted, if any; asked counts the servers that were asked.
	asker   any
	asked   int
	started time.Time
}

// await waits for a segment together with all who do.
func (c *Cache) await(ctx context.Context, f *fetch) (int64, error) {
	sum := f.wanted.SHA256
	c.mu.Lock()
	w := c.waits[sum]
	if w == nil {
		if bytes, ok := c.known[sum]; ok { // it has come since
			c.mu.Unlock()
			return bytes, nil
		}
		w = &wait{done: make(chan struct{})}
		c.waits[sum] = w
	}
	w.waiters++
	c.mu.Unlock()
	defer c.releaseWait(sum, w)
	again := time.NewTicker(segmentRetryInterval)
	defer again.Stop()
	for {
		if !c.ask(w, f) {
			return 0, errNoServer
		}
		select {
		case <-w.done:
			return w.bytes, w.err
		case <-again.C:
			if time.Since(f.started) >= segmentTimeout && time.Since(time.Unix(0, c.lastProgress.Load())) >= segmentTimeout {
				return 0, errSegmentTimeout
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// releaseWait is what who waits does at its end. What is on its way comes all the same: whoever asks next has it, even
// where no query waits for as long as it takes.
func (c *Cache) releaseWait(sum string, w *wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.waiters--; w.waiters == 0 && !w.incoming && c.waits[sum] == w {
		delete(c.waits, sum)
	}
}

// ask asks the server for whose work the segment is wanted, and then, should that not bring it, each in turn.
func (c *Cache) ask(w *wait, f *fetch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) == 0 {
		return false
	}
	if w.incoming {
		return true
	}
	asker, _ := f.asker.(*Session)
	first := max(slices.Index(c.sessions, asker), 0)
	c.sessions[(first+f.asked)%len(c.sessions)].send(f.wanted)
	f.asked++
	return true
}

// Put takes a segment that a server brings; one that nobody waits for, or that another server brings, is
// protocol.ErrNotWanted. What has begun goes on while something comes, for as long as the server lets it; a segment of
// which nothing comes for a while is given up, and who waits asks another server.
func (c *Cache) Put(ctx context.Context, sum string, bytes int64, content io.Reader) error {
	if !isHash(sum) {
		return fmt.Errorf("%.80q is no SHA-256", sum)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.mu.Lock()
	w := c.waits[sum]
	if w == nil || w.incoming {
		c.mu.Unlock()
		return protocol.ErrNotWanted
	}
	w.incoming = true
	c.mu.Unlock()
	still := time.AfterFunc(c.stallTimeout, func() { stop(errStalled) })
	defer still.Stop()
	stored := make(chan error, 1)
	// Whoever reads from a stream cannot be told to stop; it ends when the call does.
	go func() {
		err := c.store(sum, bytes, progressReader{content, func() {
			still.Reset(c.stallTimeout)
			c.lastProgress.Store(time.Now().UnixNano())
		}})
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, sum)
		if w.err, w.bytes = err, bytes; err == nil {
			c.known[sum] = bytes
		}
		close(w.done)
		stored <- err
	}()
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStalled = errors.New("the server that brings it sends nothing any more")

// progressReader calls on when something was read.
type progressReader struct {
	io.Reader
	onProgress func()
}

func (m progressReader) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.onProgress()
	}
	return n, err
}

// store writes a segment to the disk.
func (c *Cache) store(sum string, bytes int64, content io.Reader) (err error) {
	key := segmentFile(sum)
	if c.disk.Apply(diskbudget.Grow{Key: key, Kind: diskbudget.Cache, Bytes: bytes}) {
		return errDiskFull
	}
	path := filepath.Join(c.disk.Dir(), key)
	partial := path + ".tmp"
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
			c.disk.Apply(diskbudget.Gone{Key: key})
		}
	}()
	if err := os.MkdirAll(c.disk.Dir(), 0o700); err != nil {
		return diskFullError{err}
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return diskFullError{err}
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return diskFullError{err}
	}
	c.disk.Apply(diskbudget.Finished{Key: key, Bytes: bytes})
	return nil
}
