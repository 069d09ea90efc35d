package snowflakeexport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
)

// SchemaStatus is what an account has of the schema.
type SchemaStatus struct {
	unusable map[string]bool
	// Views are those that are there, those that a reader looks at first in front.
	Views []string
	// Problem says in sentences what is missing, older or somebody else's, and the cure.
	Problem string
}

// Has tells whether a table is there and Loadstone's.
func (s SchemaStatus) Has(name string) bool { return !s.unusable[name] }

func (s SchemaStatus) tablesUsable() bool {
	return !slices.ContainsFunc(theSchema().objects, func(o *object) bool { return !o.view && s.unusable[o.name] })
}

// missing are those of the tables that a view reads which are not usable.
func (s SchemaStatus) missing(o *object) (names []string) {
	for _, t := range theSchema().objects {
		if s.unusable[t.name] && strings.Contains(o.statement, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// existingObject is what an account has under a name.
type existingObject struct {
	kind, comment string
	columns       []existingColumn
}

type existingColumn struct{ name, kind string }

func (e existingObject) column(name string) (kind string, there bool) {
	for _, c := range e.columns {
		if c.name == name {
			return c.kind, true
		}
	}
	return "", false
}

// renameHint ends each sentence about what is somebody else's.
const renameHint = " Cure: rename or drop it, or let the connection name another schema."

// differs says which columns of a table are missing or another. Unless they are to be the same exactly, columns may be
// there besides that a row can do without, and a column may be NULL.
func (e existingObject) differs(declared []column, exactly bool) string {
	var wrong []string
	for _, c := range declared {
		switch have, there := e.column(c.name); {
		case !there:
			wrong = append(wrong, "it has no column "+c.name)
		case have != c.described() && (exactly || have+" NOT NULL" != c.described()):
			wrong = append(wrong, fmt.Sprintf("its column %s is %s, and not %s", c.name, have, c.described()))
		}
	}
	for _, have := range e.columns {
		ours := slices.ContainsFunc(declared, func(c column) bool { return c.name == have.name })
		if !ours && (exactly || strings.HasSuffix(have.kind, " NOT NULL")) {
			wrong = append(wrong, fmt.Sprintf("it has a column %s %s of its own", Quoted(have.name), have.kind))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 3 {
		wrong = append(wrong[:3], fmt.Sprintf("and %d more", len(wrong)-3))
	}
	return strings.Join(wrong, ", ")
}

// foreign says why an existing object of that name is not Loadstone's, "" when it is. A table of version 1
// may lack its mark.
func (e existingObject) foreign(o *object) string {
	_, marked := versionOf(e.comment, o.mark())
	what := "table"
	if o.view {
		what = "view"
	}
	switch isView := e.kind == "VIEW"; {
	case !o.view && e.kind != "BASE TABLE":
		return "It is not a plain table but a " + strings.ToLower(e.kind) + "." + renameHint
	case o.view && !isView:
		return "It already exists as TABLE." + renameHint
	case marked:
		return ""
	}
	first, known := firstColumns[o.name]
	if o.view || !known {
		return "A " + what + " of that name is there that Loadstone has not made." + renameHint
	}
	if wrong := e.differs(o.columns[:first], true); wrong != "" {
		return "A table of that name is there that Loadstone has not made: " + wrong + "." + renameHint
	}
	return ""
}

// CheckSchema looks what an account has of the schema, and changes nothing; cure is the command that applies it. A
// table without which nothing can be taken there, and that is missing, older or somebody else's, is an error with the
// cure.
func CheckSchema(ctx context.Context, a SQLAccount, cure string) (SchemaStatus, error) {
	s := SchemaStatus{unusable: map[string]bool{}}
	there, err := existingObjects(ctx, a)
	if err != nil {
		return s, err
	}
	var missing, older, others []string
	var needs *engine.Error
	for _, o := range theSchema().objects {
		e, exists := there[o.name]
		version, _ := versionOf(e.comment, o.mark())
		foreign := ""
		if exists {
			foreign = e.foreign(o)
		}
		var read []string
		if o.view {
			read = s.missing(o)
		}
		wrong := ""
		if exists && !o.view {
			wrong = e.differs(o.columns, false)
		}
		switch {
		case !exists:
			missing = append(missing, o.name)
		case foreign != "":
			others = append(others, o.name+": "+foreign)
		case len(read) > 0:
			others = append(others, o.name+": it reads "+strings.Join(read, " and ")+".")
		case version < sql.SnowflakeVersion:
			older = append(older, o.name)
		case wrong != "":
			others = append(others, o.name+": Loadstone has made it, and it was changed since: "+wrong+"."+renameHint)
		case o.view:
			s.Views = append(s.Views, o.name)
			continue
		default:
			continue
		}
		s.unusable[o.name] = true
		if needed[o.name] && needs == nil {
			needs = &engine.Error{Code: engine.CodeUnavailable,
				Message: fmt.Sprintf("The table %s of the results connection cannot be written to.", o.name)}
			if foreign != "" {
				needs.Code = engine.CodeConflict
			}
		}
	}
	s.Problem = problemOf(missing, older, others, cure)
	if needs != nil {
		needs.Hint = s.Problem
		return s, needs
	}
	return s, nil
}

func problemOf(missing, older, others []string, cure string) string {
	var sentences []string
	switch {
	case len(missing) == len(theSchema().objects):
		sentences = append(sentences, "The results connection has none of Loadstone's tables.")
	case len(missing) > 0:
		sentences = append(sentences, "The results connection does not have "+strings.Join(missing, ", ")+".")
	}
	if len(older) > 0 {
		sentences = append(sentences, fmt.Sprintf("Older than version %d of the schema: %s.", sql.SnowflakeVersion,
			strings.Join(older, ", ")))
	}
	if len(missing)+len(older) > 0 {
		sentences = append(sentences, "Cure: "+cure+".")
	}
	if len(others) > 0 {
		sentences = append(sentences, "Not written to: "+strings.Join(others, " "))
	}
	return strings.Join(sentences, " ")
}

// existingObjects reads what the schema of the account's sessions has under the names of the objects.
func existingObjects(ctx context.Context, a SQLAccount) (map[string]existingObject, error) {
	marks, names := "", []any{}
	for _, o := range theSchema().objects {
		marks, names = marks+", ?", append(names, o.name)
	}
	where := " WHERE TABLE_SCHEMA = CURRENT_SCHEMA() AND TABLE_NAME IN (" + marks[2:] + ")"
	rs, err := a.Query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, COALESCE(COMMENT, '') FROM INFORMATION_SCHEMA.TABLES"+where,
		names...)
	if err != nil {
		return nil, fmt.Errorf("looking which tables the results connection has: %w", err)
	}
	there := map[string]existingObject{}
	for _, r := range rs.Rows {
		there[fmt.Sprint(r[0])] = existingObject{kind: fmt.Sprint(r[1]), comment: fmt.Sprint(r[2])}
	}
	rs, err = a.Query(ctx, `SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE ||
		CASE DATA_TYPE WHEN 'NUMBER' THEN '(' || NUMERIC_PRECISION || ',' || NUMERIC_SCALE || ')' ELSE '' END ||
		CASE IS_NULLABLE WHEN 'NO' THEN ' NOT NULL' ELSE '' END FROM INFORMATION_SCHEMA.COLUMNS`+where+
		" ORDER BY TABLE_NAME, ORDINAL_POSITION", names...)
	if err != nil {
		return nil, fmt.Errorf("looking which columns the results connection has: %w", err)
	}
	for _, r := range rs.Rows {
		if e, ok := there[fmt.Sprint(r[0])]; ok {
			e.columns = append(e.columns, existingColumn{fmt.Sprint(r[1]), fmt.Sprint(r[2])})
			there[fmt.Sprint(r[0])] = e
		}
	}
	return there, nil
}
