package translate

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// createDatabase reads CREATE DATABASE [IF NOT EXISTS] d ….
func (p *Parser) createDatabase(replace bool) *Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	database := p.Identifier()
	comment := p.schemaOptions()
	exists, err := p.Account.Tables.HasSchema(p.Context, database, "")
	if err != nil {
		p.Fail(err)
	}
	if !p.May("CREATE DATABASE", AccountObject) {
		p.Fail(Insufficient("account", p.Session.Account))
	}
	public := "PUBLIC"
	effect := Effect{Database: &database, Schema: &public}
	if exists && !replace {
		if !ifNotExists {
			p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", database))
		}
		made := p.Done(database + " already exists, statement succeeded.")
		made.Effect = effect
		return made
	}
	made := p.DDL("Database "+database+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		if replace {
			if err := p.Account.DropSchemas(ctx, conn, Name{Database: database}); err != nil {
				return err
			}
		}
		return ExecAll(ctx, conn,
			CreateSchema(database, "PUBLIC", p.Account.Host.Now(), p.Session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// createSchema reads CREATE SCHEMA [IF NOT EXISTS] [d.]s ….
func (p *Parser) createSchema(replace bool) *Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	n := p.Schema()
	comment := p.schemaOptions()
	if ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, ""); err != nil {
		p.Fail(err)
	} else if !ok {
		p.Fail(protocol.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			Display(n.Database)))
	}
	if !p.May("CREATE SCHEMA", DatabaseObject(n.Database)) {
		p.Fail(Insufficient("database", Display(n.Database)))
	}
	exists, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema)
	if err != nil {
		p.Fail(err)
	}
	effect := Effect{Database: &n.Database, Schema: &n.Schema}
	if exists && !replace {
		if !ifNotExists {
			p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n.Schema))
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
		return ExecAll(ctx, conn,
			CreateSchema(n.Database, n.Schema, p.Account.Host.Now(), p.Session.Role, comment)...)
	})
	made.Effect = effect
	return made
}

// schemaOptions reads what may follow CREATE DATABASE and CREATE SCHEMA.
func (p *Parser) schemaOptions() (comment string) {
	for p.Peek().Kind == Word {
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
func (p *Parser) drop() *Plan {
	p.Expect("DROP")
	_ = p.Accept("HYBRID") || p.Accept("INTERACTIVE")
	if !p.IsAny("TABLE", "VIEW", "DATABASE", "SCHEMA", "WAREHOUSE", "ROLE", "INDEX") {
		p.Fail(protocol.NotSimulated("DROP %s", p.Peek().Text))
	}
	kind := p.Next().Text
	ifExists := p.Accept("IF", "EXISTS")
	gone := func(object string) *Plan {
		return p.Done("Drop statement executed successfully (" + object + " already dropped).")
	}
	switch kind {
	case "WAREHOUSE":
		warehouseName := p.Identifier()
		if _, ok := p.Account.Host.Warehouses().Get(warehouseName); !ok && ifExists {
			return gone(warehouseName)
		}
		return p.onWarehouse(warehouseName, "OWNERSHIP", warehouseName+" successfully dropped.",
			func(w Warehouses) error { return w.Drop(warehouseName) })
	case "ROLE":
		return p.dropRole(ifExists)
	case "INDEX":
		return p.dropIndex(ifExists)
	case "DATABASE", "SCHEMA":
		n := Name{}
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
			p.Fail(protocol.CompilationError("002003", "02000", "%s '%s' does not exist or not authorized.",
				kind[:1]+strings.ToLower(kind[1:]), Display(object)))
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
		p.Fail(protocol.DoesNotExist(kind[:1]+strings.ToLower(kind[1:]), n.String()))
	} else if found := TableObject(t).Kind; found != kind {
		p.Fail(OfKind(found, kind))
	} else if !p.MayTable("OWNERSHIP", t) {
		p.Fail(Insufficient(strings.ToLower(kind), Display(n.Object)))
	}
	made := p.DDL(n.Object+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := ExecAll(ctx, conn, "DROP "+kind+" "+n.Postgres()+" CASCADE"); err != nil {
			return err
		}
		p.Account.Tables.Forget(n)
		return nil
	})
	made.Table = n.String()
	return made
}

func (p *Parser) dropIndex(ifExists bool) *Plan {
	parts := p.Parts()
	if len(parts) < 2 {
		p.Failf("Invalid index name '%s': table.index is expected.", parts[0])
	}
	t := p.Resolve(p.Complete(parts[:len(parts)-1]), "OWNERSHIP")
	index := parts[len(parts)-1]
	changed := *t
	changed.Indexes = slices.DeleteFunc(slices.Clone(t.Indexes), func(i IndexMeta) bool { return i.Name == index })
	if len(changed.Indexes) == len(t.Indexes) {
		if ifExists {
			return p.Done("Drop statement executed successfully (" + index + " already dropped).")
		}
		p.Fail(protocol.DoesNotExist("Index", Display(index)))
	}
	return p.DDL(index+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		schema := Quote(SchemaName(t.Name.Database, t.Name.Schema))
		if err := ExecAll(ctx, conn, "DROP INDEX "+schema+"."+
			Quote(Short(t.Name.Object+"~"+index))); err != nil {
			return err
		}
		return p.Account.ChangeTable(ctx, conn, &changed)
	})
}

// comment reads COMMENT [IF EXISTS] ON TABLE t IS '…'.
func (p *Parser) comment() *Plan {
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
