package catalog

import (
	"cmp"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// What a catalog holds at most: each server reads all of it, again and again.
const (
	maxWorkers         = 1000
	maxLogicalSources  = 5000
	maxPhysicalSources = 5000
	maxSinks           = 5000
	// maxQueries is also that of those which have ended, until they are dropped; maxUserQueries is how many one user may
	// have made.
	maxQueries     = 4000
	maxUserQueries = 500
	// maxBytes is the length of all statements, plans, schemas and settings.
	maxBytes = 16 << 20
)

// Usage is what queries take of a catalog.
type Usage struct {
	Queries, Bytes int64
	// ByUser is how many each user has made, by id.
	ByUser map[string]int64
}

// size is what a catalog holds.
type size struct {
	Usage
	workers, logical, physical, sinks int64
}

// Author is whom a query counts for: the user's id, or the name of a process that has none.
func (q Query) Author() string { return cmp.Or(q.CreatedByID, q.CreatedBy) }

// Bytes is what the query takes of the catalog.
func (q Query) Bytes() int64 {
	n := len(q.Name) + len(q.Statement)
	for _, f := range q.Fragments {
		n += len(f.Plan)
	}
	return int64(n)
}

// size is what the catalog holds now.
func (c *Catalog) size() size {
	s := size{workers: int64(len(c.workers)), logical: int64(len(c.logical)), physical: int64(len(c.physical)),
		sinks: int64(len(c.sinks)), Usage: Usage{Queries: c.unread.Queries + int64(len(c.queries)), Bytes: c.unread.Bytes,
			ByUser: map[string]int64{}}}
	for user, n := range c.unread.ByUser {
		s.ByUser[user] = n
	}
	for _, q := range c.queries {
		s.ByUser[q.Author()]++
		s.Bytes += q.Bytes()
	}
	schema := func(columns []column.Column) {
		for _, col := range columns {
			s.Bytes += int64(len(col.Name) + 16)
		}
	}
	config := func(settings map[string]any) {
		for path, v := range settings {
			s.Bytes += int64(len(path) + 16)
			if text, is := v.(string); is {
				s.Bytes += int64(len(text))
			}
		}
	}
	for _, l := range c.logical {
		s.Bytes += int64(len(l.Name))
		schema(l.Columns)
	}
	for _, p := range c.physical {
		config(p.Config)
	}
	for _, k := range c.sinks {
		s.Bytes += int64(len(k.Name))
		schema(k.Columns)
		config(k.Config)
	}
	return s
}

// Bound calls change, and refuses what makes the catalog larger than it may be. The error is an InsufficientCapacity.
func (c *Catalog) Bound(change func() error) error {
	was := c.size()
	if err := change(); err != nil {
		return err
	}
	is := c.size()
	user := cmp.Or(c.by.UserID, c.by.Name)
	for _, b := range []struct {
		was, is, most int64
		what          string
	}{
		{was.workers, is.workers, maxWorkers, "workers"},
		{was.logical, is.logical, maxLogicalSources, "logical sources"},
		{was.physical, is.physical, maxPhysicalSources, "physical sources"},
		{was.sinks, is.sinks, maxSinks, "sinks"},
		{was.Queries, is.Queries, maxQueries, "queries, with those that have ended"},
		{was.ByUser[user], is.ByUser[user], maxUserQueries, "queries of " + c.by.Name + ", with those that have ended"},
		{was.Bytes, is.Bytes, maxBytes, "bytes of statements, plans and schemas"},
	} {
		if b.is > b.most && b.is > b.was {
			return sql.Errorf(sql.InsufficientCapacity, "", -1, "DROP what is not needed any more; the bound is fixed",
				"the catalog would hold %d %s, at most %d can be there", b.is, b.what, b.most)
		}
	}
	return nil
}
