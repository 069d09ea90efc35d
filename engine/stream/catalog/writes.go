package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// ConnectionID is the setting of a sink that keeps which connection was judged, whatever it is called later. It is not
// given in a statement.
const ConnectionID = "SINK.CONNECTION_ID"

// Author is who changes the catalog, with what was found out about the tables that the statements write to.
type Author struct {
	Name, UserID string
	// KeepEqual: a CREATE of what is there as it would be made changes nothing, in place of AlreadyExists. A group after
	// which something is another than before is carried out without that.
	KeepEqual bool
	// Connections are those that were judged.
	Connections []ConnectionGrant
	// Tables are those that were looked at.
	Tables []TableSchema
}

// Grant returns what is known of a connection, by name or id.
func (a Author) Grant(named string) (ConnectionGrant, bool) {
	return found(a.Connections, func(g ConnectionGrant) bool { return g.Ref == named || g.Exists && g.ID == named })
}

// Table returns a table as it was found, by the schema of the statement or its own.
func (a Author) Table(connectionID, schema, name string) (TableSchema, bool) {
	return found(a.Tables, func(t TableSchema) bool {
		return t.ConnectionID == connectionID && t.Name == name &&
			(t.Schema == schema || t.Err == nil && t.Table.Schema == schema)
	})
}

// Checked reports whether all is known that has to be of a table.
func (a Author) Checked(ref TableReference) bool {
	g, known := a.Grant(ref.Connection)
	if !known || !g.Usable() {
		return known
	}
	_, known = a.Table(g.ID, ref.Schema, ref.Table)
	return known
}

func found[T any](list []T, is func(T) bool) (one T, there bool) {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return one, false
	}
	return list[i], true
}

// ConnectionGrant is what the author may do with a connection.
type ConnectionGrant struct {
	// Ref is what it was asked for as: a name or an id.
	Ref string
	// Err is why the author may not use it, or why that is not known.
	Err error
	// Exists says that it is. The others are empty where it is not.
	Exists           bool
	ID, Name, Driver string
	// Production connections have to be confirmed; while one is not, a change is ErrUnconfirmed at its end.
	Production, Confirmed bool
}

// Usable reports whether rows can be written by the connection, as far as its table takes them.
func (g ConnectionGrant) Usable() bool {
	return g.Exists && g.Err == nil && strings.EqualFold(g.Driver, connector.Postgres)
}

// TableSchema is a table of a connection as it was found, or why it can not be written to, or was not found out.
type TableSchema struct {
	ConnectionID, Schema, Name string
	Table                      postgres.Table
	Err                        error
}

// TableReference is a table that statements write to, of a connection by name or id.
type TableReference struct{ Connection, Schema, Table string }

// UncheckedTables are the tables of the sinks that statements create, and of those of the catalog that their queries
// name, as far as their author does not know what to before these are applied. A sink with wrong settings has none.
func (c *Catalog) UncheckedTables(list []sql.Parsed) (refs []TableReference) {
	var created []string
	add := func(to connector.Config) {
		ref := TableReference{to.String("SINK.CONNECTION"), to.String("SINK.SCHEMA"), to.String("SINK.TABLE")}
		if to != nil && !c.by.Checked(ref) && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	for _, p := range list {
		var to connector.Config
		switch st := p.Statement.(type) {
		case *sql.CreateSink:
			created = append(created, strings.ToLower(st.Name.Text))
			if strings.EqualFold(st.Type.Text, connector.Postgres) {
				to, _ = connector.SinkConfig(connector.Postgres, "", st.Type.At, st.Settings) // applying it says what is wrong
			}
		case *sql.CreateQuery, *sql.Resume:
			into := c.sinkOf(st)
			if s, _ := c.Sink(into); !slices.Contains(created, strings.ToLower(into)) {
				to = keptTable(s)
			}
		case *sql.CreateLogicalSource:
			if st.Existing == sql.ReplaceExisting {
				c.readersWrite(st.Name.Text, add)
			}
		case *sql.CreatePhysicalSource:
			if st.Existing == sql.ReplaceExisting {
				c.readersWrite(st.Logical.Text, add)
			}
		}
		add(to)
	}
	return refs
}

// readersWrite tells of the tables that the queries of a logical source write to: they may begin anew.
func (c *Catalog) readersWrite(logical string, add func(connector.Config)) {
	for _, q := range c.queries {
		if q.Desired == Running && !q.State.Final() && slices.ContainsFunc(c.Physical(logical), func(p PhysicalSource) bool {
			return slices.Contains(q.Sources, p.ID)
		}) {
			sink, _ := c.Sink(q.Sink)
			add(keptTable(sink))
		}
	}
}

// keptTable are the settings of a sink of the type POSTGRES, whose connection is named by its id; nil of others.
func keptTable(s Sink) connector.Config {
	if s.Type != connector.Postgres {
		return nil
	}
	to := maps.Clone(s.Config)
	to["SINK.CONNECTION"] = to[ConnectionID]
	return to
}

// sinkOf is the sink of a query that a statement begins.
func (c *Catalog) sinkOf(s sql.Statement) string {
	switch s := s.(type) {
	case *sql.CreateQuery:
		return s.Select.Into.Text
	case *sql.Resume:
		if i := c.query(s.Name.Text); i >= 0 {
			return c.queries[i].Sink
		}
	}
	return ""
}

// ErrUnchecked says that there are UncheckedTables.
var ErrUnchecked = errors.New("the statements write to a table that was not looked at")

// ErrUnconfirmed says that statements can be carried out once the production connections that they write to have been
// confirmed.
var ErrUnconfirmed = errors.New("a production connection was not confirmed")

// connectionGrant returns a connection that is there, by name or id.
func (c *Catalog) connectionGrant(source string, at int, named string) (ConnectionGrant, error) {
	j, known := c.by.Grant(named)
	switch {
	case !known:
		return j, ErrUnchecked
	case j.Err != nil:
		return j, j.Err
	case !j.Exists:
		return j, sql.Errorf(sql.InvalidConfig, source, at,
			"GET /api/connections lists them: give a name or an id", "there is no connection %s", named)
	case !j.Usable():
		return j, sql.Errorf(sql.InvalidConfig, source, at,
			"name one whose driver is "+strings.ToLower(connector.Postgres),
			"the connection %s is one of the driver %s", j.Name, j.Driver)
	}
	c.unconfirmed = c.unconfirmed || j.Production && !j.Confirmed
	return j, nil
}

// Confirmed is ErrUnconfirmed when a statement writes to a production connection that was not confirmed.
func (c *Catalog) Confirmed() error {
	if c.unconfirmed {
		return ErrUnconfirmed
	}
	return nil
}

// checkTableSink checks a sink of the type POSTGRES, and keeps what was found.
func (c *Catalog) checkTableSink(source string, s *sql.CreateSink, n *Sink) error {
	if c.host == "" {
		return sql.Errorf(sql.InvalidConfig, source, s.Type.At, "run it on a server",
			"a sink of the type %s needs the saved connections of a server", n.Type)
	}
	if n.Placement != "" && !sql.SameName(n.Placement, Server) {
		return sql.Errorf(sql.InvalidConfig, source, s.Placement.At,
			"leave ON "+n.Placement+" out: rows of sources on nodes come to the server",
			"a sink of the type %s is the server's: no node is given a connection of it", n.Type)
	}
	at := func(path string) int {
		for _, set := range s.Settings {
			if set.Path == path {
				return set.At
			}
		}
		return s.Type.At
	}
	j, err := c.connectionGrant(source, at("SINK.CONNECTION"), n.Config.String("SINK.CONNECTION"))
	if err != nil {
		return err
	}
	l, known := c.by.Table(j.ID, n.Config.String("SINK.SCHEMA"), n.Config.String("SINK.TABLE"))
	if !known {
		return ErrUnchecked
	}
	if err := l.Err; err != nil {
		return notWritableError(source, at("SINK.TABLE"), err, l, n)
	}
	if len(n.Columns) > 0 {
		if _, err := l.Table.Fit(n.Columns); err != nil {
			return notWritableError(source, s.Name.At, err, l, n)
		}
	}
	n.Config["SINK.CONNECTION"], n.Config[ConnectionID] = j.Name, j.ID
	// What was looked at is what is written to, whatever the search path of the user becomes.
	n.Config["SINK.SCHEMA"] = l.Table.Schema
	return nil
}

// notWritableError is why a table can not be written to, as an error of a statement.
func notWritableError(source string, at int, err error, l TableSchema, n *Sink) error {
	var misfit *postgres.MismatchError
	if !errors.As(err, &misfit) {
		e := sql.Errorf(sql.NetworkError, source, at, "make it reachable, and CREATE the sink again",
			"the table %s could not be looked at: %v", l.Name, err)
		e.Cause = err
		return e
	}
	hint := misfit.Hint
	if misfit.Missing {
		hint = "make it first; with columns, CREATE SINK says how"
		if schema, name, cut := strings.Cut(l.Name, "."); cut && l.Schema == "" {
			hint = fmt.Sprintf("SET('%s' AS SINK.SCHEMA, '%s' AS SINK.TABLE)", schema, name)
		} else if len(n.Columns) > 0 {
			hint = postgres.CreateTable(l.Schema, l.Name, n.Columns)
		}
	}
	e := sql.Errorf(sql.InvalidConfig, source, at, hint, "%s", misfit.Message)
	e.Cause = err
	return e
}

// authorizeWrite checks that the author may write to the sink of a query, and that the query's columns fit its table as
// far as that can be found out now: it is compared again when the query begins.
func (c *Catalog) authorizeWrite(source string, at int, n *Query, sink Sink, p *plan.Plan) error {
	n.Confirmed = nil
	if sink.Type != connector.Postgres {
		return nil
	}
	j, err := c.connectionGrant(source, at, sink.Config.String(ConnectionID))
	if err != nil {
		return err
	}
	if j.Production {
		n.Confirmed = []string{j.ID}
	}
	l, known := c.by.Table(j.ID, sink.Config.String("SINK.SCHEMA"), sink.Config.String("SINK.TABLE"))
	if !known {
		return ErrUnchecked
	}
	err = l.Err
	if err == nil {
		_, err = l.Table.Fit(p.Columns)
	}
	var misfit *postgres.MismatchError
	if errors.As(err, &misfit) {
		e := sql.Errorf(sql.BinderError, source, at, misfit.Hint, "%s", misfit.Message)
		e.Cause = err
		return e
	}
	return nil
}

// ConnectionDeleted refuses a sink whose connection was deleted after it was judged.
func ConnectionDeleted(s Sink) *sql.Error {
	return sql.Errorf(sql.InvalidConfig, "", -1, "GET /api/connections lists them: give a name or an id",
		"the connection %s of the sink %s is not there any more", s.Config.String("SINK.CONNECTION"), s.Name)
}
