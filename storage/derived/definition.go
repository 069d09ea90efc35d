package derived

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// What stands before and behind a definition when it is executed.
const (
	definitionPrefix = "SELECT * FROM (\n"
	definitionSuffix = "\n) AS definition"
)

func wrapDefinition(definition string) string {
	return definitionPrefix + definition + definitionSuffix
}

// NormalizeDefinition is a definition without the semicolon that may end it. What is not one statement that reads is
// refused in words; the database refuses the same by its privileges.
func NormalizeDefinition(text string) (string, error) {
	tokens, err := sqltext.Tokens(text, sqltext.DialectOf("postgres"))
	if err != nil {
		return "", &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The SQL cannot be read: %v.", err), Hint: unparsedHint}
	}
	end := len(text)
	for len(tokens) > 0 && tokens[len(tokens)-1].Is(";") {
		end = tokens[len(tokens)-1].At
		tokens = tokens[:len(tokens)-1]
	}
	// Lines stay where they are: the database names them.
	if text = strings.TrimRight(text[:end], " \t\r\n"); len(tokens) == 0 {
		return "", engine.InvalidField("definition", "is empty", "write a SELECT")
	}
	if err := checkReadOnly(text); err != nil {
		return "", err
	}
	if first := tokens[0].Upper(); first == "EXPLAIN" || first == "SHOW" {
		return "", engine.InvalidField("definition", "begins with "+first, "a table is a SELECT")
	}
	if err := checkParentheses(text, tokens); err != nil {
		return "", err
	}
	return text, nil
}

// checkParentheses refuses a parenthesis that closes none of the definition's own: it would close the one that stands
// before a definition when it is executed, and what follows would be no part of it.
func checkParentheses(text string, tokens []sqltext.Token) error {
	open := 0
	for _, t := range tokens {
		switch {
		case t.Is("("):
			open++
		case t.Is(")"):
			open--
		}
		if open < 0 {
			e := engine.InvalidField("definition", `has a ")" that closes nothing`, "leave it out, or open it before")
			e.Fields[0].Line, e.Fields[0].Column = lineAndColumn(text, utf8.RuneCountInString(text[:t.At])+1)
			return e
		}
	}
	return nil
}

// Inspect says which derived tables a definition reads; ingested is the one that the roll-ups belong to. What a
// refresh could not execute is refused: the definition is planned, not executed.
func (d *Database) Inspect(ctx context.Context, definition, ingested string) (sources []string, err error) {
	_, err = d.plan(ctx, definition)
	if err != nil {
		return nil, err
	}
	return d.Sources(ctx, definition, ingested)
}

// plan describes a definition and has the reader plan it, so that what the reader may not call is refused.
func (d *Database) plan(ctx context.Context, definition string) (plan string, err error) {
	if _, err := d.describe(ctx, definition); err != nil {
		return "", err
	}
	err = d.inspectTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "EXPLAIN "+wrapDefinition(definition), pgx.QueryExecModeExec)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	if err != nil {
		// What it names is a place in the text behind EXPLAIN; describe has named those already.
		return "", queryError(err, "")
	}
	return plan, nil
}

func (d *Database) inspectTx(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.reader, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := limitDefinition(ctx, tx, d.Settings.Preview); err != nil {
			return err
		}
		return f(tx)
	})
}

// Preview shows what a definition would give: its plan, its columns, its first rows. Rows that take longer than
// Settings.Preview allows are left out, with a note.
func (d *Database) Preview(ctx context.Context, definition, ingested string) (p query.Preview, err error) {
	began := time.Now()
	p.Columns, p.Rows = []query.Column{}, [][]any{}
	if p.Plan, err = d.plan(ctx, definition); err != nil {
		return p, err
	}
	if p.Sources, err = d.Sources(ctx, definition, ingested); err != nil {
		return p, err
	}
	err = d.inspectTx(ctx, func(tx pgx.Tx) error {
		return executeQuery(
			ctx,
			tx,
			fmt.Sprintf("%s LIMIT %d", wrapDefinition(definition), d.Settings.Preview.Rows+1),
			d.Settings.Preview,
			&p.Answer,
		)
	})
	p.ElapsedMs = float64(time.Since(began).Microseconds()) / 1000
	switch {
	case err == nil, errors.Is(err, errRowLimit):
		return p, nil
	case timeoutError(err):
		p.Note = fmt.Sprintf("Its first rows take longer than %v, so that they are not shown. A refresh may take %v.",
			d.Settings.Preview.Statement, d.Settings.Definition.Statement)
		// Of no rows the database names the columns, and their types, as it does of some.
		p.Columns, p.Rows = []query.Column{}, [][]any{}
		err = d.inspectTx(ctx, func(tx pgx.Tx) error {
			return executeQuery(ctx, tx, wrapDefinition(definition)+" LIMIT 0", d.Settings.Preview, &p.Answer)
		})
		return p, wrapError("asking the results database", err)
	}
	return p, queryError(err, "")
}

// Sources says which derived tables a definition reads; ingested is the one that the roll-ups belong to. What the
// reader cannot read, and functions with side effects, are refused.
func (d *Database) Sources(ctx context.Context, definition, ingested string) ([]string, error) {
	if _, err := d.describe(ctx, definition); err != nil {
		return nil, err
	}
	var sources, effects, hiding []string
	undo := errors.New("nothing is kept")
	err := pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) error {
		// Postgres itself says what a view reads. It is never executed.
		if _, err := tx.Exec(
			ctx,
			"CREATE TEMP VIEW definition AS "+wrapDefinition(definition),
			pgx.QueryExecModeExec,
		); err != nil {
			return queryError(err, "")
		}
		rows, err := tx.Query(ctx, `SELECT DISTINCT CASE n.nspname WHEN 'tables' THEN c.relname ELSE $1 END
			FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid
				JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
				AND r.ev_class = 'pg_temp.definition'::regclass AND n.nspname IN ('tables', 'rollup') ORDER BY 1`, ingested)
		if err != nil {
			return err
		}
		if sources, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		// The parsed view names its functions by number, those of Postgres itself too, of which no dependency is kept. In
		// texts and names of the definition a blank is escaped, so that they are not taken for one.
		rows, err = tx.Query(ctx, `SELECT DISTINCT p.proname::text FROM pg_rewrite r,
				regexp_matches(r.ev_action::text, ' :(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS m
				JOIN pg_proc p ON p.oid = m[1]::oid
			WHERE r.ev_class = 'pg_temp.definition'::regclass
				AND (p.provolatile = 'v' AND NOT p.proname = ANY ($1) OR p.proname = ANY ($2))
			ORDER BY 1`, resultsrole.AllowedVolatile, tableReaders)
		if err != nil {
			return err
		}
		effects, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		effects = slices.DeleteFunc(effects, func(name string) bool {
			hides := slices.Contains(tableReaders, name)
			if hides {
				hiding = append(hiding, name)
			}
			return hides
		})
		return undo
	})
	switch {
	case !errors.Is(err, undo):
		return nil, wrapError("looking what a definition reads", err)
	case len(effects) > 0:
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The SQL calls %s, which does more than read.",
				strings.Join(effects, ", ")), Hint: "Leave it out: functions with side effects cannot be called."}
	case len(hiding) > 0:
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The SQL calls %s, which reads tables that it does not name.", strings.Join(hiding, ", ")),
			Hint: "A table is refreshed when what it reads changes: name the tables behind FROM. " +
				"xmlelement, xmlforest and xmlagg make XML of rows."}
	}
	return sources, nil
}

// tableReaders are functions that read whole tables, of which Postgres does not know that a view reads them.
var tableReaders = []string{"table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema", "schema_to_xml",
	"schema_to_xmlschema", "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xmlschema",
	"database_to_xml_and_xmlschema"}

// Catalog lists what can be read, with its columns: derived tables first, then roll-ups.
func (d *Database) Catalog(ctx context.Context) ([]query.Relation, error) {
	rows, err := d.owner.Query(ctx, `SELECT n.nspname::text, c.relname::text, a.attname::text,
			format_type(a.atttypid, a.atttypmod)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname IN ('tables', 'rollup') AND c.relkind IN ('r', 'v', 'm', 'p') AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY n.nspname DESC, c.relname, a.attnum`)
	if err != nil {
		return nil, wrapError("listing what can be read", err)
	}
	relations := []query.Relation{}
	var schema, name string
	var column query.Column
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &column.Name, &column.Type}, func() error {
		i := slices.IndexFunc(relations, func(r query.Relation) bool { return r.Schema == schema && r.Name == name })
		if i < 0 {
			i = len(relations)
			relations = append(relations, query.Relation{Schema: schema, Name: name})
		}
		relations[i].Columns = append(relations[i].Columns, column)
		return nil
	})
	return relations, wrapError("listing what can be read", err)
}
