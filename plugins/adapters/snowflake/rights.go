package snowflake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// Rights are read from SHOW GRANTS ON an object, which lists who was granted what, and
// from IS_ROLE_IN_SESSION of each grantee, which knows the hierarchy of the session's
// primary and secondary roles. A right is missing for certain when the list is whole, no
// grantee of the right is in the session, and nothing that is not listed could give it:
// grants inherited from a container (an account opts in to them), or a database role.

// account is what the session is, as far as rights go.
type account struct {
	role, database, schema, user string
	// secondary is ALL, names, or "" for none; secondaryKnown is false when that could not be asked.
	secondary      string
	secondaryKnown bool
	region         string
	// inherits: objects may have rights of their containers.
	inherits bool
	// roles are the grantees that were asked about, and whether the session has their rights.
	roles map[string]bool
}

// maxGrantees bounds the roles of one IS_ROLE_IN_SESSION query.
const maxGrantees = 150

func sessionQueries(req *jsondoc.Value) []sdk.Query {
	session := sdk.Query{ID: "session", SQL: "SELECT CURRENT_ROLE(), CURRENT_DATABASE(), CURRENT_SCHEMA()"}
	if missesAbility(req, noGrants) {
		return []sdk.Query{session}
	}
	return []sdk.Query{
		session,
		{ID: "context", SQL: "SELECT CURRENT_USER(), CURRENT_SECONDARY_ROLES(), CURRENT_REGION()"},
		{ID: "inherited", SQL: "SHOW PARAMETERS LIKE 'FEATURE_RBAC_INHERITED_GRANTS' IN ACCOUNT"},
	}
}

func readAccount(req *jsondoc.Value) account {
	session, context, inherited := sdk.ResultOf(req, "session"), sdk.ResultOf(req, "context"),
		sdk.ResultOf(req, "inherited")
	row := session.Rows.At(0)
	s := account{role: row.At(0).Str(), database: row.At(1).Str(), schema: row.At(2).Str(), roles: map[string]bool{}}
	if context.Err == "" {
		row = context.Rows.At(0)
		s.user, s.region = row.At(0).Str(), row.At(2).Str()
		// {"roles":"A,B","value":"ALL"}
		if chosen, err := jsondoc.Parse([]byte(row.At(1).Str())); err == nil {
			s.secondary, s.secondaryKnown = strings.ToUpper(chosen.Get("value").Str()), true
			if s.secondary == "NONE" {
				s.secondary = ""
			}
		}
	}
	s.inherits = inherited.Err != ""
	for i := range inherited.Rows.Len() {
		s.inherits = s.inherits || strings.EqualFold(field(inherited, i, "value"), "ENABLED")
	}
	return s
}

// isRole reports whether a grant is one to a role of the account.
func isRole(r sdk.Result, row int) bool {
	to := strings.ReplaceAll(strings.ToUpper(field(r, row, "granted_to")), "_", " ")
	return to == "ROLE" || to == "ACCOUNT ROLE"
}

func grantee(r sdk.Result, row int) string {
	name := field(r, row, "grantee_name")
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return name
}

// askRoles asks which grantees' rights the session has. It reports whether the host is being asked.
func (s *account) askRoles(req *jsondoc.Value, w *jsondoc.Writer, grants []sdk.Result) bool {
	var names []string
	for _, r := range grants {
		for i := range r.Rows.Len() {
			if name := grantee(r, i); isRole(r, i) && name != s.role && len(names) < maxGrantees &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return false
	}
	answer := sdk.ResultOf(req, "roles")
	if !answer.Asked {
		calls := make([]string, len(names))
		for i, name := range names {
			calls[i] = "IS_ROLE_IN_SESSION(" + dialect.Literal(name) + ")"
		}
		sdk.Ask(w, sdk.Query{ID: "roles", SQL: "SELECT " + strings.Join(calls, ", ")})
		return true
	}
	if answer.Err == "" && answer.Rows.Len() > 0 {
		for i, name := range names {
			v := answer.Rows.At(0).At(i)
			s.roles[name] = v.Bool() || strings.EqualFold(v.Str(), "true")
		}
	}
	return false
}

// privilegeState is what is known of a right.
type privilegeState int

const (
	unknownPrivilege privilegeState = iota // the grants cannot be read
	notHeld
	mayHold // through something that the grants do not tell
	held
)

// privilege looks a right up in the grants on an object. why says what mayHold depends on.
// Only the primary role makes objects: byPrimary leaves secondary roles and the user out.
func (s *account) privilege(r sdk.Result, right string, byPrimary bool) (h privilegeState, why string) {
	if !r.Asked || r.Err != "" {
		return unknownPrivilege, ""
	}
	whole := false
	h = notHeld
	better := func(to privilegeState, reason string) {
		if to > h {
			h, why = to, reason
		}
	}
	for i := range r.Rows.Len() {
		privilege := strings.ToUpper(field(r, i, "privilege"))
		whole = whole || privilege == "OWNERSHIP"
		if privilege != right && privilege != "OWNERSHIP" && privilege != "ALL" {
			continue
		}
		name := grantee(r, i)
		switch {
		case isRole(r, i) && name == s.role:
			better(held, "")
		case isRole(r, i):
			in, requested := s.roles[name]
			switch {
			case !requested:
				better(mayHold, "through the role "+name)
			case in && byPrimary && name != "PUBLIC" && (s.secondary != "" || !s.secondaryKnown):
				better(mayHold, "through the role "+name+", if that is not only a secondary role of the session: the primary "+
					"role alone makes tables")
			case in:
				better(held, "")
			}
		case strings.EqualFold(field(r, i, "granted_to"), "USER"):
			if name == s.user && s.secondary == "ALL" && !byPrimary {
				better(held, "")
			}
		default:
			better(mayHold, "through the "+strings.ToLower(strings.ReplaceAll(field(r, i, "granted_to"), "_", " "))+" "+name)
		}
	}
	switch {
	case h != notHeld:
		return h, why
	case !whole: // an object has an owner: this is not all
		return unknownPrivilege, ""
	case s.inherits:
		return mayHold, "through grants that are inherited from its schema, database or account"
	}
	return notHeld, ""
}

// missing sorts rights into those that are missing for certain and those that may be held otherwise.
func (s *account) missing(r sdk.Result, rights []string, byPrimary bool) (none, perhaps []string, why string) {
	for _, right := range rights {
		switch h, reason := s.privilege(r, right, byPrimary); h {
		case notHeld:
			none = append(none, right)
		case mayHold:
			perhaps, why = append(perhaps, right), reason
		case unknownPrivilege, held:
		}
	}
	return none, perhaps, why
}

// isMissing reports whether a right on an object is missing for certain.
func (s *account) isMissing(r sdk.Result, right string) bool {
	h, _ := s.privilege(r, right, false)
	return h == notHeld
}

// subject is a table of the run.
type subject struct {
	name   dialect.TableName
	rights []string
	// exists: the role sees it, as an object of this kind: TABLE, VIEW.
	exists bool
	kind   string
	// inaccessible: it could not be asked.
	inaccessible bool
	// grants is the id of the query for the grants on it, or on the schema where it is to be made.
	grants string
}

// subjects reads what the run does to which tables. Names that cannot be are inspect's to refuse.
func (s *account) subjects(req *jsondoc.Value) []subject {
	var list []subject
	access := req.Get("access")
	for i := range access.Len() {
		name, err := dialect.ParseName(access.At(i).Get("table_name").Str())
		if err != nil {
			continue
		}
		if name.Database.Text == "" {
			name.Database = dialect.Exactly(s.database)
		}
		if name.Schema.Text == "" {
			name.Schema = dialect.Exactly(s.schema)
		}
		if name.Database.Text == "" || name.Schema.Text == "" || len(list) == maxSubjects {
			continue
		}
		list = append(list, subject{name: name, rights: access.At(i).Get("rights").Strings()})
	}
	return list
}

// maxSubjects bounds the tables whose rights are looked at: their queries are one round's.
const maxSubjects = 24

func objectsID(i int) string { return "objects:" + strconv.Itoa(i) }

// objectsQuery finds the table. INFORMATION_SCHEMA would need a warehouse that runs.
func (t *subject) objectsQuery(i int) sdk.Query {
	return sdk.Query{ID: objectsID(i), SQL: "SHOW OBJECTS LIKE " + dialect.Pattern(t.name.Table.Name()) + " IN SCHEMA " +
		t.schema()}
}

func (t *subject) schema() string {
	return dialect.Quoted(t.name.Database.Name()) + "." + dialect.Quoted(t.name.Schema.Name())
}

// find reads objectsQuery: the name as Snowflake reads it, or else as it is written.
func (t *subject) find(req *jsondoc.Value, i int) {
	r := sdk.ResultOf(req, objectsID(i))
	t.inaccessible = r.Err != ""
	for _, want := range []string{t.name.Table.Name(), t.name.Table.Text} {
		for row := range r.Rows.Len() {
			if field(r, row, "name") == want {
				t.exists, t.kind, t.name.Table = true, "TABLE", dialect.Exactly(want)
				if strings.Contains(strings.ToUpper(field(r, row, "kind")), "VIEW") {
					t.kind = "VIEW"
				}
				return
			}
		}
		if t.name.Table.Exact {
			return
		}
	}
}

// grantQueries ask for the grants on the warehouse, on the tables that are there, and
// on the schemas where some are to be made.
func grantQueries(list []subject, warehouse string, prepare, recreate bool) []sdk.Query {
	var queries []sdk.Query
	if warehouse != "" {
		queries = append(queries, sdk.Query{ID: "warehouse_grants",
			SQL: "SHOW GRANTS ON WAREHOUSE " + dialect.Quoted(warehouse)})
	}
	for i := range list {
		t := &list[i]
		if t.exists {
			t.grants = "table_grants:" + strconv.Itoa(i)
			queries = append(queries, sdk.Query{ID: t.grants, SQL: "SHOW GRANTS ON " + t.kind + " " + t.name.SQL()})
		}
		if id := "schema_grants:" + t.schema(); prepare && (!t.exists || recreate) &&
			!slices.ContainsFunc(queries, func(q sdk.Query) bool { return q.ID == id }) {
			queries = append(queries, sdk.Query{ID: id, SQL: "SHOW GRANTS ON SCHEMA " + t.schema()})
		}
	}
	return queries
}

// checkTables says what the session may not do to the tables that are there.
func (a Adapter) checkTables(f findings, req *jsondoc.Value, s *account, list []subject) {
	prepare, recreate := req.Get("prepare").Bool(), req.Get("recreate").Bool()
	var names, rights []string
	fine := true
	for i := range list {
		t := &list[i]
		if !t.exists {
			if !prepare && !t.inaccessible {
				f.add("privileges", "warning", "The role "+s.role+" sees no table "+t.name.SQL()+".",
					"correct target.table_name; or, if the table is there: "+
						grantOn(strings.Join(t.rights, ", "), "TABLE", t.name.SQL(), s.role), dialect.NameField)
				fine = false
			}
			continue
		}
		r := sdk.ResultOf(req, t.grants)
		if recreate {
			if s.isMissing(r, "OWNERSHIP") {
				f.add("privileges", "failed", "The role "+s.role+" does not own the table "+t.name.SQL()+
					", and only its owner may drop it for target.prepare.if_exists: recreate.",
					"set if_exists: use to keep it; or GRANT OWNERSHIP ON TABLE "+t.name.SQL()+" TO ROLE "+dialect.Quoted(s.role)+
						" COPY CURRENT GRANTS", "target.prepare.if_exists")
				fine = false
			}
			continue
		}
		none, perhaps, why := s.missing(r, t.rights, false)
		switch {
		case len(none) > 0:
			f.add("privileges", "failed", "The role "+s.role+" is not granted "+listed(none)+" on the "+strings.ToLower(t.kind)+
				" "+t.name.SQL()+s.noSecondaryRoles()+", and the run's operations need "+pronoun(none)+".",
				grantOn(strings.Join(none, ", "), t.kind, t.name.SQL(), s.role), dialect.NameField)
			fine = false
		case len(perhaps) > 0:
			f.add("privileges", "warning", "The role "+s.role+" may have "+listed(perhaps)+" on the "+strings.ToLower(t.kind)+
				" "+t.name.SQL()+" only "+why+".",
				"to be certain: "+grantOn(strings.Join(perhaps, ", "), t.kind, t.name.SQL(), s.role), dialect.NameField)
			fine = false
		case r.Err == "":
			names = append(names, t.name.SQL())
			for _, right := range t.rights {
				if !slices.Contains(rights, right) {
					rights = append(rights, right)
				}
			}
		}
	}
	if fine && len(names) > 0 {
		f.add("privileges", "ok", "The role "+s.role+" has what the run needs on "+listed(names)+": "+
			strings.Join(rights, ", ")+".", "", "")
	}
}

// checkSchemas says whether the tables that are not there can be made.
func (a Adapter) checkSchemas(f findings, req *jsondoc.Value, s *account, list []subject, search bool) {
	var seen []string
	for i := range list {
		schema := list[i].schema()
		r := sdk.ResultOf(req, "schema_grants:"+schema)
		if !r.Asked || slices.Contains(seen, schema) {
			continue
		}
		seen = append(seen, schema)
		special := ""
		var needs []string
		switch a.tableType {
		case Hybrid:
			special = "CREATE HYBRID TABLE"
		case Interactive:
			// The rows come into an ordinary table first.
			needs, special = []string{"CREATE TABLE"}, "CREATE INTERACTIVE TABLE"
		case Standard:
			needs = []string{"CREATE TABLE"}
		}
		none, perhaps, why := s.missing(r, needs, true)
		if special != "" {
			h, reason := s.privilege(r, special, true)
			ordinary, _ := s.privilege(r, "CREATE TABLE", true)
			switch {
			case h == notHeld && ordinary == held:
				f.add("privileges", "warning", "The role "+s.role+" is granted CREATE TABLE in the schema "+schema+" and not "+
					special+": only accounts from before that right take the first for it.",
					grantOn(special, "SCHEMA", schema, s.role), "target.prepare")
			case h == notHeld:
				none = append(none, special)
			case h == mayHold:
				perhaps, why = append(perhaps, special), reason
			}
		}
		if search {
			if h, _ := s.privilege(r, "ADD SEARCH OPTIMIZATION", false); h == notHeld {
				none = append(none, "ADD SEARCH OPTIMIZATION")
			}
		}
		if len(none) > 0 {
			f.add("privileges", "failed", "The role "+s.role+" is not granted "+listed(none)+" in the schema "+schema+
				", where the run makes its tables.", grantOn(strings.Join(none, ", "), "SCHEMA", schema, s.role), "target.prepare")
		}
		if len(perhaps) > 0 {
			f.add("privileges", "warning", "The role "+s.role+" may have "+listed(perhaps)+" in the schema "+schema+" only "+why+
				".", "to be certain: "+grantOn(strings.Join(perhaps, ", "), "SCHEMA", schema, s.role), "target.prepare")
		}
	}
}

// noSecondaryRoles says that the secondary roles were looked at too.
func (s *account) noSecondaryRoles() string {
	if s.secondary == "" {
		return ""
	}
	return ", nor is a secondary role of the session"
}

func grantOn(privilege, kind, name, role string) string {
	return "GRANT " + privilege + " ON " + kind + " " + name + " TO ROLE " + dialect.Quoted(role)
}

// listed joins words: "UPDATE, DELETE and TRUNCATE".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func pronoun(words []string) string {
	if len(words) == 1 {
		return "it"
	}
	return "them"
}
