package catalog

import (
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Scope are the queries that a change looks at. A catalog may have thousands, of which most changes name one.
type Scope struct {
	// All says that it may look at any of them.
	All bool
	// Names are those that it names.
	Names []string
}

// ScopeOf returns the queries that statements look at.
func ScopeOf(list []sql.Parsed) (n Scope) {
	name := func(given sql.Name) {
		n.Names = append(n.Names, given.Text)
		// How a database compares other letters without case depends on its locale.
		n.All = n.All || strings.ContainsFunc(given.Text, func(r rune) bool { return r > 127 })
	}
	for _, p := range list {
		switch st := p.Statement.(type) {
		case *sql.CreateWorker:
			n.All = n.All || st.Existing == sql.ReplaceExisting // queries may use it, as the others below
		case *sql.CreateLogicalSource:
			n.All = n.All || st.Existing == sql.ReplaceExisting
		case *sql.CreatePhysicalSource:
			n.All = n.All || st.Existing == sql.ReplaceExisting
		case *sql.CreateSink:
			n.All = n.All || st.Existing == sql.ReplaceExisting
		case *sql.CreateQuery:
			name(st.Name)
		case *sql.Resume:
			name(st.Name)
		case *sql.Drop:
			switch st.Entity {
			case sql.Query:
				name(st.Name)
			case sql.LogicalSource:
			default:
				n.All = true // any of them may refer to it
			}
		case *sql.Get:
			n.All = n.All || st.Entity == sql.Query
		}
	}
	return n
}
