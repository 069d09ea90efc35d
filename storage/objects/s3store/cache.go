package s3store

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// blockID is where a block belongs.
type blockID struct {
	runID, name, sum string
	block            int64
}

func (p blockID) path() string {
	return filepath.Join(p.runID, p.name+"."+p.sum+"."+strconv.FormatInt(p.block, 10))
}

// cache keeps blocks on disk, the least recently used of which go first. Nothing in it is needed: what
// cannot be written or read is asked for again, and what is read is checked by who asked.
type cache struct {
	dir       string
	limit     int64
	freeSpace func() error
	log       zerolog.Logger

	mu           sync.Mutex
	used         int64
	hits, misses int64
	at           map[string]*list.Element
	all          *list.List // of *kept, most recently used first
}

type cachedBlock struct {
	path string
	size int64
}

// openCache returns the cache in dir with what an earlier process left there; limit 0 keeps nothing.
func openCache(dir string, limit int64, room func() error, log zerolog.Logger) (*cache, error) {
	c := &cache{dir: dir, limit: limit, freeSpace: room, log: log, at: map[string]*list.Element{}, all: list.New()}
	if limit <= 0 {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &engine.Error{Code: engine.CodeInternal, Cause: err,
			Message: fmt.Sprintf("The folder %s for blocks of results cannot be made.", dir),
			Hint:    "Check that the data directory is writable, or keep no cache with --results-cache -1."}
	}
	type found struct {
		cachedBlock
		at time.Time
	}
	var old []found
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err == nil && st.Mode().IsRegular() && strings.Contains(relative, ".parquet.") {
			old = append(old, found{cachedBlock{relative, st.Size()}, st.ModTime()})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the cache of results: %w", err)
	}
	slices.SortFunc(old, func(a, b found) int { return a.at.Compare(b.at) })
	for _, f := range old {
		c.at[f.path] = c.all.PushFront(&cachedBlock{f.path, f.size})
		c.used += f.size
	}
	c.shrink(0)
	return c, nil
}

// CacheState is how full the cache is, and how often it had what was asked for.
type CacheState struct{ Bytes, Limit, Hits, Misses int64 }

// Cache is the state of the cache on disk.
func (s *Store) Cache() CacheState {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheState{c.used, c.limit, c.hits, c.misses}
}

// has reports whether a block is kept.
func (c *cache) has(p blockID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[p.path()] != nil
}

// get returns a block, nil when it is not there.
func (c *cache) get(p blockID) []byte {
	path := p.path()
	c.mu.Lock()
	e := c.at[path]
	if c.misses++; e != nil {
		c.all.MoveToFront(e)
		c.hits, c.misses = c.hits+1, c.misses-1
	}
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		c.mu.Lock()
		c.drop(e)
		c.mu.Unlock()
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(c.dir, path), now, now) // the next process finds what was used last
	return b
}

// put keeps a block if there is room for it.
func (c *cache) put(p blockID, b []byte) {
	size := int64(len(b))
	if c.limit < size || !objects.IsPart(p.name) {
		return
	}
	path := p.path()
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.at[path]; old != nil {
		c.drop(old) // it was not sound
	}
	c.shrink(size)
	for c.freeSpace() != nil {
		if c.all.Len() == 0 {
			return
		}
		c.drop(c.all.Back())
	}
	if err := write(filepath.Join(c.dir, path), b); err != nil {
		c.log.Debug().Err(err).Str("dir", c.dir).Msg("a block of results is not cached")
		return
	}
	c.at[path] = c.all.PushFront(&cachedBlock{path, size})
	c.used += size
}

// write makes a file that is there as a whole or not at all.
func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err := os.WriteFile(path+".tmp", b, 0o600)
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return errors.Join(record.DiskError(filepath.Dir(path), err), os.Remove(path+".tmp"))
	}
	return nil
}

// shrink makes room for more bytes; the oldest goes first. c.mu is held.
func (c *cache) shrink(more int64) {
	for c.used+more > c.limit && c.all.Len() > 0 {
		c.drop(c.all.Back())
	}
}

// drop removes a block. c.mu is held.
func (c *cache) drop(e *list.Element) {
	k := e.Value.(*cachedBlock)
	if c.at[k.path] != e {
		return
	}
	c.all.Remove(e)
	delete(c.at, k.path)
	c.used -= k.size
	path := filepath.Join(c.dir, k.path)
	_ = os.Remove(path)
	_ = os.Remove(filepath.Dir(path)) // refused as long as it holds another
}

// forget drops the blocks of a run.
func (c *cache) forget(runID string) {
	c.dropWhere(func(path string) bool { return filepath.Dir(path) == runID })
}

// forgetFile drops the blocks of a file.
func (c *cache) forgetFile(runID, name string) {
	c.dropWhere(func(path string) bool { return strings.HasPrefix(path, filepath.Join(runID, name)+".") })
}

func (c *cache) dropWhere(is func(path string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, e := range c.at {
		if is(path) {
			c.drop(e)
		}
	}
}
