package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/target/snowflake/snowsim/plan"
)

// grants are the privileges of the roles that CREATE ROLE made. The roles that
// the account began with may do everything that is not denied to them.
type grants struct {
	denied []Denied

	mu     sync.RWMutex
	roles  map[string][]string // roles made, with the roles granted to each
	held   map[grant]bool
	epochs int64
}

// grant is one privilege of a role. Object is a name as written, its last part;
// "" is the account.
type grant struct{ role, privilege, kind, object string }

func newGrants(denied []Denied) *grants {
	return &grants{denied: denied, roles: map[string][]string{}, held: map[grant]bool{}}
}

func (g *grants) version() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.epochs
}

// load reads what an earlier life granted.
func (g *grants) load(ctx context.Context, q querier) error {
	rows, err := q.Query(ctx, "SELECT role, privilege, kind, object FROM snowsim.grants")
	if err != nil {
		return fmt.Errorf("reading the stand-in's grants: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grant, err error) {
		return g, row.Scan(&g.role, &g.privilege, &g.kind, &g.object)
	})
	if err != nil {
		return fmt.Errorf("reading the stand-in's grants: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range all {
		g.add(one)
	}
	return nil
}

// add notes a grant; "ROLE" stands for the role itself, "MEMBER" for a role granted to it.
func (g *grants) add(one grant) {
	g.epochs++
	switch one.kind {
	case "ROLE":
		if _, ok := g.roles[one.role]; !ok {
			g.roles[one.role] = nil
		}
	case "MEMBER":
		g.roles[one.role] = append(g.roles[one.role], one.object)
	default:
		g.held[one] = true
	}
}

// has reports whether a role holds a privilege on one of the objects.
func (g *grants) has(role, privilege string, objects ...string) bool {
	for _, d := range g.denied {
		if privilege != "" && (d.Role == "" || d.Role == role) && d.Privilege == privilege && (d.Object == "" || slices.Contains(objects, d.Object)) {
			return false
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.inherits(role, privilege, objects, 0)
}

func (g *grants) inherits(role, privilege string, objects []string, depth int) bool {
	members, made := g.roles[role]
	if !made {
		return true
	}
	if depth > 16 {
		return false
	}
	for one := range g.held {
		if one.role == role && (privilege == "" || one.privilege == privilege || one.privilege == "ALL" || one.privilege == "OWNERSHIP") &&
			(one.object == "" || slices.Contains(objects, one.object)) {
			return true
		}
	}
	return slices.ContainsFunc(members, func(member string) bool { return g.inherits(member, privilege, objects, depth+1) })
}

// allowed reports whether a role has a privilege on a table; "" asks whether it
// sees the table at all.
func (t *Translator) allowed(role, privilege string, table *table) bool {
	if privilege == "MERGE" {
		return t.allowed(role, "INSERT", table) && t.allowed(role, "UPDATE", table)
	}
	if table.Owner == role && role != "" && !slices.ContainsFunc(t.grants.denied, func(d Denied) bool { return d.Privilege == privilege }) {
		return true
	}
	return t.grants.has(role, privilege, table.name.object, table.name.String(), table.name.schema+"."+table.name.object)
}

// permitted is allowed for anything but tables.
func (t *Translator) permitted(role, privilege, object string) bool {
	return t.grants.has(role, privilege, object)
}

func (t *Translator) roleExists(role string) bool {
	t.grants.mu.RLock()
	_, made := t.grants.roles[role]
	t.grants.mu.RUnlock()
	return made || slices.Contains(t.host.Roles(), role)
}

// grant reads GRANT and REVOKE.
func (p *parser) grant() *plan.Plan {
	revoke := p.next().text == "REVOKE"
	if p.accept("GRANT", "OPTION", "FOR") {
		revoke = true
	}
	if p.accept("ROLE") || p.accept("DATABASE", "ROLE") {
		member := p.identifier()
		p.toOrFrom(revoke)
		if p.accept("USER") {
			p.identifier()
			return p.done("Statement executed successfully.")
		}
		p.accept("ROLE")
		return p.change(revoke, []grant{{role: p.identifier(), kind: "MEMBER", object: member}})
	}
	var privileges []string
	for {
		var words []string
		for !p.is("ON") && !p.isSymbol(",") && !p.is("TO") {
			if p.peek().kind != word {
				p.unexpected()
			}
			words = append(words, p.next().text)
		}
		privileges = append(privileges, strings.TrimSuffix(strings.Join(words, " "), " PRIVILEGES"))
		if !p.acceptSymbol(",") {
			break
		}
	}
	if len(privileges) == 1 && privileges[0] == "IMPORTED" {
		privileges[0] = "IMPORTED PRIVILEGES"
	}
	p.expect("ON")
	object := ""
	var kind []string
	if p.accept("ACCOUNT") {
		kind = []string{"ACCOUNT"}
	} else {
		all := p.accept("ALL") || p.accept("FUTURE")
		for p.peek().kind == word && !p.is("IN") && isOneOf(p.peek(), "TABLE", "TABLES", "HYBRID", "INTERACTIVE", "SCHEMA", "SCHEMAS", "DATABASE", "WAREHOUSE", "VIEW", "VIEWS", "INTEGRATION") {
			kind = append(kind, p.next().text)
		}
		if len(kind) == 0 {
			p.unexpected()
		}
		if all {
			if p.accept("IN") && !p.accept("SCHEMA") {
				p.expect("DATABASE")
			}
			p.parts()
		} else {
			parts := p.parts()
			object = parts[len(parts)-1]
		}
	}
	p.toOrFrom(revoke)
	p.accept("ROLE")
	role := p.identifier()
	p.accept("WITH", "GRANT", "OPTION")
	_ = p.accept("CASCADE") || p.accept("RESTRICT") || p.accept("COPY", "CURRENT", "GRANTS")
	var all []grant
	for _, privilege := range privileges {
		all = append(all, grant{role, privilege, strings.Join(kind, " "), object})
	}
	return p.change(revoke, all)
}

func (p *parser) toOrFrom(revoke bool) {
	if revoke {
		p.expect("FROM")
	} else {
		p.expect("TO")
	}
}

// change grants or revokes.
func (p *parser) change(revoke bool, all []grant) *plan.Plan {
	if !p.t.roleExists(all[0].role) {
		p.fail(plan.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.", display(all[0].role)))
	}
	return p.ddl("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			sql, values := "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING", []any{one.role, one.privilege, one.kind, one.object, p.t.host.Now()}
			if revoke {
				sql, values = "DELETE FROM snowsim.grants WHERE role = $1 AND privilege = $2 AND kind = $3 AND object = $4", values[:4]
			}
			if _, err := conn.Exec(ctx, sql, values...); err != nil {
				return Error(err)
			}
		}
		g := p.t.grants
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, one := range all {
			if !revoke {
				g.add(one)
				continue
			}
			g.epochs++
			delete(g.held, one)
			if one.kind == "MEMBER" {
				g.roles[one.role] = slices.DeleteFunc(g.roles[one.role], func(m string) bool { return m == one.object })
			}
		}
		return nil
	})
}

// createRole reads CREATE ROLE [IF NOT EXISTS] r ….
func (p *parser) createRole() *plan.Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	role := p.identifier()
	p.schemaOptions()
	if p.t.roleExists(role) {
		if ifNotExists {
			return p.done(role + " already exists, statement succeeded.")
		}
		p.fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.note(grant{role: role, kind: "ROLE"}, "Role "+role+" successfully created.")
}

// note keeps a grant whose role need not exist.
func (p *parser) note(one grant, message string) *plan.Plan {
	return p.ddl(message, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING", one.role, one.privilege, one.kind, one.object, p.t.host.Now()); err != nil {
			return Error(err)
		}
		p.t.grants.mu.Lock()
		defer p.t.grants.mu.Unlock()
		p.t.grants.add(one)
		return nil
	})
}

func (p *parser) dropRole(ifExists bool) *plan.Plan {
	role := p.identifier()
	p.t.grants.mu.RLock()
	_, made := p.t.grants.roles[role]
	p.t.grants.mu.RUnlock()
	if !made {
		if ifExists {
			return p.done("Drop statement executed successfully (" + role + " already dropped).")
		}
		p.fail(plan.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.", display(role)))
	}
	return p.ddl(role+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "DELETE FROM snowsim.grants WHERE role = $1 OR kind = 'MEMBER' AND object = $1", role); err != nil {
			return Error(err)
		}
		g := p.t.grants
		g.mu.Lock()
		defer g.mu.Unlock()
		g.epochs++
		delete(g.roles, role)
		for one := range g.held {
			if one.role == role {
				delete(g.held, one)
			}
		}
		for r, members := range g.roles {
			g.roles[r] = slices.DeleteFunc(members, func(m string) bool { return m == role })
		}
		return nil
	})
}
