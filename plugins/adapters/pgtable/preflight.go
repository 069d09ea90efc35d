package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// rights are the table rights that preflight asks about, in the order of the columns of
// rightsQuery; those that can be granted on columns too come first.
var rights = [...]string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"}

const byColumn = 3

// maxSubjects bounds the tables whose rights are looked at.
const maxSubjects = 24

// subject is a table of the run, and what it does to it.
type subject struct {
	name   tableName
	rights []string
}

// subjects reads what the run does to which tables. Names that cannot be are inspect's to refuse.
func subjects(req *jsondoc.Value) []subject {
	var list []subject
	access := req.Get("access")
	for i := 0; i < access.Len() && len(list) < maxSubjects; i++ {
		if name, err := parseName(access.At(i).Get("table_name").Str()); err == nil {
			list = append(list, subject{name, access.At(i).Get("rights").Strings()})
		}
	}
	return list
}

// rightsQuery asks Postgres itself, which knows superusers, owners, and roles in roles.
func (s subject) rightsQuery(i int) sdk.Query {
	where, first := s.name.match()
	var columns strings.Builder
	for n, right := range rights {
		columns.WriteString(", pg_catalog.has_table_privilege(" + loader + ", c.oid, '" + right + "')::text")
		if n < byColumn {
			columns.WriteString(", pg_catalog.has_any_column_privilege(" + loader + ", c.oid, '" + right + "')::text")
		}
	}
	return sdk.Query{ID: "rights:" + strconv.Itoa(i),
		SQL: `SELECT n.nspname::text, c.relname::text, pg_catalog.has_schema_privilege(` + loader + `, n.oid, 'USAGE')::text,
 (pg_catalog.pg_has_role(` + loader + `, c.relowner, 'USAGE') OR pg_catalog.pg_has_role(` + loader +
			`, n.nspowner, 'USAGE'))::text` + columns.String() + `
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r','p','v','m','f') AND (` + where + `) ORDER BY (` + first + `) DESC, c.oid LIMIT 1`}
}

// schemaQuery asks about the schema where the table would be made.
func (s subject) schemaQuery(i int) sdk.Query {
	where := "n.nspname = pg_catalog.current_schema()"
	if s.name.schema != "" {
		where = "n.nspname = " + literal(s.name.schema)
	}
	return sdk.Query{ID: "schema:" + strconv.Itoa(i), SQL: "SELECT n.nspname::text, pg_catalog.has_schema_privilege(" +
		loader + ", n.oid, 'CREATE')::text FROM pg_catalog.pg_namespace n WHERE " + where}
}

// loader is the user of the load: the host may look at the target as another role.
const loader = "coalesce(nullif(pg_catalog.current_setting('loadstone.load_user', true), ''), current_user::text)::name"

// sessionQuery asks who the session is, and whether the server takes writes. This
// transaction only reads; what the load's sessions begin with is the value to which they would be reset.
var sessionQuery = sdk.Query{ID: "who", SQL: "SELECT " + loader +
	"::text, pg_catalog.pg_is_in_recovery()::text, (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = " +
	"'default_transaction_read_only'), pg_catalog.current_schema()::text"}

// findings writes checks.
type findings struct{ w *jsondoc.Writer }

func (f findings) add(outcome, message, fix, field string) {
	f.w.Object().Key("name").Str("privileges").Key("outcome").Str(outcome).Key("message").Str(message)
	if fix != "" {
		f.w.Key("fix").Str(fix)
	}
	if field != "" {
		f.w.Key("field").Str(field)
	}
	f.w.EndObject()
}

// preflight looks at the rights that the run's operations need. Postgres compiles
// statements that it then does not execute, so nothing else would tell before the load.
func (a Adapter) preflight(req *jsondoc.Value, w *jsondoc.Writer) error {
	list := subjects(req)
	who := sdk.ResultOf(req, "who")
	if !who.Asked {
		queries := []sdk.Query{sessionQuery}
		for i, s := range list {
			queries = append(queries, s.rightsQuery(i), s.schemaQuery(i))
		}
		sdk.Ask(w, queries...)
		return nil
	}
	w.Object().Key("checks").Array()
	if who.Err == "" {
		writeChecks(findings{w}, req, who.Rows.At(0), list)
	}
	family := strings.ToUpper(req.Get("params").Get("compute_family").Str())
	bursts := a.Families && strings.HasPrefix(family, "BURST")
	if bursts {
		w.Object().Key(
			"name",
		).Str(
			"burst",
		).Key(
			"outcome",
		).Str(
			"warning",
		).Key(
			"message",
		).Str(
			"The instance is of the family " +
				family + ": it is slowed down when its CPU credits are used up, and the run is DEGRADED then.",
		).
			Key(
				"fix",
			).Str(
			"choose an instance of a STANDARD family, or keep runs short",
		).
			Key(
				"field",
			).Str(
			"target.params.compute_family",
		).EndObject()
	}
	w.EndArray()
	switch {
	case bursts:
		w.Key("burst").Str("yes")
	case a.Families && family == "":
		w.Key("burst").Str("unknown")
	}
	w.EndObject()
	return nil
}

func writeChecks(f findings, req *jsondoc.Value, who *jsondoc.Value, list []subject) {
	user, prepare, recreate := who.At(0).Str(), req.Get("prepare").Bool(), req.Get("recreate").Bool()
	role := quoted(user)
	writes, fine := false, true
	failed := func(message, fix, field string) {
		f.add("failed", message, fix, field)
		fine = false
	}
	var names, all []string
	evaluated := map[string]bool{}
	for i, s := range list {
		r, schema := sdk.ResultOf(req, "rights:"+strconv.Itoa(i)), sdk.ResultOf(req, "schema:"+strconv.Itoa(i))
		there := r.Err == "" && r.Rows.Len() > 0
		if makes := prepare && r.Err == "" && (!there || recreate); makes {
			writes = true
			where := s.name.schema
			switch {
			case schema.Err != "":
			case schema.Rows.Len() == 0 && where == "":
				if !evaluated[""] {
					failed("No schema of the search path is there, or the user "+user+" may use none: a table cannot be made.",
						"write schema.table, or GRANT USAGE, CREATE ON SCHEMA … TO "+role, "target.table_name")
				}
			case schema.Rows.Len() == 0:
				if !evaluated[where] {
					failed("There is no schema "+quoted(where)+".", "CREATE SCHEMA "+quoted(where)+", or correct target.table_name",
						"target.table_name")
				}
			case !isTrue(schema.Rows.At(0).At(1)):
				if where = schema.Rows.At(0).At(0).Str(); !evaluated[where] {
					failed("The user "+user+" may not make tables in the schema "+quoted(where)+".",
						"GRANT CREATE ON SCHEMA "+quoted(where)+" TO "+role, "target.prepare")
				}
			}
			evaluated[where] = true
		}
		if !there {
			continue
		}
		row := r.Rows.At(0)
		name := tableName{schema: row.At(0).Str(), table: row.At(1).Str(), exact: true}.sql()
		if recreate {
			if !isTrue(row.At(3)) {
				failed("The user "+user+" does not own the table "+name+
					", and only its owner may drop it for target.prepare.if_exists: recreate.",
					"set if_exists: use to keep it; or ALTER TABLE "+name+" OWNER TO "+role, "target.prepare.if_exists")
			}
			continue
		}
		if !isTrue(row.At(2)) {
			failed("The user "+user+" may not use the schema "+quoted(row.At(0).Str())+".",
				"GRANT USAGE ON SCHEMA "+quoted(row.At(0).Str())+" TO "+role, "target.table_name")
			continue
		}
		none, partly := missing(row, s.rights)
		switch {
		case len(none) > 0:
			failed("The user "+user+" is not granted "+strings.Join(none, ", ")+" on the table "+name+
				", and the run's operations need it.", "GRANT "+strings.Join(none, ", ")+" ON TABLE "+name+" TO "+role,
				"target.table_name")
		case len(partly) > 0:
			f.add("warning", "The user "+user+" is granted "+strings.Join(partly, ", ")+" on some columns of the table "+name+
				" only, which may not be those of the run's operations.",
				"GRANT "+strings.Join(partly, ", ")+" ON TABLE "+name+" TO "+role, "target.table_name")
			fine = false
		default:
			names = append(names, name)
		}
		for _, right := range s.rights {
			writes = writes || right != "SELECT"
			if !strings.Contains(", "+strings.Join(all, ", ")+",", ", "+right+",") {
				all = append(all, right)
			}
		}
	}
	switch {
	case !writes:
	case isTrue(who.At(1)):
		failed("The server is a standby, and takes no writes.", "connect to the primary, or let the workload only read",
			"target.connection")
	case who.At(2).Str() == "on":
		failed("Transactions of the user "+user+" are read only (default_transaction_read_only), and the run writes.",
			"ALTER ROLE "+role+" SET default_transaction_read_only = off", "target.connection")
	}
	if fine && len(names) > 0 {
		f.add("ok", "The user "+user+" has what the run needs on "+strings.Join(names, ", ")+": "+strings.Join(all, ", ")+".",
			"", "")
	}
}

// missing sorts the wanted rights of a row of rightsQuery: not held at all, and held on columns only.
func missing(row *jsondoc.Value, wanted []string) (none, partly []string) {
	for _, right := range wanted {
		at := 4
		for n, known := range rights {
			if right == known {
				switch {
				case isTrue(row.At(at)):
				case n < byColumn && isTrue(row.At(at+1)):
					partly = append(partly, right)
				default:
					none = append(none, right)
				}
			}
			at++
			if n < byColumn {
				at++
			}
		}
	}
	return none, partly
}
