// Package catalog knows the entities of streams: workers, logical and physical sources, sinks and queries. What is
// in it has been validated: names, schemas, settings and references; a query has been bound. Nothing is updated in
// place, and nothing is dropped that something else refers to.
//
// A Catalog is a value in memory, for one goroutine. A group of statements is all or nothing: it is applied to a Clone.
package catalog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// Server is the worker that stands for the process of the server that owns a query.
const Server = "server"

// Worker is a place where sources are read and queries run.
type Worker struct {
	Host               string
	GRPCPort, DataPort int64
	Slots              int64
	Peers              []string
	State              WorkerState
}

// LogicalSource is a schema that queries name.
type LogicalSource struct {
	Name    string
	Columns []column.Column
}

// PhysicalSource is where rows of a logical source come from.
type PhysicalSource struct {
	ID        int64
	Logical   string
	Placement string // empty: at the server
	Type      string
	Config    connector.Config
}

// Sink is where rows of queries go.
type Sink struct {
	Name      string
	Columns   []column.Column // none: those of the query
	Placement string
	Type      string
	Config    connector.Config
}

// Catalog holds all entities. The zero value is empty.
type Catalog struct {
	workers  []Worker
	logical  []LogicalSource
	physical []PhysicalSource
	sinks    []Sink
	queries  []Query
	lastID   int64
	lastName int64
	// by and at are who changes it, and when.
	by Author
	at time.Time
	// unconfirmed: a statement writes to a production connection that was not confirmed.
	unconfirmed bool
	// host is where fragments run that are placed on no worker; empty: queries have no fragments.
	host string
	// usedSlots are slots of queries that are not in queries.
	usedSlots map[string]int64
	// unread is what those take.
	unread Usage
	// group is what the statements have dropped that are carried out together; outcome is what the last CREATE came to.
	group   group
	outcome outcome
}

// Contents are all entities, and the numbers that were given out last.
type Contents struct {
	Workers                   []Worker
	Logical                   []LogicalSource
	Physical                  []PhysicalSource
	Sinks                     []Sink
	Queries                   []Query
	LastSourceID, LastQueryID int64
	// UsedSlots are the slots of workers that queries take which were not read.
	UsedSlots map[string]int64
	// Unread is what these queries take of the catalog.
	Unread Usage
}

// FromContents returns a catalog with contents that were taken from one. They are not changed in place.
func FromContents(c Contents) *Catalog {
	return &Catalog{workers: slices.Clip(c.Workers), logical: slices.Clip(c.Logical), physical: slices.Clip(c.Physical),
		sinks: slices.Clip(c.Sinks), queries: slices.Clip(c.Queries), lastID: c.LastSourceID, lastName: c.LastQueryID,
		usedSlots: c.UsedSlots, unread: c.Unread}
}

// Contents returns all that is in it.
func (c *Catalog) Contents() Contents {
	return Contents{c.workers, c.logical, c.physical, c.sinks, c.queries, c.lastID, c.lastName, c.usedSlots,
		c.unread}
}

// SetAuthor says who changes the catalog from now on, and when; queries keep it.
func (c *Catalog) SetAuthor(by Author, at time.Time) { c.by, c.at = by, at }

// Clone returns a catalog that changes apart from this one.
func (c *Catalog) Clone() *Catalog {
	to := *c
	to.workers, to.logical, to.physical = slices.Clone(c.workers), slices.Clone(c.logical), slices.Clone(c.physical)
	to.sinks, to.queries = slices.Clone(c.sinks), slices.Clone(c.queries)
	return &to
}

// find returns the index of what has a name.
func find[T any](list []T, name func(T) string, wanted string) int {
	return slices.IndexFunc(list, func(t T) bool { return sql.SameName(name(t), wanted) })
}

func (c *Catalog) worker(host string) int {
	return find(c.workers, func(w Worker) string { return w.Host }, host)
}

func (c *Catalog) sink(name string) int {
	return find(c.sinks, func(s Sink) string { return s.Name }, name)
}

func (c *Catalog) logicalSource(name string) int {
	return find(c.logical, func(s LogicalSource) string { return s.Name }, name)
}

func (c *Catalog) query(name string) int {
	return find(c.queries, func(q Query) string { return q.Name }, name)
}

// Schema returns the columns of a logical source.
func (c *Catalog) Schema(name string) ([]column.Column, bool) {
	i := c.logicalSource(name)
	if i < 0 {
		return nil, false
	}
	return c.logical[i].Columns, true
}

// Names are those of all logical sources.
func (c *Catalog) Names() []string {
	var names []string
	for _, s := range c.logical {
		names = append(names, s.Name)
	}
	return names
}

// Physical returns the physical sources of a logical one.
func (c *Catalog) Physical(logical string) []PhysicalSource {
	var list []PhysicalSource
	for _, p := range c.physical {
		if sql.SameName(p.Logical, logical) {
			list = append(list, p)
		}
	}
	return list
}

// Sink returns a sink by name.
func (c *Catalog) Sink(name string) (Sink, bool) {
	if i := c.sink(name); i >= 0 {
		return c.sinks[i], true
	}
	return Sink{}, false
}

// newName refuses a name that looks like an id.
func newName(source string, name sql.Name, what string) error {
	if engine.LooksLikeID(name.Text) {
		return sql.Errorf(sql.InvalidConfig, source, name.At, "choose a name in words",
			"the name %s of the %s looks like an id", name.Text, what)
	}
	return nil
}

func exists(source string, name sql.Name, what string) error {
	return sql.Errorf(sql.AlreadyExists, source, name.At, "DROP it first, or choose another name; CREATE OR REPLACE "+
		"takes its place, and IF NOT EXISTS leaves it", "there is a %s named %s already", what, name.Text)
}

// CreateLogicalSource adds a schema.
func (c *Catalog) CreateLogicalSource(source string, s *sql.CreateLogicalSource) error {
	i := c.logicalSource(s.Name.Text)
	if err := c.refuses(source, s.Name, "logical source", s.Existing, i >= 0); err != nil {
		return err
	}
	if i < 0 {
		if err := newName(source, s.Name, "logical source"); err != nil {
			return err
		}
	}
	if len(s.Columns) == 0 {
		return sql.Errorf(sql.EmptySchema, source, s.Name.At, "write name TYPE for each column",
			"the source %s has no columns", s.Name.Text)
	}
	columns, err := schema(source, s.Columns)
	if err != nil {
		return err
	}
	if i >= 0 {
		equal := slices.Equal(c.logical[i].Columns, columns)
		if keeps, err := c.keeps(source, s.Name, "logical source", s.Existing, equal); keeps || err != nil {
			return err
		}
		if c.ofProduct(s.Name.Text) {
			return protected(source, s.Name, "cannot be replaced")
		}
		return c.replaceLogical(source, s.Name, i, LogicalSource{c.logical[i].Name, columns})
	}
	c.logical = append(c.logical, LogicalSource{s.Name.Text, columns})
	return nil
}

// maxColumns is how many columns a schema has at most.
const maxColumns = 1000

// schema checks columns; the error is an InvalidSchema.
func schema(source string, definitions []sql.ColumnDefinition) ([]column.Column, error) {
	if len(definitions) > maxColumns {
		return nil, sql.Errorf(sql.InvalidSchema, source, definitions[0].Name.At, "",
			"a schema has at most %d columns", maxColumns)
	}
	var columns []column.Column
	for _, d := range definitions {
		t, err := column.TypeNamed(d.Type.Name.Text, d.Type.Args)
		if err != nil {
			hint := sql.Suggest(d.Type.Name.Text, column.TypeNames...)
			if hint == "" {
				hint = "there are " + strings.Join(column.TypeNames, ", ")
			}
			return nil, sql.Errorf(sql.InvalidSchema, source, d.Type.Name.At, hint, "%v", err)
		}
		if find(columns, func(c column.Column) string { return c.Name }, d.Name.Text) >= 0 {
			return nil, sql.Errorf(sql.InvalidSchema, source, d.Name.At, "names differ by more than case",
				"two columns are named %s", d.Name.Text)
		}
		columns = append(columns, column.Column{Name: d.Name.Text, Type: t, NotNull: d.NotNull})
	}
	return columns, nil
}

// kindOf checks a type of source or sink.
func kindOf(kind sql.Kind, source string, name sql.Name, all []string) (string, error) {
	k := strings.ToUpper(name.Text)
	if slices.Contains(all, k) {
		return k, nil
	}
	hint := sql.Suggest(name.Text, all...)
	if hint == "" {
		hint = "there are " + strings.Join(all, ", ")
	}
	return "", sql.Errorf(kind, source, name.At, hint, "there is no type %s", name.Text)
}

// CreatePhysicalSource adds where rows come from, and returns its id.
func (c *Catalog) CreatePhysicalSource(source string, s *sql.CreatePhysicalSource) (int64, error) {
	if c.logicalSource(s.Logical.Text) < 0 {
		return 0, sql.Errorf(sql.LogicalSourceDoesNotExistForPhysical, source, s.Logical.At,
			sql.Suggest(s.Logical.Text, c.Names()...), "there is no logical source %s", s.Logical.Text)
	}
	if c.ofProduct(s.Logical.Text) {
		return 0, protected(source, s.Logical, "takes no rows from elsewhere")
	}
	kind, err := kindOf(sql.SourceTypeDoesNotExist, source, s.Type, connector.SourceTypes)
	if err != nil {
		return 0, err
	}
	if s.Placement.Text != "" && c.worker(s.Placement.Text) < 0 {
		return 0, sql.Errorf(sql.WorkerDoesNotExistForPhysical, source, s.Placement.At,
			sql.Suggest(s.Placement.Text, c.hosts()...), "there is no worker %s", s.Placement.Text)
	}
	i := slices.IndexFunc(c.physical, func(p PhysicalSource) bool {
		return sql.SameName(p.Logical, s.Logical.Text) && sql.SameName(p.Placement, s.Placement.Text) && p.Type == kind
	})
	if i >= 0 && c.refuses(source, s.Type, "", s.Existing, true) != nil {
		return 0, sourceExists(source, s, c.physical[i])
	}
	config, err := connector.SourceConfig(kind, source, s.Type.At, s.Settings)
	if err != nil {
		return 0, err
	}
	logical := c.logical[c.logicalSource(s.Logical.Text)]
	if stream := config.String("SOURCE.STREAM"); kind == connector.System {
		if want, fits := system.Fits(stream, logical.Columns); !fits {
			return 0, sql.Errorf(sql.InvalidConfig, source, s.Logical.At, "its columns are "+want,
				"%s has other columns than the stream %s", logical.Name, stream)
		}
	}
	n := PhysicalSource{Logical: logical.Name, Placement: s.Placement.Text, Type: kind, Config: config}
	if i < 0 {
		var dropped bool
		if n, dropped = c.droppedSource(n, s.Settings); !dropped {
			c.lastID++
			n.ID = c.lastID
		}
		c.physical = append(c.physical, n)
		return n.ID, nil
	}
	there := c.physical[i]
	keeps, err := c.keeps(source, s.Type, "physical source", s.Existing,
		connector.SameSource(kind, there.Config, config, s.Settings))
	switch {
	case err != nil:
		return 0, sourceExists(source, s, there)
	case keeps:
		return there.ID, nil
	}
	c.lastID++
	n.ID = c.lastID
	return n.ID, c.replaceSource(source, s.Logical, i, n)
}

func sourceExists(source string, s *sql.CreatePhysicalSource, there PhysicalSource) error {
	return sql.Errorf(
		sql.AlreadyExists,
		source,
		s.Type.At,
		"DROP it first, or place this one ON another worker; CREATE OR REPLACE takes its place",
		"the source %s has a physical source of the type %s there already, with the id %d",
		there.Logical,
		there.Type,
		there.ID,
	)
}

// CreateSink adds where rows go.
func (c *Catalog) CreateSink(source string, s *sql.CreateSink) error {
	i := c.sink(s.Name.Text)
	if err := c.refuses(source, s.Name, "sink", s.Existing, i >= 0); err != nil {
		return err
	}
	if i < 0 {
		if err := newName(source, s.Name, "sink"); err != nil {
			return err
		}
	}
	kind, err := kindOf(sql.SinkTypeDoesNotExist, source, s.Type, connector.SinkTypes)
	if err != nil {
		return err
	}
	if s.Placement.Text != "" && c.worker(s.Placement.Text) < 0 {
		return sql.Errorf(sql.WorkerDoesNotExistForSink, source, s.Placement.At,
			sql.Suggest(s.Placement.Text, c.hosts()...), "there is no worker %s", s.Placement.Text)
	}
	columns, err := schema(source, s.Columns)
	if err != nil {
		return err
	}
	config, err := connector.SinkConfig(kind, source, s.Type.At, s.Settings)
	if err != nil {
		return err
	}
	n := Sink{s.Name.Text, columns, s.Placement.Text, kind, config}
	if kind == connector.Postgres {
		if err := c.checkTableSink(source, s, &n); err != nil {
			return err
		}
	}
	if i < 0 {
		c.sinks = append(c.sinks, n)
		return nil
	}
	there := c.sinks[i]
	equal := slices.Equal(there.Columns, n.Columns) && sql.SameName(there.Placement, n.Placement) &&
		there.Type == n.Type &&
		reflect.DeepEqual(there.Config, n.Config)
	if keeps, err := c.keeps(source, s.Name, "sink", s.Existing, equal); keeps || err != nil {
		return err
	}
	return c.replaceSink(source, s.Name, i, n)
}

func (c *Catalog) hosts() []string {
	var list []string
	for _, w := range c.workers {
		list = append(list, w.Host)
	}
	return list
}

// CreateWorker adds a worker.
func (c *Catalog) CreateWorker(source string, s *sql.CreateWorker) error {
	if err := c.refuses(source, s.Host, "worker", s.Existing, c.worker(s.Host.Text) >= 0); err != nil {
		return err
	}
	if strings.ContainsAny(s.Host.Text, " /\\:@\t\n") {
		return sql.Errorf(sql.InvalidAddress, source, s.Host.At, "the ports are GRPC_PORT and DATA_PORT",
			"%s is no host name", s.Host.Text)
	}
	w := Worker{Host: s.Host.Text, Slots: 1, State: Active}
	if c.host != "" {
		w.State = Unreachable // until its node is there
	}
	numbers := map[string]*int64{"GRPC_PORT": &w.GRPCPort, "DATA_PORT": &w.DataPort, "NUM_SLOTS": &w.Slots}
	for _, set := range s.Settings {
		if set.Path == "PEERS" {
			if err := c.peers(source, &w, set); err != nil {
				return err
			}
			continue
		}
		to, ok := numbers[set.Path]
		if !ok {
			return sql.Errorf(sql.InvalidConfig, source, set.At,
				sql.Suggest(set.Path, "GRPC_PORT", "DATA_PORT", "NUM_SLOTS", "PEERS"), "a worker has no setting %s", set.Path)
		}
		n, whole := set.Value.(int64)
		if port := set.Path != "NUM_SLOTS"; !whole || n < 1 || port && n > 65535 || n > 1_000_000 {
			kind, what := sql.InvalidConfig, "1 to 1000000"
			if port {
				kind, what = sql.InvalidAddress, "a port, 1 to 65535"
			}
			return sql.Errorf(kind, source, set.At, "", "%s is %s", set.Path, what)
		}
		*to = n
	}
	i := c.worker(w.Host)
	if i < 0 {
		c.workers = append(c.workers, w)
		return nil
	}
	there := c.workers[i]
	w.Host, w.State = there.Host, there.State
	if keeps, err := c.keeps(source, s.Host, "worker", s.Existing, equalWorkers(there, w)); keeps || err != nil {
		return err
	}
	return c.replaceWorker(source, s.Host, i, w)
}

// peers are the workers that this one sends rows to. They are there already, so that no way leads in a circle.
func (c *Catalog) peers(source string, w *Worker, set sql.Setting) error {
	list, ok := set.Value.([]any)
	if !ok {
		list = []any{set.Value}
	}
	for _, p := range list {
		host, ok := p.(string)
		switch {
		case !ok:
			return sql.Errorf(sql.InvalidConfig, source, set.At, "('w1', 'w2') AS PEERS", "PEERS are hosts")
		case sql.SameName(host, w.Host):
			return sql.Errorf(sql.InvalidTopology, source, set.At, "", "a worker is no peer of its own")
		case c.worker(host) < 0:
			return sql.Errorf(sql.DoesNotExist, source, set.At, "CREATE the peer first",
				"there is no worker %s", host)
		case slices.ContainsFunc(w.Peers, func(p string) bool { return sql.SameName(p, host) }):
			return sql.Errorf(sql.InvalidTopology, source, set.At, "name it once",
				"the peer %s is given twice", host)
		}
		w.Peers = append(w.Peers, host)
	}
	return nil
}

// ofProduct reports whether a logical source is one of the product: it is called like the stream that it reads from
// this process. Queries and rules of everybody read these, so no statement takes one away, or mixes rows into one.
func (c *Catalog) ofProduct(logical string) bool {
	return slices.ContainsFunc(c.physical, func(p PhysicalSource) bool {
		return p.Type == connector.System && p.Placement == "" && sql.SameName(p.Logical, logical) &&
			sql.SameName(p.Logical, p.Config.String("SOURCE.STREAM"))
	})
}

// protected refuses a change of a source of the product.
func protected(source string, name sql.Name, what string) error {
	return sql.Errorf(sql.ProtectedSource, source, name.At, "CREATE a source of your own, under another name",
		"%s is a source of the product: it %s", name.Text, what)
}

// Drop takes an entity out that nothing refers to, and returns whether it was there.
func (c *Catalog) Drop(source string, d *sql.Drop) (bool, error) {
	name := d.Name.Text
	used := func(kind sql.Kind, what string) error {
		return sql.Errorf(kind, source, d.Name.At, "DROP it first", "%s is used by %s", name, what)
	}
	switch d.Entity {
	case sql.LogicalSource:
		if c.ofProduct(name) {
			return true, protected(source, d.Name, "cannot be dropped")
		}
		if list := c.Physical(name); len(list) > 0 {
			return true, used(sql.ReferencedPhysicalSourceExists, fmt.Sprintf("the physical source %d", list[0].ID))
		}
		if i := c.logicalSource(name); i >= 0 && c.host != "" {
			c.group.logical = append(slices.Clip(c.group.logical), c.logical[i])
		}
		return remove(&c.logical, c.logicalSource(name)), nil
	case sql.PhysicalSource:
		i := slices.IndexFunc(c.physical, func(p PhysicalSource) bool { return fmt.Sprint(p.ID) == name })
		if i >= 0 && c.ofProduct(c.physical[i].Logical) {
			return true, protected(source, sql.Name{Text: c.physical[i].Logical, At: d.Name.At}, "cannot be dropped")
		}
		for _, q := range c.queries {
			if i >= 0 && slices.Contains(q.Sources, c.physical[i].ID) && !c.leaves(q) {
				return true, used(sql.ReferencedQueryExists, "the query "+q.Name)
			}
		}
		if i >= 0 {
			c.forgetSource(c.physical[i])
		}
		return remove(&c.physical, i), nil
	case sql.Sink:
		for _, q := range c.queries {
			if sql.SameName(q.Sink, name) && !c.leaves(q) {
				return true, used(sql.ReferencedQueryExists, "the query "+q.Name)
			}
		}
		if s, there := c.Sink(name); there {
			c.forgetSink(s)
		}
		return remove(&c.sinks, c.sink(name)), nil
	case sql.Query:
		return c.dropQuery(d), nil
	}
	for _, p := range c.physical {
		if sql.SameName(p.Placement, name) {
			return true, used(sql.ReferencedSourceExists, fmt.Sprintf("the physical source %d", p.ID))
		}
	}
	for _, s := range c.sinks {
		if sql.SameName(s.Placement, name) {
			return true, used(sql.ReferencedSinkExists, "the sink "+s.Name)
		}
	}
	for _, q := range c.queries {
		if slices.ContainsFunc(q.Fragments, func(f Fragment) bool { return sql.SameName(f.Host, name) }) {
			return true, used(sql.ReferencedQueryExists, "the query "+q.Name)
		}
	}
	for _, w := range c.workers {
		if slices.ContainsFunc(w.Peers, func(p string) bool { return sql.SameName(p, name) }) {
			return true, used(sql.InvalidTopology, "the worker "+w.Host+", which sends rows to it")
		}
	}
	return remove(&c.workers, c.worker(name)), nil
}

// remove takes one out; the list may be shared with a clone, and is made anew.
func remove[T any](list *[]T, i int) bool {
	if i < 0 {
		return false
	}
	*list = slices.Concat((*list)[:i], (*list)[i+1:])
	return true
}

// config is a configuration as text, sorted, without its secrets.
func config(c connector.Config) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s=%q", path, connector.Masked(path, c[path])))
	}
	return strings.Join(parts, " ")
}
