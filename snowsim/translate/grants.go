package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// rolePublic is granted to everybody, and is itself granted nothing at first.
const rolePublic = "PUBLIC"

// grants are the privileges of PUBLIC and of the roles that CREATE ROLE made. The
// others, those that the account began with, may do everything that is not denied
// to them, as if all roles were granted to them.
type grants struct {
	denied []Denied

	mu     sync.RWMutex
	roles  map[string][]string // roles made, with the roles granted to each
	users  map[string][]string // the roles granted to users
	held   map[grant]bool
	epochs int64
}

// grant is one privilege of a role. Object is the object's full name, "D.S.*" for
// the tables of a schema (D.* of a database), those to come too; "" is the account.
// The kinds ROLE, MEMBER and USER stand for a role itself, a role granted to a role,
// and a role granted to a user.
type grant struct{ role, privilege, kind, object string }

func newGrants(denied []Denied) *grants {
	return &grants{denied: denied, roles: map[string][]string{}, users: map[string][]string{}, held: map[grant]bool{}}
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

// add notes a grant. The caller holds mu.
func (g *grants) add(one grant) {
	g.epochs++
	switch one.kind {
	case "ROLE":
		if _, ok := g.roles[one.role]; !ok {
			g.roles[one.role] = nil
		}
	case "MEMBER":
		g.roles[one.role] = addOnce(g.roles[one.role], one.object)
	case "USER":
		g.users[one.role] = addOnce(g.users[one.role], one.object)
	default:
		g.held[one] = true
	}
}

func addOnce(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// remove forgets a grant. The caller holds mu.
func (g *grants) remove(one grant) {
	g.epochs++
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(m string) bool { return m == one.object })
	}
	switch one.kind {
	case "MEMBER":
		g.roles[one.role] = without(g.roles[one.role])
	case "USER":
		g.users[one.role] = without(g.users[one.role])
	default:
		delete(g.held, one)
	}
}

// secondaryRoles is the session parameter that holds USE SECONDARY ROLES: ALL, NONE, or
// names; ALL is the default, as of a user's DEFAULT_SECONDARY_ROLES. A blank keeps the name from meeting another.
const secondaryRoles = "SECONDARY ROLES"

// secondary are the session's active roles besides its own.
func (g *grants) secondary(s *plan.Session) []string {
	switch chosen := s.Parameters[secondaryRoles]; chosen {
	case "", "ALL":
		g.mu.RLock()
		defer g.mu.RUnlock()
		return g.users[s.User]
	case "NONE":
		return nil
	default:
		return strings.Split(chosen, "\x00")
	}
}

// everything reports whether a role may do what is not denied to it. The caller holds mu.
func (g *grants) everything(role string) bool {
	_, made := g.roles[role]
	return !made && role != rolePublic
}

// within reports whether one role has the rights of another. The caller holds mu.
func (g *grants) within(role, other string, depth int) bool {
	return role == other || g.everything(role) || other == rolePublic ||
		depth < 16 && slices.ContainsFunc(g.roles[role], func(member string) bool { return g.within(member, other, depth+1) })
}

// inSession reports whether one of the session's roles has the rights of a role.
func (g *grants) inSession(s *plan.Session, role string) bool {
	active := append([]string{s.Role}, g.secondary(s)...)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.ContainsFunc(active, func(r string) bool { return g.within(r, role, 0) })
}

// object is what privileges are granted on: a table, schema, database or warehouse,
// by its full name as SHOW GRANTS prints it. The account has no name.
type object struct {
	kind, name string
	// short is the last part of the name, by which Denied may name it too.
	short string
	// containers hold the object: the patterns of grants on all that they hold.
	containers []string
	owner      string
}

func tableObject(t *table) object {
	n := t.name
	return object{kind: "TABLE", name: fullName(n.database, n.schema, n.object), short: n.object, owner: t.Owner,
		containers: []string{fullName(n.database, n.schema) + ".*", fullName(n.database) + ".*"}}
}

func schemaObject(database, schema string) object {
	return object{kind: "SCHEMA", name: fullName(database, schema), short: schema,
		containers: []string{fullName(database) + ".*"}}
}

func warehouseObject(name string) object {
	return object{kind: "WAREHOUSE", name: display(name), short: name}
}

func databaseObject(name string) object {
	return object{kind: "DATABASE", name: display(name), short: name}
}

var accountObject = object{kind: "ACCOUNT"}

// fullName is a name as Snowflake prints it.
func fullName(parts ...string) string {
	for i, p := range parts {
		parts[i] = display(p)
	}
	return strings.Join(parts, ".")
}

// covers reports whether a grant is one on the object.
func (one grant) covers(o object) bool {
	return one.kind == o.kind && (one.object == o.name || slices.Contains(o.containers, one.object))
}

// denies reports whether Denied takes a privilege on the object away from a role.
func (g *grants) denies(role, privilege string, o object) bool {
	return slices.ContainsFunc(g.denied, func(d Denied) bool {
		return privilege != "" && (d.Role == "" || d.Role == role) && d.Privilege == privilege &&
			(d.Object == "" || d.Object == o.short || d.Object == o.name)
	})
}

// has reports whether one of the roles has a privilege on an object; "" asks for any.
func (g *grants) has(roles []string, privilege string, o object) bool {
	if g.denies(roles[0], privilege, o) {
		return false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, role := range roles {
		if g.everything(role) || o.owner != "" && g.within(role, o.owner, 0) {
			return true
		}
	}
	for one := range g.held {
		if one.covers(o) && (privilege == "" || one.privilege == privilege || one.privilege == "ALL" ||
			one.privilege == "OWNERSHIP") &&
			slices.ContainsFunc(roles, func(role string) bool { return g.within(role, one.role, 0) }) {
			return true
		}
	}
	return false
}

// may reports whether the session has a privilege on an object. Only the primary role
// makes objects.
func (p *parser) may(privilege string, o object) bool { return p.t.may(p.session, privilege, o) }

func (t *Translator) may(s *plan.Session, privilege string, o object) bool {
	roles := []string{s.Role}
	if !strings.HasPrefix(privilege, "CREATE ") {
		roles = append(roles, t.grants.secondary(s)...)
	}
	return t.grants.has(roles, privilege, o)
}

// mayTable is may for a table; "" asks whether the session sees it at all.
func (p *parser) mayTable(privilege string, t *table) bool {
	if privilege == "MERGE" {
		return p.mayTable("INSERT", t) && p.mayTable("UPDATE", t)
	}
	return p.may(privilege, tableObject(t))
}

// RoleExists reports whether a role may be taken by a session.
func (t *Translator) RoleExists(role string) bool {
	t.grants.mu.RLock()
	_, made := t.grants.roles[role]
	t.grants.mu.RUnlock()
	return made || slices.Contains(t.host.Roles(), role)
}

// MayUse reports whether a session's roles may use a warehouse.
func (t *Translator) MayUse(s *plan.Session, warehouse string) bool {
	w, _ := t.host.Warehouses().Get(warehouse)
	o := warehouseObject(warehouse)
	o.owner = w.Owner
	return t.may(s, "USAGE", o)
}
