package host

import (
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// quota bounds the memory of all guests of a host together: that of each plugin, by
// its hash, and that of all. A page limit bounds one instance only, and each run
// worker of each live run has one.
type quota struct {
	// perPlugin and all are in bytes; 0 is no bound.
	perPlugin, overall int64

	mu       sync.Mutex
	byPlugin map[string]int64
	total    int64
}

// reserve counts bytes for a plugin, or says why it may not have them.
func (q *quota) reserve(c *compiled, bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	held := q.byPlugin[c.sha]
	switch {
	case q.perPlugin > 0 && held+bytes > q.perPlugin:
		return outOfMemory("Plugin %s may have no more memory: its instances in all live runs hold %s and %s more was "+
			"needed, but the limit for one plugin is %s.", "--plugin-memory",
			c.name, megabytes(held), megabytes(bytes), megabytes(q.perPlugin))
	case q.overall > 0 && q.total+bytes > q.overall:
		return outOfMemory("Plugin %s may have no more memory: it holds %s, all plugins of this process hold %s and %s "+
			"more was needed, but the limit for all is %s.", "--plugins-memory",
			c.name, megabytes(held), megabytes(q.total), megabytes(bytes), megabytes(q.overall))
	}
	if q.byPlugin == nil {
		q.byPlugin = map[string]int64{}
	}
	q.byPlugin[c.sha] = held + bytes
	q.total += bytes
	return nil
}

// release counts bytes of a plugin as free.
func (q *quota) release(c *compiled, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total -= bytes
	if q.byPlugin[c.sha] -= bytes; q.byPlugin[c.sha] == 0 {
		delete(q.byPlugin, c.sha)
	}
}

// outOfMemory names the flag of the limit.
func outOfMemory(format, flag string, args ...any) error {
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf(format, args...), Cause: plugin.ErrOutOfMemory,
		Hint: "Have fewer runs or run workers use it at a time, or raise the limit with " + flag + " (in MB)."}
}

// megabytes is a number of bytes in MB, rounded up.
func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes+1<<20-1)>>20) }
