package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
	"github.com/loadstone-db/loadstone/snowsim/translate/expression"
	"github.com/loadstone-db/loadstone/snowsim/translate/syntax"
)

// createDatabase reads CREATE DATABASE [IF NOT EXISTS] d ….
func (p *definer) createDatabase(replace bool) *plan.Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	database := p.Identifier()
	comment := p.schemaOptions()
	exists, err := p.Account.Tables.HasSchema(p.Context, database, "")
	if err != nil {
		p.Fail(err)
	}
	if !p.May("CREATE DATABASE", catalog.AccountObject) {
		p.Fail(catalog.Insufficient("account", p.Session.Account))
	}
	public := "PUBLIC"
	effect := plan.Effect{Database: &database, Schema: &public}
	if exists && !replace {
		if !ifNotExists {
			p.Fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", database))
		}
		made := p.Done(database + " already exists, statement succeeded.")
		made.Effect = effect
		return made
	}
	made := p.DDL("Database "+database+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		if replace {
			if err := p.Account.DropSchemas(ctx, conn, catalog.Name{Database: database}); err != nil {
				return err
			}
		}
		return catalog.ExecAll(ctx, conn,
			catalog.CreateSchema(database, "PUBLIC", p.Account.Host.Now(), p.Session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// createSchema reads CREATE SCHEMA [IF NOT EXISTS] [d.]s ….
func (p *definer) createSchema(replace bool) *plan.Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	n := p.Schema()
	comment := p.schemaOptions()
	if ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, ""); err != nil {
		p.Fail(err)
	} else if !ok {
		p.Fail(plan.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			catalog.Display(n.Database)))
	}
	if !p.May("CREATE SCHEMA", catalog.DatabaseObject(n.Database)) {
		p.Fail(catalog.Insufficient("database", catalog.Display(n.Database)))
	}
	exists, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema)
	if err != nil {
		p.Fail(err)
	}
	effect := plan.Effect{Database: &n.Database, Schema: &n.Schema}
	if exists && !replace {
		if !ifNotExists {
			p.Fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", n.Schema))
		}
		made := p.Done(n.Schema + " already exists, statement succeeded.")
		made.Effect = effect
		return made
	}
	made := p.DDL("Schema "+n.Schema+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		if replace {
			if err := p.Account.DropSchemas(ctx, conn, n); err != nil {
				return err
			}
		}
		return catalog.ExecAll(ctx, conn,
			catalog.CreateSchema(n.Database, n.Schema, p.Account.Host.Now(), p.Session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// schemaOptions reads what may follow CREATE DATABASE and CREATE SCHEMA.
func (p *definer) schemaOptions() (comment string) {
	for p.Peek().Kind == syntax.Word {
		switch {
		case p.Accept("COMMENT"):
			p.AcceptSymbol("=")
			comment = p.Constant()
		case p.Accept("WITH", "MANAGED", "ACCESS"):
		default:
			if t := p.PeekAt(1); t.Text != "=" {
				return comment
			}
			p.Advance(2)
			p.Next()
		}
	}
	return comment
}

// drop reads DROP ….
func (p *definer) drop() *plan.Plan {
	p.Expect("DROP")
	_ = p.Accept("HYBRID") || p.Accept("INTERACTIVE")
	if !p.IsAny("TABLE", "VIEW", "DATABASE", "SCHEMA", "WAREHOUSE", "ROLE", "INDEX") {
		p.Fail(plan.NotSimulated("DROP %s", p.Peek().Text))
	}
	kind := p.Next().Text
	ifExists := p.Accept("IF", "EXISTS")
	gone := func(object string) *plan.Plan {
		return p.Done("Drop statement executed successfully (" + object + " already dropped).")
	}
	switch kind {
	case "WAREHOUSE":
		warehouseName := p.Identifier()
		if _, ok := p.Account.Host.Warehouses().Get(warehouseName); !ok && ifExists {
			return gone(warehouseName)
		}
		return p.onWarehouse(warehouseName, "OWNERSHIP", warehouseName+" successfully dropped.",
			func(w plan.Warehouses) error { return w.Drop(warehouseName) })
	case "ROLE":
		return p.dropRole(ifExists)
	case "INDEX":
		return p.dropIndex(ifExists)
	case "DATABASE", "SCHEMA":
		n := catalog.Name{}
		if kind == "DATABASE" {
			n.Database = p.Identifier()
		} else {
			n = p.Schema()
		}
		_ = p.Accept("CASCADE") || p.Accept("RESTRICT")
		object := n.Schema
		if kind == "DATABASE" {
			object = n.Database
		}
		if ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema); err != nil {
			p.Fail(err)
		} else if !ok && ifExists {
			return gone(object)
		} else if !ok {
			p.Fail(plan.CompilationError("002003", "02000", "%s '%s' does not exist or not authorized.",
				kind[:1]+strings.ToLower(kind[1:]), catalog.Display(object)))
		}
		return p.DDL(object+" successfully dropped.",
			func(ctx context.Context, conn *pgx.Conn) error { return p.Account.DropSchemas(ctx, conn, n) })
	}
	n := p.Name()
	_ = p.Accept("CASCADE") || p.Accept("RESTRICT")
	if t, err := p.Account.Tables.Table(p.Context, n); err != nil {
		p.Fail(err)
	} else if t == nil && ifExists {
		return gone(n.Object)
	} else if t == nil {
		p.Fail(plan.DoesNotExist(kind[:1]+strings.ToLower(kind[1:]), n.String()))
	} else if found := catalog.TableObject(t).Kind; found != kind {
		p.Fail(expression.OfKind(found, kind))
	} else if !p.MayTable("OWNERSHIP", t) {
		p.Fail(catalog.Insufficient(strings.ToLower(kind), catalog.Display(n.Object)))
	}
	made := p.DDL(n.Object+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := catalog.ExecAll(ctx, conn, "DROP "+kind+" "+n.Postgres()+" CASCADE"); err != nil {
			return err
		}
		p.Account.Tables.Forget(n)
		return nil
	})
	made.Table = n.String()
	return made
}

func (p *definer) dropIndex(ifExists bool) *plan.Plan {
	parts := p.Parts()
	if len(parts) < 2 {
		p.Failf("Invalid index name '%s': table.index is expected.", parts[0])
	}
	t := p.Resolve(p.Complete(parts[:len(parts)-1]), "OWNERSHIP")
	index := parts[len(parts)-1]
	changed := *t
	changed.Indexes = slices.DeleteFunc(slices.Clone(t.Indexes), func(i catalog.IndexMeta) bool { return i.Name == index })
	if len(changed.Indexes) == len(t.Indexes) {
		if ifExists {
			return p.Done("Drop statement executed successfully (" + index + " already dropped).")
		}
		p.Fail(plan.DoesNotExist("Index", catalog.Display(index)))
	}
	return p.DDL(index+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		schema := catalog.Quote(catalog.SchemaName(t.Name.Database, t.Name.Schema))
		if err := catalog.ExecAll(ctx, conn, "DROP INDEX "+schema+"."+
			catalog.Quote(catalog.Short(t.Name.Object+"~"+index))); err != nil {
			return err
		}
		return p.Account.ChangeTable(ctx, conn, &changed)
	})
}

// comment reads COMMENT [IF EXISTS] ON TABLE t IS '…'.
func (p *definer) comment() *plan.Plan {
	p.Expect("COMMENT")
	p.Accept("IF", "EXISTS")
	p.Expect("ON")
	if p.Accept("COLUMN") {
		parts := p.Parts()
		if len(parts) < 2 {
			p.Failf("Invalid column name '%s'.", parts[0])
		}
		t := p.Resolve(p.Complete(parts[:len(parts)-1]), "OWNERSHIP")
		changed := *t
		changed.Columns = slices.Clone(t.Columns)
		p.Expect("IS")
		text := p.Constant()
		for i := range changed.Columns {
			if changed.Columns[i].Name == parts[len(parts)-1] {
				changed.Columns[i].Comment = text
			}
		}
		return p.DDL("Statement executed successfully.",
			func(ctx context.Context, conn *pgx.Conn) error { return p.Account.ChangeTable(ctx, conn, &changed) })
	}
	p.Expect("TABLE")
	changed := *p.Resolve(p.Name(), "OWNERSHIP")
	p.Expect("IS")
	changed.Comment = p.Constant()
	return p.DDL("Statement executed successfully.",
		func(ctx context.Context, conn *pgx.Conn) error { return p.Account.ChangeTable(ctx, conn, &changed) })
}
