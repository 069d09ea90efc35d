package snowflake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
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

// perCluster is Snowflake's default of MAX_CONCURRENCY_LEVEL, where the warehouse's own is not known.
const perCluster = 8

// preflight looks at what a run needs besides the shape of its tables: the session, its
// rights, the warehouse and its type, and what region and edition have. A suspended
// warehouse is resumed for the run, and suspended again after it. Nothing that is asked
// needs a warehouse that runs.
func (a Adapter) preflight(req *jsondoc.Value, w *jsondoc.Writer) error {
	session := sdk.ResultOf(req, "session")
	if !session.Asked {
		queries := sessionQueries(req)
		if req.Get("warehouse").Str() == "" && !missesAbility(req, noWarehouses) {
			queries = append(queries, currentWarehouse)
		}
		sdk.Ask(w, queries...)
		return nil
	}
	o, err := readOptions(req)
	if err != nil {
		return err
	}
	s := readAccount(req)
	list := s.subjects(req)
	if len(list) > 0 && !sdk.ResultOf(req, objectsID(0)).Asked {
		var queries []sdk.Query
		for i := range list {
			queries = append(queries, list[i].objectsQuery(i))
		}
		sdk.Ask(w, queries...)
		return nil
	}
	for i := range list {
		list[i].find(req, i)
	}
	var (
		name, house string
		h           *warehouse
	)
	if !missesAbility(req, noWarehouses) {
		var ok bool
		if name, h, ok, err = findWarehouse(req, w); err == nil && !ok {
			return nil
		}
	}
	if h != nil {
		house = h.text("name")
		if !h.askParameters(req, w) {
			return nil
		}
	}
	var queries []sdk.Query
	if !missesAbility(req, noGrants) {
		queries = grantQueries(list, house, req.Get("prepare").Bool(), req.Get("recreate").Bool())
	}
	var grants []sdk.Result
	for _, q := range queries {
		grants = append(grants, sdk.ResultOf(req, q.ID))
	}
	if len(queries) > 0 && !grants[0].Asked {
		sdk.Ask(w, queries...)
		return nil
	}
	if s.askRoles(req, w, grants) {
		return nil
	}
	a.writeChecks(w, req, session, &s, list, o, name, h, err)
	return nil
}

// writeChecks writes the answer.
func (a Adapter) writeChecks(
	w *jsondoc.Writer,
	req *jsondoc.Value,
	session sdk.Result,
	s *account,
	list []subject,
	o options,
	name string,
	h *warehouse,
	err error,
) {
	var resume, restore []string
	w.Object().Key("checks").Array()
	f := findings{w}
	if session.Err == "" && s.role == "" {
		f.add("role", "failed", "The session has no role.", "give the user a default role, or name one in the connection",
			"target.connection")
	} else if session.Err == "" {
		f.add("role", "ok", "The session's role is "+s.role+s.secondaryRoles()+".", "", "")
	}
	if session.Err == "" && (s.database == "" || s.schema == "") {
		f.add("schema", "warning", "The connection chooses no database or no schema.",
			"name both in the connection: account/database/schema, or write the table as database.schema.table",
			"target.connection")
	}
	checkAbilities(f, req)
	var clusters int64
	switch {
	case missesAbility(req, noWarehouses):
	case err != nil:
		f.add("warehouse", "failed", "The warehouse cannot be looked at: "+err.Error()+".",
			"see that the role may use a warehouse, and that the account answers", "target.warehouse")
	case name == "":
		f.add("warehouse", "failed", "No warehouse is chosen, and queries need one.",
			"name one in target.warehouse or in the connection", "target.warehouse")
	case h == nil:
		f.add("warehouse", "failed", "There is no warehouse "+name+" that the role "+s.role+" may see.",
			"check the name; or GRANT USAGE, OPERATE, MONITOR ON WAREHOUSE "+dialect.Quoted(name)+" TO ROLE "+
				dialect.Quoted(s.role),
			"target.warehouse")
	default:
		clusters = h.number("max_cluster_count")
		resume, restore = a.checkWarehouse(f, req, *h, s, o, list)
	}
	if s.role != "" && !missesAbility(req, noGrants) {
		a.checkTables(f, req, s, list)
		a.checkSchemas(f, req, s, list, o.search)
	}
	prepare, recreate := req.Get("prepare").Bool(), req.Get("recreate").Bool()
	if prepare && (recreate || slices.ContainsFunc(list, func(t subject) bool { return !t.exists })) {
		a.checkFeatures(f, s, o, clusters)
	}
	w.EndArray()
	for _, list := range [...]struct {
		key string
		sql []string
	}{{"resume", resume}, {"restore", restore}} {
		if len(list.sql) > 0 {
			w.Key(list.key).Strs(list.sql)
		}
	}
	if h != nil && h.interactive() && o.loadWarehouse != "" {
		w.Key("housekeeping_warehouse").Str(o.loadWarehouse)
	}
	if h != nil {
		if h.interactive() && a.tableType != Interactive && writesAny(list) {
			// What an interactive warehouse takes besides reading is not documented.
			w.Key("try_writes").Bool(true)
		}
		h.write(w, false)
		if rest := h.number("auto_suspend"); rest > 0 {
			w.Key("auto_suspend_seconds").Int(rest)
		}
	}
	w.EndObject()
}

// secondaryRoles says which roles count besides the primary one.
func (s *account) secondaryRoles() string {
	switch s.secondary {
	case "":
		return ""
	case "ALL":
		return "; all other roles of the user " + s.user + " are its secondary roles"
	}
	return "; its secondary roles are " + s.secondary
}

func (a Adapter) checkWarehouse(f findings, req *jsondoc.Value, h warehouse, s *account, o options,
	list []subject) (resume, restore []string) {
	name, state, kind, role := h.text("name"), strings.ToUpper(h.text("state")), strings.ToUpper(h.text("type")), s.role
	grants := sdk.ResultOf(req, "warehouse_grants")
	may := func(right string) bool { return role == "" || !s.isMissing(grants, right) }
	described := h.described()
	switch state {
	case "SUSPENDED", "SUSPENDING":
		if !may("OPERATE") && strings.EqualFold(h.text("auto_resume"), "true") {
			f.add("warehouse", "warning", described+". The role "+role+
				" may not resume it; the first query does, and waits for it, and the run does not suspend it.",
				grantOn("OPERATE", "WAREHOUSE", dialect.Quoted(name), role), "target.warehouse")
			break
		}
		resume, restore = []string{"ALTER WAREHOUSE " + dialect.Quoted(name) + " RESUME IF SUSPENDED"},
			[]string{"ALTER WAREHOUSE " + dialect.Quoted(name) + " SUSPEND"}
		f.add("warehouse", "ok", described+". The run resumes it, and suspends it again when it is over.", "", "")
		if !may("OPERATE") {
			f.add("privileges", "warning", "The role "+role+" is not granted what resuming the warehouse "+name+
				" needs, and it does not resume by itself.", grantOn("OPERATE", "WAREHOUSE", dialect.Quoted(name), role),
				"target.warehouse")
		}
	case "STARTED", "RESUMING", "RESIZING":
		f.add("warehouse", "ok", described+".", "", "")
	default:
		f.add("warehouse", "warning", described+".", "look at it in the account", "target.warehouse")
	}
	if !may("USAGE") {
		f.add("privileges", "failed", "The role "+role+" is not granted USAGE of the warehouse "+name+
			", which every query needs.", grantOn("USAGE", "WAREHOUSE", dialect.Quoted(name), role), "target.warehouse")
	}
	if !may("MONITOR") {
		f.add("privileges", "warning", "The role "+role+" is not granted MONITOR of the warehouse "+name+
			": its queue may not be seen while the run goes on.", grantOn("MONITOR", "WAREHOUSE", dialect.Quoted(name), role),
			"target.warehouse")
	}
	interactive := h.interactive()
	if a.tableType == Interactive && !interactive {
		f.add("warehouse_type", "warning", "Interactive tables are made for interactive warehouses, and "+name+" is "+
			strings.ToLower(kind)+": what is measured is not what they can do.",
			"CREATE INTERACTIVE WAREHOUSE … TABLES (…), and name it in target.warehouse", "target.warehouse")
	}
	if interactive {
		attach, detach := a.checkInteractive(f, req, h, s, o, list)
		resume, restore = append(resume, attach...), append(detach, restore...)
	}
	clusters := max(1, h.number("max_cluster_count"))
	level, which := int64(perCluster), "Snowflake's default MAX_CONCURRENCY_LEVEL"
	if n, err := strconv.ParseInt(h.parameter("MAX_CONCURRENCY_LEVEL"), 10, 64); err == nil && n > 0 {
		level, which = n, "its MAX_CONCURRENCY_LEVEL of "+strconv.FormatInt(n, 10)
	}
	noun := " clusters"
	if clusters == 1 {
		noun = " cluster"
	}
	if n, ok := req.Get("connections").Int(); ok && n > clusters*level && a.tableType == Standard && !interactive {
		f.add("headroom", "warning", strconv.FormatInt(n, 10)+" connections are more than the "+
			strconv.FormatInt(clusters*level, 10)+" queries that "+strconv.FormatInt(clusters, 10)+
			noun+" execute at a time with "+which+": the others queue, and their "+
			"latency is the queue's.",
			"lower the connections, or raise MAX_CLUSTER_COUNT (which needs Enterprise edition) or MAX_CONCURRENCY_LEVEL of "+
				"the warehouse", "workload.concurrent_connections")
	}
	return resume, restore
}

// writesAny tells whether operations of the run need more than to read.
func writesAny(list []subject) bool {
	for i := range list {
		if slices.ContainsFunc(
			list[i].rights,
			func(right string) bool { return right != "SELECT" && right != "REFERENCES" },
		) {
			return true
		}
	}
	return false
}
