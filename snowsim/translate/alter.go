package translate

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// alter reads ALTER ….
func (p *parser) alter() *plan.Plan {
	p.expect("ALTER")
	switch {
	case p.accept("SESSION"):
		return p.alterSession()
	case p.accept("WAREHOUSE"), p.accept("INTERACTIVE", "WAREHOUSE"):
		return p.alterWarehouse()
	case p.accept("TABLE"), p.accept("HYBRID", "TABLE"), p.accept("INTERACTIVE", "TABLE"):
		return p.alterTable()
	}
	p.fail(plan.Unsupported("ALTER %s", p.peek().text))
	return nil
}

// alterTable reads ALTER TABLE [IF EXISTS] t ….
func (p *parser) alterTable() *plan.Plan {
	ifExists := p.accept("IF", "EXISTS")
	n := p.name()
	if ifExists {
		if t, err := p.t.catalog.table(p.ctx, n); err != nil {
			p.fail(err)
		} else if t == nil {
			p.i = len(p.tokens) - 1
			return p.done("Statement executed successfully.")
		}
	}
	t := p.resolve(n, "OWNERSHIP")
	if p.accept("SWAP", "WITH") {
		return p.swapTables(t)
	}
	changed := *t
	changed.Columns, changed.Keys = slices.Clone(t.Columns), slices.Clone(t.Keys)
	statements := p.alteration(t, &changed)
	return p.ddl("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, statements...); err != nil {
			return err
		}
		if changed.name != t.name {
			p.t.catalog.forget(t.name)
		}
		if err := changed.fillColumns(ctx, conn, p.t.display); err != nil {
			return Error(err)
		}
		return p.t.changeTable(ctx, conn, &changed)
	})
}

// alteration reads what to alter, changes the entry and returns what Postgres has to do.
func (p *parser) alteration(t, changed *table) []string {
	altered := "ALTER TABLE " + t.name.postgres() + " "
	switch {
	case p.accept("RENAME", "TO"):
		changed.rename(p.name())
		statements := t.renaming(t.name, changed.name)
		if schemaName(changed.name.database, changed.name.schema) != schemaName(t.name.database, t.name.schema) {
			p.fail(plan.Unsupported("renaming a table into another schema"))
		}
		return statements
	case p.accept("RENAME", "COLUMN"):
		from := p.identifier()
		p.expect("TO")
		to := p.identifier()
		for i := range changed.Columns {
			if changed.Columns[i].Name == from {
				changed.Columns[i].Name, changed.Columns[i].Postgres = to, short(to)
			}
		}
		for i, k := range changed.Keys {
			columns := slices.Clone(k.Columns)
			for j := range columns {
				if columns[j] == from {
					columns[j] = to
				}
			}
			changed.Keys[i].Columns = columns
		}
		return []string{altered + "RENAME COLUMN " + quote(short(from)) + " TO " + quote(short(to))}
	case p.accept("CLUSTER", "BY"):
		if t.kind == warehouse.Hybrid {
			p.fail(plan.CompilationError("391420", "0A000", "Clustering keys are not supported on hybrid tables."))
		}
		d := &tableDDL{}
		p.i -= 2
		p.tableOption(d)
		changed.ClusterBy, changed.ClusterKeys = d.ClusterBy, d.ClusterKeys
		index := quote(schemaName(t.name.database, t.name.schema)) + "." + quote(short(t.name.object+"~cluster"))
		only := *changed
		only.Indexes, only.Keys = nil, nil
		return append([]string{"DROP INDEX IF EXISTS " + index}, indexes(&only)...)
	case p.accept("DROP", "CLUSTERING", "KEY"):
		changed.ClusterBy, changed.ClusterKeys = "", nil
		return nil
	case p.accept("SUSPEND", "RECLUSTER"), p.accept("RESUME", "RECLUSTER"):
		return nil
	case p.accept("SET"):
		d := &tableDDL{meta: changed.meta}
		for p.tableOption(d) {
			p.acceptSymbol(",")
		}
		changed.Comment, changed.TargetLag, changed.Warehouse = d.Comment, d.TargetLag, d.Warehouse
		return nil
	case p.accept("UNSET", "COMMENT"):
		changed.Comment = ""
		return nil
	case p.accept("ADD", "SEARCH", "OPTIMIZATION"), p.accept("DROP", "SEARCH", "OPTIMIZATION"):
		if t.kind != warehouse.Standard {
			p.fail(plan.CompilationError("391420", "0A000", "Search optimization is supported on standard tables only."))
		}
		changed.Searched = p.tokens[p.i-3].text == "ADD"
		if p.t.account.Standard {
			p.fail(plan.Unsupported("SEARCH OPTIMIZATION"))
		}
		if !p.may("ADD SEARCH OPTIMIZATION", p.schemaObject(t.name)) {
			p.fail(insufficient("schema", display(t.name.schema)))
		}
		if p.accept("ON") {
			p.list(func() string { // EQUALITY(a, b), SUBSTRING(*) …
				p.identifier()
				p.inParentheses(func() {
					if !p.acceptSymbol("*") {
						p.list(p.sql)
					}
				})
				return ""
			})
		}
		return nil
	case p.accept("ADD"):
		return p.add(altered, t, changed)
	case p.accept("DROP"):
		if p.accept("PRIMARY", "KEY") {
			if t.kind == warehouse.Hybrid {
				p.fail(plan.CompilationError("391420", "0A000", "The primary key of a hybrid table cannot be dropped."))
			}
			changed.Keys = slices.DeleteFunc(changed.Keys, func(k keyMeta) bool {
				return k.Kind == "PRIMARY KEY" &&
					!k.Enforced
			})
			return nil
		}
		p.accept("COLUMN")
		p.accept("IF", "EXISTS")
		column := p.identifier()
		if t.kind == warehouse.Hybrid &&
			slices.ContainsFunc(t.Keys, func(k keyMeta) bool {
				return k.Kind == "PRIMARY KEY" &&
					slices.Contains(k.Columns, column)
			}) {
			p.fail(plan.CompilationError("391420", "0A000", "A column of the primary key of a hybrid table cannot be dropped."))
		}
		return []string{altered + "DROP COLUMN " + quote(short(column))}
	}
	p.unexpected()
	return nil
}

// add reads ADD [COLUMN] and ADD [CONSTRAINT …] key.
func (p *parser) add(altered string, t, changed *table) []string {
	d := &tableDDL{meta: changed.meta}
	d.Columns, d.Keys, d.Indexes = nil, nil, nil
	p.inline = true
	if p.accept("COLUMN") {
		p.accept("IF", "NOT", "EXISTS")
		p.column(d)
	} else {
		p.definition(d)
	}
	if len(d.Indexes) > 0 || slices.ContainsFunc(d.Keys, func(k keyMeta) bool { return k.Enforced }) {
		p.fail(plan.CompilationError("391420", "0A000", "Constraints of a hybrid table can only be defined when it is "+
			"created."))
	}
	changed.Columns, changed.Keys = append(changed.Columns, d.Columns...), append(changed.Keys, d.Keys...)
	statements := d.sequences
	for _, definition := range d.definitions {
		statements = append(statements, altered+"ADD COLUMN "+definition)
	}
	return append(statements, d.owned...)
}

// alterSession reads ALTER SESSION SET p = v … and UNSET p, ….
func (p *parser) alterSession() *plan.Plan {
	made := p.done("Statement executed successfully.")
	made.Type = plan.AlterSession
	if p.accept("UNSET") {
		made.Effect.Unset = append(made.Effect.Unset, p.identifier())
		for p.acceptSymbol(",") {
			made.Effect.Unset = append(made.Effect.Unset, p.identifier())
		}
		return made
	}
	p.expect("SET")
	made.Effect.Set = map[string]string{}
	for p.peek().kind == word {
		key := p.identifier()
		p.expectSymbol("=")
		value := p.optionValue()
		if key == "QUERY_TAG" && len(value) > 2000 {
			p.fail(&plan.Error{Code: "001006", State: "22023", Message: "SQL compilation error:\ninvalid value for parameter " +
				"'QUERY_TAG': longer than 2000 characters."})
		}
		if booleans[key] {
			switch value = strings.ToUpper(value); value {
			case "TRUE", "FALSE":
				value = strings.ToLower(value)
			default:
				p.fail(plan.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", value, key))
			}
		}
		made.Effect.Set[key] = value
		p.acceptSymbol(",")
	}
	if len(made.Effect.Set) == 0 {
		p.unexpected()
	}
	return made
}

// booleans are the session parameters that are TRUE or FALSE.
var booleans = setOf("USE_CACHED_RESULT AUTOCOMMIT ABORT_DETACHED_QUERY QUOTED_IDENTIFIERS_IGNORE_CASE " +
	"READ_LATEST_WRITES " +
	"TRANSACTION_ABORT_ON_ERROR CLIENT_SESSION_KEEP_ALIVE TIMESTAMP_DAY_IS_ALWAYS_24H ERROR_ON_NONDETERMINISTIC_MERGE")

// optionValue reads the value of an option or parameter as text.
func (p *parser) optionValue() string {
	negative := p.acceptSymbol("-")
	switch t := p.next(); t.kind {
	case text, word, quoted:
		if !negative {
			return t.text
		}
	case number:
		if negative {
			return "-" + t.text
		}
		return t.text
	case mark:
		return p.bound()
	}
	p.i--
	p.unexpected()
	return ""
}

// use reads USE ….
func (p *parser) use() *plan.Plan {
	p.expect("USE")
	made := p.done("Statement executed successfully.")
	made.Type = plan.Use
	missing := func(object string) {
		p.fail(&plan.Error{Code: "002043", State: "02000",
			Message: "SQL compilation error:\nObject does not exist, or operation cannot be performed: " + display(object) +
				"."})
	}
	p.volatile = true
	switch {
	case p.is("WAREHOUSE") && p.peekAt(1).kind != endOfText:
		p.next()
		w := p.parts()[0]
		if _, ok := p.t.host.Warehouses().Get(w); !ok || !p.t.MayUse(p.session, w) {
			missing(w)
		}
		made.Effect.Warehouse = &w
	case p.is("ROLE") && p.peekAt(1).kind != endOfText:
		p.next()
		role := p.parts()[0]
		if !p.t.RoleExists(role) {
			p.fail(plan.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.", display(role)))
		}
		made.Effect.Role = &role
	case p.accept("SECONDARY", "ROLES"):
		made.Effect.Set = map[string]string{secondaryRoles: p.secondaryRoles()}
	case p.is("SCHEMA") && p.peekAt(1).kind != endOfText:
		p.next()
		n := p.schema()
		p.checkSchema(n, missing)
		made.Effect.Database, made.Effect.Schema = &n.database, &n.schema
	default:
		p.accept("DATABASE")
		parts := p.parts()
		if len(parts) == 2 {
			n := name{database: parts[0], schema: parts[1]}
			p.checkSchema(n, missing)
			made.Effect.Database, made.Effect.Schema = &n.database, &n.schema
			break
		}
		n := name{database: parts[0]}
		p.checkSchema(n, missing)
		public := "PUBLIC"
		made.Effect.Database, made.Effect.Schema = &n.database, &public
	}
	return made
}

// secondaryRoles reads ALL, NONE, or roles that are granted to the user.
func (p *parser) secondaryRoles() string {
	if p.isAny("ALL", "NONE") {
		return p.next().text
	}
	p.t.grants.mu.RLock()
	granted := p.t.grants.users[p.session.User]
	p.t.grants.mu.RUnlock()
	var roles []string
	for len(roles) == 0 || p.acceptSymbol(",") {
		role := p.identifier()
		if !slices.Contains(granted, role) {
			p.fail(noRole(role))
		}
		roles = append(roles, role)
	}
	return strings.Join(roles, "\x00")
}

func (p *parser) checkSchema(n name, missing func(string)) {
	ok, err := p.t.catalog.hasSchema(p.ctx, n.database, n.schema)
	if err != nil {
		p.fail(err)
	}
	if !ok {
		missing(n.String())
	}
}

// set reads SET v = constant and UNSET v; a variable is a session parameter
// whose name begins with a dollar.
func (p *parser) set() *plan.Plan {
	made := p.done("Statement executed successfully.")
	made.Type = plan.AlterSession
	p.volatile = true
	if p.accept("UNSET") {
		made.Effect.Unset = []string{"$" + p.identifier()}
		return made
	}
	p.expect("SET")
	key := p.identifier()
	p.expectSymbol("=")
	made.Effect.Set = map[string]string{"$" + key: p.optionValue()}
	return made
}

// transaction reads BEGIN, COMMIT and ROLLBACK.
func (p *parser) transaction() *plan.Plan {
	made := p.done("Statement executed successfully.")
	made.Type = plan.TransactionType
	switch p.next().text {
	case "COMMIT":
		made.Transaction = plan.Commit
		p.accept("WORK")
		return made
	case "ROLLBACK":
		made.Transaction = plan.Rollback
		p.accept("WORK")
		return made
	}
	made.Transaction = plan.Begin
	_ = p.accept("WORK") || p.accept("TRANSACTION")
	if p.accept("NAME") {
		p.identifier()
	}
	return made
}
