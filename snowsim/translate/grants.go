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

	mu     sync.RWMutex
	roles  map[string][]string // roles made, with the roles granted to each
	users  map[string][]string // the roles granted to users
	held   map[Grant]bool
	epochs int64
}

// Grant is one privilege of a role. Object is the object's full name, "D.S.*" for
// the tables of a schema (D.* of a database), those to come too; "" is the account.
// The kinds ROLE, MEMBER and USER stand for a role itself, a role granted to a role,
// and a role granted to a user.
type Grant struct{ Role, Privilege, Kind, Object string }

func newGrants(denied []Denied) *grants {
	return &grants{denied: denied, roles: map[string][]string{}, users: map[string][]string{}, held: map[Grant]bool{}}
}

func (g *grants) Version() int64 {
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
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Grant, err error) {
		return g, row.Scan(&g.Role, &g.Privilege, &g.Kind, &g.Object)
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
func (g *grants) add(one Grant) {
	g.epochs++
	switch one.Kind {
	case "ROLE":
		if _, ok := g.roles[one.Role]; !ok {
			g.roles[one.Role] = nil
		}
	case "MEMBER":
		g.roles[one.Role] = addOnce(g.roles[one.Role], one.Object)
	case "USER":
		g.users[one.Role] = addOnce(g.users[one.Role], one.Object)
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

// SecondaryRoles is the session parameter that holds USE SECONDARY ROLES: ALL, NONE, or
// names; ALL is the default, as of a user's DEFAULT_SECONDARY_ROLES. A blank keeps the name from meeting another.
const SecondaryRoles = "SECONDARY ROLES"

// Secondary are the session's active roles besides its own.
func (g *grants) Secondary(s *Session) []string {
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

// InSession reports whether one of the session's roles has the rights of a role.
func (g *grants) InSession(s *Session, role string) bool {
	active := append([]string{s.Role}, g.Secondary(s)...)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.ContainsFunc(active, func(r string) bool { return g.within(r, role, 0) })
}

// Object is what privileges are granted on: a table, schema, database or warehouse,
// by its full name as SHOW GRANTS prints it. The account has no name.
type Object struct {
	Kind, Name string
	// Short is the last part of the name, by which Denied may name it too.
	Short string
	// containers hold the object: the patterns of grants on all that they hold.
	containers []string
	Owner      string
}

// TableObject is a table or view as privileges are granted on it.
func TableObject(t *Table) Object {
	n, kind := t.Name, "TABLE"
	if t.Kind == View {
		kind = "VIEW"
	}
	return Object{Kind: kind, Name: FullName(n.Database, n.Schema, n.Object), Short: n.Object, Owner: t.Owner,
		containers: []string{FullName(n.Database, n.Schema) + ".*", FullName(n.Database) + ".*"}}
}

// SchemaObject is a schema as privileges are granted on it, without its owner.
func SchemaObject(database, schema string) Object {
	return Object{Kind: "SCHEMA", Name: FullName(database, schema), Short: schema,
		containers: []string{FullName(database) + ".*"}}
}

// WarehouseObject is a warehouse as privileges are granted on it, without its owner.
func WarehouseObject(name string) Object {
	return Object{Kind: "WAREHOUSE", Name: Display(name), Short: name}
}

// DatabaseObject is a database as privileges are granted on it, without its owner.
func DatabaseObject(name string) Object {
	return Object{Kind: "DATABASE", Name: Display(name), Short: name}
}

// AccountObject is the account itself.
var AccountObject = Object{Kind: "ACCOUNT"}

// FullName is a name as Snowflake prints it.
func FullName(parts ...string) string {
	for i, p := range parts {
		parts[i] = Display(p)
	}
	return strings.Join(parts, ".")
}

// covers reports whether a grant is one on the object.
func (one Grant) covers(o Object) bool {
	return one.Kind == o.Kind && (one.Object == o.Name || slices.Contains(o.containers, one.Object))
}

// denies reports whether Denied takes a privilege on the object away from a role.
func (g *grants) denies(role, privilege string, o Object) bool {
	return slices.ContainsFunc(g.denied, func(d Denied) bool {
		return privilege != "" && (d.Role == "" || d.Role == role) && d.Privilege == privilege &&
			(d.Object == "" || d.Object == o.Short || d.Object == o.Name)
	})
}

// has reports whether one of the roles has a privilege on an object; "" asks for any.
func (g *grants) has(roles []string, privilege string, o Object) bool {
	if g.denies(roles[0], privilege, o) {
		return false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, role := range roles {
		if g.everything(role) || o.Owner != "" && g.within(role, o.Owner, 0) {
			return true
		}
	}
	for one := range g.held {
		if one.covers(o) && (privilege == "" || one.Privilege == privilege || one.Privilege == "ALL" ||
			one.Privilege == "OWNERSHIP") &&
			slices.ContainsFunc(roles, func(role string) bool { return g.within(role, one.Role, 0) }) {
			return true
		}
	}
	return false
}

// Add notes new grants.
func (g *grants) Add(all []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range all {
		g.add(one)
	}
}

// Made reports whether a role was made, as opposed to one that the account began with.
func (g *grants) Made(role string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, made := g.roles[role]
	return made
}

// GrantedTo are the roles that are granted to a user.
func (g *grants) GrantedTo(user string) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.users[user]
}

// SeesAll reports whether a role may see everything that is not denied to it.
func (g *grants) SeesAll(role string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.everything(role)
}

// ShownGrant is a row of SHOW GRANTS.
type ShownGrant struct{ Privilege, Kind, Name, Grantee string }

// Withheld owns what somebody is denied privileges on: the denied role is shown with
// those that are left to it, instead of as an owner, who would have all.
const Withheld = "SNOWSIM"

// On lists who is granted what on an object, as a role sees it.
func (g *grants) On(o Object, asked string) []ShownGrant {
	var rows []ShownGrant
	left, isDenied := []string{}, false
	for _, privilege := range privilegesOf[o.Kind] {
		if g.denies(asked, privilege, o) {
			isDenied = true
		} else {
			left = append(left, privilege)
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if isDenied {
		if g.everything(asked) || g.within(asked, o.Owner, 0) {
			for _, privilege := range left {
				rows = append(rows, ShownGrant{privilege, o.Kind, o.Name, asked})
			}
		}
		o.Owner = Withheld
	}
	if o.Owner != "" {
		rows = append(rows, ShownGrant{"OWNERSHIP", o.Kind, o.Name, o.Owner})
	}
	for one := range g.held {
		if one.covers(o) {
			for _, privilege := range one.privileges() {
				if !isDenied || slices.Contains(left, privilege) || one.Role != asked {
					rows = append(rows, ShownGrant{privilege, o.Kind, o.Name, one.Role})
				}
			}
		}
	}
	return compact(rows)
}

// privileges are those of the grant, one by one.
func (one Grant) privileges() []string {
	if one.Privilege == "ALL" {
		return privilegesOf[one.Kind]
	}
	return []string{one.Privilege}
}

func compact(rows []ShownGrant) []ShownGrant {
	seen := map[ShownGrant]bool{}
	return slices.DeleteFunc(rows, func(r ShownGrant) bool {
		again := seen[r]
		seen[r] = true
		return again
	})
}
