package snowflake

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

// transcript holds a conversation and writes it down: what is asked, and the answer or the error.
func transcript(of TableType, request object, results map[string]object) []string {
	var lines []string
	got := object{}
	for range 8 {
		request["results"] = got
		var raw json.RawMessage
		if err := sdktest.Adapter(New(of)).Call(request, &raw); err != nil {
			return append(lines, "error: "+err.Error())
		}
		var a struct {
			Queries []struct{ ID, SQL string }
			Checks  []struct{ Name, Outcome, Message, Fix, Field string }
			Resume  []string
			Restore []string
			Beside  string `json:"housekeeping_warehouse"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			return append(lines, "not JSON: "+string(raw))
		}
		for _, q := range a.Queries {
			lines = append(lines, "asks: "+q.SQL)
			if got[q.ID] = results[q.ID]; results[q.ID] == nil {
				return append(lines, "nobody knows "+q.ID)
			}
		}
		if len(a.Queries) > 0 {
			continue
		}
		if request["op"] != "preflight" {
			return append(lines, strings.ReplaceAll(string(raw), `\n`, "\n"))
		}
		for _, c := range a.Checks {
			lines = append(lines, fmt.Sprintf("%s %s: %s", c.Outcome, c.Name, c.Message))
			if c.Fix != "" || c.Field != "" {
				lines = append(lines, "  "+c.Field+": "+c.Fix)
			}
		}
		if a.Beside != "" {
			lines = append(lines, "polls and enrichment run on "+a.Beside)
		}
		return append(lines, fmt.Sprintf("resume %q, restore %q", a.Resume, a.Restore))
	}
	return append(lines, "the conversation does not end")
}

// oneWarehouse is a row of SHOW WAREHOUSES.
func oneWarehouse(state, kind string, autoResume any) object {
	return shown([]string{"name", "state", "type", "size", "min_cluster_count", "max_cluster_count", "started_clusters",
		"running", "queued", "scaling_policy", "auto_resume"},
		[]any{"WH", state, kind, "Medium", 1, 2, 1, 3, 4, "STANDARD", autoResume})
}

// granted is SHOW GRANTS: SYSADMIN is the owner, BENCH has the privileges; "X:LOADER" is LOADER's X,
// "X:user ANN" and "X:database_role R" are of other grantees.
func granted(privileges ...string) object {
	list := [][]any{{"OWNERSHIP", "ROLE", "SYSADMIN"}}
	for _, p := range privileges {
		to, name := "ROLE", "BENCH"
		right, other, found := strings.Cut(p, ":")
		if kind, who, several := strings.Cut(other, " "); several {
			to, name = strings.ToUpper(kind), who
		} else if found {
			name = other
		}
		list = append(list, []any{right, to, name})
	}
	return shown([]string{"privilege", "granted_to", "grantee_name"}, list...)
}

func objects(names ...string) object {
	var list [][]any
	for _, n := range names {
		kind := "TABLE"
		if strings.HasSuffix(n, "_V") {
			kind = "VIEW"
		}
		list = append(list, []any{n, kind})
	}
	return shown([]string{"name", "kind"}, list...)
}

// in answers IS_ROLE_IN_SESSION of the grantees, in the order of the grants.
func in(session ...any) object { return rows(session) }

// interactiveWH is an interactive warehouse as SHOW WAREHOUSES has it now.
func interactiveWH(tables string, autoSuspend any) object {
	return shown([]string{"name", "state", "type", "size", "max_cluster_count", "auto_suspend", "auto_resume",
		"generation", "tables"},
		[]any{"WH", "SUSPENDED", "INTERACTIVE", "X-Small", 1, autoSuspend, "true", nil, tables})
}

// parametersOf is SHOW PARAMETERS IN WAREHOUSE.
func parametersOf(fallback string, level string) object {
	return shown([]string{"key", "value", "default", "level"}, []any{"FALLBACK_WAREHOUSE", fallback, "", ""},
		[]any{"MAX_CONCURRENCY_LEVEL", level, "8", ""}, []any{"STATEMENT_TIMEOUT_IN_SECONDS", "172800", "172800", ""})
}

func TestPreflight(t *testing.T) {
	refused := object{"error": "Insufficient privileges", "code": "003001"}
	running, stopped := oneWarehouse("STARTED", "STANDARD", "true"), oneWarehouse("SUSPENDED", "STANDARD", "true")
	everyday := map[string]object{
		"session":           rows([]any{"BENCH", "DB", "PUBLIC"}),
		"context":           rows([]any{"ANN", `{"roles":"","value":""}`, "PUBLIC.AWS_EU_CENTRAL_1"}),
		"inherited":         shown([]string{"key", "value"}),
		"current_warehouse": rows([]any{"WH"}), "warehouses": running, "warehouse_parameters": parametersOf("", "8"),
		"warehouse_grants": granted("USAGE", "OPERATE", "MONITOR"), "roles": in(false, false, false, false),
		"objects:0": objects("ORDERS"), "objects:1": objects(), `schema_grants:"DB"."PUBLIC"`: granted("USAGE"),
	}
	secondary := rows([]any{"ANN", `{"roles":"LOADER","value":"ALL"}`, "AWS_EU_CENTRAL_1"})
	orders := func(rights ...string) object {
		return object{"warehouse": "WH",
			"access": []object{{"table": "main", "table_name": "orders", "rights": append([]string{"SELECT"}, rights...)}}}
	}
	with := func(o object, key string, value any) object {
		o[key] = value
		return o
	}
	const schema = `schema_grants:"DB"."PUBLIC"`
	var lines []string
	for _, c := range []struct {
		name    string
		of      TableType
		more    object
		results map[string]object
	}{
		{"running", Standard, object{"warehouse": "WH", "connections": 16}, nil},
		{"more connections than the warehouse's own level", Standard, object{"warehouse": "WH", "connections": 9},
			map[string]object{"warehouse_parameters": parametersOf("", "4")}},
		{"an interactive warehouse whose parameters are not told", Standard, orders(),
			map[string]object{"warehouses": interactiveWH(`DB.PUBLIC.ORDERS`, 86400), "table_grants:0": granted("SELECT"),
				"warehouse_parameters": {"error": "not authorized", "code": "003001"}}},
		{"a warehouse of Standard edition", Standard, object{"warehouse": "WH", "connections": 9}, map[string]object{
			"warehouses": shown([]string{"name", "state", "type", "size", "running", "queued", "auto_resume"},
				[]any{"WH", "STARTED", "STANDARD", "Small", 0, 0, "true"})}},
		{"the session's own, suspended, more connections than slots", Standard, object{"connections": 17},
			map[string]object{"warehouses": stopped}},
		{"nothing is granted but USAGE, and it resumes by itself", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouses": oneWarehouse("SUSPENDED", "STANDARD", true), "warehouse_grants": granted("USAGE")}},
		{"nothing is granted but MONITOR, and it does not resume by itself", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouses": oneWarehouse("SUSPENDED", "STANDARD", "false"),
				"warehouse_grants": granted("MONITOR")}},
		{"the rights on the warehouse come from another role", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouses": stopped, "warehouse_grants": granted(), "roles": in(true)}},
		{"the grants on the warehouse are not whole", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouse_grants": shown([]string{"privilege", "granted_to", "grantee_name"})}},
		{"no grants can be read", Standard, with(orders("UPDATE"), "prepare", true),
			map[string]object{"warehouses": stopped, "warehouse_grants": refused, "table_grants:0": refused, schema: refused}},
		{"an interactive warehouse", Hybrid, object{"warehouse": "WH"},
			map[string]object{"warehouses": oneWarehouse("STARTED", "INTERACTIVE", "true")}},
		{"an interactive warehouse reads a standard table that it does not hold", Standard, orders(),
			map[string]object{"warehouses": interactiveWH(`DB.PUBLIC.OTHER`, 3600), "table_grants:0": granted("SELECT")}},
		{"an interactive warehouse holds the table, and has a fallback", Standard, orders(),
			map[string]object{"warehouses": interactiveWH(`DB.PUBLIC.OTHER, DB.PUBLIC.ORDERS`, 86400),
				"warehouse_parameters": parametersOf("SLOW_WH", "8"),
				"table_grants:0":       granted("SELECT")}},
		{"an interactive warehouse, suspended, to which no table may be added", Standard, orders(),
			map[string]object{"warehouses": interactiveWH("", nil), "table_grants:0": granted("SELECT"),
				"warehouse_grants": granted("USAGE", "OPERATE", "MONITOR")}},
		{"an interactive warehouse, and the right to add tables is all that it takes", Hybrid, orders(),
			map[string]object{"warehouses": interactiveWH("", nil), "table_grants:0": granted("SELECT"),
				"warehouse_grants": granted("USAGE", "OPERATE", "MONITOR", "MANAGE ATTACHED TABLES")}},
		{"an interactive warehouse is to make a table", Standard, with(orders(), "prepare", true),
			map[string]object{"warehouses": interactiveWH("", nil), "objects:0": objects(), schema: granted("CREATE TABLE"),
				"warehouse_grants": granted("USAGE", "OPERATE", "MONITOR", "MODIFY")}},
		{"a standard one makes it", Standard,
			with(with(orders(), "prepare", true), "params", object{"load_warehouse": "LOAD_WH"}),
			map[string]object{"warehouses": interactiveWH("", nil), "objects:0": objects(),
				schema: granted("CREATE TABLE"), "warehouse_grants": granted("USAGE", "OPERATE", "MONITOR", "MODIFY")}},
		{"a standard warehouse loads by itself", Standard, with(orders(), "params", object{"load_warehouse": "LOAD_WH"}),
			map[string]object{"table_grants:0": granted("SELECT")}},
		{"an interactive warehouse is to write", Standard, orders("UPDATE"),
			map[string]object{"warehouses": interactiveWH("DB.PUBLIC.ORDERS", nil),
				"table_grants:0": granted("SELECT", "UPDATE")}},
		{"of the second generation", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouses": shown([]string{"name", "state", "type", "size", "max_cluster_count", "generation"},
				[]any{"WH", "STARTED", "STANDARD", "X-Small", 1, "2"})}},
		{"adaptive", Standard, object{"warehouse": "WH"},
			map[string]object{"warehouses": shown([]string{"name", "state", "type", "size", "max_cluster_count", "generation"},
				[]any{"WH", "STARTED", "ADAPTIVE", nil, nil, nil})}},
		{"a standard warehouse", Interactive, object{"warehouse": "WH"}, nil},
		{"no warehouse", Standard, nil, map[string]object{"current_warehouse": rows([]any{nil})}},
		{"a warehouse that is not there", Standard, object{"warehouse": `O'"H`}, map[string]object{"warehouses": rows()}},
		{"no role, no schema", Standard, orders(), map[string]object{"session": rows([]any{nil, "DB", nil})}},
		{"warehouses cannot be shown", Standard, object{"warehouse": "WH"}, map[string]object{"warehouses": refused}},

		{"all rights on the table", Standard, orders("UPDATE", "DELETE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE", "DELETE")}},
		{"two rights are missing", Standard, orders("UPDATE", "DELETE"),
			map[string]object{"table_grants:0": granted("SELECT")}},
		{"the owner", Standard, orders("UPDATE", "DELETE"),
			map[string]object{"table_grants:0": granted(), "roles": in(true)}},
		{"a right through a role, another's right", Hybrid, orders("UPDATE", "DELETE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE:LOADER", "DELETE:OTHER"),
				"roles": in(false, true, false)}},
		{"who is in the session cannot be asked", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE:LOADER"), "roles": refused}},
		{"inherited grants", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": granted("SELECT"),
				"inherited": shown([]string{"key", "value"}, []any{"FEATURE_RBAC_INHERITED_GRANTS", "ENABLED"})}},
		{"a database role", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE:database_role WRITERS")}},
		{"the user's own right", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE:user ANN"), "context": secondary}},
		{"the user's own right, without secondary roles", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE:user ANN")}},
		{"a shared table, whose owner is elsewhere", Standard, orders("UPDATE"),
			map[string]object{"table_grants:0": shown([]string{"privilege", "granted_to", "grantee_name"},
				[]any{"SELECT", "ROLE", "BENCH"})}},
		{"a view", Standard, object{"warehouse": "WH",
			"access": []object{{"table_name": `db."s"."ORDERS_V"`, "rights": []string{"SELECT"}}}},
			map[string]object{"objects:0": objects("ORDERS_V"), "table_grants:0": granted()}},
		{"a table in lower case", Standard, orders(),
			map[string]object{"objects:0": objects("orders"), "table_grants:0": granted("SELECT")}},
		{"no such table", Standard, orders("INSERT"), map[string]object{"objects:0": objects("ORDERS2")}},
		{"several tables", Standard,
			object{"warehouse": "WH", "access": []object{{"table_name": "a", "rights": []string{"SELECT", "INSERT"}},
				{"table_name": "b", "rights": []string{"SELECT", "UPDATE"}}, {"table_name": `"bad`}}},
			map[string]object{"objects:0": objects("A"), "objects:1": objects("B"),
				"table_grants:0": granted("SELECT", "INSERT"), "table_grants:1": granted("SELECT", "UPDATE")}},
		{"recreate, by somebody else", Standard, with(with(orders("UPDATE"), "prepare", true), "recreate", true),
			map[string]object{"table_grants:0": granted("SELECT", "UPDATE"), schema: granted("CREATE TABLE")}},
		{"no table can be made", Standard, with(orders(), "prepare", true), map[string]object{"objects:0": objects()}},
		{"tables can be made", Standard, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE")}},
		{"tables can be made through a role", Standard, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE:LOADER"), "roles": in(false, true)}},
		{"tables can perhaps be made", Standard, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE:LOADER"), "context": secondary,
				"roles": in(false, true)}},
		{"no hybrid table can be made", Hybrid, with(orders(), "prepare", true), map[string]object{"objects:0": objects()}},
		{"hybrid tables can be made", Hybrid, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE HYBRID TABLE")}},
		{"the right of before hybrid tables had one", Hybrid, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE")}},
		{"no interactive table can be made", Interactive, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), "warehouses": oneWarehouse("STARTED", "INTERACTIVE", "true")}},

		{"no hybrid tables on Google Cloud", Hybrid, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE HYBRID TABLE"),
				"context": rows([]any{"ANN", `{"roles":"","value":""}`, "GCP_US_CENTRAL1"})}},
		{"no hybrid tables for the government", Hybrid, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE HYBRID TABLE"),
				"context": rows([]any{"ANN", "", "AWS_US_GOV_WEST_1"})}},
		{"one that is there is used", Hybrid, with(orders(), "prepare", true),
			map[string]object{"table_grants:0": granted("SELECT"),
				"context": rows([]any{"ANN", `{"roles":"","value":""}`, "GCP_US_CENTRAL1"})}},
		{"a region without interactive tables", Interactive, with(orders(), "prepare", true),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE", "CREATE INTERACTIVE TABLE"),
				"context": rows([]any{"ANN", "", "AWS_AP_SOUTHEAST_3"})}},
		{"search optimization", Standard,
			with(with(orders(), "prepare", true), "params", object{"search_optimization": true}),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE"),
				"warehouses": shown([]string{"name", "state", "type", "size"}, []any{"WH", "STARTED", "STANDARD", "X-Small"})}},
		{"search optimization where warehouses have clusters", Standard,
			with(with(orders(), "prepare", true), "params", object{"search_optimization": true}),
			map[string]object{"objects:0": objects(), schema: granted("CREATE TABLE", "ADD SEARCH OPTIMIZATION")}},
	} {
		request := object{"op": "preflight"}
		for k, v := range c.more {
			request[k] = v
		}
		results := maps.Clone(everyday)
		maps.Copy(results, c.results)
		lines = append(append(lines, "-- "+c.name), transcript(c.of, request, results)...)
	}
	golden(t, "preflight.txt", lines)
}

func TestPoll(t *testing.T) {
	var lines []string
	for _, c := range []struct {
		name    string
		more    string
		results map[string]object
	}{
		{"of the run", "WH", map[string]object{"warehouses": oneWarehouse("STARTED", "STANDARD", "true")}},
		{"of the session", "", map[string]object{"current_warehouse": rows([]any{"wh"}),
			"warehouses": oneWarehouse("RESUMING", "INTERACTIVE", "true"), "warehouse_parameters": parametersOf("SLOW", "8")}},
		{"parameters that are not told", "WH", map[string]object{
			"warehouses": oneWarehouse("STARTED", "INTERACTIVE", "true"), "warehouse_parameters": {"error": "no"}}},
		{"counts as text", "WH", map[string]object{
			"warehouses": shown([]string{"name", "running", "queued", "max_cluster_count"}, []any{"WH", "12", "0", nil})}},
		{"none", "", map[string]object{"current_warehouse": rows([]any{nil})}},
		{"not there", "100%_\\", map[string]object{"warehouses": rows()}},
		{"refused", "WH", map[string]object{"warehouses": {"error": "no"}}},
	} {
		lines = append(
			append(lines, "-- "+c.name),
			transcript(Standard, object{"op": "poll", "warehouse": c.more}, c.results)...)
	}
	golden(t, "poll.txt", lines)
}

func TestEnrich(t *testing.T) {
	var lines []string
	none := shown([]string{"name", "kind"})
	bench := shown([]string{"name", "kind"}, []any{"BENCH", "STANDARD"})
	here := map[string]object{
		"clock":     rows([]any{"1004999"}),
		"where":     rows([]any{"BENCH", "PUBLIC", "WH"}),
		"database":  bench,
		"databases": bench,
	}
	for _, of := range []TableType{Standard, Hybrid, Interactive} {
		lines = append(append(lines, "-- "+of.String()), transcript(of, object{"op": "enrich", "now_ms": 1_000_000}, here)...)
	}
	for _, c := range []struct {
		name, table string
		results     map[string]object
	}{
		{"a clock that is ahead", "", map[string]object{"clock": rows([]any{1_005_000})}},
		{"a clock that cannot be read", "", map[string]object{"clock": {"error": "no"}}},
		{"the table's database", `"Odd ""1".s.orders`, map[string]object{
			"database": shown([]string{"name"}, []any{"ODD \"1"}, []any{`Odd "1`})}},
		{"a database that is gone", "gone.s.orders", map[string]object{"database": none,
			"databases": shown([]string{"name", "kind"}, []any{"APP", "APPLICATION"}, []any{"OTHER", "STANDARD"})}},
		{"no current database", "orders", map[string]object{"where": rows([]any{nil, nil, "WH"})}},
		{"no database that the role sees", "orders", map[string]object{"where": rows([]any{nil, nil, "WH"}), "databases": none}},
		{"no list of databases", "db.s.orders", map[string]object{"database": {"error": "no"}, "databases": {"error": "no"}}},
	} {
		results := maps.Clone(here)
		maps.Copy(results, c.results)
		lines = append(append(lines, "-- "+c.name),
			transcript(Standard, object{"op": "enrich", "now_ms": 1_000_000, "table_name": c.table}, results)...)
	}
	golden(t, "enrich.txt", lines)
}
