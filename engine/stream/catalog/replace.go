// This part is what a CREATE does where something of the name is there already, and how a group of statements drops and
// creates under one name. A query that is replaced keeps its id: its owner ends what runs of it, and begins with what
// it is now. So no two of them run at a time, and nobody else can take the name between.

package catalog

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// outcome is what a CREATE came to.
type outcome string

const (
	created  outcome = "created"
	kept     outcome = "there is already"
	replaced outcome = "replaced"
)

// sentence says what a CREATE came to of what it names.
func (o outcome) sentence(what string) string {
	if o == kept {
		return what + " is there already: nothing was changed"
	}
	return string(o) + " " + what
}

// group is what statements that are carried out together have dropped.
type group struct {
	// queries are those that were wanted, as they were, by id; sources and sinks are as they were.
	queries map[int64]Query
	logical []LogicalSource
	sources []PhysicalSource
	sinks   []Sink
}

// dropping takes note that a query was dropped by this group, which was wanted before.
func (c *Catalog) dropping(was Query) {
	if was.Desired != Running || was.State == Terminating {
		return
	}
	if c.group.queries = maps.Clone(c.group.queries); c.group.queries == nil {
		c.group.queries = map[int64]Query{}
	}
	c.group.queries[was.ID] = was
}

// leaves reports whether a query was dropped by this group: it needs its sources and its sink no more.
func (c *Catalog) leaves(q Query) bool {
	_, is := c.group.queries[q.ID]
	return is && q.Desired == Stopped
}

// forgetSink takes the sink from queries that leave.
func (c *Catalog) forgetSink(s Sink) {
	if c.host == "" {
		return // queries without fragments are gone when they are dropped
	}
	c.group.sinks = append(slices.Clip(c.group.sinks), s)
	c.queries = slices.Clone(c.queries)
	for i := range c.queries {
		if q := &c.queries[i]; sql.SameName(q.Sink, s.Name) {
			q.Sink = ""
		}
	}
}

// forgetSource takes a physical source from queries that leave.
func (c *Catalog) forgetSource(p PhysicalSource) {
	if c.host == "" {
		return
	}
	c.group.sources = append(slices.Clip(c.group.sources), p)
	c.queries = slices.Clone(c.queries)
	for i := range c.queries {
		q := &c.queries[i]
		q.Sources = slices.DeleteFunc(slices.Clone(q.Sources), func(id int64) bool { return id == p.ID })
	}
}

// refuses is the error of a CREATE that says nothing of what is there already under its name.
func (c *Catalog) refuses(source string, name sql.Name, what string, mode sql.Existing, there bool) error {
	if there && mode == sql.RefuseExisting && !c.by.KeepEqual {
		return exists(source, name, what)
	}
	return nil
}

// keeps decides what a CREATE does with what is there already under its name: it is kept as it is, or replaced, or the
// error says that it is there. equal says that it would be made as it is.
func (c *Catalog) keeps(source string, name sql.Name, what string, mode sql.Existing, equal bool) (bool, error) {
	switch {
	case mode == sql.KeepExisting, equal && (mode == sql.ReplaceExisting || c.by.KeepEqual):
		c.outcome = kept
		return true, nil
	case mode == sql.ReplaceExisting:
		c.outcome = replaced
		return false, nil
	}
	return false, exists(source, name, what)
}

// replaceLogical puts other columns in the place of those of a logical source; its queries begin anew.
func (c *Catalog) replaceLogical(source string, name sql.Name, i int, s LogicalSource) error {
	c.logical = slices.Clone(c.logical)
	c.logical[i] = s
	var ids []int64
	for _, p := range c.Physical(s.Name) {
		if p.Type == connector.System {
			if want, fits := system.Fits(p.Config.String("SOURCE.STREAM"), s.Columns); !fits {
				return sql.Errorf(sql.InvalidConfig, source, name.At, "its columns are "+want,
					"the physical source %d reads the stream %s, which has other columns", p.ID, p.Config.String("SOURCE.STREAM"))
			}
		}
		ids = append(ids, p.ID)
	}
	return c.renew(source, name, func(q Query) bool {
		return slices.ContainsFunc(q.Sources, func(id int64) bool { return slices.Contains(ids, id) })
	})
}

// replaceSource puts a physical source in the place of another one; its queries read that, and begin anew.
func (c *Catalog) replaceSource(source string, name sql.Name, i int, p PhysicalSource) error {
	was := c.physical[i].ID
	c.physical = slices.Clone(c.physical)
	c.physical[i] = p
	c.queries = slices.Clone(c.queries)
	for k := range c.queries {
		q := &c.queries[k]
		q.Sources = slices.Clone(q.Sources)
		for n, id := range q.Sources {
			if id == was {
				q.Sources[n] = p.ID
			}
		}
	}
	return c.renew(source, name, func(q Query) bool { return slices.Contains(q.Sources, p.ID) })
}

// replaceSink puts a sink in the place of another one; its queries begin anew.
func (c *Catalog) replaceSink(source string, name sql.Name, i int, s Sink) error {
	s.Name = c.sinks[i].Name
	c.sinks = slices.Clone(c.sinks)
	c.sinks[i] = s
	return c.renew(source, name, func(q Query) bool { return sql.SameName(q.Sink, s.Name) })
}

// renew has the queries that are wanted and use something begin anew with what that is now. Rows of the author's
// choosing go where these write from then on: one whose sink has rights of its own is the author's, who must have
// them.
func (c *Catalog) renew(source string, name sql.Name, uses func(Query) bool) error {
	c.queries = slices.Clone(c.queries)
	for i, q := range c.queries {
		if q.Desired != Running || q.State.Final() || q.State == Terminating || !uses(q) {
			continue
		}
		p, err := c.Plan(q)
		if err == nil {
			q, err = c.takeOver(source, name.At, q, p)
		}
		switch {
		case errors.Is(err, ErrUnchecked):
			return err
		case err != nil:
			e := sql.Errorf(sql.ReferencedQueryExists, source, name.At, "DROP and CREATE the query in the same group",
				"the query %s could not go on: %v", q.Name, err)
			e.Cause = err
			return e
		}
		now, err := c.begin(source, name.At, i, q, p)
		if err != nil {
			return err
		}
		c.queries[i] = now
	}
	return nil
}

// takeOver makes a query that writes to a saved connection the author's, if the author may write there and what the
// query comes to fits the table. Other queries stay whose they are.
func (c *Catalog) takeOver(source string, at int, q Query, p *plan.Plan) (Query, error) {
	sink, there := c.Sink(q.Sink)
	if !there {
		return q, nil
	}
	mine := q
	if err := c.authorizeWrite(source, at, &mine, sink, p); err != nil {
		return q, err
	}
	if sink.Type == connector.Postgres {
		mine.CreatedBy, mine.CreatedByID = c.by.Name, c.by.UserID
	}
	return mine, nil
}

// begin is a query that begins anew under the id of one that is there, with a plan. What ran of it drains only where
// this group has dropped it so.
func (c *Catalog) begin(source string, at, i int, q Query, p *plan.Plan) (Query, error) {
	attempts, before := int64(0), c.queries[i]
	for _, f := range before.Fragments {
		attempts = max(attempts, f.Attempts)
	}
	c.queries[i].Fragments = nil // it gives its slots back
	fragments, err := c.placeFragments(source, at, q.Sink, p)
	c.queries[i] = before
	if err != nil {
		return q, err
	}
	for k := range fragments {
		fragments[k].Attempts = attempts // what is left of earlier ones is ended
	}
	q.Fragments = fragments
	if _, dropped := c.group.queries[q.ID]; !dropped {
		q.Graceful = false
	}
	q.State, q.Desired, q.Since, q.Failure = Pending, Running, c.at, ""
	// When it was created tells what runs of it from what it was before.
	if q.CreatedAt = c.at; !q.CreatedAt.After(before.CreatedAt) {
		q.CreatedAt = before.CreatedAt.Add(time.Microsecond)
	}
	q.Revision++
	return q, nil
}

// replaceQuery puts a query in the place of one that is there, or that this group has dropped.
func (c *Catalog) replaceQuery(source string, s *sql.CreateQuery, i int) (Query, error) {
	there := c.queries[i]
	if was, is := c.group.queries[there.ID]; is && s.Source == was.Statement && c.asBefore(was) {
		c.outcome = kept
		return was, nil // it was dropped and created as it was
	}
	p, err := c.Bind(source, s)
	if err != nil {
		return there, err
	}
	q := there
	q.Name, q.Statement, q.Sink, q.Sources = s.Name.Text, s.Source, s.Select.Into.Text, c.reads(p)
	if k := c.sink(q.Sink); k >= 0 {
		q.Sink = c.sinks[k].Name
		if err := c.authorizeWrite(source, s.Select.Into.At, &q, c.sinks[k], p); err != nil {
			return there, err
		}
	}
	q.CreatedBy, q.CreatedByID = c.by.Name, c.by.UserID
	c.outcome = replaced
	c.queries = slices.Clone(c.queries)
	return c.begin(source, s.At, i, q, p)
}

// asBefore reports whether the sink and the sources of a query are there as they were when it was dropped.
func (c *Catalog) asBefore(q Query) bool {
	sink, there := c.Sink(q.Sink)
	if !there {
		return false
	}
	if i := slices.IndexFunc(c.group.sinks, func(s Sink) bool { return sql.SameName(s.Name, q.Sink) }); i >= 0 &&
		!reflect.DeepEqual(c.group.sinks[i], sink) {
		return false
	}
	for _, id := range q.Sources {
		i := slices.IndexFunc(c.physical, func(p PhysicalSource) bool { return p.ID == id })
		if i < 0 {
			return false
		}
		name := c.physical[i].Logical
		k := slices.IndexFunc(c.group.logical, func(s LogicalSource) bool { return sql.SameName(s.Name, name) })
		if k >= 0 && !reflect.DeepEqual(c.group.logical[k], c.logical[c.logicalSource(name)]) {
			return false
		}
	}
	return true
}

// unchanged reports whether a query that is there is what a statement would make, and goes on or has ended well.
func unchanged(q Query, s *sql.CreateQuery) bool {
	return q.Statement == s.Source && q.Desired == Running && q.State != Failed && q.State != Terminating
}

// droppedSource is the physical source that this group has dropped, where one is made again as it was with some
// settings; else it is the one that is made.
func (c *Catalog) droppedSource(p PhysicalSource, given []sql.Setting) (source PhysicalSource, dropped bool) {
	for _, was := range c.group.sources {
		if was.Logical == p.Logical && was.Placement == p.Placement && was.Type == p.Type &&
			connector.SameSource(p.Type, was.Config, p.Config, given) {
			return was, true
		}
	}
	return p, false
}

// equalWorkers reports whether two workers are made alike; what becomes of them is not compared.
func equalWorkers(a, b Worker) bool {
	return a.GRPCPort == b.GRPCPort && a.DataPort == b.DataPort && a.Slots == b.Slots && slices.Equal(a.Peers, b.Peers)
}

// replaceWorker changes ports and slots of a worker. Its peers stay: a way could lead in a circle.
func (c *Catalog) replaceWorker(source string, name sql.Name, i int, w Worker) error {
	if used := c.Used(w.Host); w.Slots < used {
		return sql.Errorf(sql.InsufficientCapacity, source, name.At, "give it as many as NUM_SLOTS, or DROP queries",
			"%d slots of the worker %s are taken", used, w.Host)
	}
	if !slices.Equal(c.workers[i].Peers, w.Peers) {
		return sql.Errorf(sql.InvalidTopology, source, name.At, "DROP it, and CREATE it with others",
			"the peers of the worker %s cannot be replaced", w.Host)
	}
	c.workers = slices.Clone(c.workers)
	c.workers[i] = w
	return nil
}
