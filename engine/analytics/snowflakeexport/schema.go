package snowflakeexport

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/sql"
)

// The comment of what Loadstone has made in an account begins with one of these; the version of the schema follows.
const (
	TableMark = "Loadstone table "
	ViewMark  = "Loadstone view "
)

// The tables that statements here name.
const (
	Executions = "QUERY_EXECUTIONS"
	Parts      = "LOADSTONE_PARTS"
	Runs       = "LOADSTONE_RUNS"
	Results    = "TEST_RESULTS"
	Templates  = "TEST_TEMPLATES"
	Segments   = "LOADSTONE_SEGMENTS"
	Steps      = "FIND_MAX_STEP_HISTORY"
	Polls      = "WAREHOUSE_POLL_SNAPSHOTS"
)

// needed are the tables without which nothing can be taken to the account.
var needed = map[string]bool{Executions: true, Parts: true, Runs: true}

// firstColumns is how many columns tables had in version 1, which marked not all of them. Later ones come behind.
var firstColumns = map[string]int{Executions: 24, Parts: 4, Runs: 2, Results: 21, Polls: 13}

// column is a column as the schema declares it.
type column struct {
	name, kind string
	required   bool
}

// described is the column's type as INFORMATION_SCHEMA has it.
func (c column) described() string {
	kind := c.kind
	if kind == "VARCHAR" {
		kind = "TEXT"
	}
	if c.required {
		kind += " NOT NULL"
	}
	return kind
}

// object is a table or a view of the schema.
type object struct {
	name, about, statement string
	view                   bool
	columns                []column // of a table
}

func (o *object) mark() string {
	if o.view {
		return ViewMark
	}
	return TableMark
}

// comment is the object's comment, with what it says about it.
func (o *object) comment(about string) string {
	return o.mark() + strconv.Itoa(sql.SnowflakeVersion) + ": " + about
}

// schema is what an account should have: the tables, the views, and the statements that fill what the tables begin with.
type schema struct {
	objects []*object
	byName  map[string]*object
	rows    []string
}

var (
	objectStart  = regexp.MustCompile(`^CREATE OR (?:ALTER|REPLACE) (TABLE|VIEW) (\w+)`)
	objectMark   = regexp.MustCompile(`COMMENT = 'Loadstone (?:table|view) \d+: ((?:[^']|'')*)'`)
	columnLine   = regexp.MustCompile(`^(\w+)\s+([A-Z_]+(?:\(\d+,\d+\))?)( NOT NULL)?,?$`)
	commentLines = regexp.MustCompile(`(?m)^\s*--.*\n`)
)

// theSchema is read from the files of the package sql.
var theSchema = sync.OnceValue(func() *schema {
	s := &schema{byName: map[string]*object{}}
	for _, f := range sql.Snowflake() {
		text := strings.TrimSuffix(strings.TrimSpace(commentLines.ReplaceAllString(f.Text, "")), ";")
		m := objectStart.FindStringSubmatch(text)
		if m == nil {
			s.rows = append(s.rows, text)
			continue
		}
		o := &object{name: m[2], view: m[1] == "VIEW", statement: text}
		if about := objectMark.FindStringSubmatch(text); about != nil {
			o.about = strings.ReplaceAll(about[1], "''", "'")
		}
		if !o.view {
			for line := range strings.Lines(text) {
				if c := columnLine.FindStringSubmatch(strings.TrimSpace(line)); c != nil {
					o.columns = append(o.columns, column{c[1], c[2], c[3] != ""})
				}
			}
		}
		s.objects = append(s.objects, o)
		s.byName[o.name] = o
	}
	return s
})

// versionOf reads the version from a comment; ours tells that Loadstone has made what has it.
func versionOf(comment, mark string) (version int, ours bool) {
	rest, ours := strings.CutPrefix(comment, mark)
	if !ours {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ":")
	version, err := strconv.Atoi(number)
	return version, err == nil
}
