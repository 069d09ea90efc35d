package catalog

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Bind checks a query against the catalog and returns its plan. source is the text that it was parsed from.
func (c *Catalog) Bind(source string, q *sql.CreateQuery) (*plan.Plan, error) {
	into := q.Select.Into
	var sink Sink
	if into.Text != "" {
		var ok bool
		if sink, ok = c.Sink(into.Text); !ok {
			var names []string
			for _, s := range c.sinks {
				names = append(names, s.Name)
			}
			return nil, sql.Errorf(sql.SinkDoesNotExistForQuery, source, into.At,
				sql.Suggest(into.Text, names...), "there is no sink %s", into.Text)
		}
	}
	p, err := plan.Bind(source, q.Select, c)
	if err != nil {
		return nil, err
	}
	if err := p.Into(source, into.At, sink.Name, sink.Columns); err != nil {
		return nil, err
	}
	if sink.Type == connector.Guardrail && sink.Config.String("SINK.RUN_ID") == "" && connector.RunColumn(p.Columns) < 0 {
		return nil, sql.Errorf(sql.BinderError, source, into.At,
			"select runId, or give the sink SET('…' AS SINK.RUN_ID)", "no column names the run that %s stops", sink.Name)
	}
	if sink.Type == connector.Metric {
		if what, hint := connector.CheckMetric(p.Columns); what != "" {
			return nil, sql.Errorf(sql.BinderError, source, into.At, hint, "%s", what)
		}
	}
	for _, s := range p.Scans {
		if len(c.Physical(s.Source)) == 0 && into.Text != "" {
			return nil, sql.Errorf(sql.PlacementError, source, q.At,
				"CREATE PHYSICAL SOURCE FOR "+s.Source+" TYPE …", "the source %s has no physical source", s.Source)
		}
		if id := c.selfRead(s.Source, sink); id > 0 {
			return nil, sql.Errorf(sql.OptimizerError, source, into.At, "write to another file",
				"the query would write to the file that the physical source %d of %s reads", id, s.Source)
		}
	}
	return p, nil
}

// Plan parses and binds a query that is kept.
func (c *Catalog) Plan(q Query) (*plan.Plan, error) {
	parsed, err := sql.Parse(q.Statement)
	if err != nil {
		return nil, err
	}
	if len(parsed) == 1 {
		if create, is := parsed[0].Statement.(*sql.CreateQuery); is {
			return c.Bind(q.Statement, create)
		}
	}
	return nil, sql.Errorf(sql.BinderError, q.Statement, 0, "", "this is no query")
}

// selfRead is the id of a physical source that reads the file which a sink writes: it would be emptied before it is
// read, or be read for ever. 0 where there is none.
func (c *Catalog) selfRead(logical string, sink Sink) int64 {
	for _, p := range c.Physical(logical) {
		if p.Type == connector.File && sink.Type == connector.File &&
			path.Clean(p.Config.String("SOURCE.FILE_PATH")) == path.Clean(sink.Config.String("SINK.FILE_PATH")) &&
			sql.SameName(cmp.Or(p.Placement, Server), c.TailOf(sink)) {
			return p.ID
		}
	}
	return 0
}

// CreateQuery adds a query, which is PENDING, and returns its name, or the one that it gets, with its plan.
func (c *Catalog) CreateQuery(source string, q *sql.CreateQuery) (string, *plan.Plan, error) {
	if i := c.query(q.Name.Text); i >= 0 && q.Name.Text != "" {
		if done, name, p, err := c.createExisting(source, q, i); done || err != nil {
			return name, p, err
		}
	}
	if i := slices.IndexFunc(c.queries, func(there Query) bool { return unchanged(there, q) }); i >= 0 &&
		q.Name.Text == "" && c.by.KeepEqual {
		p, err := c.Bind(source, q)
		c.outcome = kept
		return c.queries[i].Name, p, err
	}
	if q.Name.Text != "" {
		if err := newName(source, q.Name, "query"); err != nil {
			return "", nil, err
		}
	}
	p, err := c.Bind(source, q)
	if err != nil {
		return "", nil, err
	}
	c.lastName++
	name := q.Name.Text
	for name == "" || c.query(name) >= 0 && q.Name.Text == "" {
		if name != "" {
			c.lastName++
		}
		name = fmt.Sprintf("query_%d", c.lastName)
	}
	n := Query{ID: c.lastName, Name: name, Statement: q.Source, Sink: q.Select.Into.Text, State: Pending, Desired: Running,
		Since: c.at, CreatedAt: c.at, CreatedBy: c.by.Name, CreatedByID: c.by.UserID}
	n.Sources = c.reads(p)
	if n.Fragments, err = c.placeFragments(source, q.At, n.Sink, p); err != nil {
		return "", nil, err
	}
	if i := c.sink(n.Sink); i >= 0 {
		n.Sink = c.sinks[i].Name
		if err := c.authorizeWrite(source, q.Select.Into.At, &n, c.sinks[i], p); err != nil {
			return "", nil, err
		}
	}
	c.queries = append(c.queries, n)
	return name, p, nil
}

// createExisting carries a CREATE out of a query whose name is taken; done is false where the name is free by then.
func (c *Catalog) createExisting(source string, q *sql.CreateQuery, i int) (done bool, name string, p *plan.Plan,
	err error) {
	there := c.queries[i]
	switch {
	case c.leaves(there):
	case there.Desired == Stopped && !there.State.Final():
		return true, "", nil, sql.Errorf(sql.NameLocked, source, q.Name.At,
			"wait until it is gone, or choose another name", "the query %s is being dropped: it is %s", there.Name, there.State)
	default:
		keeps, err := c.keeps(source, q.Name, "query", q.Existing, unchanged(there, q))
		if err != nil {
			return true, "", nil, err
		}
		if keeps {
			p, err = c.Plan(there)
			return true, there.Name, p, err
		}
		if there.State.Final() || len(there.Fragments) == 0 {
			remove(&c.queries, i) // nothing of it runs
			return false, "", nil, nil
		}
	}
	now, err := c.replaceQuery(source, q, i)
	if err != nil {
		return true, "", nil, err
	}
	c.queries = slices.Clone(c.queries)
	c.queries[i] = now
	p, err = c.Plan(now)
	return true, now.Name, p, err
}

// reads are the ids of the physical sources of a plan, each once.
func (c *Catalog) reads(p *plan.Plan) []int64 {
	var ids []int64
	for _, s := range p.Scans {
		for _, physical := range c.Physical(s.Source) {
			if !slices.Contains(ids, physical.ID) {
				ids = append(ids, physical.ID)
			}
		}
	}
	return ids
}

// Explain is the plan of a query, the last step first, with the fragments that it would have.
func (c *Catalog) Explain(source string, q *sql.CreateQuery) ([]string, error) {
	p, err := c.Bind(source, q)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(p.Text(), "\n"), "\n")
	fragments, err := c.placeFragments(source, q.At, q.Select.Into.Text, p)
	for _, f := range fragments {
		var ids []string
		for _, id := range c.readOn(p, f.Host) {
			ids = append(ids, fmt.Sprint(id))
		}
		lines = append(lines, "Fragment on "+f.Host+", physical sources "+cmp.Or(strings.Join(ids, " "), "none"))
		if len(fragments) == 1 {
			break // it is the whole plan
		}
		for step := range strings.SplitSeq(strings.TrimSuffix(f.Plan, "\n"), "\n") {
			lines = append(lines, "  "+step)
		}
	}
	return lines, err
}

// Listing is what GET shows.
type Listing struct {
	Columns []string
	Rows    [][]string
}

// Get returns entities. Naming one that is not there is DoesNotExist.
func (c *Catalog) Get(source string, g *sql.Get) (Listing, error) {
	l := Listing{}
	if err := c.filters(source, g); err != nil {
		return l, err
	}
	is := func(wanted sql.Name, value string) bool {
		return wanted.Text == "" || sql.SameName(wanted.Text, value)
	}
	switch g.Entity {
	case sql.LogicalSource:
		l.Columns = []string{"name", "schema"}
		for _, s := range c.logical {
			if is(g.Name, s.Name) {
				l.Rows = append(l.Rows, []string{s.Name, schemaText(s.Columns)})
			}
		}
	case sql.PhysicalSource:
		l.Columns = []string{"id", "logical_source", "placement", "type", "config"}
		for _, p := range c.physical {
			if is(g.Name, fmt.Sprint(p.ID)) && is(g.Logical, p.Logical) && is(g.Node, cmp.Or(p.Placement, c.host)) &&
				is(g.Type, p.Type) {
				l.Rows = append(l.Rows, []string{fmt.Sprint(p.ID), p.Logical, p.Placement, p.Type, config(p.Config)})
			}
		}
	case sql.Sink:
		l.Columns = []string{"name", "schema", "placement", "type", "config"}
		for _, s := range c.sinks {
			if is(g.Name, s.Name) && is(g.Node, cmp.Or(s.Placement, c.host)) && is(g.Type, s.Type) {
				l.Rows = append(l.Rows, []string{s.Name, schemaText(s.Columns), s.Placement, s.Type, config(s.Config)})
			}
		}
	case sql.Query:
		l.Columns = []string{"name", "state", "sink", "statement"}
		full := c.host != "" // what a catalog of one process has no use for
		if full {
			l.Columns = append(l.Columns, "desired_state", "since", "created_by", "failure", "workers")
		}
		for _, q := range c.queries {
			if is(g.Name, q.Name) && is(g.State, string(q.State)) && (g.Node.Text == "" || c.runsOn(q, g.Node.Text)) {
				row := []string{q.Name, string(q.State), q.Sink, q.Statement}
				if full {
					row = append(row, string(q.Desired), q.Since.UTC().Format(engine.TimeLayout), q.CreatedBy, q.Failure,
						q.places())
				}
				l.Rows = append(l.Rows, row)
			}
		}
	case sql.Worker:
		l.Columns = []string{"host_name", "state", "grpc_port", "data_port", "slots", "peers"}
		for _, w := range c.workers {
			if is(g.Name, w.Host) && is(g.State, string(w.State)) &&
				(g.Capacity == nil || w.Slots-c.Used(w.Host) >= *g.Capacity) {
				l.Rows = append(l.Rows, []string{w.Host, string(w.State), fmt.Sprint(w.GRPCPort), fmt.Sprint(w.DataPort),
					fmt.Sprint(w.Slots), strings.Join(w.Peers, " ")})
			}
		}
	}
	if g.Name.Text != "" && len(l.Rows) == 0 {
		return l, sql.Errorf(sql.DoesNotExist, source, g.Name.At,
			sql.Suggest(g.Name.Text, c.namesOf(g.Entity)...), "there is no %s %s",
			strings.ToLower(string(g.Entity)), g.Name.Text)
	}
	return l, nil
}

// namesOf are the names of what there is of an entity; those of physical sources are numbers.
func (c *Catalog) namesOf(e sql.Entity) (names []string) {
	switch e {
	case sql.LogicalSource:
		return c.Names()
	case sql.Sink:
		for _, s := range c.sinks {
			names = append(names, s.Name)
		}
	case sql.Query:
		for _, q := range c.queries {
			names = append(names, q.Name)
		}
	case sql.Worker:
		for _, w := range c.workers {
			names = append(names, w.Host)
		}
	}
	return names
}

// filters refuses a GET that names what there is none of: an empty answer would look as if nothing was to be shown.
func (c *Catalog) filters(source string, g *sql.Get) error {
	states, types := queryStates, connector.SinkTypes
	if g.Entity == sql.Worker {
		states = workerStates
	}
	if g.Entity == sql.PhysicalSource {
		types = connector.SourceTypes
	}
	workers := append(c.namesOf(sql.Worker), c.host)
	for _, f := range []struct {
		what   string
		wanted sql.Name
		known  []string
		shown  bool // all of them are a hint
	}{{"logical source", g.Logical, c.Names(), false}, {"worker", g.Node, workers, false}, {"type", g.Type, types, true},
		{"state", g.State, states, true}} {
		is := func(known string) bool { return sql.SameName(known, f.wanted.Text) }
		if f.wanted.Text == "" || slices.ContainsFunc(f.known, is) {
			continue
		}
		hint := sql.Suggest(f.wanted.Text, f.known...)
		if hint == "" && f.shown {
			hint = "there are " + strings.Join(f.known, ", ")
		}
		return sql.Errorf(sql.DoesNotExist, source, f.wanted.At, hint, "there is no %s %s", f.what, f.wanted.Text)
	}
	return nil
}

// places are the workers of a query.
func (q Query) places() string {
	var parts []string
	for _, f := range q.Fragments {
		parts = append(parts, f.Host)
	}
	return strings.Join(parts, " ")
}

// runsOn reports whether a query reads a source, or has its sink, on a worker.
func (c *Catalog) runsOn(q Query, host string) bool {
	if s, ok := c.Sink(q.Sink); ok && sql.SameName(s.Placement, host) {
		return true
	}
	if slices.ContainsFunc(q.Fragments, func(f Fragment) bool { return sql.SameName(f.Host, host) }) {
		return true
	}
	for _, p := range c.physical {
		for _, id := range q.Sources {
			if p.ID == id && sql.SameName(p.Placement, host) {
				return true
			}
		}
	}
	return false
}

func schemaText(columns []column.Column) string {
	var parts []string
	for _, c := range columns {
		part := c.Name + " " + c.Type.String()
		if c.NotNull {
			part += " NOT NULL"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Result is what a statement gave.
type Result struct {
	Statement string `json:"statement"`
	// Done says what was done, in words; empty of statements that show something.
	Done    string     `json:"done,omitempty"`
	Columns []string   `json:"columns" nullable:"false"`
	Rows    [][]string `json:"rows" nullable:"false"`
}

// Applied is a statement that was carried out.
type Applied struct {
	Result
	// Plan is that of a query, Dropped says of a DROP that there was something to drop.
	Plan    *plan.Plan
	Dropped bool
}

// Apply carries out a statement of a text.
func (c *Catalog) Apply(text string, p sql.Parsed) (r Applied, err error) {
	r.Statement, r.Columns, r.Rows = p.Text, []string{}, [][]string{}
	c.outcome = created
	switch st := p.Statement.(type) {
	case *sql.CreateWorker:
		err = c.CreateWorker(text, st)
		r.Done = c.outcome.sentence("the worker " + st.Host.Text)
	case *sql.CreateLogicalSource:
		err = c.CreateLogicalSource(text, st)
		r.Done = c.outcome.sentence("the logical source " + st.Name.Text)
	case *sql.CreatePhysicalSource:
		var id int64
		id, err = c.CreatePhysicalSource(text, st)
		r.Done = c.outcome.sentence(fmt.Sprintf("the physical source %d", id))
		r.Columns, r.Rows = []string{"id"}, [][]string{{fmt.Sprint(id)}}
	case *sql.CreateSink:
		err = c.CreateSink(text, st)
		r.Done = c.outcome.sentence("the sink " + st.Name.Text)
	case *sql.CreateQuery:
		var name string
		name, r.Plan, err = c.CreateQuery(text, st)
		if r.Done = "accepted the query " + name; c.outcome != created {
			r.Done = c.outcome.sentence("the query " + name)
		}
		r.Columns, r.Rows = []string{"name"}, [][]string{{name}}
	case *sql.Drop:
		r.Dropped, err = c.Drop(text, st)
		what := strings.ToLower(string(st.Entity)) + " " + st.Name.Text
		if r.Done = "there is no " + what; r.Dropped {
			r.Done = "dropped the " + what
		}
	case *sql.Resume:
		err = c.resumeQuery(text, st)
		r.Done = "resumed the query " + st.Name.Text
	case *sql.Get:
		var l Listing
		l, err = c.Get(text, st)
		r.Columns, r.Rows = l.Columns, append(r.Rows, l.Rows...)
	case *sql.Explain:
		var lines []string
		lines, err = c.Explain(text, st.Query)
		r.Columns = []string{"plan"}
		for _, l := range lines {
			r.Rows = append(r.Rows, []string{l})
		}
	default:
		err = sql.Errorf(sql.BinderError, text, p.At, "",
			"WATCH is a request of its own: GET /api/v1/streams/watch")
	}
	return r, err
}
