package translate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// parser reads one statement and writes Postgres SQL as it goes. Its methods
// fail as those of the cursor do.
type parser struct {
	*cursor
	ctx     context.Context
	account *Account
	session *Session
	binds   []protocol.Bind

	params   []protocol.Param
	marks    int  // how many ? have been read
	inline   bool // write binds as constants: Postgres takes no parameters in DDL
	volatile bool // the plan holds what must not be remembered
	tables   []*tableEntry
	before   []step
	equal    map[string]bool // columns that are compared with a value by =
	serial   int             // numbers what the translator names itself

	query  *scope   // the SELECT being read
	common []string // the common table expressions in reach
	views  int      // how many views the statement is within
}

// rowMarker stands for the number of the row, from 0, until FROM is known.
const rowMarker = "\x00ROW\x00"

// identifier reads one identifier and returns it as stored.
func (p *parser) identifier() string {
	if !p.isIdentifier() {
		p.unexpected()
	}
	return p.anyIdentifier()
}

// anyIdentifier is Identifier after AS or a dot, where reserved words are taken too.
func (p *parser) anyIdentifier() string {
	t := p.peek()
	if t.kind != tokenQuoted && t.kind != tokenWord {
		p.unexpected()
	}
	p.advance(1)
	if err := checkIdentifier(t.text); err != nil {
		p.fail(err)
	}
	p.account.rememberIdentifier(t.text)
	return t.text
}

// parts reads a name with up to three parts.
func (p *parser) parts() []string {
	parts := []string{p.identifier()}
	for p.isSymbol(".") {
		p.advance(1)
		parts = append(parts, p.anyIdentifier())
	}
	return parts
}

// name reads the name of an object in a schema and completes it from the session.
func (p *parser) name() objectName { return p.qualify(p.parts()) }

// qualify fills in what a name leaves out from the session, which fails when that has none.
func (p *parser) qualify(parts []string) objectName {
	n := objectName{database: p.session.Database, schema: p.session.Schema, object: parts[len(parts)-1]}
	switch len(parts) {
	case 1:
		p.needsDatabase(n)
		if n.schema == "" {
			p.fail(&protocol.Error{Code: "090106", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current schema. " +
				"Call 'USE SCHEMA', or use a qualified name."})
		}
	case 2:
		n.schema = parts[0]
		p.needsDatabase(n)
	case 3:
		n.database, n.schema = parts[0], parts[1]
	default:
		p.failf("Invalid object name '%s'.", strings.Join(parts, "."))
	}
	return n
}

// needsDatabase fails for a name without a database.
func (p *parser) needsDatabase(n objectName) {
	if n.database == "" {
		p.fail(&protocol.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
			"have a current database. " +
			"Call 'USE DATABASE', or use a qualified name."})
	}
}

// constant reads a string constant.
func (p *parser) constant() string {
	if p.peek().kind != tokenText {
		p.unexpected()
	}
	return p.next().text
}

// integer reads an integer constant without a sign.
func (p *parser) integer() int64 {
	if p.peek().kind != tokenNumber {
		p.unexpected()
	}
	s := p.next().text
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.failf("Invalid value [%s], expected an integer.", s)
	}
	return n
}

// uniqueName returns a name that no statement can have written unquoted.
func (p *parser) uniqueName(prefix string) string {
	p.serial++
	return fmt.Sprintf("%s~%d", prefix, p.serial)
}

// schema reads [database.]schema.
func (p *parser) schema() objectName {
	parts := p.parts()
	switch len(parts) {
	case 1:
		if p.session.Database == "" {
			p.qualify(parts)
		}
		return objectName{database: p.session.Database, schema: parts[0]}
	case 2:
		return objectName{database: parts[0], schema: parts[1]}
	}
	p.failf("Invalid schema name '%s'.", strings.Join(parts, "."))
	return objectName{}
}

// optionValue reads the value of an option or parameter as text.
func (p *parser) optionValue() string {
	switch p.peek().kind {
	case tokenText, tokenWord, tokenQuoted, tokenNumber:
		return p.next().text
	}
	p.unexpected()
	return ""
}
