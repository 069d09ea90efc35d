package catalog

import (
	"errors"
	"fmt"
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

// Author is who changes the catalog, with what was found out for it. What a statement needs and is not here yet is
// asked for by an *UncheckedConnectionError or an *UncheckedTableError; the statements are then carried out again.
type Author struct {
	Name, UserID string
	// Connections are those that were judged.
	Connections []ConnectionGrant
	// Tables are those that were looked at.
	Tables []TableSchema
}

// ConnectionGrant is what the author may do with a connection.
type ConnectionGrant struct {
	// Ref is what it was asked for as: a name or an id.
	Ref string
	// Exists says that it is. The others are empty where it is not.
	Exists           bool
	ID, Name, Driver string
	// Production connections have to be confirmed; while one is not, a change is ErrUnconfirmed at its end.
	Production, Confirmed bool
}

// TableSchema is a table of a connection as it was found, or why it can not be written to, or was not found out.
type TableSchema struct {
	ConnectionID, Schema, Name string
	Table                      postgres.Table
	Err                        error
}

// UncheckedConnectionError asks for a connection to be judged for the author.
type UncheckedConnectionError struct{ Ref string }

// Error is what is missing.
func (e *UncheckedConnectionError) Error() string {
	return fmt.Sprintf("whether the connection %s may be written to was not asked", e.Ref)
}

// UncheckedTableError asks for a table to be looked at.
type UncheckedTableError struct{ ConnectionID, Schema, Name string }

// Error is what is missing.
func (e *UncheckedTableError) Error() string {
	return fmt.Sprintf("the table %s was not looked at", e.Name)
}

// ErrUnconfirmed says that statements can be carried out once the production connections that they write to have been
// confirmed.
var ErrUnconfirmed = errors.New("a production connection was not confirmed")

// connectionGrant returns a connection that is there, by name or id.
func (c *Catalog) connectionGrant(source string, at int, named string) (ConnectionGrant, error) {
	i := slices.IndexFunc(
		c.by.Connections,
		func(j ConnectionGrant) bool { return j.Ref == named || j.Exists && j.ID == named },
	)
	if i < 0 {
		return ConnectionGrant{}, &UncheckedConnectionError{named}
	}
	j := c.by.Connections[i]
	switch {
	case !j.Exists:
		return j, sql.Errorf(sql.InvalidConfig, source, at,
			"GET /api/connections lists them: give a name or an id", "there is no connection %s", named)
	case !strings.EqualFold(j.Driver, connector.Postgres):
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

// tableSchema returns a table as it was found.
func (c *Catalog) tableSchema(id, schema, name string) (TableSchema, error) {
	i := slices.IndexFunc(c.by.Tables, func(l TableSchema) bool {
		return l.ConnectionID == id && l.Name == name && l.Schema == schema
	})
	if i < 0 {
		return TableSchema{}, &UncheckedTableError{id, schema, name}
	}
	return c.by.Tables[i], nil
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
	l, err := c.tableSchema(j.ID, n.Config.String("SINK.SCHEMA"), n.Config.String("SINK.TABLE"))
	if err != nil {
		return err
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
func (c *Catalog) authorizeWrite(source string, q *sql.CreateQuery, n *Query, sink Sink, p *plan.Plan) error {
	if sink.Type != connector.Postgres {
		return nil
	}
	at := q.Select.Into.At
	j, err := c.connectionGrant(source, at, sink.Config.String(ConnectionID))
	if err != nil {
		return err
	}
	if j.Production {
		n.Confirmed = []string{j.ID}
	}
	l, err := c.tableSchema(j.ID, sink.Config.String("SINK.SCHEMA"), sink.Config.String("SINK.TABLE"))
	if err != nil {
		return err
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
