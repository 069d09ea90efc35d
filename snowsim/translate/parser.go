package translate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Parser reads one statement and writes Postgres SQL as it goes. Its methods
// fail as those of the cursor do.
type Parser struct {
	*Cursor
	Context context.Context
	Account *Account
	Session *Session
	Binds   []protocol.Bind

	Params   []protocol.Param
	marks    int  // how many ? have been read
	Inline   bool // write binds as constants: Postgres takes no parameters in DDL
	Volatile bool // the plan holds what must not be remembered
	Tables   []*Table
	Before   []step
	equal    map[string]bool // columns that are compared with a value by =
	serial   int             // numbers what the translator names itself

	query  *scope   // the SELECT being read
	common []string // the common table expressions in reach
	views  int      // how many views the statement is within
}

// RowMarker stands for the number of the row, from 0, until FROM is known.
const RowMarker = "\x00ROW\x00"

// Identifier reads one identifier and returns it as stored.
func (p *Parser) Identifier() string {
	if !p.IsIdentifier() {
		p.Unexpected()
	}
	return p.AnyIdentifier()
}

// AnyIdentifier is Identifier after AS or a dot, where reserved words are taken too.
func (p *Parser) AnyIdentifier() string {
	t := p.Peek()
	if t.Kind != Quoted && t.Kind != Word {
		p.Unexpected()
	}
	p.Advance(1)
	if err := CheckIdentifier(t.Text); err != nil {
		p.Fail(err)
	}
	p.Account.Remember(t.Text)
	return t.Text
}

// Parts reads a name with up to three parts.
func (p *Parser) Parts() []string {
	parts := []string{p.Identifier()}
	for p.IsSymbol(".") {
		p.Advance(1)
		parts = append(parts, p.AnyIdentifier())
	}
	return parts
}

// Name reads the name of an object in a schema and completes it from the session.
func (p *Parser) Name() Name { return p.Complete(p.Parts()) }

// Complete fills in what a name leaves out from the session, which fails when that has none.
func (p *Parser) Complete(parts []string) Name {
	n := Name{Database: p.Session.Database, Schema: p.Session.Schema, Object: parts[len(parts)-1]}
	switch len(parts) {
	case 1:
		p.needsDatabase(n)
		if n.Schema == "" {
			p.Fail(&protocol.Error{Code: "090106", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current schema. " +
				"Call 'USE SCHEMA', or use a qualified name."})
		}
	case 2:
		n.Schema = parts[0]
		p.needsDatabase(n)
	case 3:
		n.Database, n.Schema = parts[0], parts[1]
	default:
		p.Failf("Invalid object name '%s'.", strings.Join(parts, "."))
	}
	return n
}

// needsDatabase fails for a name without a database.
func (p *Parser) needsDatabase(n Name) {
	if n.Database == "" {
		p.Fail(&protocol.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
			"have a current database. " +
			"Call 'USE DATABASE', or use a qualified name."})
	}
}

// Constant reads a string constant.
func (p *Parser) Constant() string {
	if p.Peek().Kind != Text {
		p.Unexpected()
	}
	return p.Next().Text
}

// Integer reads an integer constant without a sign.
func (p *Parser) Integer() int64 {
	if p.Peek().Kind != Number {
		p.Unexpected()
	}
	s := p.Next().Text
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.Failf("Invalid value [%s], expected an integer.", s)
	}
	return n
}

// Fresh returns a name that no statement can have written unquoted.
func (p *Parser) Fresh(prefix string) string {
	p.serial++
	return fmt.Sprintf("%s~%d", prefix, p.serial)
}

// Schema reads [database.]schema.
func (p *Parser) Schema() Name {
	parts := p.Parts()
	switch len(parts) {
	case 1:
		if p.Session.Database == "" {
			p.Complete(parts)
		}
		return Name{Database: p.Session.Database, Schema: parts[0]}
	case 2:
		return Name{Database: parts[0], Schema: parts[1]}
	}
	p.Failf("Invalid schema name '%s'.", strings.Join(parts, "."))
	return Name{}
}

// OptionValue reads the value of an option or parameter as text.
func (p *Parser) OptionValue() string {
	switch p.Peek().Kind {
	case Text, Word, Quoted, Number:
		return p.Next().Text
	}
	p.Unexpected()
	return ""
}
