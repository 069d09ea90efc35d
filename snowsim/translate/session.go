package translate

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// alterSession reads ALTER SESSION SET p = v … and UNSET p, ….
func (p *parser) alterSession() *Plan {
	p.expect("ALTER", "SESSION")
	made := p.statusPlan("Statement executed successfully.")
	made.Type = protocol.AlterSession
	if p.accept("UNSET") {
		made.Effect.Unset = append(made.Effect.Unset, p.identifier())
		for p.acceptSymbol(",") {
			made.Effect.Unset = append(made.Effect.Unset, p.identifier())
		}
		return made
	}
	p.expect("SET")
	made.Effect.Set = map[string]string{}
	for p.peek().kind == tokenWord {
		key := p.identifier()
		p.expectSymbol("=")
		value := p.optionValue()
		if key == "QUERY_TAG" && len(value) > 2000 {
			p.fail(
				&protocol.Error{Code: "001006", State: "22023", Message: "SQL compilation error:\ninvalid value for parameter " +
					"'QUERY_TAG': longer than 2000 characters."},
			)
		}
		if booleans[key] {
			switch value = strings.ToUpper(value); value {
			case "TRUE", "FALSE":
				value = strings.ToLower(value)
			default:
				p.fail(protocol.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", value, key))
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

// use reads USE ….
func (p *parser) use() *Plan {
	p.expect("USE")
	made := p.statusPlan("Statement executed successfully.")
	made.Type = protocol.Use
	missing := func(object string) {
		p.fail(&protocol.Error{Code: "002043", State: "02000",
			Message: "SQL compilation error:\nObject does not exist, or operation cannot be performed: " +
				displayName(object) +
				"."})
	}
	p.volatile = true
	switch {
	case p.is("WAREHOUSE") && p.peekAt(1).kind != tokenEnd:
		p.next()
		w := p.parts()[0]
		if _, ok := p.account.host.Warehouses().Get(w); !ok || !p.account.MayUse(p.session, w) {
			missing(w)
		}
		made.Effect.Warehouse = &w
	case p.is("ROLE") && p.peekAt(1).kind != tokenEnd:
		p.next()
		role := p.parts()[0]
		if !p.account.RoleExists(role) {
			p.fail(protocol.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.",
				displayName(role)))
		}
		made.Effect.Role = &role
	case p.accept("SECONDARY", "ROLES"):
		made.Effect.Set = map[string]string{SecondaryRoles: p.secondaryRoles()}
	case p.is("SCHEMA") && p.peekAt(1).kind != tokenEnd:
		p.next()
		n := p.schema()
		p.checkSchema(n, missing)
		made.Effect.Database, made.Effect.Schema = &n.database, &n.schema
	default:
		p.accept("DATABASE")
		parts := p.parts()
		n := objectName{database: parts[0]}
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
	granted := p.account.grants.rolesOf(p.session.User)
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

func (p *parser) checkSchema(n objectName, missing func(string)) {
	ok, err := p.account.tables.hasSchema(p.ctx, n.database, n.schema)
	if err != nil {
		p.fail(err)
	}
	if !ok {
		missing(n.String())
	}
}
