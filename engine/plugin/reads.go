package plugin

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// A place {reads a b.c …} takes anything in whole parentheses that reads nothing but
// the run's tables and what it lists: relations and functions, each by the name it is
// called by. "*.b" is b in any schema.

// syntax are words before a parenthesis that call no function.
var syntax = words("ALL AND ANY ARRAY AS BY CASE DISTINCT ELSE EXISTS FILTER FROM IN JOIN LATERAL LIMIT NOT ON OR " +
	"OVER ROW SELECT SEED SOME SYSTEM BERNOULLI REPEATABLE THEN UNION USING VALUES WHEN WHERE WITH")

// ends are words that end the list of relations of a FROM.
var ends = words("WHERE GROUP ORDER HAVING LIMIT UNION EXCEPT INTERSECT WINDOW FETCH OFFSET SELECT")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// reading follows what tokens read.
type reading struct {
	*matcher
	listed []string
	to     int
	// open are the open parentheses.
	open []parenthesis
	// relation says that the next name is a relation's, and called that the next
	// parenthesis holds arguments.
	relation, called bool
}

type parenthesis struct {
	// relations says that a list of relations is being read.
	relations bool
	// arguments are those of a function, where FROM is a word like others: extract(year FROM t).
	arguments bool
}

// reads reports whether tokens read only the run's tables and what is listed. joined
// says that a relation stands before them.
func (m *matcher) reads(listed []string, from, to int, joined bool) bool {
	r := reading{matcher: m, listed: listed, to: to, open: []parenthesis{{relations: joined}}}
	for at := from; at < to; {
		if at = r.next(from, at); at < 0 {
			return false
		}
	}
	return len(r.open) == 1
}

// next reads what begins at a token and returns where it ends, or -1.
func (r *reading) next(from, at int) int {
	t, top := r.tokens[at], &r.open[len(r.open)-1]
	called := r.called
	r.called = false
	word := t.Upper()
	switch {
	case t.Is("("):
		// A relation in parentheses is one all the same.
		r.open = append(r.open, parenthesis{relations: r.relation && !called, arguments: called})
		r.relation = r.relation && !called
	case t.Is(")"):
		if len(r.open) == 1 {
			return -1
		}
		r.open, r.relation = r.open[:len(r.open)-1], false
	case t.Is(","):
		r.relation = top.relations
	case word == "FROM" && !top.arguments, word == "USING" && !r.calls(at):
		top.relations, r.relation = true, true
	case word == "JOIN", word == "TABLE" && !r.calls(at):
		r.relation = true
	case word == "LATERAL", word == "ONLY":
	case ends[word]:
		top.relations, r.relation = false, false
		top.arguments = top.arguments && word != "SELECT"
	default:
		return r.names(from, at)
	}
	return at + 1
}

// names reads a name, or a token that is none.
func (r *reading) names(from, at int) int {
	end, last := r.name(at)
	if end == at {
		r.relation = false
		return at + 1
	}
	end = min(end, r.to)
	if r.calls(end - 1) {
		if end-at == 1 && syntax[r.tokens[at].Upper()] {
			return end
		}
		r.called = true
		if !r.alias(at, from) && !r.isListed(at, end) {
			return -1
		}
		return end
	}
	if r.relation && !r.known(last) && !r.isListed(at, end) {
		return -1
	}
	r.relation = false
	return end
}

// calls reports that a parenthesis follows a token.
func (r *reading) calls(at int) bool { return at+1 < r.to && r.tokens[at+1].Is("(") }

// alias reports that a name before a parenthesis is given there (AS u(n)), or is a
// type (::numeric(12,2)).
func (r *reading) alias(at, from int) bool {
	return at > from && (r.tokens[at-1].Upper() == "AS" || r.tokens[at-1].Is("::"))
}

// isListed reports that the name of the tokens from at to end is in the list.
func (r *reading) isListed(at, end int) bool {
	var parts []string
	for _, t := range r.tokens[at:end] {
		if name, ok := t.Identifier(); ok {
			parts = append(parts, strings.ToLower(name))
		}
	}
	name := strings.Join(parts, ".")
	return slices.ContainsFunc(r.listed, func(entry string) bool {
		suffix, whichever := strings.CutPrefix(entry, "*.")
		return entry == name || whichever && (name == suffix || strings.HasSuffix(name, "."+suffix))
	})
}

// placeAt reads a place of a pattern behind its brace, and how many tokens it takes
// with both braces; 0 when there is none.
func placeAt(text string, tokens []sqltext.Token) (p part, taken int) {
	if len(tokens) < 3 || !tokens[0].Is("{") {
		return p, 0
	}
	end := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return t.Is("}") })
	if end < 2 {
		return p, 0
	}
	p.place = tokens[1].Text
	if p.place == "reads" {
		p.reads = strings.Fields(strings.ToLower(text[tokens[1].End:tokens[end].At]))
		return p, end + 1
	}
	if end != 2 {
		return p, 0
	}
	return p, 3
}
