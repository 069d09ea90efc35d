package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// rolePublic is granted to everybody, and is itself granted nothing at first.
const rolePublic = "PUBLIC"

// grants are the privileges of PUBLIC and of the roles that CREATE ROLE made. The
// others, those that the account began with, may do everything that is not denied
// to them, as if all roles were granted to them.
type grants struct {
	denied []Denied

	mu      sync.RWMutex
	roles   map[string][]string // custom roles, with the roles granted to each
	users   map[string][]string // the roles granted to users
	granted map[grant]bool
	epochs  int64
}

// grant is one privilege of a role. Object is the object's full name, "D.S.*" for
// the tables of a schema (D.* of a database), those to come too; "" is the account.
// The kinds ROLE, MEMBER and USER stand for a role itself, a role granted to a role,
// and a role granted to a user.
type grant struct{ role, privilege, kind, object string }

func newGrants(denied []Denied) *grants {
	return &grants{denied: denied, roles: map[string][]string{}, users: map[string][]string{}, granted: map[grant]bool{}}
}

func (g *grants) version() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.epochs
}

// load reads the grants of an earlier process.
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
		g.roles[one.role] = appendUnique(g.roles[one.role], one.object)
	case "USER":
		g.users[one.role] = appendUnique(g.users[one.role], one.object)
	default:
		g.granted[one] = true
	}
}

// removeAll takes privileges away.
func (g *grants) removeAll(all []grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.epochs++
	for _, one := range all {
		delete(g.granted, one)
	}
}

func appendUnique(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// SecondaryRoles is the key in Session.Parameters that holds USE SECONDARY ROLES: ALL, NONE, or
// names; ALL is the default, as of a user's DEFAULT_SECONDARY_ROLES. The blank avoids a clash with a real parameter.
const SecondaryRoles = "SECONDARY ROLES"

// secondaryRoles are the session's active secondary roles.
func (g *grants) secondaryRoles(s *Session) []string {
	switch chosen := s.Parameters[SecondaryRoles]; chosen {
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

// unrestricted reports whether a role may do what is not denied to it. The caller holds mu.
func (g *grants) unrestricted(role string) bool {
	_, made := g.roles[role]
	return !made && role != rolePublic
}

// inherits reports whether one role has the rights of another. The caller holds mu.
func (g *grants) inherits(role, other string, depth int) bool {
	return role == other || g.unrestricted(role) || other == rolePublic ||
		depth < 16 &&
			slices.ContainsFunc(g.roles[role], func(member string) bool { return g.inherits(member, other, depth+1) })
}

// inSession reports whether one of the session's roles has the rights of a role.
func (g *grants) inSession(s *Session, role string) bool {
	active := append([]string{s.Role}, g.secondaryRoles(s)...)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.ContainsFunc(active, func(r string) bool { return g.inherits(r, role, 0) })
}

// securable is what privileges are granted on: a table, schema, database or warehouse,
// by its full name as SHOW GRANTS prints it. The account has no name.
type securable struct {
	kind, name string
	// short is the last part of the name, by which Denied may name it too.
	short string
	// containers hold the object: the patterns of grants on all that they hold.
	containers []string
	owner      string
}

// tableObject is a table or view as privileges are granted on it.
func tableObject(t *tableEntry) securable {
	n, kind := t.name, "TABLE"
	if t.Kind == kindView {
		kind = "VIEW"
	}
	return securable{kind: kind, name: fullName(n.database, n.schema, n.object), short: n.object, owner: t.Owner,
		containers: []string{fullName(n.database, n.schema) + ".*", fullName(n.database) + ".*"}}
}

// schemaObject is a schema as privileges are granted on it, without its owner.
func schemaObject(database, schema string) securable {
	return securable{kind: "SCHEMA", name: fullName(database, schema), short: schema,
		containers: []string{fullName(database) + ".*"}}
}

// warehouseObject is a warehouse as privileges are granted on it, without its owner.
func warehouseObject(name string) securable {
	return securable{kind: "WAREHOUSE", name: displayName(name), short: name}
}

// databaseObject is a database as privileges are granted on it, without its owner.
func databaseObject(name string) securable {
	return securable{kind: "DATABASE", name: displayName(name), short: name}
}

// accountObject is the account itself.
var accountObject = securable{kind: "ACCOUNT"}

// fullName is a name as Snowflake prints it.
func fullName(parts ...string) string {
	for i, p := range parts {
		parts[i] = displayName(p)
	}
	return strings.Join(parts, ".")
}

// covers reports whether a grant is one on the object.
func (one grant) covers(o securable) bool {
	return one.kind == o.kind && (one.object == o.name || slices.Contains(o.containers, one.object))
}

// denies reports whether Denied takes a privilege on the object away from a role.
func (g *grants) denies(role, privilege string, o securable) bool {
	return slices.ContainsFunc(g.denied, func(d Denied) bool {
		return privilege != "" && (d.Role == "" || d.Role == role) && d.Privilege == privilege &&
			(d.Object == "" || d.Object == o.short || d.Object == o.name)
	})
}

// has reports whether one of the roles has a privilege on an object; "" asks for any.
func (g *grants) has(roles []string, privilege string, o securable) bool {
	if g.denies(roles[0], privilege, o) {
		return false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, role := range roles {
		if g.unrestricted(role) || o.owner != "" && g.inherits(role, o.owner, 0) {
			return true
		}
	}
	for one := range g.granted {
		if one.covers(o) && (privilege == "" || one.privilege == privilege || one.privilege == "ALL" ||
			one.privilege == "OWNERSHIP") &&
			slices.ContainsFunc(roles, func(role string) bool { return g.inherits(role, one.role, 0) }) {
			return true
		}
	}
	return false
}

// addAll notes new grants.
func (g *grants) addAll(all []grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range all {
		g.add(one)
	}
}

// isCustomRole reports whether a role was created by CREATE ROLE.
func (g *grants) isCustomRole(role string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, made := g.roles[role]
	return made
}

// rolesOf are the roles that are granted to a user.
func (g *grants) rolesOf(user string) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.users[user]
}

// isUnrestricted reports whether a role may see everything that is not denied to it.
func (g *grants) isUnrestricted(role string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.unrestricted(role)
}

// grantRow is a row of SHOW GRANTS.
type grantRow struct{ privilege, kind, name, grantee string }

// deniedOwner is shown as the owner of an object on which privileges are denied: the denied
// role is listed with the privileges left to it, since an owner would have all.
const deniedOwner = "SNOWSIM"

// grantsOn lists who is granted what on an object, as a role sees it.
func (g *grants) grantsOn(o securable, asked string) []grantRow {
	var rows []grantRow
	left, isDenied := []string{}, false
	for _, privilege := range privilegesOf[o.kind] {
		if g.denies(asked, privilege, o) {
			isDenied = true
		} else {
			left = append(left, privilege)
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if isDenied {
		if g.unrestricted(asked) || g.inherits(asked, o.owner, 0) {
			for _, privilege := range left {
				rows = append(rows, grantRow{privilege, o.kind, o.name, asked})
			}
		}
		o.owner = deniedOwner
	}
	if o.owner != "" {
		rows = append(rows, grantRow{"OWNERSHIP", o.kind, o.name, o.owner})
	}
	for one := range g.granted {
		if one.covers(o) {
			for _, privilege := range one.privileges() {
				if !isDenied || slices.Contains(left, privilege) || one.role != asked {
					rows = append(rows, grantRow{privilege, o.kind, o.name, one.role})
				}
			}
		}
	}
	return uniqueRows(rows)
}

// privileges are those of the grant, one by one.
func (one grant) privileges() []string {
	if one.privilege == "ALL" {
		return privilegesOf[one.kind]
	}
	return []string{one.privilege}
}

func uniqueRows(rows []grantRow) []grantRow {
	seen := map[grantRow]bool{}
	return slices.DeleteFunc(rows, func(r grantRow) bool {
		again := seen[r]
		seen[r] = true
		return again
	})
}
