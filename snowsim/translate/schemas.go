package translate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// createDatabase reads CREATE DATABASE [IF NOT EXISTS] d ….
func (p *parser) createDatabase(replace bool) *plan.Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	database := p.identifier()
	comment := p.schemaOptions()
	exists, err := p.t.catalog.hasSchema(p.ctx, database, "")
	if err != nil {
		p.fail(err)
	}
	if !p.may("CREATE DATABASE", accountObject) {
		p.fail(insufficient("account", p.session.Account))
	}
	public := "PUBLIC"
	effect := plan.Effect{Database: &database, Schema: &public}
	if exists && !replace {
		if !ifNotExists {
			p.fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", database))
		}
		made := p.done(database + " already exists, statement succeeded.")
		made.Effect = effect
		return made
	}
	made := p.ddl("Database "+database+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		if replace {
			if err := p.t.dropSchemas(ctx, conn, name{database: database}); err != nil {
				return err
			}
		}
		return execAll(ctx, conn, createSchema(database, "PUBLIC", p.t.host.Now(), p.session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// createSchema reads CREATE SCHEMA [IF NOT EXISTS] [d.]s ….
func (p *parser) createSchema(replace bool) *plan.Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	n := p.schema()
	comment := p.schemaOptions()
	if ok, err := p.t.catalog.hasSchema(p.ctx, n.database, ""); err != nil {
		p.fail(err)
	} else if !ok {
		p.fail(plan.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			display(n.database)))
	}
	if !p.may("CREATE SCHEMA", databaseObject(n.database)) {
		p.fail(insufficient("database", display(n.database)))
	}
	exists, err := p.t.catalog.hasSchema(p.ctx, n.database, n.schema)
	if err != nil {
		p.fail(err)
	}
	effect := plan.Effect{Database: &n.database, Schema: &n.schema}
	if exists && !replace {
		if !ifNotExists {
			p.fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", n.schema))
		}
		made := p.done(n.schema + " already exists, statement succeeded.")
		made.Effect = effect
		return made
	}
	made := p.ddl("Schema "+n.schema+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		if replace {
			if err := p.t.dropSchemas(ctx, conn, n); err != nil {
				return err
			}
		}
		return execAll(ctx, conn, createSchema(n.database, n.schema, p.t.host.Now(), p.session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// schema reads [database.]schema.
func (p *parser) schema() name {
	parts := p.parts()
	switch len(parts) {
	case 1:
		if p.session.Database == "" {
			p.complete(parts)
		}
		return name{database: p.session.Database, schema: parts[0]}
	case 2:
		return name{database: parts[0], schema: parts[1]}
	}
	p.failf("Invalid schema name '%s'.", strings.Join(parts, "."))
	return name{}
}

// schemaOptions reads what may follow CREATE DATABASE and CREATE SCHEMA.
func (p *parser) schemaOptions() (comment string) {
	for p.peek().kind == word {
		switch {
		case p.accept("COMMENT"):
			p.acceptSymbol("=")
			comment = p.constant()
		case p.accept("WITH", "MANAGED", "ACCESS"):
		default:
			if t := p.peekAt(1); t.text != "=" {
				return comment
			}
			p.i += 2
			p.next()
		}
	}
	return comment
}

// schemaMeta is what is kept in a schema's Postgres comment.
type schemaMeta struct {
	Database  string    `json:"database"`
	Schema    string    `json:"schema"`
	CreatedOn time.Time `json:"created_on"`
	Owner     string    `json:"owner"`
	Comment   string    `json:"comment"`
}

// createSchema returns the statements that make a schema unless it exists.
func createSchema(database, schema string, now time.Time, owner, comment string) []string {
	entry, err := json.Marshal(schemaMeta{database, schema, now.UTC(), owner, comment})
	if err != nil { // strings and a time are always marshalled
		panic(err)
	}
	quotedName := quote(schemaName(database, schema))
	return []string{"CREATE SCHEMA IF NOT EXISTS " + quotedName,
		"COMMENT ON SCHEMA " + quotedName + " IS " + literal(string(entry))}
}

// dropSchemas drops a schema, or all of a database.
func (t *Translator) dropSchemas(ctx context.Context, conn *pgx.Conn, n name) error {
	rows, err := conn.Query(ctx, "SELECT pg_schema FROM snowsim.schemas WHERE database = $1 AND ($2 = '' OR schema = $2)",
		n.database, n.schema)
	if err != nil {
		return Error(err)
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return Error(err)
	}
	for _, s := range schemas {
		if err := execAll(ctx, conn, "DROP SCHEMA "+quote(s)+" CASCADE"); err != nil {
			return err
		}
	}
	t.catalog.forget(n)
	return nil
}

// drop reads DROP ….
func (p *parser) drop() *plan.Plan {
	p.expect("DROP")
	_ = p.accept("HYBRID") || p.accept("INTERACTIVE")
	if !p.isAny("TABLE", "DATABASE", "SCHEMA", "WAREHOUSE", "ROLE", "INDEX") {
		p.fail(plan.Unsupported("DROP %s", p.peek().text))
	}
	kind := p.next().text
	ifExists := p.accept("IF", "EXISTS")
	gone := func(object string) *plan.Plan {
		return p.done("Drop statement executed successfully (" + object + " already dropped).")
	}
	switch kind {
	case "WAREHOUSE":
		warehouseName := p.identifier()
		if _, ok := p.t.host.Warehouses().Get(warehouseName); !ok && ifExists {
			return gone(warehouseName)
		}
		return p.onWarehouse(warehouseName, "OWNERSHIP", warehouseName+" successfully dropped.",
			func(w plan.Warehouses) error { return w.Drop(warehouseName) })
	case "ROLE":
		return p.dropRole(ifExists)
	case "INDEX":
		return p.dropIndex(ifExists)
	case "DATABASE", "SCHEMA":
		n := name{}
		if kind == "DATABASE" {
			n.database = p.identifier()
		} else {
			n = p.schema()
		}
		_ = p.accept("CASCADE") || p.accept("RESTRICT")
		object := n.schema
		if kind == "DATABASE" {
			object = n.database
		}
		if ok, err := p.t.catalog.hasSchema(p.ctx, n.database, n.schema); err != nil {
			p.fail(err)
		} else if !ok && ifExists {
			return gone(object)
		} else if !ok {
			p.fail(plan.CompilationError("002003", "02000", "%s '%s' does not exist or not authorized.",
				kind[:1]+strings.ToLower(kind[1:]), display(object)))
		}
		return p.ddl(object+" successfully dropped.",
			func(ctx context.Context, conn *pgx.Conn) error { return p.t.dropSchemas(ctx, conn, n) })
	}
	n := p.name()
	_ = p.accept("CASCADE") || p.accept("RESTRICT")
	if t, err := p.t.catalog.table(p.ctx, n); err != nil {
		p.fail(err)
	} else if t == nil && ifExists {
		return gone(n.object)
	} else if t == nil {
		p.fail(plan.DoesNotExist("Table", n.String()))
	} else if !p.mayTable("OWNERSHIP", t) {
		p.fail(insufficient("table", display(n.object)))
	}
	made := p.ddl(n.object+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, "DROP TABLE "+n.postgres()+" CASCADE"); err != nil {
			return err
		}
		p.t.catalog.forget(n)
		return nil
	})
	made.Table = n.String()
	return made
}

func (p *parser) dropIndex(ifExists bool) *plan.Plan {
	parts := p.parts()
	if len(parts) < 2 {
		p.failf("Invalid index name '%s': table.index is expected.", parts[0])
	}
	t := p.resolve(p.complete(parts[:len(parts)-1]), "OWNERSHIP")
	index := parts[len(parts)-1]
	changed := *t
	changed.Indexes = slices.DeleteFunc(slices.Clone(t.Indexes), func(i indexMeta) bool { return i.Name == index })
	if len(changed.Indexes) == len(t.Indexes) {
		if ifExists {
			return p.done("Drop statement executed successfully (" + index + " already dropped).")
		}
		p.fail(plan.DoesNotExist("Index", display(index)))
	}
	return p.ddl(index+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		schema := quote(schemaName(t.name.database, t.name.schema))
		if err := execAll(ctx, conn, "DROP INDEX "+schema+"."+quote(short(t.name.object+"~"+index))); err != nil {
			return err
		}
		return p.t.changeTable(ctx, conn, &changed)
	})
}

// comment reads COMMENT [IF EXISTS] ON TABLE t IS '…'.
func (p *parser) comment() *plan.Plan {
	p.expect("COMMENT")
	p.accept("IF", "EXISTS")
	p.expect("ON")
	if p.accept("COLUMN") {
		parts := p.parts()
		if len(parts) < 2 {
			p.failf("Invalid column name '%s'.", parts[0])
		}
		t := p.resolve(p.complete(parts[:len(parts)-1]), "OWNERSHIP")
		changed := *t
		changed.Columns = slices.Clone(t.Columns)
		p.expect("IS")
		text := p.constant()
		for i := range changed.Columns {
			if changed.Columns[i].Name == parts[len(parts)-1] {
				changed.Columns[i].Comment = text
			}
		}
		return p.ddl("Statement executed successfully.",
			func(ctx context.Context, conn *pgx.Conn) error { return p.t.changeTable(ctx, conn, &changed) })
	}
	p.expect("TABLE")
	changed := *p.resolve(p.name(), "OWNERSHIP")
	p.expect("IS")
	changed.Comment = p.constant()
	return p.ddl("Statement executed successfully.",
		func(ctx context.Context, conn *pgx.Conn) error { return p.t.changeTable(ctx, conn, &changed) })
}
