package snowflake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// findings writes checks.
type findings struct{ w *jsondoc.Writer }

func (f findings) add(name, outcome, message, fix, field string) {
	f.w.Object().Key("name").Str(name).Key("outcome").Str(outcome).Key("message").Str(message)
	if fix != "" {
		f.w.Key("fix").Str(fix)
	}
	if field != "" {
		f.w.Key("field").Str(field)
	}
	f.w.EndObject()
}

// perCluster is Snowflake's default of MAX_CONCURRENCY_LEVEL.
const perCluster = 8

// preflight looks at what a run needs besides its table: the session, the
// warehouse and its type. A suspended warehouse is resumed for the run, and
// suspended again after it.
func (a Adapter) preflight(req *jsondoc.Value, w *jsondoc.Writer) error {
	session := sdk.ResultOf(req, "session")
	if !session.Asked {
		sdk.Ask(w, sdk.Query{ID: "session", SQL: "SELECT CURRENT_ROLE(), CURRENT_DATABASE(), CURRENT_SCHEMA()"})
		return nil
	}
	name, h, ok, err := findWarehouse(req, w)
	if err == nil && !ok {
		return nil
	}
	if h != nil && askGrants(req, session, h.text("name"), w) {
		return nil
	}
	var resume, restore string
	w.Object().Key("checks").Array()
	f := findings{w}
	role := session.Rows.At(0).At(0).Str()
	if session.Err == "" && role == "" {
		f.add("role", "failed", "The session has no role.", "give the user a default role, or name one in the connection", "target.connection")
	} else if session.Err == "" {
		f.add("role", "ok", "The session's role is "+role+".", "", "")
	}
	if session.Err == "" && (session.Rows.At(0).At(1).Str() == "" || session.Rows.At(0).At(2).Str() == "") {
		f.add("schema", "warning", "The connection chooses no database or no schema.", "name both in the connection: account/database/schema, or write the table as database.schema.table", "target.connection")
	}
	switch {
	case err != nil:
		f.add("warehouse", "failed", "The warehouse cannot be looked at: "+err.Error()+".", "see that the role may use a warehouse, and that the account answers", "target.warehouse")
	case name == "":
		f.add("warehouse", "failed", "No warehouse is chosen, and queries need one.", "name one in target.warehouse or in the connection", "target.warehouse")
	case h == nil:
		f.add("warehouse", "failed", "There is no warehouse "+name+" that the role "+role+" may see.",
			"check the name; or GRANT USAGE, OPERATE, MONITOR ON WAREHOUSE "+quoted(name)+" TO ROLE "+quoted(role), "target.warehouse")
	default:
		resume, restore = a.judgeWarehouse(f, req, *h, role)
		a.judgeSchema(f, req, session, role)
	}
	w.EndArray()
	for _, list := range [...]struct{ key, sql string }{{"resume", resume}, {"restore", restore}} {
		if list.sql != "" {
			w.Key(list.key).Array().Str(list.sql).EndArray()
		}
	}
	w.EndObject()
	return nil
}

func (a Adapter) judgeWarehouse(f findings, req *jsondoc.Value, h warehouse, role string) (resume, restore string) {
	name, state, kind := h.text("name"), strings.ToUpper(h.text("state")), strings.ToUpper(h.text("type"))
	held := readPrivileges(sdk.ResultOf(req, "warehouse_grants"), role)
	described := "The warehouse " + name + " is " + strings.ToLower(h.text("size")) + ", " + strings.ToLower(kind) + ", " + strings.ToLower(state)
	switch state {
	case "SUSPENDED", "SUSPENDING":
		if held.lacks("OPERATE") && strings.EqualFold(h.text("auto_resume"), "true") {
			f.add("warehouse", "warning", described+". The role "+role+" may not resume it; the first query does, and waits for it, and the run does not suspend it.", grantOn("OPERATE", "WAREHOUSE", quoted(name), role), "target.warehouse")
			break
		}
		resume, restore = "ALTER WAREHOUSE "+quoted(name)+" RESUME IF SUSPENDED", "ALTER WAREHOUSE "+quoted(name)+" SUSPEND"
		f.add("warehouse", "ok", described+". The run resumes it, and suspends it again when it is over.", "", "")
		if held.lacks("OPERATE") {
			f.add("privileges", "warning", "The role "+role+" is not granted what resuming the warehouse "+name+" needs, and it does not resume by itself.", grantOn("OPERATE", "WAREHOUSE", quoted(name), role), "target.warehouse")
		}
	case "STARTED", "RESUMING", "RESIZING":
		f.add("warehouse", "ok", described+".", "", "")
	default:
		f.add("warehouse", "warning", described+".", "look at it in the account", "target.warehouse")
	}
	if held.lacks("USAGE") {
		f.add("privileges", "warning", "The role "+role+" is not granted USAGE of the warehouse "+name+", which every query needs.", grantOn("USAGE", "WAREHOUSE", quoted(name), role), "target.warehouse")
	}
	if held.lacks("MONITOR") {
		f.add("privileges", "warning", "The role "+role+" is not granted MONITOR of the warehouse "+name+": its queue may not be seen while the run goes on.", grantOn("MONITOR", "WAREHOUSE", quoted(name), role), "target.warehouse")
	}
	interactive := strings.Contains(kind, "INTERACTIVE")
	switch {
	case a.of == Interactive && !interactive:
		f.add("warehouse_type", "warning", "Interactive tables are made for interactive warehouses, and "+name+" is "+strings.ToLower(kind)+": what is measured is not what they can do.",
			"CREATE INTERACTIVE WAREHOUSE … TABLES (…), and name it in target.warehouse", "target.warehouse")
	case a.of != Interactive && interactive:
		f.add("warehouse_type", "failed", "The warehouse "+name+" is interactive, and can query interactive tables only.", "name a standard warehouse in target.warehouse", "target.warehouse")
	}
	clusters := max(1, h.number("max_cluster_count"))
	if n, ok := req.Get("connections").Int(); ok && n > clusters*perCluster && a.of == Standard {
		f.add("headroom", "warning", strconv.FormatInt(n, 10)+" connections are more than the "+strconv.FormatInt(clusters*perCluster, 10)+" queries that "+strconv.FormatInt(clusters, 10)+
			" cluster(s) execute at a time with Snowflake's default MAX_CONCURRENCY_LEVEL: the others queue, and their latency is the queue's.",
			"raise MAX_CLUSTER_COUNT or MAX_CONCURRENCY_LEVEL of the warehouse, or lower the connections", "workload.concurrent_connections")
	}
	return resume, restore
}

// privileges are what a role is granted on an object. known is false when that
// cannot be told from the object's grants.
type privileges struct {
	known bool
	held  []string
}

// lacks reports whether the role is known to hold none of the privileges. It may
// still have one through a role granted to it, so this is never a failure.
func (p privileges) lacks(anyOf ...string) bool {
	if !p.known {
		return false
	}
	for _, have := range p.held {
		if have == "OWNERSHIP" || have == "ALL" || slices.Contains(anyOf, have) {
			return false
		}
	}
	return true
}

// askGrants asks for the grants on the warehouse, and on the schema when tables are
// made there. It reports whether the host is being asked.
func askGrants(req *jsondoc.Value, session sdk.Result, warehouse string, w *jsondoc.Writer) bool {
	if sdk.ResultOf(req, "warehouse_grants").Asked {
		return false
	}
	queries := []sdk.Query{{ID: "warehouse_grants", SQL: "SHOW GRANTS ON WAREHOUSE " + quoted(warehouse)}}
	database, schema := session.Rows.At(0).At(1).Str(), session.Rows.At(0).At(2).Str()
	if req.Get("prepare").Bool() && database != "" && schema != "" {
		queries = append(queries, sdk.Query{ID: "schema_grants", SQL: "SHOW GRANTS ON SCHEMA " + quoted(database) + "." + quoted(schema)})
	}
	sdk.Ask(w, queries...)
	return true
}

// readPrivileges reads SHOW GRANTS ON an object. A role that is not among the
// grantees has its rights from another role, or from its place in the account.
func readPrivileges(shown sdk.Result, role string) privileges {
	var p privileges
	if !shown.Asked || shown.Err != "" {
		return p
	}
	for i := range shown.Rows.Len() {
		if field(shown, i, "granted_to") == "ROLE" && strings.Trim(field(shown, i, "grantee_name"), `"`) == role {
			p.known, p.held = true, append(p.held, strings.ToUpper(field(shown, i, "privilege")))
		}
	}
	return p
}

// judgeSchema looks at what making a table needs.
func (a Adapter) judgeSchema(f findings, req *jsondoc.Value, session sdk.Result, role string) {
	needs := [...]string{"CREATE TABLE", "CREATE HYBRID TABLE", "CREATE INTERACTIVE TABLE"}[a.of]
	if !readPrivileges(sdk.ResultOf(req, "schema_grants"), role).lacks(needs, "CREATE TABLE") {
		return
	}
	schema := quoted(session.Rows.At(0).At(1).Str()) + "." + quoted(session.Rows.At(0).At(2).Str())
	f.add("privileges", "warning", "The role "+role+" is not granted "+needs+" in the schema "+schema+", where a table that is not there yet would be made.",
		grantOn(needs, "SCHEMA", schema, role), "target.prepare")
}

func grantOn(privilege, kind, name, role string) string {
	return "GRANT " + privilege + " ON " + kind + " " + name + " TO ROLE " + quoted(role)
}
